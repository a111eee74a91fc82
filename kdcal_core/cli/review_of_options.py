"""The options of a command as named files, and what is said about the review made of them."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.review import (
    NamedFiles,
    Review,
    ReviewReader,
    Which,
    Workspace,
    may_be_swapped,
    open_doubts,
)
from kdcal_core.store.disk import digest_of
from kdcal_core.text import listed, printable

_SHOWN = 3


def named_files(options: argparse.Namespace) -> NamedFiles:
    """What the options of a command name."""
    names = {one.name for one in fields(NamedFiles)}
    return NamedFiles(**{name: value for name, value in vars(options).items() if name in names})


def model_words(review: Review) -> str:
    """The model and its signature; empty without one."""
    if review.model is None:
        return ""
    signed = f". {review.signature.said}" if review.signature else ""
    return printable(f"Model: {review.model.name}, {review.model.kind}{signed}")


def calibrator_words(options: argparse.Namespace) -> str:
    """Whose output is judged; empty without a calibrator."""
    if options.calibrator is None:
        return ""
    name = printable(Path(options.calibrator).name, 80)
    return f"The results are about the output of the calibrator {name}, fitted on other rows."


def calibrator_input(options: argparse.Namespace) -> dict[str, dict[str, Any] | None]:
    """The calibrator as the JSON names it; nothing without one.

    Raises
    ------
    InputError
        If there is no such file.
    """
    if options.calibrator is None:
        return {}
    path = Path(options.calibrator)
    if not path.is_file():
        raise InputError("There is no such file", fix="Check its path.", file=str(path))
    return {"calibrator": {"name": path.name, "sha256": digest_of(path)}}


def model_input(review: Review) -> dict[str, Any] | None:
    """The model as the JSON names it; None without one."""
    info = review.model
    if info is None:
        return None
    return {"name": info.name, "kind": info.kind, "sha256": info.digest}


def outputs_words(review: Review) -> str:
    """The columns that were read as predictions."""
    roles = review.roles or Roles()
    kinds = {
        "logit": ("logit", "logits"),
        "log_probability": ("log probability", "log probabilities"),
    }
    what, many = kinds.get(roles.output_kind, ("probability", "probabilities"))
    if len(roles.outputs) == 1:
        ((name, column),) = roles.outputs
        return printable(f"Column {column} holds the {what} of class {name}.", 500)
    classes, columns = (listed(part, _SHOWN) for part in zip(*roles.outputs, strict=True))
    return printable(f"Columns {columns} hold the {many} of classes {classes}.", 500)


def event_words(review: Review, event: int | None) -> str:
    """The class whose probability is judged, or how to ask for one of two; else empty."""
    if event is not None:
        return printable(f"The results are about the probability of {review.classes[event]}.", 500)
    if review.event_class is None:
        return ""
    name = review.classes[review.event_class]
    return printable(
        "The results are about the confidence in the predicted class. For the probability of "
        f"{name}: --event {shlex.quote(name)}.",
        500,
    )


def table_notes(review: Review, which: Which) -> tuple[str, ...]:
    """Notes on single columns from reading the table."""
    return tuple(note for note in review.tables[which].notes if note.startswith("Column "))


def doubts_words(review: Review) -> tuple[str, ...]:
    """The open doubts about the classes, the last one with the option that settles it."""
    doubts = list(open_doubts(review))
    if doubts:
        doubts[-1] += _fix(review)
    return tuple(printable(doubt, 1000) for doubt in doubts)


def copies_words(workspace: Workspace, review: Review) -> tuple[str, ...]:
    """Warnings about more equal rows in two of the review's tables than by chance."""
    if len(review.all_tables) < 2:
        return ()
    from kdcal_core.tasks import Sets, equal_sets  # slow to import

    found = equal_sets(Sets(ReviewReader(workspace, review.id, review=review)))
    return tuple(printable(note.sentence, 1000) for note in found.notes if note.about == "copies")


def _fix(review: Review) -> str:
    roles = review.roles or Roles()
    if not may_be_swapped(review):
        return ""
    first, second = review.classes
    if review.model is not None:
        return f" To swap them: --classes {shlex.quote(f'{second},{first}')}."
    column_of = dict(roles.outputs)
    if len(column_of) == 2:
        words = f"{first}={column_of[second]},{second}={column_of[first]}"
        return f" To swap them: --outputs {shlex.quote(words)}."
    ((name, column),) = roles.outputs
    other = next(one for one in review.classes if one != name)
    swap = f"--outputs {shlex.quote(f'{other}={column}')}"
    if roles.class_by == "name":
        return f" To swap them: {swap}."
    keep = f"--outputs {shlex.quote(f'{name}={column}')}"
    return f" Say which it is: {keep}, or {swap}."
