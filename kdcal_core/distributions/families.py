"""The kinds of prediction in a file or from a model, and the distributions they describe.

Distributions are converted to plain arrays and back, in memory and in files, which may have been
changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.data import Family, FloatArray, random_folds
from kdcal_core.distributions.distribution import PredictiveDistribution, checked_outcomes
from kdcal_core.distributions.parametric import Gamma, LogNormal, Normal, StudentT, finite_parameter
from kdcal_core.distributions.sampled import Empirical, Quantiles, Weighted
from kdcal_core.distributions.wrapped import Mapped
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence
from kdcal_core.store import decode, encode, read_array, write_arrays
from kdcal_core.store.disk import write_json
from kdcal_core.text import formatted


@dataclass(frozen=True)
class FamilySpec:
    """A family's title, description and parameters.

    Attributes
    ----------
    title : str
        "Mean and standard deviation".
    sentence : str
        What the prediction says about the outcome.
    parameters : tuple of str
        The columns it needs; empty if their number is open (quantiles, samples).
    positive : bool
        Whether outcomes must be positive.
    """

    title: str
    sentence: str
    parameters: tuple[str, ...]
    positive: bool = False


FAMILIES: dict[Family, FamilySpec] = {
    "point": FamilySpec(
        "A single number",
        "Normal around the prediction, with one standard deviation for all rows, taken from the "
        "residuals of the calibration set.",
        ("mean",),
    ),
    "log_point": FamilySpec(
        "A single number for the logarithm",
        "The logarithm of the outcome is normal around the prediction, with one standard "
        "deviation for all rows, taken from the residuals of the calibration set.",
        ("log_mean",),
        positive=True,
    ),
    "normal": FamilySpec(
        "Normal", "Normal with a mean and a standard deviation for each row.", ("mean", "std")
    ),
    "lognormal": FamilySpec(
        "Log-normal",
        "The logarithm of the outcome is normal, with a mean and a standard deviation for each "
        "row.",
        ("log_mean", "log_std"),
        positive=True,
    ),
    "gamma": FamilySpec(
        "Gamma", "Gamma with a mean and a shape for each row.", ("mean", "shape"), positive=True
    ),
    "student_t": FamilySpec(
        "Student t",
        "Student t with a mean, a scale and its degrees of freedom for each row.",
        ("mean", "scale", "df"),
    ),
    "quantiles": FamilySpec(
        "Quantiles",
        "Linear between the predicted quantiles, with normal tails beyond the outermost.",
        (),
    ),
    "samples": FamilySpec("Samples", "Equally likely samples, for example of an ensemble.", ()),
    "dropout": FamilySpec(
        "Monte Carlo dropout", "Equally likely outputs of the network with active dropout.", ()
    ),
}


def distribution_of(
    family: Family,
    columns: Mapping[str, ArrayLike],
    *,
    spread: ArrayLike | None = None,
    file: str | None = None,
) -> PredictiveDistribution:
    """The predictive distributions that columns of parameters describe.

    Parameters
    ----------
    family : Family
    columns : mapping of str to (n,) array
        By name of the parameter (:data:`FAMILIES`); for quantiles by level ("0.05"), for samples
        and dropout by number ("1", "2", ...).
    spread : float or (n,) array, optional
        For "point" and "log_point" the standard deviation, from :func:`spread_of` or, for the
        rows to which it was fitted, from :func:`cross_fitted_spread`.
    file : str, optional
        Name for errors. Untrusted text.

    Raises
    ------
    InputError
        If a parameter is missing or impossible.

    Examples
    --------
    >>> distribution_of("point", {"mean": [1.0, 2.0]}, spread=0.5).std().tolist()
    [0.5, 0.5]
    >>> distribution_of("quantiles", {"0.9": [3.0], "0.1": [1.0]}).ppf(0.5).tolist()
    [2.0]
    """
    try:
        return _build(family, columns, spread)
    except InputError as error:
        raise error.at(file=file) from error


def spread_of(family: Family, columns: Mapping[str, ArrayLike], y: ArrayLike) -> float:
    """Root mean squared residual of point predictions on the calibration set.

    As in Torres et al., section 4.2, the predictive variance is the validation set's mean squared
    error; for "log_point" that of the logarithms.

    Raises
    ------
    InputError
        If the family has its own spread, there are no rows, an outcome is not positive on the log
        scale, or all residuals are zero.

    Examples
    --------
    >>> spread_of("point", {"mean": [1.0, 2.0]}, [4.0, 6.0]).__round__(4)
    3.5355
    """
    if family not in ("point", "log_point"):
        raise InputError(f"The family {family!r} has its own spread")
    name = FAMILIES[family].parameters[0]
    predicted = np.atleast_1d(finite_parameter(_column(columns, name), name))
    outcomes = np.atleast_1d(checked_outcomes(y, one_a_row=True))
    if predicted.shape != outcomes.shape or not len(outcomes):
        raise InputError(
            f"There are {len(predicted):,} predictions and {len(outcomes):,} outcomes",
            fix="Give one outcome for each prediction, and at least one row.",
        )
    if family == "log_point":
        if (outcomes <= 0).any():
            row = int(np.flatnonzero(outcomes <= 0)[0])
            raise InputError(
                f"The outcome {formatted(outcomes[row], 'g')} has no logarithm",
                fix="Outcomes must be positive for predictions on the log scale.",
                row=row + 1,
            )
        outcomes = _on_scale(family, outcomes)
    residuals = outcomes - predicted
    largest = float(np.abs(residuals).max())
    if not 0 < largest < np.inf:
        raise InputError(
            "All residuals of the predictions are zero, so they have no spread",
            fix="Check that predictions and outcomes are different columns of finite numbers.",
        )
    return largest * float(np.sqrt(np.mean((residuals / largest) ** 2)))


def cross_fitted_spread(
    family: Family,
    columns: Mapping[str, ArrayLike],
    y: ArrayLike,
    dependence: Dependence | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
) -> FloatArray:
    """Spread of each row from the residuals of the other folds only, (n,).

    No row affects its own spread, nor that of rows that depend on it. If the other folds cannot
    give a spread (a single row, or zero residuals), it is that of all rows.

    Raises
    ------
    InputError
        As :func:`spread_of`.

    Examples
    --------
    >>> found = cross_fitted_spread("point", {"mean": [0.0, 0.0]}, [1.0, 2.0])
    >>> found.tolist()
    [2.0, 1.0]
    """
    whole = spread_of(family, columns, y)
    name = FAMILIES[family].parameters[0]
    predicted, outcomes = np.atleast_1d(_column(columns, name)), np.atleast_1d(y)
    n = len(outcomes)
    spread = np.full(n, whole)
    if n < 2:
        return spread
    fold = random_folds(n, folds, seed, dependence, fewer=True)
    for held in (fold == one for one in range(int(fold.max()) + 1)):
        others = {name: predicted[~held]}
        if np.any(_on_scale(family, outcomes[~held]) != predicted[~held]):
            spread[held] = spread_of(family, others, outcomes[~held])
    return spread


def _on_scale(family: Family, outcomes: ArrayLike) -> FloatArray:
    """Outcomes on the scale of the predictions."""
    values = np.asarray(outcomes, dtype=np.float64)
    return np.log(values) if family == "log_point" else values


def _build(
    family: Family, columns: Mapping[str, ArrayLike], spread: ArrayLike | None
) -> PredictiveDistribution:
    if family == "quantiles":
        return Quantiles([_level(name) for name in columns], _table(columns))
    if family in ("samples", "dropout"):
        return Empirical(_table(columns))
    values = [_column(columns, name) for name in FAMILIES[family].parameters]
    if family in ("point", "log_point"):
        if spread is None:
            raise InputError(
                "Single numbers have no spread",
                fix="Give the spread of the calibration set's residuals.",
            )
        return Normal(values[0], spread) if family == "point" else LogNormal(values[0], spread)
    if family == "gamma":
        return Gamma(mean=values[0], shape=values[1])
    if family == "student_t":
        return StudentT(*values)
    return Normal(*values) if family == "normal" else LogNormal(*values)


def _column(columns: Mapping[str, ArrayLike], name: str) -> ArrayLike:
    if name not in columns:
        raise InputError(f"The parameter {name} is missing", fix="Name its column.")
    return columns[name]


def _level(name: str) -> float:
    try:
        return float(name)
    except ValueError as error:
        raise InputError(
            f"{name!r} is not the level of a quantile", fix="Levels lie between 0 and 1: 0.05."
        ) from error


def _table(columns: Mapping[str, ArrayLike]) -> ArrayLike:
    if not columns:
        raise InputError("There are no columns", fix="Name the columns of the predictions.")
    found = [finite_parameter(values, name) for name, values in columns.items()]
    if len({values.shape for values in found}) > 1:
        raise InputError("The columns have different numbers of rows")
    return np.stack(found, axis=-1)


DESCRIPTION = "distribution.json"
KINDS: dict[str, tuple[type[PredictiveDistribution], tuple[str, ...]]] = {
    "normal": (Normal, ("mean", "std")),
    "lognormal": (LogNormal, ("mean", "std")),
    "gamma": (Gamma, ("shape", "mean")),
    "student_t": (StudentT, ("mean", "scale", "df")),
    "quantiles": (Quantiles, ("levels", "values")),
    "samples": (Empirical, ("samples",)),
    "weighted": (Weighted, ("samples", "weights")),
}
_NAME = re.compile(r"[a-z_]+(\.[a-z_]+){0,4}")  # nested families and a parameter


def from_arrays(family: str, arrays: Mapping[str, NDArray[Any]]) -> PredictiveDistribution:
    """The inverse of ``distribution.arrays()``, with all checks of the constructors.

    Raises
    ------
    InputError
        If the family is unknown, or its arrays are missing, too many, or impossible.

    Examples
    --------
    >>> kept = Normal([0.0, 1.0], 2.0)
    >>> from_arrays(kept.family, kept.arrays()).mean().tolist()
    [0.0, 1.0]
    """
    if family == Mapped.family:
        return _mapped_from(arrays)
    if family not in KINDS or set(arrays) != set(KINDS[family][1]):
        raise InputError(
            f"The arrays {', '.join(sorted(arrays))} are no distribution of the family {family!r}"
        )
    return KINDS[family][0](**arrays)


def save_distribution(distribution: PredictiveDistribution, folder: Path) -> None:
    """Write the parameters as ``.npy`` files into ``folder``, and ``distribution.json`` last.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_distribution(Normal([0.0, 1.0], 2.0), Path(folder))
    ...     load_distribution(Path(folder))
    Normal(2 rows)
    """
    arrays = distribution.arrays()
    write_arrays(folder, arrays)
    shapes = {name: values.shape for name, values in arrays.items()}
    write_json(folder / DESCRIPTION, encode(_Described(distribution.family, shapes)))


def load_distribution(folder: Path, *, n_rows: int | None = None) -> PredictiveDistribution:
    """The distributions stored in ``folder``, with read-only arrays; large ones are mapped.

    Parameters
    ----------
    folder : Path
    n_rows : int, optional
        Required number of rows.

    Raises
    ------
    InputError
        If a file is missing, damaged, or does not match its description.
    """
    try:
        distribution = _read(folder)
        if n_rows is not None and len(distribution) != n_rows:
            raise ValueError("another number of rows")
    except (
        *(OSError, ValueError, TypeError, KeyError),
        *(EOFError, OverflowError, RecursionError),
    ) as error:
        # an InputError is a ValueError, but its row would be that of an internal file
        raise InputError(
            "The predictions are no longer kept on this machine, or their file is damaged",
            fix="Load the file again on the Load page.",
        ) from error
    return distribution


@dataclass(frozen=True)
class _Described:
    """The content of ``distribution.json``."""

    family: str
    shapes: dict[str, tuple[int, ...]]


def _read(folder: Path) -> PredictiveDistribution:
    described = decode(_Described, json.loads((folder / DESCRIPTION).read_bytes()))
    arrays = {}
    for name, shape in described.shapes.items():
        if not _NAME.fullmatch(name):
            raise ValueError("an array of an unknown name")
        values = read_array(folder / f"{name}.npy")
        if values.dtype != np.float64 or values.shape != shape:
            raise ValueError("an array of another shape")
        arrays[name] = values
    return from_arrays(described.family, arrays)


def _mapped_from(arrays: Mapping[str, NDArray[Any]]) -> Mapped:
    inner = [name for name in arrays if "." in name]
    families = {name.split(".", 1)[0] for name in inner}
    if set(arrays) - set(inner) != {"knots", "values"} or len(families) != 1:
        raise InputError("The arrays are no distribution of the family 'mapped'")
    base = from_arrays(families.pop(), {name.split(".", 1)[1]: arrays[name] for name in inner})
    return Mapped(base, arrays["knots"], arrays["values"])
