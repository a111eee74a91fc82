"""Foreign rows: confidence by distance, densities, the kernel's exponent, and findings.

Names from files are not escaped in the sentences: escape them before they reach a screen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.graph import Selection
from kdcal_core.charts.chart import Chart, new_figure
from kdcal_core.charts.marks import BandLine, distance_figure, hovered, selection_figure
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import (
    SURE,
    DensityCounts,
    DistanceCurve,
    Estimate,
    LogDensities,
    Surest,
    estimate_text,
    value_text,
)
from kdcal_core.text import counted, escape_html, formatted

_DASHES = ("solid", "6px,3px", "2px,3px", "9px,3px,2px,3px")
_OWN_LABELS = {
    "model": "Model",
    "geodesic": "Kernel density, geodesic",
    "euclidean": "Kernel density, Euclidean",
}
NEAR = 0.02  # a confidence this close to the prior counts as the prior
MOST_UNKNOWN = 0.95
_HELD_TENTHS = 3
_DURATIONS = (
    (5_000, "a few seconds"),
    (30_000, "less than a minute"),
    (120_000, "some minutes"),
)


MODEL_BY_DISTANCE = """
**Horizontal axis**: how far rows lie from the centre of the data, with every feature in units of
its standard deviation. The farthest row of the training set (of the calibration set, if there is no
training set) is at 1; the shaded part is where the data are. **Vertical axis**: the largest
probability, averaged over 1,000 rows spread evenly over each sphere (Dey et al., section 3.1.1),
with a band that contains the middle 80% of them. **Dashes**: the largest class prior. Confidence
should fall to it, because for a row unlike all others only the class frequencies are known. The
sentence above gives the radius beyond which the line and its band stay within 0.02 of the prior. It
may lie inside the shaded part: with many features, a point in a random direction differs from every
row long before it is as far out as the farthest one.

**The model** may stay sure at every distance: a ReLU network becomes arbitrarily confident far
away, and a forest predicts the same as in its outermost leaves (Dey et al., section 1).
"""
BY_OWN_DISTANCE = """
**Horizontal axis**: the distances that were given with the rows, in units of the farthest row of
the data. **Vertical axis**: the largest probability, averaged over the rows at this distance, or
over neighbours in distance, with a band that contains the middle 80% of them (Dey et al., section
3.1.1). **Dashes**: the largest class prior. Confidence should fall to it, because for a row unlike
all others only the class frequencies are known.
"""
BY_DISTANCE = (
    MODEL_BY_DISTANCE
    + r"""
**Isotonic, sigmoid and KDE** use only the model's probabilities and not the row. They treat a
foreign row like an ordinary one with the same probabilities, so they do not correct confidence
outside the data.

**The kernel density version** finds the region that shares most trees, or activation paths, with
a row, and uses the one Gaussian there (Eqs. 6, 11, 12 and 19). It is not a kernel density estimate
over all rows: only the nearest region counts, so it works with many features (appendix A). A floor
$c$ is added to each class's density:

$$g_y(x)=\frac{(\tilde f_y(x)+c)\,P(y)}{\sum_k(\tilde f_k(x)+c)\,P(k)}\qquad\text{(Eqs. 8 and 9)}$$

Inside the data, where $c$ is small compared with the densities, this is the class share of the
region. It is blended there with the model's own probability, with weights chosen on held-out rows,
because neither is always better (our addition to the papers). Far away every $\tilde f$ is small
compared with $c$, and the result is the prior (Prop. 2). **Euclidean** finds the nearest region by
Euclidean distance instead; Dey et al. (section 3.1.1) continue with geodesic, which works with more
features.
"""
)


DENSITIES = r"""
The log density $\log\sum_y P(y)\tilde f_y(x)$ of ordinary rows (filled) and of foreign rows (line).
Rows on the left are far from the data; the axis is stretched near the densest row. A row left of
the **floor** counts as unknown. Region and prior have equal weight in the kernel density version a
little farther left, where about a tenth as many ordinary rows would lie, or at the floor itself if
rows made far away need it. Farther left the prior has more, 98% at four units from there.

