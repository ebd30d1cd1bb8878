"""How a screen is planned: of all ways to answer a query, the one that finds most.

Neighbouring relation: one person's records are replaced by others; n, the names of the columns and
their bounds are public. One person with r records moves the distance from independence of a pair by
at most r / n (`mic.distance`), and its MICr by at most Delta (`mechanisms.sensitivity`). All of it
holds for nominal columns, too (docs/nominal.md).

- Pairs are told apart by their distances, and shown with a MIC. If the budget affords a MICr that
  can be read, MICr gets as much of it as makes what is found larger by at most a quarter; else
  distances get all of it, and MIC is estimated from them (`calibration`).
- Values of d pairs. One person changes all of them at once, so one cube of noise makes the
  distances epsilon-DP together, and another one MICr (`dp.noise.cube`). With a delta, Gaussian
  noise for rho / d each composes to rho.
- Top k, and above a threshold. Pairs are selected by noisy distances, by one-shot noisy top-k, by
  the exponential mechanism for a rho, or by a sparse vector (`dp.selection`), and their values get
  the rest of the budget; or the values of all pairs are released, and sorted.

By basic composition, or the addition of rhos, the parts add up to the whole, even though later ones
are chosen by the output of earlier ones. Of all these ways the plan has the one that finds the
smallest distance, by public numbers only. The whole screen is charged as one event.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpmic_jax.data.limits import Limits
from dpmic_jax.dp.accounting.events import Event, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.noise.lattice import LatticeCube
from dpmic_jax.mechanisms import sensitivity as sensitivities
from dpmic_jax.mechanisms.additive_noise import MICrCube
from dpmic_jax.mechanisms.release import event_settings
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic import distance
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.kinds import Kinds, NominalColumns, kinds_of, nominal_columns
from dpmic_jax.screening.noises import Noises, Share, choice_of, guarantee_of, value_noise
from dpmic_jax.screening.plan import Plan, Workload, described, pairs_of
from dpmic_jax.screening.power import LARGEST, SURE, smallest_found
from dpmic_jax.screening.queries import Above, Ask, Names, TopK, canonical

Rule = Callable[[int, float], MICr]

# The numbers of cells that tuning tried, up to 150. Few settings mean few compiled programs.
_CELLS = (4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150)
_FINEST = 5

# Of the budget of values, for distances; the rest is for MICr.
_FOR_DISTANCES = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2))
# How much larger what is found may get for the sake of MICr.
_AT_MOST_LARGER = 1.25
# MICr is not released if the noise on it exceeds this in 1 of 20 draws: it would tell nothing.
WIDEST = 0.15
# Of the budget, for a selection.
_FOR_SELECTION = (Fraction(1, 2), Fraction(7, 10), Fraction(4, 5))


def default_screen_statistic(n: int, epsilon: float) -> MICr:
    """The cheap tuned default for n records and an epsilon per pair, rounded up to a few settings.

    B is one of 16 numbers of cells up to 150, and c an integer up to 5, so that tables share
    compiled programs. B is rounded up because a coarser statistic would be less accurate. More
    cells and a larger c would detect more only where the noise is small, which it rarely is in a
    screen of many pairs, and would take more time and memory than everything else
    (docs/running.md).
    """
    cheap = cheap_defaults(n, epsilon)
    wanted = min(cells(cheap.B, n), _CELLS[-1])
    B = next(rung for rung in _CELLS if rung >= wanted)
    return replace(cheap, B=B, c=min(math.ceil(cheap.c), _FINEST))


def plan(
    *,
    names: Names,
    n: int,
    ask: Ask,
    epsilon: float,
    delta: float,
    statistic: MICr | Rule,
    relation: ReplaceOne,
    relative: Sequence[str] = (),
    bounds: Sequence[Limits] = (),
    label: str = "",
) -> Plan:
    """Plan a screen without its data, or raise an error if it is impossible.

    The limits of columns, in the order of their names, may be left out if none is nominal.
    """
    if not isinstance(ask, Ask):
        raise TypeError(
            "expected ask to be AllPairs(), Against(column), Between(columns_a, columns_b), "
            f"TopK(k) or Above(threshold, at_most), got {ask!r}"
        )
    if n > distance.MOST_RECORDS:
        raise ValueError(f"expected at most {distance.MOST_RECORDS} records, got {n}")
    budget = Budget(epsilon, delta, relation)
    pairs = pairs_of(ask, names)
    _check_relative(relative, names, {names[column] for column in set(pairs.ravel().tolist())})
    # Plain strings: the noise depends on the text of the event.
    relative = tuple(names[names.index(name)] for name in relative)
    bounds = tuple(bounds) or ((0.0, 1.0),) * len(names)
    own = np.array([[names.index(name)] * 2 for name in relative], np.int64).reshape(-1, 2)
    kinds = kinds_of(names, bounds, np.vstack([pairs, own]))  # which may be a refusal
    records = relation.records
    candidates = kinds_of(names, bounds, pairs)
    size = Workload(ask, n, len(pairs), len(relative), records, candidates)
    ways = _ways(size, budget)
    found = [size.smallest(way) for way in ways]
    best = min(range(len(ways)), key=found.__getitem__)
    chosen = _with_micr(ways[best], found[best], size, budget, statistic, kinds)
    # The best of each name; that of the best way itself stays if the chosen one has MICr too.
    ranked = sorted(zip(found, ways, strict=True), key=lambda each: -each[0])
    kept = {described(way): each for each, way in ranked}
    kept.pop(described(chosen), None)
    event = Event(
        mechanism=f"screen: {type(ask).__name__}",
        guarantee=chosen.guarantee,
        relation=relation,
        n=n,
        sensitivity=_sensitivity(size),
        settings=(
            *_settings(chosen, ask, n, relative),
            *_of_nominal(nominal_columns(names, bounds, pairs)),
        ),
        label=label,
    )
    return Plan(
        names=names,
        n=n,
        ask=ask,
        epsilon=budget.epsilon,
        delta=budget.delta,
        relative=relative,
        noises=chosen,
        others=tuple(kept.items()),
        event=event,
        bounds=bounds,
    )


def _check_relative(relative: Sequence[str], names: Names, paired: set[str]) -> None:
    if isinstance(relative, str) or len(set(relative)) < len(relative):
        raise ValueError("expected relative to be a list of column names, each once")
    for name in relative:
        if name not in names:
            raise ValueError(f"relative names an unknown column {name!r}; use one of the table")
        if name not in paired:
            raise ValueError(f"relative names column {name!r}, which is in no pair of the query")


def check_not_lost(plan: Plan) -> None:
    """Refuse a plan that finds no dependence, however strong, by public numbers only.

    A selection tells something even if no pair is called dependent, and so do values of MICr.
    """
    chance, fewer = 0.0, "a smaller k"
    if plan.choice is not None:
        level = None
    elif isinstance(plan.ask, TopK | Above):
        level = plan.distances.largest_quantile(1 - SURE, plan.noised)
    elif plan.values is not None:
        return
    else:
        level, fewer = plan.dependence_level, "fewer pairs, or TopK(k) of them"
        chance = plan.workload.chance_level
    # Without the threshold of an `Above`, which may be as high as users like.
    smallest = smallest_found(plan.noises, level, len(plan.pairs), 0.0, 0.0)
    if smallest <= LARGEST:
        return
    if chance < LARGEST:
        times = (smallest - chance) / (LARGEST - chance)
        why, remedy = "noise would hide every dependence", f"{times:.2g} times the epsilon or the"
        remedy = f"about {remedy} records, or {fewer}"
    else:
        # Distances of very many records are computed in few steps.
        each = plan.event.relation.records
        what = f"{plan.n} records" if each == 1 else f"{plan.n // each} persons with {each} records"
        why = f"independent pairs of {what} may be as far apart by chance as any"
        remedy = "more persons" if each > 1 else "more records"
        if plan.n >= 10**6:
            remedy = "a sample of a few million records"
    raise ValueError(
        f"{why}: of {plan.ask}, even a pair with MIC = 1 would not be found with 95 % probability. "
        f"Use {remedy}; `dpmic plan` and preview() compare them. Pass force=True (--force) to "
        "spend epsilon all the same"
    )


def _sensitivity(size: Workload) -> Fraction:
    """The most that one person moves a distance."""
    return min(Fraction(1), Fraction(size.records, size.n))


def _ways(size: Workload, budget: Budget) -> list[Noises]:
    """The ways to answer a query that spend all on distances, and on selecting by them."""
    ways, problems = [], []
    for share, fraction in _shares(size.ask, budget):
        try:
            ways.append(_way(share, fraction, size, budget))
        except ValueError as problem:  # more noise than can be drawn, or less
            problems.append(problem)
    if not ways:
        raise problems[0]
    return ways


def _shares(ask: Ask, budget: Budget) -> Iterator[tuple[Share, Fraction | None]]:
    """What may be spent, and the fraction of it for a selection; None to release all values."""
    pure = Share(epsilon=as_fraction(budget.epsilon))
    selects = isinstance(ask, TopK | Above)
    if not selects or ask.selection_fraction is None:
        yield pure, None
        if budget.mu:
            yield Share(mu_squared=as_fraction(budget.mu) ** 2), None
    if selects:
        yield from ((pure, fraction) for fraction in _fractions(ask))
    if isinstance(ask, TopK) and budget.rho:  # a sparse vector has no version for a rho
        rho = Share(rho=as_fraction(budget.rho))
        yield from ((rho, fraction) for fraction in _fractions(ask))


def _way(share: Share, fraction: Fraction | None, size: Workload, budget: Budget) -> Noises:
    ask, choice, sensitivity = size.ask, None, _sensitivity(size)
    if fraction is not None and isinstance(ask, TopK | Above):
        choice = choice_of(ask, share.part(fraction), budget, sensitivity)
        share = share.part(1 - fraction)
    values = value_noise(share, sensitivity, size.noised(choice))
    return _costed(Noises(values, choice=choice), size, budget)


def _fractions(ask: TopK | Above) -> tuple[Fraction, ...]:
    if ask.selection_fraction is None:
        return _FOR_SELECTION
    return (as_fraction(ask.selection_fraction),)


def _costed(noises: Noises, size: Workload, budget: Budget) -> Noises:
    guarantee = guarantee_of(noises, budget, size.noised(noises.choice))
    return noises._replace(guarantee=guarantee)


def _with_micr(
    noises: Noises,
    found: float,
    size: Workload,
    budget: Budget,
    statistic: MICr | Rule,
    kinds: Kinds,
) -> Noises:
    """The same with MICr, for a part of the budget of the values, if the budget affords it."""
    count = size.noised(noises.choice)
    share = _spent(noises, count)
    for fraction in _FOR_DISTANCES:
        distances = value_noise(share.part(fraction), _sensitivity(size), count)
        way = noises._replace(distances=distances)
        if size.smallest(way) > _AT_MOST_LARGER * found:
            continue
        rest = share.part(1 - fraction)
        resolved = _resolved(statistic, size.n, rest, count)
        moved = sensitivities.of_person(resolved, size.n, size.records, categories=kinds.categories)
        values = value_noise(rest, moved, count)
        if size.half_width(values, noises.choice) > WIDEST:
            break
        with suppress(ValueError):  # too many inexact draws
            return _costed(way._replace(values=values, statistic=resolved), size, budget)
    return noises


def _spent(noises: Noises, count: int) -> Share:
    """What the noise on `count` distances costs."""
    noise = noises.distances
    if isinstance(noise, LatticeCube):
        return Share(epsilon=Fraction(noise.epsilon))
    if noises.choice:
        return Share(rho=noise.certificate().rho * count)
    return Share(mu_squared=noise.joint_certificate(count).mu_squared)


def _resolved(statistic: MICr | Rule, n: int, share: Share, count: int) -> MICr:
    # Floats are enough here: they only choose the default statistic.
    epsilon = MICrCube(epsilon=float(share.epsilon)).rule_epsilon(count) if share.epsilon else 0.0
    epsilon = epsilon or 2 * math.sqrt((share.rho or share.mu_squared / 2) / count)
    found = statistic if isinstance(statistic, MICr) else statistic(n, epsilon)
    if not isinstance(found, MICr):
        raise TypeError(f"expected statistic to be a MICr or a rule that gives one, got {found!r}")
    # 5 and 5.0 are written alike, because the noise depends on the text of the event.
    c = int(found.c) if float(found.c).is_integer() else found.c
    return replace(found, B=cells(found.B, n), c=c)


def _settings(noises: Noises, ask: Ask, n: int, relative: Names) -> tuple[tuple[str, str], ...]:
    """What noise depends on: a radius must not serve more values than it was drawn for."""
    pairs = noises.distances.points if isinstance(noises.distances, LatticeCube) else 0
    lattices = [each.lattice.bits for each in (noises.distances, noises.values) if each]
    return (
        *(event_settings(noises.statistic, n) if noises.statistic else ()),
        ("ask", canonical(ask)),
        ("choice", type(noises.choice.selector).__name__ if noises.choice else "none"),
        ("distance", f"{distance.PARTS} parts, {distance.steps_of(n)} steps"),
        ("noise", _noise_text(noises)),
        ("values", str(pairs)),
        *([("relative", repr(relative))] if relative else []),
        ("lattice", " ".join(map(str, lattices))),
    )


def _of_nominal(columns: NominalColumns) -> tuple[tuple[str, str], ...]:
    """What of nominal columns decides what is called dependent."""
    return (("nominal", repr(columns)),) if columns else ()


def _noise_text(noises: Noises) -> str:
    """The noise with its parameters, in full: they decide what is drawn."""
    return "; ".join(
        f"{type(each).__name__}({each.epsilon if isinstance(each, LatticeCube) else each.sigma})"
        for each in (noises.distances, noises.values)
        if each
    )
