"""Doubts about classes, to which probabilities belong, and tables, and how to settle them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kdcal_core.data.column_doubts import About
from kdcal_core.data.folder_parts import doubt_of_partial
from kdcal_core.data.labels import doubts_of_roles, swapped
from kdcal_core.data.schema import CONFIDENCES, Roles
from kdcal_core.errors import InputError
from kdcal_core.review.changes import change_review
from kdcal_core.review.review import Review, TableInfo
from kdcal_core.review.steps import set_roles
from kdcal_core.review.workspace import Workspace
from kdcal_core.text import in_sentence, listed

_NUMBER = re.compile(r"\d[\d.,]*(?<![.,])%?")


def open_doubts(review: Review) -> tuple[str, ...]:
    """The doubts that every page shows until they are settled; untrusted text.

    There is a doubt for each open question about the columns, for columns that only some files of a
    folder have, for each table without a place, for a guessed class of a single column, and for
    scored rows that contradict the classes beyond chance, which is said once where sets differ in
    numbers alone.

    Examples
    --------
    >>> open_doubts(Review("some-id"))
    ()
    """
    columns = tuple(doubt.sentence for doubt in review.doubts)
    tables = (doubt_of_table(review, table) for table in review.unplaced.values())
    return (*columns, *doubts_of_folders(review), *tables, *doubts_of_classes(review))


def doubts_of_classes(review: Review) -> tuple[str, ...]:
    """A guessed class of a single column, and scored rows that contradict the classes."""
    return (*doubts_of_roles(review.roles or Roles(), review.classes), *_said_once(review))


_ASKED: dict[About, str] = {
    "target": "which column is the target?",
    "labels": "how are the shares in the target to be read?",
    "classes": "what are the model's classes, in its order?",
    "scale": "are the outputs shares or percentages?",
    "order": "which column is which?",
    "level": "what is the level of the interval?",
    "outputs": "which column holds the predictions?",
}


def open_questions(review: Review) -> tuple[str, ...]:
    """Each open question about columns and classes in one short sentence; untrusted text.

    Examples
    --------
    >>> from kdcal_core.data import Choice, Doubt
    >>> doubt = Doubt("time", "...", (Choice("day", "Order the rows by day"), Choice("", "No")))
    >>> open_questions(Review("some-id", doubts=(doubt,)))
    ("are the rows in the order of 'day'?",)
    """
    asked = []
    for one in review.doubts:
        names = listed(
            [f"{choice.answer[:40]!r}" for choice in one.choices if choice.answer], 3, last="or"
        )
        if one.about == "cluster":
            asked.append(f"do rows of one {names} belong together?")
        elif one.about == "time":
            asked.append(f"are the rows in the order of {names}?")
        else:
            asked.append(_ASKED[one.about])
    if doubts_of_roles(review.roles or Roles(), review.classes):
        asked.append("which class do the probabilities belong to?")
    return tuple(asked)


def doubts_of_folders(review: Review) -> tuple[str, ...]:
    """Columns that only some files of a folder have, unless it was accepted; untrusted text."""
    tables = (*review.all_tables, *review.watched.values())
    found = dict.fromkeys(doubt_of_partial(table.partial) for table in tables if table.partial)
    return tuple(one for one in found if one not in review.accepted)


def doubt_of_table(review: Review, table: TableInfo) -> str:
    """Why a table has no place yet, and what can be done; untrusted text."""
    roles, name = review.roles or Roles(), f"{table.name[:80]!r}"
    if table.other_names:
        pairs = [f"{new[:60]!r} for {old[:60]!r}" for new, old in table.other_names]
        return (
            f"{name} names its columns otherwise than the calibration table: {listed(pairs, 4)}. "
            "It is not used until you say whether they mean the same."
        )
    if roles.target is None or roles.target in table.column_names:
        return f"{name} had no column of the {_truth(review)} when it was loaded: it is not used."
    target = f"{roles.target[:60]!r}"
    return (
        f"{name} has the inputs but no column {target}, the {_truth(review)}, so nothing can be "
        f"judged on its rows: it is not used. If the column has another name there, rename it to "
        f"{target} and load the file again. Without it the rows can serve as foreign rows, to see "
        "how confident the model stays out of distribution."
    )


def _truth(review: Review) -> str:
    return "outcome" if review.task == "regression" else "true class"


def doubts_of_rows(review: Review) -> tuple[str, ...]:
    """What the scored rows say against the classes, unless it was accepted; untrusted text."""
    return tuple(_of_sets([which], doubt) for which, doubt in _of_rows(review))


def _of_rows(review: Review) -> list[tuple[str, str]]:
    """Each doubt of scored rows that was not accepted, with its set."""
    found = [(which, one) for which, info in review.sets.items() for one in info.doubts]
    return [(which, one) for which, one in found if _of_sets([which], one) not in review.accepted]


def _of_sets(sets: Sequence[str], doubt: str) -> str:
    return f"{listed(sets).capitalize()} set: {in_sentence(doubt)}"


def _said_once(review: Review) -> Iterator[str]:
    """The doubts of scored rows, of which those that differ in numbers alone are one."""
    alike: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for which, doubt in _of_rows(review):
        alike.setdefault(tuple(_NUMBER.split(doubt)), []).append((which, doubt))
    for (first, *words), same in alike.items():
        each = zip(*(_NUMBER.findall(doubt) for _, doubt in same), strict=True)
        numbers = [one[0] if len({*one}) == 1 else listed(one) for one in each]
        said = "".join(f"{number}{more}" for number, more in zip(numbers, words, strict=True))
        yield _of_sets([which for which, _ in same], first + said)


def accept_rows(workspace: Workspace, review_id: str) -> Review:
    """Say that the roles are right, whatever the scored rows say against them."""
    return _accept(workspace, review_id, doubts_of_rows)


def accept_folders(workspace: Workspace, review_id: str) -> Review:
    """Go on without the columns that only some files of a folder have."""
    return _accept(workspace, review_id, doubts_of_folders)


def _accept(
    workspace: Workspace, review_id: str, doubts: Callable[[Review], tuple[str, ...]]
) -> Review:
    def change(review: Review) -> Review:
        return replace(review, accepted=(*review.accepted, *doubts(review)))

    return change_review(workspace, review_id, change)


def may_be_swapped(review: Review) -> bool:
    """Whether exchanging two classes would settle a doubt, and is possible."""
    guessed = doubts_of_roles(review.roles or Roles(), review.classes)
    return can_swap(review) and (
        bool(guessed) or any(info.swapped for info in review.sets.values())
    )


def can_swap(review: Review) -> bool:
    """Whether the two classes can be exchanged; not if a model's file names them."""
    if len(review.classes) != 2 or review.roles is None or review.task == "regression":
        return False
    if review.model is None and review.roles.output_kind in CONFIDENCES:
        return False  # the column of the predicted class names the class of each row
    named = review.model is not None and review.model.named_classes
    return not named if review.model is not None else bool(review.roles.outputs)


def swap_classes(workspace: Workspace, review_id: str) -> Review:
    """Exchange the two classes of the probabilities; the rows must be scored again.

    Raises
    ------
    InputError
        If there are not two classes, or the model's file names them.
    """
    review = workspace.read(review_id)
    roles = review.roles
    if roles is None or not can_swap(review):
        raise InputError(
            "The classes cannot be swapped",
            fix="Choose the column of each class, or check the coding of the target.",
        )
    if review.model is not None:
        return set_roles(workspace, review_id, roles, review.classes[::-1])
    return set_roles(workspace, review_id, swapped(roles, review.classes))


def confirm_class(workspace: Workspace, review_id: str) -> Review:
    """Confirm the class that was guessed for a single column, without scoring rows again."""
    review = workspace.read(review_id)
    roles = replace(review.roles or Roles(), class_by="name")
    return set_roles(workspace, review_id, roles, review.classes)
