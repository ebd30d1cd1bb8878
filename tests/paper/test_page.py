import pytest

from dpmic_jax.paper import page, published_values, summary
from dpmic_jax.paper.functions import FUNCTIONS


def real_rows(off=0.0):
    """Rows with the printed numbers, and the bias of one entry changed by `off`."""
    rows = [
        {
            "collection": collection,
            "pairs": {"Spellman23": 11, "Baseball": 22, "Spellman4381": 33}[collection],
            "epsilon": epsilon,
            "mechanism": mechanism,
            "setting": "B = 9, c = 5",
            "bias": cell.bias,
            "variance": cell.variance,
            "unsigned": 0.1234,
        }
        for (epsilon, collection), cells in published_values.REAL.items()
        for mechanism, cell in zip(published_values.MECHANISMS, cells, strict=True)
    ]
    rows[4]["bias"] += off
    return [*rows, {**rows[4], "mechanism": "ours", "bias": 0.5}]


def synthetic_rows(ours):
    errors = {"MICe-Lap": 0.5, "MICr-Lap": 0.2, "MICr-Geom": 0.1, "ours": ours}
    errors |= {"ours, MIC*": ours, "variation, MIC*": 0.09, "ours, noiseless": 0.05}
    return [
        {"n": n, "epsilon": epsilon, "mechanism": name, "error": error}
        | {"setting": "", "bias": [-0.2, 0.01, 0.03], "variance": 0.0031}
        for n in (250, 5000)
        for epsilon in (1.0, 0.1)
        for name, error in errors.items()
    ]


def tried():
    geom = {"bounds": "own", "B": 137, "c": 1, "bias": 0.015, "variance": 3e-5, "pooled": 0.0244}
    return {
        "command": "dpmic paper tried",
        "draws": 4,
        "geom": [geom],
        "finer": [
            {"n": 250, "epsilon": 0.1, "B": 60, "c": 12, "ratio": 1.5}
            | {"wsum": 0.2, "finer": 16, "finer_wsum": 0.19}
        ],
        "parts": [{"n": 250, "parts": 32, "1": 0.07, "0.1": 0.17}],
        "others": [
            {"n": 250, "epsilon": 1.0, "mechanism": "ours, MIC*", "circle": 0.2, "cross": 0.1}
        ],
    }


def consistency_rows(last):
    return [
        {"n": n, "setting": "B = 9", **dict.fromkeys(FUNCTIONS, error), "F7": seventh}
        for n, error, seventh in ((100, 0.3, 0.3), (1000, 0.2, last))
    ]


def test_what_is_printed_counts_as_reproduced():
    assert summary.misses(real_rows()) == []


@pytest.mark.parametrize(("off", "missed"), [(0.019, 0), (0.021, 1), (-0.021, 1)])
def test_a_bias_beyond_its_tolerance_is_a_miss(off, missed):
    found = summary.misses(real_rows(off))
    assert len(found) == missed
    assert all("Baseball, epsilon = 1.0, MICr-Lap" in line for line in found)


@pytest.mark.parametrize(("factor", "missed"), [(1.4, 0), (1.6, 1), (0.6, 1), (0.7, 0)])
def test_a_variance_off_by_more_than_half_and_not_small_is_a_miss(factor, missed):
    rows = real_rows()
    (row,) = [
        row
        for row in rows
        if (row["collection"], row["epsilon"], row["mechanism"]) == ("Baseball", 1.0, "MICe-Lap")
    ]
    row["variance"] *= factor
    assert len(summary.misses(rows)) == missed


def test_tiny_variances_may_be_off_by_any_factor():
    rows = real_rows()
    for row in rows:
        if row["variance"] < 1e-3:
            row["variance"] *= 10
    assert summary.misses(rows) == []


def test_the_table_shows_each_number_beside_the_printed_one():
    text = page.real_table(real_rows(0.005))
    assert "| Baseball | 1 | MICr-Lap | B = 9, c = 5 | 0.025 (0.02) | 0.02 (0.02) |" in text
    assert "0.1234 (0.097) |" in text
    assert "| Baseball | 1 | ours | B = 9, c = 5 | 0.500 | 0.02 | 0.1234 |" in text
    assert len(text.splitlines()) == 2 + 18 + 1


