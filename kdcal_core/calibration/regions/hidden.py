"""A hidden layer as the inputs of a partition (Durfee et al., section 5).

For images and text the paper grows the tree on the neurons of an internal layer, which hold
patterns that the raw inputs show only together.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from kdcal_core.errors import InputError
from kdcal_core.models import HasEmbedding, HasLayers


def layer_frame(model: Any, X: Any, layer: str | None = None) -> pd.DataFrame:
    """Activations of a network's hidden layer as a table to partition by, (n, units).

    Parameters
    ----------
    model : Model
        A network with hidden layers.
    X : (n, d) DataFrame or array
        Its inputs.
    layer : str, optional
        One of ``model.layers``; the last hidden layer where left out.

    Returns
    -------
    pandas.DataFrame
        Columns "unit 1", "unit 2", ...: the X and X_partition of
        :class:`~kdcal_core.calibration.regions.HeterogeneousCalibrator`.

    Raises
    ------
    InputError
        If the model has no hidden layer, or none of that name.

    Examples
    --------
    >>> import numpy as np
    >>> class Network:
    ...     def embed(self, X):
    ...         return np.maximum(X, 0.0)
    >>> layer_frame(Network(), np.array([[-1.0, 2.0]])).to_dict("list")
    {'unit 1': [0.0], 'unit 2': [2.0]}
    """
    if layer is not None and isinstance(model, HasLayers):
        if layer not in model.layers:
            raise InputError(
                f"The model has no hidden layer {layer!r}",
                fix="Name one of: " + ", ".join(model.layers) + ".",
            )
        units = model.embed(X, layer)
    elif layer is None and isinstance(model, HasEmbedding):
        units = model.embed(X)
    else:
        raise InputError(
            "The model has no hidden layer to partition by"
            if layer is None
            else "The model does not name its hidden layers",
            fix="Partition by the inputs instead." if layer is None else "Leave the layer out.",
        )
    return pd.DataFrame(units, columns=[f"unit {i + 1}" for i in range(units.shape[1])])
