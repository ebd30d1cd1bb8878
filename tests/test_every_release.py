"""Whatever takes a key and values keeps the same rules, also what is added later.

The public functions, methods and estimators that take both are found by their parameters. Each of
them either says that it is not private, or: does not infer types from values, refuses no value,
draws fresh noise for a secret key, charges before a cell is looked at, and shows no value.
"""

import datetime
import inspect
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib import import_module

import numpy as np
import pytest

from dpmic_jax import Budget, BudgetExceeded, LedgerFile, MICe, MICr, secret_key, seeded_key
from dpmic_jax.causal import SVTPC, Kendall, Query, SmoothMedian
from dpmic_jax.causal.reading import TableCodes
from dpmic_jax.data.source import open_source
from dpmic_jax.runs import charged
from dpmic_jax.screening import AllPairs, screen

ROOMS = (
    "dpmic_jax",
    "dpmic_jax.causal",
    "dpmic_jax.inference",
    "dpmic_jax.mechanisms",
    "dpmic_jax.screening",
    "dpmic_jax.sklearn",
)
N, MARKER = 40, "SECRET-98765"
X, Y = [i % 4 for i in range(N)], [i * i % 3 for i in range(N)]
BOUNDS = {"x": (0, 3), "y": (0, 3)}
SEED = 5

# Parameters that hold values of records; any other is public, and its value is made below.
DATA = {"x", "y", "X", "table", "data", "columns"}


def public(name, others, owner):
    """A public argument, by its name and what else the function takes."""
    by_name, small = "table" in others, MICr(B=6, c=1)
    made = {
        "bounds": (0, 3) if owner == "PrivateMICSelector" else BOUNDS if by_name else [(0, 3)] * 2,
        "target_bounds": (0, 3),
        "within": BOUNDS if by_name else (0, 3),
        "pairs": [("x", "y")] if by_name else [(0, 1)],
        "statistic": MICe(B=6, c=1) if "MICe" in owner else small,
        "epsilon": 20.0,
        "rho": 0.5,
        "parts": 3,
        "low": 0.0,
        "high": 1.0,
        "k_features": 1,
        "ask": AllPairs(),
        "make": Kendall,
        "test": Kendall,
        "search": SVTPC(epsilon=20.0, threshold=1.0, max_order=0, rounds=1),
        "queries": [Query(0, 1)],
        "median": SmoothMedian(epsilon=1.0, delta=1e-4, top=16),
        "result": screened() if name == "result" else None,
    }
    assert name in made, f"say what {owner} is to be given as {name}, or that it holds values"
    return made[name]


@lru_cache
def screened():
    table = {"x": X, "y": Y}
    return screen(
        table,
        bounds=BOUNDS,
        epsilon=1.0,
        ask=AllPairs(),
        key=seeded_key(0),
        statistic=MICr(B=6, c=1),
        force=True,
    )


def values(parameter, x, y):
    """What is given for a parameter that holds values."""
    if parameter.name == "data":
        codes = TableCodes(open_source({"x": x, "y": y}, BOUNDS), 2)
        return codes if "TableCodes" in str(parameter.annotation) else codes.read()
    rows = [list(record) for record in zip(x, y, strict=True)]
    return {"x": x, "y": y, "X": rows, "table": {"x": x, "y": y}}[parameter.name]


def required(function, wanted=()):
    """Parameters without a default, and those of `wanted` that there are."""
    found = inspect.signature(function).parameters.values()
    named = [p for p in found if p.name != "self" and p.kind != p.VAR_KEYWORD]
    return [p for p in named if p.default is p.empty or p.name in wanted]


