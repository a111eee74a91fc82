"""What a run reads of a review, as plain values that travel to a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.data.types import IntArray, Roles
from kdcal_core.errors import InputError
from kdcal_core.jobs import job_key
from kdcal_core.progress import Progress
from kdcal_core.review import Review, Workspace
from kdcal_core.review.model import TableInfo
from kdcal_core.review.seals import check_digest
from kdcal_core.review.stored import table_path
from kdcal_core.store import encode

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.models import Model


@dataclass(frozen=True)
class File:
    """A file of the review: where it is, what its owner calls it, and its identity."""

    path: str
    name: str
    digest: str


@dataclass(frozen=True)
class ReviewFiles:
    """The files of a scored review with a model, and how to read them.

    Attributes
    ----------
    model, calibration : File
    evaluation, training : File or None
    foreign : dict
        File under the name that the rows are shown by. Untrusted text.
    roles : Roles
    classes : tuple of str
        As the review names them, in the order of the probability columns. Untrusted text.
    """

    model: File
    calibration: File
    evaluation: File | None
    training: File | None
    roles: Roles
    classes: tuple[str, ...]
    foreign: dict[str, File] = field(default_factory=dict)

    @property
    def reference(self) -> File:
        """The rows that show where the data lie: those of the training, else of calibration."""
        return self.training or self.calibration

    @property
    def judged(self) -> File:
        """The rows that results are judged on: those of the evaluation, else of calibration."""
        return self.evaluation or self.calibration

    def identity(self, *, with_foreign: bool = False) -> dict[str, Any]:
        """What results depend on: contents and roles, not where the files lie."""
        single = (self.model, self.calibration, self.evaluation, self.training)
        foreign = [[name, file.digest] for name, file in self.foreign.items()]
        return {
            "files": [file.digest if file else None for file in single],
            "foreign": foreign if with_foreign else [],
            "roles": encode(self.roles),
            "classes": list(self.classes),
        }


@dataclass(frozen=True)
class Request:
    """A run to start as a job: what `kdcal_core.jobs.JobManager.submit` takes.

    Attributes
    ----------
    target : str
        ``"kdcal_core.tasks.x:function"``.
    kwargs : dict
        Its arguments, JSON.
    key : str
        Digest of all that the result depends on.
    title : str
        What is done, for people.
    """

    target: str
    kwargs: dict[str, Any]
    key: str
    title: str


def request(target: str, title: str, kwargs: dict[str, Any], identity: dict[str, Any]) -> Request:
    """A request whose key follows from ``identity``."""
    return Request(target, kwargs, job_key(target, identity), title)


def review_files(workspace: Workspace, review_id: str) -> ReviewFiles:
    """The files of a review that a run may read.

    Raises
    ------
    InputError
        Where the review is not scored, or holds predictions without their model.
    """
    review = workspace.read(review_id)
    if not review.ready or review.roles is None:
        raise InputError(
            "The rows have not been scored yet", fix="Finish the review on the Load page."
        )
    if review.model is None or review.model_file is None:
        raise InputError(
            "The review holds predictions without their model, and only a model can answer for "
            "rows that are in no table",
            fix="Add the model on the Load page.",
        )
    folder = workspace.folder(review_id)

    def file(table: TableInfo | None) -> File | None:
        return File(str(table_path(folder, table)), table.name, table.digest) if table else None

    calibration = file(review.tables["calibration"])
    assert calibration is not None
    return ReviewFiles(
        model=File(str(folder / review.model_file), review.model.name, review.model.digest),
        calibration=calibration,
        evaluation=file(review.tables.get("evaluation")),
        training=file(review.training),
        roles=review.roles,
        classes=review.classes,
        foreign={name: one for name, table in review.foreign.items() if (one := file(table))},
    )


def require_classification(
    review: Review, why: str, *, fix: str = "Use the Recalibration page."
) -> None:
    """Refuse a review that is not scored, or is of a regression, which ``why`` speaks against.

    Raises
    ------
    InputError
    """
    if not review.ready:
        raise InputError(
            "The rows have not been scored yet", fix="Finish the review on the Load page."
        )
    if review.task != "classification":
        raise InputError(f"The review is of a regression, and {why}", fix=fix)


def review_identity(review: Review, *, with_foreign: bool = True) -> dict[str, Any]:
    """What results depend on that read all of a review's rows: contents and roles."""
    foreign = [[name, table.digest] for name, table in review.foreign.items()]
    tables = [review.tables.get("calibration"), review.tables.get("evaluation"), review.training]
    return {
        "tables": [table.digest if table else None for table in tables],
        "sets": {which: one.digest for which, one in sorted(review.sets.items())},
        "foreign": foreign if with_foreign else [],
        "model": review.model.digest if review.model else None,
        "roles": encode(review.roles) if review.roles else None,
        "classes": list(review.classes),
    }


def check_ranges(settings: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse a setting that lies outside its range; of a tuple each value is looked at.

    Sliders keep to their ends only in an honest browser.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_ranges(SimpleNamespace(n=0), {"n": (1, 10)})
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The setting 'n' is 0. Choose a number from 1 to 10.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        for one in value if isinstance(value, tuple) else (value,):
            if not low <= one <= high:
                raise InputError(
                    f"The setting {name!r} is {one:,}",
                    fix=f"Choose a number from {low:,} to {high:,}.",
                )


def open_model(files: ReviewFiles, progress: Progress) -> Model:
    """The review's model."""
    from kdcal_core.models import load_model
    from kdcal_core.review.reading import in_file

    progress(0.0, "Opening the model")
    with in_file(files.model.name):
        check_digest(Path(files.model.path), files.model.digest)
        return load_model(files.model.path, name=files.model.name, task="classification")


def features_of(files: ReviewFiles, file: File) -> pd.DataFrame:
    """The features of a table, in the order of the roles."""
    from kdcal_core.data import feature_frame
    from kdcal_core.review.reading import in_file, read_frame

    with in_file(file.name):
        return feature_frame(read_frame(file.path), files.roles)


def labelled(files: ReviewFiles, file: File) -> tuple[pd.DataFrame, IntArray]:
    """The features of a table and the true classes as indices."""
    from kdcal_core.data import feature_frame, target_labels
    from kdcal_core.review.reading import in_file, in_rows_of, read_frame

    frame = read_frame(file.path)
    with in_file(file.name), in_rows_of(frame):
        labels = target_labels(frame, files.roles, files.classes)
        return feature_frame(frame, files.roles), labels
