"""The simulation lab for classifications: preview, maps, distance, measures, and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.calibration.graph.gamma_floor_blend import Blend
from kdcal_core.charts.chart import Chart, new_figure, square
from kdcal_core.charts.lab_measures import MeasuredMethod, measures_chart
from kdcal_core.charts.marks import BandLine, distance_figure
from kdcal_core.charts.palette import palette
from kdcal_core.charts.posterior_map import MapPoints, PosteriorPanel, posterior_map_figure
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.diagnostics import DistanceCurve, Estimate, estimate_text, value_text
from kdcal_core.text import listed

NEAR_PRIOR = 0.02  # a confidence this close to the prior counts as the prior
_CLOSE = 0.01  # an error this much larger counts as unchanged
_FAR_OFF = 1.5  # at this multiple of the model's distance to the truth, confidence counts as lost
LAB_BANDED = ("model", "geodesic", "euclidean")  # more bands would hide each other

MAPS = r"""
Each map shows the probability of class 1: blue near 0, red near 1, **white at the prior**. Rows of
class 1 are red circles, those of class 0 blue crosses. The dashed box holds the data. This is
Fig. 8 of Dey et al.

* **True posterior**: from the formula of the simulation; the prior outside the box, where there
  are no rows (Eq. 4). *Trunk* has rows everywhere, though fewer farther out, so its true posterior
  is defined everywhere.
* **Model**: a forest or a network extends what it learned at the edge of the data to infinity
  (the text after Eq. 5).
* **Kernel density**: the density of the polytope that represents a point, Gaussian around its
  rows, $\tilde f_y(x)=\frac{\tilde n_{ry}}{\tilde n_y}\,G(x;\hat\mu_r,\hat\Sigma_r)$
  (Eq. 19), plus the floor, turned into a posterior by Bayes' rule (Eqs. 8 and 9). For points
  outside, the **geodesic** version uses the polytope that shares most leaves or paths with
  theirs, the **Euclidean** one the polytope whose centre is nearest (Eq. 6).

All classes share one Gaussian in a polytope, so it only determines *when* to fall back to the
prior. Inside the data the probabilities are the class shares, blended with the model's own. The
last map is the papers' own fit, with their floor and the shares alone.
"""


DISTANCE = r"""
The mean of the largest probability over 1,000 points drawn uniformly on a sphere around the origin
(Dey et al., section 3.1 and Fig. 3). The farthest row is at distance 1. **Bands** contain the
middle half of the points; curves without a band show it on hover.

No row lies beyond 1, so only the prior (dashed) is justified there. Isotonic and sigmoid
calibration cannot fall to it: they only transform the model's probability, which far away is the
same as at the edge. The two curves **as in the papers** are fitted with all of the papers'
settings, and the exponent is chosen under their floor. They use $\log b=-10^7$ at
$\lambda=10^{-6}$: they fall back to the prior at 4.47 from the centre of a polytope of one row, and
much farther out if several rows of a polytope lie apart.

Click a name in the legend to hide its curve; double-click it to see that curve alone.
"""


INSIDE = r"""
There are 2,000 fresh rows. The model was trained, and the graphs were fitted, on seven tenths of
the other rows. The other three tenths determine isotonic, sigmoid, the exponent and the floor (Dey
et al., section 3).

The Hellinger distance of probabilities $p$ and $q$ is
$\sqrt{\tfrac12\sum_y(\sqrt{p_y}-\sqrt{q_y})^2}$. In the middle of *Circle* the formula knows the
class, but no method can.

"""


@dataclass(frozen=True)
class Compared:
    """A method's confidence far away, its error and its distance to the truth."""

    far: Estimate
    error: Estimate
    hellinger: Estimate


def lab_maps_chart(
    axis: FloatArray,
    panels: Sequence[PosteriorPanel],
    points: MapPoints,
    *,
    model: str,
    title: str,
    sure: Sequence[float],
    prior: float,
    data_box: tuple[float, float, float, float],
    dark: bool = False,
) -> Chart:
    """The rows, the true posterior and each method's posterior, on a square of ``axis``.

    ``model`` is "forest" or "network", ``title`` the simulation's, and ``sure`` the shares of the
    map outside the data on which the model, its geodesic and its Euclidean version are surer than
    90%.
    """
    words = maps_words(model, *sure)

    def table() -> pd.DataFrame:
        across, up = np.meshgrid(axis, axis)
        places = {"x1": across.ravel(), "x2": up.ravel()}
        return pd.DataFrame(places | {one.title: one.posterior.ravel() for one in panels})

    return Chart(
        posterior_map_figure(
            axis,
            axis,
            panels,
            points,
            class_name=points.classes[1],
            prior=prior,
            x_title="x1",
            y_title="x2",
            dark=dark,
            equal=True,
            data_box=data_box,
            columns=3,
        ),
        finding=words,
        alt=maps_alt(model, title, words),
        how_to_read=MAPS,
        table=table,
        name="maps",
    )


