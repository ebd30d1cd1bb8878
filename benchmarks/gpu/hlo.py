"""Kernels of an optimised GPU module, each with its launches, bytes, operations and updates.

What XLA prints after its last pass (`compiled.as_text()`) has one instruction for each kernel that
is launched; a loop launches those of its body as often as it turns. XLA states how often that is
where it knows; where it does not, the host has to be asked at every turn.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

BYTES = {"pred": 1, "token": 0} | {
    f"{kind}{bits}": bits // 8
    for kind, sizes in {
        "s": (8, 16, 32, 64),
        "u": (8, 16, 32, 64),
        "f": (16, 32, 64),
        "bf": (16,),
    }.items()
    for bits in sizes
}
SECTOR = 32  # bytes that a memory moves, if only one of them is wanted
_SHAPE = re.compile(rf"({'|'.join(BYTES)})\[([0-9,]*)\]")
# What computes an element each; others move it.
ARITHMETIC = frozenset(
    """
    add subtract multiply divide maximum minimum and or xor not negate abs compare select clamp
    shift-left shift-right-logical shift-right-arithmetic convert log exponential power sqrt
    remainder
    """.split()  # noqa: SIM905 - a table
)
# What launches nothing.
FREE = frozenset(
    """
    parameter constant tuple get-tuple-element bitcast after-all add-dependency partition-id
    replica-id opt-barrier
    """.split()  # noqa: SIM905
)


class Instruction(NamedTuple):
    """One line of a computation."""

    name: str
    shape: str
    operation: str
    operands: tuple[str, ...]
    rest: str
    is_root: bool

    def called(self, attribute: str) -> str:
        """The computation that an attribute names."""
        return re.search(rf"{attribute}=%?([\w.\-]+)", self.rest)[1]


class Kernel(NamedTuple):
    """What is launched `launches` times.

    Attributes:
      name: of the instruction.
      kind: of a fusion what it is for, else the operation.
      launches: how often, where loops turn.
      bytes: that one launch reads and writes, at least.
      operations: of one launch, one for each element.
      updates: of a scatter.
    """

    name: str
    kind: str
    launches: int
    bytes: int
    operations: int
    updates: int


class Module:
    """An optimised module."""

    def __init__(self, text: str):
        self.computations, self._entry = _parsed(text)
        self.unknown: list[str] = []  # loops that turn as often as data says

    def kernels(self, computation: str = "", times: int = 1) -> Iterator[Kernel]:
        """All kernels, with loops unrolled."""
        body = self.computations[computation or self._entry]
        shapes = {one.name: one.shape for one in body}
        for one in body:
            if one.operation in FREE:
                continue
            if one.operation == "while":
                yield from self._loop(one, times)
            elif one.operation in ("call", "async-start"):
                yield from self.kernels(one.called("(?:to_apply|calls)"), times)
            elif one.operation == "fusion":
                yield self._fusion(one, times)
            elif not one.operation.endswith("-done"):
                moved = _bytes(one.shape) + sum(_bytes(shapes[name]) for name in one.operands)
                target = re.search(r'custom_call_target="([^"]+)"', one.rest)
                kind = target[1] if target else one.operation
                yield Kernel(one.name, kind, times, moved, _elements(one.shape), 0)

    def _loop(self, one: Instruction, times: int) -> Iterator[Kernel]:
        known = re.search(r'known_trip_count":\{"n":"(\d+)"', one.rest)
        if not known:
            self.unknown.append(one.name)
            yield from self.kernels(one.called("condition"), times)
        yield from self.kernels(one.called("body"), times * (int(known[1]) if known else 1))

    def _fusion(self, one: Instruction, times: int) -> Kernel:
        body = self.computations[one.called("calls")]
        operations = {each.operation for each in body}
        kind = next(
            (kind for kind in ("scatter", "reduce-window", "reduce") if kind in operations), "loop"
        )
        return Kernel(one.name, kind, times, _moved(body), self._operations(body), _updates(body))

    def _operations(self, body: list[Instruction]) -> int:
        shapes, total = {one.name: one.shape for one in body}, 0
        for one in body:
            if one.operation in ARITHMETIC:
                total += _elements(one.shape)
            elif one.operation == "reduce":
                total += _elements(shapes[one.operands[0]])
            elif one.operation == "reduce-window":
                window = re.search(r"size=([\dx]+)", one.rest)[1]
                total += _elements(one.shape) * math.prod(map(int, window.split("x")))
            elif one.operation == "scatter":
                total += _elements(shapes[one.operands[-1]])
            elif one.operation == "fusion":
                total += self._operations(self.computations[one.called("calls")])
        return total


def _moved(body: list[Instruction]) -> int:
    """Bytes that a fusion reads and writes: of what it slices or gathers from only that."""
    by_name, users = {one.name: one for one in body}, defaultdict(list)
    for one in body:
        for place, name in enumerate(one.operands):
            users[name].append((one, place))

    def read(name: str, whole: int) -> int:
        total = 0
        for user, place in users[name]:
            if user.operation in ("dynamic-slice", "slice") and place == 0:
                total += _bytes(user.shape)
            elif user.operation == "gather" and place == 0:
                slices = re.search(r"slice_sizes=\{([\d,]*)\}", user.rest)[1].split(",")
                once = math.prod(map(int, slices)) * _bytes(user.shape) // _elements(user.shape)
                total += _elements(user.shape) // math.prod(map(int, slices)) * max(once, SECTOR)
            elif user.operation in ("dynamic-update-slice", "scatter") and place == 0:
                if user not in ends:  # what is written to is not read
                    return whole
            elif user.operation == "tuple":
                pass
            elif user.operation in ("bitcast", "reshape"):
                total += read(user.name, whole)
            else:
                return whole
        return min(total, whole)

    def written(one: Instruction) -> int:
        if one.operation == "dynamic-update-slice":
            return _bytes(by_name[one.operands[1]].shape)
        if one.operation == "scatter":
            return 2 * _bytes(by_name[one.operands[-1]].shape)
        return _bytes(one.shape)

    def end(one: Instruction) -> Instruction:
        moves = one.operation in ("bitcast", "reshape") and one.operands[0] in by_name
        return end(by_name[one.operands[0]]) if moves else one

    root = next(one for one in body if one.is_root)
    roots = [by_name[name] for name in root.operands] if root.operation == "tuple" else [root]
    ends = [end(one) for one in roots]
    inputs = (one for one in body if one.operation == "parameter")
    return sum(map(written, ends)) + sum(read(one.name, _bytes(one.shape)) for one in inputs)


def _updates(body: list[Instruction]) -> int:
    shapes = {one.name: one.shape for one in body}
    scatters = (one for one in body if one.operation == "scatter")
    return sum(_elements(shapes[one.operands[-1]]) for one in scatters)


def _elements(shape: str) -> int:
    return sum(math.prod(int(axis) for axis in axes.split(",") if axis) for _, axes in _all(shape))


def _bytes(shape: str) -> int:
    return sum(BYTES[kind] * _elements(f"{kind}[{axes}]") for kind, axes in _all(shape))


def _all(shape: str) -> list[tuple[str, str]]:
    return _SHAPE.findall(shape)


def _parsed(text: str) -> tuple[Mapping[str, list[Instruction]], str]:
    computations: dict[str, list[Instruction]] = {}
    entry = current = ""
    for line in text.splitlines():
        if begin := re.match(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$", line):
            current = begin[2]
            computations[current] = []
            entry = current if begin[1] else entry
        elif found := re.match(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$", line):
            computations[current].append(_instruction(bool(found[1]), found[2], found[3]))
    return computations, entry


def _instruction(is_root: bool, name: str, text: str) -> Instruction:
    text = re.sub(r"/\*index=\d+\*/", "", text)
    end = _closing(text) + 1 if text.startswith("(") else text.index(" ")
    shape, text = text[:end], text[end + 1 :]
    operation, text = text.split("(", 1)
    end = _closing("(" + text) - 1
    named = () if operation in ("parameter", "constant") else re.findall(r"%([\w.\-]+)", text[:end])
    return Instruction(name, shape, operation, tuple(named), text[end:], is_root)


def _closing(text: str) -> int:
    """Where the bracket closes that the text begins with."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return place
    raise ValueError("expected a closing bracket")
