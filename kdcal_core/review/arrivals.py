"""Several files at once: told apart by name and content, read side by side, each put in its place.

Places can be changed afterwards: tables exchange theirs, and the roles are read again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Literal, cast, get_args

from kdcal_core.data.readings import Reading
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.review.further_tables import check_aside
from kdcal_core.review.requirements import (
    check_columns,
    check_unchanged,
    keep_fitting,
)
from kdcal_core.review.review import WHICH, Review, TableInfo
from kdcal_core.review.steps import (
    Cancelled,
    change_review,
    head_of,
    inspect,
    one_file_at_a_time,
    read_again,
    read_model_file,
    read_table_file,
    remove_file,
    unscored,
    with_predictions,
    with_reading,
    with_table,
)
from kdcal_core.review.workspace import Workspace
from kdcal_core.text import counted, listed

Place = Literal["model", "calibration", "evaluation", "training", "foreign"]
TablePlace = Literal["calibration", "evaluation", "training"]
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet")

_ORDER: tuple[Place, ...] = get_args(Place)
_WORDS: dict[str, frozenset[str]] = {
    "training": frozenset(("train", "training", "fit", "fitted")),
    "calibration": frozenset(("cal", "calib", "calibration", "calibrate")),
    "validation": frozenset(("val", "valid", "validation", "dev", "development")),
    "evaluation": frozenset(("eval", "evaluation", "test", "testing", "holdout", "final")),
    "foreign": frozenset(("ood", "foreign", "shift", "shifted", "novel")),
}
_TREES = b"tree"  # how the text of a LightGBM model begins
_AT_ONCE = 4


@dataclass(frozen=True)
class Arrival:
    """A file as it arrives; ``name`` is its owner's name for it. Untrusted text."""

    source: BinaryIO | Path
    name: str


def places_of(files: Sequence[Arrival], review: Review) -> tuple[Place | None, ...]:
    """What each file is, by its name, its content and what the review has already.

    A model is known by its suffix. Of tables the name may say the set: "cal", "val", "test",
    "train", "ood" and the like as a word of its own. A table of the same name as one that is there
    replaces it. Others take the places that are free, the calibration set first.

    Returns
    -------
    tuple
        None for a table that finds no place.

    Examples
    --------
    >>> import io
    >>> names = ("test.csv", "forest.skops", "train.csv")
    >>> files = [Arrival(io.BytesIO(b"a,b"), name) for name in names]
    >>> places_of(files, Review("some-id"))
    ('calibration', 'model', 'training')
    >>> places_of(files[:1] + [Arrival(io.BytesIO(b"a,b"), "rows.csv")], Review("some-id"))
    ('evaluation', 'calibration')
    """
    found: dict[int, Place] = {}
    tables = {at: file for at, file in enumerate(files) if not _is_model(file)}
    found |= dict.fromkeys((at for at in range(len(files)) if at not in tables), "model")
    there = {table.name: which for which in WHICH if (table := review.tables.get(which))}
    for at, file in tables.items():
        if file.name in there and there[file.name] not in found.values():
            found[at] = there[file.name]
    hints = {at: _hint(file.name) for at, file in tables.items() if at not in found}
    for at, hint in hints.items():
        if hint == "foreign" or (hint in get_args(TablePlace) and hint not in found.values()):
            found[at] = cast(Place, hint)
    missing = "calibration" not in review.tables
    for at in [at for at, hint in hints.items() if at not in found and hint != "training"]:
        # a validation set calibrates, unless a calibration set is there as well
        free = [one for one in WHICH if one not in found.values() and one not in review.tables]
        if hints[at] == "validation" and not free and "calibration" not in found.values():
            free = ["calibration"]
        if free:
            found[at] = free[0]
    if missing and "calibration" not in found.values():
        tests = [at for at, place in found.items() if place == "evaluation"]
        found |= dict.fromkeys(tests[:1], "calibration")
    return tuple(found.get(at) for at in range(len(files)))