def lab_distance_chart(
    curves: Mapping[str, tuple[str, DistanceCurve]], *, model: str, prior: float, dark: bool = False
) -> Chart:
    """Confidence against distance: a label and a curve for each method, by its key."""
    lines = [
        BandLine(
            key,
            label,
            curve.radii,
            curve.mean,
            curve.low,
            curve.high,
            filled=key in LAB_BANDED,
        )
        for key, (label, curve) in curves.items()
    ]
    return Chart(
        distance_figure(lines, prior, dark=dark, band_words="middle half"),
        finding=distance_words(model, curves["model"][1], curves["geodesic"][1], prior),
        alt=distance_alt([line.label for line in lines], [curve for _, curve in curves.values()]),
        how_to_read=DISTANCE,
        table=lambda: pd.concat(
            [curve.table().assign(method=label) for label, curve in curves.values()],
            ignore_index=True,
        ),
        name="distance",
    )


def lab_measures_chart(
    titles: Mapping[str, str],
    methods: Sequence[MeasuredMethod],
    *,
    dark: bool = False,
    narrow: bool = False,
) -> Chart:
    """Every measure of every method; ``titles`` name the measures, "error" among them, by key."""
    found = {one.key: dict(zip(titles, one.estimates, strict=True)) for one in methods}
    words = measures_words(found["model"], found["geodesic"])
    made = measures_chart(
        titles, methods, lead="error", how_to_read=INSIDE, dark=dark, narrow=narrow
    )
    return replace(made, finding=words)


