"""What the columns of a table were taken for, which of it is doubtful, and what an answer changes.

:func:`guess_roles` names one role for each column. Here stands what it cannot know: which of
several columns is the target, the level of an interval, whether numbers are percentages, the order
of columns without names. Such a question is a :class:`Doubt` with its possible answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.column_kinds import (
    is_number,
    mostly_numbers,
    named,
    sampled,
    simple,
)
from kdcal_core.data.labels import (
    classes_of,
    default_event,
    encode_labels,
    rank_area,
    share_a_meaning,
)
from kdcal_core.data.regression_columns import (
    Bounds,
    Parameters,
    bounds_in,
    follows,
    interval_levels,
    is_outcome_name,
    measured_columns,
)
from kdcal_core.data.role_columns import output_matrix, used_columns
from kdcal_core.data.role_guesses import class_columns, guess_roles, is_share, is_target_name
from kdcal_core.data.schema import Family, FloatArray, Roles, Table, Task
from kdcal_core.errors import InputError
from kdcal_core.text import formatted, listed

About = Literal["target", "classes", "scale", "order", "level", "outputs"]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of an interval whose level no name says
NO_LEVEL = "none"
_MOST_CHOICES = 6
_CLEARLY = 0.05  # of the area under the ROC curve: a smaller lead is often chance
_DIVIDE = "Percentages: divide by 100"
_LOOKED_AT = 20_000  # rows, evenly spread
_CONFIDENCES = (
    *("confidence", "conf", "max_prob", "max_proba", "top_prob", "pred_prob", "certainty"),
    *("prediction_confidence", "confidence_score", "prediction_probability"),
)
_UNNAMED = re.compile(r"unnamed_\d+(_\d+)?")  # as pandas calls the index that it wrote
_INDEX = ("index", "level_0", "index_level_0")
_NO_HEADER = re.compile(r"column_\d+")
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Choice:
    """One answer to a doubt.

    Attributes
    ----------
    answer : str
        What :func:`read_columns` takes. Untrusted text.
    words : str
        What it says, in a few words. Untrusted text.
    shows : str
        What the rows show where this is the answer; empty where nothing is known before a model
        has read them. Untrusted text.
    """

    answer: str
    words: str
    shows: str = ""


@dataclass(frozen=True)
class Doubt:
    """A question about a table that only a person can answer.

    Attributes
    ----------
    about : str
        "target": which column; "classes": the order of a model's classes whose file does not name
        them; "scale": percentages or not; "order": which column belongs to which class; "level":
        that of an interval; "outputs": why there are none.
    sentence : str
        Untrusted text.
    choices : tuple of Choice
        Empty where the table cannot be read; the sentence then says what to change.
    """

    about: About
    sentence: str
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Reading:
    """The roles of a table's columns, the open doubts about them, and notes in sentences.

    ``classes`` are the names that an answer gave to the classes of a model without names.
    """

    roles: Roles
    doubts: tuple[Doubt, ...] = ()
    notes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


def read_columns(
    table: Table | pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    n_classes: int | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    task: Task | None = None,
    family: Family | None = None,
    answers: Mapping[str, str] | None = None,
) -> Reading:
    """What a table was taken for, and what is doubtful about it.

    Parameters
    ----------
    table, classes, feature_names, n_features, task, family
        As for :func:`guess_roles`.
    n_classes : int, optional
        How many classes the model has, where it names none.
    answers : mapping of str to str, optional
        What a doubt is about, and the answer that was chosen. A question with an answer is not
        asked again.

    Returns
    -------
    Reading

    Examples
    --------
    >>> frame = pd.DataFrame({"price": [1.5, 2.5, 9.0], "forecast": [2.0, 2.0, 8.0]})
    >>> frame = frame.assign(lower=frame["forecast"] - 1, upper=frame["forecast"] + 1)
    >>> reading = read_columns(frame, task="regression")
    >>> reading.doubts[0].about, reading.roles.parameters
    ('level', ())
    >>> read_columns(frame, task="regression", answers={"level": "0.9"}).roles.parameters
    (('0.05', 'lower'), ('0.5', 'forecast'), ('0.95', 'upper'))
    """
    whole = table.frame if isinstance(table, Table) else table
    index = [name for name in index_columns(whole) if name not in set(feature_names or ())]
    frame = whole.drop(columns=index)
    notes = tuple(f"The column {name!r} only numbers the rows: not used." for name in index)
    model = n_features is not None or bool(feature_names) or bool(classes)

    def guess(target: str | None, of: pd.DataFrame = frame) -> Roles:
        return guess_roles(
            of,
            classes=classes,
            feature_names=feature_names,
            n_features=n_features,
            task=task,
            family=family,
            target=target,
        )

    said = dict(answers or {})
    roles = guess(said.get("target"))
    if roles.task == "regression":
        reader: _Reader = _Regression(frame, said, guess, model)
    else:
        reader = _Classification(frame, said, guess, model, tuple(classes or ()), n_classes)
    found = reader.read(roles)
    return replace(found, notes=(*notes, *found.notes))


def target_shows(
    labels: pd.Series[Any],
    names: Sequence[str] = (),
    proba: FloatArray | None = None,
    weight: FloatArray | None = None,
    rows: str = "the rows",
) -> str:
    """What rows show if a column is their true class, in a few words; empty for one class.

    Of two classes it is said of the default event.

    Parameters
    ----------
    labels : Series of n labels
        Without missing values.
    names : sequence of K str
        The classes of the columns of ``proba``.
    proba : (n, K) array or None
        The predictions; None if there are none.
    weight : (n,) array or None
        Row weights, above zero; None if all count the same.
    rows : str
        Which rows these are, in words.

    Examples
    --------
    >>> labels = pd.Series(["no", "yes", "no", "yes"])
    >>> target_shows(labels)
    'class yes: 50.0% of the rows'
    >>> target_shows(pd.Series(["left", "right", "right", "right"]))
    'class left: 25.0% of the rows'
    >>> target_shows(labels, ("no", "yes"), np.array([[0.9, 0.1], [0.2, 0.8]] * 2))
    'class yes: 50.0% of the rows, mean prediction 45.0%, AUROC 1.000'
    """
    classes = classes_of(labels)
    if len(classes) < 2:
        return ""
    y = encode_labels(labels, classes)
    event = default_event(classes, np.bincount(y, minlength=2).tolist()) or classes[-1]
    rate = f"class {event[:40]}: {event_shows(labels, event, weight=weight, rows=rows)}"
    if len(classes) > 2:
        rate = f"{len(classes)} classes"
    if proba is None:
        return rate
    try:
        y = encode_labels(labels, names)
    except InputError:  # the names are those of another column
        return rate
    if len(names) > 2:
        right = float(np.average(proba.argmax(axis=1) == y, weights=weight))
        return f"{rate}, {right:.1%} of {rows} predicted right"
    named = names[int(encode_labels(pd.Series([event]), names)[0])]
    return f"class {event[:40]}: {event_shows(labels, named, names, proba, weight, rows)}"


def event_shows(
    labels: pd.Series[Any],
    event: str,
    names: Sequence[str] = (),
    proba: FloatArray | None = None,
    weight: FloatArray | None = None,
    rows: str = "the rows",
) -> str:
    """How often a class is true and, with predictions, what they say of it, in a few words.

    Parameters
    ----------
    labels : Series of n labels
        Without missing values.
    event : str
        One of ``names``, or of the classes of the labels where there are none.
    names, proba, weight, rows
        As for :func:`target_shows`.

    Examples
    --------
    >>> labels = pd.Series(["no", "yes", "no", "yes"])
    >>> event_shows(labels, "no")
    '50.0% of the rows'
    >>> event_shows(labels, "yes", ("no", "yes"), np.array([[0.9, 0.1], [0.2, 0.8]] * 2))
    '50.0% of the rows, mean prediction 45.0%, AUROC 1.000'
    """
    classes = tuple(names) or classes_of(labels)
    at = classes.index(event)
    is_event = encode_labels(labels, classes) == at
    rate = f"{np.average(is_event, weights=weight):.1%} of {rows}"
    if proba is None:
        return rate
    stated = proba[:, at]
    area, _ = rank_area(stated, is_event)
    if weight is not None:
        area = _weighted_area(stated, is_event, weight)
    mean = np.average(stated, weights=weight)
    return f"{rate}, mean prediction {mean:.1%}, AUROC {area:.3f}"


def _weighted_area(score: FloatArray, positive: NDArray[np.bool_], weight: FloatArray) -> float:
    """Area under the ROC curve of weighted rows; one half where all rows are of one side."""
    _, place = np.unique(score, return_inverse=True)
    hit = np.bincount(place, weights=np.where(positive, weight, 0.0))
    miss = np.bincount(place, weights=np.where(positive, 0.0, weight))
    pairs = hit.sum() * miss.sum()
    return float(hit @ (np.cumsum(miss) - 0.5 * miss) / pairs) if pairs else 0.5


def index_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that hold a data frame's index: so named, with whole numbers that never repeat.

    Examples
    --------
    >>> frame = pd.DataFrame({"Unnamed: 0": [0, 1], "index": [7, 7], "x": [0, 1]})
    >>> index_columns(frame)
    ['Unnamed: 0']
    """
    return [
        str(name)
        for name in frame.columns
        if (_UNNAMED.fullmatch(simple(name)) or simple(name) in _INDEX)
        and is_number(frame[name])
        and frame[name].is_unique
        and bool((frame[name] % 1 == 0).all())
    ]


