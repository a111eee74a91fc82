"""A first guess at what each column of a table is for; people correct it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.data.column_kinds import (
    PREDICTED,
    SPLITS,
    features_of,
    mostly_numbers,
    named,
    sampled,
    says_weight,
    simple,
    split_named,
    weight_named,
)
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.labels import ClassBy, class_of_column, classes_of, encode_labels
from kdcal_core.data.list_columns import mostly_sum_to_one
from kdcal_core.data.regression_guesses import guess_regression_roles, looks_like_regression
from kdcal_core.data.schema import Family, Roles, Table, Task
from kdcal_core.errors import InputError

Kind = Literal["probability", "logit"]
Pairs = tuple[tuple[str, str], ...]  # class and its output column

_TRUTHS = (
    *("target", "y", "y_true", "true_label", "true_class", "label", "labels", "outcome"),
    *("actual", "truth", "ground_truth"),
)
_SUBJECTS = ("class", "income", "diagnosis", "digit", "species", "category", "response")
# Whether an answer was right, as of a language model whose answers were graded
_GRADES = (
    *("correct", "is_correct", "was_correct", "iscorrect", "correctness", "answer_correct"),
    *("is_right", "exact_match"),
)
_RIGHT_ANSWERS = (
    *("gold", "gold_answer", "gold_label", "reference", "reference_answer", "correct_answer"),
    *("expected", "expected_answer", "answer_key", "solution"),
)
_GIVEN_ANSWERS = ("answer", "model_answer", "given_answer", "response", "completion", "output")
_SURE = frozenset(("confidence", "conf", "certainty"))
# What happened to a row: the last word of a target's name, or the first before a word of `_ASIDE`.
_HAPPENED = frozenset(
    (
        *("default", "defaulted", "defaulter", "delinquent", "bankrupt", "bankruptcy"),
        *("churn", "churned", "churner", "attrited", "attrition", "cancelled", "canceled"),
        *("fraud", "fraudulent", "approved", "approval", "reoffended", "recidivism"),
        *("survived", "died", "dead", "deceased", "death", "mortality", "readmitted"),
        *("readmission", "hospitalized", "hospitalised", "relapsed", "relapse", "recurrence"),
        *("converted", "conversion", "subscribed", "unsubscribed", "responded", "clicked"),
        *("purchased", "bought"),
    )
)
_ASIDE = re.compile("flag|ind|indicator|status|event|in|within|by|at|yn|[0-9]+[a-z]*")
_EARLIER = frozenset(
    ("prior", "previous", "past", "last", "prev", "former", "history", "num", "number", "count")
)
_PREFIXES: tuple[str, ...] = (
    "scored_probabilities",
    "predicted_proba",
    "predict_proba",
    "probability",
    "proba",
    "prob",
    "logits",
    "logit",
)
_PREFIXES += ("score", "margin", "pred", "p")
_LOGIT_PREFIXES = ("logits", "logit", "margin")
_TARGET_WORDS = frozenset(("target", "label", "outcome", "truth"))  # first or last of a name
_SINGLE = (
    *("proba", "prob", "probability", "score", "p", "y_prob", "y_proba", "y_score", "pd"),
    "risk",
)
_AFFIXES: tuple[str, ...] = ("p", "pd", "proba", "prob", "score", "probability", "risk")
_AFFIXES += ("probabilities", "wahrscheinlichkeit", "probabilité", "probabilidad")
_OF_SOMETHING = frozenset(("p", "pd", "proba", "prob", "probability", "risk"))
_ANSWERS = ("prediction", "predicted", "pred", "y_pred", "yhat", "y_hat", "forecast", "output")
_NO_NAME = ""  # of the class of an output column whose name does not say it
_MAX_TARGET_CLASSES = 50


def guess_roles(
    table: Table | pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    task: Task | None = None,
    family: Family | None = None,
    target: str | None = None,
) -> Roles:
    """Guess the role of each column from its name and content.

    Parameters
    ----------
    table : Table or pandas.DataFrame
    classes : sequence of str, optional
        The model's class names, where it names them.
    feature_names : sequence of str, optional
        The model's input columns. Those that the table has become the features, in the model's
        order.
    n_features : int, optional
        Number of input columns of a model without names: the numeric columns without another role
        become the features, and where there are more of them, those that number or name the rows,
        or what several rows belong to, are left out. Without a model all columns that describe the
        rows do, text of few values too.
    task : str, optional
        What the model does, or what the user chose. Without it the columns decide: those of a
        predictive distribution, or a target of many numbers and no probabilities, indicate a
        regression. A model that states nothing is taken for a classifier.
    family : str, optional
        The model's predictive family in a regression, where it names one.
    target : str, optional
        The column of true classes or outcomes, where it is known.

    Returns
    -------
    Roles
        ``outputs`` of length one pairs one class of two with its probability; the other class has
        the complement. ``class_by`` says whether the class is a guess.

    Notes
    -----
    Probabilities are columns of one beginning ("prob_", "proba_", "probability_", "p_", "score_",
    "pred_") that ends in a class, or columns named as the classes. Beside a target of two classes
    one column is enough: "prob_1", "p_yes", "proba"; or else the only column from 0 to 1 whose
    name begins or ends with "p", "pd", "proba", "prob", "score", "probability" or "risk"
    ("p_default"); beside right and wrong answers ("is_correct") "confidence" is such a word too.
    Its class is found by :func:`kdcal_core.data.labels.class_of_column`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"y": [0, 1], "proba_0": [0.7, 0.2], "proba_1": [0.3, 0.8]})
    >>> roles = guess_roles(frame)
    >>> roles.target, roles.outputs
    ('y', (('0', 'proba_0'), ('1', 'proba_1')))
    """
    frame = table.frame if isinstance(table, Table) else as_pandas(table)
    target = target if target in frame.columns else None
    model = n_features is not None or bool(feature_names) or bool(classes)
    if task == "regression":
        return guess_regression_roles(
            frame, feature_names, n_features, model=model, family=family, target=target
        )
    roles = _guess_classification(frame, classes, feature_names, n_features, target)
    if task is None and not model and looks_like_regression(frame, roles):
        return guess_regression_roles(frame, None, None, model=False, family=None, target=target)
    return roles


def _guess_classification(
    frame: pd.DataFrame,
    classes: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    target: str | None,
) -> Roles:
    taken = set(feature_names or ()) & set(frame.columns)
    found = target or _named_target(frame, taken, classifier=bool(classes or n_features))
    known = tuple(classes) if classes else _classes_in(frame, found)
    outputs, kind = _outputs(frame, known, taken, found)
    taken |= {column for _, column in outputs}
    if target is None:
        named_classes = classes or tuple(name for name, _ in outputs if len(outputs) > 1)
        found = _target_among(frame, found, named_classes, taken)
    taken |= {found} if found else set()
    if not outputs and not feature_names and n_features is None:
        outputs = _lone(frame, taken, tuple(classes or _classes_in(frame, found)), found)
        taken |= {column for _, column in outputs}
    predicted = named(frame, PREDICTED, taken)
    weight = weight_named(frame, taken)
    taken |= {column for column in (predicted, weight) if column}
    split = split_named(frame, taken)
    taken |= {split} if split else set()
    taken |= {*_grades_aside(frame), *_answers(frame, found)}
    by: ClassBy = "name"
    if len(outputs) == 1 and not outputs[0][0]:
        ((_, column),) = outputs
        classes = tuple(classes or _classes_in(frame, found))
        name, by = "1", "order"
        if len(classes) == 2:
            name, by = class_of_column(column, classes, target=found, frame=frame)
        outputs = ((name, column),)
    return Roles(
        target=found,
        features=features_of(frame, feature_names, n_features, taken),
        outputs=outputs,
        class_by=by,
        output_kind=kind,
        predicted=predicted,
        split=split,
        weight=weight,
    )


def output_kind_named(columns: Sequence[str]) -> Kind:
    """What output columns hold by their names: logits where all say so.

    Examples
    --------
    >>> output_kind_named(["logit_0", "logit_1"]), output_kind_named(["p_default"])
    ('logit', 'probability')
    """
    said = all(_ends(simple(column))[0] in _LOGIT_PREFIXES for column in columns)
    return "logit" if said else "probability"


def _classes_in(frame: pd.DataFrame, target: str | None) -> tuple[str, ...]:
    if target is None or frame[target].nunique() > _MAX_TARGET_CLASSES:
        return ()
    return classes_of(frame[target])


def _outputs(
    frame: pd.DataFrame, classes: tuple[str, ...], taken: set[str], target: str | None
) -> tuple[Pairs, Kind]:
    free = [
        str(name)
        for name in frame.columns
        if name not in taken and name != target and mostly_numbers(frame[name])
    ]
    for prefix, choices in _groups(free, classes):
        for pairs in choices:
            if prefix not in _LOGIT_PREFIXES and _sum_to_one(frame, pairs):
                return pairs, "probability"
        kind = _kind_by_name(frame, prefix, choices[-1], classes)
        if kind is not None:
            return (choices[0] if kind == "logit" else choices[-1]), kind
    return _single(frame, free, classes, target), "probability"


def _groups(
    columns: Sequence[str], classes: tuple[str, ...]
) -> Iterator[tuple[str, tuple[Pairs, ...]]]:
    """Groups of two columns or more, one a class, that share a prefix or are named as the classes.

    A prefix has two readings, likelier first: all its columns, or only those of known classes.
    """
    keys = {simple(column): column for column in columns}
    exact = tuple((name, keys[simple(name)]) for name in classes if simple(name) in keys)
    for prefix in _PREFIXES:
        start = prefix + "_"
        named = {
            key.removeprefix(start): column
            for key, column in keys.items()
            if key.startswith(start) and len(key) > len(start)
        }
        if len(named) >= 2:
            yield prefix, (_all_of(named, classes), _paired(named, classes))
    if len(exact) >= 2 and len(exact) == len(classes):
        yield "", (exact,)


def _all_of(named: dict[str, str], classes: tuple[str, ...]) -> Pairs:
    """All columns of a prefix where the classes are some of them.

    The model may know a class of which the table has no row; its probability counts all the same.
    """
    spelled = {simple(name): name for name in classes}
    if not spelled.keys() < named.keys():
        return _paired(named, classes)
    return tuple((spelled.get(key, _suffix(named[key], key)), named[key]) for key in _sorted(named))


def _sorted(named: dict[str, str]) -> tuple[str, ...]:
    return classes_of(list(named))


def _suffix(column: str, key: str) -> str:
    """The end of the column's name that reads ``key``, as it is spelled."""
    ends = (column[at:] for at in range(len(column)))
    return next(end for end in ends if simple(end) == key).lstrip(" _.").rstrip()


