"""A fitted calibrator to JSON and arrays and back, by the rule for all calibrators.

Fitted state is in attributes whose names end with an underscore, and each holds None, a bool, an
int, a float, a str, an array, a frozen dataclass of such, a nested calibrator, or a tuple or
str-keyed dict of such. `kdcal_core.store.named` writes most of these; this module adds the kinds
of this room::

    {"calibrator": {...}}         class, parameters and state
    {"estimator": {...}}          a kernel density estimator, which needs its model

A calibrator whose parameter ``shrinkage`` is None is written without it, as in files from before
shrinkage existed; a file without the parameter is read as None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.graph.base import (
    KernelDensityEstimator,
    estimator_from_parts,
    estimator_parts,
)
from kdcal_core.errors import InputError
from kdcal_core.store import Describer, Maker, is_storable, storable_class

_SHRINKAGE = "shrinkage"
_REGIONS = "kdcal_core.calibration.regions"  # imported only for files that name its classes


class Encoder(Describer):
    """Collects the arrays and records of one calibrator while it describes it.

    Attributes
    ----------
    shrinks : bool
        Whether a calibrator with shrinkage was described, which older versions of kdcal do not
        know.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shrinks = False

    def calibrator(self, calibrator: Calibrator) -> dict[str, Any]:
        """Class, parameters and fitted state.

        Raises
        ------
        TypeError
            The calibrator is not one of kdcal's, or breaks the rule above.
        """
        if not is_storable(type(calibrator)):
            raise TypeError(f"a file cannot hold the calibrator {type(calibrator).__name__}")
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

    def other(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Calibrator):
            return {"calibrator": self.calibrator(value)}
        if isinstance(value, KernelDensityEstimator):
            return {"estimator": self._estimator(value)}
        return super().other(value)

    def _estimator(self, estimator: KernelDensityEstimator) -> dict[str, Any]:
        about, arrays = estimator_parts(estimator)
        return {
            "class": type(estimator).__name__,
            "about": about,
            "arrays": {name: self.array(array) for name, array in arrays.items()},
        }


class Decoder(Maker):
    """Rebuilds the calibrator that an :class:`Encoder` described.

    Parameters
    ----------
    arrays, records
        As the encoder has them.
    model : Model, optional
        For a kernel density estimator.
    """

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], records: list[Any], model: Any = None
    ) -> None:
        self._model = model
        super().__init__(arrays, records, _REGIONS)

    def calibrator(self, record: Mapping[str, Any]) -> Calibrator:
        """The fitted calibrator, its parameters and state checked.

        Raises
        ------
        InputError
            A class is unknown, a parameter out of its range, or the state contradicts itself.
        LookupError, TypeError, ValueError, AttributeError
            As the parts of a broken file make Python raise.
        """
        cls = storable_class(record["class"], Calibrator, _REGIONS)
        parameters = {name: self.value(value) for name, value in record["parameters"].items()}
        if _SHRINKAGE in cls._get_param_names():
            parameters.setdefault(_SHRINKAGE, None)
        calibrator: Calibrator = cls(**parameters)
        calibrator._validate_params()
        for name, value in record["state"].items():
            if not name.endswith("_") or name.startswith("__") or hasattr(cls, name):
                raise ValueError(f"{name!r} is not a name of fitted state")
            setattr(calibrator, name, self.value(value))
        calibrator.check_state()
        return calibrator

    def other(self, kind: str, content: Any) -> Any:
        if kind == "calibrator":
            return self.calibrator(content)
        if kind == "estimator":
            return self._estimator(content)
        return super().other(kind, content)

    def _estimator(self, record: Mapping[str, Any]) -> Any:
        if self._model is None:
            raise InputError(
                "This calibrator needs the model itself, and no model was given",
                fix="Load it with model=load_model(...), or give --model.",
            )
        cls = storable_class(record["class"], KernelDensityEstimator)
        arrays = {name: self.array(at) for name, at in record["arrays"].items()}
        return estimator_from_parts(cls, record["about"], arrays, self._model)
