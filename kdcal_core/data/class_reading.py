"""What the columns of a classification were taken for: true class, probabilities, confidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.class_outputs import (
    RAW_SCORES,
    OutputReader,
    counted_classes,
    output_columns,
    sums_to_one,
)
from kdcal_core.data.column_doubts import MOST_CHOICES, Choice, Doubt, Reading, they_hold
from kdcal_core.data.column_kinds import (
    is_number,
    mostly_numbers,
    named,
    sampled,
    simple,
)
from kdcal_core.data.labels import (
    class_of_column,
    classes_of,
    encode_labels,
    rank_area,
    share_a_meaning,
)
from kdcal_core.data.role_columns import output_matrix, true_labels, used_columns
from kdcal_core.data.role_guesses import (
    class_columns,
    is_share,
    is_stated_in,
    is_target_name,
    paired_by_name,
    says_right,
)
from kdcal_core.data.schema import RIGHT_CLASSES, OutputKind, Roles
from kdcal_core.errors import InputError
from kdcal_core.text import formatted, in_sentence, listed

_CLEARLY = 0.05  # of the area under the ROC curve: a smaller lead is often chance
_DIVIDE = "Percentages: divide by 100"
_LOG_ODDS = "Log odds (logits): turn into probabilities"
_LOGARITHMS = "Logarithms of probabilities: take the exponential"
_JUDGE_RIGHT = "Judge whether predictions are right as often as stated"
_NO_PROBABILITIES = Choice("other", "Not probabilities")
_A_MODEL = Choice("model", "No, a model will give them")
_MOST_SHARES = 2
_FURTHEST = 50.0  # log odds from 0
_CONFIDENCES = (
    *("confidence", "conf", "max_prob", "max_proba", "top_prob", "pred_prob", "certainty"),
    *("prediction_confidence", "confidence_score", "prediction_probability"),
)
_NO_HEADER = re.compile(r"column_\d+")


class ClassReader(OutputReader):
    """What a table of a classification was taken for, and which questions it leaves."""

    def read(self, roles: Roles) -> Reading:
        if self._replaces_a_constant(roles):
            return Reading(replace(roles, target=None))
        if (shares := self.shares_as_labels(roles)) is not None:
            return shares
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
                roles, top, more = self._top_label(roles, confidence, labels)
                return Reading(roles, (*doubts, *top), (*notes, *more))
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
        elif (lists := self.list_of_classes(roles)) is not None:
            roles, doubt = lists
            doubts += [doubt] if doubt else []
        elif not roles.outputs and (block := self._unnamed_block(roles)) is not None:
            roles, doubt = block
            doubts += [doubt] if doubt else []
        elif not roles.outputs and (lone := self._log_odds(roles)) is not None:
            roles, doubt, more = lone
            notes += more
            doubts += [doubt] if doubt else []
        elif not roles.outputs and (score := self.score(roles)) is not None:
            roles, doubt = score
            doubts += [doubt] if doubt else []
        elif not roles.outputs and (stated := self._unnamed_shares(roles)) is not None:
            roles, doubt = stated
            doubts += [doubt] if doubt else []
        elif (renamed := self._other_names(roles)) is not None:
            roles, doubt = renamed
            doubts += [doubt] if doubt else []
        if not roles.outputs and not doubts and self._headerless():
            doubts.append(_no_header())
        return Reading(roles, tuple(doubts), notes)

    def _replaces_a_constant(self, roles: Roles) -> bool:
        """Whether the target is a guess in place of a column of one value that is named as it.

        The scoring then says that no column is known to hold the true class, and which hold one
        value. Where columns are named by their classes, those say which column is the target.
        """
        if self.model or "target" in self.said or roles.target is None or len(roles.outputs) > 1:
            return False
        if self._is_plausible(roles.target, replace(roles, target=None)):
            return False
        return any(
            self._is_plausible(str(name), replace(roles, target=None))
            and self.frame[name].nunique() == 1
            for name in self.frame.columns
            if str(name) not in {*output_columns(roles), roles.target}
        )

    def _targets(self, roles: Roles) -> list[Roles]:
        """The readings of the table under each column that could be the target, likeliest first."""
        if roles.target is None:
            return []
        if says_right(roles.target):  # beside it other columns describe the answers
            return [roles]
        certain = is_target_name(roles.target) or self._is_stated(roles.target, roles)
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
        if self._are_among(roles.predicted, classes_of(self.frame[roles.target])):
            names = {
                name: None
                for name in names
                if self._are_among(roles.predicted, classes_of(self.frame[name]))
            }
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
        columns = [name for name in (roles.target, *output_columns(roles)) if name]
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
        if n is None or roles.target is None or self.classes not in ((), counted_classes(n)):
            return (), ()
        labels = classes_of(self.frame[roles.target])
        if len(labels) != n or class_columns(self.frame[[roles.target]], set(), counted_classes(n)):
            return (), ()
        orders = {"natural": labels, "reversed": labels[::-1]}
        orders = orders if n == 2 else {"natural": labels}
        if (said := self.said.get("classes")) in orders:
            return orders[said], ()
        doubt = Doubt(
            "classes",
            f"The model's file {'only counts' if self.classes else 'does not name'} its {n} "
            "classes, and the labels are "
            f"{listed([repr(label[:40]) for label in labels], MOST_CHOICES)}. In which order "
            "does the model give their probabilities? Libraries sort the labels, unless they were "
            "told another order.",
            tuple(
                Choice(answer, listed([name[:40] for name in one], MOST_CHOICES, last="then"))
                for answer, one in orders.items()
            ),
        )
        return (), (doubt,)

    def _is_plausible(self, name: str, roles: Roles) -> bool:
        others = [roles.target or "", *(column for _, column in roles.outputs)]
        named = is_target_name(name) or self._is_stated(name, roles)
        return named or any(share_a_meaning(name, other) for other in others)

    def _is_stated(self, name: str, roles: Roles) -> bool:
        """Whether a lone column of probabilities is named after this one."""
        return len(roles.outputs) == 1 and is_stated_in(name, roles.outputs[0][1])

    def _target_doubt(self, roles: Roles, options: Sequence[Roles]) -> Doubt:
        names = [str(one.target) for one in options]
        others = listed([repr(name[:60]) for name in names if name != roles.target], 3)
        return Doubt(
            "target",
            f"The column {str(roles.target)[:60]!r} was taken for the true class, and {others} "
            "could be it too.",
            tuple(
                Choice(
                    str(one.target), f"{str(one.target)[:60]} is the true class", self.shows(one)
                )
                for one in options[:MOST_CHOICES]
            ),
        )

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
        shown = Choice("percent", _DIVIDE, self.shows(scaled))
        return without, (_scale_doubt([confidence], shown),)

    def _top_label(
        self, roles: Roles, confidence: str, labels: Sequence[str]
    ) -> tuple[Roles, tuple[Doubt, ...], tuple[str, ...]]:
        """The roles where the confidence in the predicted class is all that is stated.

        Whether predictions are right can be judged, if some are and some are not.
        """
        kind: OutputKind = "right" if is_share(self.frame, confidence) else "percent_right"
        judged = replace(
            roles,
            outputs=((RIGHT_CLASSES[1], confidence),),
            output_kind=kind,
            class_by="name",
            features=tuple(name for name in roles.features if name != confidence),
        )
        known = self.frame.dropna(subset=list(judged.label_columns))
        able = len(known) > 0 and true_labels(known, judged).nunique() == 2
        if able and self.said.get("outputs") == kind:
            return judged, (), (_judged_words(confidence),)
        words = _JUDGE_RIGHT if kind == "right" else f"{_JUDGE_RIGHT} ({in_sentence(_DIVIDE)})"
        choices = (Choice(kind, words, self.shows(judged)),) if able else ()
        doubt = _top_label_alone(confidence, str(roles.predicted), labels, choices)
        return replace(roles, outputs=(), class_by="name"), (doubt,), ()

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
        if len(names) > 1 and sums_to_one(shares, names):
            return scaled, None, (f"{they_hold(names)} percentages: divided by 100.",)
        if said:
            return roles, None, ()
        doubt = _scale_doubt(
            names,
            Choice("percent", _DIVIDE, self.shows(scaled)),
            Choice("logit", _LOG_ODDS, self.shows(logits)),
        )
        return replace(roles, outputs=(), class_by="name"), doubt, ()

    def _log_odds(self, roles: Roles) -> tuple[Roles, Doubt | None, tuple[str, ...]] | None:
        """Log odds, or logarithms, of one of two classes in a lone column with numbers below 0.

        They are certain where its name says so, else to be confirmed.
        """
        labels = () if roles.target is None else classes_of(self.frame[roles.target])
        if len(labels) != 2:
            return None
        taken = {*used_columns(roles)} - {*roles.features, roles.predicted}
        free = [str(name) for name in self.frame.columns if name not in taken]
        below = [name for name in free if _is_below_zero(self.frame[name])]
        shares = {
            name: 0.5 + 0.5 * np.tanh(pd.to_numeric(self.frame[name], errors="coerce") / 2)
            for name in below
        }
        found: Roles = self.guess(roles.target, self.frame.assign(**shares))
        if len(found.outputs) != 1 or found.outputs[0][1] not in below:
            raw = (
                [one for one in below if says_log_odds(one)]
                or [one for one in below if says_log_probability(one)]
                or [one for one in below if simple(one) in RAW_SCORES]
            )
            if len(raw) != 1:
                return None
            name, by = class_of_column(raw[0], labels, target=roles.target, frame=self.frame)
            found = replace(roles, outputs=((name, raw[0]),), class_by=by)
        ((_, column),) = found.outputs
        features = tuple(one for one in roles.features if one != column)
        read = replace(found, output_kind="logit", features=features)
        raised = replace(read, output_kind="log_probability")
        said = self.said.get("scale")
        low, high = (float(end(sampled(self.frame, [column]))) for end in (np.nanmin, np.nanmax))
        if said is None and says_log_probability(column):  # one above 0 is refused with its row
            said = "log_probability"
        if said == "log_probability":
            note = f"{they_hold([column])} logarithms of probabilities: the exponential was taken."
            return raised, None, (note,)
        if said == "logit" or (said is None and says_log_odds(column)):
            note = f"{they_hold([column])} log odds (logits): turned into probabilities."
            return read, None, (note,)
        if said or max(-low, high) > _FURTHEST:
            return None
        doubt = Doubt(
            "scale",
            f"{they_hold([column])} numbers from {formatted(low, '.3g')} to "
            f"{formatted(high, '.3g')}, which may be log odds{' or logarithms' * (high <= 0.0)}. "
            "Probabilities lie between 0 and 1.",
            (
                Choice("logit", _LOG_ODDS, self.shows(read)),
                *(
                    [Choice("log_probability", _LOGARITHMS, self.shows(raised))]
                    if high <= 0.0
                    else []
                ),
                _NO_PROBABILITIES,
            ),
        )
        return replace(roles, features=features), doubt, ()

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
        if named_so := paired_by_name(block, classes):
            return replace(read, outputs=named_so), None
        return self.in_order(
            read,
            options,
            f"The rows of {listed([repr(name[:60]) for name in block], 3)} sum to one, so they "
            "were read as the probabilities of the classes in their order. No name says which "
            "column belongs to which class.",
        )

    def _unnamed_shares(self, roles: Roles) -> tuple[Roles, Doubt | None] | None:
        """One or two columns with numbers from 0 to 1 beside two classes, whatever their names.

        Where other numbers stand beside them they are inputs, of which a model makes probabilities.
        """
        labels = () if roles.target is None else classes_of(self.frame[roles.target])
        shares = [name for name in roles.features if mostly_numbers(self.frame[name])]
        if len(labels) != 2 or not 0 < len(shares) <= _MOST_SHARES:
            return None
        if not all(is_share(self.frame, name) for name in shares):
            return None
        options = {
            f"{label},{name}": replace(
                roles,
                outputs=((label, name),),
                features=tuple(one for one in roles.features if one != name),
                class_by="name",
            )
            for name in shares
            for label in reversed(labels)
        }
        said = self.said.get("outputs")
        if said is not None:
            return options.get(said, roles), None
        shown = [
            Choice(
                answer,
                f"{read.outputs[0][1][:40]} is the probability of {read.outputs[0][0][:40]}",
                self.shows(read),
            )
            for answer, read in options.items()
        ]
        what = "it is a probability" if len(shares) == 1 else "one of them is a probability"
        sentence = f"{they_hold(shares)} numbers from 0 to 1, and no name says that {what}."
        return roles, Doubt("outputs", sentence, (*shown, _A_MODEL))

    def _other_names(self, roles: Roles) -> tuple[Roles, Doubt | None] | None:
        """Two columns that are named after other classes than the two of the target."""
        if roles.target is None or len(roles.outputs) != 2:
            return None
        labels = classes_of(self.frame[roles.target])
        columns = [column for _, column in roles.outputs]
        if len(labels) != 2 or class_columns(
            self.frame[[roles.target]], set(), [name for name, _ in roles.outputs]
        ):
            return None
        return self.in_order(
            roles,
            {
                ",".join(one): tuple(zip(one, columns, strict=True))
                for one in (labels, labels[::-1])
            },
            f"The columns {listed([repr(name[:60]) for name in columns])} are named after other "
            f"classes than the labels of {roles.target[:60]!r}, which are "
            f"{listed([repr(name[:40]) for name in labels])}. Which column belongs to which class?",
        )

    def _is_block(self, columns: Sequence[str]) -> bool:
        numbers = all(is_number(self.frame[name]) for name in columns)
        return (
            numbers
            and any(is_share(self.frame, c) for c in columns)
            and sums_to_one(self.frame, columns)
        )

    def _headerless(self) -> bool:
        return all(_NO_HEADER.fullmatch(str(name)) for name in self.frame.columns)


def _judged_words(confidence: str) -> str:
    return (
        f"Only the confidence in the predicted class is stated ({confidence[:60]!r}), so kdcal "
        "judges whether predictions are right as often as stated."
    )


def _top_label_alone(
    confidence: str, predicted: str, labels: Sequence[str], choices: tuple[Choice, ...]
) -> Doubt:
    """Why the confidence in the predicted class alone says nothing of classes, and what it does."""
    named = listed([repr(f"p_{label[:40]}") for label in labels], MOST_CHOICES)
    return Doubt(
        "outputs",
        f"The column {confidence[:60]!r} holds the confidence in the predicted class "
        f"({predicted[:60]!r}) and nothing of the other classes. A review of the classes needs one "
        f"column of probabilities for each of the {len(labels)}, for example {named}."
        + (" Without them kdcal can judge whether predictions are right." if choices else ""),
        choices,
    )


def _scale_doubt(columns: Sequence[str], *choices: Choice) -> Doubt:
    """What numbers from 0 to 100 mean."""
    return Doubt(
        "scale",
        f"{they_hold(columns)} numbers from 0 to 100, which may be percentages. Probabilities lie "
        "between 0 and 1.",
        (*choices, _NO_PROBABILITIES),
    )


def _is_below_zero(column: pd.Series[Any]) -> bool:
    """Whether a column holds more than two different numbers, and some below 0."""
    if not mostly_numbers(column):
        return False
    numbers = pd.to_numeric(column, errors="coerce")
    return bool((numbers < 0).any()) and numbers.nunique() > 2


def says_log_odds(name: str) -> bool:
    """Whether a column's name says that it holds log odds.

    Examples
    --------
    >>> says_log_odds("Logit default"), says_log_odds("log_odds"), says_log_odds("log_income")
    (True, True, False)
    """
    plain = simple(name)
    return bool({*plain.split("_")} & {"logit", "logits", "logodds"}) or "log_odds" in plain


def says_log_probability(name: str) -> bool:
    """Whether a column's name says that it holds logarithms of probabilities.

    Examples
    --------
    >>> says_log_probability("Avg logprob"), says_log_probability("log_likelihood")
    (True, True)
    >>> says_log_probability("log_odds")
    False
    """
    plain = simple(name)
    words = {*plain.split("_")} & {"logprob", "logprobs", "logp", "loglikelihood"}
    return bool(words) or any(one in plain for one in ("log_prob", "log_likelihood"))


def _no_header() -> Doubt:
    return Doubt(
        "outputs",
        "The file has no header, and its rows do not show which columns hold the probabilities. "
        "Give the columns names in the file, or give each its role on the Load page.",
    )


def _is_percentage(frame: pd.DataFrame, column: str) -> bool:
    """Whether a column's numbers lie from 0 to 100, and some above 1."""
    values = sampled(frame, [column])
    values = values[~np.isnan(values)]
    return bool(len(values) and values.min() >= 0 and 1 < values.max() <= 100)
