"""The columns of a regression table: what a family of predictive distributions needs.

These are the parameters of the family, each in its range. The families themselves live in
`kdcal_core.distributions`, one floor up; the checks of a table of predictions need none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kdcal_core.data.array_checks import refuse_rows
from kdcal_core.data.schema import Family, FloatArray
from kdcal_core.errors import InputError
from kdcal_core.text import formatted

#: Parameters by family; quantiles name their levels and samples their numbers, as many as there are
FAMILY_PARAMETERS: dict[Family, tuple[str, ...]] = {
    "point": ("mean",),
    "log_point": ("log_mean",),
    "normal": ("mean", "std"),
    "lognormal": ("log_mean", "log_std"),
    "gamma": ("mean", "shape"),
    "student_t": ("mean", "scale", "df"),
    "quantiles": (),
    "samples": (),
    "dropout": (),
}

#: Families whose outcomes lie above zero
POSITIVE_OUTCOMES: tuple[Family, ...] = ("log_point", "lognormal", "gamma")

#: Parameters that are above zero
POSITIVE = ("std", "variance", "log_std", "scale", "shape", "df")
#: Quantiles or samples that make a distribution
FEWEST = 2
_LARGEST = 1e30  # beyond are no measurements; products of errors and single precision still hold it


def check_outcome(
    y: FloatArray,
    family: Family | None = None,
    *,
    column: str | None = None,
    file: str | None = None,
) -> None:
    """Refuse outcomes that the family cannot give, and outcomes too large to be squared.

    Parameters
    ----------
    y : (n,) array
        Finite outcomes.
    family : str, optional
        Gamma, log-normal and the point on the log scale need outcomes above zero.
    column, file : str, optional
        Where the outcomes come from, for the errors.

    Raises
    ------
    InputError
        For an outcome beyond 1e30, and for one of zero or below under such a family; the first
        such row is named.

    Examples
    --------
    >>> check_outcome(np.array([1.0, 0.0]), "normal")
    >>> check_outcome(np.array([1.0, 0.0]), "gamma", column="price")
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: An outcome is 0, but a gamma distribution ... above zero only ...
    """
    refuse_rows(
        np.abs(y) > _LARGEST, "An outcome is beyond 1e30", "Correct it.", column=column, file=file
    )
    if family not in POSITIVE_OUTCOMES:
        return
    low = ~(y > 0)
    if not low.any():
        return
    name = "gamma" if family == "gamma" else "log-normal"
    refuse_rows(
        low,
        f"An outcome is {formatted(y[int(np.argmax(low))], '.6g')}, but a {name} distribution lies "
        "above zero only",
        "Correct or leave out the row, or choose a family that reaches below zero.",
        column=column,
        file=file,
    )


def family_of(names: Iterable[str]) -> Family | None:
    """The family whose parameters have these names; None where there is none.

    Examples
    --------
    >>> family_of(["mean", "variance"]), family_of(["0.1", "0.9"]), family_of(["1", "2"])
    ('normal', 'quantiles', 'samples')
    """
    given = {"std" if name == "variance" else name for name in names}
    for family, wanted in FAMILY_PARAMETERS.items():
        if wanted and given == set(wanted):
            return family
    if given and all(name.isdecimal() and int(name) > 0 for name in given):
        return "samples"
    try:
        quantile_levels(tuple(given))
    except InputError:
        return None
    return "quantiles" if given else None


def check_parameter_names(
    family: Family | None,
    names: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    file: str | None = None,
) -> None:
    """Check that these parameters make a distribution of the family.

    Parameters
    ----------
    family : str or None
    names : sequence of str
        Parameter names; for quantiles their levels as text, for samples their numbers. A
        "variance" stands for the "std" of a normal distribution.
    columns, file : optional
        The columns that hold them, for the errors, and the file.

    Raises
    ------
    InputError
        Where there is no family or no parameter, one is lacking, unknown or named twice, or a
        quantile level is not between 0 and 1.

    Examples
    --------
    >>> check_parameter_names("normal", ["mean", "std"])
    >>> check_parameter_names("quantiles", ["0.05", "1.5"])
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: The quantile level '1.5' is not between 0 and 1. ...
    """
    if family is None or not names:
        raise InputError(
            "No column holds the model's predictions",
            fix="Choose the family of the predictive distribution, and give each of its "
            "parameters (the mean, a standard deviation, quantiles, samples) a column.",
            file=file,
        )
    place = columns or (None,) * len(names)
    for index, name in enumerate(names):
        if name in names[:index]:
            what = "quantile of level" if family == "quantiles" else "parameter"
            raise InputError(
                f"Two columns hold the {what} {name[:60]!r}",
                fix="Give one of them another role.",
                file=file,
                column=place[index],
            )
    if family in ("quantiles", "samples", "dropout"):
        if len(names) < FEWEST:
            raise InputError(
                f"There is a single {'quantile' if family == 'quantiles' else 'sample'} a row, "
                "which says nothing of its spread",
                fix="Give at least two columns. If this one is the model's prediction itself, "
                "choose the family 'point' with it as the mean (on the command line --family "
                "point --parameters mean=COLUMN).",
                file=file,
                column=place[0],
            )
        if family == "quantiles":
            quantile_levels(names, columns=columns, file=file)
        return
    _check_named(family, names, file)


def quantile_levels(
    names: Sequence[str], *, columns: Sequence[str] | None = None, file: str | None = None
) -> FloatArray:
    """Quantile levels of their names, (q,) float64, each between 0 and 1.

    Parameters
    ----------
    names : sequence of str
    columns, file : optional
        The columns that hold the quantiles, for the errors, and the file.

    Raises
    ------
    InputError
        For a name that is not a number between 0 and 1 (both excluded), and for a level that comes
        twice in two spellings.

    Examples
    --------
    >>> quantile_levels(["0.05", "0.5"]).tolist()
    [0.05, 0.5]
    """
    levels: list[float] = []
    for index, name in enumerate(names):
        column = columns[index] if columns else None
        try:
            level = float(name)
        except ValueError:
            level = np.nan
        if not 0.0 < level < 1.0:
            raise InputError(
                f"The quantile level {name[:60]!r} is not between 0 and 1",
                fix="Write the level as a share: 0.05 for the quantile that 5% of outcomes fall "
                "below. The quantiles of 0 and 1 are no predictions.",
                file=file,
                column=column,
            )
        if level in levels:
            raise InputError(
                f"The quantile level {name[:60]!r} has two columns",
                fix="Leave one.",
                file=file,
                column=column,
            )
        levels.append(level)
    return np.array(levels)


def check_parameters(
    values: Mapping[str, FloatArray],
    family: Family,
    *,
    columns: Mapping[str, str] | None = None,
    file: str | None = None,
) -> None:
    """Check the parameters of n predictive distributions, from a table or from a model.

    Parameters
    ----------
    values : mapping of parameter name to (n,) array
    family : str
    columns : mapping of parameter name to column name, optional
        For the errors.

    Raises
    ------
    InputError
        For a prediction that is missing, infinite or beyond 1e30, a standard deviation, scale
        or shape that is not above zero, a mean of a gamma distribution that is not, and degrees
        of freedom under which there is no mean; column and first row are named.

    Examples
    --------
    >>> check_parameters({"mean": np.array([1.0]), "std": np.array([0.0])}, "normal")
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: A std is 0, but must be above zero (column 'std', row 1). ...
    """
    for name, column in values.items():
        place = (columns or {}).get(name, name)
        for faulty, state, fix in (
            (np.isnan(column), "missing", "Fill it in, or leave the row out."),
            (np.isinf(column), "infinite", "Correct it."),
            (np.abs(column) > _LARGEST, "beyond 1e30", "Correct it."),
        ):
            refuse_rows(faulty, f"A prediction is {state}", fix, column=place, file=file)
        if name in POSITIVE or (name == "mean" and family == "gamma"):
            least = 1 if name == "df" else 0
            low = ~(column > least)
            value = column[int(np.argmax(low))] if low.any() else np.nan
            refuse_rows(
                low,
                f"A {name} is {formatted(value, '.6g')}, but must be above "
                f"{('zero', 'one')[least]}",
                "Export the model's predictions again, or choose another column for it.",
                column=place,
                file=file,
            )


def _check_named(family: Family, names: Sequence[str], file: str | None) -> None:
    wanted = FAMILY_PARAMETERS[family]
    given = tuple("std" if name == "variance" and "std" in wanted else name for name in names)
    needs = " and ".join(wanted)
    if "variance" in names and "std" in names:
        raise InputError("Both a std and a variance are given", fix="Leave one of them.", file=file)
    unknown = next((name for name in given if name not in wanted), None)
    if unknown is not None:
        raise InputError(
            f"A {family} distribution has no parameter {unknown[:60]!r}",
            fix=f"It needs {needs}. Name the column's parameter so, or choose another family.",
            file=file,
        )
    absent = next((name for name in wanted if name not in given), None)
    if absent is not None:
        raise InputError(
            f"No column holds the {absent} of the {family} distribution",
            fix=f"It needs {needs}: choose a column for each, or another family.",
            file=file,
        )