def _paired(named: dict[str, str], classes: tuple[str, ...]) -> Pairs:
    """Pair suffixes with class names, by name or by count; else the suffixes are the names."""
    if classes and all(simple(name) in named for name in classes):
        return tuple((name, named[simple(name)]) for name in classes)
    if by_name := paired_by_name(tuple(named.values()), classes):
        return by_name
    ordered = _sorted(named)
    for first in (0, 1):
        counted = tuple(str(first + position) for position in range(len(named)))
        if ordered == counted and len(classes) == len(named):
            return tuple(zip(classes, (named[key] for key in counted), strict=True))
    return tuple((_suffix(named[key], key), named[key]) for key in ordered)


def paired_by_name(columns: Sequence[str], classes: Sequence[str]) -> Pairs:
    """The classes with their columns, where names without what all share are those of the classes.

    Empty where they are not.

    Examples
    --------
    >>> paired_by_name(["yes_proba", "no_proba"], ["no", "yes"])
    (('no', 'no_proba'), ('yes', 'yes_proba'))
    >>> paired_by_name(["P(y=0)", "P(y=1)"], ["0", "1"]), paired_by_name(["a", "b"], ["1", "2"])
    ((('0', 'P(y=0)'), ('1', 'P(y=1)')), ())
    """
    if len(columns) != len(classes) or len(columns) < 2:
        return ()
    own = dict(zip(_unshared(columns), columns, strict=True))
    names = _unshared(classes)
    if len({*names}) < len(names) or {*names} != own.keys():
        return ()
    return tuple((name, own[key]) for name, key in zip(classes, names, strict=True))


