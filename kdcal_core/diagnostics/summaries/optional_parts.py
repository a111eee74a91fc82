"""Parts that the summaries of some rows have, and those of others do not."""

from __future__ import annotations

from typing import Literal, Protocol, Self, TypeVar

from kdcal_core.errors import InputError


class _Addable(Protocol):
    def __add__(self, other: Self, /) -> Self: ...


Part = TypeVar("Part", bound=_Addable)

_UNLIKE = {
    "weights": "One summary is of weighted rows and the other is not",
    "clusters": "One summary is of rows in clusters and the other is not",
    "times": "One summary is of rows in the order of time and the other is not",
    "groups": "Two summaries have different groups",
}


def sum_of_parts(
    one: Part | None, other: Part | None, what: Literal["weights", "clusters", "times", "groups"]
) -> Part | None:
    """The part of the rows of both summaries; None if neither has it.

    Raises
    ------
    InputError
        If one alone has it, and as ``one + other``.
    """
    if one is None and other is None:
        return None
    if one is None or other is None:
        raise InputError(_UNLIKE[what], fix="Summarise the rows of each alone.")
    return one + other
