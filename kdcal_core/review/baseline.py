"""The other review with which limits of checks compare."""

from __future__ import annotations

from collections.abc import Iterable

from kdcal_core.errors import InputError
from kdcal_core.review.review import Review
from kdcal_core.review.workspace import Workspace
from kdcal_core.text import listed

_FIX = "Choose another review under Limits, or give these checks limits of their own."


def baseline_of(workspace: Workspace, review: Review) -> Review:
    """The review with which this one's limits compare.

    Raises
    ------
    InputError
        Where none is chosen, it is gone, it has no scored rows, or it has another task or other
        classes.
    """
    chosen = review.question.baseline
    if chosen is None:
        raise InputError("No review is chosen that limits could compare with", fix=_FIX)
    if not workspace.exists(chosen):
        raise InputError(
            "The review that limits compare with is no longer on this machine", fix=_FIX
        )
    other = workspace.read(chosen)
    require_alike(review, other)
    return other


def require_alike(review: Review, other: Review) -> None:
    """Refuse another review whose checks cannot be compared with those of this one.

    The other review may ask about another event: its rows are measured anew, for the event of this
    one (`kdcal_core.tasks.baseline_settings`). A stored audit cannot be, so that gates refuse one
    of another event.

    Raises
    ------
    InputError
        If it is the same review, has no scored rows, or has another task or other classes.
    """
    named = f"The review {other.title[:80]!r}, which limits compare with,"
    if other.id == review.id:
        raise InputError("A review cannot be compared with itself", fix=_FIX)
    if not other.ready:
        raise InputError(f"{named} has no scored rows", fix=f"Finish it on the Load page. {_FIX}")
    if other.task != review.task:
        raise InputError(f"{named} is of a {other.task}, and this one of a {review.task}", fix=_FIX)
    if sorted(other.classes) != sorted(review.classes):
        theirs, ours = (
            listed([repr(name[:40]) for name in one.classes], 5) for one in (other, review)
        )
        raise InputError(f"{named} has the classes {theirs}, and this one {ours}", fix=_FIX)


def alike(review: Review, others: Iterable[Review]) -> tuple[Review, ...]:
    """Those reviews that this one can be compared with."""
    found = []
    for other in others:
        try:
            require_alike(review, other)
        except InputError:
            continue
        found.append(other)
    return tuple(found)
