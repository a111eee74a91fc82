"""A calibrator on its way out: what was asked for, what it gains, how it maps, and its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kdcal_core.calibration.export import CalibratorCard
from kdcal_core.diagnostics.calibrator_map import CalibratorMap
from kdcal_core.evaluation import Comparison, MethodScores, PairedDifference

CALIBRATOR_FILE, ONNX_FILE = "calibrator.kdcal", "calibrated.onnx"


@dataclass(frozen=True)
class ExportSettings:
    """Which calibrator is fitted and taken away.

    Attributes
    ----------
    key : str
        Of `kdcal_core.calibration.CALIBRATORS`.
    inner : str
        The map inside a region, a key of `kdcal_core.calibration.regions.MAPS`. This and
        the next five count for calibrators of the family "partition" alone.
    max_depth, min_rows : int or None
        Of its trees; None for the calibrator's own rule.
    prune : bool
        Whether a tree is cut back to the size with the best cross-validated log loss.
    columns : tuple of str
        A column whose values are the regions, or several whose combinations are, in place of a
        tree. Untrusted text.
    layer : str or None
        A hidden layer of the model that the trees are grown on, in place of the inputs.
    folds, seed : int
        Folds where there is no evaluation set to judge by; seed of every draw.
    """

    key: str
    inner: str = "platt"
    max_depth: int | None = None
    min_rows: int | None = None
    prune: bool = False
    columns: tuple[str, ...] = ()
    layer: str | None = None
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True)
class ExportRecord:
    """What was done.

    Attributes
    ----------
    settings : ExportSettings
    title : str
        The calibrator's full name. Untrusted text where a column or a layer is named.
    n_fit, n_training : int
        Rows of the calibration set, and training rows that a partition was grown on.
    fit_seconds : float
    why_not_judged : str or None
        Why there is no judgement; None where there is one.
    onnx_difference : float or None
        Largest difference between the ONNX model and the calibrator, where one was written.
    onnx_rows : int
        Rows that it was found on.
    why_no_onnx : str or None
    """

    settings: ExportSettings
    title: str
    n_fit: int
    n_training: int
    fit_seconds: float
    why_not_judged: str | None
    onnx_difference: float | None
    onnx_rows: int
    why_no_onnx: str | None


@dataclass(frozen=True, eq=False)
class Gain:
    """One measure before and after on the same rows."""

    before: MethodScores
    after: MethodScores
    pairs: dict[str, PairedDifference]
    comparison: Comparison

    @classmethod
    def of(cls, found: Comparison) -> Gain:
        """The model against the one other method of a comparison."""
        after = found.methods[-1]
        pairs = {
            measure.key: next(
                pair for pair in found.paired[measure.key, "model"] if pair.key == after.key
            )
            for measure in found.measures
            if (measure.key, "model") in found.paired
        }
        return cls(found.methods[0], after, pairs, found)


@dataclass(frozen=True, eq=False)
class ExportRun:
    """A fitted calibrator with its judgement and its files.

    Attributes
    ----------
    record : ExportRecord
    comparison : Comparison or None
        With the model as it is, on rows that it was not fitted on; None where it could not be
        judged.
    map : CalibratorMap
    card : CalibratorCard
        Untrusted text: names of files, classes, columns.
    calibrator_file : Path
    onnx_file : Path or None
    """

    record: ExportRecord
    comparison: Comparison | None
    map: CalibratorMap
    card: CalibratorCard
    calibrator_file: Path = field(repr=False)
    onnx_file: Path | None = field(repr=False)

    @cached_property
    def gain(self) -> Gain | None:
        """What the judgement shows; None where there is none."""
        return None if self.comparison is None else Gain.of(self.comparison)

    @property
    def fit_notes(self) -> tuple[str, ...]:
        """What the card notes of the fit, without what it notes of the judgement."""
        why = self.record.why_not_judged
        judged = () if self.comparison is None else self.comparison.notes
        return tuple(
            note
            for note in self.card.notes
            if note not in judged and (why is None or not note.endswith(why))
        )


@dataclass(frozen=True, eq=False)
class TriedRun:
    """A calibrator file that was tried on a review.

    Attributes
    ----------
    card : CalibratorCard
        Untrusted.
    comparison : Comparison
        The review's rows with the model as it is and with the calibrator.
    same_rows : bool
        Whether it was fitted on the very rows that it is judged by.
    has_model : bool
        Whether the file names the model that it was fitted for, which is then the review's.
    """

    card: CalibratorCard
    comparison: Comparison
    same_rows: bool
    has_model: bool

    @cached_property
    def gain(self) -> Gain:
        """What it does to the rows."""
        return Gain.of(self.comparison)