def add_files(
    workspace: Workspace,
    review_id: str,
    files: Sequence[Arrival],
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Add a model and tables in any order; all are read side by side, under one progress.

    A file that cannot be used does not stop the others: they are added, and then its error is
    raised.

    Parameters
    ----------
    files : sequence of Arrival
        Their places are those of `places_of`.
    progress, cancelled
        As for `kdcal_core.review.steps.add_model`.

    Raises
    ------
    InputError
        For the first file that is refused, or that finds no place.
    """
    with one_file_at_a_time(workspace, review_id, cancelled):
        before = workspace.read(review_id)
        places = places_of(files, before)
        errors = [_no_place(file) for file, at in zip(files, places, strict=True) if at is None]
        chosen = sorted(
            ((at, file) for file, at in zip(files, places, strict=True) if at is not None),
            key=lambda pair: _ORDER.index(pair[0]),
        )
        # columns are read with the model where both are here
        tables = [at for at, _ in chosen if at in WHICH]
        alone = replace(before, tables={}, roles=None) if "calibration" in tables else before
        shared = _Shared(progress, len(chosen))

        def read(number: int, place: Place, file: Arrival) -> Any:
            report = shared.part(number)
            work: Any = read_model_file if place == "model" else read_table_file
            review = alone if place == "model" else before
            answer = work(workspace, review, file.source, file.name, report, cancelled)
            shared.ended(number)
            return answer

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            readings = [
                pool.submit(read, number, place, file)
                for number, (place, file) in enumerate(chosen)
            ]
        for one in readings:
            error = one.exception()
            if error is not None and not isinstance(error, InputError):
                for (place, _), other in zip(chosen, readings, strict=True):
                    if place != "model" and other.exception() is None:
                        remove_file(workspace, before, other.result()[0])
                raise error  # stopped, or the disk is full
        new_model = False
        for (place, file), one in zip(chosen, readings, strict=True):
            try:
                read_file = one.result()
                _put(workspace, review_id, place, file, read_file)
                new_model |= place == "model"
                if place == "calibration" and new_model:
                    _read_with_model(workspace, review_id, read_file[1])
            except InputError as refused:
                errors.append(refused.at(file=file.name))
        review = with_predictions(workspace, review_id, cancelled)
        if errors:
            raise errors[0]
        return review


def move_table(
    workspace: Workspace, review_id: str, place: TablePlace, to: TablePlace | None
) -> Review:
    """Give a table another place; one that is there moves to the place that becomes free.

    Parameters
    ----------
    place : {"calibration", "evaluation", "training"}
        Where the table is.
    to : str or None
        Where it belongs; None to leave it out of the review.

    Raises
    ------
    InputError
        There is no table in this place, or a set would lack a column that has a role.
    """
    before = workspace.read(review_id)
    every: dict[str, TableInfo | None] = {**before.tables, "training": before.training}
    moved = every.pop(place, None)
    if moved is None:
        raise InputError("There is no table in this place", fix="Load the page again.")
    if to is not None:
        every[place], every[to] = every.get(to), moved
    tables: dict[str, TableInfo] = {}
    for which in WHICH:
        if (table := every.get(which)) is not None:
            tables[which] = table
    before_name = next((table.name for table in before.tables.values()), None)
    after = replace(before, tables=tables, training=every.get("training"), sample=None)
    changed = tables.get("calibration") != before.tables.get("calibration")
    reading: Reading | None = None
    if changed and tables:
        reading = read_again(after, workspace.folder(review_id), before.chosen_task, {})

    def change(now: Review) -> Review:
        check_unchanged(before, now)
        result = replace(now, tables=after.tables, training=after.training, sample=None)
        if reading is not None:
            result = replace(with_reading(result, reading), answers={})
        elif not result.tables:
            result = replace(result, roles=None, doubts=(), answers={})
        for table in result.tables.values():
            if result.roles is not None:
                check_columns(table, result.roles)
        if tables and now.title == before_name:
            result = replace(result, title=next(iter(tables.values())).name)
        result = keep_fitting(result)
        return result if result.tables == now.tables else unscored(result)

    change_review(workspace, review_id, change)
    return with_predictions(workspace, review_id)


class _Shared:
    """One progress for files that are read side by side: the mean of their shares."""

    def __init__(self, progress: Progress | None, n: int) -> None:
        self._progress = progress
        self._shares = [0.0] * n
        self._n_ended = 0
        self._lock = Lock()

    def ended(self, number: int) -> None:
        self._n_ended += 1
        self.part(number)(1.0, f"{self._n_ended:,} of {counted(len(self._shares), 'file')} read")

    def part(self, number: int) -> Progress:
        def report(share: float, note: str) -> None:
            with self._lock:
                self._shares[number] = share
                if self._progress is not None:
                    self._progress(sum(self._shares) / len(self._shares), note)

        return report


def _put(workspace: Workspace, review_id: str, place: Place, file: Arrival, read: Any) -> None:
    """Make what was read part of the review; a table that does not fit is deleted."""
    if place == "model":
        change: Callable[[Review], Review] = read
        change_review(workspace, review_id, change)
        return
    table, reading = read

    def with_it(review: Review) -> Review:
        if place in WHICH:
            return with_table(review, place, table, reading)
        check_aside(review, table, foreign=place == "foreign")
        if place == "training":
            return replace(review, training=table)
        return replace(review, foreign={**review.foreign, file.name: table})

    try:
        change_review(workspace, review_id, with_it)
    except BaseException:
        remove_file(workspace, workspace.read(review_id), table)
        raise


def _read_with_model(workspace: Workspace, review_id: str, alone: Reading) -> None:
    """Read the columns of a table again that came with the model.

    A model that does not name its task is read again where the table is of the other one.
    """
    before = workspace.read(review_id)
    folder, model = workspace.folder(review_id), before.model
    assert model is not None
    assert before.model_file is not None
    understood = None
    if alone.roles.task != model.task and before.chosen_task is None:
        hinted = replace(before, model=None, roles=alone.roles)
        understood = inspect(hinted, folder / before.model_file, model.name, None, None, None)
    reading = None if understood else read_again(before, folder, model.task, before.answers)

    def change(now: Review) -> Review:
        check_unchanged(before, now)
        if understood is not None:
            return understood(now)
        assert reading is not None
        return with_reading(now, reading)

    change_review(workspace, review_id, change)


def _is_model(file: Arrival) -> bool:
    suffix = Path(file.name).suffix.lower()
    if suffix in TABLE_SUFFIXES:
        return suffix == ".txt" and head_of(file.source).startswith(_TREES)
    return True


def _hint(name: str) -> str | None:
    words = set(re.split(r"[\W_]+", Path(name).stem.casefold()))
    return next((place for place, known in _WORDS.items() if words & known), None)


def _no_place(file: Arrival) -> InputError:
    return InputError(
        "It is not known which set this table is, because there are others already",
        fix=f"Put {listed(('calibration', 'evaluation', 'training'), last='or')} into its name, "
        "or take one of the others out of the review first.",
        file=file.name,
    )
