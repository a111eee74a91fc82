"""Spiegelhalter's test: does the Brier score agree with the stated probabilities?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from kdcal_core.diagnostics.targets import Kind, Target, overall_effect, targets
from kdcal_core.errors import InputError


@dataclass(frozen=True)
class Spiegelhalter:
    """Spiegelhalter's z and its p value.

    Attributes
    ----------
    z : float
        Above 0 the Brier score is larger than the stated probabilities let expect, as of a model
        that is too sure; below 0 it is smaller. NaN if every stated probability is 0, 0.5 or 1:
        then it says nothing.
    p_value : float
        Of both sides, by the normal distribution.
    n : int
        Rows.
    """

    z: float
    p_value: float
    n: int


def spiegelhalter_test(
    proba: Any,
    y: Any,
    *,
    kind: Kind = "confidence",
    label: int | None = None,
    sample_weight: Any = None,
) -> Spiegelhalter:
    """Spiegelhalter's z (1986) of the confidence, or of one class's probability.

    With probability p, outcome y and weight w of each row, z is the sum of ``w (y - p) (1 - 2 p)``
    over the root of the sum of ``w^2 (1 - 2 p)^2 p (1 - p)``: its standard deviation if every event
    happens with its stated probability.

    Parameters
    ----------
    proba : (n, K) array
    y : (n,) array of int
    kind, label
        As in :func:`kdcal_core.diagnostics.reliability`; a class is needed but for "confidence".
        Both of two classes have the same z.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights. Of dependent rows z is divided by the root of the design effect (Rao
        and Scott 1981, first order), as in :func:`kdcal_core.diagnostics.calibration_test`.

    Raises
    ------
    InputError
        As in :func:`kdcal_core.diagnostics.reliability`, without a class that is needed, or if no
        row is predicted to be the class.

    Notes
    -----
    The test sees only log odds that are too large or too small: faults that leave the Brier score
    as expected pass. :func:`kdcal_core.diagnostics.calibration_test` has this contrast among others
    and finds more.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 1000)
    >>> y = (rng.random(1000) < p).astype(int)
    >>> sure = p**2 / (p**2 + (1 - p) ** 2)  # log odds twice as large
    >>> good, bad = (spiegelhalter_test(np.stack([1 - q, q], axis=1), y) for q in (p, sure))
    >>> good.p_value > 0.05, bad.z > 0, bad.p_value < 0.001
    (True, True, True)
    """
    if kind != "confidence" and label is None:
        raise InputError("No class is named", fix="Give its index as label.")
    (found,) = targets(proba, y, sample_weight, kind, label)
    if not len(found.score):
        raise InputError("No row is predicted to be this class", fix="Choose another class.")
    return target_spiegelhalter(found)


def target_spiegelhalter(target: Target) -> Spiegelhalter:
    """As :func:`spiegelhalter_test`, for one target with rows."""
    score, slope = target.score, target.weight * (1.0 - 2.0 * target.score)
    variance = float(np.square(slope) @ (score * (1.0 - score)))
    if variance <= 0.0:
        return Spiegelhalter(np.nan, np.nan, len(score))
    z = float(slope @ (target.hit - score)) / (variance * overall_effect(target)) ** 0.5
    return Spiegelhalter(z, float(2.0 * ndtr(-abs(z))), len(score))
