"""Class names: labels of any type as class indices, and which class a probability speaks of.

Of two classes: what names say, what the rows say, and what looks odd.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.array_checks import refuse_rows
from kdcal_core.data.column_kinds import is_number, simple
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.schema import FloatArray, IntArray, Roles
from kdcal_core.errors import InputError
from kdcal_core.text import listed, share_text

_WHOLE = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_TRUTH = {"true": "1", "false": "0", "1": "1", "0": "0"}
_MAX_LISTED = 8


def encode_labels(
    labels: Any,
    classes: Sequence[str],
    *,
    column: str | None = None,
    file: str | None = None,
) -> IntArray:
    """Map each label to the index of its class, (n,) int64 in 0 to ``len(classes) - 1``.

    A label is compared with the class names as text; where that fails as a number (``1.0`` is
    class ``"1"``), then as a boolean (classes 0 and 1, or False and True), then ignoring case. A
    comparison counts only where it picks one class.

    Parameters
    ----------
    labels : (n,) array-like
        Text, integers, floats, booleans, pandas nullable, categorical or Arrow values; n >= 1.
    classes : sequence of str
        The K class names in the order of the probability columns.
    column, file : str, optional
        Where the labels come from, for the errors.

    Raises
    ------
    InputError
        For a missing label, a label unknown to the model (labels that count from 1 where the
        classes count from 0 are recognised), or no rows.

    Examples
    --------
    >>> encode_labels([1.0, 0.0, True], ("0", "1")).tolist()
    [1, 0, 1]
    >>> encode_labels(["Cat ", "dog"], ("cat", "dog")).tolist()
    [0, 1]
    """
    codes, uniques = _factorise(labels)
    if len(codes) == 0:
        raise InputError("There are no rows", fix="Give at least one row.", file=file)
    position = _positions(uniques, classes)
    for index in np.flatnonzero(position[:-1] < 0):
        text = _text(uniques[index])
        if not text.strip():
            _refuse_missing(codes == index, column, file)
        row = int(np.argmax(codes == index)) + 1
        _raise_unknown(text, uniques, classes, column=column, file=file, row=row)
    encoded = position[codes]
    _refuse_missing(encoded < 0, column, file)
    return encoded


def are_same(labels: Any, others: Any) -> NDArray[np.bool_]:
    """Whether two columns name the same class in each row, (n,), compared as `encode_labels` does.

    Raises
    ------
    InputError
        For a label that is missing in ``others``, or no rows.

    Examples
    --------
    >>> are_same(["Cat", "dog", "cow"], ["cat", "cat", "dog"]).tolist()
    [True, False, False]
    """
    classes = classes_of(others)
    codes, uniques = _factorise(labels)
    return np.asarray(_positions(uniques, classes)[codes] == encode_labels(others, classes))


def classes_of(labels: Any) -> tuple[str, ...]:
    """The distinct labels as class names in natural order; missing labels are left out.

    Examples
    --------
    >>> classes_of([10.0, 9.0, 10.0])
    ('9', '10')
    >>> classes_of(["c10", "c9"])
    ('c9', 'c10')
    """
    _, uniques = _factorise(labels)
    names = {_text(value).strip() for value in uniques}
    return tuple(sorted(names - {""}, key=_natural))


def _positions(uniques: Sequence[Any], classes: Sequence[str]) -> IntArray:
    """The index of each value's class, -1 for one of none; the last entry, -1, is for code -1."""
    finders = [_finder(classes, form) for form in (str, _number_text, _truth_text, _folded)]
    position = np.full(len(uniques) + 1, -1, dtype=np.int64)
    for index, value in enumerate(uniques):
        text = _text(value)
        found = next((at for find in finders if (at := find(text)) is not None), None)
        position[index] = -1 if found is None else found
    return position


