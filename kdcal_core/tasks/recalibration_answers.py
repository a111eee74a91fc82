"""What a recalibration was asked for, and what every method came to on the judged rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression import row_scores
from kdcal_core.diagnostics.regression.coverage import Coverage
from kdcal_core.diagnostics.regression.distribution_scores import RegressionScores
from kdcal_core.diagnostics.regression.fault import Fault
from kdcal_core.diagnostics.regression.uniformity import UniformityTest
from kdcal_core.distributions import PredictiveDistribution, central_levels, even
from kdcal_core.regression import RECALIBRATORS
from kdcal_core.store import keep_array
from kdcal_core.tasks.spaces import Space

MODEL = "model"
STATED = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Stated probabilities of the central intervals that are kept for every row."""
GRID = np.round(np.arange(1, 200) / 200, 3)
"""Levels of the quantiles that are kept for the shown rows, (199,)."""
MOST_SHOWN = 5_000
"""Rows whose whole distribution is kept: all where there are no more, else a random choice."""


@dataclass(frozen=True)
class RecalibrationSettings:
    """What a recalibration depends on.

    Attributes
    ----------
    methods : tuple of str
        Keys of `kdcal_core.regression.RECALIBRATORS`.
    space : str
        Where neighbours are sought: one of `kdcal_core.tasks.space_names`. Untrusted text.
    k : int
        Neighbours; more than there are rows is capped, and the notes say so.
    radius : float or None
        Neighbours within this distance of the standardised space instead of the k nearest.
    kernel : str
    smoothing : str
        How the neighbours' PIT values become a distribution: "kernel", "none" as in Torres et al.,
        or "auto", by CRPS. Isotonic recalibration draws straight lines for "none".
    search : str
        "exact" or "approximate".
    choose : bool
        Whether k, and the space among all that need no job of their own, are chosen by
        cross-fitted CRPS on the calibration rows.
    folds, seed : int
        Of the cross-fitting where there is no evaluation set, and of all that is drawn.
    """

    methods: tuple[str, ...] = ("local", "where_needed", "global", "isotonic")
    space: str = "inputs"
    k: int = 1000
    radius: float | None = None
    kernel: Literal["epanechnikov", "uniform"] = "epanechnikov"
    smoothing: Literal["auto", "kernel", "none"] = "auto"
    search: Literal["exact", "approximate"] = "exact"
    choose: bool = False
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True)
class MethodResult:
    """One method on the judged rows.

    Attributes
    ----------
    key : str
        "model", or that of the recalibrator.
    title : str
    scores : RegressionScores
        Every measure with its interval. What is infinite is absent, and the notes say so.
    coverage : Coverage
    tests : tuple of UniformityTest
    fault : Fault
        Of all rows together.
    differences : dict
        Estimate of the paired difference to the model, below 0 where the method is better:
        "crps", "log_score" (where finite), "mse", "smis95". Empty for the model.
    needed : int
    looked_at : int
        Neighbourhoods of the space that are miscalibrated beyond chance, of so many looked at.
    fit_seconds, predict_seconds : float
    notes : tuple of str
        What was warned of, in plain sentences.
    """

    key: str
    title: str
    scores: RegressionScores
    coverage: Coverage
    tests: tuple[UniformityTest, ...]
    fault: Fault
    differences: dict[str, Estimate]
    needed: int
    looked_at: int
    fit_seconds: float
    predict_seconds: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """How k and the space were chosen: cross-fitted CRPS over a grid.

    Attributes
    ----------
    spaces : tuple of str
        Untrusted text.
    ks : tuple of int
    crps, standard_error : tuple of tuple of float
        One row a space, one column a k; the error is that of the difference to the best.
    model_crps : float
    space, k
        The choice.
    words : str
        The finding in a sentence. Untrusted text where a layer is named.
    n : int
    """

    spaces: tuple[str, ...]
    ks: tuple[int, ...]
    crps: tuple[tuple[float, ...], ...]
    standard_error: tuple[tuple[float, ...], ...]
    model_crps: float
    space: str
    k: int
    words: str
    n: int


