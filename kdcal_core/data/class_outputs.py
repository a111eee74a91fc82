"""Outputs and labels of a classification that are no plain probabilities and classes.

Scores on a scale of their own, lists with a probability for each class, and shares in place of
true classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.column_doubts import (
    MOST_CHOICES,
    Choice,
    ColumnReader,
    Doubt,
    Reading,
    they_hold,
)
from kdcal_core.data.column_kinds import mostly_numbers, sampled, simple
from kdcal_core.data.labels import class_of_column, classes_of, encode_labels, rank_area
from kdcal_core.data.list_columns import entry_of, mostly_sum_to_one
from kdcal_core.data.role_columns import output_matrix, true_labels
from kdcal_core.data.role_guesses import (
    Pairs,
    class_columns,
    is_share,
    is_stated_in,
    names_a_probability,
)
from kdcal_core.data.schema import RIGHT_CLASSES, Roles
from kdcal_core.data.target_words import target_shows
from kdcal_core.errors import InputError
from kdcal_core.text import formatted

_THOUSANDTHS = "Thousandths of a probability: divide by 1000"
_AN_INPUT = Choice("other", "An input of a model that will be added")
_LEAST_OF_SCALES = 300.0  # of credit scores
_FEW_INPUTS = 3  # beside a score that may be all that a model gave
RAW_SCORES = (
    *("margin", "raw_margin", "raw_score", "decision", "decision_function", "decision_score"),
    *("linear_predictor", "lp", "xb", "eta"),
)
_SCORES = frozenset(
    (
        *("score", "scores", "scoring", "scorecard", "creditscore", "riskscore", "fico", "rating"),
        *("risk", "points", "punkte", "punktzahl", "punktwert", "puntaje", "puntuación", "puntos"),
    )
)


class OutputReader(ColumnReader):
    """What a table of a classification holds in place of probabilities and classes."""

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

    def shares_as_labels(self, roles: Roles) -> Reading | None:
        """A target of shares, as of annotators' votes, beside a probability of one of two classes.

        Either the majority is judged, or the probability as a forecast of the share.
        """
        if self.model and ((self.classes or counted_classes(self.n_classes or 0)) != ("0", "1")):
            return None  # nothing says which class at least half would be of
        target = roles.target or self._voted(roles)
        if target is None or not is_share(self.frame, target):
            return None
        halves = self.frame.assign(**{target: (self._numbers(target) >= 0.5).astype(np.int64)})
        found: Roles = roles if self.model else self.guess(target, halves)
        if not self.model and not found.outputs:
            return None
        column = next((one for name, one in found.outputs if name == "1"), None)
        majority = replace(found, target=target, majority=True, class_by="name")
        plain = replace(found, target=target, outputs=(), output_kind="probability")
        forecast = replace(
            plain,
            task="regression",
            family="point",
            parameters=(("mean", column or ""),),
            predicted=None,
            class_by="name",
        )
        asks_for_mean = column is not None and found.output_kind == "probability"
        if (said := self.said.get("labels")) == "majority":
            return Reading(majority, notes=(_majority_words(target),))
        if said == "share" and asks_for_mean:
            return Reading(forecast)
        doubt = Doubt(
            "labels",
            f"{they_hold([target])} shares from 0 to 1, as of annotators' votes, and a review "
            "needs what happened in each row. To judge single votes exactly, write each row twice "
            "in the file: class 1 with the share as its weight, class 0 with the rest (no "
            "weight of 0), and both with the row's number as their cluster.",
            (
                Choice(
                    "majority", "Judge what at least half of the votes say", self.shows(majority)
                ),
                *(
                    [Choice("share", f"Judge {column[:40]} as a forecast of the share")]
                    if asks_for_mean and column is not None
                    else []
                ),
            ),
        )
        return Reading(plain, (doubt,))

    def _voted(self, roles: Roles) -> str | None:
        """The only column of shares that a probability is named after."""
        shares = [name for name in roles.features if is_share(self.frame, name)]
        pairs = [
            one
            for one in shares
            for other in shares
            if one != other and names_a_probability(other) and is_stated_in(one, other)
        ]
        return pairs[0] if len(pairs) == 1 and not names_a_probability(pairs[0]) else None

    def _numbers(self, column: str) -> pd.Series[Any]:
        return pd.to_numeric(self.frame[column], errors="coerce")

    def score(self, roles: Roles) -> tuple[Roles, Doubt | None] | None:
        """A score on a scale of its own: thousandths of a probability, if so confirmed, or none."""
        labels = () if roles.target is None else classes_of(self.frame[roles.target])
        numbers = [name for name in roles.features if mostly_numbers(self.frame[name])]
        named = [
            name
            for name in numbers
            if {*simple(name).split("_")} & _SCORES or simple(name) in RAW_SCORES
        ]
        if len(labels) != 2 or len(named) != 1 or len(numbers) > 1 + _FEW_INPUTS:
            return None
        values = sampled(self.frame, named)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        if (low >= 0.0 and high <= 100.0) or not np.isfinite([low, high]).all():
            return None
        (column,) = named
        name, by = class_of_column(column, labels, target=roles.target, frame=self.frame)
        features = tuple(one for one in roles.features if one != column)
        outputs = ((name, column),)
        read = replace(roles, outputs=outputs, output_kind="permille", class_by=by)
        read = replace(read, features=features)
        said = self.said.get("scale")
        if said is not None:
            return (read if said == "permille" else roles), None
        fits = 0.0 <= low < _LEAST_OF_SCALES and high <= 1000.0
        ends = f"{formatted(low, ',.4g')} to {formatted(high, ',.4g')}"
        doubt = Doubt(
            "scale",
            f"{they_hold([column])} numbers from {ends}"
            f"{self._ranks(roles.target, column, labels)}. A score ranks the rows and does not say "
            "how likely the event is, so its calibration cannot be judged. On other rows, fit a "
            f"logistic regression of {str(roles.target)[:60]!r} on this column, and give its "
            "probabilities as a column.",
            (*([Choice("permille", _THOUSANDTHS, self.shows(read))] if fits else []), _AN_INPUT),
        )
        return replace(roles, features=features), doubt

    def _ranks(self, target: str | None, column: str, labels: Sequence[str]) -> str:
        """How well a score ranks the rows of two classes, as the end of a clause."""
        rows = self._rows(self.frame).dropna(subset=[target, column])
        values = pd.to_numeric(rows[column], errors="coerce").to_numpy(dtype=np.float64)
        known = np.isfinite(values)
        second = encode_labels(rows[target], labels) == 1
        if second[known].all() or not second[known].any():
            return ""
        area, _ = rank_area(values[known], second[known])
        higher = labels[int(area >= 0.5)]
        return f", higher in the rows of {higher[:40]!r} (AUROC {max(area, 1.0 - area):.3f})"

    def list_of_classes(self, roles: Roles) -> tuple[Roles, Doubt | None] | None:
        """The numbers of a list, one a class: in the order of classes that count from 0, or asked.

        Spark counts the most frequent class as 0, scikit-learn the first in the alphabet.
        """
        entries: dict[str, dict[int, str]] = {}
        for name in map(str, self.frame.columns):
            if (found := entry_of(name)) is not None:
                entries.setdefault(found[0], {})[found[1]] = name
        outputs = {*output_columns(roles)}
        whole = [
            (of, columns)
            for of, places in entries.items()
            if len(columns := [places[at] for at in range(len(places)) if at in places]) > 1
            and len(columns) == len(places)
            and (outputs & {*columns} or not outputs)
            and (roles.output_kind == "logit" or sums_to_one(self.frame, columns))
        ]
        if roles.target is None or len(whole) != 1:
            return None
        ((of, columns),) = whole
        features = (name for name in roles.features if name not in columns)
        features = (name for name in features if not _is_raw_prediction(name))
        read = replace(roles, features=tuple(features), class_by="name")
        counted, labels = counted_classes(len(columns)), classes_of(self.frame[roles.target])
        if class_columns(self.frame[[roles.target]], set(), counted):
            return replace(read, outputs=tuple(zip(counted, columns, strict=True))), None
        if len(labels) != len(columns):
            doubt = Doubt(
                "outputs",
                f"The column {of[:60]!r} holds lists of {len(columns):,} numbers, and "
                f"{roles.target[:60]!r} {len(labels):,} classes, so it is not known which number "
                "belongs to which class. Give the target as the places in the list, counted from "
                "0, or give one column of probabilities for each class, named after it.",
            )
            return replace(read, outputs=()), doubt
        orders = [labels, labels[::-1]] if len(labels) == 2 else [labels, self._by_count(roles)]
        return self.in_order(
            read,
            {",".join(one): tuple(zip(one, columns, strict=True)) for one in orders},
            f"The column {of[:60]!r} holds a list of probabilities, one a class, and nothing says "
            "in which order. Libraries sort the labels; Spark begins with the most frequent one. "
            "For another order give each column its class.",
        )

    def _by_count(self, roles: Roles) -> tuple[str, ...]:
        """The labels, the most frequent first."""
        labels = classes_of(self.frame[roles.target])
        known = self.frame[roles.target].dropna()
        counts = np.bincount(encode_labels(known, labels), minlength=len(labels))
        return tuple(labels[at] for at in np.argsort(-counts, kind="stable"))

    def in_order(
        self, roles: Roles, options: Mapping[str, Pairs], sentence: str
    ) -> tuple[Roles, Doubt | None]:
        """The roles of the order that was said; else those of the first one, and the question."""
        if said := options.get(self.said.get("order", "")):
            return replace(roles, outputs=said), None
        shown = [
            Choice(
                answer,
                " · ".join(f"{column[:40]}: {name[:40]}" for name, column in pairs[:MOST_CHOICES])
                + (", ..." if len(pairs) > MOST_CHOICES else ""),
                self.shows(replace(roles, outputs=pairs)),
            )
            for answer, pairs in options.items()
        ]
        doubt = Doubt("order", sentence, tuple(shown))
        return replace(roles, outputs=next(iter(options.values()))), doubt

    def shows(self, roles: Roles, frame: pd.DataFrame | None = None) -> str:
        """Event rate, mean prediction and area of two classes; rows predicted right of more."""
        if roles.target is None:
            return ""
        rows = self._rows(self.frame if frame is None else frame)
        rows = rows.dropna(subset=[c for c in (roles.target, *output_columns(roles)) if c])
        labels = true_labels(rows, roles) if len(rows) else pd.Series(dtype=object)
        classes = RIGHT_CLASSES if roles.judges_right else classes_of(labels)
        if not roles.outputs:
            return target_shows(labels)
        names = classes if len(roles.outputs) == 1 else tuple(name for name, _ in roles.outputs)
        try:
            proba = output_matrix(rows, roles, names)
        except InputError:
            return target_shows(labels)
        return target_shows(labels, names, proba)


def _majority_words(target: str) -> str:
    return (
        f"A row is of class 1 where {target[:60]!r} is at least one half. A model that states the "
        "share of votes then seems under-confident: the majority is surer than a single vote."
    )


def _is_raw_prediction(name: str) -> bool:
    """Whether a column is of the list that Spark calls rawPrediction: outputs, and no inputs."""
    found = entry_of(name)
    return found is not None and simple(found[0]) in ("rawprediction", "raw_prediction")


def counted_classes(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def output_columns(roles: Roles) -> Iterator[str]:
    return (column for _, column in roles.outputs)


def sums_to_one(frame: pd.DataFrame, columns: Sequence[str]) -> bool:
    return mostly_sum_to_one(sampled(frame, columns))
