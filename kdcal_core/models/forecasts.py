"""The predictive distributions of a regression model: its outputs as parameters, or its samples."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kdcal_core.data import FAMILY_PARAMETERS, Family, FloatArray
from kdcal_core.data.regression_columns import check_parameter_names, check_parameters
from kdcal_core.distributions import Empirical, PredictiveDistribution, distribution_of
from kdcal_core.errors import InputError
from kdcal_core.models.protocol import HasDropout, HasMembers, Regressor
from kdcal_core.progress import Progress, silent
from kdcal_core.text import listed

#: Passes through a network with active dropout; the standard error of a mean is 7% of the std
DROPOUT_PASSES = 200
_SEED = 0


def model_forecasts(
    model: Regressor, family: Family, frame: pd.DataFrame, *, spread: float | None = None
) -> PredictiveDistribution:
    """The model's predictive distributions of a block of rows.

    Parameters
    ----------
    family : str
        What its outputs are.
    frame : data frame
        The columns that it reads.
    spread : float, optional
        For single numbers, the standard deviation of their residuals.

    Raises
    ------
    InputError
        If the outputs are not those of the family, or no distribution.
    """
    drawn = samples_of(model, family, frame)
    if drawn is not None:
        return drawn
    columns = checked_parameters(model.outputs, family, model.predict(frame))
    return distribution_of(family, columns, spread=spread)


def samples_of(
    model: Regressor, family: Family, frame: pd.DataFrame, progress: Progress = silent
) -> Empirical | None:
    """Passes with active dropout, or an ensemble's members; None for any other family."""
    if family == "dropout" and isinstance(model, HasDropout):
        return Empirical(model.sample(frame, DROPOUT_PASSES, _SEED, progress))
    if family == "samples" and isinstance(model, HasMembers):
        return Empirical(model.members(frame))
    return None


def checked_parameters(
    outputs: tuple[str, ...], family: Family, values: FloatArray
) -> dict[str, FloatArray]:
    """As `outputs_as_parameters`, refusing values that are no distribution.

    Raises
    ------
    InputError
    """
    columns = outputs_as_parameters(outputs, family, values)
    _check_outputs(columns, family)
    return columns


def outputs_as_parameters(
    outputs: tuple[str, ...], family: Family, values: FloatArray
) -> dict[str, FloatArray]:
    """A model's outputs as the parameters of a family, by name or otherwise by their number.

    Parameters
    ----------
    outputs : tuple of str
        The q names of the model's outputs.
    family : str
    values : (n, q) array

    Raises
    ------
    InputError
        If the outputs are not those of the family.

    Examples
    --------
    >>> values = np.array([[1.0, 2.0]])
    >>> list(outputs_as_parameters(("output_1", "output_2"), "gamma", values))
    ['mean', 'shape']
    """
    columns = dict(zip(outputs, np.ascontiguousarray(values.T), strict=True))
    if family == "dropout":
        raise InputError(
            "The model's file has no dropout layer that can be active",
            fix="Choose the family that matches the model's outputs, or load a table of "
            "samples that were drawn with dropout.",
        )
    if family == "samples":  # whatever their names
        columns = {str(k + 1): column for k, column in enumerate(columns.values())}
    if family in ("samples", "quantiles"):
        check_parameter_names(family, tuple(columns))
        return columns
    wanted = FAMILY_PARAMETERS[family]
    if all(name in columns for name in wanted):
        return {name: columns[name] for name in wanted}
    if len(wanted) != len(outputs):
        has = "1 output" if len(outputs) == 1 else f"{len(outputs):,} outputs"
        raise InputError(
            f"The model has {has} ({listed(outputs)[:240]}), but the family {family} "
            f"takes {listed(wanted)}",
            fix="Choose the family that matches the model's outputs.",
        )
    return dict(zip(wanted, columns.values(), strict=True))


def _check_outputs(columns: dict[str, FloatArray], family: Family) -> None:
    """Refuse a model's outputs that are not a distribution, without blaming the table."""
    try:
        check_parameters(columns, family)
    except InputError as error:
        raise InputError(
            f"{error.what}. This is the model's output {error.column!r}",
            fix="Check that the family matches the model's outputs.",
            row=error.row,
        ) from error
