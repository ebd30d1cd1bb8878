"""Screens of rare flags: distances relative to what their columns allow."""

import numpy as np
import pytest
from small import BOUNDS, STATISTIC, same_bits, screened

from dpmic_jax import seeded_key
from dpmic_jax.dp.accounting.events import ReplaceOne
from dpmic_jax.screening import Above, AllPairs, Resources, TopK, screen
from dpmic_jax.screening.planning import plan

N = 4000
LIMITS = {"stroke": (0, 1), "clot": (0, 1), "age": (0, 1), "dose": (0, 1)}


def clinic(rng):
    """A stroke in 2 % of the records; a clot decides it in nine of ten; the others do not."""
    stroke = rng.random(N) < 0.02
    clot = np.where(rng.random(N) < 0.9, stroke, rng.random(N) < 0.02)
    return {"stroke": stroke, "clot": clot, "age": rng.random(N), "dose": rng.random(N)}


def screened_clinic(table, *, relative=("stroke", "clot"), ask=None, epsilon=50.0, seed=3):
    numbers = {name: column.astype(float) for name, column in table.items()}
    return screen(
        numbers,
        bounds=LIMITS,
        epsilon=epsilon,
        ask=ask or AllPairs(),
        relative=relative,
        key=seeded_key(seed),
        statistic=STATISTIC,
    )


def test_a_rare_flag_is_near_to_independence_of_itself_and_relative_distances_say_so(rng):
    table = clinic(rng)
    found = screened_clinic(table)
    prevalence = table["stroke"].mean()
    s = np.sqrt(1 - prevalence)
    # One noise, and what the grid of t adds.
    assert found.own["stroke"] == pytest.approx(2 * s * (1 - s), abs=2e-3)
    row = found.columns()["y"].index("clot")
    assert found.columns()["x"][row] == "stroke"
    assert found.mic[row] < 0.3
    assert found.relative.value[row] > 0.7
    assert found.relative.lower[row] > 0.6


@pytest.mark.parametrize(
    "ask", [AllPairs(), TopK(2), TopK(2, selection_fraction=0.5), Above(0.02, 2)]
)
def test_every_query_releases_the_own_distances_that_were_asked_for(ask, rng):
    found = screened_clinic(clinic(rng), ask=ask, epsilon=500.0, relative=("clot",))
    assert set(found.own) == {"clot"}
    assert found.own["clot"] == pytest.approx(0.02, abs=0.01)
    known = ["clot" in pair[:2] for pair in found.ranked()]
    assert np.isnan(found.relative.value).tolist() == [not each for each in known]


def planned(relative, ask):
    return plan(
        names=tuple(BOUNDS),
        n=600,
        ask=ask,
        epsilon=1.0,
        delta=0.0,
        statistic=STATISTIC,
        relation=ReplaceOne(),
        relative=relative,
    )


@pytest.mark.parametrize("ask", [AllPairs(), TopK(3, selection_fraction=0.5)])
def test_the_radius_is_drawn_for_own_distances_too(ask):
    without, with_two = planned((), ask), planned(("a", "c"), ask)
    assert with_two.distances.points == without.distances.points + 2 == with_two.noised
    assert with_two.event.digest != without.event.digest
    # They are no candidates: the level grows by the noise only.
    assert with_two.workload.candidates == without.workload.candidates


def test_own_distances_do_not_depend_on_tiles_and_are_stored(tmp_path):
    whole = screened(relative=("c", "a"))
    assert tuple(whole.own) == ("c", "a")
    assert same_bits(whole, screened(relative=("c", "a"), resources=Resources(tile=4)))
    first = screened(relative=("c", "a"), out=tmp_path / "run")
    assert same_bits(first, screened(relative=("c", "a"), out=tmp_path / "run"))
    whole.to_parquet(tmp_path / "found.parquet")
    assert type(whole).from_parquet(tmp_path / "found.parquet") == whole
    assert type(whole).from_json(whole.to_json()) == whole
    assert {"relative", "relative_lower", "relative_upper"} <= set(whole.to_frame().columns)
    assert "relative" not in screened().to_frame().columns


@pytest.mark.parametrize(
    ("relative", "match"),
    [(("z",), "unknown column 'z'"), (("a", "a"), "each once"), ("ab", "list of column names")],
)
def test_columns_that_are_not_there_are_refused_by_name(relative, match):
    with pytest.raises(ValueError, match=match):
        planned(relative, AllPairs())
