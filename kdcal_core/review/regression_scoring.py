"""A regression table scored: its outcomes and the parent's predictive distributions of them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from kdcal_core.data import (
    FAMILY_PARAMETERS,
    Family,
    FloatArray,
    Roles,
    Table,
    check_parameter_names,
    check_parameters,
    check_roles,
    feature_frame,
    outcome_column,
    parameter_columns,
    true_mean_column,
    weight_column,
)
from kdcal_core.distributions import (
    Empirical,
    PredictiveDistribution,
    distribution_of,
    save_distribution,
    spread_of,
)
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.parents import HasDropout, HasMembers, Regressor
from kdcal_core.review.model import SetInfo
from kdcal_core.review.reading import Progress, by_blocks, in_file, in_rows_of
from kdcal_core.review.seals import seal_folder
from kdcal_core.review.stored import DISTRIBUTION, regression_digest

#: Passes through a network with its dropout at work; the standard error of a mean is 7% of the std
DROPOUT_PASSES = 200
_SEED = 0


def score_regression(
    table: Table,
    parent: Regressor | None,
    roles: Roles,
    folder: str,
    spread: float | None,
    progress: Progress,
) -> SetInfo:
    """Score a table and save its arrays: y, weight, true mean and the distribution's own.

    Parameters
    ----------
    parent : Regressor or None
        None where the table carries the predictions.
    folder : str
        A fresh folder for the arrays.
    spread : float or None
        For single numbers as predictions: that of the calibration set; None on that set itself,
        where it is estimated.

    Raises
    ------
    InputError
        For the first fault, with its column and row.
    """
    with (
        in_file(table.name),
        in_rows_of(table.frame),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", InputWarning)
        check_roles(
            table,
            roles,
            n_features=parent.n_features if parent else None,
            feature_names=parent.feature_names if parent else None,
            needs_outputs=parent is None,
        )
        y = outcome_column(table, roles)
        weight = weight_column(table, roles)
        true_mean = true_mean_column(table, roles)
        distribution, spread = _distribution(table, parent, roles, y, spread, progress)
        rmse = _rmse(y, distribution)
    path = Path(folder)
    (path / DISTRIBUTION).mkdir(mode=0o700, parents=True)
    save_distribution(distribution, path / DISTRIBUTION)
    for name, values in (("y", y), ("weight", weight), ("true_mean", true_mean)):
        if values is not None:
            np.save(path / f"{name}.npy", values)
    seal_folder(path)
    return SetInfo(
        digest=regression_digest(y, weight, true_mean, distribution),
        n_rows=len(y),
        accuracy=None,
        folder=path.name,
        rmse=rmse,
        outside=int(((distribution.cdf(y) <= 0.0) | (distribution.cdf_left(y) >= 1.0)).sum()),
        spread=spread,
        notes=tuple(str(one.message) for one in caught if issubclass(one.category, InputWarning)),
    )


def outputs_as_parameters(
    outputs: tuple[str, ...], family: Family, values: FloatArray
) -> dict[str, FloatArray]:
    """A model's outputs as the parameters of a family: by name, or else by their number.

    Parameters
    ----------
    outputs : tuple of str
        The q names that the model gives its outputs.
    family : str
    values : (n, q) array

    Raises
    ------
    InputError
        Where the outputs are not those of the family.

    Examples
    --------
    >>> values = np.array([[1.0, 2.0]])
    >>> list(outputs_as_parameters(("output_1", "output_2"), "gamma", values))
    ['mean', 'shape']
    """
    columns = dict(zip(outputs, np.ascontiguousarray(values.T), strict=True))
    if family == "dropout":
        raise InputError(
            "The model's file holds no dropout that could be at work",
            fix="Choose the family that the model's outputs stand for, or load a table of "
            "samples that were drawn with dropout.",
        )
    if family == "samples":  # whatever the model calls them
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
            f"The model has {has} ({_listed(outputs)}), but the family {family} "
            f"takes {' and '.join(wanted)}",
            fix="Choose the family that the model's outputs stand for.",
        )
    return dict(zip(wanted, columns.values(), strict=True))


def _distribution(
    table: Table,
    parent: Regressor | None,
    roles: Roles,
    y: FloatArray,
    spread: float | None,
    progress: Progress,
) -> tuple[PredictiveDistribution, float | None]:
    family = roles.family
    if parent is None:
        columns = parameter_columns(table, roles)
    elif family is None:
        raise InputError(
            "It is not known what the model's outputs mean",
            fix="Choose the family of its predictive distributions.",
        )
    elif family == "dropout" and isinstance(parent, HasDropout):
        frame = feature_frame(table, roles)
        return Empirical(parent.sample(frame, DROPOUT_PASSES, _SEED, progress)), None
    elif family == "samples" and isinstance(parent, HasMembers):
        return Empirical(parent.members(feature_frame(table, roles))), None
    else:
        frame = feature_frame(table, roles)
        values = by_blocks(parent.predict, frame, len(parent.outputs), progress)
        columns = outputs_as_parameters(parent.outputs, family, values)
        _check_answers(columns, family)
    assert family is not None
    if family in ("point", "log_point"):
        spread = spread_of(family, columns, y) if spread is None else spread
    return distribution_of(family, columns, spread=spread), spread


def _listed(outputs: tuple[str, ...]) -> str:
    some = ", ".join(outputs[:5])[:200]
    return f"{some} and {len(outputs) - 5:,} more" if len(outputs) > 5 else some


def _check_answers(columns: dict[str, FloatArray], family: Family) -> None:
    """Refuse a model's answers that are no distribution; no column of the table is at fault."""
    try:
        check_parameters(columns, family)
    except InputError as error:
        raise InputError(
            f"{error.what}. This is what the model gives for its output {error.column!r}",
            fix="Check that the family is what the model's outputs stand for.",
            row=error.row,
        ) from error


def _rmse(y: FloatArray, distribution: PredictiveDistribution) -> float:
    """Root mean squared error of the predictive means."""
    mean = distribution.mean()
    with np.errstate(over="ignore"):
        squared = (y - mean) ** 2
    beyond = ~np.isfinite(squared)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise InputError(
            f"The mean of the predictions is {mean[row]:.6g}: too far from its outcome "
            f"{y[row]:.6g} for a squared error",
            fix="Correct the prediction, or leave out the row.",
            row=row + 1,
        )
    return float(np.sqrt(np.mean(squared)))
