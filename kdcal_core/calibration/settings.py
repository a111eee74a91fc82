"""The settings of each calibrator: names, ranges, calibrators made with them, values as text."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.calibrators import CALIBRATORS, calibrator_entry
from kdcal_core.calibration.fitting import TREES
from kdcal_core.errors import InputError
from kdcal_core.text import in_sentence, listed

# Limits of settings. The upper one bounds the memory for bins and rows in each region; no bandwidth
# or strength needs to be below the lower one.
LEAST, MOST = 1e-6, 1e6
UNREAD = object()
"""Marks text that is not a valid value of a parameter."""


def read(constraints: list[Any], text: str) -> Any:
    """The value that a text describes, or ``UNREAD``.

    Several names are separated by commas; a name with a comma is written in double quotes.

    Examples
    --------
    >>> read([None, Interval(Integral, 1, None, closed="left")], "20")
    20
    >>> read(["boolean"], "perhaps") is UNREAD
    True
    """
    for reader in (_option, _nothing, _truth, _number, _numbers, _names):
        for constraint in constraints:
            value = reader(constraint, text)
            if value is not UNREAD:
                return value
    return UNREAD


def in_reach(value: float) -> bool:
    """Whether a number is zero, or not too small or large.

    Examples
    --------
    >>> in_reach(0), in_reach(-2.5), in_reach(1e-300), in_reach(10**30)
    (True, True, False, False)
    """
    return value == 0 or LEAST <= abs(value) <= MOST


def allowed(constraints: list[Any]) -> str:
    """The allowed values of a parameter with these constraints, in words.

    Examples
    --------
    >>> allowed([None, Interval(Integral, 1, 12, closed="both")])
    'none or a whole number from 1 to 12'
    """
    words = [word for one in constraints for word in _words(one)]
    return listed(words, len(words), last="or")


def _words(constraint: Any) -> list[str]:
    if constraint is None:
        return ["none"]
    if isinstance(constraint, StrOptions):
        return sorted(constraint.options)
    if isinstance(constraint, Interval):
        return [_interval(constraint)]
    known: dict[Any, list[str]] = {
        "boolean": ["yes", "no"],
        "array-like": ["several, separated by commas"],
        tuple: ["several numbers, separated by commas"],
        list: [],
        np.ndarray: [],
    }
    return known.get(constraint, ["a column's name"])


def _interval(one: Interval) -> str:
    kind = "a whole number" if one.type is Integral else "a number"
    excludes_zero = one.left == 0 and one.closed in ("neither", "right")
    low = f" from {f'{LEAST:f}' if excludes_zero else f'{one.left:,}'}"
    most = MOST if one.right is None else min(MOST, one.right)
    return f"{kind}{low} to {most:,.0f}"


def _option(constraint: Any, text: str) -> Any:
    found = isinstance(constraint, StrOptions) and text in constraint.options
    return text if found else UNREAD


def _nothing(constraint: Any, text: str) -> Any:
    return None if constraint is None and text.lower() == "none" else UNREAD


def _truth(constraint: Any, text: str) -> Any:
    known = {"yes": True, "true": True, "no": False, "false": False}
    return known.get(text.lower(), UNREAD) if constraint == "boolean" else UNREAD


def _number(constraint: Any, text: str) -> Any:
    if not isinstance(constraint, Interval):
        return UNREAD
    try:
        value = int(text) if constraint.type is Integral else float(text)
    except ValueError:
        return UNREAD
    return value if value in constraint and _within(constraint, value) else UNREAD


def _within(constraint: Interval, value: float) -> bool:
    """Whether a number is in reach; an interval with two ends has limits of its own."""
    return None not in (constraint.left, constraint.right) or in_reach(value)


def _numbers(constraint: Any, text: str) -> Any:
    if constraint is not tuple:  # what is "array-like" holds names
        return UNREAD
    try:
        values = [float(one) for one in text.split(",")]
    except ValueError:
        return UNREAD
    return values if all(map(in_reach, values)) else UNREAD


def _names(constraint: Any, text: str) -> Any:
    if constraint is not str or not text.strip():
        return UNREAD
    found = next(csv.reader([text], skipinitialspace=True))
    if not all(found):
        return UNREAD
    return found[0] if len(found) == 1 else found


BY_TREE = "heterogeneous_tree"
_COLUMNS = ("column", "groups")
# Settings that a partition does not use.
_IDLE: dict[str | None, tuple[str, ...]] = {
    "tree": ("n_trees",),
    "auc": ("n_trees", "column"),
    **dict.fromkeys(("forest", "boosted"), ("prune", "column")),
    **dict.fromkeys(_COLUMNS, ("n_trees", "max_depth", "min_rows", "prune")),
}
_WHERE = {
    "tree": "in each region of a shallow tree",
    "forest": "in the regions of {n_trees:,} shallow trees, averaged",
    "boosted": "by regions in sequence, each on the last one's answer",
    "auc": "in regions that are split for AUROC",
}
INNER_MAPS = {
    "platt": "Platt scaling",
    "isotonic": "Isotonic regression",
    "beta": "Beta calibration",
    "histogram": "Histogram",
    "scaling_binning": "Scaling-binning",
    "bbq": "Bayesian binning",
    "temperature": "Temperature scaling",
    "kde": "Kernel densities of the confidence",
}
"""Full names of the maps inside a region."""
_SEED = "random_state"
_SHOWN = 60


@dataclass(frozen=True)
class Setting:
    """A parameter of a calibrator that the user may choose.

    Attributes
    ----------
    name : str
    default : Any
        A JSON value.
    allowed : str
        Its allowed values, in words.
    """

    name: str
    default: Any
    allowed: str


def settings_of(key: str) -> tuple[Setting, ...]:
    """The settings of a calibrator: its parameters except its seed and those that its key fixes.

    Raises
    ------
    InputError
        There is no such calibrator.

    Examples
    --------
    >>> for one in settings_of("histogram"):
    ...     print(one.name, one.default, "->", one.allowed)
    n_bins 10 -> a whole number from 1 to 1,000,000
    shrinkage auto -> auto, a number from 0.000001 to 1,000,000 or none
    strategy uniform -> quantile or uniform
    """
    calibrator = calibrator_entry(key).factory()
    return tuple(
        Setting(name, default, allowed(_constraints(key, calibrator, name)))
        for name, default in _open(calibrator).items()
    )


def setting_from_text(key: str, name: str, text: str) -> Any:
    """The value of a setting from the user's text.

    Several names are separated by commas; a name with a comma is written in double quotes.

    Raises
    ------
    InputError
        If there is no such setting, or it cannot have this value.

    Examples
    --------
    >>> setting_from_text("heterogeneous_tree", "max_depth", "2")
    2
    >>> setting_from_text("heterogeneous_tree", "column", 'shop,"a, b"')
    ['shop', 'a, b']
    >>> setting_from_text("histogram", "n_bins", "none")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The setting 'n_bins' cannot be 'none'. Choose a whole number ...
    """
    constraints = _constraints(key, calibrator_entry(key).factory(), name)
    value = read(constraints, text)
    if value is UNREAD:
        raise _refused(name, text, constraints)
    return value


def configured(key: str, settings: Mapping[str, Any], *, seed: int = 0) -> Calibrator:
    """An unfitted calibrator for this key with these settings.

    Parameters
    ----------
    key : str
        Key in :data:`kdcal_core.calibration.CALIBRATORS`.
    settings : mapping
        JSON values by the names of :func:`settings_of`. With a ``column``, the calibrator
        "heterogeneous_tree" divides the rows by its values instead of a tree; with a list of
        columns, by their combinations.
    seed : int
        Seed of the calibrator's random draws, if it has any.

    Raises
    ------
    InputError
        If there is no such calibrator or setting, or the setting cannot have this value.

    Examples
    --------
    >>> configured("heterogeneous_tree", {"column": "shop"}).partition
    'column'
    >>> configured("histogram", {"n_bins": 0})
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The setting 'n_bins' cannot be 0. Choose a whole number ...
    """
    calibrator = calibrator_entry(key).factory()
    for name, value in settings.items():
        _check(key, calibrator, name, value)
    given = dict(settings)
    if key == BY_TREE and given.get("column") is not None:
        kind = "column" if isinstance(given["column"], str) else "groups"
        given = {"partition": kind, **given}
    if _SEED in calibrator.get_params(deep=False):
        given[_SEED] = seed
    calibrator.set_params(**given)
    _check_partition(calibrator, settings)
    return calibrator


def title_of(key: str, calibrator: Calibrator, layer: str | None = None) -> str:
    """A calibrator's full name with its settings. Untrusted text where columns are named.

    Of a fitted one that chose among others, the one that it chose comes first.

    Examples
    --------
    >>> title_of("heterogeneous_tree", configured("heterogeneous_tree", {"calibrator": "beta"}))
    'Beta calibration in each region of a shallow tree'
    >>> title_of("histogram", configured("histogram", {"n_bins": 20}))
    'Histogram binning with n_bins = 20'
    """
    entry = calibrator_entry(key)
    found, usual = (one.get_params(deep=False) for one in (calibrator, entry.factory()))
    if entry.family == "partition":
        return _title_by_regions(found, layer)
    others = [
        f"{name} = {value}"
        for name, value in found.items()
        if value != usual[name] and name != _SEED
    ]
    name = f"{entry.label} with {', '.join(others)}" if others else entry.name
    chosen = CALIBRATORS.get(getattr(calibrator, "chosen_", ""))
    return name if chosen is None else f"{chosen.name}, {in_sentence(name)}"


def _title_by_regions(found: Mapping[str, Any], layer: str | None) -> str:
    inner, kind, column = INNER_MAPS[found["calibrator"]], found["partition"], found["column"]
    if kind in TREES:
        where = _WHERE[kind].format(**found)
        return f"{inner} {where}" + (
            f", on the layer {layer[:_SHOWN]}" if layer is not None else ""
        )
    names = [column] if isinstance(column, str) else list(column or ("all columns",))
    each = "value" if kind == "column" or (len(names) == 1 and column) else "combination"
    return f"{inner} for each {each} of {', '.join(name[:_SHOWN] for name in names)}"


def _check(key: str, calibrator: Calibrator, name: str, value: Any) -> None:
    constraints = _constraints(key, calibrator, name)
    try:
        intervals = [one for one in constraints if isinstance(one, Interval)]
        if isinstance(value, int | float) and not (
            in_reach(value) or any(value in one and _within(one, value) for one in intervals)
        ):
            raise InvalidParameterError
        type(calibrator)(**{name: value})._validate_params()
    except (InvalidParameterError, TypeError, ValueError) as error:
        raise _refused(name, value, constraints) from error
    kind = int | float if tuple in constraints else str
    if isinstance(value, list | tuple) and not (value and all(isinstance(x, kind) for x in value)):
        raise _refused(name, value, constraints)
    if name == "partition" and value not in ("tree", *_COLUMNS):
        raise _refused(name, value, constraints)


def _check_partition(calibrator: Calibrator, settings: Mapping[str, Any]) -> None:
    """Refuse settings that the chosen partition would ignore."""
    found = calibrator.get_params(deep=False)
    kind = found.get("partition")
    idle = [name for name in _IDLE.get(kind, ()) if settings.get(name) is not None]
    if kind == "tree" and found["column"] is not None:
        idle.append("column")
    if idle:
        raise InputError(
            f"The setting {idle[0]!r} does nothing where the partition is {kind!r}",
            fix="Leave it out.",
        )
    if kind == "column" and not isinstance(found["column"], str):
        raise InputError("No column is named to divide the rows by", fix="Name one: column=NAME.")


def _open(calibrator: Calibrator) -> dict[str, Any]:
    """The parameters that may be chosen, with their defaults."""
    found = calibrator.get_params(deep=False)
    usual = type(calibrator)().get_params(deep=False)
    idle = (_SEED, *_IDLE.get(found.get("partition"), ()))
    if found.get("partition") == "tree":
        usual["partition"] = "tree"  # its regions may also be the values of columns
    elif "partition" in found:
        idle += ("partition",)
    return {
        name: value for name, value in found.items() if value == usual[name] and name not in idle
    }


def _constraints(key: str, calibrator: Calibrator, name: str) -> list[Any]:
    names = list(_open(calibrator))
    if name not in names:
        has = f"It has {', '.join(names)}." if names else "It has none."
        raise InputError(f"The calibrator {key!r} has no setting {name[:_SHOWN]!r}", fix=has)
    if name == "partition":
        return [StrOptions({"tree", *_COLUMNS})]
    return type(calibrator)._parameter_constraints[name]


def _refused(name: str, value: Any, constraints: list[Any]) -> InputError:
    return InputError(
        f"The setting {name!r} cannot be {str(value)[:_SHOWN]!r}"
        if isinstance(value, str)
        else f"The setting {name!r} cannot be {str(value)[:_SHOWN]}",
        fix=f"Choose {allowed(constraints)}.",
    )
