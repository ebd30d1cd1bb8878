import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from dpmic_jax import MICe, MICr
from dpmic_jax.mic import at_once, coding, counting, kernel
from dpmic_jax.mic.grids import Bucket, Grid, buckets

# Values, and for MICr their bounds.
TABLE = {
    "tied": (lambda rng, n: rng.integers(0, 9, n), (0, 9)),
    "plain": (lambda rng, n: rng.random(n), (0, 1)),
    "beyond": (lambda rng, n: rng.normal(size=n), (-1, 1)),
}
BOUNDS = [bounds for _, bounds in TABLE.values()]
PAIRS = np.array([[0, 1], [2, 1], [0, 2], [1, 1]], np.int32)
PREPARE = {"direct": coding.direct_codes, "refined": coding.refined_codes}
CUTS = {
    "by rank": lambda columns: MICe(B=30, c=4).cut(columns),
    "by width": lambda columns: MICr(B=30, c=4).cut(columns, BOUNDS),
}
_count = jax.jit(kernel.count, static_argnames="layout")
_counting = {True: _count, False: jax.jit(at_once.count, static_argnames="layout")}


def codes(how, columns, column, parts):
    if how == "by rank":
        return oracles.mass_codes(columns[column], parts)
    return oracles.width_codes(columns[column], parts, *BOUNDS[column])


def layout_of(cut, lane_by_lane=True):
    return kernel.Layout(buckets(cut.grids, 10**5), len(PAIRS), 8, lane_by_lane)


def table(n):
    rng = np.random.default_rng(7)
    return [make(rng, n) for make, _ in TABLE.values()]


def histogram(columns, rows, shape):
    counts = np.zeros(shape, int)
    np.add.at(counts, (columns, rows), 1)
    return counts


def counted(cut, prepare, **layout):
    return _counting[layout.get("lane_by_lane", True)](
        PREPARE[prepare](cut.masters, cut.rows),
        *PAIRS.T,
        np.array([len(PAIRS)], np.int32),
        np.int32(cut.n),
        layout=layout_of(cut, **layout),
    )


def test_direct_adds_histograms_and_nothing_for_what_pads(rng):
    columns, rows = (rng.integers(0, size, (3, 50)).astype(np.uint8) for size in (5, 4))
    before = rng.integers(0, 9, 60).astype(np.int32)
    padded = (np.pad(codes, ((0, 0), (0, 7))) for codes in (columns, rows))
    record = np.repeat(np.array([1, 0], np.int32), [50, 7])
    first = np.array([40, 0, 20], np.int32)
    found = counting.direct(*map(jnp.asarray, (before, *padded, record, first)), 4)
    added = (np.asarray(found) - before).reshape(3, 5, 4)
    for place, lane in enumerate([1, 2, 0]):
        expected = histogram(columns[lane], rows[lane], (5, 4))
        np.testing.assert_array_equal(added[place], expected)


@pytest.mark.parametrize("prepare", PREPARE)
def test_all_lanes_at_once_are_counted_like_one_by_one(prepare):
    cut = CUTS["by rank"](table(203))
    for ours, others in zip(
        counted(cut, prepare, lane_by_lane=False), counted(cut, prepare), strict=True
    ):
        np.testing.assert_array_equal(ours, others[: len(ours)])


def test_half_a_word_holds_as_many_records_as_share_one():
    """All of them in one cell, counted in both orientations."""
    most = 2**16 - 1
    assert at_once.refined_room((2, 2, 2), most + 1) == (2, 2, 2)
    total = jnp.zeros((1, *at_once.refined_room((2, 2, 2), most)), jnp.int32)
    assert total.size == 4
    ones, edges = np.ones((2, most), np.uint8), np.tile(np.arange(3, dtype=np.int32), (1, 2, 1))
    layout = kernel.Layout((Bucket((Grid(2, 2, 2),)),), 1, 8, False)

    @jax.jit
    def counts(total, ones, edges):
        pair = jnp.array([0]), jnp.array([1])
        total = at_once.add_records(total, coding.FineCodes(ones, ones), *pair, jnp.int32(0))
        both = coding.FineEdges(edges, edges)
        return at_once.count_refined(total, both, *pair, jnp.array([1]), layout=layout)

    (found,) = counts(total, ones, edges)
    np.testing.assert_array_equal(found, [[[0, 0], [0, most]]] * 2)


