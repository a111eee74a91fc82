"""The spaces in which neighbours are searched, and how new rows get their coordinates in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from kdcal_core.data.frames import as_pandas
from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import PredictiveDistribution, moments
from kdcal_core.errors import InputError
from kdcal_core.models import HasLayers
from kdcal_core.models.coordinates import Coordinates, fit_coordinates

INPUTS = "inputs"
PREDICTION = "prediction"
BOTH = "inputs and prediction"
LAYER = "layer:"


@dataclass(frozen=True, eq=False)
class SpaceOfRows:
    """Gives rows their coordinates in one space.

    Attributes
    ----------
    name : str
        "inputs", "prediction" (mean and standard deviation of the predictive distribution),
        "inputs and prediction", or "layer:" and the name of a hidden layer. Untrusted text.
    coordinates : Coordinates or None
        Those of the inputs, as encoded on the calibration set; None where they are not read.
    """

    name: str
    coordinates: Coordinates | None = None

    @classmethod
    def of_inputs(cls, frame: pd.DataFrame, *, with_prediction: bool) -> SpaceOfRows:
        """The inputs, or these with the prediction, as encoded on the rows of the calibration set.

        Examples
        --------
        >>> from kdcal_core.distributions import Normal
        >>> frame = pd.DataFrame({"x": [0.0, 2.0]})
        >>> space = SpaceOfRows.of_inputs(frame, with_prediction=True)
        >>> space.of(Normal([5.0, 6.0], 1.0), frame).shape
        (2, 3)
        """
        frame = as_pandas(frame)
        names = tuple(str(name) for name in frame.columns)
        coordinates = fit_coordinates(
            frame, n_features=len(names), feature_names=names, scale="standard"
        )
        return cls(BOTH if with_prediction else INPUTS, coordinates)

    @property
    def layer(self) -> str | None:
        """The hidden layer that it reads; None for none."""
        return self.name.removeprefix(LAYER) if self.name.startswith(LAYER) else None

    def of(
        self,
        distribution: PredictiveDistribution,
        frame: pd.DataFrame | None,
        model: object = None,
    ) -> FloatArray:
        """Coordinates of rows, (n, d).

        Parameters
        ----------
        distribution : PredictiveDistribution of n rows
        frame : data frame of n rows or None
            The inputs, where the space reads them.
        model : optional
            The model, for a hidden layer.

        Raises
        ------
        InputError
            If the inputs or the model are missing, or do not fit.
        """
        if self.name == PREDICTION:
            return moments(distribution)
        if frame is None:
            raise InputError(
                "The inputs are missing, and neighbours are searched by them",
                fix="Give the rows' columns.",
            )
        if self.layer is not None:
            if not isinstance(model, HasLayers) or self.layer not in model.layers:
                raise InputError(
                    f"Neighbours are searched in the hidden layer {self.layer[:80]!r}, and no "
                    "model with this layer is given",
                    fix="Give the model that the recalibrator was fitted for.",
                )
            return model.embed(frame, self.layer)
        assert self.coordinates is not None
        values = self.coordinates.transform(frame)
        return np.column_stack([values, moments(distribution)]) if self.name == BOTH else values