def glance_figure(X: FloatArray, y: IntArray, *, dark: bool = False) -> go.Figure:
    """The first two dimensions of some drawn rows (m, d), small and without axes.

    A thumbnail beside the settings, not a `Chart`: it shows what will be simulated and measures
    nothing, so there is neither a finding nor a number to read off or to download.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=230)
    for label in np.unique(y):
        figure.add_trace(
            go.Scatter(
                x=X[y == label, 0].astype(np.float32),
                y=X[y == label, 1].astype(np.float32),
                mode="markers",
                marker={"size": 4, "opacity": 0.75, "color": colours.classes[label]},
                name=f"Class {label}",
                hoverinfo="skip",
            )
        )
    figure.update_layout(
        xaxis={"visible": False},
        yaxis={"visible": False},
        margin={"l": 4, "r": 4, "t": 24, "b": 4},
        dragmode=False,
    )
    square(figure)
    return figure


def lab_finding(name: str, model: Compared, graph: Compared, *, radius: float, prior: float) -> str:
    """Confidence of the model and its kernel density version far away, and the cost inside.

    Parameters
    ----------
    name : str
        "forest" or "network".
    prior : float
        Prior of the most frequent class: the right confidence where no row was seen.

    Examples
    --------
    >>> def number(value): return Estimate("", "", value, value - 0.01, value + 0.01, 2000)
    >>> lab_finding("forest", Compared(number(0.9), number(0.061), number(0.09)),
    ...             Compared(number(0.5), number(0.060), number(0.08)), radius=2.0, prior=0.5)
    'At radius 2 the forest still says 0.900 (0.890 to 0.910), the kernel density version 0.500 \
(0.490 to 0.510), the prior; error 0.060 (0.050 to 0.070) against 0.061 (0.051 to 0.071).'
    """
    stays = model.far.value - prior > NEAR_PRIOR
    says = f"{'still ' if stays else ''}says {estimate_text(model.far)}"
    falls = abs(graph.far.value - prior) <= NEAR_PRIOR
    ends = ", the prior" if falls else f", and the prior is {value_text(model.far, prior)}"
    return (
        f"At radius {radius:g} the {name} {says}, "
        f"the kernel density version {estimate_text(graph.far)}{ends}; "
        f"{_errors_words(model.error, graph.error)}"
        f"{_truth_words(model.hellinger, graph.hellinger)}."
    )


def _errors_words(model: Estimate, graph: Estimate) -> str:
    both = f"error {estimate_text(graph)} against {estimate_text(model)}"
    if graph.value - model.value <= _CLOSE:
        return both
    clear = graph.low > model.high
    return f"{both}, {'clearly more' if clear else 'more, though within the intervals'}"


def _truth_words(model: Estimate, graph: Estimate) -> str:
    """A warning if confidence inside the data is lost, which the error does not show."""
    if graph.low <= model.high or graph.value < _FAR_OFF * model.value:
        return ""
    return (
        f". But inside the data it is far from the truth: Hellinger distance "
        f"{estimate_text(graph)} against {estimate_text(model)}"
    )


def maps_words(name: str, model: float, geodesic: float, euclidean: float) -> str:
    """On how much of the map outside the data each method is sure.

    Examples
    --------
    >>> maps_words("forest", 0.75, 0.06, 0.0)
    'Outside the data the forest claims more than 90% confidence on 75% of the map, its geodesic \
kernel density version on 6%, the Euclidean one on 0%.'
    """
    return (
        f"Outside the data the {name} claims more than 90% confidence on {model:.0%} of the map, "
        f"its geodesic kernel density version on {geodesic:.0%}, the Euclidean one on "
        f"{euclidean:.0%}."
    )


def maps_alt(name: str, title: str, words: str) -> str:
    """Alternative text of the maps."""
    return (
        f"{title}: the rows, and heat maps of the probability of class 1 over a plane twice as "
        f"wide as the data, by the true posterior, the {name} and its two kernel density "
        f"versions. {words}"
    )


def first_at_prior(curve: DistanceCurve, prior: float) -> float | None:
    """The radius beyond which the mean confidence stays within 0.02 of the prior, if any.

    Examples
    --------
    >>> radii, mean = np.array([0.0, 1.0, 2.0]), np.array([0.9, 0.51, 0.5])
    >>> first_at_prior(DistanceCurve(radii, mean, mean, mean, (25, 75), 10, 0), 0.5)
    1.0
    """
    off = np.flatnonzero(np.abs(curve.mean - prior) > NEAR_PRIOR)
    first = 0 if off.size == 0 else int(off[-1]) + 1
    return float(curve.radii[first]) if first < len(curve.radii) else None


def distance_words(name: str, model: DistanceCurve, graph: DistanceCurve, prior: float) -> str:
    """The radii beyond which model and kernel density version stay at the prior, if any."""
    ours, theirs = first_at_prior(graph, prior), first_at_prior(model, prior)
    last = model.radii[-1]
    said = f"within {NEAR_PRIOR:g} of the prior {prior:.2f}"
    if ours is None:
        mine = (
            f"At these settings the kernel density version does not stay {said} up to radius "
            f"{last:g}, where it says {graph.mean[-1]:.2f}"
        )
    else:
        mine = f"The kernel density version stays {said} from radius {ours:g} onwards"
    if theirs is None:
        return f"{mine}; the {name} says {model.mean[-1]:.2f} at radius {last:g}."
    return f"{mine}; the {name} from radius {theirs:g} onwards."


def distance_alt(labels: Sequence[str], curves: Sequence[DistanceCurve]) -> str:
    """Alternative text of confidence against distance."""
    ends = ", ".join(
        f"{label} from {curve.mean[0]:.2f} to {curve.mean[-1]:.2f}"
        for label, curve in zip(labels, curves, strict=True)
    )
    last = curves[0].radii[-1] if curves else 0.0
    return f"Mean max confidence from the centre to radius {last:g}: {ends}."


def measures_words(model: Mapping[str, Estimate], graph: Mapping[str, Estimate]) -> str:
    """The measures inside the data that the kernel density version worsens or improves."""
    named = {
        "error": "error",
        "hellinger": "Hellinger distance to the truth",
        "ece": "calibration error",
        "log_loss": "log loss",
    }
    lower = [word for key, word in named.items() if graph[key].high < model[key].low]
    higher = [word for key, word in named.items() if graph[key].low > model[key].high]
    if not lower and not higher:
        return (
            "Inside the data no measure of the kernel density version differs from the model's "
            "by more than the intervals."
        )
    parts = [
        f"{listed(words)} clearly {how}"
        for words, how in ((lower, "lower"), (higher, "higher"))
        if words
    ]
    return (
        "Inside the data, the kernel density version compared with the model: "
        f"{', '.join(parts)}; all other measures lie within the intervals."
    )


def lab_blend_words(blend: Blend | None) -> str:
    """The weights of model and class ratio inside the data.

    Examples
    --------
    >>> lab_blend_words(Blend(0.62, 0.3))
    'Weights by data: model 0.62, class ratio 0.30.'
    """
    if blend is None:
        return "The model's own probability is not used."
    return f"Weights by data: model {blend.model:.2f}, class ratio {blend.graph:.2f}."


def switch_words(distances: FloatArray) -> str:
    """Where the floor makes the result fall back to the prior, in units of the largest norm.

    Examples
    --------
    >>> switch_words(np.array([0.0034, 0.0034, 0.01]))
    'Half of the polytopes fall back to the prior within 0.0034 of their centre, all within 0.01.'
    """
    middle, most = float(np.median(distances)), float(np.max(distances))
    if most == 0.0:
        return "Every polytope lies below the floor even at its centre, so the result is the prior."
    if most - middle < 0.005 * most:
        return f"Every polytope falls back to the prior at most {most:.3g} from its centre."
    return (
        f"Half of the polytopes fall back to the prior within {middle:.3g} of their centre, all "
        f"within {most:.3g}."
    )