def _unshared(names: Sequence[str]) -> list[str]:
    """The simple names without the beginning and the end that all of them share."""
    rest = [simple(name) for name in names]
    for _ in range(2):  # from the front, then from the back: all are backward in between
        letters = zip(*rest, strict=False)
        shared = sum(1 for _ in takewhile(lambda of_each: len({*of_each}) == 1, letters))
        rest = [name[shared:][::-1] for name in rest]
    return rest


def _sum_to_one(frame: pd.DataFrame, pairs: Pairs) -> bool:
    """Whether most rows do."""
    return mostly_sum_to_one(sampled(frame, [column for _, column in pairs]))


def _kind_by_name(
    frame: pd.DataFrame, prefix: str, pairs: Pairs, classes: tuple[str, ...]
) -> Kind | None:
    """What columns hold whose rows do not sum to one; None where they are no outputs.

    Columns with a prefix and exactly the classes' names are outputs whatever they hold: the
    checks that follow say what is wrong with them.
    """
    values = sampled(frame, [column for _, column in pairs])
    inside = ((values >= 0) & (values <= 1)).all()
    if prefix in _LOGIT_PREFIXES or (prefix == "score" and not inside):
        return "logit"
    known = prefix != "" and {name for name, _ in pairs} == set(classes)
    return "probability" if known or prefix.startswith(("prob", "predict")) else None


