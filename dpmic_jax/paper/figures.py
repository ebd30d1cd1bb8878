"""The paper's figures, with our mechanisms beside the published ones.

Each function returns a matplotlib `Figure` that is not registered with pyplot:
`figure.savefig(path)` writes it to a file, and `png(figure)` makes a small picture for notebooks.
"""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dpmic_jax.paper.family import Family, data_sets
from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.real import WIDE, Errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = Float[np.ndarray, " values"]
# The result of `synthetic.released`: by mechanism, a row of releases for each distribution.
Released = Mapping[str, Float[np.ndarray, "distributions iterations"]]


class _Look(NamedTuple):
    colour: str
    marker: str
    label: str


# The palette of Okabe and Ito, which stays distinguishable with any kind of colour vision: warm
# colours for published mechanisms, cold ones for ours, paler where a release is post-processed.
_LOOKS = {
    "MICe-Lap": _Look("#999999", "s", "MICe-Lap"),
    "MICr-Lap": _Look("#e69f00", "^", "MICr-Lap"),
    "MICr-Geom": _Look("#d55e00", "v", "MICr-Geom (not epsilon-DP)"),
    "ours": _Look("#0072b2", "o", "ours"),
    "ours, MIC*": _Look("#56b4e9", "D", "ours, estimate of MIC*"),
    "variation, MIC*": _Look("#cc79a7", "h", "VariationLap, estimate of MIC*"),
    "ours, debiased": _Look("#56b4e9", "D", "ours, debiased"),
    WIDE: _Look("#009e73", "P", WIDE),
    f"{WIDE}, debiased": _Look("#80cfb9", "X", f"{WIDE}, debiased"),
}
_NOISELESS = "ours, noiseless"
_INK, _MUTED, _BAND = "#333333", "#999999", "#f2f2f2"
_LEAST = 1e-6  # smaller variances, and 0, are drawn here: the axis is logarithmic
_BIAS = "bias of the release\n(MIC units)"
_VARIANCE = f"variance of the release\n(MIC units², at least {_LEAST:g})"


def synthetic_boxes(
    results: Mapping[int, Released], stars: Float[np.ndarray, " distributions"], epsilon: float
) -> "Figure":
    """Figures 2 (epsilon = 1) and 4 (0.1): bias and variance over the distributions, for each n.

    Args:
      results: the result of `synthetic.released` for each n.
      stars: MIC* of each distribution; the bias is measured against it.
      epsilon: the epsilon of every release, for the title.
    """
    biases, variances = [], []
    for released in results.values():
        boxed = {name: values for name, values in released.items() if name != _NOISELESS}
        biases.append({name: values.mean(axis=1) - stars for name, values in boxed.items()})
        variances.append({name: values.var(axis=1) for name, values in boxed.items()})
    where = f"{len(stars)} distributions, epsilon = {epsilon:g}"
    return _two_panels(biases, variances, where, [f"{n}" for n in results], "n, records")


def real_boxes(
    collection: str,
    bins: Sequence[float],
    mice: Float[np.ndarray, " pairs"],
    errors: Mapping[str, Errors],
    epsilon: float,
) -> "Figure":
    """Figures 3 (epsilon = 1) and 5 (0.1): bias and variance over pairs with MICe in a bin.

    Args:
      collection: its name, for the title.
      bins: edges of the bins; the last bin includes its upper edge.
      mice: MICe of each pair; the bias is measured against it.
      errors: the result of `real.measured`.
      epsilon: the epsilon of every release, for the title.
    """
    place = np.searchsorted(bins[1:-1], mice, side="right")
    inside = [place == index for index in range(len(bins) - 1)]
    biases = [{name: of.bias[here] for name, of in errors.items()} for here in inside]
    variances = [{name: of.variance[here] for name, of in errors.items()} for here in inside]
    labels = [
        f"{low:g} to {high:g}\n{here.sum()} pairs"
        for low, high, here in zip(bins[:-1], bins[1:], inside, strict=True)
    ]
    where = f"{collection}, epsilon = {epsilon:g}"
    figure = _two_panels(biases, variances, where, labels, "MICe of the pair")
    _hundredths(figure.axes[0])
    return figure


