"""Frozen results of a comparison of calibrators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.reliability import Reliability
from kdcal_core.evaluation.measures import MEASURES, Measure
from kdcal_core.evaluation.paired import PairedDifference

Against = Literal["model", "best"]


@dataclass(frozen=True, eq=False)
class MethodScores:
    """All that was measured of one method.

    Attributes
    ----------
    key, name, family : str
        Names of a user's own calibrators are untrusted text.
    scores : dict of measure key to Estimate
        On fewer than 20 rows without an interval: ``low`` and ``high`` are NaN.
    fit_seconds, predict_seconds_per_million : float
        Wall clock. The only numbers here that another run does not give again.
    size_bytes : int
        Of the fitted state.
    reliability : Reliability
        Of the confidence in the predicted class, on the judged rows.
    notes : tuple of str
        Of the fit on the whole calibration set.
    """

    key: str
    name: str
    family: str
    scores: dict[str, Estimate]
    fit_seconds: float
    predict_seconds_per_million: float
    size_bytes: int
    reliability: Reliability
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Comparison:
    """Calibrators side by side on the same rows; see :func:`kdcal_core.evaluation.compare`.

    Attributes
    ----------
    methods : tuple of MethodScores
        The model first, then in the order asked for.
    measured : tuple of str
        Keys of the measures that are defined on these rows.
    reference : str
        Key of the model's method.
    best : dict of measure key to method key
    paired : dict of (measure key, "model" or "best") to tuple of PairedDifference
        One for each method, in the order of ``methods``; measures of group "speed" have none.
    n : int
        Rows that judge.
    folds : int
        0 where the evaluation set judges.
    judged : str
        In words: "cross-fitted on the calibration set" or "evaluation set".
    overlap : int or None
        Rows of the evaluation set that the calibration set has too; None without one.
    seed : int
    notes : tuple of str
        What the reader must know, in plain sentences.
    failed : dict of method key to sentence
        Why a method is not among ``methods``.
    level : float
    """

    methods: tuple[MethodScores, ...]
    measured: tuple[str, ...]
    reference: str
    best: dict[str, str]
    paired: dict[tuple[str, Against], tuple[PairedDifference, ...]]
    n: int
    folds: int
    judged: str
    overlap: int | None
    seed: int
    notes: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    level: float = 0.95

    def method(self, key: str) -> MethodScores:
        """The method of this key."""
        return next(one for one in self.methods if one.key == key)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that are defined on these rows."""
        return tuple(MEASURES[key] for key in self.measured)

    def measure(self, key: str) -> Measure:
        """The measure of this key."""
        return MEASURES[key]

    def close_to_best(self, measure: str) -> tuple[str, ...]:
        """Keys of the best method and of all that cannot be told apart from it.

        The truly best method is among them with probability ``level``.
        """
        pairs = self.paired[measure, "best"]
        return tuple(pair.key for pair in pairs if pair.verdict != "worse")

    def table(self) -> pd.DataFrame:
        """One row a method and measure, for download."""
        rows = []
        for measure in self.measures:
            pairs = {
                against: {pair.key: pair for pair in self.paired.get((measure.key, against), ())}
                for against in ("model", "best")
            }
            for method in self.methods:
                score = method.scores[measure.key]
                row = {
                    "measure": measure.key,
                    "method": method.key,
                    "value": score.value,
                    "low": score.low,
                    "high": score.high,
                    "n": score.n,
                }
                for against, found in pairs.items():
                    pair = found.get(method.key)
                    row[f"less_{against}"] = pair.difference.value if pair else None
                    row[f"less_{against}_low"] = pair.difference.low if pair else None
                    row[f"less_{against}_high"] = pair.difference.high if pair else None
                    row[f"adjusted_p_{against}"] = pair.adjusted_p if pair else None
                    row[f"verdict_{against}"] = pair.verdict if pair else None
                rows.append(row)
        return pd.DataFrame(rows)
