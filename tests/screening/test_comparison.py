"""Several queries beside each other: every row is the preview of its query."""

import json

import pytest

from dpmic_jax.screening import Above, Against, AllPairs, Between, TopK, preview
from dpmic_jax.screening.comparison import compare, rows, table, usual_asks

NAMES = tuple("abcdefgh")
SETTINGS = {"columns": NAMES, "n": 3000, "epsilon": 0.1, "delta": 1e-6, "records_per_person": 2}


@pytest.mark.parametrize("columns", [2, 3, 4, 7, 30])
def test_usual_queries_are_ones_that_the_table_can_answer(columns):
    names = tuple(f"c{number}" for number in range(columns))
    asked = usual_asks(names)
    kinds = [AllPairs, Against, *[TopK] * ((columns > 3) + (columns > 6)), Above]
    assert [type(ask) for ask in asked] == kinds
    pairs = columns * (columns - 1) // 2
    assert all(0 < len(ask.pairs(names)) <= pairs for ask in asked)


def test_every_row_is_the_preview_of_its_query():
    asked = (TopK(2), Between(("a",), ("b", "c")), Above(0.5, 2))
    found = rows(compare(asked, **SETTINGS))
    assert len(found) == 3
    for ask, row in zip(asked, found, strict=True):
        alone = preview(**SETTINGS, ask=ask)
        assert row == {
            "asked": str(ask),
            "noise_sd": alone.plan.distances.sd,
            "smallest_mic": alone.smallest,
            "smallest_distance": alone.smallest_distance,
            "mechanism": alone.plan.mechanism,
        }


def test_json_has_null_where_noise_hides_everything():
    found = rows(compare([AllPairs(), Against("a")], **{**SETTINGS, "n": 1500}))
    hidden, seen = json.loads(json.dumps(found, allow_nan=False))
    assert hidden["smallest_mic"] is None
    assert hidden["smallest_distance"] > 2**0.5 - 1
    assert 0 < seen["smallest_mic"] < 1
    # More noise than a number has room for.
    (row,) = rows(compare([AllPairs()], columns=3, n=30, epsilon=1e-12))
    assert (row["smallest_mic"], row["smallest_distance"]) == (None, None)
    json.dumps(row, allow_nan=False)


def test_the_table_has_the_same_numbers_in_columns():
    found = compare([AllPairs(), Against("a"), TopK(5)], **{**SETTINGS, "n": 1500})
    head, *lines = table(found).splitlines()
    starts = [head.index(name) for name in ("asked", "noise sd", "smallest MIC", "distance", "how")]
    for line, row in zip(lines, rows(found), strict=True):
        ends = [*starts[1:], None]
        asked, noise, mic, distance, how = (
            line[start:end].strip() for start, end in zip(starts, ends, strict=True)
        )
        assert asked == row["asked"]
        assert float(noise) == pytest.approx(row["noise_sd"], rel=5e-3)
        assert float(distance) == pytest.approx(row["smallest_distance"], rel=5e-3)
        if row["smallest_mic"] is None:
            assert mic == "none"
        else:
            assert float(mic) == pytest.approx(row["smallest_mic"], rel=5e-3)
        assert row["mechanism"].replace("discrete ", "").endswith(how)
