"""How a fitted calibrator changes a score: lines over all scores, and a sample of real rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.calibration import Calibrator, calibrated
from kdcal_core.calibration.calibrator_base import TopLabelCalibrator, top_label
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.data import FloatArray, ScoredSet

Shape = Literal["event", "classes", "regions", "rows"]

MOST_LINES = 8
MOST_ROWS = 1000
POINTS = 401
_EDGE = 1e-4  # some maps jump at scores of exactly 0 and 1


@dataclass(frozen=True)
class MapLine:
    """The class or region (untrusted text) that one line of the map shows, and its rows."""

    name: str
    n: int


@dataclass(frozen=True, eq=False)
class CalibratorMap:
    """Calibrated probability against score.

    Attributes
    ----------
    shape : str
        What the lines show. "event": one of two classes; "classes": the confidence in predictions
        of each class; "regions": one of two classes in each region; "rows": there are no lines,
        because the output depends on more than one score.
    lines : tuple of MapLine
    n_lines : int
        Number of lines before the limit; those with most rows are kept.
    x : (G,) float64
        Scores of the lines.
    y : (L, G) float64
        Calibrated probabilities; NaN where a class would not be predicted.
    rows_x, rows_y : (m,) float64
        A sample of real rows.
    event : int
        Of two classes, the one whose probability is shown.
    """

    shape: Shape
    lines: tuple[MapLine, ...]
    n_lines: int
    x: FloatArray
    y: FloatArray
    rows_x: FloatArray
    rows_y: FloatArray
    event: int = 1


@dataclass(frozen=True, eq=False)
class _Lines:
    names: list[str]
    n: list[int]
    y: list[FloatArray]


def calibrator_map(
    calibrator: Calibrator,
    rows: ScoredSet,
    X: pd.DataFrame | None,
    *,
    seed: int,
    event: int | None = None,
) -> CalibratorMap:
    """The map of a fitted calibrator.

    With two classes a score is the probability of the event. With more it is the confidence
    in the predicted class; a calibrator that also uses the other classes' probabilities then has
    no lines.

    Parameters
    ----------
    rows : ScoredSet
        Rows to show as points, at most 1,000 of them.
    X : DataFrame or None
        Their features, for a calibrator that uses them.
    event : int, optional
        The event, of two classes; by default the second one.
    """
    asked = 1 if event is None else event
    n_classes = len(rows.classes)
    x = np.linspace(_EDGE, 1.0 - _EDGE, POINTS)
    shape: Shape = "rows"
    lines = _Lines([], [], [])
    if isinstance(calibrator, HeterogeneousCalibrator):
        if n_classes == 2 and len(calibrator.layers_) == 1 and X is not None:
            shape, lines = "regions", _of_regions(calibrator, _of_two(x, asked), X, asked)
    elif not calibrator.needs_inputs:
        if n_classes == 2:
            shape = "event"
            y = calibrated(calibrator, _of_two(x, asked)).proba[:, asked]
            lines = _Lines([rows.classes[asked]], [rows.n_rows], [y])
        elif isinstance(calibrator, TopLabelCalibrator) and calibrator.follows_score:
            shape, lines = "classes", _of_classes(calibrator, x, rows)
    kept = np.argsort(-np.asarray(lines.n, dtype=np.int64), kind="stable")[:MOST_LINES]
    drawn = np.random.default_rng(seed).permutation(rows.n_rows)[:MOST_ROWS]
    proba = rows.proba[drawn]
    found = calibrated(calibrator, proba, None if X is None else X.iloc[drawn]).proba
    at = np.full(len(drawn), asked) if n_classes == 2 else top_label(proba)[0]
    each = np.arange(len(drawn))
    return CalibratorMap(
        shape,
        tuple(MapLine(lines.names[i], lines.n[i]) for i in kept),
        len(lines.n),
        x,
        np.array([lines.y[i] for i in kept]).reshape(len(kept), POINTS),
        proba[each, at],
        found[each, at],
        asked,
    )


def _of_two(x: FloatArray, event: int) -> FloatArray:
    """Probabilities of two classes, of which the event has these."""
    proba = np.column_stack([1.0 - x, x])
    return proba if event == 1 else proba[:, ::-1]


def _of_classes(calibrator: Calibrator, x: FloatArray, rows: ScoredSet) -> _Lines:
    n_classes = len(rows.classes)
    predicted = np.bincount(top_label(rows.proba)[0], minlength=n_classes)
    seen = np.flatnonzero(predicted)
    seen = seen[np.argsort(-predicted[seen], kind="stable")]
    lines = _Lines([rows.classes[i] for i in seen], [int(predicted[i]) for i in seen], [])
    for label in seen[:MOST_LINES]:
        proba = np.repeat(((1.0 - x) / (n_classes - 1))[:, None], n_classes, axis=1)
        proba[:, label] = x
        found = calibrated(calibrator, proba).proba[:, label]
        lines.y.append(np.where(x > 1.0 / n_classes, found, np.nan))
    return lines


def _of_regions(
    calibrator: HeterogeneousCalibrator, proba: FloatArray, X: pd.DataFrame, event: int
) -> _Lines:
    layer = calibrator.layers_[0]
    columns = list(calibrator.columns_)
    names = {str(name): name for name in X.columns}
    leaf = layer.partition.apply(X[[names[one] for one in columns]])
    count = np.bincount(leaf, minlength=layer.partition.n_leaves)
    regions = range(layer.partition.n_leaves)
    return _Lines(
        [layer.partition.words(i) for i in regions],
        [int(count[i]) for i in regions],
        [layer.maps.predict(proba, np.full(POINTS, i, dtype=np.int64))[:, event] for i in regions],
    )