def _factorise(labels: Any) -> tuple[IntArray, list[Any]]:
    """Codes in order of first appearance, -1 where missing, and the distinct values."""
    labels = as_pandas(labels)
    series = labels if isinstance(labels, pd.Series) else pd.Series(labels)
    codes, uniques = pd.factorize(series)
    return codes.astype(np.int64), list(uniques)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and np.isfinite(value) and value == int(value):
        return str(int(value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _number_text(text: str) -> str:
    stripped = text.strip()
    whole = _WHOLE.fullmatch(stripped)
    if not whole:
        return stripped
    sign, digits = whole.groups()
    number = digits.lstrip("0") or "0"
    return f"-{number}" if sign == "-" and number != "0" else number


def _truth_text(text: str) -> str:
    number = _number_text(text).casefold()
    return _TRUTH.get(number, number)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _finder(classes: Sequence[str], form: Callable[[str], str]) -> Callable[[str], int | None]:
    """Look a label up among the class names, both brought to one form; None unless unique."""
    index: dict[str, int | None] = {}
    for position, name in enumerate(classes):
        key = form(name)
        index[key] = None if key in index else position
    if form is _truth_text and not (len(classes) == 2 and set(index) == {"0", "1"}):
        return lambda text: None
    return lambda text: index.get(form(text))


def _refuse_missing(missing: NDArray[np.bool_], column: str | None, file: str | None) -> None:
    fix = "Remove the row or fill the label in."
    refuse_rows(missing, "A label is missing", fix, column=column, file=file)


def _raise_unknown(
    text: str,
    uniques: Sequence[Any],
    classes: Sequence[str],
    *,
    column: str | None,
    file: str | None,
    row: int,
) -> NoReturn:
    k = len(classes)
    counted = tuple(classes) == tuple(map(str, range(k)))
    seen = {_number_text(_text(value)) for value in uniques}
    if counted and str(k) in seen and seen <= set(map(str, range(1, k + 1))):
        raise InputError(
            f"The labels look counted from 1 (1 to {k}), but the model's classes count from 0 "
            f"(0 to {k - 1})",
            fix=f"Name the model's classes 1 to {k}, in the order of its outputs (on the Load "
            "page, or with --classes), or subtract 1 from the labels.",
            file=file,
            column=column,
            row=row,
        )
    shown = text if len(text) <= 60 else text[:59] + "…"
    raise InputError(
        f"Label {shown!r} is unknown to the model",
        fix=_fix_of_unknown(uniques, classes, counted=counted),
        file=file,
        column=column,
        row=row,
    )


def _fix_of_unknown(uniques: Sequence[Any], classes: Sequence[str], *, counted: bool) -> str:
    k = len(classes)
    named = listed(map(repr, classes), _MAX_LISTED)
    rename = "name the model's classes as the target spells them, in the order of its outputs"
    where = "(on the Load page, or with --classes)"
    if counted and len(uniques) == k:
        return f"The model only counts its classes: {named}. {rename.capitalize()} {where}."
    quantity = " Where the model predicts a quantity, choose the task regression." * counted
    return (
        f"The model's classes are {named}. Choose another target column, rename the label, "
        f"or {rename} {where}.{quantity}"
    )


def _natural(name: str) -> tuple[Any, ...]:
    """Numbers by value before text, and digits inside text by value."""
    if _NUMBER.fullmatch(name):
        return (0, float(name), name)
    # Every second part is a run of digits: compared by length, then as text, it needs no integer.
    parts = re.split(r"0*([0-9]+)", name)
    return (1, [(len(part), part) if at % 2 else part for at, part in enumerate(parts)], name)


ClassBy = Literal["name", "rows", "order"]

_ERRORS = 3.0  # standard errors beyond which an area is not one half by chance
_FAR_ODDS = 4.0  # times the odds of the event, from which a mean probability is in doubt
_LOOKED_AT = 20_000  # rows, evenly spread
_MOST_CLASSES = 200  # whose best order is looked for
_TRUE = frozenset({"true", "yes", "positive", "pos", "y", "t"})
_COUNTED = ({"0", "1"}, {"-1", "1"})
_NOT = frozenset({"no", "not", "non", "without", "un"})
# Words of one meaning, and of its opposite. A class or column named by one has that meaning.
_OPPOSITES: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(one.split()), frozenset(other.split()))
    for one, other in (
        (
            "default defaulted defaulter bad charged chargeoff delinquent overdue late unpaid risk",
            "good paid repaid current performing ok",
        ),
        (
            "churn churned churner left leave exit exited attrition attrited cancelled canceled",
            "stay stayed retained retention existing kept loyal active",
        ),
        ("fraud fraudulent scam", "legit legitimate genuine honest"),
        ("spam junk", "ham"),
        (
            "malignant cancer disease diseased sick ill infected abnormal",
            "benign healthy control normal",
        ),
        ("died dead death deceased mortality", "survived survive survival alive"),
        ("anomaly anomalous outlier attack intrusion malicious malware", "normal benign inlier"),
        ("failure failed fail fault faulty defect defective broken", "pass passed ok intact good"),
        ("won win winner", "lost loss lose loser"),
        ("accepted accept approved approve", "rejected reject declined denied refused"),
        ("right correct", "wrong incorrect"),
        ("true yes positive pos event", "false no negative neg"),
    )
)


