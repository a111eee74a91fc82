"""What stands in words beside the charts of foreign rows: findings and alternative texts.

The sentences hold names as they came from files: escape them on the way to a screen.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kdcal_core.calibration.graph import Selection
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import (
    SURE,
    DistanceCurve,
    Estimate,
    LogDensities,
    Surest,
    estimate_text,
)
from kdcal_core.text import counted

NEAR = 0.02  # a confidence this close to the prior counts as the prior
MOST_UNKNOWN = 0.95
_HELD_TENTHS = 3
_DURATIONS = (
    (5_000, "a few seconds"),
    (30_000, "less than a minute"),
    (120_000, "some minutes"),
)


def fit_offer(n_training: int | None, n_calibration: int) -> str:
    """What fitting the kernel density version does, on how many rows, and how long about.

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
        f"{source} and chooses its settings on {last}. It takes {_duration(n_fit + held)}; the "
        "rest of the app stays usable meanwhile, and the result is kept."
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

    "Far" is ten times as far as the farthest ordinary row, or whatever the last radius is. The
    version counts as fallen to the prior from where :func:`reaches_prior` finds it there.
    ``unknown`` is the share of the rows on each sphere whose density lies below the version's
    floor, (R,).
    """
    said = _fall_words(model, graph, prior)
    return said if unknown is None else f"{said} {_unknown_words(model.radii, unknown)}"


def _unknown_words(radii: FloatArray, unknown: FloatArray) -> str:
    less = np.flatnonzero(unknown < MOST_UNKNOWN)
    first = int(less[-1]) + 1 if less.size else 0
    if first == len(radii):
        return f"By its density it counts {unknown[-1]:.0%} of the rows there as unknown."
    since = f"from radius {radii[first]:g} on" if first else "at every distance"
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
    word = "comes"
    if graph.mean.max() > prior + NEAR:
        word = "falls"
    elif graph.mean.min() < prior - NEAR:
        word = "rises"
    same = f"{last:.2f}" == f"{prior:.2f}"
    there = f"{last:.2f}, {'the prior' if same else f'about the prior of {prior:.2f}'},"
    since = f"from radius {radius:g} on" if radius < graph.radii[-1] else "only there"
    return f"{sentence}; {version} {word} to {there} {since}."


def reaches_prior(curve: DistanceCurve, prior: float) -> float | None:
    """The radius from which on confidence stays within 0.02 of the prior, if it does.

    Mean and band both have to: where some rows are answered surely and others not at all, the
    mean may pass through the prior while hardly a row has it.

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
    """How sure the model is of one set of foreign rows, and its kernel density version.

    ``model`` and ``graph`` are mean max confidences, ``n_unknown`` the rows below the floor.
    """
    sentence = f"{name}: the model says {model.value:.2f} on average"
    if graph is None or n_unknown is None:
        return f"{sentence}; the prior is {prior:.2f} ({counted(model.n, 'row')})."
    return (
        f"{sentence}, the kernel density version {graph.value:.2f}, the prior is {prior:.2f}; "
        f"{n_unknown:,} of {counted(model.n, 'row')} count as unknown."
    )


def by_confidence_words(density: Estimate, confidence: Estimate, prior: float) -> str:
    """Why foreign rows are ranked by density, with what the confidence would give."""
    return (
        "AUROC and FPR@95 of the kernel density version rank rows by density, and the AUROC is "
        f"{estimate_text(density)}. By confidence it would be {estimate_text(confidence)}: far "
        f"from the data the confidence falls back to the largest class prior, {prior:.0%} here, "
        "which misleads where one class is frequent."
    )


def confidence_only_words(prior: float) -> str:
    """What the score of a model without a density is worth.

    Examples
    --------
    >>> confidence_only_words(0.9)[:75]
    'This model has no density, so rows can be ranked by its confidence alone. T'
    """
    return (
        "This model has no density, so rows can be ranked by its confidence alone. That misleads "
        "where one class is frequent: even the most cautious answer, the class shares, has a "
        f"confidence of {prior:.0%} here."
    )


def made_words(kind: str, beyond: tuple[str, float, float] | None) -> str:
    """What rows on a sphere, or shifted ones, are. Untrusted text: a column is named.

    Parameters
    ----------
    kind : {"sphere", "shifted"}
    beyond : (column, its least value among these rows, its least value in the data), or None

    Examples
    --------
    >>> made_words("shifted", ("age", -260.0, 17.0))
    "Such rows cannot occur: 'age' goes down to -260 here, and never below 17 in the data."
    """
    what = (
        "These are points on a sphere in standardised units, as in the papers, to see the model's "
        "answers in every direction."
        if kind == "sphere"
        else ""
    )
    if beyond is not None:
        column, least, low = beyond
        what += (
            f" Such rows cannot occur: {column[:60]!r} goes down to {least:.3g} here, and never "
            f"below {low:.3g} in the data."
        )
    return what.strip()