@pytest.mark.parametrize(
    ("ours", "good"),
    [(0.074, 4), (0.076, 0), (0.0549, 4)],
)
def test_ours_is_judged_by_the_best_published_error_or_by_no_noise(ours, good):
    text = page.page(
        {
            "tables": {"command": "t", "draws": 3, "rows": real_rows()},
            "synthetic": {
                "command": "s",
                "iterations": 4,
                "large_iterations": 2,
                "rows": synthetic_rows(ours),
            },
            "consistency": {"command": "c", "rows": consistency_rows(0.2), "mic_star": []},
            "tried": tried(),
        }
    )
    assert f"at {good} of 4 settings" in text
    assert f"| 250 | 1 | 0.5000 | 0.2000 | 0.1000 | {ours:.4f} |" in text
    assert f"| {ours / 0.1:.2f} |" in text
    assert "least, median and largest bias | -0.200, 0.010, 0.030 | -0.1, 0.01, 0.02 |" in text
    assert "median variance | 0.0031 | 0.003 |" in text
    assert "3 releases of each of 11, 22 and 33 pairs" in text
    assert "printed\nas 0.019 with a bias of 0.02 and a variance of 0.0001." in text
    assert "| own | 137 | 1 | 3.0e-05 | 0.0150 | 0.0244 |" in text
    assert "| 250 | 0.1 | B = 60, c = 12, ladder 1.5 | 0.2000 | 0.1900 | -5.0% |" in text
    assert "| 250 | 32 | 0.0700 | 0.1700 |" in text
    assert "| 250 | 1 | ours, MIC\\* | 0.200 | 0.100 | 0.150 |" in text


@pytest.mark.parametrize(("finer", "said"), [(0.19, "by 5% at n = 250"), (0.197, "far enough")])
def test_the_page_says_whether_a_finer_master_grid_lowers_the_error(finer, said):
    row = {"n": 250, "epsilon": 0.1, "c": 12, "wsum": 0.2, "finer": 16, "finer_wsum": finer}
    assert said in page._finer_text([{**row, "finer_wsum": 0.21}, row])


def test_the_best_of_ours_is_judged_whichever_it_is():
    rows = synthetic_rows(0.2)
    assert "at 0 of 4 settings" in page._verdict(rows)
    for row in rows:
        if row["mechanism"] == "variation, MIC*":
            row["error"] = 0.074
    assert "at 4 of 4 settings" in page._verdict(rows)


def test_target_errors_are_shown_with_the_rows_that_reach_them():
    rows = [
        {"collection": "Baseball", "epsilon": 1.0, "mechanism": name, "unsigned": error}
        for name, error in {"ours": 0.037, "ours, debiased": 0.0359, "MICr-Lap": 0.001}.items()
    ]
    text = page.wanted_table(rows)
    assert "| Baseball | 1 | 0.036: ours, debiased (0.0359) | 0.02: no row |" in text
    assert "| Spellman4381 | 1 | 0.0068: no row | 0.005: no row |" in text


def test_within_ten_percent_of_no_noise_is_good_enough():
    rows = synthetic_rows(0.08)
    for row in rows:
        if row["mechanism"] == "ours, noiseless":
            row["error"] = 0.074
    assert "at 4 of 4 settings" in page._verdict(rows)


@pytest.mark.parametrize(("last", "falling"), [(0.29, 21), (0.31, 20)])
def test_functions_whose_error_falls_at_every_n_are_counted(last, falling):
    assert f"{falling} of 21" in page.consistency_table(consistency_rows(last))


def test_table_2_says_how_far_the_printed_setting_is_from_the_best():
    rows = [
        {
            "n": 250,
            "epsilon": 1.0,
            "MICr-Lap": [[5, 50, 0.10], [5, 40, 0.11]],
            "MICr-Geom": [[1, 25, 0.2]],
        }
    ]
    text = page.table_2(rows)
    assert "| 250 | 1 | MICr-Lap | (5, 50) | (5, 40) | 10.0% |" in text
    assert "| 250 | 1 | MICr-Geom | (1, 25) | (1, 40) | not tried |" in text
