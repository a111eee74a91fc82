"""The first guess at the columns of a regression table: outcome, predictions, their family."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.column_kinds import (
    IDS,
    PREDICTED,
    SPLITS,
    features_of,
    is_number,
    mostly_numbers,
    named,
    sampled,
    says_weight,
    simple,
    split_named,
    weight_named,
    why_no_input,
)
from kdcal_core.data.regression_columns import FEWEST, POSITIVE
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
    *("y_mean", "forecast", "expected", "estimate", "fitted", "fit", "median", "y_median"),
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
_BARE_LEVEL = re.compile(r"0?\.\d*[1-9]\d*|(?=.*[1-9])\d{1,2}(?:\.\d+)? ?%")
_SAMPLE_COLUMN = re.compile(
    r"(?:(?:y_)?pred(?:icted|iction)?_)?(?:sample|draw|member|ensemble|replicate|mc|pass)_?([0-9]+)"
)
# words in longer names, as in "lgd_actual" beside "lgd_predicted"; some in the languages of files
_OUTCOME_WORDS = frozenset(
    (
        *("actual", "actuals", "true", "truth", "observed", "realised", "realized", "measured"),
        *("outcome", "target", "ist", "tatsächlich", "beobachtet", "réel", "reel", "real"),
    )
)
_POINT_WORDS = frozenset(
    (
        *("pred", "preds", "predicted", "prediction", "forecast", "forecasted", "estimated"),
        *("fitted", "yhat", "modelled", "prognose", "vorhersage", "prévision", "prevision"),
        *("predicción", "pronóstico"),
    )
)
_SIDES: Mapping[str, frozenset[str]] = {
    "lower": frozenset(
        (
            *("lower", "lo", "low", "lwr", "lb", "min", "from"),
            *("untere", "unteres", "von", "inférieure", "inferior", "desde"),
        )
    ),
    "upper": frozenset(
        (
            *("upper", "hi", "high", "upr", "ub", "max", "to"),
            *("obere", "oberes", "bis", "supérieure", "superior", "hasta"),
        )
    ),
}
# what else the name of an interval's end may hold; a feature may be called "low_income"
_BOUND_WORDS = frozenset(
    (
        *("y", "yhat", "hat", "pred", "prediction", "predicted", "forecast", "estimate", "fitted"),
        *("ci", "pi", "interval", "bound", "limit", "conf", "band", "quantile", "mean"),
        *("grenze", "schranke", "intervall", "prognose", "borne", "limite"),
    )
)
_LIE = 0.99  # share of rows in which the ends of an interval, or quantiles, lie in order
_HELD = 0.5  # share of its values between two bounds, from which a column may be their outcome
_PREDICTED_CLASSES = [name for name in PREDICTED if "class" in name or "label" in name]
_EXACTLY = 0.9999  # correlation beyond which one column is computed from the other
_FOLLOWS = 0.5  # correlation from which a column may be what was predicted
_COUNTS_FOLLOW = 4.0  # the same of counts, in standard errors: their noise is large
_SHARED_OUT = 0.01  # how far the sum of a row's probabilities may be from one
_MANY_FRACTIONS = 10  # distinct values that speak for a measurement, where some are no integers
_MANY_INTEGERS = 50


def guess_regression_roles(
    frame: pd.DataFrame,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    *,
    model: bool,
    family: Family | None,
    target: str | None = None,
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
    target : str, optional
        The outcome, where it is known.

    Examples
    --------
    >>> frame = pd.DataFrame({"x": [0.5, 1.5], "y": [1.0, 2.0], "mu": [1.1, 2.2], "sigma": 0.1})
    >>> roles = guess_regression_roles(frame, None, None, model=False, family=None)
    >>> roles.target, roles.family, roles.parameters, roles.features
    ('y', 'normal', (('mean', 'mu'), ('std', 'sigma')), ('x',))
    """
    taken = set(feature_names or ()) & set(frame.columns) - {target}
    truth = named(frame, _TRUE_MEANS, taken | {target or ""})
    taken |= {truth} if truth else set()
    target = target or named(frame, _OUTCOMES, taken) or _said_outcome(frame, taken)
    taken |= {target} if target else set()
    guessed, parameters = predictions_in(frame, taken)
    if len(parameters) < FEWEST and (found := continued(frame, taken, target)):
        target, guessed, parameters = found
        taken |= {target}
    used = taken | {column for _, column in parameters}
    weight = weight_named(frame, used)
    split = split_named(frame, used)
    aside = {name for name in (weight, split) if name}
    if target is None and not parameters:
        target = _held_by(frame, used | aside)
    if target is None:
        target = _outcome_among(frame, used | aside, parameters)
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
    no probabilities, and so do predictions that a column of no known name follows.

    Examples
    --------
    >>> frame = pd.DataFrame({"y": np.linspace(0.0, 1.0, 30), "pred": 0.5})
    >>> looks_like_regression(frame, Roles(target="y"))
    True
    """
    truth = named(frame, _TRUE_MEANS, set())
    aside = {truth} if truth else set()
    target = named(frame, _OUTCOMES, aside) or _said_outcome(frame, aside)
    if target is None:
        if classification.outputs:
            return False
        # beside a column of classes, "temp" and "temp_mean" may be inputs alike
        alone = classification.target is None
        return (alone and continued(frame, aside) is not None) or _has_forecasts(
            frame, aside, classification.target
        )
    if not mostly_numbers(frame[target]):
        return False
    family, parameters = predictions_in(frame, {target})
    if family == "quantiles" and _are_of_classes(frame, parameters):
        return False
    if len(parameters) < FEWEST and (found := continued(frame, {target}, target)):
        _, family, parameters = found
    outcomes = sampled(frame, [target])
    many = len(np.unique(outcomes)) > _MANY_FRACTIONS or bool(np.any(outcomes % 1 > 0))
    if family in ("normal", "quantiles", "samples") and many and len(parameters) > 1:
        return True
    if classification.outputs:
        return False
    return _is_measured(frame[target]) or (
        _is_counted(frame[target])
        and (_have_fractions(frame, parameters) or target in held_columns(frame, set(), (target,)))
    )


def _are_of_classes(frame: pd.DataFrame, parameters: Parameters) -> bool:
    """Whether columns named as quantiles ("p_0", "p_1") share out one, or 100%, in most rows."""
    values = sampled(frame, [column for _, column in parameters])
    total = values.sum(axis=1)
    near = (np.abs(total - 1.0) <= _SHARED_OUT) | (np.abs(total / 100.0 - 1.0) <= _SHARED_OUT)
    return bool(np.mean(near & (values >= 0).all(axis=1)) > 0.5)


def _have_fractions(frame: pd.DataFrame, parameters: Parameters) -> bool:
    """Whether the centre of the predictions holds fractions, and no class was predicted."""
    if named(frame, _PREDICTED_CLASSES, set()) is not None:
        return False
    centres = [column for name, column in parameters if name not in POSITIVE]
    return bool(centres) and all(_is_measured(frame[column]) for column in centres)


def _has_forecasts(frame: pd.DataFrame, aside: set[str], classes: str | None) -> bool:
    """Whether predictions of a quantity stand beside a column that follows them.

    Counts need not follow them, if ``classes``, which would be the column of classes, is the only
    column of counts.
    """
    _, parameters = predictions_in(frame, aside)
    if not parameters:
        return _held_by(frame, aside) is not None
    # one spread for all rows is common
    centres = [column for name, column in parameters if name not in POSITIVE]
    if not all(_is_measured(frame[column]) for column in centres):
        return False
    taken = aside | {column for _, column in parameters}
    found = _outcome_among(frame, taken, parameters)
    if found is None:
        return False
    if _is_measured(frame[found]):
        return abs(follows(frame, parameters, found)) > _FOLLOWS
    if named(frame, _PREDICTED_CLASSES, set()) is not None:
        return False
    if _quantities(frame, taken) == [classes]:
        return True
    return bool(abs(follows(frame, parameters, found)) > _COUNTS_FOLLOW / np.sqrt(len(frame)))


def _held_by(frame: pd.DataFrame, taken: set[str]) -> str | None:
    """The measured column that lies best between columns named as the ends of an interval."""
    return next(iter(held_columns(frame, taken)), None)


def held_columns(
    frame: pd.DataFrame, taken: set[str], among: Sequence[str] | None = None
) -> list[str]:
    """Columns that mostly lie between columns named as the ends of an interval.

    The one of which most values do comes first. They are looked for ``among`` these columns, or
    else among all of a quantity or a count.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 20)
    >>> frame = pd.DataFrame({"a": x, "b": 3 * x, "lower_90": x - 0.1, "upper_90": x + 0.1})
    >>> held_columns(frame, taken=set())
    ['a']
    """
    pairs = [(one.lower, one.upper) for one in bounds_in(frame, taken)]
    shares = {
        name: max((_inside(frame, lower, upper, name) for lower, upper in pairs), default=0.0)
        for name in (_quantities(frame, taken) if among is None else among)
    }
    held = [name for name, share in shares.items() if share > _HELD]
    return sorted(held, key=lambda name: -shares[name])


def _said_outcome(frame: pd.DataFrame, taken: set[str]) -> str | None:
    """The one measured column with a word in its name that says so, as in "lgd_actual"."""
    found = [name for name in measured_columns(frame, taken) if says_outcome(name)]
    return found[0] if len(found) == 1 else None


def says_outcome(name: str) -> bool:
    """Whether a word in a column's name says that it holds what happened.

    Examples
    --------
    >>> says_outcome("lgd_actual"), says_outcome("LGD Ist"), says_outcome("predicted_target")
    (True, True, False)
    """
    words = _words(name)
    return bool(words & _OUTCOME_WORDS) and not (
        words & _POINT_WORDS or simple(name) in _TRUE_MEANS
    )


def _words(name: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", simple(name)))


def _stems(columns: Iterable[str]) -> set[str]:
    """What is left of names that say what happened or what was predicted: "lgd" of "lgd_actual"."""
    either = _OUTCOME_WORDS | _POINT_WORDS
    parts = ([*re.findall(r"[^\W\d_]+", simple(one))] for one in columns)
    return {"_".join(w for w in words if w not in either) for words in parts if {*words} & either}


def _inside(frame: pd.DataFrame, lower: str, upper: str, column: str) -> float:
    """Share of a column's values between two others."""
    low, high, values = sampled(frame, [lower, upper, column]).T
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(values)
    inside = (low <= values) & (values <= high)
    return float(inside[known].mean()) if known.any() else 0.0


