"""Choosing the kernel's bandwidth: few changes of slope, or leave-one-out likelihood."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from kdcal_core.calibration._kernel_sum import KernelSum
from kdcal_core.data.schema import FloatArray
from kdcal_core.statistics import CLIP

STEP = 1.05
FLAT = 1e-9
SMALLEST = 1e-3  # of the range
LARGEST = 20.0  # of the range
SIGN_CHANGES = {"mon4": 4, "mon2": 2, "mon": 0}


def bandwidth_grid(span: float) -> FloatArray:
    """Bandwidths from span / 1000 upwards, each 1.05 times the one before (decision D40)."""
    steps = int(np.ceil(np.log(LARGEST / SMALLEST) / np.log(STEP)))
    grid: FloatArray = span * SMALLEST * STEP ** np.arange(steps + 1, dtype=np.float64)
    return grid


def sign_changes(confidence: FloatArray, flat: float = FLAT) -> int:
    """How often the slope of a sampled curve changes sign; steps below ``flat`` are ignored.

    Examples
    --------
    >>> sign_changes(np.array([0.1, 0.5, 0.5, 0.4, 0.4 + 1e-12, 0.9]))
    2
    """
    step = np.diff(confidence)
    sign = np.sign(step[np.abs(step) >= flat])
    return int(np.count_nonzero(sign[1:] != sign[:-1]))


def log_odds(right: KernelSum, wrong: KernelSum, at: FloatArray, bandwidth: float) -> FloatArray:
    """Logarithm of Conf / (1 - Conf), Conf of Salamon et al., Eq. 9."""
    return right(at, bandwidth)[0] - wrong(at, bandwidth)[0]


def smooth_bandwidths(
    right: KernelSum, wrong: KernelSum, grid: FloatArray
) -> dict[str, tuple[float, bool]]:
    """First bandwidths, going up, whose curve on ``grid`` has at most 4, 2 and 0 sign changes.

    Salamon et al., Eqs. 19 and 20, decision D40. Each comes with True if it was found; else it is
    the largest bandwidth tried.

    A coarse grid comes first: if the curve has too many changes on every m-th point of the
    grid, each larger than m times ``FLAT``, it has at least as many on the full grid.
    """
    found: dict[str, tuple[float, bool]] = {}
    wanted = list(SIGN_CHANGES)
    bandwidths = bandwidth_grid(grid[-1] - grid[0])
    for bandwidth in bandwidths:
        allowed = SIGN_CHANGES[wanted[0]]
        for stride in (16, 4, 1):
            confidence = expit(log_odds(right, wrong, grid[::stride], float(bandwidth)))
            changes = sign_changes(confidence, FLAT * stride)
            if changes > allowed:
                break
        while wanted and changes <= SIGN_CHANGES[wanted[0]]:
            found[wanted.pop(0)] = float(bandwidth), True
        if not wanted:
            break
    for rule in wanted:
        found[rule] = float(bandwidths[-1]), False
    return found


def leave_one_out_bandwidth(right: KernelSum, wrong: KernelSum, span: float) -> float:
    """The bandwidth of the grid with the smallest leave-one-out Eq. 14 loss (decision D61).

    A row's confidence is computed with its own kernel left out. Above 256 distinct scores, rows
    closer together than an eighth of the bandwidth are placed at their common mean.
    """
    bandwidths = bandwidth_grid(span)
    loss = [_leave_one_out_loss(right, wrong, float(b)) for b in bandwidths]
    return float(bandwidths[int(np.argmin(loss))])


def _leave_one_out_loss(right: KernelSum, wrong: KernelSum, bandwidth: float) -> float:
    loss = 0.0
    for own, other in ((right, wrong), (wrong, right)):
        places = own.places(bandwidth)
        odds = own.without_own(places, bandwidth) - other(places.centre, bandwidth)[0]
        loss -= float(places.weight @ np.log(np.clip(expit(odds), CLIP, 1.0)))
    return loss
