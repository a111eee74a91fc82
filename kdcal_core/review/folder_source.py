"""What makes the predictions of a folder's rows: their columns or a model, and a calibrator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from kdcal_core.calibration.export import LoadedCalibrator, load_calibrator
from kdcal_core.data import (
    CONFIDENCES,
    FloatArray,
    Roles,
    check_proba,
    feature_frame,
    output_matrix,
    parameter_columns,
)
from kdcal_core.distributions import PredictiveDistribution, distribution_of
from kdcal_core.errors import InputError, quiet
from kdcal_core.models import Model, Regressor, load_model
from kdcal_core.models.file_marks import refuse_other_model
from kdcal_core.models.forecasts import model_forecasts
from kdcal_core.regression.recalibrated_table import as_quantiles
from kdcal_core.regression.recalibrator_file import LoadedRecalibrator, load_recalibrator
from kdcal_core.store.disk import digest_of
from kdcal_core.text import listed


@dataclass(frozen=True)
class SourceFiles:
    """The files that make the predictions, as a worker is given them.

    Attributes
    ----------
    model : dict or None
        ``path``, ``name`` and ``digest``; without a model the rows hold its predictions.
    calibrator : dict or None
        The same of a calibrator's or a recalibrator's file, whose output is judged in place of
        the model's.
    """

    model: dict[str, str] | None = None
    calibrator: dict[str, str] | None = None


@dataclass(frozen=True, eq=False)
class FolderSource:
    """Makes the predictions of blocks of rows."""

    model: Model | Regressor | None = None
    calibrator: LoadedCalibrator | LoadedRecalibrator | None = None

    @classmethod
    def of(cls, files: SourceFiles, roles: Roles) -> FolderSource:
        """Read the files.

        Raises
        ------
        InputError
            If one cannot be used, or was changed.
        """
        model = None
        if files.model is not None:
            model = load_model(_unchanged(files.model), name=files.model["name"], task=roles.task)
        if files.calibrator is None:
            return cls(model)
        path = _unchanged(files.calibrator)
        read = load_calibrator if roles.task == "classification" else load_recalibrator
        loaded = read(path, model=model, any_model=True)  # type: ignore[arg-type]
        if files.model is not None:
            refuse_other_model(loaded.card.model, files.model["digest"])
        return cls(model, loaded)

    @property
    def fitted_on(self) -> tuple[str, ...]:
        """SHA-256 of the tables to which the calibrator was fitted; none without one."""
        if self.calibrator is None:
            return ()
        data = self.calibrator.card.data
        return tuple(one.digest for part, one in data.items() if part != "evaluation")

    def columns(self, roles: Roles) -> list[str]:
        """The columns that are read for the predictions.

        Raises
        ------
        InputError
            For predictions of which a summary cannot be made in one pass.
        """
        if roles.family in ("point", "log_point"):
            raise InputError(
                "Predictions that are single numbers cannot be given as a folder: their spread is "
                "fitted to the residuals of other rows, which takes the rows themselves",
                fix="Give the rows as one file, or predictions with a spread: a standard "
                "deviation, quantiles, or samples.",
            )
        reads = [] if self.calibrator is None else list(self.calibrator.reads)
        if self.model is not None:
            return [*roles.features, *reads]
        stated = [column for _, column in (*roles.outputs, *roles.parameters)]
        confident = roles.output_kind in CONFIDENCES and roles.predicted
        return [*stated, *([confident] if confident else ()), *reads]

    def proba(self, frame: pd.DataFrame, roles: Roles, classes: Sequence[str]) -> FloatArray:
        """Probabilities of a block, (n, K), checked."""
        if self.model is None:
            found = output_matrix(frame, roles, classes)
        else:
            asked = cast(Model, self.model).predict_proba(feature_frame(frame, roles))
            found = check_proba(asked, n_classes=len(classes), columns=classes)
        if self.calibrator is None:
            return found
        loaded = cast("LoadedCalibrator", self.calibrator)
        known = loaded.card.classes
        if set(known) != set(classes):
            raise InputError(
                f"The calibrator was fitted for the classes {listed(known, 5)}, and the rows have "
                f"{listed(classes, 5)}",
                fix="Give the calibrator of these rows, or name their classes as at its fit.",
            )
        order = [list(classes).index(name) for name in known]
        calibrated = np.empty_like(found)
        with quiet():  # of the files alone
            calibrated[:, order] = loaded.calibrated(found[:, order], frame).proba
        return calibrated

    def forecasts(self, frame: pd.DataFrame, roles: Roles) -> PredictiveDistribution:
        """Predictive distributions of a block of n rows; a recalibrator's are its quantiles."""
        assert roles.family is not None
        loaded = cast("LoadedRecalibrator | None", self.calibrator)
        if loaded is not None and self.model is not None:
            return as_quantiles(loaded.score_rows(frame))
        if self.model is not None:
            model = cast(Regressor, self.model)
            return model_forecasts(model, roles.family, feature_frame(frame, roles))
        stated = distribution_of(roles.family, parameter_columns(frame, roles))
        return stated if loaded is None else as_quantiles(loaded.predict(stated, frame))


def _unchanged(file: dict[str, str]) -> str:
    if digest_of(Path(file["path"])) != file["digest"]:
        raise InputError(
            "The file changed while rows were read", fix="Start again.", file=file["name"]
        )
    return file["path"]