def class_of_column(
    column: str,
    classes: Sequence[str],
    *,
    target: str | None = None,
    frame: pd.DataFrame | None = None,
) -> tuple[str, ClassBy]:
    """Which of two classes a lone column of probabilities belongs to, and what shows it.

    In this order: a class in the column's name, or a word of its meaning ("p_default" of "bad");
    "yes", "true", "positive" or 1 beside 0, unless the names of column and target hold opposite
    words; the class in whose rows the column is higher; the second class.

    Parameters
    ----------
    column : str
    classes : sequence of two str
    target : str, optional
        The column of true classes.
    frame : pandas.DataFrame, optional
        The rows.

    Returns
    -------
    (str, str)
        The class, and "name", "rows" or "order". The last two are a guess to be confirmed.

    Examples
    --------
    >>> class_of_column("p_default", ("bad", "good"))
    ('bad', 'name')
    >>> class_of_column("score", ("no", "yes"))
    ('yes', 'name')
    >>> rows = pd.DataFrame({"score": [0.1] * 40 + [0.9] * 40, "y": ["b"] * 40 + ["a"] * 40})
    >>> class_of_column("score", ("a", "b"), target="y", frame=rows)
    ('a', 'rows')
    >>> class_of_column("score", ("a", "b"))
    ('b', 'order')
    """
    words = _words(column)
    if not words & _NOT:
        # a number in a name may count anything: a fold, a model, months
        named = [name for name in classes if not name.strip().lstrip("+-").isdecimal()]
        bearing = [name for name in named if (own := _words(name)) and own <= words]
        if len(bearing) == 1:
            return bearing[0], "name"
        if (meant := _by_meaning(words, classes)) is not None:
            return meant, "name"
    positive = _positive(classes)
    if positive is not None and not words & _NOT:
        other = classes[1 - classes.index(positive)]
        return (other if _opposite(words, _words(target or "")) else positive), "name"
    if frame is not None and target is not None and is_number(frame[column]):
        found = _by_rows(frame[[column, target]], column, target, classes)
        if found is not None:
            return found, "rows"
    return classes[1], "order"


def doubts_of_roles(roles: Roles, classes: Sequence[str]) -> tuple[str, ...]:
    """What was guessed about the class of a lone output column, to be confirmed.

    Examples
    --------
    >>> roles = Roles(target="y", outputs=(("b", "score"),), class_by="order")
    >>> doubts_of_roles(roles, ("a", "b"))[0].split(":")[0]
    "The column 'score' was read as the probability of b, not of a"
    """
    if roles.class_by == "name" or len(roles.outputs) != 1 or len(classes) != 2:
        return ()
    ((name, column),) = roles.outputs
    other = next((one for one in classes if one != name), "")
    why = {
        "rows": f"its name does not say which, but it is higher in the rows of {name}",
        "order": "neither its name nor the rows say which, and this is the second class",
    }[roles.class_by]
    return (
        f"The column {column[:60]!r} was read as the probability of {name[:60]}, not of "
        f"{other[:60]}: {why}.",
    )


def swapped(roles: Roles, classes: Sequence[str]) -> Roles:
    """The same roles with the outputs of two classes exchanged.

    Examples
    --------
    >>> swapped(Roles(outputs=(("a", "p0"), ("b", "p1"))), ("a", "b")).outputs
    (('a', 'p1'), ('b', 'p0'))
    >>> swapped(Roles(outputs=(("b", "p"),)), ("a", "b")).outputs
    (('a', 'p'),)
    """
    column_of = dict(roles.outputs)
    first, second = classes
    exchanged = ((first, column_of.get(second)), (second, column_of.get(first)))
    outputs = tuple((name, column) for name, column in exchanged if column is not None)
    return replace(roles, outputs=outputs, class_by="name")