class Door:
    """One way to give values and a key."""

    def __init__(self, name, function, owner=None):
        self.name, self.function, self.owner = name, function, owner

    @property
    def doc(self):
        return f"{self.function.__doc__} {getattr(self.owner, '__doc__', '')}".lower()

    def __call__(self, x, y, key, ledger=None):
        if self.owner is not None:
            fields = required(self.owner, {"statistic", "k_features", "target_bounds"})
            estimator = "key" in inspect.signature(self.owner).parameters
            held = {p.name: public(p.name, (), self.owner.__name__) for p in fields}
            if estimator:
                held |= {"key": SEED if key is None else key, "ledger": ledger and ledger.path}
            settings = self.owner(**held)
            function = getattr(settings, self.function.__name__)
        else:
            function, estimator = self.function, False
        names = [p.name for p in required(function)]
        given = {}
        for p in required(function, {"statistic"}):
            if p.name in DATA:
                given[p.name] = values(p, x, y)
            elif p.name != "key":
                given[p.name] = public(p.name, names, self.name)
        if not estimator:
            given |= {"key": seeded_key(SEED) if key is None else key, "ledger": ledger}
        return function(**given)


def doors():
    """All of them, once each."""
    found = {}
    for room in ROOMS:
        module = import_module(room)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                if takes(thing):
                    found[thing] = Door(name, thing)
            elif inspect.isclass(thing) and not (
                inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)
            ):
                own = "key" in _parameters(thing)
                for part, method in inspect.getmembers(thing, inspect.isfunction):
                    fits = takes(method) or (own and part == "fit")
                    if fits and not part.startswith("_"):
                        found[thing, part] = Door(f"{name}.{part}", method, thing)
    return found.values()


def _parameters(thing):
    try:
        return inspect.signature(thing).parameters
    except ValueError:
        return {}


def takes(function):
    names = set(inspect.signature(function).parameters)
    return "key" in names and bool(names & DATA)


ALL = list(doors())
PRIVATE = [door for door in ALL if "not private" not in door.doc]
# What takes codes has nothing to look at but integers.
OF_CELLS = [door for door in PRIVATE if door.name != "SubsampledTest.release"]
of_cells = pytest.mark.parametrize("door", OF_CELLS, ids=[door.name for door in OF_CELLS])
of_each = pytest.mark.parametrize("door", PRIVATE, ids=[door.name for door in PRIVATE])


def told(found):
    """What a release says, but for its event."""
    for name in ("counts", "mic", "values", "value", "scores_"):
        if hasattr(found, name):
            return repr(np.asarray(getattr(found, name)).tolist())
    if hasattr(found, "release"):
        return told(found.release)
    if hasattr(found, "schema"):
        return found.schema.to_toml()
    if hasattr(found, "found"):
        of_graph = hasattr(found.found, "edges")
        return sorted(found.found.edges) if of_graph else repr(found.found)
    return found.low, found.high


def book(folder, epsilon=1000.0, name="ledger"):
    return LedgerFile.create(folder / name, Budget(epsilon), data_set="any")


def ledger_of(folder, door, epsilon=1000.0):
    """With a delta where the mechanism needs one, which makes do with a smaller epsilon."""
    if "Gauss" in door.name or "Subsampled" in door.name:
        budget = Budget(min(epsilon, 20.0), 0.9 if epsilon > 1 else 1e-9)
        return LedgerFile.create(folder / "ledger", budget, data_set="any")
    return book(folder, epsilon)


def test_the_ones_there_are_were_found():
    names = {door.name for door in PRIVATE}
    assert names >= {
        "MICrLap.release",
        "MICrLap.release_batch",
        "MICeLap.release",
        "QuantileBounds.release",
        "private_bounds",
        "screen",
        "learn_bounds",
        "release_histograms",
        "discover",
        "independence_test",
        "SubsampledTest.release",
        "PrivateMICSelector.fit",
    }
    assert {door.name for door in ALL} - names >= {"post_selection"}


def test_what_is_not_private_takes_no_ledger():
    """Or who reads its text would take it for private."""
    for door in ALL:
        assert ("ledger" in {*_parameters(door.function), *_parameters(door.owner or int)}) == (
            door in PRIVATE
        ), door.name


