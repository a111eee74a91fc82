"""Several files at once: told apart by name and content, read side by side, each put in its place.

A place that no name says is a guess, which the table's columns may correct. Places can be changed
afterwards: tables exchange theirs, and the roles are read again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Literal, cast, get_args

from kdcal_core.data.column_doubts import Reading
from kdcal_core.data.schema import Roles
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.review.added_files import (
    inspect,
    read_model_file,
    read_table_file,
    with_predictions,
    with_reading,
    with_table,
)
from kdcal_core.review.changes import (
    Cancelled,
    change_review,
    head_of,
    one_file_at_a_time,
    remove_file,
    unscored,
)
from kdcal_core.review.further_tables import check_aside
from kdcal_core.review.other_names import other_names, renamed
from kdcal_core.review.requirements import (
    check_columns,
    check_unchanged,
    keep_fitting,
    place_note,
    shared_features,
    undoubted,
    without_place_note,
)
from kdcal_core.review.review import WHICH, Review, TableInfo, Which
from kdcal_core.review.signature import add_signature, signed_part, verify_again
from kdcal_core.review.steps import read_again
from kdcal_core.review.workspace import Workspace
from kdcal_core.text import counted

Place = Literal[
    "model", "calibration", "evaluation", "training", "foreign", "signature", "signature_key"
]
TablePlace = Literal["calibration", "evaluation", "training", "foreign", "unplaced"]
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
_SINGLE: tuple[TablePlace, ...] = (*WHICH, "training")  # the places of one table each


@dataclass(frozen=True)
class Arrival:
    """A file as it arrives; ``name`` is its owner's name for it. Untrusted text."""

    source: BinaryIO | Path
    name: str


def places_of(files: Sequence[Arrival], review: Review) -> tuple[Place | None, ...]:
    """What each file is, by its name, its first bytes and what the review has already.

    A model is known by its suffix, and so are its signature and a public key. Of tables the name
    may say the set: "cal", "val", "test", "train", "ood" and the like as a word of its own, with or
    without a number. A table of the same name as one that is there replaces it. Others take
    the places that are free: the calibration set first, then the evaluation set, the training set,
    and the foreign rows, of which there may be any number. The last two are guesses, made only of a
    table whose name says nothing.

    Returns
    -------
    tuple
        None for a table whose name says a place that another of the files has taken.

    Examples
    --------
    >>> import io
    >>> names = ("test.csv", "forest.skops", "train.csv")
    >>> files = [Arrival(io.BytesIO(b"a,b"), name) for name in names]
    >>> places_of(files, Review("some-id"))
    ('calibration', 'model', 'training')
    >>> places_of(files[:1] + [Arrival(io.BytesIO(b"a,b"), "rows.csv")], Review("some-id"))
    ('evaluation', 'calibration')
    >>> places_of(files[2:] + [Arrival(io.BytesIO(b"a,b"), "train_b.csv")], Review("some-id"))
    ('training', None)
    """
    return _places(files, review)[0]


def _places(
    files: Sequence[Arrival], review: Review
) -> tuple[tuple[Place | None, ...], frozenset[int]]:
    """The places, and the numbers of the tables whose place was guessed."""
    found: dict[int, Place] = {}
    for at, file in enumerate(files):
        if (part := signed_part(file.name)) is not None:
            found[at] = part
        elif _is_model(file):
            found[at] = "model"
    tables = {at: file for at, file in enumerate(files) if at not in found}
    there: dict[str, Place] = {table.name: "foreign" for table in review.foreign.values()}
    there |= {review.training.name: "training"} if review.training else {}
    there |= {table.name: which for which in WHICH if (table := review.tables.get(which))}
    for at, file in tables.items():
        place = there.get(file.name)
        if place == "foreign" or (place and place not in found.values()):
            found[at] = place
    hints = {at: _hint(file.name) for at, file in tables.items() if at not in found}
    for at, hint in hints.items():
        if hint == "foreign" or (hint in _SINGLE and hint not in found.values()):
            found[at] = cast(Place, hint)
    guessed = {at for at, hint in hints.items() if hint is None}
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
    for at in [at for at in hints if at in guessed and at not in found]:
        taken = review.training is not None or "training" in found.values()
        found[at] = "foreign" if taken else "training"
    return tuple(found.get(at) for at in range(len(files))), frozenset(guessed)


