"""What the file of a calibrator or a recalibrator says of its model, its tables and its gain."""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.errors import InputError


@dataclass(frozen=True)
class ModelMark:
    """The model that was calibrated: its file's name (untrusted), its kind, its SHA-256."""

    name: str
    kind: str
    digest: str


@dataclass(frozen=True)
class DataMark:
    """A table: its file's name (untrusted), its SHA-256, its rows."""

    name: str
    digest: str
    rows: int


@dataclass(frozen=True)
class CardEstimate:
    """A measure before and after calibration.

    Attributes
    ----------
    name, label : str
        Full and short name of the estimator.
    before, after : float
        Values for the model and for the calibrated output, on the same rows.
    low, high : float
        Interval of ``after`` at confidence ``level``.
    n : int
        Number of rows.
    judged : str
        The rows: "cross-fitted on the calibration set, 5 folds", "evaluation set".
    """

    name: str
    label: str
    before: float
    after: float
    low: float
    high: float
    n: int
    judged: str
    level: float = 0.95


def refuse_other_model(mark: ModelMark | None, digest: str, what: str = "calibrator") -> None:
    """Refuse any model but the one that was calibrated; without a mark every model is accepted.

    Parameters
    ----------
    digest : str
        SHA-256 of the given model's file.
    what : str
        What the file holds, for the error.

    Raises
    ------
    InputError
    """
    if mark is not None and mark.digest != digest:
        raise InputError(
            f"The {what} belongs to the model {mark.name[:80]!r} with the SHA-256 "
            f"{mark.digest[:12]}..., and this model has {digest[:12]}...",
            fix=f"Give the model that it was fitted for, or fit a {what} for this one. If it is "
            f"the same model saved again or in another file format, load the {what} with "
            "any_model=True (--any-model on the command line).",
        )
