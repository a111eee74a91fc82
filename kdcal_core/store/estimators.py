"""Estimators to JSON and arrays and back, and the checks of fitted state that a file brings.

**The rule for all estimators in files.** Fitted state is in attributes whose names end with an
underscore. Each holds None, a bool, an int, a float, a str, an array, a frozen dataclass of these,
a nested estimator, or a tuple or str-keyed dict of these. `kdcal_core.store.named` writes most of
these; an estimator is an object with one key, such as "calibrator", that holds its class,
parameters and state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.store.named import Describer, Maker, is_storable, storable_class

# No fit gives larger numbers; sums and products of smaller ones stay finite.
LARGEST = 1e100


def demand(holds: bool, what: str) -> None:
    """Refuse fitted state unless it ``holds``; ``what`` names the part that is wrong.

    Examples
    --------
    >>> demand(False, "edges_")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The fitted calibrator contradicts itself in edges_. ...
    """
    if not holds:
        raise InputError(
            f"The fitted calibrator contradicts itself in {what}",
            fix="Its file may be damaged; save the calibrator again.",
        )


def check_array(
    owner: Any,
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -LARGEST,
    high: float = LARGEST,
    dtype: Any = np.float64,
    nan: bool = False,
) -> NDArray[Any]:
    """The array in an attribute, after a check of shape, type and range [low, high].

    ``None`` in the shape means any length. Infinity is refused, and NaN too unless it has a
    meaning.
    """
    value = getattr(owner, name, None)
    return checked_array(value, name, shape, low=low, high=high, dtype=dtype, nan=nan)


def check_arrays(
    owner: Any,
    name: str,
    n: int,
    *,
    low: float = -LARGEST,
    high: float = LARGEST,
) -> tuple[NDArray[np.float64], ...]:
    """The tuple of ``n`` arrays of one dimension in an attribute, all within [low, high]."""
    value = getattr(owner, name, None)
    demand(isinstance(value, tuple) and len(value) == n, name)
    assert isinstance(value, tuple)
    return tuple(checked_array(one, name, (None,), low=low, high=high) for one in value)


def checked_array(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -LARGEST,
    high: float = LARGEST,
    dtype: Any = np.float64,
    nan: bool = False,
) -> NDArray[Any]:
    """An array after the same check; ``name`` says which one is wrong."""
    demand(isinstance(value, np.ndarray) and value.dtype == np.dtype(dtype), name)
    array: NDArray[Any] = value
    demand(
        array.ndim == len(shape)
        and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True)),
        name,
    )
    if array.dtype.kind == "b":
        return array
    known = array[~np.isnan(array)] if nan else array
    demand(bool(np.isfinite(known).all() and ((known >= low) & (known <= high)).all()), name)
    return array


class EstimatorDescriber(Describer):
    """Describes one estimator and collects its arrays and records.

    Attributes
    ----------
    word : str
        The key of an estimator's object.
    base : type
        Base class of the estimators.
    """

    word: ClassVar[str]
    base: ClassVar[type[Any]]

    def estimator(self, estimator: Any) -> dict[str, Any]:
        """Class, parameters and fitted state.

        Raises
        ------
        TypeError
            If the estimator is not one of kdcal's, or breaks the rule above.
        """
        if not is_storable(type(estimator)):
            raise TypeError(f"a file cannot hold the {self.word} {type(estimator).__name__}")
        parameters = self.parameters(estimator)
        return {
            "class": type(estimator).__name__,
            "parameters": {
                # JSON has a list of names, which is stored as a tuple
                name: self.value(tuple(value) if isinstance(value, list) else value)
                for name, value in parameters.items()
            },
            "state": {
                name: self.value(value)
                for name, value in self.state(estimator).items()
                if name not in parameters
            },
        }

    def state(self, estimator: Any) -> dict[str, Any]:
        """The fitted state that is written."""
        return {name: value for name, value in vars(estimator).items() if name.endswith("_")}

    def parameters(self, estimator: Any) -> dict[str, Any]:
        """The parameters that are written."""
        found: dict[str, Any] = estimator.get_params(deep=False)
        return found

    def other(self, value: Any) -> dict[str, Any]:
        if isinstance(value, self.base):
            return {self.word: self.estimator(value)}
        return super().other(value)


class EstimatorMaker(Maker):
    """Rebuilds the estimator that an :class:`EstimatorDescriber` described.

    Attributes
    ----------
    word, base
        As in the describer. The base class has ``check_state``, which refuses state that
        contradicts itself.
    unfitted : bool
        Whether a parameter may be an estimator that is not fitted.
    """

    word: ClassVar[str]
    base: ClassVar[type[Any]]
    unfitted: ClassVar[bool] = False

    def estimator(self, record: Mapping[str, Any]) -> Any:
        """The fitted estimator, after checks of its parameters and state.

        Raises
        ------
        InputError
            If a class is unknown, a parameter is out of range, or the state contradicts itself.
        LookupError, TypeError, ValueError, AttributeError
            Raised by Python for the parts of a broken file.
        """
        cls = storable_class(record["class"], self.base, *self.homes)
        given = {name: self.value(value) for name, value in record["parameters"].items()}
        estimator = cls(**self.parameters(cls, given))
        estimator._validate_params()
        for name, value in record["state"].items():
            if not name.endswith("_") or name.startswith("__") or hasattr(cls, name):
                raise ValueError(f"{name!r} is not a name of fitted state")
            setattr(estimator, name, self.value(value))
        if record["state"] or not self.unfitted:
            estimator.check_state()
        return estimator

    def parameters(self, cls: type[Any], given: dict[str, Any]) -> dict[str, Any]:
        """The parameters for a class, from those of the file."""
        return given

    def other(self, kind: str, content: Any) -> Any:
        if kind == self.word:
            return self.estimator(content)
        return super().other(kind, content)
