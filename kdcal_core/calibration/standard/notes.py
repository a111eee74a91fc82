"""What the standard calibrators tell of the rows they were fitted on."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.base import Calibrator
from kdcal_core.data import IntArray

ROWS_PER_PARAMETER = 10


def note_absent(calibrator: Calibrator, y: IntArray) -> None:
    """Say which classes no calibration row has."""
    counts = np.bincount(y, minlength=calibrator.n_classes_)
    for label in np.flatnonzero(counts == 0):
        calibrator._note(
            f"Class {label} does not occur among the calibration rows: what is said of it is a "
            "guess that it is rare.",
            warn=True,
        )


def note_few(calibrator: Calibrator, n_rows: int, n_parameters: int) -> None:
    """Say where there are too few rows for so many parameters, and how many would do."""
    enough = ROWS_PER_PARAMETER * n_parameters
    if n_rows < enough:
        calibrator._note(
            f"{n_rows:,} rows are few for {n_parameters:,} parameters; about {enough:,} would do."
        )
