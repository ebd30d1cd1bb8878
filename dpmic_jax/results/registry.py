"""A screen as an entry of a public registry of differential-privacy deployments."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, Event, GaussianDP
from dpmic_jax.dp.conversions import privacy_cost
from dpmic_jax.dp.ledger.file import LedgerFile
from dpmic_jax.results import registry_texts as texts
from dpmic_jax.results.power_curve import PowerCurve
from dpmic_jax.results.statement import Statement, neighbours_sentence

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

VERSION = 1  # of the entry
_BETA = 0.025  # of max-information, half of a later test's 5 %
_DEFINITIONS = {ZCDP: "zCDP", GaussianDP: "Gaussian DP", ApproximateDP: "(epsilon, delta)-DP"}

Section = dict[str, Any]
Answers = Mapping[str, Mapping[str, Any]]


def registry_entry(
    result: "ScreenResult",
    answers: Answers,
    ledger: LedgerFile | None,
    curve: PowerCurve | None,
) -> dict[str, Any]:
    """The entry; arguments as in `ScreenResult.to_registry`."""
    statement = result.statement
    event = Event.from_json(statement.event)
    known: dict[str, Section] = {
        "deployment": {"product": texts.PRODUCT, "documentation": statement.text()},
        "data": {
            "public_inputs": texts.INPUTS,
            "records": statement.n,
            "columns": list(result.names),
        },
        "guarantee": _guarantee(statement, event),
        "mechanisms": _mechanisms(result, event),
        "accounting": _accounting(statement, event, ledger),
        "implementation": {
            "library": f"dpmic_jax {statement.version}",
            "key": texts.KEY if statement.key_is_secret else texts.SEEDED_KEY,
            "tests_and_audits": texts.AUDITS,
            "side_channels": texts.SIDE_CHANNELS,
            "failures": texts.FAILURE,
        },
        "parameters": {"utility": _utility(result, curve), "bias": texts.BIAS},
        "hazards": dict(texts.HAZARDS),
    }
    _check(answers, known)
    unanswered = []
    for section, names in texts.ASKED.items():
        for name in names:
            answer = answers.get(section, {}).get(name)
            known[section][name] = answer
            if answer is None:
                unanswered.append(f"{section}.{name}")
    return {
        "registry_version": VERSION,
        "fields": texts.SOURCES,
        **known,
        "unanswered": unanswered,
        "statement": statement.to_dict(),
    }


def _check(answers: Answers, known: Mapping[str, Section]) -> None:
    """Refuse answers to what was not asked, or is known from the release."""
    for section, given in answers.items():
        if section not in texts.ASKED or not isinstance(given, Mapping):
            raise ValueError(
                f"expected answers by section ({', '.join(texts.ASKED)}), got {section!r}"
            )
        for name in given:
            if name in known[section]:
                raise ValueError(f"{section}.{name} is known from the release: leave it out")
            if name not in texts.ASKED[section]:
                asked = ", ".join(texts.ASKED[section])
                raise ValueError(f"expected answers in {section} to {asked}, got {name!r}")


def _guarantee(statement: Statement, event: Event) -> Section:
    kind = event.guarantee
    records = event.relation.records
    cost = privacy_cost([event], delta=statement.delta, beta=_BETA)
    enforced = (
        f"a promise of the curator: at most {records} record(s) a person, not checked"
        if statement.persons is None
        else f"by ids: each of {statement.persons} persons counts with exactly {records} record(s)"
    )
    return {
        "definition": _DEFINITIONS.get(type(kind), "epsilon-DP"),
        "parameters": {name: getattr(kind, name) for name in type(kind).__match_args__},
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "theorem": statement.guarantee,
        "in_words": neighbours_sentence(statement.relation, statement.n, statement.persons),
        "conversions": {
            "rho": cost.rho,
            "bits_about_one_person": cost.nats / math.log(2),
            "max_information_bits": cost.bits,
            "max_information_beta": cost.beta,
        },
        "neighboring_relation": texts.NEIGHBOURS,
        "unit_of_privacy": {
            "unit": "a person",
            "records_per_person": records,
            "enforced": enforced,
        },
        "model": texts.MODEL,
        "interactive": texts.INTERACTIVE,
        "not_covered": texts.NOT_COVERED,
    }


def _mechanisms(result: "ScreenResult", event: Event) -> Section:
    statement, settings = result.statement, dict(event.settings)
    statistics = [
        {
            "statistic": "distance from independence of a pair, in total variation",
            "sensitivity": str(event.sensitivity),
            "proof": "docs/distance.md",
            "noise_sd": result.distance_noise_sd,
        }
    ]
    if statement.micr is not None:
        statistics.append(
            {
                "statistic": f"MICr with B = {statement.micr.B}, c = {statement.micr.c:g}, "
                f"sizes = {statement.micr.sizes}",
                "sensitivity": repr(statement.micr.sensitivity),
                "proof": "docs/sensitivity.md",
                "noise_sd": result.noise_sd,
            }
        )
    return {
        "name": statement.mechanism,
        "statistics": statistics,
        "selection": settings.get("choice", "none"),
        "noise": settings.get("noise"),
        "sampler": texts.SAMPLER,
        "post_processing": texts.POST_PROCESSING,
    }


def _accounting(statement: Statement, event: Event, ledger: LedgerFile | None) -> Section:
    total = None
    if ledger is not None:
        spent, budget = ledger.spent, ledger.budget
        total = {
            "spent": {"epsilon": spent.epsilon, "delta": spent.delta, "rho": spent.rho},
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
            "charges": len(ledger.charges),
        }
    return {
        "composition": "within the screen as the theorem says; over releases by the ledger, whose "
        "total holds for adaptively chosen releases",
        "ledger_entry": statement.ledger,
        "event_digest": event.digest.hex(),
        "total": total,
        "not_counted": "releases and exact values that were computed without the ledger",
    }


def _utility(result: "ScreenResult", curve: PowerCurve | None) -> Section:
    planned = None
    if curve is not None and math.isfinite(curve.own.mic):
        planned = {
            "smallest_mic": curve.own.mic,
            "smallest_distance": curve.own.distance,
            "found_with_probability": 0.95,
        }
    return {
        "planned": planned,
        "candidate_pairs": result.candidates,
        "released_pairs": len(result.mic),
        "dependent_pairs": int(result.dependent.sum()),
        "dependence_threshold": result.dependence_threshold,
        "limits": result.to_dict()["limits"],
    }