@dataclass(frozen=True)
class Odd:
    """Evidence against the classes that the probabilities were assigned to.

    ``sentence`` states it with the likely reason (untrusted text), ``beyond_chance`` says whether
    chance cannot explain it, and ``swapped`` whether two classes are most likely exchanged.
    """

    sentence: str
    beyond_chance: bool
    swapped: bool = False


def odd_answers(proba: FloatArray, y: IntArray, classes: tuple[str, ...]) -> Odd | None:
    """What is odd about the classes of the probabilities, with the likely fix; None if nothing.

    Parameters
    ----------
    proba : (n, K) array
        Checked probabilities.
    y : (n,) array of int
    classes : tuple of K str

    Returns
    -------
    Odd or None
        Two classes: an area under the ROC curve below one half, or odds that are four times too
        high or too low on average. Any number: fewer rows predicted right than by always naming
        the most frequent class, except where the model states a risk (:func:`states_a_risk`).
        That is not called beyond chance where two classes are ranked the right way and their mean
        probability is not far from their share: then the columns are right.

    Examples
    --------
    >>> p = np.linspace(0.05, 0.95, 100)
    >>> found = odd_answers(np.column_stack([1 - p, p]), (p < 0.5).astype(np.int64), ("no", "yes"))
    >>> found.sentence.split(".")[0], found.beyond_chance, found.swapped
    ('The probabilities rank the rows the wrong way round: AUROC 0', True, True)
    """
    n, right = len(y), proba.argmax(axis=1) == y
    accuracy, commonest = float(right.mean()), float(np.bincount(y).max()) / n
    below = accuracy < commonest and states_a_risk(proba, y, classes) is None
    area, errors = (0.5, 0.0) if len(classes) > 2 else rank_area(proba[:, 1], y == 1)
    backwards = area < 0.5
    if not below and not backwards:
        return _far_from_rate(proba, y, classes) if len(classes) == 2 else None
    poor = (
        f"{accuracy:.1%} of the rows are predicted right, fewer than by always naming the "
        f"most frequent class ({commonest:.1%})"
    )
    if backwards:
        name, beyond = classes[1][:60], errors < -_ERRORS
        words = "rank the rows the wrong way round" if beyond else "do not rank the rows"
        also = f" {poor}." if below else ""
        fix = (
            f" Most likely the classes are swapped: exchanged, {_right_swapped(proba, y):.1%} of "
            f"the rows would be predicted right, with an AUROC of {1.0 - area:.3f}."
            if beyond
            else " Chance explains that, but such probabilities do not tell the classes apart: "
            "check which class they speak of."
        )
        reported = f"The probabilities {words}: AUROC {area:.3f} for the class {name}.{also}{fix}"
        return Odd(reported, beyond, swapped=beyond)
    # Against naming the commonest class on the same rows: a sign test of the rows that differ.
    gap = right.astype(float) - (y == np.bincount(y).argmax())
    beyond = float(gap.sum()) < -_ERRORS * max(float(np.abs(gap).sum()), 1.0) ** 0.5
    ranked = errors > _ERRORS
    if ranked and _far_from_rate(proba, y, classes) is None:
        beyond = False  # an error of the stated risk, as the checks judge it, and of no column
    return Odd(f"{poor}. {_likely(proba, y, classes, accuracy, area if ranked else 0.5)}", beyond)


def states_a_risk(proba: FloatArray, y: IntArray, classes: tuple[str, ...]) -> str | None:
    """Why accuracy says nothing about a model of two classes that states a risk; None otherwise.

    A model of a rare event ranks the rows, but rightly gives few or none of them a probability
    above one half. Its accuracy is then that of always naming the other class, give or take chance.
    It states a risk if it ranks the rows the right way beyond chance, and gives the rarer class
    more than one half in fewer than half as many rows as the class has.

    Examples
    --------
    >>> p = np.linspace(0.0, 0.4, 1000)
    >>> y = (np.arange(1000) % 5 < 5 * p).astype(np.int64)
    >>> states_a_risk(np.column_stack([1 - p, p]), y, ("no", "yes"))
    'The model states a risk of yes and hardly ever names it: 0% of the rows have a probability \
above one half, while yes makes up 29.9% of them. It ranks them (AUROC 0.619), and accuracy \
says nothing about that'
    """
    if len(classes) != 2 or not len(y):
        return None
    rarer = int(np.mean(y == 1) < 0.5)
    area, errors = rank_area(proba[:, rarer], y == rarer)
    named, seen = float(np.mean(proba[:, rarer] > 0.5)), float(np.mean(y == rarer))
    return risk_words(classes[rarer][:60], named, seen, area, errors)