The floor is a quantile of the held-out rows' log densities, the $\lfloor\alpha(h+1)\rfloor$-th
smallest of $h$: a fresh row like them falls below it with probability at most
$\max(\alpha, 1/(h+1))$. The constant that Dey et al. print would lower the accuracy inside the
data. There is no guarantee for foreign rows: how many are found depends on how foreign they are,
and Dey et al. prove only the limit at infinite distance (Prop. 2).
"""


EXPONENT = r"""
The kernel is raised to the power $\gamma\log n$ (Dey et al., Eq. 18). With a small exponent the
rows of distant regions also count, which smooths the class shares; with a large one only a region's
own rows count. The exponent with the lowest log loss on held-out rows is chosen, and the largest of
equal ones. The losses are those of the class shares alone, before the model's own probability is
blended in.
"""


def distance_chart(
    curves: Mapping[str, DistanceCurve],
    prior: float,
    *,
    n_rows: int | None,
    n_moved: int = 0,
    n_features: int = 0,
    dark: bool = False,
) -> Chart:
    """Confidence against distance, of the model and of other methods.

    ``curves`` maps keys to curves, which `distance_label` names; ``prior`` is the largest class
    prior. There are ``n_rows`` rows on each sphere, and ``n_moved`` of their ``n_features``
    features differ from those of the data. Without ``n_rows`` the rows have distances of their own.
    """
    version = next((key for key in curves if key in ("geodesic", "euclidean")), None)
    lines = [
        BandLine(
            key,
            distance_label(key),
            curve.radii,
            curve.mean,
            curve.low,
            curve.high,
            key in ("model", version),  # six overlapping bands would be unreadable
        )
        for key, curve in curves.items()
    ]
    named = {distance_label(key): curve for key, curve in curves.items()}
    rows = next(iter(curves.values())).n if n_rows is None else n_rows
    finding = f"{rows:,} rows {'at their own distances' if n_rows is None else 'on each sphere'}."
    read = BY_DISTANCE if len(curves) > 1 else MODEL_BY_DISTANCE
    if n_moved < n_features:
        finding += (
            f" The spheres change the {n_moved:,} numeric features of {n_features:,}; the others "
            "keep values from the data."
        )
    return Chart(
        distance_figure(lines, prior, dark=dark, band_words="middle 80%"),
        finding=finding,
        alt=distance_alt(named, prior),
        how_to_read=BY_OWN_DISTANCE if n_rows is None else read,
        table=lambda: pd.concat(
            [curve.table().assign(method=label) for label, curve in named.items()],
            ignore_index=True,
        ),
        name="confidence by distance",
    )


def distance_label(key: str) -> str:
    """The name of a line in the chart by distance: a calibrator, the model itself, or a name given.

    Examples
    --------
    >>> distance_label("model"), distance_label("isotonic"), distance_label("my graph")
    ('Model', 'Isotonic', 'my graph')
    """
    known = CALIBRATORS.get(key)
    return _OWN_LABELS.get(key) or (key if known is None else known.label)


def density_chart(
    found: LogDensities,
    unknown: Estimate,
    n_unknown: int,
    alpha: float | None,
    *,
    dark: bool = False,
) -> Chart:
    """Ordinary and foreign rows by their density, with the floor that ``alpha`` set.

    Without ``alpha`` the floor is a fixed constant.

    ``unknown`` is the share of ordinary rows below the floor, ``n_unknown`` the number of rows of
    the first foreign set there.
    """
    (first, *_) = found.foreign
    return Chart(
        density_figure(found, dark=dark),
        finding=density_words(unknown, first.name, n_unknown, first.n, alpha),
        alt=density_alt(found),
        how_to_read=DENSITIES,
        table=found.table,
        name=f"densities {first.name}",
    )


def version_words(version: Sequence[Estimate], model: Sequence[Estimate]) -> str:
    """Estimates of the kernel density version, each beside that of the model, in a sentence."""
    said = (
        f"{ours.label} {estimate_text(ours)} against {estimate_text(own)}"
        for ours, own in zip(version, model, strict=True)
    )
    return f"The kernel density version against the model itself: {'; '.join(said)}."


def exponent_chart(selection: Selection, *, dark: bool = False) -> Chart:
    """Held-out log loss by the kernel's exponent."""
    words = selection_words(selection)
    return Chart(
        selection_figure(
            selection.exponents,
            {"Held-out log loss": selection.log_loss},
            float(selection.exponents[selection.chosen]),
            dark=dark,
        ),
        finding=words,
        alt=words,
        how_to_read=EXPONENT,
        table=lambda: pd.DataFrame(
            {
                "exponent": selection.exponents,
                "gamma": selection.gammas,
                "log_loss": selection.log_loss,
                "standard_error": selection.standard_error,
            }
        ),
        name="kernel exponent",
    )


