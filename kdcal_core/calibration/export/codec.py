"""A fitted calibrator to JSON and arrays and back, by the rule that all calibrators keep.

Fitted state is in attributes whose names end with an underscore, and each holds None, a bool, an
int, a float, a str, an array, a frozen dataclass of such, a nested calibrator, or a tuple or
str-keyed dict of such. In JSON the first ones stand as they are and everything else is an object
with one key that says what it is::

    {"float": "nan"}              a float that JSON has no word for
    {"array": 3}                  the array a3.npy
    {"tuple": [...]}              {"dict": {...}}
    {"record": 2}                 the dataclass number 2 of the file's records, shared where it
                                  stands in several places, as the columns of a forest's trees do
    {"calibrator": {...}}         class, parameters and state
    {"estimator": {...}}          a kernel density estimator, which needs its parent

A calibrator whose parameter ``shrinkage`` is None is told without it, as files were written before
there was shrinkage; where a file does not say it, there is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.base import Calibrator
from kdcal_core.calibration.export.annotations import fits
from kdcal_core.calibration.export.classes import (
    CALIBRATOR_HOMES,
    ESTIMATOR_HOMES,
    RECORD_HOMES,
    known_class,
)
from kdcal_core.calibration.graph.base import KernelDensityEstimator
from kdcal_core.errors import InputError

_PLAIN = (bool, int, str)
_SHRINKAGE = "shrinkage"


class Encoder:
    """Collects the arrays and records of one calibrator while it is told in JSON.

    Attributes
    ----------
    arrays : dict of str to array
    records : list of dict
    shrinks : bool
        Whether a calibrator with shrinkage was told, which older versions of kdcal do not know.

    Examples
    --------
    >>> encoder = Encoder()
    >>> encoder.value((1, float("inf"), np.zeros(2)))
    {'tuple': [1, {'float': 'inf'}, {'array': 0}]}
    >>> encoder.arrays["a0"].tolist()
    [0.0, 0.0]
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.records: list[dict[str, Any]] = []
        self.shrinks = False
        self._array_at: dict[tuple[Any, ...], int] = {}
        self._record_at: dict[str, int] = {}

    def calibrator(self, calibrator: Calibrator) -> dict[str, Any]:
        """Class, parameters and fitted state.

        Raises
        ------
        TypeError
            The calibrator is none of kdcal's, or breaks the rule above.
        """
        if CALIBRATOR_HOMES.get(type(calibrator).__name__) != type(calibrator).__module__:
            raise TypeError(f"{type(calibrator).__name__} is no calibrator that a file may hold")
        parameters = calibrator.get_params(deep=False)
        if parameters.get(_SHRINKAGE) is None:
            parameters.pop(_SHRINKAGE, None)
        else:
            self.shrinks = True
        state = {
            name: value
            for name, value in vars(calibrator).items()
            if name.endswith("_") and name not in parameters
        }
        return {
            "class": type(calibrator).__name__,
            "parameters": {
                # a list of names is given as JSON has it, and kept as a tuple
                name: self.value(tuple(value) if isinstance(value, list) else value)
                for name, value in parameters.items()
            },
            "state": {name: self.value(value) for name, value in state.items()},
        }

    def value(self, value: Any) -> Any:
        """One value in JSON.

        Raises
        ------
        TypeError
            It is of a kind that fitted state must not hold.
        """
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in _PLAIN:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if isinstance(value, tuple):
            return {"tuple": [self.value(one) for one in value]}
        if isinstance(value, dict):
            return {"dict": self._items(value)}
        if isinstance(value, Calibrator):
            return {"calibrator": self.calibrator(value)}
        if isinstance(value, KernelDensityEstimator):
            return {"estimator": self._estimator(value)}
        return {"record": self._record(value)}

    def _items(self, value: dict[Any, Any]) -> dict[str, Any]:
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a dict of fitted state has keys that are no text")
        return {key: self.value(one) for key, one in value.items()}

    def _array(self, array: NDArray[Any]) -> int:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"an array of {array.dtype} cannot be kept without pickle")
        key = (array.dtype.str, array.shape, array.tobytes())
        at = self._array_at.setdefault(key, len(self._array_at))
        self.arrays.setdefault(f"a{at}", array)
        return at

    def _record(self, value: Any) -> int:
        name = type(value).__name__
        if not is_dataclass(value) or RECORD_HOMES.get(name) is None:
            raise TypeError(f"fitted state must not hold a {name}")
        parts = {field.name: self.value(getattr(value, field.name)) for field in fields(value)}
        told = {"class": name, "fields": parts}
        key = json.dumps(told, sort_keys=True)
        if key not in self._record_at:
            self._record_at[key] = len(self.records)
            self.records.append(told)
        return self._record_at[key]

    def _estimator(self, estimator: KernelDensityEstimator) -> dict[str, Any]:
        from kdcal_core.calibration.graph.estimator_file import estimator_parts

        about, arrays = estimator_parts(estimator)
        return {
            "class": type(estimator).__name__,
            "about": about,
            "arrays": {name: self._array(array) for name, array in arrays.items()},
        }


