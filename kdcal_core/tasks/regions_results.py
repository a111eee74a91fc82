"""What calibrating by regions was asked for, and what each partition came to on the judged rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kdcal_core.calibration import calibrator_entry
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import Estimate, PairedAuc

ONE_MAP = "one_map"
"""One Platt map for all rows: what calibration without regions does."""
PARTITION_TITLES = {
    **{
        key: calibrator_entry(f"heterogeneous_{key}").label
        for key in ("tree", "boosted", "auc", "forest")
    },
    "column": "The chosen column",
}


@dataclass(frozen=True)
class RegionsSettings:
    """How a classification is calibrated region by region.

    Attributes
    ----------
    partitions : tuple of str
        Keys of `PARTITION_TITLES`; one map for all rows stands beside them always.
    max_depth : int or None
        None for each partition's own rule, as where its calibrator is compared and exported.
    min_rows : int or None
        Fewest calibration rows in a region; None for the calibrator's own rule.
    n_trees : int
        Of a forest; the most stages of boosted trees.
    column : str or None
        For the partition "column": a column of the table that is not its target.
    folds, seed : int
        Folds where there is no evaluation set.
    """

    partitions: tuple[str, ...] = ("tree", "boosted", "auc")
    max_depth: int | None = None
    min_rows: int | None = None
    n_trees: int = 100
    column: str | None = None
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True)
class RegionsMethod:
    """One way to calibrate, judged on rows that it was not fitted on.

    Attributes
    ----------
    key, title : str
    log_loss : Estimate
    difference : Estimate or None
        Log loss minus the model's, row by row; None for the model.
    auc : PairedAuc or None
        The model's (a) and this one's (b); None for the model, for more than two classes, and
        where the judged rows hold one class only.
    n_regions : int
        Of the fit on the whole calibration set, over all its partitions.
    seconds : float
        To fit, over all folds and the whole calibration set.
    notes : tuple of str
        Untrusted text: regions are named.
    """

    key: str
    title: str
    log_loss: Estimate
    difference: Estimate | None
    auc: PairedAuc | None
    n_regions: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegionsRecord:
    """What was done.

    Attributes
    ----------
    settings : RegionsSettings
    judged_on : str
        "evaluation": fitted on the calibration set, judged on the evaluation set;
        "cross-fitted": each calibration row calibrated by the other folds.
    n_fit, n_judged : int
    n_training : int
        Rows that trees of the classes are grown on; 0 where there are none.
    event : str or None
        With two classes the class whose probability is looked at. Untrusted text.
    methods : tuple of RegionsMethod
        The model first.
    weighted : bool
        Whether the judged rows have weights, which everything counts by.
    notes : tuple of str
        Untrusted text.
    """

    settings: RegionsSettings
    judged_on: Literal["evaluation", "cross-fitted"]
    n_fit: int
    n_judged: int
    n_training: int
    event: str | None
    methods: tuple[RegionsMethod, ...]
    weighted: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class EventScores:
    """Stated probabilities of an event and whether it happened.

    Attributes
    ----------
    score : (n,) float64
        With two classes the probability of the second, else that of the predicted class.
    hit : (n,) float64
        1 where the row is of the second class, or the prediction is right.
    """

    score: FloatArray
    hit: FloatArray


@dataclass(frozen=True, eq=False)
class RegionsRun:
    """A calibration by regions, before and after.

    Attributes
    ----------
    record : RegionsRecord
    scores : mapping of str to EventScores
        Of the judged rows, by the method's key, each read when it is asked for.
    training : EventScores or None
        The model's scores of its training rows, or of 100,000 of them.
    weight : (n,) float64 or None
        Weights of the judged rows, where they have any.
    folder : Path
        Where it lies.
    """

    record: RegionsRecord
    scores: Mapping[str, EventScores] = field(repr=False)
    training: EventScores | None = field(repr=False)
    weight: FloatArray | None = field(repr=False)
    folder: Path = field(repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The model and every method, in the record's order."""
        return tuple(one.key for one in self.record.methods)

    def method(self, key: str) -> RegionsMethod:
        """The record of one method; KeyError where there is none."""
        for one in self.record.methods:
            if one.key == key:
                return one
        raise KeyError(key)
