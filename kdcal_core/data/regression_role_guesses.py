"""A first guess at a regression table's outcome, predictions and their family."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.column_kinds import (
    WEIGHTS,
    features_of,
    is_number,
    mostly_numbers,
    named,
    sampled,
    simple,
    split_named,
)
from kdcal_core.data.schema import Family, Roles

Parameters = tuple[tuple[str, str], ...]  # parameter and its column

_OUTCOMES = (
    *("target", "y", "y_true", "outcome", "actual", "truth", "ground_truth", "true_value"),
    *("observed", "observation", "response", "label", "price", "value", "y_test", "sales"),
    *("demand", "amount", "cost", "charges", "medv"),
)
_TRUE_MEANS = ("true_mean", "mean_true", "true_mu", "mu_true", "conditional_mean", "y_true_mean")
_MEANS = (
    *("mean", "mu", "loc", "pred", "prediction", "predicted", "y_pred", "y_hat", "yhat"),
    *("y_mean", "forecast", "expected", "estimate", "fitted"),
)
_NAMES: Mapping[str, tuple[str, ...]] = {
    "log_mean": ("log_mean", "mean_log", "log_mu", "mu_log", "meanlog", "log_pred"),
    "log_std": ("log_std", "std_log", "log_sd", "log_sigma", "sigma_log", "sdlog"),
    "mean": _MEANS,
    "std": ("std", "sigma", "sd", "stdev", "stddev", "std_dev", "standard_deviation", "y_std"),
    "variance": ("variance", "var", "sigma2", "sigma_2", "sigma_squared", "y_var"),
    "scale": ("scale",),
    "shape": ("shape", "alpha"),
    "df": ("df", "nu", "dof", "degrees_of_freedom"),
}
_STD_WORDS = frozenset(("std", "sd", "sigma", "stdev", "stddev", "stderr", "uncertainty"))
_SPREAD_WORDS: Mapping[str, frozenset[str]] = {
    "std": _STD_WORDS,
    "log_std": _STD_WORDS,
    "variance": frozenset(("variance", "sigma2")),
}
_PARAMETRIC: tuple[tuple[Family, tuple[str, ...]], ...] = (
    ("lognormal", ("log_mean", "log_std")),
    ("student_t", ("mean", "scale", "df")),
    ("gamma", ("mean", "shape")),
    ("normal", ("mean", "std")),
    ("normal", ("mean", "variance")),
)
_POINTS: tuple[tuple[Family, str], ...] = (("log_point", "log_mean"), ("point", "mean"))
_AFFIX = re.compile(r"(?:y_)?(?:pred|predicted|predictive|prediction|forecast|model)_|_pred")
_QUANTILE = re.compile(
    r"(?:(?:y_)?pred(?:icted|iction)?[_ ])?(quantiles?|quant|percentile|pct|q|p)[_\- ]?"
    r"([0-9]+(?:[._][0-9]+)?|\.[0-9]+)(?:_pred)?"
)
_SAMPLE_COLUMN = re.compile(
    r"(?:(?:y_)?pred(?:icted|iction)?_)?(?:sample|draw|member|ensemble|replicate|mc|pass)_?([0-9]+)"
)
_MANY_FRACTIONS = 10  # distinct values that speak for a measurement, where some are no integers
_MANY_INTEGERS = 50


def guess_regression_roles(
    frame: pd.DataFrame,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    *,
    model: bool,
    family: Family | None,
) -> Roles:
    """Guess the roles of a table under the task regression.

    Parameters
    ----------
    frame : pandas.DataFrame
    feature_names, n_features : optional
        What the model states about its inputs.
    model : bool
        Whether there is one: its answers are the predictions then, and columns that look like
        predictions count as features where their number fits.
    family : str, optional
        The model's family, where it names one; "point" otherwise.

    Examples
    --------
    >>> frame = pd.DataFrame({"x": [0.5, 1.5], "y": [1.0, 2.0], "mu": [1.1, 2.2], "sigma": 0.1})
    >>> roles = guess_regression_roles(frame, None, None, model=False, family=None)
    >>> roles.target, roles.family, roles.parameters, roles.features
    ('y', 'normal', (('mean', 'mu'), ('std', 'sigma')), ('x',))
    """
    taken = set(feature_names or ()) & set(frame.columns)
    truth = named(frame, _TRUE_MEANS, taken)
    taken |= {truth} if truth else set()
    target = named(frame, _OUTCOMES, taken) or None
    taken |= {target} if target else set()
    guessed, parameters = predictions_in(frame, taken)
    used = taken | {column for _, column in parameters}
    weight = named(frame, WEIGHTS, used)
    split = split_named(frame, used)
    aside = {name for name in (weight, split) if name}
    if target is None:
        target = _last_measured(frame, used | aside)
    aside |= {target} if target else set()
    features = features_of(frame, feature_names, n_features, used | aside)
    if model:
        if n_features is not None and len(features) < n_features:
            features = features_of(frame, feature_names, n_features, taken | aside)
        guessed, parameters = family or "point", ()
    return Roles(
        target=target,
        features=features,
        split=split,
        weight=weight,
        task="regression",
        family=guessed,
        parameters=parameters,
        true_mean=truth,
    )


def looks_like_regression(frame: pd.DataFrame, classification: Roles) -> bool:
    """Whether a table without a model holds predictions of numbers rather than of classes.

    Columns of a distribution beside a numeric outcome do, however few the rows if the outcomes are
    not integers. So does an outcome of many numbers where the guess at a classification has found
    no probabilities.

    Examples
    --------
    >>> frame = pd.DataFrame({"y": np.linspace(0.0, 1.0, 30), "pred": 0.5})
    >>> looks_like_regression(frame, Roles(target="y"))
    True
    """
    truth = named(frame, _TRUE_MEANS, set())
    target = named(frame, _OUTCOMES, {truth} if truth else set())
    if target is None or not mostly_numbers(frame[target]):
        return False
    family, parameters = predictions_in(frame, {target})
    outcomes = sampled(frame, [target])
    many = len(np.unique(outcomes)) > _MANY_FRACTIONS or bool(np.any(outcomes % 1 > 0))
    if family in ("normal", "quantiles", "samples") and many and len(parameters) > 1:
        return True
    return not classification.outputs and _is_measured(frame[target])


def predictions_in(frame: pd.DataFrame, taken: set[str]) -> tuple[Family | None, Parameters]:
    """The family that the free columns of numbers name, and its parameters.

    Examples
    --------
    >>> predictions_in(pd.DataFrame({"q05": [1.0], "q95": [2.0]}), taken=set())
    ('quantiles', (('0.05', 'q05'), ('0.95', 'q95')))
    """
    free = [str(name) for name in frame.columns if name not in taken]
    free = [name for name in free if mostly_numbers(frame[name])]
    found = dict(_parameters(free))
    for family, parts in _PARAMETRIC:
        if all(part in found for part in parts):
            return family, tuple((part, found[part]) for part in parts)
    quantiles = _quantiles(free)
    if len(quantiles) >= 2:
        return "quantiles", quantiles
    samples = tuple(
        (m[1].lstrip("0") or "0", c) for c in free if (m := _SAMPLE_COLUMN.fullmatch(simple(c)))
    )
    if len({name for name, _ in samples}) >= 2:
        return "samples", tuple(sorted(samples, key=lambda pair: int(pair[0])))
    for family, part in _POINTS:
        if part in found:
            return family, ((part, found[part]),)
    if quantiles:  # too few for a distribution, and the checks that follow say so
        return "quantiles", quantiles
    return ("samples", samples) if samples else (None, ())


def spread_column(
    frame: pd.DataFrame, taken: set[str], *, log: bool = False
) -> tuple[str, str | None]:
    """The parameter and the column of a spread for each row; no column where there is none.

    A column of positive numbers with such a word in its name, as "uncertainty_sd", may be one too.

    Examples
    --------
    >>> frame = pd.DataFrame({"y": [1.0], "pred": [2.0], "pred_std": [0.5]})
    >>> spread_column(frame, taken={"y", "pred"})
    ('std', 'pred_std')
    """
    free = [str(name) for name in frame.columns if name not in taken]
    free = [name for name in free if mostly_numbers(frame[name])]
    found = dict(_parameters(free))
    wanted = ("log_std",) if log else ("std", "variance")
    for name in wanted:
        if name in found:
            return name, found[name]
    positive = [name for name in free if (pd.to_numeric(frame[name], errors="coerce") > 0).all()]
    for name in wanted:
        for column in positive:
            if _SPREAD_WORDS[name] & set(simple(column).split("_")):
                return name, column
    return wanted[0], None


def _parameters(columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The first column that bears a parameter's name, whole or with "pred" around it."""
    plain = {simple(column): column for column in reversed(columns)}
    stripped = {_AFFIX.sub("", name): column for name, column in reversed(plain.items())}
    for parameter, names in _NAMES.items():
        found = [index[name] for name in names for index in (plain, stripped) if name in index]
        if found:
            yield parameter, found[0]


