"""Findings and descriptions of posterior maps, and of the rows in a box on them.

Feature and class names are not escaped: escape them before they reach a screen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.diagnostics import Estimate, estimate_text, interval_text, value_text
from kdcal_core.text import formatted

SURE = 0.9
VERY_FEW, FEW = 20, 100  # the same limits as for pale points in the reliability diagram
_NAMED = 6
_STEADY = 5  # with fewer held-out rows below it, the floor depends on single rows

Cells = NDArray[np.bool_]


def map_finding(
    model: FloatArray, kernel_density: FloatArray | None, outside: Cells, prior: float
) -> str:
    """On how much of the area outside the data model and version are more than 90% confident.

    Outside means unlike the data in all features, by the density, as on the page Out of
    distribution; the box of the rows says nothing about features that are not drawn. There the
    prior has at least half of the weight in the kernel density version. Without a version there is
    no density, and outside is beyond the range of the data along the two axes.

    Parameters
    ----------
    model, kernel_density : (n_y, n_x)
        Confidence on the grid; None without a kernel density version.
    outside : (n_y, n_x) bool
        Cells that the version counts as unknown; without one, those beyond the data's range.
    prior : float
        The largest class prior, which is the confidence without any knowledge of the row.

    Examples
    --------
    >>> outside = np.array([[True, True], [True, False]])
    >>> sure = np.array([[0.95, 0.92], [0.6, 0.99]])
    >>> map_finding(sure, np.full((2, 2), 0.5), outside, 0.5)
    'Where points are unlike the data (75% of the map, by density) the model is more than 90% sure
     on 67% of the area (82% on average), its kernel density version on none of it (50% on average;
     the prior is 50%).'
    """
    if kernel_density is None:
        return (
            "Beyond the range of the data along these two axes the model is more than 90% sure on "
            f"{_share(model[outside])} of the area ({model[outside].mean():.0%} on average)."
        )
    if not outside.any():
        return (
            "By density no point of this map is unlike the data: the model is more than 90% sure "
            f"on {_share(model)} of it, its kernel density version on {_share(kernel_density)}."
        )
    sentence = (
        f"Where points are unlike the data ({_share_of_map(outside)}, by density) the model "
        f"is more than 90% sure on {_share(model[outside])} of the area "
        f"({model[outside].mean():.0%} on average)"
    )
    other = kernel_density[outside]
    ending = ", which is more than 90% itself" if prior > SURE else ""
    return (
        f"{sentence}, its kernel density version on {_share(other, follows=True)} "
        f"({other.mean():.0%} on average; the prior is {prior:.0%}{ending})."
    )


def slice_words(outside: Cells, beyond: Cells, n_others: int) -> str:
    """How much of the area beyond the rows' range still counts as like the data, and why.

    Parameters
    ----------
    outside : (n_y, n_x) bool
        Cells that the kernel density version counts as unknown.
    beyond : (n_y, n_x) bool
        Cells beyond the range of the data along the two axes.
    n_others : int
        Directions that are not drawn.

    Examples
    --------
    >>> cells = np.array([[True, False]])
    >>> slice_words(cells, np.array([[True, True]]), 62)
    'Beyond the dashed box 50% of the area still counts as like the data: the map is a slice that
     stays within the data in the other 62 directions. The page Out of distribution shows rows that
     leave the data in every direction at once; they may count as unknown sooner.'
    """
    known = float((~outside)[beyond].mean()) if beyond.any() else 0.0
    if not n_others or not known:
        return ""
    directions = "direction" if n_others == 1 else f"{n_others:,} directions"
    share = "all" if known == 1.0 else _part(known)
    return (
        f"Beyond the dashed box {share} of the area still counts as like the data: the map is a "
        f"slice that stays within the data in the other {directions}. The page Out of "
        "distribution shows rows that leave the data in every direction at once; they may count "
        "as unknown sooner."
    )


def map_alt(
    x_name: str,
    y_name: str,
    shown: str,
    panels: Sequence[tuple[str, FloatArray]],
    outside: Cells,
    *,
    rows: bool = True,
) -> str:
    """Alternative text of the maps: their quantity, and its mean inside and outside the data."""
    means = "; ".join(
        f"{title} {values[~outside].mean():.0%} inside the data's range, "
        f"{values[outside].mean():.0%} outside"
        for title, values in panels
    )
    return (
        f"Heat maps of {shown} over {x_name} and {y_name}, up to twice the range of the data"
        f"{', beside the rows' * rows}. On average: {means}."
    )


def held_words(n_others: int, row: int | None) -> str:
    """The fixed values of the features that are not drawn; empty if there are none.

    Examples
    --------
    >>> held_words(28, None)
    'The other 28 features are fixed at their medians and most frequent values. Rows are drawn by
     the two features shown, whatever their other values are.'
    """
    if n_others == 0:
        return ""
    others = "The other feature is" if n_others == 1 else f"The other {n_others:,} features are"
    own = "its median or most frequent value"
    typical = own if n_others == 1 else "their medians and most frequent values"
    at = typical if row is None else f"the values of row {row + 1:,}"
    return (
        f"{others} fixed at {at}. Rows are drawn by the two features shown, "
        "whatever their other values are."
    )


def _steps(features: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {formatted(step, '+.3g')}" for name, step in features)


def axes_words(
    explained: Sequence[float], strongest: Sequence[Sequence[tuple[str, float]]]
) -> tuple[str, ...]:
    """A sentence for each principal axis: its share of variance and what one step changes.

    Examples
    --------
    >>> axes_words([0.47], [[("age", 5.1), ("gain", -340.2)]])
    ('Axis 1 carries 47% of the variance; one step along it changes most: age +5.1, gain −340.',)
    """
    return tuple(
        f"Axis {at} carries {share:.0%} of the variance; one step along it changes most: "
        f"{_steps(features)}."
        for at, (share, features) in enumerate(zip(explained, strongest, strict=True), start=1)
    )


def floor_words(alpha: float, n_holdout: int) -> str:
    """How many held-out rows lie below the floor, with a warning if single rows decide.

    Examples
    --------
    >>> floor_words(0.01, 999)
    'Of 999 held-out rows 9 lie below the floor.'
    >>> floor_words(0.01, 185)
    'Of 185 held-out rows none lies below the floor: a single outlier among them can keep the
     version sure far away; a larger alpha is more stable.'
    """
    rank = max(1, int(np.floor(alpha * (n_holdout + 1) + 1e-9)))  # the row that sets the floor
    below = f"{rank - 1:,} {'lies' if rank == 2 else 'lie'}" if rank > 1 else "none lies"
    words = f"Of {n_holdout:,} held-out rows {below} below the floor"
    if rank >= _STEADY:
        return f"{words}."
    return (
        f"{words}: a single outlier among them can keep the version sure far away; a larger alpha "
        "is more stable."
    )


def box_finding(
    n_inside: int,
    n_all: int,
    model: tuple[Estimate, Estimate] | None,
    kernel_density: tuple[Estimate, Estimate] | None,
) -> str:
    """The number of rows in a box, and the accuracy and confidence of each model there.

    Parameters
    ----------
    n_inside, n_all : int
        Rows in the box, and in the whole set.
    model, kernel_density : pair of Estimate, optional
        Accuracy and mean confidence of the rows inside.
    """
    if n_inside == 0 or model is None:
        return (
            f"None of the {n_all:,} rows lies in the box. Nothing can be measured there, and the "
            "maps show only extrapolation."
        )
    rows = f"{n_inside:,} of {n_all:,} rows {'lies' if n_inside == 1 else 'lie'} in the box"
    if n_inside < VERY_FEW:
        right, _ = model
        return (
            f"{rows}, too few to judge: the model is right in {_of(right, n_inside)} of them, "
            f"and its true accuracy here may be anything from {interval_text(right)}."
        )
    said = (
        f"the model is right in {value_text(model[0])} of them ({interval_text(model[0])}) and "
        f"says {estimate_text(model[1])}"
    )
    if kernel_density is not None:
        right, sure = kernel_density
        said += (
            f"; its kernel density version is right in {estimate_text(right)} and says "
            f"{estimate_text(sure)}"
        )
    few = " With so few rows the intervals are wide." if n_inside < FEW else ""
    return f"{rows}: {said}.{few}"


def mix_words(count: IntArray, classes: Sequence[str]) -> str:
    """The classes of rows with their shares, the most frequent first.

    ``count`` is the number of rows of each class, (K,).

    Examples
    --------
    >>> mix_words(np.array([1, 3]), ("cat", "dog"))
    'dog: 3 (75%), cat: 1 (25%)'
    """
    order = [int(at) for at in np.argsort(-count, kind="stable") if count[at]]
    named = [f"{classes[at]}: {count[at]:,} ({count[at] / count.sum():.0%})" for at in order]
    rest = len(named) - _NAMED
    if rest > 1:
        named = [*named[:_NAMED], f"{rest} further classes: {count[order[_NAMED:]].sum():,}"]
    return ", ".join(named)


def _share(confidence: FloatArray, *, follows: bool = False) -> str:
    share = float(np.mean(confidence > SURE)) if confidence.size else 0.0
    if share in (0.0, 1.0):
        return ("none of it", "all of it")[int(share)] if follows else ("none", "all")[int(share)]
    return _part(share)


def _share_of_map(cells: Cells) -> str:
    return "all of the map" if cells.all() else f"{_part(float(cells.mean()))} of the map"


def _part(share: float) -> str:
    """A share as text, which rounds to 0% or 100% only if it is exactly 0 or 1."""
    return "less than 1%" if share < 0.01 else f"{min(share, 0.99):.0%}"


def _of(right: Estimate, n: int) -> str:
    return f"{round(right.value * n):,}"