def error_curves(
    results: Mapping[float, Mapping[int, Released]], stars: Float[np.ndarray, " distributions"]
) -> "Figure":
    """Mean absolute error over the distributions as a function of n, one panel for each epsilon.

    Args:
      results: the result of `synthetic.released` for each epsilon and n.
      stars: MIC* of each distribution.
    """
    errors = {
        epsilon: {n: _mean_errors(released, stars) for n, released in of.items()}
        for epsilon, of in results.items()
    }
    figure = _figure(1.5 + 4.2 * len(errors), 4.6)
    axes = figure.subplots(1, len(errors), sharey=True, squeeze=False)[0]
    for ax, (epsilon, of) in zip(axes, errors.items(), strict=True):
        for name, (colour, marker, label) in _LOOKS.items():
            found = {n: mean[name] for n, mean in of.items() if name in mean}
            if found:
                line = {"color": colour, "marker": marker, "label": label, "linewidth": 2}
                ax.plot(list(found), list(found.values()), **line)
        exact = [mean[_NOISELESS] for mean in of.values()]
        ax.plot(list(of), exact, color=_INK, linestyle="--", label="MICr without noise")
        ax.set_title(f"epsilon = {epsilon:g}")
        _log_records(ax, list(of))
        _log_values(ax)
    axes[0].set_ylabel("mean absolute error against MIC*\n(MIC units)")
    means = [mean for of in errors.values() for mean in of.values()]
    ours, estimate = (
        _times([mean["MICr-Lap"] / mean[name] for mean in means]) for name in ("ours", "ours, MIC*")
    )
    figure.suptitle(f"Ours errs {ours} less than MICr-Lap, its estimate of MIC* {estimate} less")
    _legend(figure, axes[0])
    return figure


def relationships(of: Family, r_squared: float, n: int, *, seed: int) -> "Figure":
    """A panel for each function: its graph, n records drawn around it at one R^2, and MIC*.

    Args:
      of: `family.family()`.
      r_squared: one of the family's values.
      n: records in each panel; a few hundred stay readable.
      seed: of the records.
    """
    which = [index for index, value in enumerate(of.r_squared) if np.isclose(value, r_squared)]
    if not which:
        raise ValueError(f"expected r_squared in {sorted(set(of.r_squared))}, got {r_squared}")
    figure = _figure(11, 5.3)
    axes = figure.subplots(3, 7, sharex=True, sharey=True).ravel()
    x = np.linspace(0, 1, 2001)
    for ax, index in zip(axes, which, strict=True):
        name = of.names[index]
        y = FUNCTIONS[name](x)
        points = data_sets(of, range(index, index + 1), n, range(1), seed=seed)
        ax.plot(*(side[0] for side in points), ".", color=_LOOKS["ours"].colour, markersize=2)
        ax.plot(x, np.where((y >= 0) & (y <= 1), y, np.nan), color=_INK, linewidth=1)
        ax.set_title(f"{name}, MIC* = {of.stars[index]:.2f}", fontsize=9)
        around = (-0.03, 1.03)  # F9 and F21 are steep at an edge of the square
        ax.set(xlim=around, ylim=around, xticks=(0, 1), yticks=(0, 1), aspect="equal")
    figure.supxlabel("x", fontsize=9)
    figure.supylabel("y", fontsize=9)
    low, high = of.stars[which].min(), of.stars[which].max()
    one = f"At one R² = {r_squared:g}, MIC* is between {low:.2f} and {high:.2f}"
    figure.suptitle(f"{one}; {n} records of each function")
    return figure


def consistency(errors: Mapping[int, Float[np.ndarray, " functions"]]) -> "Figure":
    """The error of MICr against MIC* as a function of n, one line for each of the 21 functions.

    Args:
      errors: for each n, the mean absolute error of each function in the order of `FUNCTIONS`.
    """
    records = list(errors)
    lines = np.array([errors[n] for n in records]).T
    mean = lines.mean(axis=0)
    # Only the best and the worst function are labelled: more labels would overlap.
    by_end = np.argsort(lines[:, -1])
    figure = _figure(7.5, 4.8)
    ax = figure.subplots()
    grey = ax.plot(records, lines.T, color=_MUTED, linewidth=0.8)
    grey[0].set_label("a function")
    for index in (by_end[0], by_end[-1]):
        ax.plot(records, lines[index], color=_INK, linewidth=1.5)
        ax.text(1.08 * records[-1], lines[index, -1], list(FUNCTIONS)[index], va="center")
    ax.plot(records, mean, "o-", color=_LOOKS["ours"].colour, linewidth=2.5, label="mean of all")
    ax.set_ylabel("mean absolute error of MICr against MIC*\n(MIC units)")
    _log_records(ax, records)
    ax.set_xlim(right=1.5 * records[-1])
    _log_values(ax)
    first, last = (f"{mean[at]:.3f} at n = {records[at]}" for at in (0, -1))
    ax.set_title(f"Without noise MICr comes nearer to MIC* as n grows: {first}, {last}", size=10)
    _legend(figure, ax)
    return figure


