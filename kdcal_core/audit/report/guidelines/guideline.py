"""A guideline, its items, and what a report answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kdcal_core.audit.content import AuditContent
from kdcal_core.audit.project import Audit

Says = Callable[[AuditContent, Audit | None], str]


def nothing(content: AuditContent, audit: Audit | None) -> str:
    """The answer of an item that no number answers."""
    return ""


@dataclass(frozen=True)
class Item:
    """One item of a guideline.

    Attributes
    ----------
    number : str
        Its number or heading in the guideline.
    asks : str
        What it asks for, in our own words.
    says : callable
        ``(content, audit) -> what this report says``, which may be empty. It may hold names.
    person : str
        What a person must write; empty where the report says it all.
    compared : bool
        Whether ``asks`` was compared with the guideline's own text, and not only with its headings.
    """

    number: str
    asks: str
    says: Says = nothing
    person: str = ""
    compared: bool = True


@dataclass(frozen=True)
class Guideline:
    """A guideline with its items."""

    name: str
    title: str
    link: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Answer:
    """An item with what the report says of it. Untrusted text."""

    item: Item
    says: str


def answers(guideline: Guideline, content: AuditContent, audit: Audit | None) -> tuple[Answer, ...]:
    """Every item of a guideline, answered from an audit."""
    return tuple(
        Answer(one, one.says(content, audit) or ("" if one.person else _UNEXAMINED))
        for one in guideline.items
    )


_UNEXAMINED = "This audit did not examine it."
