"""What the standard calibrators tell of the rows they were fitted on."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.base import Calibrator
from kdcal_core.data import IntArray


def note_absent(calibrator: Calibrator, y: IntArray) -> None:
    """Say which classes no calibration row has."""
    counts = np.bincount(y, minlength=calibrator.n_classes_)
    for label in np.flatnonzero(counts == 0):
        calibrator._note(
            f"{calibrator._class(int(label))} does not occur among the calibration rows: what is "
            "said of it is a guess that it is rare.",
            warn=True,
        )