class _Reader:
    """What both tasks share: the frame without its index, the answers, the guess at roles."""

    def __init__(
        self, frame: pd.DataFrame, said: Mapping[str, str], guess: Any, model: bool
    ) -> None:
        self.frame = frame
        self.said = said
        self.guess = guess
        self.model = model

    def read(self, roles: Roles) -> Reading:
        raise NotImplementedError

    def _rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.iloc[:: max(len(frame) // _LOOKED_AT, 1)]


class _Classification(_Reader):
    def __init__(
        self,
        frame: pd.DataFrame,
        said: Mapping[str, str],
        guess: Any,
        model: bool,
        classes: tuple[str, ...],
        n_classes: int | None,
    ) -> None:
        super().__init__(frame, said, guess, model)
        self.classes = classes
        self.n_classes = n_classes

    def read(self, roles: Roles) -> Reading:
        if self._replaces_a_constant(roles):
            return Reading(replace(roles, target=None))
        options = [] if "target" in self.said else self._targets(roles)
        doubts: list[Doubt] = []
        notes: tuple[str, ...] = ()
        if options and options[0].target != roles.target:
            notes = (
                f"The probabilities are of the classes of {options[0].target!r}, so it was taken "
                f"for the true class, and not {roles.target!r}.",
            )
            roles = options[0]
        if len(options) > 1:
            doubts.append(self._target_doubt(roles, options))
        if self.model:
            given, order = self._class_names(roles)
            return Reading(roles, (*doubts, *order), notes, given)
        if (confidence := self._confidence(roles)) is not None:
            labels = classes_of(self.frame[roles.target])
            if len(labels) != 2 or not self._are_among(roles.predicted, labels):
                top = _top_label_alone(confidence, str(roles.predicted), labels)
                return Reading(replace(roles, outputs=(), class_by="name"), (*doubts, top), notes)
            roles, scale = self._of_predicted(roles, confidence, labels)
            if roles.outputs:
                notes += (
                    f"The column {confidence!r} holds the confidence in the class of "
                    f"{roles.predicted!r}: the other class has the rest.",
                )
            return Reading(roles, (*doubts, *scale), notes)
        if (scaled := self._percentages(roles)) is not None:
            roles, doubt, more = scaled
            notes += more
            doubts += [doubt] if doubt else []
        elif not roles.outputs and (block := self._unnamed_block(roles)) is not None:
            roles, doubt = block
            doubts += [doubt] if doubt else []
        if not roles.outputs and not doubts and self._headerless():
            doubts.append(_no_header())
        return Reading(roles, tuple(doubts), notes)

    def _replaces_a_constant(self, roles: Roles) -> bool:
        """Whether the target is a guess in place of a column of one value that is named as it.

        The scoring then says that no column is known to hold the true class, and which hold one
        value. Where columns are named by their classes, those say which column is the target.
        """
        if self.model or "target" in self.said or roles.target is None or len(roles.outputs) != 1:
            return False
        if self._is_plausible(roles.target, replace(roles, target=None)):
            return False
        return any(
            self._is_plausible(str(name), replace(roles, target=None))
            and self.frame[name].nunique() == 1
            for name in self.frame.columns
            if str(name) not in {*_columns(roles), roles.target}
        )

    def _targets(self, roles: Roles) -> list[Roles]:
        """The readings of the table under each column that could be the target, likeliest first."""
        if roles.target is None:
            return []
        certain = is_target_name(roles.target)
        if not (self.model or roles.outputs or certain):
            return [roles]  # what the model gives is not there yet
        taken = {*used_columns(roles)} - {roles.target}
        if not self.model:
            taken -= {*roles.features}
        outputs = [name for name, _ in roles.outputs]
        known = self.classes or (tuple(outputs) if len(outputs) > 1 else ())
        most = 2 if len(outputs) == 1 else self.n_classes  # one probability is of two classes
        free = class_columns(self.frame, taken, known, most)
        # a column named as a target may hold more classes than are predicted
        many = most is not None and self.frame[roles.target].nunique() > most
        named = [] if many and free else [roles.target]
        names = dict.fromkeys([*named, *free])
        found = [roles if name == roles.target else self.guess(name) for name in names]
        if not self.model and any(one.outputs for one in found):
            found = [one for one in found if one.outputs]
        if many or not certain:
            return sorted(found, key=lambda one: -self._separated(one)) if many else found
        least = self._separated(roles) + _CLEARLY
        return [
            one
            for one in found
            if one is roles
            or self._is_plausible(str(one.target), roles)
            or self._separated(one) > least
        ]

    def _separated(self, roles: Roles) -> float:
        """How far from one half the AUROC of the predictions is; 0 without two classes."""
        columns = [name for name in (roles.target, *_columns(roles)) if name]
        rows = self._rows(self.frame).dropna(subset=columns)
        classes = classes_of(rows[roles.target])
        if not roles.outputs or len(classes) != 2:
            return 0.0
        names = classes if len(roles.outputs) == 1 else tuple(name for name, _ in roles.outputs)
        try:
            area, _ = rank_area(
                output_matrix(rows, roles, names)[:, -1],
                encode_labels(rows[roles.target], names) == len(names) - 1,
            )
        except InputError:  # the predictions are of other classes
            return 0.0
        return abs(area - 0.5)

    def _class_names(self, roles: Roles) -> tuple[tuple[str, ...], tuple[Doubt, ...]]:
        """The labels as names of a model's classes where its file only counts them."""
        n = len(self.classes) or self.n_classes
        if n is None or roles.target is None or self.classes not in ((), _counted(n)):
            return (), ()
        labels = classes_of(self.frame[roles.target])
        if len(labels) != n or class_columns(self.frame[[roles.target]], set(), _counted(n)):
            return (), ()
        orders = {"natural": labels, "reversed": labels[::-1]}
        orders = orders if n == 2 else {"natural": labels}
        if (said := self.said.get("classes")) in orders:
            return orders[said], ()
        doubt = Doubt(
            "classes",
            f"The model's file {'only counts' if self.classes else 'does not name'} its {n} "
            "classes, and the labels are "
            f"{listed([repr(label[:40]) for label in labels], _MOST_CHOICES)}. In which order "
            "does the model give their probabilities? Libraries sort the labels, unless they were "
            "told another order.",
            tuple(
                Choice(answer, listed([name[:40] for name in one], _MOST_CHOICES, last="then"))
                for answer, one in orders.items()
            ),
        )
        return (), (doubt,)

    def _is_plausible(self, name: str, roles: Roles) -> bool:
        others = [roles.target or "", *(column for _, column in roles.outputs)]
        return is_target_name(name) or any(share_a_meaning(name, other) for other in others)

    def _target_doubt(self, roles: Roles, options: Sequence[Roles]) -> Doubt:
        names = [str(one.target) for one in options]
        others = listed([repr(name[:60]) for name in names if name != roles.target], 3)
        return Doubt(
            "target",
            f"The column {str(roles.target)[:60]!r} was taken for the true class, and {others} "
            "could be it too.",
            tuple(
                Choice(
                    str(one.target), f"{str(one.target)[:60]} is the true class", self._shows(one)
                )
                for one in options[:_MOST_CHOICES]
            ),
        )

    def _shows(self, roles: Roles, frame: pd.DataFrame | None = None) -> str:
        """Event rate, mean prediction and area of two classes; rows predicted right of more."""
        if roles.target is None:
            return ""
        rows = self._rows(self.frame if frame is None else frame)
        rows = rows.dropna(subset=[c for c in (roles.target, *_columns(roles)) if c])
        labels = rows[roles.target] if len(rows) else pd.Series(dtype=object)
        classes = classes_of(labels)
        if not roles.outputs:
            return target_shows(labels)
        names = classes if len(roles.outputs) == 1 else tuple(name for name, _ in roles.outputs)
        try:
            proba = output_matrix(rows, roles, names)
        except InputError:
            return target_shows(labels)
        return target_shows(labels, names, proba)

    def _are_among(self, column: str | None, labels: Sequence[str]) -> bool:
        """Whether all values of a column are among these labels."""
        return column is not None and set(classes_of(self.frame[column])) <= set(labels)

    def _of_predicted(
        self, roles: Roles, confidence: str, labels: Sequence[str]
    ) -> tuple[Roles, tuple[Doubt, ...]]:
        """The roles of two classes whose predicted one has this confidence, and what is open."""
        found = replace(
            roles,
            outputs=((labels[1], confidence),),
            output_kind="confidence",
            class_by="name",
            features=tuple(name for name in roles.features if name != confidence),
        )
        if is_share(self.frame, confidence):
            return found, ()
        scaled = replace(found, output_kind="percent_confidence")
        if self.said.get("scale") == "percent":
            return scaled, ()
        without = replace(roles, outputs=(), class_by="name")
        if "scale" in self.said:
            return without, ()
        shown = Choice("percent", _DIVIDE, self._shows(scaled))
        return without, (_scale_doubt([confidence], shown),)

    def _confidence(self, roles: Roles) -> str | None:
        """The column of the confidence in the predicted class, where there is nothing else.

        A column of one name or another that is never below one over the number of classes, beside
        a predicted class, is such a confidence as well.
        """
        predicted = roles.predicted
        if predicted is None or len(roles.outputs) > 1 or roles.target is None:
            return None
        classes = classes_of(self.frame[roles.target])
        free = set(used_columns(roles)) - {*roles.features}
        confidence = named(self.frame, _CONFIDENCES, free)
        if roles.outputs:
            ((_, column),) = roles.outputs
            values = sampled(self.frame, [column])
            least = float(np.nanmin(values)) if np.isfinite(values).any() else 0.0
            confidence = column if least >= 1.0 / max(len(classes), 2) - 1e-6 else None
        stated = confidence and (
            is_share(self.frame, confidence) or _is_percentage(self.frame, confidence)
        )
        return confidence if stated else None

    def _percentages(self, roles: Roles) -> tuple[Roles, Doubt | None, tuple[str, ...]] | None:
        """Probabilities from 0 to 100: certain where the rows sum to 100, else to be confirmed."""
        if roles.output_kind == "logit" and roles.outputs:
            return None
        free = {*used_columns(roles)} - {*roles.features, *(c for _, c in roles.outputs)}
        columns = [
            str(name)
            for name in self.frame.columns
            if name not in free and mostly_numbers(self.frame[name])
        ]
        columns = [name for name in columns if _is_percentage(self.frame, name)]
        if not columns or (roles.outputs and not {c for _, c in roles.outputs} <= {*columns}):
            return None
        shares = self.frame.assign(
            **{name: pd.to_numeric(self.frame[name], errors="coerce") / 100 for name in columns}
        )
        found: Roles = self.guess(roles.target, shares)
        if not found.outputs or not {c for _, c in found.outputs} <= {*columns}:
            return None
        names = [column for _, column in found.outputs]
        scaled = replace(found, output_kind="percent")
        logits = replace(found, output_kind="logit")
        answered = {"percent": scaled, "logit": logits}.get(said := self.said.get("scale", ""))
        if answered is not None:
            return answered, None, ()
        if len(names) > 1 and _sums_to_one(shares, names):
            return scaled, None, (f"{_they_hold(names)} percentages: divided by 100.",)
        if said:
            return roles, None, ()
        doubt = _scale_doubt(
            names,
            Choice("percent", _DIVIDE, self._shows(scaled)),
            Choice("logit", "Log odds (logits): turn into probabilities", self._shows(logits)),
        )
        return replace(roles, outputs=(), class_by="name"), doubt, ()

    def _unnamed_block(self, roles: Roles) -> tuple[Roles, Doubt | None] | None:
        """Neighbouring columns, one a class, whose rows sum to one, where no name says so."""
        if roles.target is None:
            return None
        classes = classes_of(self.frame[roles.target])
        taken = {*used_columns(roles)} - {*roles.features}
        free = [str(name) for name in self.frame.columns if name not in taken]
        blocks = [free[at : at + len(classes)] for at in range(len(free) - len(classes) + 1)]
        block = next((one for one in blocks if self._is_block(one)), None)
        if len(classes) < 2 or block is None:
            return None
        features = tuple(name for name in roles.features if name not in block)
        read = replace(roles, features=features)
        orders = [classes, classes[::-1]] if len(classes) == 2 else [classes]
        options = {",".join(one): tuple(zip(one, block, strict=True)) for one in orders}
        if [simple(name) for name in block] == [simple(name) for name in classes]:
            return replace(read, outputs=tuple(zip(classes, block, strict=True))), None
        if (said := self.said.get("order")) in options:
            return replace(read, outputs=options[said]), None
        shown = [
            Choice(
                answer,
                " · ".join(f"{column[:40]}: {name[:40]}" for name, column in pairs[:_MOST_CHOICES])
                + (", ..." if len(pairs) > _MOST_CHOICES else ""),
                self._shows(replace(read, outputs=pairs)),
            )
            for answer, pairs in options.items()
        ]
        doubt = Doubt(
            "order",
            f"The rows of {listed([repr(name[:60]) for name in block], 3)} sum to one, so they "
            "were read as the probabilities of the classes in their order. No name says which "
            "column belongs to which class.",
            tuple(shown),
        )
        return replace(read, outputs=next(iter(options.values()))), doubt

    def _is_block(self, columns: Sequence[str]) -> bool:
        numbers = all(is_number(self.frame[name]) for name in columns)
        return (
            numbers
            and any(is_share(self.frame, c) for c in columns)
            and _sums_to_one(self.frame, columns)
        )

    def _headerless(self) -> bool:
        return all(_NO_HEADER.fullmatch(str(name)) for name in self.frame.columns)


class _Regression(_Reader):
    def read(self, roles: Roles) -> Reading:
        options = [] if "target" in self.said else self._targets(roles)
        doubts = [self._target_doubt(roles, options)] if len(options) > 1 else []
        if self.model or roles.family not in ("point", None):
            return Reading(roles, tuple(doubts))
        taken = {
            name for name in (roles.target, roles.weight, roles.split, roles.true_mean) if name
        }
        bounds = bounds_in(self.frame, taken | {column for _, column in roles.parameters})
        if not bounds:
            return Reading(roles, tuple(doubts))
        known = tuple(one for one in bounds if one.level is not None)
        if known:
            return _as_intervals(self.frame, roles, known, doubts)
        (one, *_) = bounds
        said = self.said.get("level")
        if said == NO_LEVEL and roles.parameters:
            return Reading(roles, tuple(doubts))
        if said is not None and (level := _level(said)) is not None:
            return _as_intervals(self.frame, roles, [replace(one, level=level)], doubts)
        held = self._held(roles, one.lower, one.upper)
        choices = [Choice(f"{level:g}", f"{level:.0%}") for level in LEVELS]
        if roles.parameters:
            point = roles.parameters[0][1]
            choices.append(Choice(NO_LEVEL, f"Use {point[:40]} alone"))
        doubt = Doubt(
            "level",
            f"The columns {one.lower[:60]!r} and {one.upper[:60]!r} are the ends of an interval, "
            f"and no name says its level.{held} Which share of the outcomes was it made to hold?",
            tuple(choices),
        )
        unread = replace(
            roles,
            family="quantiles",
            parameters=(),
            features=tuple(c for c in roles.features if c not in (one.lower, one.upper)),
        )
        return Reading(unread, (*doubts, doubt))

    def _targets(self, roles: Roles) -> list[str]:
        if roles.target is None:
            return []
        certain = is_outcome_name(roles.target)
        if not (self.model or roles.parameters or certain):
            return [roles.target]  # what the model gives is not there yet
        taken = {*used_columns(roles)} - {roles.target}
        if not self.model:
            taken -= {*roles.features}
        bounds = bounds_in(self.frame, set())
        taken |= {name for one in bounds for name in (one.lower, one.upper)}
        free = measured_columns(self.frame, taken)
        if certain:
            free = [name for name in free if is_outcome_name(name)]
        return list(dict.fromkeys([roles.target, *free]))

    def _target_doubt(self, roles: Roles, names: Sequence[str]) -> Doubt:
        near = {
            name: float("nan") if self.model else follows(self.frame, roles.parameters, name)
            for name in names
        }
        ordered = [names[0], *sorted(names[1:], key=lambda name: -np.nan_to_num(abs(near[name])))]
        others = listed([repr(name[:60]) for name in ordered[1:]], 3)
        return Doubt(
            "target",
            f"The column {str(roles.target)[:60]!r} was taken for the outcome, and {others} could "
            "be it too.",
            tuple(
                Choice(
                    name,
                    f"{name[:60]} is the outcome",
                    f"correlation with the prediction {formatted(near[name], '.3f')}"
                    if np.isfinite(near[name])
                    else "",
                )
                for name in ordered[:_MOST_CHOICES]
            ),
        )

    def _held(self, roles: Roles, lower: str, upper: str) -> str:
        """How many of the outcomes lie in the interval."""
        if roles.target is None or not mostly_numbers(self.frame[roles.target]):
            return ""
        low, y, high = sampled(self.frame, [lower, roles.target, upper]).T
        inside = float(np.mean((low <= y) & (y <= high)))
        return f" It holds {inside:.1%} of the outcomes."


def _top_label_alone(confidence: str, predicted: str, labels: Sequence[str]) -> Doubt:
    """Why the confidence in the predicted class alone cannot be reviewed."""
    named = listed([repr(f"p_{label[:40]}") for label in labels], _MOST_CHOICES)
    return Doubt(
        "outputs",
        f"The column {confidence[:60]!r} holds the confidence in the predicted class "
        f"({predicted[:60]!r}) and nothing of the other classes. A review needs one column of "
        f"probabilities for each of the {len(labels)} classes, for example {named}. For two "
        "classes the confidence would be enough.",
    )


def _they_hold(columns: Sequence[str]) -> str:
    what = listed([repr(name[:60]) for name in columns], 3)
    return f"The column {what} holds" if len(columns) == 1 else f"The columns {what} hold"


def _scale_doubt(columns: Sequence[str], *choices: Choice) -> Doubt:
    """What numbers from 0 to 100 mean."""
    return Doubt(
        "scale",
        f"{_they_hold(columns)} numbers from 0 to 100, which may be percentages. Probabilities lie "
        "between 0 and 1.",
        (*choices, Choice("other", "Not probabilities")),
    )


def _no_header() -> Doubt:
    return Doubt(
        "outputs",
        "The file has no header, and its rows do not show which columns hold the probabilities. "
        "Give the columns names in the file, or give each its role on the Load page.",
    )


def _level(answer: str) -> float | None:
    try:
        level = float(answer)
    except ValueError:
        return None
    return level if 0.0 < level < 1.0 else None


def _as_intervals(
    frame: pd.DataFrame, roles: Roles, bounds: Sequence[Bounds], doubts: Sequence[Doubt]
) -> Reading:
    """The ends of intervals as quantiles, and a point between all of them as the median."""
    notes = []
    found: dict[float, str] = {}
    for one in bounds:
        assert one.level is not None
        found |= dict(zip(interval_levels(one.level), (one.lower, one.upper), strict=True))
    ends = set(found.values())
    if roles.family == "point":
        ((_, point),) = roles.parameters
        if all(_between(frame, one.lower, point, one.upper) for one in bounds):
            found[0.5] = point
            notes.append(f"{point!r} lies within every interval and was read as the median.")
    parameters: Parameters = tuple((f"{level:.12g}", found[level]) for level in sorted(found))
    features = tuple(name for name in roles.features if name not in ends)
    read = replace(roles, family="quantiles", parameters=parameters, features=features)
    for one in bounds:
        assert one.level is not None
        notes.append(f"{one.lower!r} and {one.upper!r} were read as a {one.level:.0%} interval.")
    return Reading(read, tuple(doubts), tuple(notes))


def _between(frame: pd.DataFrame, lower: str, point: str, upper: str) -> bool:
    low, middle, high = (
        pd.to_numeric(frame[name], errors="coerce") for name in (lower, point, upper)
    )
    return bool(((low <= middle) & (middle <= high)).all())


def _counted(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def _columns(roles: Roles) -> Iterator[str]:
    return (column for _, column in roles.outputs)


def _is_percentage(frame: pd.DataFrame, column: str) -> bool:
    """Whether a column's numbers lie from 0 to 100, and some above 1."""
    values = sampled(frame, [column])
    values = values[~np.isnan(values)]
    return bool(len(values) and values.min() >= 0 and 1 < values.max() <= 100)


def _sums_to_one(frame: pd.DataFrame, columns: Sequence[str]) -> bool:
    values = sampled(frame, columns)
    near = np.abs(values.sum(axis=1) - 1.0) <= _TOLERANCE
    return bool(np.mean(near & ((values >= 0) & (values <= 1)).all(axis=1)) > 0.5)
