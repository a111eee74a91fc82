"""What makes the predictions of a folder's rows: their columns, or a model that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

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


@dataclass(frozen=True)
class SourceFiles:
    """The files that make the predictions, as a worker is given them.

    Attributes
    ----------
    model : dict or None
        ``path``, ``name`` and ``digest``; without a model the rows hold its predictions.
    """

    model: dict[str, str] | None = None


@dataclass(frozen=True, eq=False)
class FolderSource:
    """Makes the predictions of blocks of rows."""

    model: Model | Regressor | None = None

    @classmethod
    def of(cls, files: SourceFiles, roles: Roles) -> FolderSource:
        """Read the files.

        Raises
        ------
        InputError
            If one cannot be used, or was changed.
        """
        if files.model is None:
            return cls()
        return cls(load_model(_unchanged(files.model), name=files.model["name"], task=roles.task))

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
            return list(roles.features)
        stated = [column for _, column in (*roles.outputs, *roles.parameters)]
        confident = roles.output_kind in CONFIDENCES and roles.predicted
        return [*stated, *([confident] if confident else ())]

    def proba(self, frame: pd.DataFrame, roles: Roles, classes: Sequence[str]) -> FloatArray:
        """Probabilities of a block, (n, K), checked."""
        if self.model is None:
            return output_matrix(frame, roles, classes)
        asked = cast(Model, self.model).predict_proba(feature_frame(frame, roles))
        return check_proba(asked, n_classes=len(classes), columns=classes)

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
