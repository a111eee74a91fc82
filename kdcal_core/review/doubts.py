"""What is doubtful about the classes of a review's probabilities, and how it is put right."""

from __future__ import annotations

from dataclasses import replace

from kdcal_core.data.orientation import doubts_of_roles, swapped
from kdcal_core.data.types import Roles
from kdcal_core.errors import InputError
from kdcal_core.review.model import Review
from kdcal_core.review.steps import set_roles
from kdcal_core.review.workspace import Workspace


def open_doubts(review: Review) -> tuple[str, ...]:
    """What is to be said above every page until it is put right; untrusted text.

    A class that was guessed for a lone column, and scored rows that speak against the classes
    beyond chance.

    Examples
    --------
    >>> open_doubts(Review("some-id"))
    ()
    """
    guessed = doubts_of_roles(review.roles or Roles(), review.classes)
    found = [
        f"{which.capitalize()} set: {doubt[0].lower()}{doubt[1:]}"
        for which, info in review.sets.items()
        for doubt in info.doubts
    ]
    return (*guessed, *found)


def may_be_swapped(review: Review) -> bool:
    """Whether there is a doubt that exchanging two classes settles, and they can be exchanged."""
    guessed = doubts_of_roles(review.roles or Roles(), review.classes)
    return can_swap(review) and (
        bool(guessed) or any(info.swapped for info in review.sets.values())
    )


def can_swap(review: Review) -> bool:
    """Whether the two classes can be exchanged: those that a model's file names cannot."""
    if len(review.classes) != 2 or review.roles is None or review.task == "regression":
        return False
    named = review.model is not None and review.model.named_classes
    return not named if review.model is not None else bool(review.roles.outputs)


def swap_classes(workspace: Workspace, review_id: str) -> Review:
    """Exchange the two classes that the probabilities speak of; the rows are to be scored again.

    Raises
    ------
    InputError
        There are not two, or the model's file names them.
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
    """Take the class that was guessed for a lone column as said; nothing is scored again."""
    review = workspace.read(review_id)
    roles = replace(review.roles or Roles(), class_by="name")
    return set_roles(workspace, review_id, roles, review.classes)