def _single(
    frame: pd.DataFrame, columns: Sequence[str], classes: tuple[str, ...], target: str | None
) -> Pairs:
    """One column with the probability of one of two classes: the class that it names, or "".

    A column that names the target, as "p_default" beside "default", or the positive class, as
    "prob_1", is one. Several columns that could be it are no guess.
    """
    if len(classes) > 2:
        return ()
    spelled = dict.fromkeys(("1", "positive", "true"), _NO_NAME)
    spelled |= {simple(target): _NO_NAME} if target else {}
    spelled |= {simple(name): name for name in classes if simple(name)}
    suffixes = "|".join(["[0-9]+", *map(re.escape, spelled)])
    pattern = re.compile(f"(?:{'|'.join(_PREFIXES)})_?({suffixes})")
    found = [(column, pattern.fullmatch(simple(column))) for column in columns]
    pairs = [(match[1], column) for column, match in found if match]
    if not pairs:
        pairs = [("positive", column) for column in columns if simple(column) in _SINGLE][:1]
    if len(pairs) != 1 or pairs[0][0] not in spelled:
        return ()
    ((suffix, column),) = pairs
    values = sampled(frame, [column])
    return ((spelled[suffix], column),) if np.mean((values >= 0) & (values <= 1)) > 0.5 else ()


def _lone(
    frame: pd.DataFrame, taken: set[str], classes: tuple[str, ...], target: str | None
) -> Pairs:
    """The only free column that names a probability and holds some, beside two classes.

    Or else the only one that is named a prediction and holds shares. Where the classes are right
    and wrong answers, a confidence is a probability too.
    """
    if len(classes) != 2:
        return ()
    free = [str(name) for name in frame.columns if name not in taken]
    words = {*_AFFIXES, *(_SURE if says_right(target or "") else ())}
    named = [name for name in free if {*_ends(simple(name))} & words]
    found = [name for name in named if is_share(frame, name)]
    found = found or [n for n in free if simple(n) in _ANSWERS and is_share(frame, n)]
    return ((_NO_NAME, found[0]),) if len(found) == 1 else ()


def _ends(name: str) -> tuple[str, str]:
    """The first and the last word of a simple name."""
    words = name.split("_")
    return words[0], words[-1]


def names_a_probability(name: str) -> bool:
    """Whether a column's name begins or ends with a word for a probability.

    Examples
    --------
    >>> names_a_probability("p_toxic"), names_a_probability("share_toxic")
    (True, False)
    """
    return bool({*_ends(simple(name))} & {*_AFFIXES})


def is_share(frame: pd.DataFrame, column: str) -> bool:
    """Whether all of a column's numbers are from 0 to 1, and not only the two ends.

    Examples
    --------
    >>> frame = pd.DataFrame({"p": [0.0, 0.5], "y": [0, 1], "kind": ["a", "b"]})
    >>> [is_share(frame, column) for column in frame]
    [True, False, False]
    """
    if not mostly_numbers(frame[column]):
        return False
    values = sampled(frame, [column])
    values = values[~np.isnan(values)]
    inside = (values > 0) & (values < 1)
    return bool(inside.any() and (inside | (values == 0) | (values == 1)).all())