class Decoder:
    """Makes the calibrator again of what an :class:`Encoder` collected.

    Parameters
    ----------
    arrays, records
        As the encoder has them.
    parent : Parent, optional
        For a kernel density estimator.
    """

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], records: list[Any], parent: Any = None
    ) -> None:
        self._arrays = arrays
        self._parent = parent
        self._records: list[Any] = []
        for told in records:  # each may name only those before it, so there is no circle
            self._records.append(self._record(told))

    def calibrator(self, told: Mapping[str, Any]) -> Calibrator:
        """The fitted calibrator, its parameters and state checked.

        Raises
        ------
        InputError
            A class is unknown, a parameter out of its range, or the state contradicts itself.
        LookupError, TypeError, ValueError, AttributeError
            As the parts of a broken file make Python raise.
        """
        cls = known_class(told["class"], CALIBRATOR_HOMES)
        parameters = {name: self.value(value) for name, value in told["parameters"].items()}
        if _SHRINKAGE in cls._get_param_names():
            parameters.setdefault(_SHRINKAGE, None)
        calibrator: Calibrator = cls(**parameters)
        calibrator._validate_params()
        for name, value in told["state"].items():
            if not name.endswith("_") or name.startswith("__") or hasattr(cls, name):
                raise ValueError(f"{name!r} is no name of fitted state")
            setattr(calibrator, name, self.value(value))
        calibrator.check_state()
        return calibrator

    def value(self, told: Any) -> Any:
        """The value that was told."""
        if told is None or type(told) in (*_PLAIN, float):
            return told
        ((kind, content),) = told.items()
        if kind == "float":
            return float({"nan": "nan", "inf": "inf", "-inf": "-inf"}[content])
        if kind == "array":
            return self._array(content)
        if kind == "tuple":
            return tuple(self.value(one) for one in content)
        if kind == "dict":
            return {name: self.value(one) for name, one in content.items()}
        if kind == "record":
            return self._records[_position(content)]
        if kind == "calibrator":
            return self.calibrator(content)
        if kind == "estimator":
            return self._estimator(content)
        raise ValueError(f"a value of the unknown kind {kind!r}")

    def _array(self, at: Any) -> NDArray[Any]:
        return self._arrays[f"a{_position(at)}"]

    def _record(self, told: Mapping[str, Any]) -> Any:
        cls = known_class(told["class"], RECORD_HOMES)
        parts = {name: self.value(value) for name, value in told["fields"].items()}
        record = cls(**parts)
        if not fits(record):
            raise ValueError(f"a {cls.__name__} with parts of other kinds")
        return record

    def _estimator(self, told: Mapping[str, Any]) -> Any:
        from kdcal_core.calibration.graph.estimator_file import estimator_from_parts

        if self._parent is None:
            raise InputError(
                "This calibrator asks the model itself, and no model was given",
                fix="Load it with parent=load_model(...), or give --model.",
            )
        cls = known_class(told["class"], ESTIMATOR_HOMES)
        arrays = {name: self._array(at) for name, at in told["arrays"].items()}
        return estimator_from_parts(cls, told["about"], arrays, self._parent)


def _position(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a position that is none")
    return value
