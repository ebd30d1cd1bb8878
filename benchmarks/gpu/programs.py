"""The programs that run on a GPU, as they are laid out there, and compiled for one."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding

from benchmarks.engine import CASES, all_pairs, bounds_of, statistic_of
from dpmic_jax import MICr
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.mechanisms import release
from dpmic_jax.mic import batch, streaming
from dpmic_jax.mic.grids import ladder
from dpmic_jax.mic.programs import EVERYWHERE, Call, Program
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.mic.xlogx import exact_gains, fast_gains

HERE = Path(__file__).parent
SCREEN = 20_000, 150, 5  # n, B, c


class Task(NamedTuple):
    """Pairs of a table that are scored.

    Attributes:
      cut: the table in bins.
      gains: how phi is evaluated.
      pairs: how many there are.
    """

    cut: Any
    gains: Any
    pairs: int


class Step(NamedTuple):
    """A program with its arguments, and how often all pairs take it."""

    call: Call
    times: int

    @property
    def name(self) -> str:
        """Of the program."""
        return self.call[0].function.__name__


def described(name: str) -> Any:
    """A device that is not there, from its description (`a100`, `h100`)."""
    description = (HERE / f"{name}.txtpb").read_text()
    found = topologies.get_topology_desc(
        platform="cuda", target_config=description, topology="1x1x1"
    )
    return found.devices[0]


def readme_case(name: str) -> Task:
    """A case of `benchmarks.engine`, as `pairwise` scores it."""
    case = CASES[name]
    X = case.load()
    columns, statistic = [np.ascontiguousarray(column) for column in X.T], statistic_of(case)
    cut = (
        statistic.cut(columns, bounds_of(X)) if case.statistic == "MICr" else statistic.cut(columns)
    )
    return Task(cut, fast_gains(cut.n), len(all_pairs(X.shape[1])))


def screened(columns: int, pairs: int) -> Task:
    """What a screen of n = 20 000 measures: MICr on the ladder, and the distance."""
    n, B, c = SCREEN
    X = np.random.default_rng(0).random((columns, n), np.float32)
    measured = MICrAndDistance(micr=MICr(B=B, c=c, sizes=ladder(1.25)))
    return Task(measured.cut(list(X), [(0.0, 1.0)] * columns), exact_gains(n), pairs)


TASKS = {
    **{name: partial(readme_case, name) for name in CASES},
    "screen, 66 pairs": partial(screened, 12, 66),
    "screen, 4096 pairs": partial(screened, 92, 4096),
}
STREAMED = "screen, 4096 pairs"


def scoring(task: Task, device: Any) -> dict[str, list[Step]]:
    """The steps of `batch.scorer`: for MICe or MICr, and for the distance."""
    with _kept() as kept:
        scorer = batch.scorer(task.cut, task.gains, devices=[device], pairs=task.pairs)
    parts = getattr(scorer, "parts", [scorer])
    tiles = len(scorer.tiles(np.zeros((task.pairs, 2), np.int32), scorer.most))
    names = ["distance" if part.layout.grids[0].parts == 1 else "MIC" for part in parts]
    return {
        name: [Step(call, tiles) for call in calls] for name, calls in zip(names, kept, strict=True)
    }


def streaming_steps(task: Task, device: Any, rows: int = 4096, group: int = 1024) -> list[Step]:
    """The steps of `streaming.score_batches`, of groups of pairs and of batches of records."""
    group = min(group, task.pairs)
    pairs = np.zeros((group, 2), np.int32)
    mesh = Mesh(np.array([device]), ("pairs",))
    with _kept() as kept:
        one = streaming._Pass(task.cut, task.cut.n, pairs, group, task.gains, task.cut.n, mesh)
    batches, groups = -(-task.cut.n // rows), -(-task.pairs // group)
    tiles = groups * len(one.shares)
    add, *others = kept[0]
    return [Step(add, tiles * batches), *(Step(call, tiles) for call in others)]


def noise_steps(pairs: int) -> list[Step]:
    """The steps of cube noise for some pairs: keys of their columns, then of pairs, then words."""
    columns = jax.ShapeDtypeStruct((pairs,), np.uint32)
    keys = jax.ShapeDtypeStruct((pairs, jax.random.key_data(seeded_key(0)).size), np.uint32)
    calls = (release._folded, (keys, columns), 2), (release._block_words, (keys,), 1)
    return [
        Step((Program(function, (), (EVERYWHERE,) * len(given), EVERYWHERE), given), times)
        for function, given, times in calls
    ]


@contextmanager
def _kept() -> Iterator[list[list[Call]]]:
    """Programs that would be compiled, and nothing put on a device."""
    kept: list[list[Call]] = []

    def keep(mesh: Mesh, calls: Any) -> list[None]:
        kept.append(list(calls))
        return [None] * len(calls)

    def stay(mesh: Mesh, arrays: Any) -> Any:
        return arrays

    with (
        mock.patch.object(batch, "compiled_together", keep),
        mock.patch.object(batch, "on_devices", stay),
        mock.patch.object(streaming, "on_devices", stay),
        mock.patch.object(jax, "device_put", lambda array, where: array),
    ):
        yield kept


def traced(call: Call, device: Any) -> jax.stages.Traced:
    """A program, for a device that need not be there."""
    program, arguments = call
    mesh = Mesh(np.array([device]), ("pairs",))
    placed = [
        jax.tree.map(partial(_shaped, where=NamedSharding(mesh, spec)), argument)
        for argument, spec in zip(arguments, program.inputs, strict=True)
    ]
    return program.on(mesh).trace(*placed)


def compiled(call: Call, device: Any) -> jax.stages.Compiled:
    """A program, compiled for a device that need not be there."""
    return traced(call, device).lower().compile()


def _shaped(array: Any, where: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(array), array.dtype, sharding=where)
