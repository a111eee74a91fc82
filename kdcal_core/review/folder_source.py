"""What makes the predictions of a folder's rows: their columns, or a model that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

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
from kdcal_core.errors import InputError
from kdcal_core.models import Model, Regressor, load_model
from kdcal_core.models.forecasts import model_forecasts
from kdcal_core.store.disk import digest_of

if TYPE_CHECKING:
    from kdcal_core.calibration.export import LoadedCalibrator


@dataclass(frozen=True)
class SourceFiles:
    """The files that make the predictions, as a worker is given them.

    Attributes
    ----------
    model, calibrator : dict or None
        ``path``, ``name`` and ``digest``; without a model the rows hold its predictions.
    features : tuple of str
        Columns that the calibrator reads.
    """

    model: dict[str, str] | None = None
    calibrator: dict[str, str] | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FolderSource:
    """Predictions of blocks of rows, the model's as it is or with a calibrator."""

    model: Model | Regressor | None = None
    calibrator: LoadedCalibrator | None = None
    features: tuple[str, ...] = ()

    @classmethod
    def of(cls, files: SourceFiles, roles: Roles) -> FolderSource:
        """Read the files.

        Raises
        ------
        InputError
            If one cannot be used, or was changed.
        """
        model = calibrator = None
        if files.model is not None:
            model = load_model(_unchanged(files.model), name=files.model["name"], task=roles.task)
        if files.calibrator is not None:
            from kdcal_core.calibration.export import load_calibrator  # slow to import

            path = _unchanged(files.calibrator)
            calibrator = load_calibrator(path, model=cast(Any, model), any_model=True)
        return cls(model, calibrator, files.features)

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
        if self.model is not None:
            return [*roles.features, *self.features]
        confident = roles.predicted and roles.output_kind in CONFIDENCES
        stated = [column for _, column in (*roles.outputs, *roles.parameters)]
        return [
            *stated,
            *([roles.predicted] if confident and roles.predicted else ()),
            *self.features,
        ]

    def proba(self, frame: pd.DataFrame, roles: Roles, classes: Sequence[str]) -> FloatArray:
        """Probabilities of a block, (n, K), checked."""
        if self.model is None:
            found = output_matrix(frame, roles, classes)
        else:
            asked = cast(Model, self.model).predict_proba(feature_frame(frame, roles))
            found = check_proba(asked, n_classes=len(classes), columns=classes)
        return found if self.calibrator is None else self.calibrator.calibrated(found, frame).proba

    def forecasts(self, frame: pd.DataFrame, roles: Roles) -> PredictiveDistribution:
        """Predictive distributions of a block of n rows."""
        assert roles.family is not None
        if self.model is None:
            return distribution_of(roles.family, parameter_columns(frame, roles))
        model = cast(Regressor, self.model)
        return model_forecasts(model, roles.family, feature_frame(frame, roles))


def _unchanged(file: dict[str, str]) -> str:
    if digest_of(Path(file["path"])) != file["digest"]:
        raise InputError(
            "The file changed while rows were read", fix="Start again.", file=file["name"]
        )
    return file["path"]
