"""A hidden layer's view of the rows, read by the model in a worker process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.progress import Progress
from kdcal_core.review import Workspace
from kdcal_core.store import decode, encode
from kdcal_core.tasks.inputs import Request, request
from kdcal_core.tasks.regression_inputs import RegressionFiles, regression_files
from kdcal_core.tasks.spaces import Space, read_space
from kdcal_core.tasks.storage import load_array, load_whole, save_array, save_record


@dataclass(frozen=True)
class SpaceRecord:
    """What was read: the space's name (untrusted text), and whether there is an evaluation."""

    name: str
    has_evaluation: bool


def space_request(workspace: Workspace, review_id: str, name: str) -> Request:
    """The job that reads a space of the review.

    Raises
    ------
    InputError
        Where the review is not a scored regression.
    """
    files = regression_files(workspace, review_id)
    return request(
        "kdcal_core.tasks.space_run:keep_space",
        "Reading a hidden layer",
        {"files": encode(files), "name": name},
        {**files.identity(), "name": name},
    )


def keep_space(files: dict[str, Any], name: str, folder: str, progress: Progress) -> dict[str, Any]:
    """Read a space, in a worker process; `load_space` reads what it leaves in ``folder``."""
    space = read_space(decode(RegressionFiles, files), name, progress)
    save_space(Path(folder), space)
    record = SpaceRecord(name, space.evaluation is not None)
    save_record(Path(folder), record)
    return encode(record)


def load_space(folder: str | Path) -> Space:
    """What `keep_space` left.

    Raises
    ------
    InputError
        Where it is not there (any more), or damaged.
    """
    record = load_whole(Path(folder), SpaceRecord)
    return read_saved_space(Path(folder), record.name, record.has_evaluation)


def save_space(folder: Path, space: Space) -> None:
    """Write a space's coordinates, in single precision."""
    save_array(folder, "space_calibration", space.calibration.astype(np.float32))
    if space.evaluation is not None:
        save_array(folder, "space_evaluation", space.evaluation.astype(np.float32))


def read_saved_space(folder: Path, name: str, has_evaluation: bool) -> Space:
    """Coordinates as `save_space` left them."""
    evaluation = load_array(folder, "space_evaluation") if has_evaluation else None
    return Space(name, load_array(folder, "space_calibration"), evaluation)
