"""Confidence from kernel densities of true and false positives.

Salamon et al., *Estimating Classification Confidence Using Kernel Densities*,
https://arxiv.org/abs/2207.06529
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration._temperature_fit import tempered
from kdcal_core.calibration.calibrator_base import rows_by_class, top_label
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.confidence_curve import ConfidenceCurve
from kdcal_core.calibration.kernel_bandwidths import (
    SIGN_CHANGES,
    Curve,
    KernelSum,
    fit_curve,
    fit_rows_curve,
    leave_one_out_bandwidth,
    log_odds,
    sign_changes,
    smooth_bandwidths,
)
from kdcal_core.calibration.shrinkage import MOST_ROWS, SHRINKAGE, Answers, ShrunkConfidence, pooled
from kdcal_core.data import FloatArray, IntArray, check_weight
from kdcal_core.errors import InputError, quiet
from kdcal_core.store import storable
from kdcal_core.store.estimators import LARGEST, check_array, demand
from kdcal_core.text import counted

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes

SPARSE = 20
_MOST_LOG_ROWS = 50.0  # no calibration set holds exp(50) rows


@storable
class TopLabelKDE(ShrunkConfidence):
    """Density of true positives as a share of that of all positives (Salamon et al., Eqs. 7 to 9).

    For each predicted class, the scores of its right and of its wrong predictions are smoothed with
    a normal kernel of one common bandwidth, and

    ``Conf(S) = K_TP(S) |TP| / (K_TP(S) |TP| + K_FP(S) |FP|) = A / (A + B)``,

    where A and B are the right and wrong rows at S, weighted by the kernel (1 at its peak). With
    few errors in a class this is wrongly 0 or 1. So by default it is shrunk towards a safe
    temperature for all classes, c(row), as if m further rows at S had the outcomes that c predicts:

    ``Conf(row) = (A + m c(row)) / (A + B + m)``.

    Parameters
    ----------
    bandwidth : {"mon2", "mon", "mon4", "loo"} or float, default="mon2"
        "mon2" is the paper's recommendation: the smallest bandwidth at which the curve's slope
        changes sign at most twice, so that it has at most one local minimum (Eq. 20). "mon" and
        "mon4" allow no and four changes (Eq. 19); "loo" minimises the leave-one-out Eq. 14 loss and
        is usually too wiggly (section XII). A number is a bandwidth in units of the score, for
        every class.
    n_grid : int, default=1000
        Number of points at which slopes are computed, from the lower limit to 1. A coarser grid
        misses wiggles and gives other bandwidths.
    lower_limit : float or None, default=None
        The curve is constant below the class's lower limit, where the tails of far kernels have no
        information (section XIII.D). None uses the class's smallest score in the calibration set. A
        number (0.15 in the paper's plots) is used unless the smallest score is larger.
    min_count : int, default=1
        A class with fewer true or fewer false positives falls back to Conf1 (Eq. 1) with an
        :class:`InputWarning`. The equations need one of each. With fewer than 20 of either,
        ``notes_`` gives the paper's advice for sparse data (section XIII.D) and the number of rows
        that would have 20.
    shrinkage : "auto", float or None, default="auto"
        The number m. "auto" chooses it by held-out log loss; one choice is infinity, which uses
        only the safe temperature (:mod:`kdcal_core.calibration.shrinkage`). None is Eq. 9 alone, as
        in the paper. A class that falls back to Conf1 then does so everywhere. With shrinkage it
        uses Conf1 where its rows lie (a kernel of Silverman's bandwidth), and c elsewhere.

    Attributes
    ----------
    shrinkage_, anchor_temperature_ : float
        m, and the temperature of c; 1 is the model as it is. Only with shrinkage.
    rule_shrinkage_ : dict of str to float
        m for each of the rules in ``rule_bandwidths_``, if it was chosen.
    bandwidths_ : (K,) array
        Bandwidth of each class; NaN if the class falls back to Conf1.
    rule_bandwidths_ : dict of str to (K,) array
        Bandwidths by the rules "mon4", "mon2" and "mon", which one search finds together. Empty if
        the bandwidth is a number or "loo".
    lower_limits_ : (K,) array
    fallback_ : tuple of K str
        Why a class falls back to Conf1; empty if it does not.

    Notes
    -----
    The bandwidth search goes from a thousandth of the plotted range up to twenty times the range in
    steps of 5%; slopes below 1e-9 per step count as flat. Perfectly separated classes get the
    smallest bandwidth. Kernel sums are computed in the log domain, so a score far from all data
    gets the answer of the nearest ones, never 0/0. The confidence differs from that of the exact
    sum of Eq. 9 by less than 1e-6. There is no boundary correction (section XIII.E).

    Examples
    --------
    >>> import numpy as np
    >>> score = np.linspace(0.5, 1, 200)
    >>> right = np.random.default_rng(0).random(200) < score**2
    >>> proba = np.concatenate([np.c_[1 - score, score], np.c_[score, 1 - score]])
    >>> y = np.concatenate([right, ~right]).astype(int)
    >>> TopLabelKDE(shrinkage=None).fit(proba, y).predict_confidence([[0.3, 0.7]]).round(2).tolist()
    [0.41]
    >>> shrunk = TopLabelKDE().fit(proba, y)
    >>> shrunk.shrinkage_, shrunk.predict_confidence([[0.3, 0.7]]).round(2).tolist()
    (20.0, [0.46])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "bandwidth": [
            StrOptions({*SIGN_CHANGES, "loo"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "n_grid": [Interval(Integral, 2, None, closed="left")],
        "lower_limit": [None, Interval(Real, 0, 1, closed="both")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "shrinkage": SHRINKAGE,
    }

    def __init__(
        self,
        bandwidth: Any = "mon2",
        n_grid: int = 1000,
        lower_limit: float | None = None,
        min_count: int = 1,
        shrinkage: Any = "auto",
    ) -> None:
        self.bandwidth = bandwidth
        self.n_grid = n_grid
        self.lower_limit = lower_limit
        self.min_count = min_count
        self.shrinkage = shrinkage

    _why_no_onnx = None
    _count: FloatArray | None = None  # rows that each row stands for, while such a fit lasts

    def rows_needed(self, n_classes: int) -> int:
        return 2 * SPARSE * n_classes

    def fit(self, proba: Any, y: Any, sample_weight: Any = None) -> Self:
        self._forget()
        return super().fit(proba, y, sample_weight)

    def fit_counts(self, proba: Any, y: Any, count: Any) -> Self:
        """Fit on rows that each stand for many equal ones, as the cells of a summary do.

        As :meth:`fit` on those rows one by one. Of more than 20,000 rows, temperature and amount of
        the shrinkage are chosen by 20,000 drawn with a fixed seed.

        Parameters
        ----------
        proba : (n, K) array or data frame, or (n,)
        y : (n,) array of int or str
            As of :meth:`fit`.
        count : (n,) array of int
            Rows that each stands for, at least 1.

        Raises
        ------
        InputError
            If an array does not have this form; the message names the row.

        Examples
        --------
        >>> proba, y = [[0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.3, 0.7]] * 2, [0] * 4 + [1] * 4
        >>> count = [9000, 7000, 3000, 1000, 2000, 3000, 6000, 9000]
        >>> kde = TopLabelKDE(0.01, shrinkage=None).fit_counts(proba, y, count)
        >>> kde.predict_confidence([[0.4, 0.6]]).round(2).tolist()  # 6,000 of 9,000
        [0.67]
        """
        self._validate_params()
        proba, y = self._learnt(proba, y)
        times = check_weight(count, len(y))
        if (times % 1.0).any():
            raise InputError(
                f"Row {np.flatnonzero(times % 1.0)[0]:,} stands for a part of a row",
                fix="Give whole numbers; weights of rows are for `fit`.",
            )
        drawn = np.repeat(np.arange(len(y)), _drawn(times))
        self.n_classes_ = proba.shape[1]
        self.notes_, self._class_notes = (), {}
        self._forget()
        self._count, self._chosen_by = times, (proba[drawn], y[drawn], np.ones(len(drawn)))
        try:
            self._fit(proba, y, times)
        finally:
            self._count = self._chosen_by = None
        self._note_few(int(times.sum()))
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit left and this one may not replace."""
        for name in ("rule_shrinkage_", "_rows_", "shrinkage_", "anchor_temperature_"):
            self.__dict__.pop(name, None)

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        super()._fit(proba, y, weight)
        self._curves_ = tuple(map(self._curve_of, range(self.n_classes_)))
        if self._shrunk:
            self._rows_ = tuple(map(self._rows_of, range(self.n_classes_)))
            self._shared = _shared_kernels(proba, weight, self.anchor_temperature_)

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._place(proba, y, weight)
        for label in self._kernels:
            self._fit_class(label)

    def _trial(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> Self:
        """A fit without curves and with the bandwidths of all rows, whose search is slow."""
        other: Self = clone(self).set_params(shrinkage=None)
        other.n_classes_, other.notes_ = self.n_classes_, ()
        with quiet():
            other._place(proba, y, weight)
        other.bandwidths_, other.rule_bandwidths_ = self.bandwidths_, self.rule_bandwidths_
        return other

    def _place(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Store the scores of each class as kernels, and why classes fall back."""
        predicted, score = top_label(proba)
        correct = predicted == y
        count = np.ones(len(y)) if self._count is None else self._count
        n = self.n_classes_
        self._conf1_ = self._class_confidence(predicted, correct.astype(np.float64), weight)
        self.bandwidths_ = np.full(n, np.nan)
        self.lower_limits_ = np.zeros(n)
        self._counts_ = np.zeros((n, 2), dtype=np.int64)
        fallback = ["the class is never predicted"] * n
        self._kernels: dict[int, tuple[KernelSum, KernelSum]] = {}
        self._everyone: dict[int, KernelSum] = {}
        by_rule = isinstance(self.bandwidth, str) and self.bandwidth != "loo"
        self.rule_bandwidths_ = {r: np.full(n, np.nan) for r in SIGN_CHANGES} if by_rule else {}
        for label, rows in rows_by_class(predicted, n):
            right, wrong = rows[correct[rows]], rows[~correct[rows]]
            self._counts_[label] = count[right].sum(), count[wrong].sum()
            self.lower_limits_[label] = max(float(score[rows].min()), self.lower_limit or 0.0)
            fallback[label] = self._reason(label, score[rows])
            self._everyone[label] = KernelSum(score[rows], weight[rows], count[rows])
            if not fallback[label]:
                self._kernels[label] = (
                    KernelSum(score[right], weight[right], count[right]),
                    KernelSum(score[wrong], weight[wrong], count[wrong]),
                )
        self.fallback_ = tuple(fallback)

    def check_state(self) -> None:
        super().check_state()
        n = self.n_classes_
        check_array(self, "_conf1_", (n,), low=0.0, high=1.0)
        check_array(self, "lower_limits_", (n,), low=0.0, high=1.0)
        check_array(self, "bandwidths_", (n,), low=0.0, nan=True)
        check_array(self, "_counts_", (n, 2), low=0, dtype=np.int64)
        curves = getattr(self, "_curves_", None)
        demand(isinstance(curves, tuple) and len(curves) == n, "_curves_")
        fallback = getattr(self, "fallback_", None)
        demand(isinstance(fallback, tuple) and len(fallback) == n, "fallback_")
        _check_curves(self._curves_, "_curves_")
        if self._shrunk:
            rows = getattr(self, "_rows_", None)
            demand(isinstance(rows, tuple) and len(rows) == n, "_rows_")
            _check_curves(self._rows_, "_rows_", high=_MOST_LOG_ROWS)
            amounts = getattr(self, "rule_shrinkage_", {})
            demand(
                isinstance(amounts, dict)
                and all(type(m) is float and m > 0 for m in amounts.values()),
                "rule_shrinkage_",
            )

    def _reason(self, label: int, score: FloatArray) -> str:
        """Why the class must fall back to Conf1, or an empty string; adds the notes."""
        n_right, n_wrong = (int(count) for count in self._counts_[label])
        few, kind = min((n_right, "true"), (n_wrong, "false"))
        reason, wanted = "", f"about {_wanted(n_right + n_wrong, few):,} predictions of it would"
        if few < self.min_count:
            reason = f"it has {n_right:,} true and {n_wrong:,} false positives"
            wanted = f" ({wanted} hold {SPARSE} of each)"
        elif self.lower_limits_[label] >= score.max():
            reason, wanted = "all its scores are equal or at most the lower limit", ""
        else:
            if few < SPARSE:
                self._note_class(
                    label,
                    f" has only {counted(few, f'{kind} positive')} "
                    f"({wanted} hold {SPARSE}): look at its curve; for sparse data Salamon "
                    "et al. advise Conf1, b_mon or the optimal cutoff.",
                )
            return ""
        drawn = "" if self.shrinkage is None else ", shrunk towards the shared temperature"
        self._note_class(
            label,
            f" falls back to its overall confidence {self._conf1_[label]:.3f}"
            f"{drawn}: {reason}{wanted}.",
            warns=True,
        )
        return reason

    def _fit_class(self, label: int) -> None:
        right, wrong = self._kernels[label]
        lower = self.lower_limits_[label]
        grid = np.linspace(lower, 1.0, self.n_grid)
        bandwidth = self._bandwidth(label, grid)
        self.bandwidths_[label] = bandwidth
        if isinstance(self.bandwidth, str):
            confidence = expit(log_odds(right, wrong, grid, bandwidth))
            if confidence[-1] < confidence[0] and sign_changes(confidence) == 0:
                self._note_class(
                    label,
                    f": confidence falls as the score grows, from "
                    f"{confidence[0]:.3f} to {confidence[-1]:.3f}.",
                    warns=True,
                )

    def _curve_of(self, label: int) -> Curve | None:
        if label not in self._kernels:
            return None
        lower = float(self.lower_limits_[label])
        return fit_curve(*self._kernels[label], float(self.bandwidths_[label]), lower, 1.0)

    def _rows_of(self, label: int) -> Curve | None:
        if label not in self._everyone:
            return None
        return fit_rows_curve(self._everyone[label], self._reach(label))

    def _reach(self, label: int) -> float:
        """Bandwidth for counting a class's rows: that of its curve, or else Silverman's."""
        if label in self._kernels:
            return float(self.bandwidths_[label])
        return self._everyone[label].silverman()

    def _bandwidth(self, label: int, grid: FloatArray) -> float:
        right, wrong = self._kernels[label]
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        if self.bandwidth == "loo":
            return leave_one_out_bandwidth(right, wrong, float(grid[-1] - grid[0]))
        found = smooth_bandwidths(right, wrong, grid)
        for rule, (bandwidth, _) in found.items():
            self.rule_bandwidths_[rule][label] = bandwidth
        bandwidth, reached = found[self.bandwidth]
        if not reached:
            self._note_class(
                label,
                ": no bandwidth up to 20 times the range makes the curve smooth enough; the "
                "largest is used.",
                warns=True,
            )
        return bandwidth

    def with_rule(self, rule: str) -> TopLabelKDE:
        """The fitted calibrator with another rule ("mon", "mon2", "mon4"), without a fit.

        Raises
        ------
        InputError
            If this one was fitted with "loo" or a number, or comes from a file.
        """
        check_is_fitted(self, "n_classes_")
        if rule not in self.rule_bandwidths_:
            raise InputError(
                f"This calibrator has no bandwidths for the rule {rule!r}",
                fix="Fit it with the bandwidth 'mon', 'mon2' or 'mon4' first.",
            )
        self._known_kernels()
        other = self._under(rule)
        other._curves_ = tuple(map(other._curve_of, range(self.n_classes_)))
        if self._shrunk:
            other._rows_ = tuple(map(other._rows_of, range(self.n_classes_)))
        return other

    def _under(self, rule: str) -> Self:
        """This fit with the bandwidths of another rule and their curves."""
        other: Self = clone(self).set_params(bandwidth=rule)
        parameters = other.get_params()
        other.__dict__.update({k: v for k, v in vars(self).items() if k not in parameters})
        other.bandwidths_ = self.rule_bandwidths_[rule].copy()
        amounts = getattr(self, "rule_shrinkage_", {})
        if amounts:
            other.shrinkage_ = amounts[rule]
        return other

    def _trials(self, proba: FloatArray) -> Sequence[Answers]:
        """Answers from the kernels, for each of the rules found in one search."""
        rules = [self._under(rule) for rule in self.rule_bandwidths_] or [self]
        return [one._kernel_answers(proba) for one in rules]

    def _keep_amounts(self, amounts: list[float]) -> None:
        if self.rule_bandwidths_:
            self.rule_shrinkage_ = dict(zip(self.rule_bandwidths_, amounts, strict=True))
            amounts = [self.rule_shrinkage_[str(self.bandwidth)]]
        super()._keep_amounts(amounts)

    def _kernel_answers(self, proba: FloatArray) -> Answers:
        predicted, score = top_label(proba)
        confidence, behind = self._conf1_[predicted], np.zeros(len(score))
        for label, rows in rows_by_class(predicted, self.n_classes_):
            if label not in self._everyone:
                continue
            reach = self._reach(label)
            behind[rows] = np.exp(self._everyone[label](score[rows], reach)[0])
            if label in self._kernels:
                at = np.maximum(score[rows], self.lower_limits_[label])
                confidence[rows] = expit(log_odds(*self._kernels[label], at, reach))
        return confidence, behind

    def _answers(self, proba: FloatArray) -> Answers:
        predicted, score = top_label(proba)
        confidence, behind = self._conf1_[predicted], np.zeros(len(score))
        for label, rows in rows_by_class(predicted, self.n_classes_):
            curve = self._curves_[label]
            if curve is not None:
                # the first node is the limit, and the last is 1
                confidence[rows] = curve(np.clip(score[rows], curve.at[0], curve.at[-1]))
            if self._shrunk and (many := self._rows_[label]) is not None:
                behind[rows] = np.exp(many(np.clip(score[rows], many.at[0], many.at[-1])))
        return confidence, behind

    def _class_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        curve = self._curves_[j]
        if curve is None:
            return nodes.constant_like(score, float(self._conf1_[j]))
        return nodes.cubic(score, curve.at, curve.pieces())

    def _class_rows_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        curve = self._rows_[j]
        if curve is None:
            return nodes.constant_like(score, 0.0)
        return nodes.node("Exp", nodes.cubic(score, curve.at, curve.pieces()))

    def _known_kernels(self) -> dict[int, tuple[KernelSum, KernelSum]]:
        """The scores of the curves, which are kept in memory after a fit but not in a file."""
        kernels: dict[int, tuple[KernelSum, KernelSum]] | None = getattr(self, "_kernels", None)
        if kernels is None:
            raise InputError(
                "A calibrator from a file holds its curves but not their scores",
                fix="Fit it again on the calibration set.",
            )
        return kernels

    def curve(self, label: int, n_points: int = 400) -> ConfidenceCurve:
        """Conf_KDE of one predicted class with its two densities, for a figure.

        Parameters
        ----------
        label : int
            The predicted class, 0 to K - 1.
        n_points : int
            Number of evenly spaced scores from the lower limit to 1.

        Raises
        ------
        InputError
            If there is no such class, or the calibrator comes from a file.
        """
        check_is_fitted(self, "n_classes_")
        if not 0 <= label < self.n_classes_:
            raise InputError(
                f"There is no class {label}", fix=f"Classes are 0 to {self.n_classes_ - 1}."
            )
        lower, bandwidth = float(self.lower_limits_[label]), float(self.bandwidths_[label])
        score = np.linspace(lower, 1.0, n_points)
        curve = self._curves_[label]
        if curve is not None:
            confidence = np.clip(curve(score), 0.0, 1.0)
            density = [_density(k, score, bandwidth) for k in self._known_kernels()[label]]
        else:
            confidence = np.full(n_points, self._conf1_[label])
            density = [np.full(n_points, np.nan)] * 2
        self._known_kernels()
        rows = np.zeros(n_points)
        if label in self._everyone:
            rows = np.exp(self._everyone[label](score, self._reach(label))[0])
        return ConfidenceCurve(
            label=label,
            score=score,
            confidence=confidence,
            density_tp=density[0],
            density_fp=density[1],
            bandwidth=bandwidth,
            n_tp=int(self._counts_[label, 0]),
            n_fp=int(self._counts_[label, 1]),
            lower_limit=lower,
            fallback=self.fallback_[label],
            rows=rows,
            shrinkage=self.shrinkage_ if self._shrunk else None,
            safe=self._safe(label, score, confidence, rows) if self._shrunk else None,
        )

    def _safe(
        self, label: int, score: FloatArray, confidence: FloatArray, rows: FloatArray
    ) -> FloatArray:
        """The calibrator's confidence at a score; the mean nearby where rows of a score differ."""
        if label not in self._everyone:
            return np.full_like(score, np.nan)
        if self.follows_score:
            shared = tempered(np.column_stack([score, 1.0 - score]), self.anchor_temperature_)[:, 0]
        else:
            reach = self._reach(label)
            shared = np.exp(
                self._shared[label](score, reach)[0] - self._everyone[label](score, reach)[0]
            )
        return pooled(confidence, rows, np.clip(shared, 0.0, 1.0), self.shrinkage_)


def _drawn(times: FloatArray) -> IntArray:
    """How often to take each row that stands for so many, for at most `MOST_ROWS` in all."""
    total = times.sum()
    if total <= MOST_ROWS:
        return times.astype(np.int64)
    return np.random.default_rng(0).multinomial(MOST_ROWS, times / total)


def _wanted(n: int, few: int) -> int:
    """Number of predictions with :data:`SPARSE` of a kind, if n predictions have ``few``.

    If they have none, the rate is taken as one in n + 1.

    >>> _wanted(100, 4), _wanted(8, 0)
    (500, 180)
    """
    return int(np.ceil(SPARSE * n / few)) if few else SPARSE * (n + 1)


def _shared_kernels(
    proba: FloatArray, weight: FloatArray, temperature: float
) -> dict[int, KernelSum]:
    """Kernels at each predicted class's scores, weighted by the shared temperature's confidence."""
    predicted, score = top_label(proba)
    shared = tempered(proba, temperature)[np.arange(len(proba)), predicted]
    return {
        label: KernelSum(score[rows], weight[rows] * shared[rows])
        for label, rows in rows_by_class(predicted, proba.shape[1])
    }


def _check_curves(curves: tuple[Curve | None, ...], what: str, high: float = LARGEST) -> None:
    for curve in (one for one in curves if one is not None):
        demand(isinstance(curve, Curve), what)
        at = check_array(curve, "at", (None,), low=0.0, high=1.0)
        demand(len(at) > 1 and bool((np.diff(at) > 0).all()), what)
        check_array(curve, "value", at.shape, high=high)
        check_array(curve, "slope", at.shape)


def _density(kernels: KernelSum, at: FloatArray, bandwidth: float) -> FloatArray:
    """Kernel density of the scores (Eqs. 7 and 8); integrates to one over the real line."""
    log_sum, _ = kernels(at, bandwidth)
    density: FloatArray = np.exp(log_sum) / (kernels.total * bandwidth * np.sqrt(2 * np.pi))
    return density


CalibratorEntry(
    "kde_mon",
    "Kernel densities, monotone bandwidth",
    "KDE (b_mon)",
    partial(TopLabelKDE, "mon"),
    "Salamon et al. 2024, Eqs. 9 and 19",
    "The share of right predictions among similar scores, smoothed until it has no dip.",
    "top-label",
).offer()

CalibratorEntry(
    "kde_mon2",
    "Kernel densities, at most one local minimum",
    "KDE (b_mon2)",
    partial(TopLabelKDE, "mon2"),
    "Salamon et al. 2024, Eqs. 9 and 20",
    "The share of right predictions among similar scores, smoothed until it has at most one "
    "dip, as Salamon et al. recommend.",
    "top-label",
    offered=True,
).offer()

CalibratorEntry(
    "kde_mon4",
    "Kernel densities, at most two local minima",
    "KDE (b_mon4)",
    partial(TopLabelKDE, "mon4"),
    "Salamon et al. 2024, Eq. 9 and appendix",
    "Like the recommended one, but with two dips allowed, which are often noise.",
    "top-label",
).offer()

CalibratorEntry(
    "kde_loo",
    "Kernel densities, leave-one-out bandwidth",
    "KDE (b_opt)",
    partial(TopLabelKDE, "loo"),
    "Salamon et al. 2024, Eq. 9 and section XII",
    "Like the recommended one, with the bandwidth that best predicts each row from the others; "
    "often wiggly.",
    "top-label",
    compared=False,
).offer()
