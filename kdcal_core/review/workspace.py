"""Where reviews are kept: one folder each, readable by nobody else."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from kdcal_core.errors import InputError
from kdcal_core.jobs import default_root
from kdcal_core.review.codec import decode, encode
from kdcal_core.review.model import Review

KEEP_DAYS = 30
_ID = re.compile(r"[A-Za-z0-9_-]{16}")
_SUFFIX = re.compile(r"\.[a-z0-9]{1,10}")
_STATE = "review.json"
_DAY = 86_400
_BLOCK = 1024**2

# One writer a review; many sessions of one server may hold the same one open.
_locks: defaultdict[Path, threading.RLock] = defaultdict(threading.RLock)


class Workspace:
    """The folder that holds all reviews.

    Parameters
    ----------
    root : Path, optional
        Created with permissions for its owner alone; ``$KDCAL_HOME`` or the user's cache folder
        by default.

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
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)

    def create(self) -> str:
        """A new, empty review's id. Reviews untouched for `KEEP_DAYS` days are deleted."""
        self._prune()
        review_id = secrets.token_urlsafe(12)
        (self.root / review_id).mkdir(mode=0o700)
        self._write(Review(id=review_id))
        return review_id

    def exists(self, review_id: str) -> bool:
        """Whether there is such a review; false for what is no id at all."""
        return _ID.fullmatch(review_id) is not None and (self.root / review_id / _STATE).is_file()

    def folder(self, review_id: str) -> Path:
        """The review's folder.

        Raises
        ------
        InputError
            Where there is no such review. Ids come from addresses: one that is not of an id's
            form never touches the disk.
        """
        if not self.exists(review_id):
            raise InputError(
                "There is no such review on this machine",
                fix="It may have been deleted. Start a new one on the Load page.",
            )
        return self.root / review_id

    def delete(self, review_id: str) -> None:
        """Delete the review with all its files; nothing happens where there is none."""
        if self.exists(review_id):
            shutil.rmtree(self.root / review_id, ignore_errors=True)

    def read(self, review_id: str) -> Review:
        """The review as it is on disk.

        Raises
        ------
        InputError
            Where there is none, or its file is damaged.
        """
        path = self.folder(review_id) / _STATE
        try:
            review = decode(Review, json.loads(path.read_bytes()))
            if review.id != review_id:  # it is where the next change would be written
                raise ValueError(review.id)
        except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InputError(
                "The review on disk is damaged or of another version of kdcal",
                fix="Start a new one on the Load page.",
            ) from error
        if time.time() - path.stat().st_mtime > _DAY:
            path.touch()  # it is in use, so it is not old
        return review

    def update(self, review_id: str, change: Callable[[Review], Review]) -> Review:
        """Read the review, change it and write it, with no other writer in between."""
        with _locks[self.root / review_id]:
            review = change(self.read(review_id))
            self._write(review)
        return review

    def new_file(self, review_id: str, name: str = "") -> Path:
        """A path in the review's folder under a random name; of ``name`` only the suffix stays."""
        suffix = Path(name).suffix.lower()
        known = suffix if _SUFFIX.fullmatch(suffix) else ""
        return self.folder(review_id) / f"{secrets.token_hex(8)}{known}"

    def keep(self, review_id: str, source: BinaryIO | Path, name: str) -> Path:
        """Copy an upload into the review's folder, block by block, under a random name."""
        path = self.new_file(review_id, name)
        try:
            with path.open("xb") as file:
                if isinstance(source, Path):
                    with source.open("rb") as stream:
                        shutil.copyfileobj(stream, file, _BLOCK)
                else:
                    source.seek(0)
                    shutil.copyfileobj(source, file, _BLOCK)
        except BaseException:
            path.unlink(missing_ok=True)  # a full disk: half a file is of no use
            raise
        return path

    def _write(self, review: Review) -> None:
        path = self.root / review.id / _STATE
        temporary = path.with_name(f"{secrets.token_hex(8)}.tmp")
        temporary.write_text(json.dumps(encode(review)), encoding="utf-8")
        temporary.replace(path)

    def _prune(self) -> None:
        oldest = time.time() - KEEP_DAYS * _DAY
        for path in self.root.glob(f"*/{_STATE}"):
            try:
                if path.stat().st_mtime < oldest:
                    self.delete(path.parent.name)
            except FileNotFoundError:  # another session was quicker
                continue