def test_coarser_grids_are_read_off_the_finest(rng):
    """Edges may be equal: then a part between them is empty."""
    columns, rows = rng.integers(0, 12, (2, 300)), rng.integers(0, 7, (2, 300))
    column_edges = np.array([[[0, 5, 5, 12], [0, 1, 11, 12]], [[0, 0, 6, 12], [0, 3, 6, 9]]])
    row_edges = np.array([[[0, 2, 7], [0, 7, 7]], [[0, 3, 5], [0, 1, 7]]])

    @jax.jit
    def read(columns, rows, *edges):
        total = jnp.zeros((12, 2, 7), jnp.int32)
        for block in (slice(0, 100), slice(100, 300)):
            for lane in range(2):
                total = counting.refine(total, lane, columns[lane, block], rows[lane, block])
        return counting.read_off(counting.prefix(total), *edges)

    found = np.asarray(read(columns, rows, column_edges, row_edges))
    assert found.shape == (2, 2, 3, 2)
    for grid, lane in np.ndindex(2, 2):
        fine = histogram(columns[lane], rows[lane], (12, 7))
        across, down = column_edges[grid, lane], row_edges[grid, lane]
        for column, row in np.ndindex(3, 2):
            cell = fine[across[column] : across[column + 1], down[row] : down[row + 1]]
            assert found[grid, lane, column, row] == cell.sum()


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize("how", CUTS)
def test_every_lane_has_the_histogram_of_its_grid(how, prepare):
    """Pair by pair, grid by grid, first column merged and then the second; what pads is off."""
    columns = table(203)
    cut = CUTS[how](columns)
    for bucket, counts in zip(layout_of(cut).buckets, counted(cut, prepare), strict=True):
        lanes = iter(np.asarray(counts))
        for one, other in PAIRS:
            for grid in bucket.grids:
                for merged, fixed in ((one, other), (other, one)):
                    expected = histogram(
                        codes(how, columns, merged, grid.master),
                        codes(how, columns, fixed, grid.rows),
                        (bucket.master, bucket.rows),
                    )
                    np.testing.assert_array_equal(next(lanes), expected)


@pytest.mark.parametrize(("prepare", "others"), [("direct", (197, 208)), ("refined", (301, 500))])
def test_one_program_counts_tables_of_many_lengths(prepare, others):
    """Cut by width, whose codes depend on no other record."""
    counted(CUTS["by width"](table(others[0])), prepare)
    programs = _count._cache_size()
    counted(CUTS["by width"](table(others[1])), prepare)
    assert _count._cache_size() == programs
    counted(CUTS["by width"](table(5000)), prepare)  # on another rung
    assert _count._cache_size() > programs


@pytest.mark.parametrize("batch", [7, 203])
def test_row_batches_add_up_to_the_same_integers(batch):
    cut = CUTS["by width"](table(203))
    one, other = PAIRS.T
    edges = coding.fine_edges(cut.masters, cut.rows, 5)
    total = jnp.zeros((len(PAIRS), *coding.refined_shape(cut.masters, cut.rows)), jnp.int32)
    add = jax.jit(kernel.add_records)
    for start in range(0, cut.n, batch):
        some = (part.fine[:, start : start + batch] for part in (cut.masters, cut.rows))
        spare = batch - len(range(cut.n)[start : start + batch])
        fine = coding.FineCodes(*(coding.filled(codes, 5, batch) for codes in some))
        total = add(total, fine, one, other, np.int32(spare))
    number = np.array([len(PAIRS)], np.int32)
    read = jax.jit(kernel.count_refined, static_argnames="layout")
    found = read(total, edges, one, other, number, layout=layout_of(cut))
    for ours, whole in zip(found, counted(cut, "refined"), strict=True):
        np.testing.assert_array_equal(ours, whole)


def test_the_way_of_counting_follows_the_number_of_records(rng):
    def way(n):
        cut = MICr(B=60, c=5).cut([rng.random(n), rng.random(n)], [(0, 1), (0, 1)])
        return type(coding.cheaper_codes(cut.masters, cut.rows))

    assert way(200) is coding.DirectCodes
    assert way(50_000) is coding.RefinedCodes
