import math

import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax import MICe, MICr
from dpmic_jax.mic.grids import Grid, all_sizes, buckets, definition, ladder, plan, power, reshef

RULES = {"reshef": reshef, "definition": definition}


@pytest.mark.parametrize("rule", RULES)
@given(B=st.floats(4, 200), c=st.sampled_from([0.29, 0.5, 1, 1.1, 5, 15]))
def test_plan_is_the_definition(rule, B, c):
    grids = plan(B=B, c=c, master=RULES[rule], sizes=all_sizes)
    assert grids == tuple(Grid(*grid) for grid in oracles.plan(B, c, rule))


@given(B=st.floats(4, 500), ratio=st.floats(1.05, 3))
def test_a_ladder_scores_some_of_all_grids_and_both_ends(B, ratio):
    some = plan(B=B, c=5, master=reshef, sizes=ladder(ratio))
    every = plan(B=B, c=5, master=reshef, sizes=all_sizes)
    assert set(some) <= set(every)
    assert (some[0], some[-1]) == (every[0], every[-1])


@pytest.mark.parametrize(
    ("largest", "sizes"), [(20, (16, 12, 9, 7)), (40, (24, 16, 11, 9)), (75, (30, 19, 14, 10))]
)
def test_ladders_have_the_documented_number_of_sizes(largest, sizes):
    assert tuple(len(ladder(r)(largest)) for r in (1.1, 1.2, 1.35, 1.5)) == sizes


def test_a_decimal_c_is_taken_as_written():
    # In binary 0.29 * 100 is just below 29.
    assert plan(B=20_000, c=0.29, master=definition, sizes=lambda _: [100])[0].master == 29


def test_no_entry_has_more_parts_than_its_master():
    grids = MICr(B=100, c=0.5).grids(1000)
    assert all(2 <= grid.parts <= grid.master for grid in grids)
    assert any(grid.parts < min(grid.rows, 100 // grid.rows) for grid in grids)


def test_a_rule_gives_at_least_four_cells():
    assert power(0.6)(4) == 4
    assert power(0.6)(1000) == 1000**0.6
    assert MICe().grids(4) == MICe(B=4).grids(4)


@given(B=st.integers(4, 120), pairs=st.sampled_from([1, 30, 10**3, 10**6]))
def test_buckets_keep_every_grid_in_order(B, pairs):
    grids = plan(B=B, c=5, master=reshef, sizes=all_sizes)
    found = buckets(grids, pairs)
    assert tuple(grid for bucket in found for grid in bucket.grids) == grids


@given(B=st.integers(4, 300), pairs=st.sampled_from([1, 30, 10**3, 10**6]))
def test_a_bucket_has_room_for_each_of_its_grids(B, pairs):
    for bucket in buckets(plan(B=B, c=5, master=reshef, sizes=all_sizes), pairs):
        for grid in bucket.grids:
            assert grid.rows <= bucket.rows
            assert grid.master <= bucket.master
            assert grid.parts <= bucket.parts
        # On a rung of 4 bits: 1 of 8 rows at most is waste.
        assert bucket.rows % 2 ** max(0, bucket.rows.bit_length() - 4) == 0
        assert bucket.rows < 9 / 8 * max(grid.rows for grid in bucket.grids) + 1


def test_tables_of_about_as_many_pairs_share_their_buckets():
    """12 and 17 columns do, and 12 and 200 do not."""
    grids = plan(B=63, c=15, master=reshef, sizes=all_sizes)
    assert buckets(grids, 66) == buckets(grids, 136)
    assert buckets(grids, 66) != buckets(grids, 19_900)


def test_many_pairs_get_tighter_buckets():
    grids = plan(B=63, c=15, master=reshef, sizes=all_sizes)
    assert len(buckets(grids, 1)) < len(buckets(grids, 1000)) < len(buckets(grids, 10**6))


@pytest.mark.parametrize("B", [3.9, 0, -1, math.nan, math.inf])
def test_too_few_cells_are_refused(B):
    with pytest.raises(ValueError, match="B >= 4"):
        MICr(B=B)


@pytest.mark.parametrize("c", [0, -1, math.nan, math.inf])
def test_c_must_be_positive(c):
    with pytest.raises(ValueError, match="c > 0"):
        MICe(c=c)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: MICr(B="many"), "B to be a number"),
        (lambda: MICe(c="fine"), "c to be a number"),
        (lambda: MICe(B=True), "B to be a number"),
    ],
)
def test_settings_of_the_wrong_type_are_refused(make, error):
    with pytest.raises(TypeError, match=error):
        make()


def test_other_settings_are_checked():
    with pytest.raises(ValueError, match="alpha"):
        power(0)
    with pytest.raises(ValueError, match="ratio above 1"):
        ladder(1)
    with pytest.raises(ValueError, match="B <= 65536"):
        MICr(B=10**6)