def risk_words(name: str, named: float, seen: float, area: float, errors: float) -> str | None:
    """As :func:`states_a_risk`, from what is known of the rarer class.

    Parameters
    ----------
    name : str
    named, seen : float
        Share of rows that have more than one half of it, and that are of it.
    area, errors : float
        As of :func:`rank_area`.
    """
    if errors <= _ERRORS or named >= seen / 2.0:
        return None
    return (
        f"The model states a risk of {name} and hardly ever names it: {share_text(named)} of the "
        f"rows have a probability above one half, while {name} makes up {seen:.1%} of them. It "
        f"ranks them (AUROC {area:.3f}), and accuracy says nothing about that"
    )


def _far_from_rate(proba: FloatArray, y: IntArray, classes: tuple[str, ...]) -> Odd | None:
    """A mean probability whose odds are far from those of the event, beyond chance."""
    event = class_that_means_yes(classes) or classes[1]
    at = classes.index(event)
    p = proba[:, at]
    said, seen = float(p.mean()), float(np.mean(y == at))
    error = float(np.sqrt(np.sum(p * (1.0 - p)))) / len(y)
    if abs(said - seen) <= _ERRORS * error or not 0.0 < seen < 1.0 or not 0.0 < said < 1.0:
        return None
    odds = said / (1.0 - said) * (1.0 - seen) / seen
    if 1.0 / _FAR_ODDS < odds < _FAR_ODDS:
        return None
    return Odd(
        f"The class {event[:60]} has a mean probability of {said:.1%} but makes up {seen:.1%} "
        "of the rows. Is the target the right column, and is the mix of classes the one that the "
        "model meets in use?",
        beyond_chance=True,
    )


