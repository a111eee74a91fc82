"""What a run reads of a regression review: its scored sets, its features and its model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.data import feature_frame
from kdcal_core.data.types import Roles
from kdcal_core.distributions import RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.review import Review, Workspace
from kdcal_core.review.reading import in_file, read_frame
from kdcal_core.review.seals import check_digest
from kdcal_core.review.stored import regression_arrays, table_path
from kdcal_core.store import encode
from kdcal_core.tasks.inputs import File

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.models import HasLayers


@dataclass(frozen=True)
class Scored:
    """A table and its scored set.

    Attributes
    ----------
    table : File
    folder : str
        Where the scored arrays lie.
    digest : str
        Of the scored arrays.
    which : str
        "calibration" or "evaluation".
    """

    table: File
    folder: str
    digest: str
    which: str

    def read(self) -> RegressionSet:
        """The predictive distributions and outcomes, memory-mapped.

        Raises
        ------
        InputError
            Where a file is gone or damaged.
        """
        return regression_arrays(Path(self.folder), self.digest, self.which)


@dataclass(frozen=True)
class RegressionFiles:
    """The files of a scored regression review.

    Attributes
    ----------
    model : File or None
        None where the tables carry the predictions.
    calibration : Scored
    evaluation : Scored or None
    roles : Roles
    """

    model: File | None
    calibration: Scored
    evaluation: Scored | None
    roles: Roles

    @property
    def judged(self) -> Scored:
        """The rows that results are judged on: those of the evaluation, else of calibration."""
        return self.evaluation or self.calibration

    def identity(self) -> dict[str, Any]:
        """What results depend on: contents and roles, not where the files lie."""
        tables = (self.calibration, self.evaluation)
        return {
            "model": self.model.digest if self.model else None,
            "tables": [[one.table.digest, one.digest] if one else None for one in tables],
            "roles": encode(self.roles),
        }


def regression_files(workspace: Workspace, review_id: str) -> RegressionFiles:
    """The files of a regression review that a run may read.

    Raises
    ------
    InputError
        Where the review is not scored, or is of a classification.
    """
    review = workspace.read(review_id)
    if not review.ready or review.roles is None:
        raise InputError(
            "The rows have not been scored yet", fix="Finish the review on the Load page."
        )
    if review.task != "regression":
        raise InputError(
            "The review is of a classification, and recalibration is for regressions",
            fix="Open a regression, or change the task on the Load page.",
        )
    folder = workspace.folder(review_id)
    model = None
    if review.model is not None and review.model_file is not None:
        path = str(folder / review.model_file)
        model = File(path, review.model.name, review.model.digest)
    calibration = _scored(review, folder, "calibration")
    assert calibration is not None
    return RegressionFiles(model, calibration, _scored(review, folder, "evaluation"), review.roles)


def features(files: RegressionFiles, scored: Scored) -> pd.DataFrame:
    """The feature columns of a table, in the order of the roles."""
    with in_file(scored.table.name):
        return feature_frame(read_frame(scored.table.path), files.roles)


def open_layers(files: RegressionFiles, progress: Progress) -> HasLayers:
    """The review's model, whose hidden layers are asked for. Call it in a worker alone.

    Raises
    ------
    InputError
        Where there is no model, or it names no hidden layer.
    """
    from kdcal_core.models import HasLayers, load_model

    if files.model is None:
        raise InputError(
            "The review holds predictions without their model, so there is no hidden layer",
            fix="Choose the inputs or the predictions as the space.",
        )
    progress(0.0, "Opening the model")
    with in_file(files.model.name):
        check_digest(Path(files.model.path), files.model.digest)
        model = load_model(files.model.path, name=files.model.name, task="regression")
    if not isinstance(model, HasLayers):
        raise InputError(
            f"This model ({model.kind}) names no hidden layer",
            fix="Choose the inputs or the predictions as the space.",
        )
    return model


def _scored(review: Review, folder: Path, which: str) -> Scored | None:
    table = review.tables.get(which)
    if table is None:
        return None
    info = review.sets[which]
    file = File(str(table_path(folder, table)), table.name, table.digest)
    return Scored(file, str(folder / info.folder), info.digest, which)
