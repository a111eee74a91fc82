"""The simulation lab's finding, takeaways and alternative texts, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration.graph.blend import Blend
from kdcal_core.data.types import FloatArray
from kdcal_core.diagnostics import DistanceCurve, Estimate
from kdcal_core.text import listed, number_text

NEAR_PRIOR = 0.02  # confidence counts as the prior within this
_CLOSE = 0.01  # an error counts as kept within this
_FAR_OFF = 1.5  # times the model's distance to the truth count as lost


@dataclass(frozen=True)
class Compared:
    """A method's confidence far away, its error and its distance to the truth."""

    far: Estimate
    error: Estimate
    hellinger: Estimate


def lab_finding(name: str, model: Compared, graph: Compared, *, radius: float, prior: float) -> str:
    """What model and kernel density version say far from the data, and what that costs inside.

    Parameters
    ----------
    name : str
        "forest" or "network".
    prior : float
        Of the most frequent class: what confidence should be where nothing was ever seen.

    Examples
    --------
    >>> def number(value): return Estimate("", "", value, value - 0.01, value + 0.01, 2000)
    >>> lab_finding("forest", Compared(number(0.9), number(0.061), number(0.09)),
    ...             Compared(number(0.5), number(0.060), number(0.08)), radius=2.0, prior=0.5)
    'At radius 2 the forest still says 0.90, the kernel density version 0.50, the prior; error \
0.060 against 0.061.'
    """
    stays = model.far.value - prior > NEAR_PRIOR
    says = f"At radius {radius:g} the {name} {'still ' if stays else ''}says {model.far.value:.2f}"
    falls = abs(graph.far.value - prior) <= NEAR_PRIOR
    ends = ", the prior" if falls else f", and the prior is {prior:.2f}"
    return (
        f"{says}, the kernel density version {graph.far.value:.2f}{ends}; "
        f"{_errors_words(model.error, graph.error)}"
        f"{_truth_words(model.hellinger, graph.hellinger)}."
    )


def _errors_words(model: Estimate, graph: Estimate) -> str:
    width = max(graph.high - graph.low, model.high - model.low)
    both = f"error {number_text(graph.value, width)} against {number_text(model.value, width)}"
    if graph.value - model.value <= _CLOSE:
        return both
    clear = graph.low > model.high
    return f"{both}, {'clearly more' if clear else 'more, though within the intervals'}"


def _truth_words(model: Estimate, graph: Estimate) -> str:
    """Said only where confidence among the data is lost, which the error does not tell."""
    if graph.low <= model.high or graph.value < _FAR_OFF * model.value:
        return ""
    return (
        f". But among the data it has left the truth (Hellinger distance {graph.value:.2f} "
        f"against {model.value:.2f})"
    )


def maps_words(name: str, model: float, geodesic: float, euclidean: float) -> str:
    """How much of the map outside the data each method is sure of.

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
    """The radius from which on the mean confidence stays within 0.02 of the prior, if any.

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
    """From which radius on model and kernel density version know that they know nothing."""
    ours, theirs = first_at_prior(graph, prior), first_at_prior(model, prior)
    last = model.radii[-1]
    said = f"within {NEAR_PRIOR:g} of the prior {prior:.2f}"
    if ours is None:
        mine = (
            f"At these settings the kernel density version does not stay {said} up to radius "
            f"{last:g}, where it says {graph.mean[-1]:.2f}"
        )
    else:
        mine = f"The kernel density version stays {said} from radius {ours:g} on"
    if theirs is None:
        return f"{mine}; the {name} says {model.mean[-1]:.2f} at radius {last:g}."
    return f"{mine}; the {name} from radius {theirs:g} on."


def distance_alt(labels: Sequence[str], curves: Sequence[DistanceCurve]) -> str:
    """Alternative text of confidence against distance."""
    ends = ", ".join(
        f"{label} from {curve.mean[0]:.2f} to {curve.mean[-1]:.2f}"
        for label, curve in zip(labels, curves, strict=True)
    )
    last = curves[0].radii[-1] if curves else 0.0
    return f"Mean max confidence from the centre to radius {last:g}: {ends}."


def measures_words(model: Mapping[str, Estimate], graph: Mapping[str, Estimate]) -> str:
    """Which measures inside the data the kernel density version worsens or betters, if any."""
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
        "Inside the data, of the kernel density version beside the model: "
        f"{', '.join(parts)}; what is not named lies within the intervals."
    )


def measures_alt(labels: Sequence[str], errors: Sequence[Estimate]) -> str:
    """Alternative text of the measures: the error of each method."""
    values = ", ".join(
        f"{label} {each.value:.3f}" for label, each in zip(labels, errors, strict=True)
    )
    return f"Measures of each method with their intervals. Error: {values}."


def sizes_words(
    name: str,
    rows: int,
    repetitions: int,
    model: Mapping[str, float],
    graph: Mapping[str, float],
) -> str:
    """Medians of model and kernel density version at the largest size.

    ``model`` and ``graph`` hold "error", "hellinger" and "confidence".

    Examples
    --------
    >>> sizes_words("forest", 3162, 5, {"error": 0.051, "hellinger": 0.08, "confidence": 0.9},
    ...             {"error": 0.052, "hellinger": 0.07, "confidence": 0.5})
    'With 3,162 rows (median of 5 runs) the kernel density version has an error of 0.052 where \
the forest has 0.051, a Hellinger distance of 0.070 where it has 0.080, and says 0.50 at radius 2 \
where it says 0.90.'
    """
    return (
        f"With {rows:,} rows (median of {repetitions:,} runs) the kernel density version has an "
        f"error of {graph['error']:.3f} where the {name} has {model['error']:.3f}, a Hellinger "
        f"distance of {graph['hellinger']:.3f} where it has {model['hellinger']:.3f}, and says "
        f"{graph['confidence']:.2f} at radius 2 where it says {model['confidence']:.2f}."
    )


def blend_words(blend: Blend | None) -> str:
    """How much model and class ratio count among the data.

    Examples
    --------
    >>> blend_words(Blend(0.62, 0.3))
    'Weights by data: model 0.62, class ratio 0.30.'
    """
    if blend is None:
        return "The model's opinion does not count."
    return f"Weights by data: model {blend.model:.2f}, class ratio {blend.graph:.2f}."


def switch_words(distances: FloatArray) -> str:
    """Where the floor hands over to the prior, in units of the data's largest norm.

    Examples
    --------
    >>> switch_words(np.array([0.0034, 0.0034, 0.01]))
    'Half of the polytopes hand over to the prior within 0.0034 of their centre, all within 0.01.'
    """
    middle, most = float(np.median(distances)), float(np.max(distances))
    if most == 0.0:
        return "Every polytope lies below the floor even at its centre: the prior answers always."
    if most - middle < 0.005 * most:
        return f"Every polytope hands over to the prior at {most:.3g} from its centre, or nearer."
    return (
        f"Half of the polytopes hand over to the prior within {middle:.3g} of their centre, all "
        f"within {most:.3g}."
    )