def _quantiles(columns: Sequence[str]) -> Parameters:
    pairs = [
        (_level(match[1], match[2]), column)
        for column in columns
        if (match := _QUANTILE.fullmatch(column.strip().casefold()))
    ]
    return tuple((f"{level:.12g}", column) for level, column in sorted(pairs))


def _level(word: str, digits: str) -> float:
    """The level that a column name means: 0.05, .05, 0_05, 05, 5 and 2.5 are all read.

    "quantile_1.5" and "quantile_0" are read as written, and the checks that follow refuse them.
    """
    number = float(digits.replace("_", "."))
    if word in ("percentile", "pct"):
        return number / 100
    if "." in digits or "_" in digits:
        return number if number < 2 else number / 100
    if word.startswith("quant") and number <= 1:
        return number
    return number / (1000 if len(digits) == 3 and digits != "100" else 100)


def _last_measured(frame: pd.DataFrame, taken: set[str]) -> str | None:
    free = [str(name) for name in reversed(frame.columns) if name not in taken]
    return next((name for name in free if _is_measured(frame[name])), None)


def _is_measured(column: pd.Series[Any]) -> bool:
    """Whether a column holds a quantity: many numbers, or several that are not integers."""
    if not mostly_numbers(column):
        return False
    numbers = column if is_number(column) else pd.to_numeric(column, errors="coerce")
    present = numbers.dropna()
    fractions = bool((present % 1 != 0).any())
    return present.nunique() > (_MANY_FRACTIONS if fractions else _MANY_INTEGERS)
