"""A hidden layer's view of the rows, read by the model in a worker process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kdcal_core.progress import Progress
from kdcal_core.review import ReviewReader, Workspace
from kdcal_core.store import load, save
from kdcal_core.tasks.inputs import (
    Request,
    opened_reader,
    require_regression,
    review_request,
)
from kdcal_core.tasks.spaces import SPACE_READS, Space, read_space


def space_request(workspace: Workspace, review_id: str, name: str) -> Request:
    """The job that reads a space of the review.

    Raises
    ------
    InputError
        Where the review is not a scored regression.
    """
    reader = ReviewReader(workspace, review_id, SPACE_READS)
    require_regression(reader.review)
    return review_request(
        "kdcal_core.tasks.space_run:keep_space", "Reading a hidden layer", reader, {"name": name}
    )


def keep_space(read: dict[str, Any], name: str, folder: str, progress: Progress) -> dict[str, Any]:
    """Read a space, in a worker process; `load_space` reads what it leaves in ``folder``."""
    space = read_space(opened_reader(read, SPACE_READS), name, progress)
    save(Path(folder), space.single())
    return {"name": name}


def load_space(folder: str | Path) -> Space:
    """What `keep_space` left.

    Raises
    ------
    InputError
        Where it is not there (any more), or damaged.
    """
    return load(folder, Space)