def fit_offer(n_training: int | None, n_calibration: int) -> str:
    """What fitting the kernel density version does, on how many rows, and about how long it takes.

    Examples
    --------
    >>> fit_offer(1000, 500)[:66]
    'Fitting reads the regions that the model cuts its inputs into from'
    """
    held = n_calibration if n_training else n_calibration * _HELD_TENTHS // 10
    n_fit = n_training or n_calibration - held
    source = "training set" if n_training else "calibration set"
    last = (
        f"the {held:,} rows of the calibration set"
        if n_training
        else f"the other {held:,} rows of the calibration set"
    )
    return (
        f"Fitting reads the regions that the model cuts its inputs into from {n_fit:,} rows of the "
        f"{source} and chooses its settings on {last}. It takes {_duration(n_fit + held)}. You can "
        "keep using the app meanwhile, and the result is kept."
    )


def _duration(n: int) -> str:
    return next((words for most, words in _DURATIONS if n <= most), "several minutes or more")


def distance_finding(
    model: DistanceCurve,
    graph: DistanceCurve | None,
    prior: float,
    unknown: FloatArray | None = None,
) -> str:
    """How sure the model is at the farthest sphere, and its kernel density version there.

    "Far" is the last radius, usually ten times as far as the farthest ordinary row. The version
    has reached the prior from the radius that :func:`reaches_prior` returns. ``unknown`` is the
    share of the rows on each sphere whose density lies below the version's floor, (R,).
    """
    said = _fall_words(model, graph, prior)
    return said if unknown is None else f"{said} {_unknown_words(model.radii, unknown)}"


def _unknown_words(radii: FloatArray, unknown: FloatArray) -> str:
    less = np.flatnonzero(unknown < MOST_UNKNOWN)
    first = int(less[-1]) + 1 if less.size else 0
    if first == len(radii):
        return f"By its density it counts {unknown[-1]:.0%} of the rows there as unknown."
    since = f"from radius {radii[first]:g} onwards" if first else "at every distance"
    share = "all" if (unknown[first:] == 1.0).all() else f"at least {MOST_UNKNOWN:.0%} of the"
    return f"By its density it counts {share} rows as unknown {since}."


def _fall_words(model: DistanceCurve, graph: DistanceCurve | None, prior: float) -> str:
    said = float(model.mean[-1])
    still = "still says" if said > prior + NEAR else "says"
    sentence = f"Far away (radius {model.radii[-1]:g}) the model {still} {said:.2f}"
    if graph is None:
        return f"{sentence}, where the prior is {prior:.2f}."
    radius, last = reaches_prior(graph, prior), float(graph.mean[-1])
    version = "the kernel density version"
    if radius is None:
        return f"{sentence} and {version} {last:.2f}, which has not reached the prior, {prior:.2f}."
    if radius == graph.radii[0]:
        return f"{sentence}; {version} stays at the prior, {prior:.2f}, at every distance."
    word = "goes"
    if graph.mean.max() > prior + NEAR:
        word = "falls"
    elif graph.mean.min() < prior - NEAR:
        word = "rises"
    same = f"{last:.2f}" == f"{prior:.2f}"
    there = f"{last:.2f}, {'the prior' if same else f'about the prior of {prior:.2f}'},"
    since = f"from radius {radius:g} onwards" if radius < graph.radii[-1] else "only there"
    return f"{sentence}; {version} {word} to {there} {since}."


