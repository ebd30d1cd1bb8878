"""The private values of a screen, and what is derived from them at no further privacy cost."""

import json
import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Int

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.conversions import PrivacyCost, privacy_cost
from dpmic_jax.dp.ledger.file import LedgerFile
from dpmic_jax.results import export, html, registry
from dpmic_jax.results import text as show
from dpmic_jax.results.histograms import Histograms
from dpmic_jax.results.plots import Plots, Scores, square
from dpmic_jax.results.power_curve import PowerCurve
from dpmic_jax.results.relative import RelativeDistances, relative_distances
from dpmic_jax.results.statement import Statement
from dpmic_jax.results.validation import check_not_earlier, checked_names, checked_rows

_SCHEMA = {
    "x": nw.String,
    "y": nw.String,
    "mic": nw.Float64,
    "lower": nw.Float64,
    "upper": nw.Float64,
    "distance": nw.Float64,
    "dependent": nw.Boolean,
    "decided_by": nw.String,
}
# Only in results that have distances of columns from themselves.
_RELATIVE = ("relative", "relative_lower", "relative_upper")
# Stored; the others follow from them.
_STORED = ("mic", "lower", "upper", "distance")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScreenResult:
    """The released pairs of a screen, the strongest first, with their privacy statement.

    Everything here is private, and so is everything that is computed from it (post-processing). It
    keeps no reference to the table. Rows that are called dependent come first, then the others,
    each by falling `mic`, then by position. Two results are equal if all attributes but `backend`
    are.

    Attributes:
      names: names of all columns of the table.
      pairs: positions in `names` of x and y of each released pair.
      mic: MIC of each pair, in [0, 1]: MICr with noise, or an estimate from the distance.
      lower, upper: 95 % limits of each MIC. With `noise_sd` they account for the noise only: they
        cover the value of MICr on these records, not sampling. Limits of an estimate cover the MIC
        of the distribution. Each holds for itself.
      distance: the released distance from independence of each pair, which decides whether it is
        called dependent.
      noise_sd: standard deviation of the noise in each MICr, before clipping to [0, 1]; None if MIC
        is estimated.
      distance_noise_sd: that of the noise in each distance.
      dependence_threshold: a distance above this is called dependent. If all `candidates` pairs are
        independent, any of them exceeds it with a probability of at most 5 %. This holds for
        records of independent persons from one distribution (`screening.independence`), not for
        time series, or several sites whose averages differ.
      own: distances from themselves of the columns that were asked for, by name (`relative`).
      own_half_width: noise on a distance and two of these is within this with 95 % probability.
      candidates: number of pairs that were considered.
      ask: the query, such as "all pairs" or "top 20".
      statement: the privacy statement.
      backend: the library of the caller's data frame, as in `backend_of`; None if the table was
        not a data frame.
    """

    names: tuple[str, ...]
    pairs: Int[np.ndarray, "rows 2"]
    mic: Float[np.ndarray, " rows"]
    lower: Float[np.ndarray, " rows"]
    upper: Float[np.ndarray, " rows"]
    distance: Float[np.ndarray, " rows"]
    noise_sd: float | None
    distance_noise_sd: float
    dependence_threshold: float
    candidates: int
    ask: str
    statement: Statement
    own: Mapping[str, float] = field(default_factory=dict)
    own_half_width: float = 0.0
    backend: str | None = None

    def __post_init__(self):
        names = checked_names(self.names)
        values = {name: np.asarray(getattr(self, name), np.float64) for name in _STORED}
        pairs = checked_rows(self.pairs, values, len(names))
        for name in ("noise_sd", "distance_noise_sd", "dependence_threshold", "own_half_width"):
            if name == "noise_sd" and self.noise_sd is None:
                continue
            value = float(getattr(self, name))
            if not 0 <= value < math.inf:
                raise ValueError(f"expected 0 <= {name} < inf, got {value}")
            object.__setattr__(self, name, value)
        if not isinstance(self.ask, str) or not self.ask.isprintable():
            raise ValueError("expected ask to be a string of printable characters")
        if not isinstance(self.statement, Statement):
            raise TypeError("expected statement=Statement(...)")
        if (self.noise_sd is None) != (self.statement.micr is None):
            raise ValueError("expected noise_sd=None just if the statement has micr=None")
        candidates = operator.index(self.candidates)
        if candidates < len(pairs):
            raise ValueError(f"expected candidates >= {len(pairs)}, the pairs, got {candidates}")
        own = {name: float(value) for name, value in self.own.items()}
        if not set(own) <= set(names) or not all(0 <= value <= 1 for value in own.values()):
            raise ValueError("expected own to have distances in [0, 1], by names of columns")
        # lexsort sorts by its last key first.
        independent = values["distance"] <= self.dependence_threshold
        order = np.lexsort((*pairs.T[::-1], -values["mic"], independent))
        fixed = {name: value[order] for name, value in {"pairs": pairs, **values}.items()}
        for array in fixed.values():
            array.flags.writeable = False
        plain = {"names": names, "candidates": candidates, "own": own}
        for name, value in {**fixed, **plain}.items():
            object.__setattr__(self, name, value)

    @property
    def dependent(self) -> Bool[np.ndarray, " rows"]:
        """Which pairs are called dependent: their distances are above the threshold."""
        return self.distance > self.dependence_threshold

    @property
    def relative(self) -> RelativeDistances:
        """Distances over the largest that the columns in `own` allow, with 95 % limits.

        They account for the noise only. NaN for pairs of which no column is in `own`.
        """
        known = np.array([self.own.get(name, np.nan) for name in self.names])
        x, y = known[self.pairs.T]
        return relative_distances(self.distance, x, y, self.own_half_width)

    @property
    def matrix(self) -> Float[np.ndarray, "names names"]:
        """MIC of the released pairs, symmetric, in the order of `names`; NaN for the others.

        The diagonal is 1 by convention: no column was measured against itself.
        """
        return square(self.pairs, self.mic, len(self.names))

    @property
    def plot(self) -> Plots:
        """Figures: `.plot.heatmap()`, `.plot.clustermap()`, `.plot.network(threshold)`."""
        return Plots(self.scores)

    @property
    def scores(self) -> Scores:
        """What figures and the report show."""
        statement = self.statement
        return Scores(
            names=self.names,
            pairs=self.pairs,
            values=self.mic,
            candidates=self.candidates,
            label="private MIC",
            title=f"{statement.cost}, n = {statement.n}",
            warning="" if statement.key_is_secret else statement.key,
        )

    def privacy_cost(self, *, delta: float, beta: float) -> PrivacyCost:
        """The cost of the screen in several units of privacy, and in nats about one person.

        Args:
          delta: the delta of (epsilon, delta)-DP.
          beta: the beta of max-information; half of a later test's alpha is a good choice.
        """
        return privacy_cost([Event.from_json(self.statement.event)], delta=delta, beta=beta)

    def top(self, k: int) -> "ScreenResult":
        """The k strongest released pairs.

        They are selected by the noisy values, so their noise is biased upwards and their limits
        cover less than 95 %. A screen that asks for the top pairs draws fresh noise for the
        pairs that it selected.
        """
        if operator.index(k) < 1:
            raise ValueError(f"expected k >= 1, got {k}")
        if k >= len(self.mic):
            return self
        ask = f"{self.ask}, strongest {k} shown"
        rows = {name: getattr(self, name)[:k] for name in ("pairs", *_STORED)}
        return replace(self, **rows, ask=ask)

    def ranked(self) -> list[tuple[str, str, float]]:
        """Every released pair (x, y, mic), the strongest first."""
        return [
            (self.names[i], self.names[j], mic)
            for (i, j), mic in zip(self.pairs.tolist(), self.mic.tolist(), strict=True)
        ]

    def columns(self) -> dict[str, Any]:
        """The columns of `to_frame`: lists of names, arrays of numbers."""
        x, y = ([self.names[i] for i in side] for side in self.pairs.T.tolist())
        return {
            "x": x,
            "y": y,
            **{name: getattr(self, name) for name in _STORED},
            **(dict(zip(_RELATIVE, self.relative, strict=True)) if self.own else {}),
            "dependent": self.dependent,
            "decided_by": ["distance"] * len(x),
        }

    def to_frame(self) -> Any:
        """A data frame with a row for each pair, the strongest first.

        It is of the library of the caller's data frame, or of pandas. `lower` and `upper` are 95 %
        limits of `mic`. Results with distances in `own` have `relative` and its limits. The frame
        does not contain the privacy statement: publish it with `statement`.
        """
        backend: Any = self.backend or "pandas"
        try:
            columns = self.columns()
            schema = {name: _SCHEMA.get(name, nw.Float64) for name in columns}
            return nw.from_dict(columns, schema, backend=backend).to_native()
        except ImportError:
            raise ImportError(
                f"to_frame needs {backend}: pip install {backend}, or use ranked() or columns()"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The result as a JSON object."""
        columns = {
            name: values if isinstance(values, list) else values.tolist()
            for name, values in self.columns().items()
        }
        for name in set(_RELATIVE) & set(columns):  # JSON has no NaN
            columns[name] = [None if math.isnan(value) else value for value in columns[name]]
        rows = zip(*columns.values(), strict=True)
        pairs = [dict(zip(columns, row, strict=True)) for row in rows]
        return {**export.header(self), "pairs": pairs}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON, which is also written to `path`, if one is given."""
        text = json.dumps(self.to_dict(), allow_nan=False)
        if path is not None:
            export.write_text(path, text + "\n")
        return text

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> "ScreenResult":
        """The result that `to_json` wrote.

        Args:
          source: the JSON as a string, or its file as a `pathlib.Path`. Other keys of the object
            are ignored.
        """
        text = source if isinstance(source, str) else Path(source).read_text("utf-8")
        try:
            content = json.loads(text)
            check_not_earlier(content)
            rows = content["pairs"]
            columns = {name: [row[name] for row in rows] for name in ("x", "y", *_STORED)}
            result = cls._of(content, columns)
            # The order and the flags are in the file too, and have to agree with the distances.
            whole = result.to_dict()
            same = whole == {name: content[name] for name in whole}
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(
                "expected the JSON of a ScreenResult, or a pathlib.Path to it"
            ) from error
        if not same:
            raise ValueError("the JSON of this ScreenResult was changed: its fields disagree")
        return result

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows of `to_frame` as CSV, and a file beside it with all the rest as JSON.

        The file beside "found.csv" is "found.privacy.json": the statement in words and as data, and
        the meaning of the limits. A last column, `privacy`, repeats epsilon and delta in every
        row, and marks seeded results. Names are quoted and otherwise unchanged, so that they match
        the table. A spreadsheet takes a name that begins with =, +, - or @ for a formula: import
        the file as text if you do not trust the names.
        """
        export.to_csv(self, path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write `to_frame` as Parquet, and the rest into its metadata under b"dpmic_jax"."""
        export.to_parquet(self, path)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> "ScreenResult":
        """The result that `to_parquet` wrote."""
        header, columns = export.read_parquet(path)
        check_not_earlier(header)
        return cls._of(header, columns)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        histograms: Sequence[Histograms] = (),
        curve: PowerCurve | None = None,
    ) -> str:
        """A self-contained HTML page, which is also written to `path`, if one is given.

        It has the statement in words, a heat map, and a table that can be sorted and filtered.

        Args:
          path: the file to write.
          histograms: histograms of columns of the same table, released separately.
          curve: what such a screen finds at other epsilons, from `preview(...).curve()`.
        """
        text = html.page(self, histograms, curve)
        if path is not None:
            export.write_text(path, text)
        return text

    def to_registry(
        self,
        answers: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        ledger: LedgerFile | str | os.PathLike[str] | None = None,
        curve: PowerCurve | None = None,
    ) -> dict[str, Any]:
        """What public registries of deployments and NIST SP 800-226 ask for, as a JSON object.

        The sections are deployment, data, guarantee, mechanisms, accounting, implementation,
        parameters and hazards. What only the curator knows is None, and listed in "unanswered",
        unless it is in `answers`. See docs/privacy_review.md.

        Args:
          answers: answers by section and name, such as {"deployment": {"title": "..."}}.
          ledger: the ledger of the table, for the total cost so far.
          curve: what was planned to be found, from `preview(...).curve()`.
        """
        opened = ledger if isinstance(ledger, LedgerFile | None) else LedgerFile.open(ledger)
        return registry.registry_entry(self, answers or {}, opened, curve)

    @classmethod
    def _of(cls, header: dict[str, Any], columns: dict[str, Any]) -> "ScreenResult":
        place = {name: i for i, name in enumerate(header["names"])}
        pairs = [(place[x], place[y]) for x, y in zip(columns["x"], columns["y"], strict=True)]
        plain = (
            "noise_sd",
            "distance_noise_sd",
            "dependence_threshold",
            "own",
            "own_half_width",
            "candidates",
            "ask",
        )
        return cls(
            names=tuple(header["names"]),
            pairs=np.array(pairs, np.int64).reshape(-1, 2),
            statement=Statement.from_dict(header["privacy"]),
            **{name: np.array(columns[name], np.float64) for name in _STORED},
            **{name: header[name] for name in plain},
        )

    def text(self, rows: int | None = None) -> str:
        """A table of the strongest pairs with bars, and the statement in one line.

        Args:
          rows: the most pairs to show; by default all that were selected, and of others 15.
        """
        return show.text(self, show.rows_shown(self) if rows is None else rows)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return show.html(self, rows=show.rows_shown(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScreenResult):
            return NotImplemented
        rows = (
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("pairs", *_STORED)
        )
        return all(rows) and export.header(self) == export.header(other)

    def __hash__(self) -> int:
        return hash((self.names, self.candidates, self.ask, self.statement))


def backend_of(frame: Any) -> str | None:
    """The library of a data frame ("pandas", "polars", "pyarrow", ...); None for anything else."""
    known = nw.from_native(frame, eager_only=True, pass_through=True)
    return known.implementation.name.lower() if isinstance(known, nw.DataFrame) else None