@dataclass(frozen=True)
class RecalibrationRecord:
    """What was done.

    Attributes
    ----------
    settings : RecalibrationSettings
    space : str
        Where neighbours were sought in the end. Untrusted text.
    k : int
        Neighbours in the end: as asked for, as chosen, or as many as there are.
    judged_on : str
        "evaluation": fitted on the calibration set, judged on the evaluation set;
        "cross-fitted": each calibration row repaired by the other folds.
    n_fit, n_judged : int
    scale : float
        Mean absolute outcome of the calibration set, which makes sMIS (decision D71).
    methods : tuple of MethodResult
        The model first.
    selection : Selection or None
    has_evaluation, has_truth : bool
    weighted : bool
        Whether the rows have weights, which the measures then count by.
    notes : tuple of str
    """

    settings: RecalibrationSettings
    space: str
    k: int
    judged_on: Literal["evaluation", "cross-fitted"]
    n_fit: int
    n_judged: int
    scale: float
    methods: tuple[MethodResult, ...]
    selection: Selection | None
    has_evaluation: bool
    has_truth: bool
    weighted: bool
    notes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The model and the methods, in their order."""
        return tuple(one.key for one in self.methods)

    def result(self, key: str) -> MethodResult:
        """What was measured of one method; KeyError where there is none."""
        return next((one for one in self.methods if one.key == key), None) or _missing(key)


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """One method's answers for the judged rows, (n,) each unless said otherwise.

    Attributes
    ----------
    pit : float64
        Randomised where the distributions have jumps.
    mean, std, crps : float64
    low, high : (n, 5) float64
        Central intervals of the probabilities `STATED`.
    quantiles : (r, 199) float32
        Quantiles at the levels `GRID`, of the shown rows.
    """

    pit: FloatArray
    mean: FloatArray
    std: FloatArray
    crps: FloatArray
    low: FloatArray
    high: FloatArray
    quantiles: np.ndarray[tuple[int, int], np.dtype[np.float32]]

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """The central interval of one of the levels `STATED`, (n,) each."""
        at = STATED.index(level)
        return self.low[:, at], self.high[:, at]

    def missed(self, y: FloatArray, level: float) -> IntArray:
        """-1 where the outcome lies below the interval, 1 where above, 0 inside, (n,)."""
        low, high = self.interval(level)
        return (y > high).astype(np.int64) - (y < low)


@dataclass(frozen=True, eq=False)
class RecalibrationRun:
    """A recalibration with the rows it was judged on.

    Attributes
    ----------
    record : RecalibrationRecord
    y : (n,) float64
        Outcomes of the judged rows, in the order of their table.
    true_mean : (n,) float64 or None
        What the outcomes' means truly are, where the table holds it.
    shown : (r,) int64
        Judged rows whose quantiles are kept, ascending.
    space : Space
        Coordinates of the rows where neighbours were sought, in single precision.
    axes : (n, 2) float64
        The judged rows on the space's principal axes.
    answers : mapping of str to RowAnswers
        By the method's key, each read when it is asked for.
    folder : Path
        Where it lies.
    """

    record: RecalibrationRecord
    y: FloatArray
    true_mean: FloatArray | None
    shown: IntArray
    space: Space
    axes: FloatArray
    answers: Mapping[str, RowAnswers] = field(repr=False)
    folder: Path = field(repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The model and the methods, as the record orders them."""
        return self.record.keys

    def result(self, key: str) -> MethodResult:
        """The record of one method; KeyError where there is none."""
        return self.record.result(key)

    def intervals(self, key: str, rows: IntArray | None = None) -> pd.DataFrame:
        """Outcome, model's and repaired means and intervals of rows, for reading and download.

        Columns: row (from 1), outcome, then for the model and the method mean, std and the two
        ends of each interval.
        """
        chosen = np.arange(len(self.y)) if rows is None else np.asarray(rows)
        table = {"row": chosen + 1, "outcome": self.y[chosen]}
        for who, answers in (("model", self.answers[MODEL]), (key, self.answers[key])):
            table[f"{who}_mean"] = answers.mean[chosen]
            table[f"{who}_std"] = answers.std[chosen]
            for at, level in enumerate(STATED):
                table[f"{who}_low_{level:.0%}"] = answers.low[chosen, at]
                table[f"{who}_high_{level:.0%}"] = answers.high[chosen, at]
        return pd.DataFrame(table)


