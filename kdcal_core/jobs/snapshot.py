"""A job as people see it: what it is, how far it is, how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kdcal_core.errors import InputError

JobState = Literal["queued", "running", "cancelling", "cancelled", "failed", "done", "interrupted"]

_FINISHED = ("cancelled", "failed", "done", "interrupted")


@dataclass(frozen=True)
class JobSnapshot:
    """A job as it was at one moment.

    Attributes
    ----------
    id, title, owner : str
    submitted : float
        Seconds since the epoch, as ``started`` and ``ended``.
    state : str
        "queued", "running", "cancelling", "cancelled", "failed", "done", or "interrupted": the
        server ended before the job did.
    progress : float
        Share done, 0 to 1.
    note : str
        What is being done now.
    result : Any
        What the work returned, once done.
    error : InputError or None
        Why it failed, or that it was interrupted.
    queue_position : int
        1 for the job that starts next; 0 once started.
    started, ended : float or None
        ``started`` is None too for a result that was there already.
    key : str
        What its result is stored under; empty for a result that is not stored.
    folder : Path or None
        Where the files of a stored result are, once done.
    others : tuple of str
        Further owners: those who asked for the same key while it was on its way.

    Examples
    --------
    >>> job = JobSnapshot("a", "Fit", owner="me", submitted=0.0)
    >>> job.finished, job.belongs_to("me"), job.belongs_to("you")
    (False, True, False)
    """

    id: str
    title: str
    owner: str
    submitted: float
    state: JobState = "queued"
    progress: float = 0.0
    note: str = ""
    result: Any = None
    error: InputError | None = None
    queue_position: int = 0
    started: float | None = None
    ended: float | None = None
    key: str = ""
    folder: Path | None = None
    others: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether it will not change any more."""
        return self.state in _FINISHED

    @property
    def owners(self) -> tuple[str, ...]:
        """Who began it and all who asked for it since."""
        return (self.owner, *self.others)

    def belongs_to(self, owner: str) -> bool:
        """Whether ``owner`` began it or asked for it."""
        return owner in self.owners