def add_files(
    workspace: Workspace,
    review_id: str,
    files: Sequence[Arrival],
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Add a model and tables in any order; all are read side by side, under one progress.

    A signature beside the model, and its maker's public key, are verified at the end.

    A file that cannot be used does not stop the others: they are added, and then its error is
    raised.

    Parameters
    ----------
    files : sequence of Arrival
        Their places are those of `places_of`. Where a name does not say the place, the columns may
        correct it: a table with a target calibrates rather than one without, and a table that has
        the features but not the target is taken for foreign rows. Where its name says that it is a
        set, it is kept without a place, and the review asks about it.
    progress, cancelled
        As for `kdcal_core.review.add_model`.

    Raises
    ------
    InputError
        For the first file that is refused, or whose name says a place that another has taken.
    """
    with one_file_at_a_time(workspace, review_id, cancelled):
        before = workspace.read(review_id)
        found, guessed = _places(files, before)
        places = {at: place for at, place in enumerate(found) if place is not None}
        errors = [
            _taken_place(file, files, places)
            for file, at in zip(files, found, strict=True)
            if at is None
        ]
        signed = [
            (part, file.source, file.name) for file in files if (part := signed_part(file.name))
        ]
        places = {at: place for at, place in places.items() if signed_part(files[at].name) is None}
        numbers = sorted(places, key=lambda at: _ORDER.index(places[at]))
        chosen = [(places[at], files[at]) for at in numbers]
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
        by_file = dict(zip(numbers, readings, strict=True))
        places = _by_target(places, guessed, by_file)
        for at in sorted(by_file, key=lambda at: _ORDER.index(places[at])):
            place, file = places[at], files[at]
            try:
                read_file = by_file[at].result()
                _put(workspace, review_id, place, file, read_file, guessed=at in guessed)
                new_model |= place == "model"
                if place == "calibration" and new_model:
                    _read_with_model(workspace, review_id, read_file[1])
            except InputError as refused:
                errors.append(refused.at(file=file.name))
        try:
            if signed:
                add_signature(workspace, review_id, signed)
            else:
                verify_again(workspace, review_id)
        except InputError as refused:
            errors.append(refused)
        review = with_predictions(workspace, review_id, cancelled)
        if errors:
            raise errors[0]
        return review


def move_table(
    workspace: Workspace,
    review_id: str,
    place: TablePlace,
    to: TablePlace | None,
    *,
    name: str = "",
) -> Review:
    """Give a table another place; one that is there moves to the place that becomes free.

    Parameters
    ----------
    place : {"calibration", "evaluation", "training", "foreign", "unplaced"}
        Where the table is.
    to : str or None
        Where it belongs; None to leave it out of the review.
    name : str
        Of the foreign tables, or of those without a place, the one that moves: its key there.

    Raises
    ------
    InputError
        There is no table in this place, or it would lack a column that it needs in the other.
    """
    before = workspace.read(review_id)
    if to == "evaluation" and place == "unplaced":
        before = renamed(workspace, before, name)
    every: dict[str, TableInfo | None] = {**before.tables, "training": before.training}
    foreign, unplaced = dict(before.foreign), dict(before.unplaced)
    named = {"foreign": foreign, "unplaced": unplaced}
    moved = named[place].pop(name, None) if place in named else every.pop(place, None)
    if moved is None:
        raise InputError("There is no table in this place", fix="Load the page again.")
    if to == place:
        return before
    moved = replace(moved, other_names=())
    aside = moved if to == "foreign" else None
    if to in _SINGLE:
        left, every[to] = every.get(to), moved
        if place not in named:
            every[place] = left
        else:
            aside = left
    if aside is not None:
        foreign[_new_name(aside.name, foreign)] = aside
    tables: dict[str, TableInfo] = {}
    for which in WHICH:
        if (table := every.get(which)) is not None:
            tables[which] = table
    training = every.get("training")
    before_name = next((table.name for table in before.tables.values()), None)
    placed: dict[str, Any] = {"tables": tables, "training": training}
    placed |= {"foreign": foreign, "unplaced": unplaced, "sample": None}
    after = replace(before, **placed)
    changed = tables.get("calibration") != before.tables.get("calibration")
    reading: Reading | None = None
    if changed and tables:
        reading = read_again(after, workspace.folder(review_id), before.chosen_task, {})

    def change(now: Review) -> Review:
        check_unchanged(before, now)
        result = replace(now, **placed)
        if reading is not None:
            result = replace(with_reading(result, reading), answers={})
        elif not result.tables:
            result = replace(result, roles=None, doubts=(), answers={})
        elif result.roles is not None and "evaluation" in result.tables:
            roles, lost = shared_features(result, result.roles, result.tables["evaluation"])
            result = replace(result, roles=roles, notes=(*result.notes, *lost))
        for table in result.tables.values():
            if result.roles is not None:
                check_columns(table, result.roles)
        if "calibration" in result.tables:
            if aside is not None:
                check_aside(result, aside, foreign=True)
            if training is not None and training != now.training:
                check_aside(result, training, foreign=False)
        if tables and now.title == before_name:
            result = replace(result, title=next(iter(tables.values())).name)
        result = keep_fitting(result)
        return result if result.tables == now.tables else unscored(result)

    change_review(workspace, review_id, change)
    return with_predictions(workspace, review_id)


def _new_name(name: str, foreign: Mapping[str, TableInfo]) -> str:
    """A key for a further foreign table: its name, with a number where that is taken."""
    names = (name, *(f"{name} ({at})" for at in range(2, len(foreign) + 3)))
    return next(one for one in names if one not in foreign)


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


def _by_target(
    places: dict[int, Place], guessed: Collection[int], readings: Mapping[int, Future[Any]]
) -> dict[int, Place]:
    """The places, where a guessed calibration set without a target changes with one that has it.

    What looks like its target is none where the other table has that column too, and its own.
    """
    tables = {at: readings[at].result() for at in guessed if readings[at].exception() is None}
    first = next((at for at in tables if places[at] == "calibration"), None)
    if first is None:
        return places
    names = tables[first][0].column_names
    apparent = tables[first][1].roles.target
    for at, (table, reading) in sorted(tables.items()):
        target = reading.roles.target
        if target and target not in names and apparent in (None, *table.column_names):
            return {**places, first: places[at], at: places[first]}
    return places


def _put(
    workspace: Workspace, review_id: str, place: Place, file: Arrival, read: Any, *, guessed: bool
) -> None:
    """Make what was read part of the review; a table that does not fit is deleted.

    A guessed place is noted unless it is that of a set. A table without the target gets another
    place, and none where its name says that it is a set. Training and foreign rows that come before
    the calibration table are checked when that comes.
    """
    if place == "model":
        change: Callable[[Review], Review] = read
        change_review(workspace, review_id, change)
        return
    table, reading = read

    def with_it(review: Review) -> Review:
        to = place
        review = _without_unplaced(without_place_note(review, file.name), file.name)
        if to == "evaluation" and (pairs := other_names(review, table, reading)):
            asked = replace(table, other_names=pairs)
            return replace(review, unplaced={**review.unplaced, file.name: asked})
        if to in WHICH and (calibrated := _instead_of_one_without_target(review, table, reading)):
            return calibrated
        if place != "calibration" and _only_without_target(review, table):
            if place == "evaluation" and not guessed:
                return replace(review, unplaced={**review.unplaced, file.name: table})
            to = "foreign" if guessed else place
        if to in WHICH:
            return with_table(_with_room(review, to, table.name), to, table, reading)
        if guessed or "calibration" in review.tables:
            check_aside(review, table, foreign=to == "foreign")
        if guessed:
            assert review.roles is not None
            why = "there are both sets already, and its name does not say what it is"
            if review.roles.target not in table.column_names:
                why = f"it has no column {review.roles.target!r}"
            note = place_note(file.name, "foreign" if to == "foreign" else "training", why)
            review = replace(review, notes=(*review.notes, note))
        if to == "training":
            return replace(review, training=table)
        keys = (key for key, one in review.foreign.items() if one.name == file.name)
        return replace(review, foreign={**review.foreign, next(keys, file.name): table})

    try:
        change_review(workspace, review_id, with_it)
    except BaseException:
        remove_file(workspace, workspace.read(review_id), table)
        raise


def _with_room(review: Review, which: Which, name: str) -> Review:
    """The review where a table of this name takes a place that another one may have.

    The other one becomes the evaluation set if that is free and its name says nothing against it;
    else a note says that it is taken out.
    """
    other = review.tables.get(which)
    if other is None or other.name == name:
        return review
    free = which == "calibration" and "evaluation" not in review.tables
    if free and _hint(other.name) != "calibration":
        return replace(review, tables={"evaluation": other})
    note = f"{other.name} was taken out: {name} took its place as the {which} set."
    return replace(review, notes=(*review.notes, note))


def _without_unplaced(review: Review, name: str) -> Review:
    rest = {key: table for key, table in review.unplaced.items() if key != name}
    return replace(review, unplaced=rest)


def _instead_of_one_without_target(
    review: Review, table: TableInfo, reading: Reading
) -> Review | None:
    """The review that this table calibrates instead of one in which no column is the target.

    The other one is kept without a place. None where that is not so, or the other one is no table
    of the same inputs.
    """
    other = review.tables.get("calibration")
    if other is None or review.roles is None or review.roles.target is not None:
        return None
    freed = {which: one for which, one in review.tables.items() if which != "calibration"}
    calibrated = with_table(replace(review, tables=freed), "calibration", table, reading)
    if other.name == table.name or not _only_without_target(calibrated, other):
        return None
    return replace(calibrated, unplaced={**calibrated.unplaced, other.name: other})


def _only_without_target(review: Review, table: TableInfo) -> bool:
    """Whether a table has the features of the review but not its target, which is known."""
    roles = undoubted(review.roles or Roles(), review.doubts)
    if roles.target is None or not roles.features or "calibration" not in review.tables:
        return False
    names = table.column_names
    return roles.target not in names and set(roles.features) <= set(names)


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
    words = set(re.split(r"[\W\d_]+", Path(name).stem.casefold()))
    return next((place for place, known in _WORDS.items() if words & known), None)


def _taken_place(
    file: Arrival, files: Sequence[Arrival], places: Mapping[int, Place]
) -> InputError:
    """The error for a table whose name says a place that another of the files has taken."""
    hint = _hint(file.name)
    hint = "calibration" if hint == "validation" else hint
    other = next(files[at].name for at, place in places.items() if place == hint)
    return InputError(
        f"By its name this is the {hint} set, but {other[:80]!r} was taken for that",
        fix="Put the rows of both into one file, or load this one under another name.",
        file=file.name,
    )