def rank_area(score: FloatArray, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Area under the ROC curve, and its distance from one half in standard errors under chance.

    (0.5, 0.0) where all rows are of one side.

    Examples
    --------
    >>> rank_area(np.array([0.1, 0.2, 0.8, 0.9]), np.array([True, True, False, False]))[0]
    0.0
    """
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    return area_of_ties(count, np.bincount(place, weights=positive, minlength=len(count)))


def area_of_ties(
    count: FloatArray | IntArray, positive: FloatArray | IntArray
) -> tuple[float, float]:
    """As :func:`rank_area`, of rows and of positive ones at each score in increasing order."""
    n, n_positive = float(count.sum()), float(positive.sum())
    pairs = n_positive * (n - n_positive)
    if not pairs:
        return 0.5, 0.0
    rank = np.cumsum(count) - 0.5 * (count - 1)  # equal scores share their mean rank
    area = (float(positive @ rank) - n_positive * (n_positive + 1) / 2.0) / pairs
    variance = float(count @ np.square(rank - (n + 1.0) / 2.0)) / (n - 1.0)  # with that of ties
    error = (variance / (n * pairs)) ** 0.5
    return area, (area - 0.5) / error if error else 0.0


def _right_swapped(proba: FloatArray, y: IntArray) -> float:
    return float(np.mean(proba[:, ::-1].argmax(axis=1) == y))


def _likely(
    proba: FloatArray, y: IntArray, classes: tuple[str, ...], accuracy: float, area: float
) -> str:
    """The likeliest reason for an accuracy below that of the commonest class."""
    k = len(classes)
    if k == 2:
        if area > 0.5:
            said, seen = float(proba[:, 1].mean()), float(np.mean(y == 1))
            name = classes[1][:60]
            return (
                f"The rows are ranked the right way (AUROC {area:.3f} for the class {name}), so "
                f"the classes are not swapped: {name} has a mean probability of {said:.1%} but "
                f"makes up {seen:.1%} of the rows. Is the mix of classes the one that the "
                "model meets in use?"
            )
        return "Is the target the right column, and are these the model's rows?"
    if k <= _MOST_CLASSES:
        from scipy.optimize import linear_sum_assignment  # slow to import

        counts = np.zeros((k, k))
        np.add.at(counts, (proba.argmax(axis=1), y), 1.0)
        predicted, meant = linear_sum_assignment(-counts)
        best = float(counts[predicted, meant].sum()) / len(y)
        if best > max(1.5 * accuracy, float(np.bincount(y).max()) / len(y)):
            moved = [(i, j) for i, j in zip(predicted, meant, strict=True) if i != j]
            order = listed((f"{classes[i][:40]} for {classes[j][:40]}" for i, j in moved), 3)
            return (
                f"Most likely the classes are in another order: with {order}, {best:.1%} "
                "would be right. Name the classes in the order of the probabilities."
            )
    return "Is the order of the classes right, and are these the model's rows?"


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[_\-\s]+", simple(name))) - {""}


def _meanings(words: frozenset[str]) -> set[tuple[int, int]]:
    """Meanings of a name's words: a place in the list, and which side of it."""
    return {
        (at, side) for at, pair in enumerate(_OPPOSITES) for side in (0, 1) if words & pair[side]
    }


def _by_meaning(words: frozenset[str], classes: Sequence[str]) -> str | None:
    """The one class of the words' meaning, or the one whose other class has the opposite one."""
    own = _meanings(words)
    against = {(at, 1 - side) for at, side in own}
    if own & against:
        return None
    means = [_meanings(_words(name)) for name in classes]
    for first, second in ((0, 1), (1, 0)):
        for_it = bool(means[first] & own) or bool(means[second] & against)
        for_other = bool(means[second] & own) or bool(means[first] & against)
        if for_it and not for_other:
            return classes[first]
    return None


def _opposite(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool({(at, 1 - side) for at, side in _meanings(one)} & _meanings(other))


def share_a_meaning(one: str, other: str) -> bool:
    """Whether two names hold a word of one meaning, or of its opposite.

    Examples
    --------
    >>> share_a_meaning("defaulted", "p_default"), share_a_meaning("age", "p_default")
    (True, False)
    """
    pairs = ({at for at, _ in _meanings(_words(name))} for name in (one, other))
    return bool(next(pairs) & next(pairs))


def class_that_means_yes(classes: Sequence[str]) -> str | None:
    """Of two classes, the one that a review is about, if their names say which.

    Examples
    --------
    >>> class_that_means_yes(("0", "1")), class_that_means_yes(("good", "bad"))
    ('1', 'bad')
    >>> class_that_means_yes(("left", "right")) is None
    True
    """
    if (positive := _positive(classes)) is not None:
        return positive
    means = [_meanings(_words(name)) for name in classes]
    for first, second in ((0, 1), (1, 0)):
        # the first side of a pair of opposites is the event
        if any(side == 0 and (at, 1) in means[second] for at, side in means[first]):
            return classes[first]
    return None


def default_event(classes: Sequence[str], rows: Sequence[int] = ()) -> str | None:
    """Of two classes, the one whose name means yes, otherwise the rarer, otherwise the second.

    Parameters
    ----------
    classes : sequence of str
    rows : sequence of int, optional
        Rows of each class.

    Returns
    -------
    str or None
        None for any other number of classes.

    Examples
    --------
    >>> default_event(("defaulted", "paid")), default_event(("a", "b"), (30, 70))
    ('defaulted', 'a')
    >>> default_event(("setosa", "versicolor", "virginica")) is None
    True
    """
    if len(classes) != 2:
        return None
    if (named := class_that_means_yes(classes)) is not None:
        return named
    if len(rows) == 2 and rows[0] != rows[1]:
        return classes[int(rows[1] < rows[0])]
    return classes[1]


def _positive(classes: Sequence[str]) -> str | None:
    """The class that conventions call positive."""
    folded = [name.strip().casefold() for name in classes]
    if set(folded) in _COUNTED:
        return classes[folded.index("1")]
    found = [name for name, plain in zip(classes, folded, strict=True) if plain in _TRUE]
    return found[0] if len(found) == 1 else None


def _by_rows(frame: pd.DataFrame, column: str, target: str, classes: Sequence[str]) -> str | None:
    """The class in whose rows the column is higher beyond chance."""
    known = frame.iloc[:: max(len(frame) // _LOOKED_AT, 1)].dropna()
    if known.empty:
        return None
    try:
        y = encode_labels(known[target], classes)
    except InputError:
        return None
    values: Any = known[column].to_numpy(dtype=np.float64)
    _, errors = rank_area(values, y == 1)
    return None if abs(errors) <= _ERRORS else classes[int(errors > 0)]
