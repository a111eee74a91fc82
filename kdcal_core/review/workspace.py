"""Where reviews are kept: one folder each, readable only by its owner."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from kdcal_core.errors import InputError
from kdcal_core.jobs.records import OWN, default_root
from kdcal_core.review.review import Review
from kdcal_core.store import decode, encode
from kdcal_core.store.disk import (
    Identity,
    KnownFiles,
    identity_of,
    locked,
    make_folder,
    make_private,
    private,
    write_json,
)

KEEP_DAYS = 30
_ID = re.compile(r"[A-Za-z0-9_-]{16}")
_SUFFIX = re.compile(r"\.[a-z0-9]{1,10}")
STATE = "review.json"
_DAY = 86_400
_BLOCK = 1024**2
_LOCKS = ".locks"
_LOCK_SECONDS = 30

_reviews: KnownFiles[Review] = KnownFiles(256)  # a page needs its review many times in a run


class Workspace:
    """The folder that holds all reviews.

    Parameters
    ----------
    root : Path, optional
        It is created with the first review, private to its owner. An existing folder keeps its
        permissions; a read-only folder can be read. By default `default_root`; reviews that
        earlier versions stored in ``$KDCAL_HOME`` itself are then found too.

    Raises
    ------
    OSError
        If a file with the folder's name exists.

    Examples
    --------
    >>> import tempfile
    >>> workspace = Workspace(Path(tempfile.mkdtemp()))
    >>> review_id = workspace.create()
    >>> workspace.exists(review_id), workspace.exists("../../etc")
    (True, False)
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or default_root()).absolute()
        there = next(place for place in (self.root, *self.root.parents) if place.exists())
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))

    def create(self) -> str:
        """A new, empty review's id. Reviews untouched for `KEEP_DAYS` days are deleted.

        Raises
        ------
        OSError
            If the folder of reviews cannot be written.
        """
        make_folder(self.root)
        self._prune()
        review_id = _new_id()
        folder = self.root / review_id
        folder.mkdir(mode=0o700)
        self._write(folder, Review(id=review_id))
        return review_id

    def exists(self, review_id: str) -> bool:
        """Whether there is such a review; False for text that is not an id."""
        return self._find(review_id) is not None

    def folder(self, review_id: str) -> Path:
        """The review's folder.

        Raises
        ------
        InputError
            If there is no such review. Ids come from addresses; text that does not have the form of
            an id is never looked up on disk.
        """
        folder = self._find(review_id)
        if folder is None:
            raise InputError(
                "There is no such review on this machine",
                fix="It may have been deleted. Start a new one on the Load page.",
            )
        return folder

    def delete(self, review_id: str) -> None:
        """Delete the review with all its files; nothing happens if the id is not known.

        Raises
        ------
        InputError
            If another process keeps the review locked.
        OSError
            If the folder of reviews cannot be written.
        """
        self._delete(review_id)

    def _delete(self, review_id: str, *, before: float = math.inf) -> None:
        """Delete the review if it was last used ``before``, in seconds since the epoch."""
        folder = self._find(review_id)
        if folder is None:
            return
        with self._alone(review_id):  # a writer could otherwise leave a part of it
            state = folder / STATE
            if not state.exists() or state.stat().st_mtime >= before:
                return
            state.unlink()  # from here on the review does not exist
            shutil.rmtree(folder, ignore_errors=True)
        for path in (self.root / _LOCKS).glob(f"{review_id}.*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def read(self, review_id: str) -> Review:
        """The review on disk.

        Raises
        ------
        InputError
            If the review does not exist, or its file is damaged.
        """
        path = self.folder(review_id) / STATE
        review, before = self._at(path, review_id)
        if time.time() - before.modified > _DAY:
            with contextlib.suppress(OSError):  # the home may be read-only
                path.touch()  # marks the review as in use
        return review

    def reviews(self) -> tuple[tuple[Review, float], ...]:
        """Every review that can be read, with the seconds since the epoch of its last use.

        The last used comes first. Being listed is no use.
        """
        found = []
        paths = list(self._states())
        _reviews.hold(len(paths))
        for path in paths:
            with contextlib.suppress(InputError):  # damaged, or deleted meanwhile
                review, identity = self._at(path, path.parent.name)
                found.append((review, identity.modified))
        return tuple(sorted(found, key=lambda pair: -pair[1]))

    def duplicate(self, review_id: str, title: str) -> str:
        """A copy of the review with all its files under another title; its id.

        Raises
        ------
        InputError
            As `update`.
        OSError
            If the folder of reviews cannot be written.
        """
        folder = self.folder(review_id)
        copy = _new_id()
        target = self.root / copy
        with self._alone(review_id):
            review = self.read(review_id)
            try:
                shutil.copytree(folder, target, ignore=shutil.ignore_patterns(STATE))
                make_private(target)
                self._write(target, replace(review, id=copy, title=title))
            except BaseException:
                shutil.rmtree(target, ignore_errors=True)
                raise
        return copy

    def _at(self, path: Path, review_id: str) -> tuple[Review, Identity]:
        """The review in a file, and which state of the file that is."""
        try:
            before = identity_of(path)
            review = _reviews.find(path, before)
            if review is None:
                review = decode(Review, json.loads(path.read_bytes()))
                if review.id != review_id:  # it is where the next change would be written
                    raise ValueError(review.id)
                _reviews.keep(path, before, review)
        except OSError as error:
            raise InputError(
                f"The file {STATE} of the review {review_id} cannot be read "
                f"({error.strerror or type(error).__name__})",
                fix="Give kdcal permission to read it, or start a new review on the Load page.",
            ) from error
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InputError(
                f"The file {STATE} of the review {review_id} is damaged, or of another version "
                "of kdcal",
                fix="Put the file back from a backup, or start a new review on the Load page.",
            ) from error
        return review, before

    def update(self, review_id: str, change: Callable[[Review], Review]) -> Review:
        """Read, change and write the review while no other process writes it.

        Raises
        ------
        InputError
            As `read`, or if another process keeps the review locked.
        OSError
            If its folder cannot be written.
        """
        folder = self.folder(review_id)
        with self._alone(review_id):
            review = change(self.read(review_id))
            make_private(folder)  # including files of workers
            self._write(folder, review)  # last: once it is written nothing can fail
        return review

    @contextlib.contextmanager
    def _alone(self, review_id: str) -> Iterator[None]:
        """Prevent others from writing the review during the body."""
        try:
            with locked(self.lock(review_id, "write"), seconds=_LOCK_SECONDS):
                yield
        except TimeoutError as error:
            raise InputError(
                f"Another process has been writing the review {review_id} for {_LOCK_SECONDS} "
                "seconds",
                fix="Try again. If that does not help, stop the other servers that share this "
                "KDCAL_HOME.",
            ) from error

    def lock(self, review_id: str, what: str) -> Path:
        """The file of a lock of this review, among all processes that share the home.

        Raises
        ------
        OSError
            If its folder cannot be created.
        """
        make_folder(self.root / _LOCKS)
        return self.root / _LOCKS / f"{review_id}.{what}"

    def new_file(self, review_id: str, name: str = "") -> Path:
        """A path in the review's folder with a random name and the suffix of ``name``."""
        suffix = Path(name).suffix.lower()
        known = suffix if _SUFFIX.fullmatch(suffix) else ""
        return self.folder(review_id) / f"{secrets.token_hex(8)}{known}"

    def keep(self, review_id: str, source: BinaryIO | Path, name: str) -> Path:
        """Copy an upload into the review's folder, block by block, under a random name."""
        path = self.new_file(review_id, name)
        try:
            with open(path, "xb", opener=private) as file:
                if isinstance(source, Path):
                    with source.open("rb") as stream:
                        shutil.copyfileobj(stream, file, _BLOCK)
                else:
                    source.seek(0)
                    shutil.copyfileobj(source, file, _BLOCK)
        except BaseException:
            path.unlink(missing_ok=True)  # a partial file, if the disk is full
            raise
        return path

    def _find(self, review_id: str) -> Path | None:
        """The review's folder, of this or an earlier version; None if it does not exist."""
        if _ID.fullmatch(review_id) is None:
            return None
        for place in self._places():
            if _is_review(place / review_id, ours=place == self.root):
                return place / review_id
        return None

    def _places(self) -> tuple[Path, ...]:
        # earlier versions kept reviews in $KDCAL_HOME itself
        return (self.root, self.root.parent) if self.root.name == OWN else (self.root,)

    def _write(self, folder: Path, review: Review) -> None:
        write_json(folder / STATE, encode(review), allow_nan=True)

    def _prune(self) -> None:
        oldest = time.time() - KEEP_DAYS * _DAY
        for path in self._states():
            try:
                if path.stat().st_mtime < oldest:
                    self._delete(path.parent.name, before=oldest)
            except (InputError, OSError):  # another session deleted it, or has it in use
                continue

    def _states(self) -> Iterator[Path]:
        for place in self._places():
            for path in place.glob(f"*/{STATE}"):
                if _ID.fullmatch(path.parent.name):
                    yield path


def _is_review(folder: Path, *, ours: bool) -> bool:
    path = folder / STATE
    if not path.is_file():
        return False
    # other users may have put files beside our own folder
    return ours or not hasattr(os, "geteuid") or path.stat().st_uid == os.geteuid()


def _new_id() -> str:
    """An id for a review; a command would take one that begins with a hyphen for an option."""
    while (made := secrets.token_urlsafe(12)).startswith("-"):
        pass
    return made