def reaches_prior(curve: DistanceCurve, prior: float) -> float | None:
    """The radius beyond which confidence stays within 0.02 of the prior, if it does.

    Both mean and band must be within: if the model is sure of some rows and unsure of others, the
    mean may be at the prior while hardly any row is.

    Examples
    --------
    >>> one = np.array([0.9, 0.51, 0.5])
    >>> reaches_prior(DistanceCurve(np.arange(3.0), one, one, one, (10, 90), 5, 0), 0.5)
    1.0
    """
    away = np.abs(np.stack([curve.mean, curve.low, curve.high]) - prior).max(axis=0)
    far = np.flatnonzero(away > NEAR)
    first = int(far[-1]) + 1 if far.size else 0
    return float(curve.radii[first]) if first < len(curve.radii) else None


def set_finding(
    name: str, model: Estimate, graph: Estimate | None, prior: float, n_unknown: int | None
) -> str:
    """How sure the model and its kernel density version are of one set of foreign rows.

    ``model`` and ``graph`` are mean max confidences, ``n_unknown`` the rows below the floor.
    """
    sentence = f"{name}: the model says {estimate_text(model)} on average"
    known = f"the prior is {value_text(model, prior)}"
    if graph is None or n_unknown is None:
        return f"{sentence}; {known}; {counted(model.n, 'row')}."
    return (
        f"{sentence}, the kernel density version {estimate_text(graph)}, {known}; "
        f"{n_unknown:,} of {counted(model.n, 'row')} count as unknown."
    )


def by_confidence_words(density: Estimate, confidence: Estimate, prior: float) -> str:
    """Why foreign rows are ranked by density, with the AUROC by confidence."""
    return (
        "AUROC and FPR@95 of the kernel density version rank rows by density, and the AUROC is "
        f"{estimate_text(density)}. By confidence it would be {estimate_text(confidence)}: far "
        f"from the data the confidence falls back to the largest class prior, {prior:.0%} here, "
        "which misleads where one class is frequent."
    )


def confidence_only_words(prior: float) -> str:
    """Why a model without a density can only rank rows by its confidence.

    Examples
    --------
    >>> confidence_only_words(0.9)[:75]
    'This model has no density, so rows can be ranked by its confidence alone. T'
    """
    return (
        "This model has no density, so rows can be ranked by its confidence alone. That misleads "
        "where one class is frequent: even the most cautious prediction, the class shares, has a "
        f"confidence of {prior:.0%} here."
    )


def made_words(kind: str, beyond: tuple[str, float, float] | None) -> str:
    """What rows on a sphere, or shifted rows, are. Untrusted text: it names a column.

    Parameters
    ----------
    kind : {"sphere", "shifted"}
    beyond : (column, its least value among these rows, its least value in the data), or None

    Examples
    --------
    >>> made_words("shifted", ("age", -260.0, 17.0))
    "Such rows cannot occur: 'age' goes down to −260 here, but never below 17 in the data."
    """
    what = (
        "These are points on a sphere in standardised units, as in the papers, to see what the "
        "model predicts in every direction."
        if kind == "sphere"
        else ""
    )
    if beyond is not None:
        column, least, low = beyond
        what += (
            f" Such rows cannot occur: {column[:60]!r} goes down to {formatted(least, '.3g')} "
            f"here, but never below {formatted(low, '.3g')} in the data."
        )
    return what.strip()


def distance_alt(curves: Mapping[str, DistanceCurve], prior: float) -> str:
    """Alternative text: each line at the centre, where the data end, and far away."""
    lines = "; ".join(
        f"{label} "
        + ", ".join(
            f"{curve.mean[at]:.2f} at {curve.radii[at]:g}" for at in _named_radii(curve.radii)
        )
        for label, curve in curves.items()
    )
    return f"Mean max confidence against distance; the data end at 1: {lines}. Prior {prior:.2f}."


def _named_radii(radii: FloatArray) -> list[int]:
    ends = int(np.argmin(np.abs(radii - 1.0)))
    return sorted({0, ends, len(radii) - 1})


def density_words(share: Estimate, name: str, n_unknown: int, n: int, alpha: float | None) -> str:
    """How many ordinary and foreign rows lie below the floor; without alpha it is a constant."""
    floor = "The fixed" if alpha is None else f"With alpha at {100 * alpha:.3g}% the"
    return (
        f"{floor} floor leaves {estimate_text(share)} of {share.n:,} "
        f"ordinary rows below it, and {n_unknown:,} of {counted(n, 'row')} "
        f"({n_unknown / max(n, 1):.0%}) of “{name}”."
    )


