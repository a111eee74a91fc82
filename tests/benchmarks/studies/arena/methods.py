"""The methods of the arena: kdcal's, kdcal's without shrinkage, and those of probmetrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from kdcal_core.calibration import CALIBRATORS, score_calibrator
from kdcal_core.data import FloatArray, IntArray

AS_IT_IS = "uncalibrated"
OURS = "recommended"
# with more classes one fit takes longer than all others
_MOST_CLASSES = {"dirichlet": 12, "dirichlet alone": 12}
# those whose own rule is a method of its own in the literature
_ALONE = (
    *("sts", "platt", "isotonic", "beta", "quadratic", "spline", "centred_isotonic"),
    *("venn_abers", "histogram_classes", "vector", "dirichlet"),
)
_THEIRS = (
    *("temp-scaling", "ts-mix", "svs", "sms", "logistic-mix", "isotonic", "cir"),
    *("affine-scaling", "quadratic-scaling", "ets"),
)
_ONE_BY_ONE = ("affine-scaling", "quadratic-scaling")  # of two classes; more one against the rest

Said = Callable[[FloatArray], FloatArray]


def every() -> tuple[str, ...]:
    """All methods: "sts" is kdcal's default, "sts alone" without shrinkage, "svs*" probmetrics'."""
    ours = tuple(key for key, entry in CALIBRATORS.items() if not entry.needs)
    theirs = _THEIRS if find_spec("probmetrics") is not None else ()
    return (*ours, *(f"{key} alone" for key in _ALONE), *(f"{key}*" for key in theirs))


def takes(key: str, n_classes: int) -> bool:
    """Whether the method takes part with so many classes."""
    return n_classes <= _MOST_CLASSES.get(key, n_classes)


def name(key: str) -> str:
    """The method's name in tables."""
    if key.endswith("*"):
        return f"{key[:-1]} (probmetrics)"
    if key == "sts alone":
        return "STS, the best temperature"
    label = CALIBRATORS[key.removesuffix(" alone")].label
    return f"{label}, without shrinkage" if key.endswith(" alone") else label


def fitted(key: str, proba: FloatArray, y: IntArray) -> Said:
    """The fitted method as a function of probabilities (n, K)."""
    if key.endswith("*"):
        return _theirs(key[:-1], proba, y)
    calibrator = score_calibrator(key.removesuffix(" alone"))
    if key.endswith(" alone"):
        calibrator.set_params(shrinkage=None)
    if key == "sts alone":
        calibrator.set_params(loss="full")  # as in Guo et al.
    return calibrator.fit(proba, y).predict_proba


def _theirs(key: str, proba: FloatArray, y: IntArray) -> Said:
    from probmetrics.calibrators import (
        ETSCalibrator,
        MulticlassOneVsRestCalibrator,
        get_calibrator,
    )

    made: Any = ETSCalibrator() if key == "ets" else None
    if made is None:
        more = {"logistic_binary_type": "quadratic"} if key.startswith("logistic") else {}
        made = get_calibrator(key, **more)
    if key in _ONE_BY_ONE and proba.shape[1] > 2:
        made = MulticlassOneVsRestCalibrator(made)
    return partial(_answers, made.fit(proba, y), proba.shape[1])


def _answers(made: Any, n_classes: int, proba: FloatArray) -> FloatArray:
    found: FloatArray = made.predict_proba(proba)
    if found.shape[1] != n_classes:
        raise ValueError("a class is missing")
    return found