def _named_target(frame: pd.DataFrame, taken: set[str], *, classifier: bool) -> str | None:
    """The first column that is named as a target; for a classifier one that may hold classes.

    An income in francs beside a default that is yes or no is an input of a model without names.
    """
    free = [str(name) for name in reversed(frame.columns) if name not in taken]
    stated = [name for name in free if _states_a_probability(frame, name)]
    of_stated = [name for name in free if len(stated) == 1 and is_stated_in(name, stated[0])]
    of_stated.sort(key=lambda name: (simple(name) not in simple(stated[0]), _is_earlier(name)))
    happened = [name for name in free if _says_what_happened(name)]
    found = [
        *_all_named(frame, _TRUTHS, taken),
        *(name for name in of_stated if _has_few_classes(frame[name])),
        *_spelled_out(frame, free),
    ]
    # the very column, of one value: no other is meant, and the scoring names what it holds
    if not any(name in happened and frame[name].nunique() == 1 for name in of_stated):
        if not _grades_aside(frame):
            found += [
                name for name in _all_named(frame, _GRADES, taken) if _is_yes_or_no(frame[name])
            ]
        found += _all_named(frame, _SUBJECTS, taken)
        found += [name for name in happened if _has_few_classes(frame[name])]
    fitting = [name for name in found if not classifier or _may_be_classes(frame[name])]
    return next(iter(fitting or found), None)


def _all_named(frame: pd.DataFrame, names: Sequence[str], taken: set[str]) -> list[str]:
    """The free columns of these names, in the order of the names."""
    found = (named(frame, [name], taken) for name in names)
    return [name for name in found if name is not None]


def _grades_aside(frame: pd.DataFrame) -> list[str]:
    """Columns that say whether the prediction is right, where another one holds the prediction."""
    if named(frame, PREDICTED, set()) is None:
        return []
    return [str(name) for name in frame.columns if says_right(str(name))]


def _answers(frame: pd.DataFrame, target: str | None) -> list[str]:
    """Columns of the right answer and of the one given, beside whether it is right.

    They do not describe the question: together they are what was graded.
    """
    if not says_right(target or ""):
        return []
    names = {*_TRUTHS, *_RIGHT_ANSWERS, *_GIVEN_ANSWERS}
    return [str(name) for name in frame.columns if simple(name) in names]


def _spelled_out(frame: pd.DataFrame, free: Sequence[str]) -> list[str]:
    """The columns of which each class has a probability, as "BAD" beside "P_BAD0" and "P_BAD1"."""
    plain = (simple(name) for name in frame.columns)
    starts = tuple(f"{prefix}_" for prefix in _PREFIXES)
    outputs = {name for name in plain if name.startswith(starts)}
    found = []
    for name in free if len(outputs) > 1 else ():
        stems = {f"{start}{simple(name)}{link}" for start in starts for link in ("", "_")}
        if any(one.startswith(tuple(stems)) for one in outputs) and _has_few_classes(frame[name]):
            each = [{stem + simple(one) for stem in stems} for one in classes_of(frame[name])]
            found += [name] * all(outputs & spellings for spellings in each)
    return found


def _is_yes_or_no(column: pd.Series[Any]) -> bool:
    return _may_be_classes(column) and column.nunique() <= 2


