"""The tables of `peers.md`, to become a page of the site. A cell not measured says so."""

from pathlib import Path
from typing import Any

from benchmarks.exact_peers import power, speed
from benchmarks.exact_peers.scores import OURS, PEERS, SCORES
from benchmarks.pages import fill, table

# On the site when all of it is measured.
PAGE = Path(__file__).with_name("peers.md")
OF_CELLS = "TIC of few cells: p-value"
_BESIDE = (OF_CELLS, "TIC of MICe", "distance from independence")
_NOT = "not measured"
_SIZES = tuple(map(str, power.SIZES))

Rows = dict[str, Any]


def write(results: Rows) -> None:
    """Fill the tables of `peers.md`."""
    found = results.get("power", {})
    texts = {
        "versions": ", ".join(f"{name} {number}" for name, number in results["versions"].items()),
        "power": _power(found),
        "best": _best(found),
        "functions": _by_name(found),
        "equitability": _equitability(found),
        "speed": _speed(results.get("speed", {})),
        "support": _support(results["support"]),
    }
    for mark, text in texts.items():
        fill(PAGE, mark, text)


def _name(name: str) -> str:
    return f"**{name}**" if name in OURS else name


def _measured(found: Rows, n: str, name: str) -> tuple[Rows, str]:
    """The row of a score at one n, or why there is none."""
    row = found.get(n, {}).get(name, {})
    if "over" in row:
        return {}, f"over {row['over']:.0f} s"
    return row, "" if row else _NOT


def _power(found: Rows) -> str:
    rows = []
    for name in (each for each in SCORES if each not in power.LEFT_OUT):
        cells = []
        for n in _SIZES:
            row, why = _measured(found, n, name)
            if why:
                cells += [why, ""]
                continue
            mean, low, high = row["functions"]
            cells += [f"{mean:.2f} ({low:.2f} to {high:.2f})", f"{row['shapes'][0]:.2f}"]
        rows.append([_name(name), *cells])
    head = [text for n in _SIZES for text in (f"n = {n}: functions", "shapes")]
    return table(["score", *head], rows)


def best_peer(of: Rows, name: str) -> tuple[float, str]:
    """The largest power of a measured peer for one function or shape."""
    known = {peer: of[peer]["by_name"][name] for peer in PEERS if "by_name" in of.get(peer, {})}
    best = max(known, key=lambda peer: known[peer])
    return known[best], best


def _best(found: Rows) -> str:
    rows = []
    for score in _BESIDE:
        for n in _SIZES:
            own, why = _measured(found, n, score)
            if why:
                rows.append([_name(score), n, why, "", ""])
                continue
            of = found[n]
            kinds: dict[bool, list[bool]] = {True: [], False: []}
            for name, value in own["by_name"].items():
                kinds[power.is_function(name)].append(value >= best_peer(of, name)[0])
            peers = sum("by_name" in of.get(peer, {}) for peer in PEERS)
            counts = (f"{sum(kinds[kind])} of {len(kinds[kind])}" for kind in (True, False))
            rows.append([_name(score), n, *counts, f"{peers} of {len(PEERS)}"])
    return table(["score", "n", "functions", "shapes", "peers measured"], rows)


def _by_name(found: Rows) -> str:
    sizes = [n for n in _SIZES if not _measured(found, n, OF_CELLS)[1]]
    rows = []
    for name in found[sizes[0]][OF_CELLS]["by_name"]:
        cells = []
        for n in sizes:
            value, peer = best_peer(found[n], name)
            for score in (OF_CELLS, "MICe"):
                row, why = _measured(found, n, score)
                cells.append(why or f"{row['by_name'][name]:.2f}")
            cells.append(f"{value:.2f} {peer}")
        rows.append([name, *cells])
    head = [text for n in sizes for text in (f"n = {n}: TIC of few cells", "MICe", "best peer")]
    return table(["", *head], rows)


def _equitability(found: Rows) -> str:
    sizes, keys = _SIZES[1:], ("mean_interval", "worst_interval", "spread")
    rows = []
    for name in (each for each in SCORES if each not in power.LEFT_OUT):
        cells = []
        for n in sizes:
            row, why = _measured(found, n, name)
            cells += [why, "", ""] if why else [f"{row['equitability'][key]:.2f}" for key in keys]
        rows.append([_name(name), *cells])
    head = [t for n in sizes for t in (f"n = {n}: mean interval", "worst", "spread")]
    return table(["score", *head], rows)


def _speed(found: Rows) -> str:
    rows = []
    for name in (each for each in SCORES if each not in speed.LEFT_OUT):
        cells = []
        for case in speed.CASES:
            row = found.get(name, {}).get(case)
            if row is None:
                cells.append(_NOT)
            elif "over" in row:
                cells.append(f"over {row['over']:.0f} s")
            elif "failed" in row:
                cells.append(row["failed"])
            else:
                first = f", first {_seconds(row['first'])}" if name in OURS else ""
                cells.append(f"{_seconds(row['later'])}{first}; {row['memory_mb']:.0f} MB")
        rows.append([_name(name), *cells])
    return table(["score", *speed.CASES], rows)


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def _support(found: Rows) -> str:
    kinds = list(next(iter(found.values())))
    rows = [[f"**{p}**" if "dpmic" in p else p, *row.values()] for p, row in found.items()]
    return table(["package", *kinds], rows)