def blend_words(model: float, graph: float) -> str:
    """A sentence with the weights of the model and of the regions' class shares inside the data.

    Examples
    --------
    >>> blend_words(0.5, 1.0)[:68]
    "Inside the data two probabilities are blended: the model's own, with"
    >>> blend_words(1.0, 0.0)[:67]
    "Inside the data the model's own probabilities are used as they are;"
    """
    if graph == 0.0:
        alone = "are used as they are" if model == 1.0 else f"have weight {model:.2f}"
        return (
            f"Inside the data the model's own probabilities {alone}; the class shares of the row's "
            "region would not lower the held-out log loss by more than two standard errors."
        )
    return (
        f"Inside the data two probabilities are blended: the model's own, with weight {model:.2f}, "
        f"and the class shares of the row's region, with weight {graph:.2f}. These weights have "
        "the lowest held-out log loss; weights 1 and 0 would be the model itself."
    )


def give_way_words(radius: float) -> str:
    """How far from its centre a region gives way to the prior, at the median of the regions.

    Examples
    --------
    >>> give_way_words(4472.1)
    'Half of the regions give way to the prior within 4,472 of their standard deviations.'
    """
    return (
        f"Half of the regions give way to the prior within {formatted(radius, ',.4g')} of their "
        "standard deviations."
    )


def ties_words(n_ordinary: int, n_foreign: int) -> str:
    """For how many rows several regions were equally near; empty for none.

    Examples
    --------
    >>> ties_words(0, 3)
    'Several regions were equally near for 3 foreign rows; the nearest centre decided.'
    """
    parts = [
        f"{counted(n, f'{kind} row')}"
        for n, kind in ((n_ordinary, "ordinary"), (n_foreign, "foreign"))
        if n
    ]
    if not parts:
        return ""
    return (
        f"Several regions were equally near for {' and '.join(parts)}; the nearest centre decided."
    )


def density_alt(found: LogDensities) -> str:
    """Alternative text: the median log density of each kind of rows, and the floor."""
    medians = " ".join(
        f"{one.name}: median {formatted(one.median, '.4g')}."
        for one in (found.ordinary, *found.foreign)
    )
    return f"Log densities. {medians} Floor: {formatted(found.floor, '.4g')}."


def surest_words(name: str, surest: Surest, predicted: str) -> str:
    """How many rows the model predicts with high confidence, and the most confident one.

    ``predicted`` is the class predicted for the surest row.

    Examples
    --------
    >>> one = Surest.of(np.array([0.6, 0.95]), np.array([1, 0]))
    >>> surest_words("Ring", one, "a")[:52]
    'The model predicts 1 of 2 rows of “Ring” with more t'
    """
    sentence = (
        f"The model predicts {surest.n_sure:,} of {counted(surest.n, 'row')} of “{name}” with more "
        f"than {SURE:.0%} confidence; it is most sure of row {surest.row + 1:,}, with "
        f"{surest.said:.1%} for class {predicted}."
    )
    if surest.n_version_sure is None:
        return sentence
    as_sure = surest.n_version_sure
    return (
        f"{sentence} The kernel density version is as sure of "
        f"{f'{as_sure:,}' if as_sure else 'none'} of them, and states {surest.version_said:.1%} "
        "for that row."
    )


def selection_words(selection: Selection) -> str:
    """The exponent in use, and the held-out log loss of others."""
    chosen, best = selection.chosen, selection.best
    loss = selection.log_loss
    if selection.n == 0:
        return (
            "No rows are held out to choose the exponent, which is "
            f"{selection.exponents[chosen]:.3g}."
        )
    sentence = (
        f"The exponent in use is {selection.exponents[chosen]:.3g}: held-out log loss "
        f"{loss[chosen]:.3f} on {counted(selection.n, 'row')}"
    )
    if loss[chosen] - loss[best] < 5e-4:
        worst = int(np.argmax(loss))
        return (
            f"{sentence}, the lowest of {len(loss)}; the highest is {loss[worst]:.3f}, at "
            f"exponent {selection.exponents[worst]:.3g}."
        )
    return (
        f"{sentence}. The lowest is {loss[best]:.3f}, at exponent {selection.exponents[best]:.3g}."
    )