def _states_a_probability(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column of numbers is named as the probability of something, as "p_default"."""
    words = simple(name).split("_")
    return (
        len(words) > 1
        and bool({words[0], words[-1]} & _OF_SOMETHING)
        and mostly_numbers(frame[name])
        and frame[name].nunique() > 2
    )


def is_stated_in(name: str, output: str) -> bool:
    """Whether a column's name has a word for every word of what a probability is named after.

    Examples
    --------
    >>> is_stated_in("has_defaulted", "p_default"), is_stated_in("branch", "p_default")
    (True, False)
    >>> is_stated_in("converted", "prob_conversion"), is_stated_in("flag_1", "p_1")
    (True, False)
    """
    own = simple(name).split("_")
    of = [one for one in simple(output).split("_") if one not in _OF_SOMETHING]
    of = [one for one in of if not one.isdecimal()]
    return bool(of) and all(any(_same_stem(one, other) for other in own) for one in of)


def _same_stem(one: str, other: str) -> bool:
    """Whether two words are equal, begin with the same five letters, or one begins the other."""
    shorter = min(len(one), len(other))
    begins = one[:shorter] == other[:shorter]
    return one == other or one[:5] == other[:5] or (begins and shorter >= 3)


def _is_earlier(name: str) -> bool:
    """Whether a name speaks of what happened before, or how often."""
    return bool({*simple(name).split("_")} & _EARLIER)


def _says_what_happened(name: str) -> bool:
    first, *rest = words = simple(name).split("_")
    if _is_earlier(name):
        return False
    return words[-1] in _HAPPENED or (first in _HAPPENED and _ASIDE.fullmatch(rest[0]) is not None)


def _target_among(
    frame: pd.DataFrame, found: str | None, classes: Sequence[str] | None, taken: set[str]
) -> str | None:
    """The column found by its name, or else the last of few classes.

    Where the classes are known, one that holds no others, and of several the one that holds most
    of them; and one that holds all of them rather than a named one that holds others. Where no
    column fits, the one of few values that holds most of the classes, were it a single one.
    """
    free = [str(name) for name in reversed(frame.columns) if name not in taken]
    aside = {*PREDICTED, *SPLITS, *map(simple, _grades_aside(frame))}
    free = [name for name in free if simple(name) not in aside and not says_weight(name)]
    few = [name for name in free if _has_few_classes(frame[name])]
    if not classes:
        return found or (few[0] if few else None)
    if found and _fits(frame[found], classes):
        return found
    fitting = [name for name in few if _fits(frame[name], classes)]
    best = max(fitting, key=lambda name: frame[name].nunique(), default=None)
    if found and (best is None or frame[best].nunique() < len(classes)):
        return found
    # None fits, or all have one class only: the scoring says what is wrong with the nearest one.
    near = {name: _n_known(frame[name], classes) for name in free}
    return best or max((name for name in free if near[name]), key=near.__getitem__, default=None)


def is_target_name(name: str) -> bool:
    """Whether a column's name says that it holds the true class.

    Examples
    --------
    >>> is_target_name("y_true"), is_target_name("Final label"), is_target_name("age")
    (True, True, False)
    >>> is_target_name("readmitted_30d"), is_target_name("previous_default")
    (True, False)
    """
    plain = simple(name)
    named = plain in (*_TRUTHS, *_SUBJECTS, *_GRADES) or _says_what_happened(name)
    return named or bool({*_ends(plain)} & _TARGET_WORDS)


def says_right(name: str) -> bool:
    """Whether a column's name says that it holds whether an answer is right.

    Examples
    --------
    >>> says_right("Is correct"), says_right("correction")
    (True, False)
    """
    return simple(name) in _GRADES


def class_columns(
    frame: pd.DataFrame, taken: set[str], classes: Sequence[str] = (), most: int | None = None
) -> list[str]:
    """The free columns that could hold the true class: of few values, and of known classes alone.

    Parameters
    ----------
    frame : pandas.DataFrame
    taken : set of str
        Columns with another role.
    classes : sequence of str
        The classes, where they are known.
    most : int, optional
        How many classes there are at most.

    Examples
    --------
    >>> class_columns(pd.DataFrame({"a": [0, 1, 2, 2], "b": [0, 1, 0, 1]}), set(), ("0", "1"))
    ['b']
    """
    aside = {*PREDICTED, *SPLITS, *map(simple, _grades_aside(frame))}
    free = [str(name) for name in frame.columns if name not in taken and simple(name) not in aside]
    free = [name for name in free if not says_weight(name)]
    few = [name for name in free if _has_few_classes(frame[name])]
    few = [name for name in few if not classes or _fits(frame[name], classes)]
    return [name for name in few if most is None or frame[name].nunique() <= most]


def _has_few_classes(column: pd.Series[Any]) -> bool:
    return _may_be_classes(column) and column.nunique() >= 2


def _may_be_classes(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return False
    if pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 != 0).any():
        return False
    return bool(column.nunique() <= min(_MAX_TARGET_CLASSES, max(2, len(column) // 2)))


def _n_known(column: pd.Series[Any], classes: Sequence[str]) -> int:
    """How many of the classes a column of few values holds."""
    if not _may_be_classes(column):
        return 0
    labels = column.dropna().drop_duplicates()
    return sum(_fits(labels.iloc[[at]], classes) for at in range(len(labels)))


def _fits(column: pd.Series[Any], classes: Sequence[str]) -> bool:
    try:
        encode_labels(column.dropna().drop_duplicates(), classes)
    except InputError:
        return False
    return True