def distance_alt(curves: Mapping[str, DistanceCurve], prior: float) -> str:
    """Alternative text: each line at the centre, where the data end, and far away."""
    lines = "; ".join(
        f"{label} "
        + ", ".join(f"{curve.mean[at]:.2f} at {curve.radii[at]:g}" for at in _told(curve.radii))
        for label, curve in curves.items()
    )
    return (
        f"Mean max confidence against distance, where the data end at 1: {lines}. "
        f"Prior {prior:.2f}."
    )


def _told(radii: FloatArray) -> list[int]:
    ends = int(np.argmin(np.abs(radii - 1.0)))
    return sorted({0, ends, len(radii) - 1})


def density_words(share: Estimate, name: str, n_unknown: int, n: int, alpha: float) -> str:
    """How many ordinary and foreign rows lie below the floor."""
    return (
        f"With alpha at {100 * alpha:.3g}% the floor leaves {share.value:.1%} of {share.n:,} "
        f"ordinary rows below it, and {n_unknown:,} of {counted(n, 'row')} "
        f"({n_unknown / max(n, 1):.0%}) of “{name}”."
    )


def blend_words(model: float, graph: float) -> str:
    """What has how much say among the data: the model, and the regions' class shares.

    Examples
    --------
    >>> blend_words(0.5, 1.0)[:68]
    "Among the data two answers are blended: the model's own, with weight"
    """
    return (
        f"Among the data two answers are blended: the model's own, with weight {model:.2f}, and "
        f"the class shares of the row's region, with weight {graph:.2f}. These weights have the "
        "least held-out log loss; weights 1 and 0 would be the model itself."
    )


def ties_words(n_ordinary: int, n_foreign: int) -> str:
    """For how many rows the nearest region was not the only one (decision D7); empty for none.

    Examples
    --------
    >>> ties_words(0, 3)
    'Several regions were equally near for 3 foreign rows: there the nearest centre decided.'
    """
    told = [
        f"{counted(n, f'{kind} row')}"
        for n, kind in ((n_ordinary, "ordinary"), (n_foreign, "foreign"))
        if n
    ]
    if not told:
        return ""
    return (
        f"Several regions were equally near for {' and '.join(told)}: there the nearest centre "
        "decided."
    )


def density_alt(found: LogDensities) -> str:
    """Alternative text: the middle log density of each kind of rows, and the floor."""
    medians = " ".join(
        f"{one.name}: median {one.median:.4g}." for one in (found.ordinary, *found.foreign)
    )
    return f"Log densities. {medians} Floor: {found.floor:.4g}."


def surest_words(name: str, surest: Surest, predicted: str) -> str:
    """How many rows are answered with much confidence, and which is the surest.

    ``predicted`` is the class predicted for the surest row.

    Examples
    --------
    >>> one = Surest.of(np.array([0.6, 0.95]), np.array([1, 0]))
    >>> surest_words("Ring", one, "a")[:52]
    'The model answers 1 of 2 rows of “Ring” with more th'
    """
    sentence = (
        f"The model answers {surest.n_sure:,} of {counted(surest.n, 'row')} of “{name}” with more "
        f"than {SURE:.0%} confidence; the surest is row {surest.row + 1:,}, with "
        f"{surest.said:.1%} for class {predicted}."
    )
    if surest.n_version_sure is None:
        return sentence
    as_sure = surest.n_version_sure
    return (
        f"{sentence} The kernel density version is that sure of "
        f"{f'{as_sure:,}' if as_sure else 'none'} of them, and says {surest.version_said:.1%} for "
        "that row."
    )


def selection_words(selection: Selection) -> str:
    """Which exponent is in force, and the held-out log loss of others."""
    chosen, best = selection.chosen, selection.best
    loss = selection.log_loss
    if selection.n == 0:
        return (
            f"No rows are held out, so the exponent, {selection.exponents[chosen]:.3g}, could not "
            "be chosen from them."
        )
    sentence = (
        f"The exponent in force is {selection.exponents[chosen]:.3g}: held-out log loss "
        f"{loss[chosen]:.3f} on {counted(selection.n, 'row')}"
    )
    if loss[chosen] - loss[best] < 5e-4:
        worst = int(np.argmax(loss))
        return (
            f"{sentence}, the least of {len(loss)}; the largest is {loss[worst]:.3f}, at "
            f"exponent {selection.exponents[worst]:.3g}."
        )
    return (
        f"{sentence}. The least is {loss[best]:.3f}, at exponent {selection.exponents[best]:.3g}."
    )


def inside_words(model: tuple[Estimate, ...], graph: tuple[Estimate, ...]) -> str:
    """What the kernel density version costs or gains on ordinary rows, by their tiles."""
    told = [
        f"{one.label.lower() if one.label == 'Accuracy' else one.label} {estimate_text(other)} "
        f"instead of {estimate_text(one)}"
        for one, other in zip(model, graph, strict=True)
        if one.label in ("Accuracy", "ECE")
    ]
    return f"On ordinary rows the kernel density version has {', and '.join(told)}."