def png(figure: "Figure") -> bytes:
    """The figure as a PNG of 64 colours, a quarter of the size of the full palette."""
    from PIL import Image  # comes with matplotlib

    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=100)
    with Image.open(full) as picture:
        few = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(small, format="png", optimize=True)
    return small.getvalue()


def _two_panels(
    biases: Sequence[Mapping[str, Values]],
    variances: Sequence[Mapping[str, Values]],
    where: str,
    labels: Sequence[str],
    what: str,
) -> "Figure":
    """Bias above variance: a group of boxes for each label, with one box for each mechanism."""
    figure = _figure(10, 6.2)
    top, bottom = figure.subplots(2, 1, sharex=True)
    _boxes(top, biases)
    top.axhline(0, color=_INK, linewidth=0.8, zorder=1)
    top.set_ylabel(_BIAS)
    raised = [{name: np.maximum(v, _LEAST) for name, v in group.items()} for group in variances]
    bottom.set_yscale("log")
    _boxes(bottom, raised)
    bottom.set(ylabel=_VARIANCE, xlabel=what, xlim=(-0.5, len(labels) - 0.5))
    bottom.set_xticks(range(len(labels)), labels)
    medians = [
        np.median(group["MICr-Lap"]) / np.median(group["ours"])
        for group in raised
        if len(group["ours"])
    ]
    figure.suptitle(f"{where}: ours varies {_times(medians)} less than MICr-Lap (medians)")
    _legend(figure, top)
    return figure


def _hundredths(ax: "Axes") -> None:
    """Make the axis linear within 0.1 and logarithmic beyond.

    Biases of MICe-Lap are tenths where those of the other mechanisms are hundredths.
    """
    sizes = (0.05, 0.1, 0.2, 0.5, 1.0)
    ticks = (*(-size for size in sizes), 0.0, *sizes)
    limits = ax.get_ylim()
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set(ylim=limits, ylabel=_BIAS.replace(")", ", linear within 0.1)"))


def _boxes(ax: "Axes", groups: Sequence[Mapping[str, Values]]) -> None:
    """Draw boxes of quartiles, whiskers of 1.5 interquartile ranges, and the outliers."""
    names = list(groups[0])
    pitch = 0.84 / len(names)
    for place in range(1, len(groups), 2):
        ax.axvspan(place - 0.5, place + 0.5, color=_BAND, zorder=0)
    for index, name in enumerate(names):
        colour, _, label = _LOOKS[name]
        filled = [place for place, group in enumerate(groups) if len(group[name])]
        drawn = ax.boxplot(
            [groups[place][name] for place in filled],
            positions=np.array(filled) + (index - (len(names) - 1) / 2) * pitch,
            widths=0.8 * pitch,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": colour, "edgecolor": colour},
            medianprops={"color": "black", "linewidth": 1.5},
            whiskerprops={"color": colour},
            capprops={"color": colour},
            flierprops={"marker": ".", "markersize": 2, "markeredgecolor": colour},
        )
        drawn["boxes"][0].set_label(label)


def _mean_errors(
    released: Released, stars: Float[np.ndarray, " distributions"]
) -> dict[str, float]:
    return {name: float(np.abs(v - stars[:, None]).mean()) for name, v in released.items()}


def _times(ratios: Sequence[float]) -> str:
    low, high = (f"{ratio:.2g}" for ratio in (min(ratios), max(ratios)))
    return f"{low} times" if low == high else f"{low} to {high} times"


def _log_records(ax: "Axes", records: Sequence[int]) -> None:
    ax.set_xscale("log")
    ax.set_xticks(records, [f"{n}" for n in records])
    ax.minorticks_off()
    ax.set_xlabel("n, records")


def _log_values(ax: "Axes") -> None:
    """Make the value axis logarithmic, with plain numbers at the ticks."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(axis="y", color=_BAND)


def _legend(figure: "Figure", ax: "Axes") -> None:
    """Put one legend below all panels."""
    handles, labels = ax.get_legend_handles_labels()
    columns = len(labels) if len(labels) <= 6 else 4
    style: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9}
    figure.legend(handles, labels, loc="outside lower center", **style)


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'dpmic_jax[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")