def follows(frame: pd.DataFrame, parameters: Parameters, column: str) -> float:
    """Correlation of a column with the middle one of the predictions; NaN where there is none.

    Examples
    --------
    >>> frame = pd.DataFrame({"sold": [1.0, 2.0, 3.0], "forecast": [2.0, 4.0, 6.0]})
    >>> round(follows(frame, (("mean", "forecast"),), "sold"), 6)
    1.0
    """
    columns = [name for _, name in parameters]
    if not columns:
        return float("nan")
    middle = dict(parameters).get("mean", columns[len(columns) // 2])
    values = sampled(frame, [middle, column])
    known = values[np.isfinite(values).all(axis=1)]
    if len(known) < 2 or any(len(np.unique(one)) == 1 for one in known.T):
        return float("nan")
    return float(np.asarray(np.corrcoef(known, rowvar=False))[0, 1])


def like_an_outcome(correlation: float) -> float:
    """How likely a column is the outcome of predictions that it has this correlation with.

    A prediction that follows exactly from a column has it as its input.

    Examples
    --------
    >>> like_an_outcome(-0.7), like_an_outcome(1.0), like_an_outcome(float("nan"))
    (0.7, 0.0, -1.0)
    """
    size = abs(correlation)
    return -1.0 if np.isnan(size) else 0.0 if size > _EXACTLY else float(size)


@dataclass(frozen=True)
class Bounds:
    """Two columns that are the ends of an interval, and its level where their names say it."""

    lower: str
    upper: str
    level: float | None


def bounds_in(frame: pd.DataFrame, taken: set[str]) -> tuple[Bounds, ...]:
    """The pairs of free columns that are named and lie as the ends of an interval.

    Whatever else their names hold, a pair around every prediction is one.

    Examples
    --------
    >>> frame = pd.DataFrame({"lower": [1.0, 2.0], "upper": [3.0, 4.0], "lo-80": 1.5, "hi-80": 5.0})
    >>> [(one.lower, one.level) for one in bounds_in(frame, taken=set())]
    [('lower', None), ('lo-80', 0.8)]
    >>> bounds_in(pd.DataFrame({"lower90": [1.0], "upper90": [3.0]}), taken=set())[0].level
    0.9
    """
    columns = {simple(name) for name in frame.columns} | _stems(map(str, frame.columns))
    ends: dict[str, dict[tuple[str, str], str]] = {side: {} for side in _SIDES}
    for name in map(str, frame.columns):
        words = re.findall(r"[^\W\d_]+|\d+", simple(name))  # "lower90" is two words
        numbers = [word for word in words if word.isdecimal()]
        if name in taken or len(numbers) > 1 or not mostly_numbers(frame[name]):
            continue
        for side, of_side in _SIDES.items():
            if {*words} & of_side:
                rest = "_".join(word for word in words if word not in {*of_side, *numbers})
                ends[side].setdefault((rest, "".join(numbers)), name)
    points = [name for name in map(str, frame.columns) if simple(name) in _MEANS]
    return tuple(
        Bounds(lower, upper, _level_named(number))
        for (rest, number), lower in ends["lower"].items()
        if (upper := ends["upper"].get((rest, number))) is not None
        and _lie_as_bounds(frame, lower, upper)
        and (
            {*rest.split("_")} <= {*_BOUND_WORDS, ""}
            or rest in columns
            or any(_inside(frame, lower, upper, point) > _LIE for point in points)
        )
    )


def _level_named(number: str) -> float | None:
    """The level of an interval whose ends are named with "80" or "95"."""
    return int(number) / 100 if number and 50 <= int(number) < 100 else None


def _lie_as_bounds(frame: pd.DataFrame, lower: str, upper: str) -> bool:
    low, high = sampled(frame, [lower, upper]).T
    known = ~np.isnan(low) & ~np.isnan(high)
    return bool(known.any()) and bool(np.mean(low[known] <= high[known]) > _LIE)


def interval_levels(level: float) -> tuple[float, float]:
    """The levels of the quantiles at the ends of a central interval.

    Examples
    --------
    >>> interval_levels(0.9)
    (0.05, 0.95)
    """
    return round((1 - level) / 2, 12), round((1 + level) / 2, 12)


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
    if not quantiles:
        quantiles = _bare_levels(frame, free)
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


def continued(
    frame: pd.DataFrame, taken: set[str], outcome: str | None = None
) -> tuple[str, Family, Parameters] | None:
    """The one outcome whose name those of its distribution continue, and that distribution.

    Examples
    --------
    >>> frame = pd.DataFrame({"log_price": np.linspace(0, 1, 20), "log_price_mean": 0.5})
    >>> continued(frame.assign(log_price_std=0.1), taken=set())
    ('log_price', 'normal', (('mean', 'log_price_mean'), ('std', 'log_price_std')))
    """
    free = {simple(name): str(name) for name in frame.columns if name not in taken}
    found: list[tuple[str, Family, Parameters]] = []
    for one in [outcome] if outcome else measured_columns(frame, taken):
        stem = simple(one)
        parts = {
            name.removeprefix(f"{stem}_").removesuffix(f"_{stem}"): column
            for name, column in free.items()
            if name.startswith(f"{stem}_") or name.endswith(f"_{stem}")
        }
        family, named_so = predictions_in(
            frame[[*parts.values()]].set_axis([*parts], axis=1), set()
        )
        if family is not None and len(named_so) >= FEWEST:
            found.append((one, family, tuple((name, parts[part]) for name, part in named_so)))
    return found[0] if len(found) == 1 else None


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
        if not found and parameter == "mean":
            said = [column for column in columns if _says_point(column)]
            found = said if len(said) == 1 else []
        if found:
            yield parameter, found[0]


def _says_point(name: str) -> bool:
    """Whether a word in a column's name, as in "lgd_predicted", says that it holds a prediction."""
    words = _words(name)
    other = set().union(*_SIDES.values(), *_SPREAD_WORDS.values(), {"log", "error", "residual"})
    numbered = _QUANTILE.fullmatch(simple(name)) or _SAMPLE_COLUMN.fullmatch(simple(name))
    return bool(words & _POINT_WORDS) and not (words & other or numbered)


def _quantiles(columns: Sequence[str]) -> Parameters:
    pairs = [
        (_level(match[1], match[2]), column)
        for column in columns
        if (match := _QUANTILE.fullmatch(column.strip().casefold()))
    ]
    return tuple((f"{level:.12g}", column) for level, column in sorted(pairs))


def _bare_levels(frame: pd.DataFrame, columns: Sequence[str]) -> Parameters:
    """Columns named by levels alone, "0.05" or "5%", whose numbers rise with the level."""
    pairs = sorted(
        (float(written.rstrip(" %")) / (100 if "%" in written else 1), column)
        for column in columns
        if _BARE_LEVEL.fullmatch(written := column.strip())
    )
    if len(pairs) < FEWEST:
        return ()
    values = sampled(frame, [column for _, column in pairs])
    known = values[~np.isnan(values).any(axis=1)]
    rises = bool(len(known)) and np.mean((np.diff(known, axis=1) >= 0).all(axis=1)) > _LIE
    return tuple((f"{level:.12g}", column) for level, column in pairs) if rises else ()


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


def _outcome_among(frame: pd.DataFrame, taken: set[str], parameters: Parameters) -> str | None:
    """The column that follows the predictions best; without predictions the last measured one."""
    free = _quantities(frame, taken) if parameters else measured_columns(frame, taken)
    if not free:
        return None
    near = {name: follows(frame, parameters, name) for name in free}
    if not any(np.isfinite(list(near.values()))):
        return free[-1]
    return max(free, key=lambda name: like_an_outcome(near[name]))


def measured_columns(frame: pd.DataFrame, taken: set[str]) -> list[str]:
    """The free columns that hold a quantity, without the ends of intervals.

    Examples
    --------
    >>> frame = pd.DataFrame({"x": np.linspace(0, 1, 20), "lower": 0.1, "upper": 0.9, "n": 1})
    >>> measured_columns(frame, taken=set())
    ['x']
    """
    ends = {name for one in bounds_in(frame, taken) for name in (one.lower, one.upper)}
    free = [str(name) for name in frame.columns if name not in taken | ends]
    return [
        name
        for name in free
        if _is_measured(frame[name]) and not why_no_input(simple(name), frame[name])
    ]


def _quantities(frame: pd.DataFrame, taken: set[str]) -> list[str]:
    """The measured columns and, after them, those of counts, which may be classes elsewhere."""
    measured = measured_columns(frame, taken)
    ends = {name for one in bounds_in(frame, taken) for name in (one.lower, one.upper)}
    free = [str(name) for name in frame.columns if name not in {*taken, *ends, *measured}]
    aside = {*SPLITS, *IDS}
    free = [name for name in free if simple(name) not in aside and not says_weight(name)]
    return measured + [name for name in free if _is_counted(frame[name])]


def is_outcome_name(name: str) -> bool:
    """Whether a column's name says that it holds an outcome.

    Examples
    --------
    >>> is_outcome_name("y_true"), is_outcome_name("age")
    (True, False)
    """
    return simple(name) in _OUTCOMES


def _is_counted(column: pd.Series[Any]) -> bool:
    """Whether a column holds whole numbers, more than two of them."""
    if not is_number(column):
        return False
    present = column.dropna()
    return present.nunique() > 2 and bool((present % 1 == 0).all())


def _is_measured(column: pd.Series[Any]) -> bool:
    """Whether a column holds a quantity: many numbers, or several that are not integers."""
    if not mostly_numbers(column):
        return False
    numbers = column if is_number(column) else pd.to_numeric(column, errors="coerce")
    present = numbers.dropna()
    fractions = bool((present % 1 != 0).any())
    return present.nunique() > (_MANY_FRACTIONS if fractions else _MANY_INTEGERS)
