"""Checks that a review has what a step needs, and the defaults for what it does not say."""

from __future__ import annotations

from pathlib import Path

from kdcal_core.data.types import Roles
from kdcal_core.errors import InputError
from kdcal_core.models.protocol import ModelInfo
from kdcal_core.review.model import WHICH, Review, TableInfo
from kdcal_core.review.stored import gone
from kdcal_core.text import listed


def check_which(which: str) -> None:
    """Refuse a name that is not a set's."""
    if which not in WHICH:
        raise ValueError(f"which must be one of {WHICH}, not {which!r}")


def check_classes(model: ModelInfo | None, roles: Roles, classes: tuple[str, ...] | None) -> None:
    """Refuse class names that do not match the number of outputs, and a name given twice."""
    if classes is None or (roles.task == "regression" and not classes):
        return
    if roles.task == "regression":
        raise InputError(
            "A regression has no classes", fix="Leave the class names out, or change the task."
        )
    expected = len(model.classes) if model else max(2, len(roles.outputs))
    if len(classes) != expected:
        raise InputError(
            f"There are {len(classes)} class names, but {expected} outputs",
            fix="Give one name for each output, in the order of the outputs.",
        )
    if len(set(classes)) != len(classes):
        raise InputError("A class name occurs twice", fix="Give every class its own name.")


def no_target_words(review: Review) -> str:
    """Why no column can be the target, without a full stop. Holds untrusted names.

    Examples
    --------
    >>> no_target_words(Review("some-id"))
    'No column is known to hold the true class'
    """
    if review.task == "regression":
        return "No column is known to hold the outcome"
    words = "No column is known to hold the true class"
    table = review.tables.get("calibration")
    columns = table.columns if table else ()
    lone = [repr(c.name[:40]) for c in columns if c.n_distinct == 1 and not c.pair]
    if not lone:
        return words
    hold = "holds one value" if len(lone) == 1 else "hold one value each"
    return f"{words}. It has at least two classes, and {listed(lone, 3)} {hold}"


def check_complete(review: Review) -> Roles:
    """The roles of a review, after a check that it has everything that scoring needs."""
    if "calibration" not in review.tables or review.roles is None:
        raise InputError("There is no calibration table yet", fix="Add it on the Load page.")
    name = review.tables["calibration"].name
    regression = review.task == "regression"
    if review.roles.target is None:
        raise InputError(
            no_target_words(review),
            fix="Give one column the role of the target.",
            file=name,
        )
    if regression and review.model is None and not review.roles.parameters:
        raise InputError(
            "There is neither a model nor a column that holds its predictions",
            fix="Add the model, or give the columns of its predictions the role 'Model output'.",
            file=name,
        )
    if not regression and review.model is None and not review.roles.outputs:
        raise InputError(
            "There is neither a model nor a probability column for each class",
            fix="Add the model, or give its probability columns the role 'Model output'. Where "
            "the target is a quantity, choose the task regression.",
            file=name,
        )
    return review.roles


def check_unchanged(before: Review, now: Review) -> None:
    """Refuse the result of a step under which the review was changed."""
    parts = ("model_file", "tables", "roles", "classes")
    if any(getattr(before, part) != getattr(now, part) for part in parts):
        raise InputError(
            "The review was changed meanwhile, so the result was discarded",
            fix="Start the step again.",
        )


def check_kept(review: Review, folder: Path) -> None:
    """Refuse a review whose tables are missing on disk."""
    for table in review.tables.values():
        if not (folder / table.file).is_file():
            raise gone(table.name)


def default_classes(
    model: ModelInfo | None, roles: Roles | None, table: TableInfo | None
) -> tuple[str, ...]:
    """The class names as the model, or else the outputs, name them."""
    if roles is not None and roles.task == "regression":
        return ()
    if model is not None:
        return model.classes
    names = tuple(name for name, _ in roles.outputs) if roles else ()
    if len(names) != 1 or roles is None or table is None:
        return names
    # one output is the probability of one class of two; the target names the other
    pair = next((c.pair for c in table.columns if c.name == roles.target), ())
    if names[0] not in pair:
        return pair or names  # scoring reports the class that is not among them
    return (*(label for label in pair if label != names[0]), *names)