def recommended(methods: Sequence[MethodResult]) -> str:
    """Key of the method with the least CRPS on the judged rows, among those that repair the model.

    Where none lowers the CRPS beyond chance it is the model itself, or "where_needed" where that
    is among the methods: it leaves alone what cannot be distinguished from calibrated, so it costs
    next to
    nothing (tests/benchmarks/RESULTS_ensembles.md) and repairs what later rows may show.
    """
    changes = {
        one.key: one.differences["crps"]
        for one in methods
        if "crps" in one.differences and not RECALIBRATORS[one.key].comparison
    }
    best = min(changes, key=lambda key: changes[key].value, default=MODEL)
    if best != MODEL and changes[best].high < 0.0:
        return best
    return "where_needed" if "where_needed" in changes else MODEL


def _missing(key: str) -> MethodResult:
    raise KeyError(key)


class KeptAnswers:
    """What measures ask of n distributions about their own outcomes, filled in block by block.

    It answers as a `PredictiveDistribution` does where only outcomes already known are asked
    about, so the diagnostics measure any number of rows without their distributions in memory.

    Parameters
    ----------
    y : (n,)
        Outcomes.
    shown : (r,) int, ascending
        Rows whose quantiles are kept.
    scale : float
        For the scores of `row_scores`.
    seed : int
        Of the randomised PIT values: the same as `randomised_pit` gives for all rows at once.
    """

    def __init__(self, y: FloatArray, shown: IntArray, scale: float, seed: int) -> None:
        self._y, self._shown, self._scale = y, shown, scale
        self._seed = seed
        self.has_density = True
        n, levels = len(y), len(STATED)
        self._foot, self._top = np.empty(n), np.empty(n)
        self._mean, self._std = np.empty(n), np.empty(n)
        self._low, self._high = np.empty((n, levels)), np.empty((n, levels))
        self.scores = {name: np.empty(n) for name in ("crps", "log_score", "mse", "smis95")}
        self._quantiles = np.empty((len(shown), len(GRID)), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._y)

    def fill(self, rows: IntArray, distribution: PredictiveDistribution) -> None:
        """Take the answers of these rows' distributions, given in the rows' order."""
        y = self._y[rows]
        self.has_density = self.has_density and distribution.has_density
        self._foot[rows] = distribution.pit(y, np.zeros(len(y)))
        self._top[rows] = distribution.pit(y, np.ones(len(y)))
        self._mean[rows], self._std[rows] = distribution.mean(), distribution.std()
        low, high = zip(*map(central_levels, STATED), strict=True)
        ends = distribution.ppf(np.array([low + high]))
        self._low[rows], self._high[rows] = ends[:, : len(STATED)], ends[:, len(STATED) :]
        for name, values in row_scores(distribution, y, scale=self._scale).items():
            self.scores[name][rows] = values
        places = np.searchsorted(self._shown, rows)
        there = np.flatnonzero(np.isin(rows, self._shown))
        if len(there):
            self._quantiles[places[there]] = distribution[there].ppf(GRID[None, :])

    @property
    def pit(self) -> FloatArray:
        """PIT values of all rows, once all are filled in."""
        return even(self._foot, self._top, self._seed)

    def kept(self, folder: Path) -> RowAnswers:
        """What a result keeps of them, as it lies in its folder from now on."""
        crps = self.scores["crps"]
        arrays = (self.pit, self._mean, self._std, crps, self._low, self._high, self._quantiles)
        return RowAnswers(*(keep_array(folder, values) for values in arrays))

    # as a PredictiveDistribution answers

    def mean(self) -> FloatArray:
        return self._mean

    def std(self) -> FloatArray:
        return self._std

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        at = STATED.index(level)
        return self._low[:, at], self._high[:, at]

    def crps(self, y: FloatArray) -> FloatArray:
        return self.scores["crps"]

    def log_density(self, y: FloatArray) -> FloatArray:
        return -self.scores["log_score"]
