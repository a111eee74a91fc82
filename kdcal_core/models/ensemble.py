"""Several regression models in memory as one model, whose members' predictions are samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdcal_core.data.types import Family, FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.base import Features, Regressor


class Ensemble:
    """An ensemble of point predictions (deep ensembles, models of several seeds).

    Parameters
    ----------
    members : sequence of Regressor
        Two or more, each with one output, on the same features.

    Raises
    ------
    InputError
        Fewer than two, a member of several outputs, or other features.
    """

    def __init__(self, members: Sequence[Regressor]) -> None:
        if len(members) < 2:
            raise InputError(
                f"An ensemble of {len(members)} is none", fix="Pass two or more models in a list."
            )
        first = members[0]
        for place, member in enumerate(members, 1):
            if len(member.outputs) != 1:
                raise InputError(
                    f"Member {place} of the ensemble gives {len(member.outputs)} outputs",
                    fix="Pass members that predict the mean alone.",
                )
            if (member.n_features, member.feature_names) != (first.n_features, first.feature_names):
                raise InputError(
                    f"Member {place} of the ensemble takes other features than the first",
                    fix="Pass members that were trained on the same columns.",
                )
        self.kind = f"Ensemble of {len(members):,} regression models ({first.kind})"
        self.n_features, self.feature_names = first.n_features, first.feature_names
        self.outputs = tuple(str(k) for k in range(1, len(members) + 1))
        self.family: Family | None = "samples"
        self._members = tuple(members)

    def predict(self, X: Features) -> FloatArray:
        """Prediction of each member, (n, n_members) float64."""
        return np.concatenate([member.predict(X) for member in self._members], axis=1)

    def members(self, X: Features) -> FloatArray:
        """Prediction of each member, (n, n_members) float64."""
        return self.predict(X)