MIXED = [float, Decimal, Fraction, str, np.int8, np.float64, lambda v: f" {v}e0", np.asarray]


@of_each
def test_no_type_is_inferred_from_values(door):
    expected = told(door(X, Y, None))
    forms = [[MIXED[(i + j) % len(MIXED)](v) for i, v in enumerate(X)] for j in range(2)]
    forms.append([True if v == 1 else v for v in X])
    for x in forms:
        assert told(door(x, Y, None)) == expected


@of_each
def test_no_value_is_refused_or_shown(door):
    odd = [MARKER, float("nan"), float("inf"), -float("inf"), None, 10**400, 2**64, b"x", [1]]
    odd += [datetime.date(1987, 6, 5), "", 1j, np.datetime64("1987-06-05"), object()]
    shown = str(told(door(odd + X[len(odd) :], Y, secret_key())))
    assert MARKER not in shown


@of_each
def test_a_secret_key_draws_fresh_noise_each_time(door, tmp_path):
    key, ledger = secret_key(), ledger_of(tmp_path, door)
    for _ in range(2):
        door(X, Y, key, ledger)
    one, other = ledger.events
    assert one.digest != other.digest
    assert one.label != other.label


class Cell:
    """Notes whoever looks at what it is."""

    seen = 0

    def __getattribute__(self, name):
        Cell.seen += 1
        return object.__getattribute__(self, name)


@of_cells
def test_the_budget_is_checked_before_a_cell_is_looked_at(door, tmp_path):
    ledger, cells = ledger_of(tmp_path, door, 1e-6), [Cell() for _ in range(N)]
    before = Cell.seen
    with pytest.raises(BudgetExceeded):
        door(cells, Y, secret_key(), ledger)
    assert Cell.seen == before
    assert ledger.events == ()


@of_cells
def test_nothing_is_computed_before_the_charge(door, tmp_path, monkeypatch):
    """A charge that fails in the last moment leaves nothing behind."""
    ledger = ledger_of(tmp_path, door)

    def full(self, event):
        raise OSError("no space left")

    monkeypatch.setattr(LedgerFile, "charge", full)
    cells = [Cell() for _ in range(N)]
    before = Cell.seen
    with pytest.raises(OSError, match="no space left"):
        door(cells, Y, secret_key(), ledger)
    assert Cell.seen == before


@of_each
def test_what_is_no_key_is_refused_without_a_value(door):
    with pytest.raises((TypeError, ValueError)) as caught:
        door([MARKER] * N, Y, "not a key")
    assert MARKER not in str(caught.value)


def test_a_fault_put_back_is_found(tmp_path, monkeypatch):
    """Controls: an inferred dtype, a key without a number of its own, cells before the charge."""
    door = next(door for door in PRIVATE if door.name == "MICrLap.release")
    with monkeypatch.context() as patched:
        patched.setattr(
            "dpmic_jax.data.source.cells.numbers_of", lambda cells: np.asarray(list(cells), float)
        )
        patched.setattr(
            "dpmic_jax.data.source.memory.numbers_of", lambda cells: np.asarray(list(cells), float)
        )
        with pytest.raises((TypeError, ValueError)):
            test_no_value_is_refused_or_shown(door)
    with monkeypatch.context() as patched:
        patched.setattr(charged, "run_name", lambda event, key: "one for all")
        with pytest.raises(ValueError, match="was already released with this key"):
            test_a_secret_key_draws_fresh_noise_each_time(door, tmp_path)
        patched.setattr(charged, "claim", lambda key, event: None)
        (tmp_path / "ledger").unlink()
        with pytest.raises(AssertionError):
            test_a_secret_key_draws_fresh_noise_each_time(door, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(LedgerFile, "check", lambda self, event: None)
        patched.setattr(LedgerFile, "charge", lambda self, event: None)
        (tmp_path / "ledger").unlink()
        with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
            test_the_budget_is_checked_before_a_cell_is_looked_at(door, tmp_path)