def inside_words(model: tuple[Estimate, ...], graph: tuple[Estimate, ...]) -> str:
    """The kernel density version's cost or gain on ordinary rows, from their tiles."""
    parts = [
        f"{one.label.lower() if one.label == 'Accuracy' else one.label} {estimate_text(other)} "
        f"instead of {estimate_text(one)}"
        for one, other in zip(model, graph, strict=True)
        if one.label in ("Accuracy", "ECE")
    ]
    return f"On ordinary rows the kernel density version has {', and '.join(parts)}."


def density_figure(found: LogDensities, *, dark: bool) -> go.Figure:
    """Shares of rows by log density; rows left of the floor count as unknown.

    The axis is the distance below the densest row on a logarithmic scale; its ticks show the log
    densities themselves. Names of foreign sets are untrusted.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=330)
    edges = found.edges
    figure.add_trace(_filled(found, colours))
    for at, one in enumerate(found.foreign):
        figure.add_trace(_outline(found, one, colours, _DASHES[at % len(_DASHES)]))
    floor = found.place(np.array([found.floor]))[0] if np.isfinite(found.floor) else edges[0]
    figure.add_vline(
        x=float(floor),
        line={"color": colours.truth, "width": 1.5, "dash": "4px,4px"},
        annotation={"text": "floor", "font": {"size": 12, "color": colours.muted}},
        annotation_position="top left",
    )
    ticks, texts = _ticks(found)
    figure.update_layout(
        xaxis={
            "title_text": "Log density (far from the data on the left)",
            "tickvals": ticks,
            "ticktext": texts,
            "range": [edges[0], max(0.05, -edges[0] * 0.02)],
        },
        yaxis={"title_text": "Share of rows", "tickformat": ".0%", "rangemode": "tozero"},
        bargap=0.0,
        margin={"t": 64},
    )
    return figure


def _filled(found: LogDensities, colours: Palette) -> go.Bar:
    edges, one = found.edges, found.ordinary
    return go.Bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=one.share,
        width=np.diff(edges),
        marker={"color": faded(colours.muted, 0.45), "line": {"width": 0}},
        name=f"{escape_html(one.name)} ({one.n:,})",
        **_hovered(found, one),
    )


def _outline(found: LogDensities, one: DensityCounts, colours: Palette, dash: str) -> go.Scatter:
    edges = found.edges
    return go.Scatter(
        x=(edges[:-1] + edges[1:]) / 2,
        y=one.share,
        mode="lines",
        line={"color": colours.foreign, "width": 2, "shape": "hvh", "dash": dash},
        name=f"{escape_html(one.name, limit=40)} ({one.n:,})",
        **_hovered(found, one),
    )


def _hovered(found: LogDensities, one: DensityCounts) -> dict[str, Any]:
    return hovered(
        "Log density about {:,.3g}<br>{:.1%}, {:,.0f} rows",
        found.log_density(found.edges[:-1]),
        one.share,
        one.count,
        name="%{fullData.name}",
    )


def _ticks(found: LogDensities) -> tuple[list[float], list[str]]:
    """The densest row, and round log densities below it, about six in all."""
    powers = 10.0 ** np.arange(1, 16)
    decades = math.log10(max(found.top - found.least, 10.0))
    steps = (1, 2, 5) if decades <= 2 else (1, 3) if decades <= 4 else (1,)
    below = np.unique([np.floor((found.top - s * powers) / powers) * powers for s in steps])
    values = np.concatenate([[found.top], below[below >= found.least][::-1]])
    return list(found.place(values)), [_short(value) for value in values]


def _short(value: float) -> str:
    """Few digits: 3.2, −100, −9,900, −100,000, −1 × 10⁶."""
    if abs(value) < 1e6:
        return formatted(value, ".2g" if abs(value) < 100 else ",.0f")
    return formatted(value, ".0e")
