"""Spiegelhalter's test: does the Brier score agree with the stated probabilities?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import (
    Kind,
    Target,
    check_level,
    overall_effect,
    targets,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import normal_quantile
from kdcal_core.text import number_text, p_text


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
    return _tested(*_of_target(target), len(target.score))


def brier_gap(target: Target, level: float) -> Estimate:
    """The Brier score minus what the stated probabilities let expect, with Spiegelhalter's test.

    It is the mean of ``(y - p)^2 - p (1 - p)``, which is ``(y - p) (1 - 2 p)``: above 0 of a model
    that is too sure. Its interval excludes 0 where the test refuses; z and p value stand with how
    it is made.

    Examples
    --------
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> sure = np.repeat([0.9, 0.1], 200)
    >>> hit = np.concatenate([np.arange(200) % 10 > 2, np.arange(200) % 10 < 3])
    >>> found = brier_gap(confidence_target(sure, hit.astype(int)), 0.95)
    >>> round(found.value, 2), found.low > 0.0, found.interval
    (0.16, True, "normal; Spiegelhalter's z 13.3, p value below 0.0001")
    """
    moved, variance = _of_target(target)
    return _gap(moved, variance, float(target.weight.sum()), len(target.score), level)


def brier_gap_of_cells(
    score: FloatArray, count: FloatArray, hits: FloatArray, level: float, effect: float = 1.0
) -> Estimate:
    """As :func:`brier_gap`, of rows merged to cells of one score, (m,) each.

    ``effect`` is that of dependence on the variance.
    """
    slope, n = 1.0 - 2.0 * score, float(count.sum())
    variance = float(np.square(slope) @ (count * score * (1.0 - score)))
    return _gap(float(slope @ (hits - count * score)), variance * effect, n, int(n), level)


def _of_target(target: Target) -> tuple[float, float]:
    """The sum of ``w (y - p) (1 - 2 p)``, and its variance if the probabilities are right."""
    score, slope = target.score, target.weight * (1.0 - 2.0 * target.score)
    variance = float(np.square(slope) @ (score * (1.0 - score)))
    moved = float(slope @ (target.hit - score))
    return moved, variance * overall_effect(target) if variance > 0.0 else 0.0


def _tested(moved: float, variance: float, n: int) -> Spiegelhalter:
    if variance <= 0.0:
        return Spiegelhalter(np.nan, np.nan, n)
    z = moved / variance**0.5
    return Spiegelhalter(z, float(2.0 * ndtr(-abs(z))), n)


NAME = "Brier score minus its expectation"
LABEL = "Brier minus expected"


def _gap(moved: float, variance: float, weight: float, n: int, level: float) -> Estimate:
    check_level(level)
    test = _tested(moved, variance, n)
    known = bool(np.isfinite(test.z))
    reach = normal_quantile(level) * variance**0.5 / weight if known else np.nan
    value = moved / weight if known else np.nan
    return Estimate(
        name=NAME,
        label=LABEL,
        value=value,
        low=value - reach,
        high=value + reach,
        n=n,
        level=level,
        interval=(
            f"normal; Spiegelhalter's z {number_text(test.z, 2.0)}, p value {p_text(test.p_value)}"
            if known
            else "not defined, because every stated probability is 0, 0.5 or 1"
        ),
        lower_is_better=None,
        target=0.0,
    )
