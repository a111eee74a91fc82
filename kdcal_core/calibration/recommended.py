"""The recommended calibrator: the simplest whose cross-fitted log loss is as good as the best.

"As good" is at most one nat more over all rows. The one-standard-error rule of Breiman et al.
(1984) was worse: a model that gives a few true classes almost no probability loses most of its log
loss in these rows, the standard error of a mean over so few large losses is as large as the mean,
and the model stays as it is.

Measured at 300 calibration rows as the mean share of the model's log loss removed, seven kinds of
models, one draw: over 3 tables of two classes 0.279 by this rule, 0.269 by a standard error between
one and two nats, and 0.280 by the smallest loss, where the best single candidate (ensemble
temperature) gave 0.278. On rows of a right model it cost .0008 nats with two and three classes and
.0017 with ten. At 50 rows (5 tables of two classes) the choice from two candidates gave 0.212,
and the same rule among all 0.171.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from kdcal_core.calibration.calibrator_base import (
    ROWS_PER_PARAMETER,
    TopLabelCalibrator,
    VectorCalibrator,
)
from kdcal_core.calibration.calibrators import CALIBRATORS, CalibratorEntry
from kdcal_core.calibration.class_rates import UncalibratedConfidence
from kdcal_core.calibration.ensemble_temperature import EnsembleTemperature
from kdcal_core.calibration.log_odds_maps import BetaCalibration, QuadraticScaling
from kdcal_core.calibration.softmax_maps import DirichletScaling
from kdcal_core.calibration.spline_map import SplineCalibration
from kdcal_core.calibration.structured_scaling import (
    StructuredMatrixScaling,
    StructuredVectorScaling,
)
from kdcal_core.calibration.temperature import TemperatureScaling
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.splits import random_folds
from kdcal_core.errors import quiet
from kdcal_core.one_standard_error import SimplestChoice
from kdcal_core.statistics import Dependence, design_of, log_losses, only, units
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes

AS_IT_IS = "uncalibrated"
_TEMPERATURE = "sts"
_FEWEST_ROWS = 30
_ROWS_FOR_ALL = 200  # with fewer, the model as it is and ensemble temperature are candidates
_MOST_ROWS = 20_000

_NATS = 1.0  # more log loss over all rows that counts as equal
_MOST_CLASSES = 12  # of Dirichlet calibration, which then takes longer than all others

_MAKE: dict[str, Callable[[], TopLabelCalibrator]] = {
    AS_IT_IS: UncalibratedConfidence,
    _TEMPERATURE: TemperatureScaling,
    "ets": EnsembleTemperature,
    "svs": StructuredVectorScaling,
    "beta": BetaCalibration,
    "quadratic": QuadraticScaling,
    "spline": SplineCalibration,
    "sms": StructuredMatrixScaling,
    "dirichlet": DirichletScaling,
}


def candidates(n_classes: int, rows: float = math.inf) -> tuple[str, ...]:
    """Keys of the candidates, the simplest first.

    Parameters
    ----------
    n_classes : int
    rows : float
        Number of rows, or of clusters or times.

    Examples
    --------
    >>> candidates(2)
    ('uncalibrated', 'ets', 'svs', 'beta', 'quadratic', 'spline')
    >>> candidates(3)
    ('uncalibrated', 'ets', 'svs', 'sms', 'dirichlet')
    >>> candidates(100)
    ('uncalibrated', 'ets', 'svs', 'sms')
    >>> candidates(3, 100)
    ('uncalibrated', 'ets')
    """
    if rows < _ROWS_FOR_ALL:
        return (AS_IT_IS, "ets")
    if n_classes == 2:
        return (AS_IT_IS, "ets", "svs", "beta", "quadratic", "spline")
    some = (AS_IT_IS, "ets", "svs", "sms")
    return (*some, "dirichlet") if n_classes <= _MOST_CLASSES else some


@storable
class RecommendedCalibrator(VectorCalibrator):
    """The simplest calibrator whose cross-fitted log loss is as good as that of the best.

    The candidates are, from the simplest on: the model as it is, ensemble temperature and
    structured vector scaling; then with two classes beta, quadratic and spline calibration, and
    with more classes structured matrix scaling and, with up to twelve, Dirichlet calibration. Each
    is fitted on all folds but one and judged on that one. The one with the smallest log loss is the
    best here. A simpler one is preferred if it loses to the best by no more than one nat over all
    rows. So the model stays as it is where no calibrator clearly improves it.

    With fewer than 200 rows only the model as it is and ensemble temperature are candidates, and
    the model must beat it by a nat: so few rows cannot tell further candidates apart, and on real
    tables that temperature was better more often than such a sample could show.

    Parameters
    ----------
    folds : int, default=5
    tolerance : float, default=1.0
        Nats over all rows that count as equal to the best; 0 takes the best one.

    Attributes
    ----------
    chosen_ : str
        Key of the chosen calibrator in :data:`kdcal_core.calibration.CALIBRATORS`.
    calibrator_ : Calibrator
        It, fitted on all rows.
    candidates_ : tuple of str
        Keys of the candidates, the simplest first; empty with fewer than 30 rows, where nothing is
        judged and the cautious temperature is taken.
    losses_ : (m,) array
        Cross-fitted log loss of each candidate, in nats.
    errors_ : (m,) array
        Standard error of the difference of each from the best.
    rows_ : float
        Number of judged rows, or the effective number if they have weights, of clusters or times if
        rows depend on one another; 0 if none were judged.

    Notes
    -----
    Random folds, dependent rows in one; at most 20,000 rows, evenly spaced, are judged. The
    notes of the fit say which calibrator was chosen, and why.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> logit = rng.normal(size=2000)
    >>> y = (rng.random(2000) < 1 / (1 + np.exp(-logit))).astype(int)
    >>> sure = 1 / (1 + np.exp(-3 * logit))  # three times as sure as it should be
    >>> RecommendedCalibrator().fit(np.c_[1 - sure, sure], y).chosen_
    'ets'
    >>> right = 1 / (1 + np.exp(-logit))
    >>> print(RecommendedCalibrator().fit(np.c_[1 - right, right], y).notes_[0])
    The model as it is was chosen: ...
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "folds": [Interval(Integral, 2, 20, closed="both")],
        "tolerance": [Interval(Real, 0, 100, closed="both")],
    }

    def __init__(self, folds: int = 5, tolerance: float = 1.0) -> None:
        self.folds = folds
        self.tolerance = tolerance

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * max(10, n_classes)

    def why_no_onnx(self) -> str | None:
        fitted = getattr(self, "calibrator_", None)
        return None if fitted is None else fitted.why_no_onnx()

    def onnx_nodes(self, nodes: Nodes, proba: str) -> str:
        return self.calibrator_.onnx_nodes(nodes, proba)

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        self.candidates_: tuple[str, ...] = ()
        losses = self._held_out_losses(proba, y, weight)
        if losses is None:
            self.losses_, self.errors_, self.rows_ = np.zeros(0), np.zeros(0), 0.0
            self.chosen_ = _TEMPERATURE
            self._note(
                f"{len(y):,} rows are too few to judge calibrators: the cautious temperature was "
                "chosen."
            )
        else:
            dependence = only(self._dependence, self._judged(len(y)))
            self.candidates_ = self._tried(losses[1], dependence)
            tolerance = float(self.tolerance)
            found = SimplestChoice.of(
                *losses, dependence=dependence, tolerance=tolerance, least=_NATS, most=_NATS
            )
            few_rows = len(self.candidates_) == 2
            if few_rows:
                worse = found.losses[1] - found.losses[0]
                found = replace(found, at=int(worse <= tolerance * _NATS / found.rows))
            self.losses_, self.errors_, self.rows_ = found.losses, found.errors, found.rows
            self.chosen_ = self.candidates_[found.at]
            names = [*map(_name, self.candidates_)]
            judged = f"cross-fitted on {len(losses[0]):,} rows"
            if few_rows:
                self._note(_words_of_few(found, judged))
            else:
                self._note(found.words(names, judged, loss="log loss", kind="calibrator"))
        design = design_of(weight, self._dependence)
        self.calibrator_ = self._fitted(self.chosen_, proba, y, design)
        few = self.calibrator_.few_rows(len(y))
        for note in self.calibrator_.notes_:
            if note != few and note not in self.notes_:
                self._note(note)

    def _held_out_losses(
        self, proba: FloatArray, y: IntArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Each candidate's loss of each judged row (n, m), and the rows' shares (n,)."""
        some = self._judged(len(y))
        proba, y, weight = proba[some], y[some], weight[some]
        dependence = only(self._dependence, some)
        if len(units(weight, dependence)) < _FEWEST_ROWS:
            return None
        fold = random_folds(len(y), int(self.folds), 0, dependence)
        keys = self._tried(weight, dependence)
        losses = np.empty((len(y), len(keys)))
        for held in (fold == at for at in range(int(self.folds))):
            kept = ~held
            design = design_of(weight[kept], only(dependence, kept))
            for at, key in enumerate(keys):
                fitted = self._fitted(key, proba[kept], y[kept], design)
                losses[held, at] = log_losses(fitted.predict_proba(proba[held]), y[held])
        return losses, weight / weight.sum()

    def _tried(self, weight: FloatArray, dependence: Dependence | None) -> tuple[str, ...]:
        return candidates(self.n_classes_, len(units(weight, dependence)))

    def _judged(self, n_rows: int) -> slice:
        """The rows that are judged."""
        return slice(None, None, max(1, -(-n_rows // _MOST_ROWS)))

    def _fitted(self, key: str, proba: FloatArray, y: IntArray, design: Any) -> TopLabelCalibrator:
        """The candidate fitted on some rows, without warnings."""
        made = _MAKE[key]()
        made._class_names = self._class_names
        with quiet():
            made.fit(proba, y, design)
        made._class_names = None
        return made

    def _vectors(self, proba: FloatArray) -> FloatArray:
        return self.calibrator_.predict_proba(proba)

    def check_state(self) -> None:
        super().check_state()
        chosen, fitted = getattr(self, "chosen_", None), getattr(self, "calibrator_", None)
        demand(isinstance(chosen, str) and chosen in _MAKE, "chosen_")
        kind = type(_MAKE[str(chosen)]())
        demand(type(fitted) is kind and fitted.n_classes_ == self.n_classes_, "calibrator_")
        self.calibrator_.check_state()
        keys = getattr(self, "candidates_", None)
        known = ((), candidates(self.n_classes_), candidates(self.n_classes_, 0))
        demand(isinstance(keys, tuple) and keys in known, "candidates_")
        rows = getattr(self, "rows_", None)
        demand(type(rows) is float and 0 <= rows < np.inf, "rows_")
        for name in ("losses_", "errors_"):
            check_array(self, name, (len(self.candidates_),), low=0.0)


def _words_of_few(found: SimplestChoice, judged: str) -> str:
    model, ets = (f"{loss:.4f}" for loss in found.losses)
    only = f"Fewer than {_ROWS_FOR_ALL} rows cannot tell further calibrators apart."
    if found.at == 0:
        return (
            f"The model as it is was chosen: its log loss is {model}, {judged}, and that of "
            f"ensemble temperature is {ets}. {only}"
        )
    why = "" if found.best else "; so small a difference could well be chance"
    return (
        f"Ensemble temperature was chosen: its log loss is {ets}, {judged}, and the model's is "
        f"{model}{why}. {only}"
    )


def _name(key: str) -> str:
    """A candidate's name inside a sentence."""
    return "the model as it is" if key == AS_IT_IS else CALIBRATORS[key].label


CalibratorEntry(
    "recommended",
    "Chosen by cross-fitted log loss",
    "Recommended",
    RecommendedCalibrator,
    "Stone 1974, cross-validation",
    "kdcal fits several calibrators of the probabilities alone on parts of the rows, judges them "
    "on the others and takes the simplest of those that are as good as the best; it may keep the "
    "model as it is. Calibrators that read further columns are not among them: Compare judges "
    "those too.",
    "recommended",
    compared=False,
).offer()
