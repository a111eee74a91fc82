"""How a step changes a review and its files. A step that fails changes neither."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled as CancelledError
from kdcal_core.jobs import run_limited
from kdcal_core.review.requirements import with_true_places
from kdcal_core.review.review import Review, SetInfo, TableInfo
from kdcal_core.review.sealed_files import check_digest, remove_seal
from kdcal_core.review.workspace import Workspace
from kdcal_core.store import decode
from kdcal_core.store.disk import locked

Cancelled = Callable[[], bool]

_HEAD_BYTES = 4096
_WORKER = "kdcal_core.review.in_worker:"


def decode_table(reply: Any, name: str, path: Path) -> TableInfo:
    """A worker's description of a table, with our path and name for it."""
    return replace(decode(TableInfo, reply), name=name, file=path.name)


def decode_set(reply: Any, folder: Path) -> SetInfo:
    """A worker's description of a scored set, with our path for it."""
    return replace(decode(SetInfo, reply), folder=folder.name)


@contextmanager
def one_file_at_a_time(
    workspace: Workspace, review_id: str, cancelled: Cancelled | None
) -> Iterator[None]:
    """Wait until no other file of this review is being read; roles are guessed from all files."""

    def waiting() -> None:
        if cancelled is not None and cancelled():
            raise CancelledError("Reading the file")

    workspace.folder(review_id)  # raises if there is no such review
    with locked(workspace.lock(review_id, "reading"), waiting=waiting):
        yield


def unscored(review: Review) -> Review:
    """The review without its scored sets, and so without a verdict or results that were shown."""
    return replace(review, sets={}, verdict="", first_results="")


def model_of(review: Review, folder: Path) -> dict[str, str] | None:
    """Path and name of the review's model for a worker, after a check that the file is the same."""
    if review.model is None or review.model_file is None:
        return None
    with naming_file(review.model.name):
        check_digest(folder / review.model_file, review.model.digest)
    return {"path": str(folder / review.model_file), "name": review.model.name}


def head_of(source: BinaryIO | Path) -> bytes:
    """The first bytes of a file."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return file.read(_HEAD_BYTES)
    source.seek(0)
    return source.read(_HEAD_BYTES)


def ask_worker(function: str, kwargs: dict[str, Any], **limits: Any) -> Any:
    """Run a function of `kdcal_core.review.in_worker` in a confined process; return its reply."""
    return run_limited(_WORKER + function, kwargs, confined=True, **limits)


def change_review(
    workspace: Workspace, review_id: str, change: Callable[[Review], Review]
) -> Review:
    """Change the review, then delete files and notes on tables that it no longer refers to."""
    before: set[str] = set()

    def noted(review: Review) -> Review:
        before.update(_files_of(review))
        return with_true_places(change(review))

    after = workspace.update(review_id, noted)
    for name in before - _files_of(after):
        _remove(workspace.folder(review_id) / name)
    return after


def _files_of(review: Review) -> set[str]:
    names = {info.file for info in (*review.all_tables, *review.watched.values())}
    names |= {info.folder for info in review.sets.values()}
    return names | ({review.model_file} if review.model_file else set())


def remove_file(workspace: Workspace, review: Review, table: TableInfo) -> None:
    """Delete the file of a table that did not become part of the review."""
    _remove(workspace.folder(review.id) / table.file)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
        remove_seal(path)


@contextmanager
def new_files(*paths: Path) -> Iterator[None]:
    """Files that are deleted if the step fails."""
    try:
        yield
    except BaseException:
        for path in paths:
            _remove(path)
        raise


@contextmanager
def naming_file(name: str | None) -> Iterator[None]:
    """Make errors in the body name this file unless they name another; check the reply's form."""
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(
            "The process that read the file returned a malformed reply",
            fix="The file may be malicious: do not use it.",
            file=name,
        ) from error
