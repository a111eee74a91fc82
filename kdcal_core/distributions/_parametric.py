"""What the families with a parameter or two a row have in common."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions._shapes import numbers_of
from kdcal_core.distributions.base import PredictiveDistribution, Rows
from kdcal_core.errors import InputError


class Parametric(PredictiveDistribution):
    """Distributions given by named parameters, one value a row each."""

    parameters: ClassVar[tuple[str, ...]]
    _values: dict[str, FloatArray]

    def _keep(self, **given: ArrayLike) -> None:
        """Keep the parameters after the checks that all families share: numbers, finite, (n,)."""
        found = {name: finite_parameter(values, name) for name, values in given.items()}
        try:
            shape = np.broadcast_shapes((1,), *(values.shape for values in found.values()))
        except ValueError as error:
            lengths = ", ".join(f"{name} {len(v):,}" for name, v in found.items() if v.ndim)
            raise InputError(
                f"The parameters have different numbers of rows: {lengths}",
                fix="Give one value a row, or a single value for all rows.",
            ) from error
        self._values = {name: np.broadcast_to(values, shape) for name, values in found.items()}

    def _column(self, name: str) -> FloatArray:
        return self._values[name][:, np.newaxis]

    def _common(self, name: str) -> FloatArray:
        """The parameter as (1, 1) where all rows share it: its costly functions are paid once."""
        column = self._column(name)
        return column[:1] if len(column) and (column == column[0]).all() else column

    def __len__(self) -> int:
        return len(self._values[self.parameters[0]])

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen._values = {name: values[rows] for name, values in self._values.items()}
        return chosen

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        return {name: np.ascontiguousarray(self._values[name]) for name in self.parameters}


def finite_parameter(values: ArrayLike, name: str) -> FloatArray:
    """A parameter as float64, scalar or (n,).

    Raises
    ------
    InputError
        Where it is no number, not finite (with the row), or of more dimensions.
    """
    numbers = numbers_of(values, f"The values of {name}")
    if numbers.ndim > 1:
        raise InputError(
            f"The parameter {name} has {numbers.ndim} dimensions", fix="Give one value a row."
        )
    refuse(~np.isfinite(numbers), numbers, name, "a finite number")
    return numbers


def above(values: FloatArray, name: str, bound: float = 0.0) -> None:
    """Refuse rows where the parameter is not greater than ``bound``."""
    refuse(values <= bound, values, name, f"greater than {bound:g}")


def refuse(wrong: NDArray[np.bool_], values: FloatArray, name: str, wanted: str) -> None:
    """Name the first row whose parameter is wrong."""
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"The parameter {name} is {np.ravel(values)[row]:g} and must be {wanted}",
            fix="Mend the prediction, or leave the row out.",
            row=row + 1 if values.ndim else None,
        )
