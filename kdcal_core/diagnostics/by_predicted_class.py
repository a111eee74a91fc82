"""Measures by predicted class: confusion matrices, losses of methods, the histogram under a curve.

There are three matrices: the joint, the confusion and the reverse confusion matrix.

Salamon et al., *Estimating Classification Confidence Using Kernel Densities*,
https://arxiv.org/abs/2207.06529
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import binom, hypergeom

from kdcal_core.calibration.calibrator_base import top_label
from kdcal_core.data import (
    FloatArray,
    IntArray,
    as_pandas,
    check_classes,
    check_proba,
    check_rows,
    check_weight,
)
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.data.splits import stratified_folds
from kdcal_core.diagnostics.estimate import LEAST_ROWS
from kdcal_core.diagnostics.targets import targets
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    bin_dependence,
    clopper_pearson,
    dependence_of,
    mean_interval,
    normal_quantile,
    of_rows,
    t_quantile_of_rows,
    top_label_brier_losses,
    top_label_log_losses,
)
from kdcal_core.text import number_text


@dataclass(frozen=True, eq=False)
class Confusion:
    """Salamon et al., Fig. 1: counts, and their two normalisations. Rows true, columns predicted.

    ``joint`` is (K, K) counts (sums of weights). ``confusion`` is normalised by row (true class),
    ``reverse`` by column (predicted class); the diagonal of ``reverse`` is Conf1, Eq. 1. A class
    without rows gives NaN. ``effective`` (K,) is Kish's effective number of rows of each predicted
    class; None if rows have no weights.
    """

    joint: FloatArray
    confusion: FloatArray
    reverse: FloatArray
    effective: FloatArray | None = None

    @property
    def counts_rows(self) -> bool:
        """Whether ``joint`` holds numbers of rows, and not sums of weights that are no counts."""
        return self.effective is None or bool(np.allclose(self.joint, np.rint(self.joint)))


def confusion(
    proba_or_pred: Any, y: Any, n_classes: int | None = None, sample_weight: Any = None
) -> Confusion:
    """Counts of true (rows) against predicted class (columns); Salamon et al., Fig. 1.

    The reverse confusion matrix divides each column by its sum; its diagonal is the share of a
    class's predictions that are right, Conf1 (Salamon et al., Eq. 1).

    Parameters
    ----------
    proba_or_pred : (n, K) probabilities or (n,) predicted classes
        Probabilities as for :func:`kdcal_core.diagnostics.reliability`, of which a single column
        is that of the second of two classes. Predicted classes are names, or numbers from 0.
    y : (n,) true classes
        Names or numbers, as the predicted ones. Names are sorted as `numpy.unique` does.
    n_classes : int, optional
        K. By default the number of columns of the probabilities, or, for predicted classes, as many
        as there are names, or the largest number plus one.
    sample_weight : (n,) array, optional

    Raises
    ------
    InputError
        If the arrays do not have this form; the message names the row.

    Examples
    --------
    >>> result = confusion([0, 0, 1, 1], [0, 1, 1, 1], 2)
    >>> result.joint.tolist(), result.reverse.diagonal().tolist()
    ([[1.0, 0.0], [1.0, 2.0]], [0.5, 1.0])
    """
    predicted, y, n_classes = _predicted(proba_or_pred, y, n_classes)
    weight = check_weight(sample_weight, len(predicted))
    joint = bin_sums(y * n_classes + predicted, n_classes**2, weight)
    joint = joint.reshape(n_classes, n_classes)
    if sample_weight is None:
        return confusion_of(joint)
    square = bin_sums(predicted, n_classes, weight**2)
    rows = joint.sum(axis=0) ** 2 / np.where(square > 0.0, square, 1.0)
    if (together := dependence_of(sample_weight)) is not None:
        share = joint.diagonal() / np.maximum(joint.sum(axis=0), 1e-300)
        away = (predicted == y) - share[predicted]
        rows = rows / bin_dependence(away, weight, predicted, n_classes, together).effect
    return confusion_of(joint, rows)


def confusion_of(joint: FloatArray, effective: FloatArray | None = None) -> Confusion:
    """The three tables of counts (K, K) that are known already."""
    with np.errstate(invalid="ignore", divide="ignore"):
        by_row = joint / joint.sum(axis=1, keepdims=True)
        by_column = joint / joint.sum(axis=0, keepdims=True)
    return Confusion(joint, by_row, by_column, effective)


def confusion_finding(
    result: Confusion, class_names: Sequence[str] | None = None, level: float = 0.95
) -> str:
    """The predicted class that is right less often than the others, if chance does not explain it.

    Every class with ten predictions or more is compared with all others by Fisher's one-sided
    exact test, corrected for the number of classes tested (Bonferroni). Where rarer classes are
    predicted too, the sentence speaks only of those tested. It also names the true class of most
    errors, if equal shares do not explain it at the same level. With row weights the tests use
    Kish's effective number of predictions, and for dependent rows that number over their design
    effect.

    Examples
    --------
    >>> from kdcal_core.diagnostics import confusion
    >>> predicted, true = [0] * 40 + [1] * 40, [0] * 20 + [1] * 60
    >>> confusion_finding(confusion(predicted, true, 2), ("cat", "dog"))
    'A prediction of class cat is right 50% of the time (34% to 66%; 20 of 40), the others 100% \
(91% to 100%).'
    >>> confusion_finding(confusion([0, 0, 0, 1], [0, 1, 1, 1], 2), ("cat", "dog"))
    'No class predicted for 10 rows or more is right less often than the others beyond chance; of \
all 4 predictions 50% are right (7% to 93%).'
    """
    total, right = result.joint.sum(axis=0), result.joint.diagonal()
    whole, hits = float(total.sum()), float(right.sum())
    if hits >= whole:
        count = f" {whole:,.0f}" if result.counts_rows else ""
        return f"All{count} predictions are right."
    names = [f"class {name}" for name in class_names or range(len(total))]
    predicted = np.flatnonzero(total > 0)
    share = total if result.effective is None else result.effective
    rows = np.rint(np.where(total > 0, share, 0.0))
    correct = np.rint(rows * np.nan_to_num(result.reverse.diagonal()))
    looked = np.flatnonzero(rows >= LEAST_ROWS)
    # probability of this few right rows in the class if right and wrong rows were mixed at random
    p = np.asarray(hypergeom.cdf(correct[looked], rows.sum(), correct.sum(), rows[looked]))
    worst = int(looked[np.argmin(p)]) if len(looked) else int(predicted[0])
    if len(predicted) == 1 or p.min(initial=1.0) * max(len(looked), 1) >= 1.0 - level:
        rate, between = _share_words(hits / whole, rows.sum(), level)
        compared = "predicted class"
        if len(looked) < len(predicted):
            compared = f"class predicted for {LEAST_ROWS} rows or more"
        lead = (
            f"All predictions are of {names[worst]}"
            if len(predicted) == 1
            else f"No {compared} is right less often than the others beyond chance"
        )
        are = f"{rate} are right ({between})"
        every = f"{whole:,.0f} predictions" if result.counts_rows else "predictions by weight"
        return f"{lead}; of all {every} {are}."
    mine = _share_words(right[worst] / total[worst], rows[worst], level)
    others = (hits - right[worst]) / (whole - total[worst])
    beside = _share_words(others, rows.sum() - rows[worst], level)
    counts = f"{right[worst]:,.0f} of {total[worst]:,.0f}"
    counts = counts if result.counts_rows else "by weight"
    return (
        f"A prediction of {names[worst]} is right {mine[0]} of the time ({mine[1]}; "
        f"{counts}), the others {beside[0]} ({beside[1]})"
        f"{_taken_for(result.joint[:, worst], worst, names, level)}."
    )


def _share_words(share: float, rows: float, level: float) -> tuple[str, str]:
    """A share of so many effective rows, and its interval."""
    low, high = (float(end) for end in clopper_pearson(share, rows, level))
    width = high - low
    ends = (number_text(one, width, True) for one in (low, high))
    return number_text(float(share), width, True), " to ".join(ends)


def _taken_for(column: FloatArray, worst: int, names: Sequence[str], level: float) -> str:
    """The true class of most errors of a prediction, if chance does not explain it."""
    errors = column.copy()
    errors[worst] = 0.0
    most, wrong, choices = int(np.argmax(errors)), float(errors.sum()), len(errors) - 1
    if choices < 2:
        return ""
    p = binom.sf(np.rint(errors[most]) - 1.0, np.rint(wrong), 1.0 / choices)
    if p * choices >= 1.0 - level:
        return ""
    return f"; {errors[most]:,.0f} of its {wrong:,.0f} errors are {names[most]}"


def _predicted(proba_or_pred: Any, y: Any, n_classes: int | None) -> tuple[IntArray, IntArray, int]:
    """Predicted and true classes (n,), and K."""
    given = as_pandas(proba_or_pred)
    if np.ndim(given) == 2 or _are_probabilities(given):
        proba, y, _ = check_rows(given, y)
        if n_classes is not None:
            check_proba(proba, n_classes=n_classes)
        return top_label(proba)[0], y, proba.shape[1]
    (predicted, y), n_classes = check_classes(given, y, n_classes=n_classes)
    return predicted, y, n_classes


def _are_probabilities(values: Any) -> bool:
    """Whether a column holds probabilities rather than classes: some are no whole numbers."""
    numbers = np.asarray(values)
    return numbers.dtype.kind == "f" and bool((np.mod(numbers, 1.0) != 0.0).any())


@dataclass(frozen=True, eq=False)
class MethodLosses:
    """Mean top-label losses by method and predicted class: the bars of Salamon et al., Fig. 17.

    Attributes
    ----------
    methods : tuple of M str
        Keys of :data:`kdcal_core.calibration.CALIBRATORS`.
    labels : tuple of M str
        Their short labels.
    rows : str
        What the rows are: "calibration set, refitted on itself", "calibration set,
        cross-fitted (5 folds)" or "evaluation set".
    n : (K,) int array
        Rows for which each class is predicted. A class that is never predicted has NaN losses.
    nll, nll_low, nll_high : (M, K) arrays
        Mean of Eq. 14 per row, confidences clipped at 1e-12, with its normal interval.
    brier, brier_low, brier_high : (M, K) arrays
        Mean of Eq. 15 per row.
    overall_nll, overall_nll_low, overall_nll_high : (M,) arrays
        The same over all rows; likewise ``overall_brier``.
    level : float
        Level of the intervals: mean plus or minus the normal quantile times the standard error,
        which is at least what the method's own confidences imply.
    """

    methods: tuple[str, ...]
    labels: tuple[str, ...]
    rows: str
    n: IntArray
    nll: FloatArray
    nll_low: FloatArray
    nll_high: FloatArray
    brier: FloatArray
    brier_low: FloatArray
    brier_high: FloatArray
    overall_nll: FloatArray
    overall_nll_low: FloatArray
    overall_nll_high: FloatArray
    overall_brier: FloatArray
    overall_brier_low: FloatArray
    overall_brier_high: FloatArray
    level: float = 0.95

    def table(self) -> pd.DataFrame:
        """One row a method and predicted class, for download."""
        n_methods, n_classes = self.nll.shape
        return pd.DataFrame(
            {
                "method": np.repeat(self.methods, n_classes),
                "predicted_class": np.tile(np.arange(n_classes), n_methods),
                "rows": np.tile(self.n, n_methods),
                "mean_log_loss": self.nll.ravel(),
                "log_loss_low": self.nll_low.ravel(),
                "log_loss_high": self.nll_high.ravel(),
                "mean_brier": self.brier.ravel(),
                "brier_low": self.brier_low.ravel(),
                "brier_high": self.brier_high.ravel(),
            }
        )


def top_label_losses(
    confidences: dict[str, FloatArray],
    predicted: Any,
    y: Any,
    *,
    n_classes: int,
    rows: str,
    labels: Sequence[str] | None = None,
    sample_weight: Any = None,
    level: float = 0.95,
) -> MethodLosses:
    """Mean losses of each method by predicted class (Salamon et al., Eqs. 14, 15).

    Parameters
    ----------
    confidences : dict of str to (n,) array
        Calibrated probability that the predicted class is right, by method key.
    predicted, y : (n,) arrays
        Predicted and true classes: 0 to ``n_classes - 1``, or so many names.
    rows : str
        What the rows are, for :attr:`MethodLosses.rows`.
    labels : sequence of str, optional
        Short labels; by default the keys.
    sample_weight : (n,) array, optional
    level : float, default=0.95

    Raises
    ------
    InputError
        If the arrays do not match.

    Examples
    --------
    >>> import numpy as np
    >>> losses = top_label_losses(
    ...     {"a": np.array([0.5, 0.5, 0.9])}, [0, 0, 1], [0, 1, 1], n_classes=2, rows="three rows"
    ... )
    >>> losses.nll.round(3).tolist(), losses.n.tolist()
    ([[0.693, 0.105]], [2, 1])
    """
    if not confidences:
        raise InputError("No method is given", fix="Name at least one calibrator.")
    (predicted, y), _ = check_classes(predicted, y, n_classes=n_classes)
    weight, together = check_weight(sample_weight, len(predicted)), dependence_of(sample_weight)
    correct = (predicted == y).astype(np.float64)
    nll: list[FloatArray] = []
    brier: list[FloatArray] = []
    for key, confidence in confidences.items():
        if np.shape(confidence) != predicted.shape:
            raise InputError(f"The confidences of {key} do not match the rows")
        said = np.asarray(confidence, dtype=np.float64)
        by_loss = zip(
            _row_losses(said, correct),
            _row_losses(said, np.ones_like(said)),
            _row_losses(said, np.zeros_like(said)),
            strict=True,
        )
        chance = _chance(said, predicted, n_classes)
        own = [(loss, chance * (1 - chance) * (hit - miss) ** 2) for loss, hit, miss in by_loss]
        nll.append(_means(*own[0], predicted, weight, n_classes, level, together))
        brier.append(_means(*own[1], predicted, weight, n_classes, level, together))
    by_nll, by_brier = np.stack(nll), np.stack(brier)
    return MethodLosses(
        methods=tuple(confidences),
        labels=tuple(labels) if labels is not None else tuple(confidences),
        rows=rows,
        n=np.bincount(predicted, minlength=n_classes),
        nll=by_nll[:, 0, :-1],
        nll_low=by_nll[:, 1, :-1],
        nll_high=by_nll[:, 2, :-1],
        brier=by_brier[:, 0, :-1],
        brier_low=by_brier[:, 1, :-1],
        brier_high=by_brier[:, 2, :-1],
        overall_nll=by_nll[:, 0, -1],
        overall_nll_low=by_nll[:, 1, -1],
        overall_nll_high=by_nll[:, 2, -1],
        overall_brier=by_brier[:, 0, -1],
        overall_brier_low=by_brier[:, 1, -1],
        overall_brier_high=by_brier[:, 2, -1],
        level=level,
    )


def _row_losses(said: FloatArray, correct: FloatArray) -> tuple[FloatArray, FloatArray]:
    return top_label_log_losses(said, correct), top_label_brier_losses(said, correct)


def _chance(said: FloatArray, predicted: IntArray, n_classes: int) -> FloatArray:
    """Variance that each confidence implies; half a row of each outcome lets 0 and 1 vary."""
    n = np.bincount(predicted, minlength=n_classes)[predicted]
    return np.asarray((said * n + 0.5) / (n + 1.0))


def _means(
    loss: FloatArray,
    own: FloatArray,
    predicted: IntArray,
    weight: FloatArray,
    n_classes: int,
    level: float,
    together: Dependence | None,
) -> FloatArray:
    """Mean, low and high by class and, in the last column, over all rows: (3, K + 1).

    A few rows without an error show too little variance. The variance is therefore at least
    ``own``, the variance of each row's loss under the method's own confidence.
    """
    mass = _with_total(bin_sums(predicted, n_classes, weight))
    summed = _with_total(bin_sums(predicted, n_classes, weight * loss))
    mean = np.divide(summed, mass, out=np.full(n_classes + 1, np.nan), where=mass > 0)
    whole, reach = np.zeros_like(predicted), np.full(n_classes + 1, normal_quantile(level))
    if together is None:
        error = _standard_error(loss - mean[predicted], predicted, weight, mass[:-1])
        overall = _standard_error(loss - mean[-1], whole, weight, mass[-1:])
    else:
        found = [
            _error_of_units(loss[some], weight[some], level, together.only(some))
            for some in [*(predicted == one for one in range(n_classes)), whole == 0]
        ]
        error, overall = np.array(found)[:-1, 0], np.array(found)[-1:, 0]
        reach = np.array(found)[:, 1]
    floor = _with_total(bin_sums(predicted, n_classes, weight**2 * own))
    floor = np.divide(np.sqrt(floor), mass, out=np.full(n_classes + 1, np.nan), where=mass > 0)
    half = reach * np.fmax(np.concatenate([error, overall]), floor)
    return np.stack([mean, np.maximum(mean - half, 0.0), mean + half])


def _error_of_units(
    loss: FloatArray, weight: FloatArray, level: float, together: Dependence
) -> tuple[float, float]:
    """Standard error of a mean of dependent rows, and how many of them an interval reaches."""
    reach = t_quantile_of_rows(level, weight, together) if len(loss) else np.nan
    if not np.isfinite(reach):
        return np.nan, normal_quantile(level)
    _, low, high = mean_interval(loss, weight, level, dependence=together)
    return (high - low) / (2.0 * reach), reach


def _standard_error(
    off: FloatArray, group: IntArray, weight: FloatArray, mass: FloatArray
) -> FloatArray:
    """Standard error of a weighted mean in each group; NaN for fewer than two rows."""
    n = np.bincount(group, minlength=len(mass))
    square = np.bincount(group, weights=(weight * off) ** 2, minlength=len(mass))
    enough = n > 1
    error = np.full(len(mass), np.nan)
    error[enough] = np.sqrt(square[enough] * n[enough] / (n[enough] - 1)) / mass[enough]
    return error


def _with_total(values: FloatArray) -> FloatArray:
    return np.append(values, values.sum())


AnchorKind = Literal["top-label", "class"]


@dataclass(frozen=True, eq=False)
class HistogramAnchor:
    """The histogram that lies under every smooth curve (Salamon et al.): one class.

    ``edges`` (B + 1,) are the bin edges, ``confidence`` (B,) is TP / (TP + FP) with NaN in empty
    bins, ``count`` (B,) the rows, ``low`` and ``high`` (B,) the Clopper-Pearson interval. With
    ``kind`` "class" all rows count, at the class's probability: those of the class, and the others.
    """

    label: int
    edges: FloatArray
    confidence: FloatArray
    count: FloatArray
    low: FloatArray
    high: FloatArray
    kind: AnchorKind = "top-label"

    def table(self) -> pd.DataFrame:
        """One row a bin, for download."""
        return pd.DataFrame(
            {
                "bin_low": self.edges[:-1],
                "bin_high": self.edges[1:],
                "count": self.count,
                "confidence": self.confidence,
                "interval_low": self.low,
                "interval_high": self.high,
            }
        )


def histogram_anchor(
    proba: Any,
    y: Any,
    *,
    label: int,
    kind: AnchorKind = "top-label",
    n_bins: int = 10,
    sample_weight: Any = None,
    level: float = 0.95,
) -> HistogramAnchor:
    """Share of right predictions by score bin for one predicted class (Salamon et al., Eq. 5).

    Parameters
    ----------
    proba : (n, K) array
    y : (n,) array of int
    label : int
        The predicted class, 0 to K - 1.
    kind : {"top-label", "class"}
        "class": instead, the share of the class among all rows, by the class's probability.
    n_bins : int, default=10
        Bins (a, b] of equal width on [0, 1], the first closed at 0.
    sample_weight : (n,) array or RowDesign, optional
        Weighted bins get a Clopper-Pearson interval at their effective number of rows,
        (sum w)^2 / sum w^2. Of a :class:`kdcal_core.statistics.RowDesign` that number is divided by
        the design effect of dependent rows.
    level : float, default=0.95

    Returns
    -------
    HistogramAnchor
        NaN in bins without rows.

    Raises
    ------
    InputError
        If the arrays do not have this form or the class does not exist.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.7, 0.3], [0.9, 0.1], [0.1, 0.9]]
    >>> anchor = histogram_anchor(proba, [0, 1, 0, 1], label=0, n_bins=5)
    >>> anchor.confidence.tolist(), anchor.count.tolist()
    ([nan, nan, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 1.0])
    """
    proba, y, _ = check_rows(proba, y)
    check_weight(sample_weight, len(proba))
    if not 0 <= label < proba.shape[1]:
        raise InputError(
            f"There is no class {label}", fix=f"Classes are 0 to {proba.shape[1] - 1}."
        )
    if not 0 < level < 1:
        raise InputError(f"The level is {level}", fix="Choose a number between 0 and 1.")
    (goal,) = targets(proba, y, sample_weight, kind, label)
    edges = uniform_edges(n_bins)
    index = bin_index(goal.score, edges)
    count = bin_sums(index, n_bins)
    mass = bin_sums(index, n_bins, goal.weight)
    right = bin_sums(index, n_bins, goal.weight * goal.hit)
    square = bin_sums(index, n_bins, goal.weight**2)
    some = count > 0
    share = np.divide(right, mass, out=np.full(n_bins, np.nan), where=some)
    effective = np.divide(mass**2, square, out=np.zeros(n_bins), where=some)
    if goal.dependence is not None and len(goal.score):
        away = goal.hit - share[index]
        effective /= bin_dependence(away, goal.weight, index, n_bins, goal.dependence).effect
    return anchor_of_bins(label, kind, count, share, effective, level)


def anchor_of_bins(
    label: int,
    kind: AnchorKind,
    count: FloatArray,
    share: FloatArray,
    effective: FloatArray,
    level: float = 0.95,
) -> HistogramAnchor:
    """The histogram of bins of equal width, each with rows, share right and effective rows."""
    low, high = clopper_pearson(share, effective, level)
    return HistogramAnchor(label, uniform_edges(len(count)), share, count, low, high, kind)


def two_halves(
    proba: Any,
    y: Any,
    *,
    label: int,
    kind: AnchorKind = "top-label",
    n_bins: int = 10,
    seed: int = 0,
    sample_weight: Any = None,
) -> tuple[HistogramAnchor, HistogramAnchor]:
    """Anchors of two random halves of the rows: differences between them are noise.

    Halves are stratified by true class, and dependent rows are in one. Each shows the noise of half
    the rows, which is about the square root of two times the noise of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> score = np.linspace(0.55, 0.95, 40)
    >>> first, second = two_halves(np.c_[score, 1 - score], np.arange(40) % 2, label=0)
    >>> first.count.sum() + second.count.sum()
    np.float64(40.0)
    """
    proba, y, _ = check_rows(proba, y)
    check_weight(sample_weight, len(proba))
    if len(proba) < 2:
        raise InputError("One row cannot be halved", fix="Give at least two rows.")
    half = stratified_folds(y, 2, seed, dependence_of(sample_weight))
    first, second = (
        histogram_anchor(
            proba[half == i],
            y[half == i],
            label=label,
            kind=kind,
            n_bins=n_bins,
            sample_weight=of_rows(sample_weight, half == i),
        )
        for i in (0, 1)
    )
    return first, second
