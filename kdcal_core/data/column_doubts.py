"""What a table's columns were taken for, and what of it is doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from kdcal_core.data.schema import Roles
from kdcal_core.text import listed

About = Literal[
    "target",
    "labels",
    "classes",
    "scale",
    "order",
    "level",
    "outputs",
    "cluster",
    "time",
]
MOST_CHOICES = 6
_LOOKED_AT = 20_000  # rows, evenly spread


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
        "target": which column; "labels": how shares are read that stand in place of true classes;
        "classes": the order of a model's classes whose file does not name
        them; "scale": percentages or not; "order": which column belongs to which class, or which of
        two is the outcome; "level": that of an interval; "outputs": why there are none, which
        column may hold them, and what can be judged without them; "cluster": whether rows of one
        patient, customer or the like depend on one another; "time": whether rows are in the order
        of a column of dates, and near ones alike.
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


class ColumnReader:
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


def they_hold(columns: Sequence[str]) -> str:
    """The beginning of a sentence on what columns hold.

    Examples
    --------
    >>> they_hold(["a"]), they_hold(["a", "b"])
    ("The column 'a' holds", "The columns 'a' and 'b' hold")
    """
    what = listed([repr(name[:60]) for name in columns], 3)
    return f"The column {what} holds" if len(columns) == 1 else f"The columns {what} hold"
