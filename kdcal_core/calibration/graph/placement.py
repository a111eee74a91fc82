"""The placement of rows in a model's partition: their codes, coordinates and polytopes.

Codes come from the leaves of trees or the activations of a network.
"""

from __future__ import annotations

import warnings
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Literal

from kdcal_core.calibration.graph.fit_rows import FitRows
from kdcal_core.calibration.graph.gaussians import Located
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models import (
    Features,
    HasCodes,
    HasHead,
    HasLogits,
    Model,
    NamesActivations,
)
from kdcal_core.models.coordinates import Coordinates, Scale, fit_coordinates
from kdcal_core.partition import (
    ActivationCodes,
    Codes,
    LeafCodes,
    find_polytopes,
    nearest_centres,
    nearest_polytopes,
)
from kdcal_core.progress import Progress

OutputLayer = Literal["probability", "logit", "exclude"]

_STILL_POSSIBLE = (
    "Its probabilities can still be calibrated, by temperature scaling, class by class or by "
    "isotonic regression; only confidence that falls back to the prior outside needs a partition: "
    "a decision tree, a forest, boosted trees, or a network with ReLU layers."
)


def partitioned(model: Model) -> HasCodes:
    """The model, if it makes a partition.

    Raises
    ------
    InputError
        It makes no partition; the message says why and names alternatives.
    """
    if isinstance(model, HasCodes):
        return model
    others = other_activations(model)
    why = f": its activations are not ReLU ({', '.join(others)})" if others else ""
    raise InputError(
        f"This model ({model.kind}) does not divide its inputs into polytopes{why}",
        fix=_STILL_POSSIBLE,
    )


def other_activations(model: Model) -> tuple[str, ...]:
    """The activations of a network that are not ReLU, layer by layer; untrusted text."""
    return model.other_activations if isinstance(model, NamesActivations) else ()


def partition_codes(model: Model, X: Features, output_layer: OutputLayer | None) -> Codes:
    """Leaves of the rows where ``output_layer`` is None, else activation bits."""
    if output_layer is None:
        return leaf_codes(model, X)
    return activation_codes(model, X, output_layer)


def leaf_codes(model: Model, X: Features) -> LeafCodes:
    """Leaves of the rows in each tree.

    Raises
    ------
    InputError
        The model has no partition, or a network's.
    """
    codes = partitioned(model).codes(X)
    if not isinstance(codes, LeafCodes):
        raise InputError(
            f"This model ({model.kind}) has no trees", fix="Use KernelDensityNetwork for it."
        )
    return codes


def activation_codes(model: Model, X: Features, output_layer: OutputLayer) -> ActivationCodes:
    """Activation bits of the rows in each layer, the output's layer included as asked.

    Of an encoder with a dense head the head's layers only (Dey et al., section 3.2). The output
    layer's bit of a class is 1 where its probability is above 1/K ("probability") or its logit
    above zero ("logit", decision D4).

    Raises
    ------
    InputError
        The model has no partition or a forest's, or no logits where they are asked for.
    """
    owner = partitioned(model)
    codes = model.head_codes(X) if isinstance(model, HasHead) else owner.codes(X)
    if not isinstance(codes, ActivationCodes):
        raise InputError(
            f"This model ({model.kind}) has no activations",
            fix="Use KernelDensityForest for it.",
        )
    if output_layer == "exclude":
        return codes
    if output_layer == "probability":
        return codes.with_layer(model.predict_proba(X) > 1.0 / len(model.classes))
    if not isinstance(model, HasLogits):
        raise InputError(
            f"This model ({model.kind}) gives no logits",
            fix='Set output_layer to "probability" or "exclude".',
        )
    return codes.with_layer(model.logits(X) > 0.0)


def embedded(model: Model, X: Features) -> FloatArray | None:
    """What goes into the dense head, (n, d), where the model is an encoder with such a head."""
    return model.head_input(X) if isinstance(model, HasHead) else None


def warn_of_other_activations(model: Model) -> None:
    """Return a note where a network's codes do not describe its whole partition."""
    others = other_activations(model)
    if others and isinstance(model, HasCodes) and not isinstance(model, HasHead):
        warnings.warn(
            f"Some activations of the network are not ReLU ({', '.join(others)}): the kernel "
            "counts its ReLU layers only.",
            InputWarning,
            stacklevel=4,
        )


Distance = Literal["geodesic", "euclidean"]


@dataclass(frozen=True, eq=False)
class Placement:
    """A model's partition with the polytopes that rows of the fit fall into.

    Attributes
    ----------
    model : Model
    output_layer : {"probability", "logit", "exclude"} or None
        What of a network's output belongs to its codes; None for the leaves of a forest.
    coordinates : Coordinates
        Of the features, or of what goes into the head of an encoder with a dense head.
    polytopes : codes of the p polytopes
    distance : {"geodesic", "euclidean"}
    """

    model: Model
    output_layer: OutputLayer | None
    coordinates: Coordinates
    polytopes: Codes
    distance: Distance

    def codes(self, X: Any) -> Codes:
        """Codes of rows, m of them."""
        return partition_codes(self.model, X, self.output_layer)

    def points(self, X: Any) -> FloatArray:
        """Coordinates of rows, (m, d)."""
        inner = embedded(self.model, X)
        return self.coordinates.transform(X if inner is None else inner)

    def locate(
        self,
        X: Any,
        centres: FloatArray,
        *,
        proba: FloatArray | None = None,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Located:
        """The nearest polytope of each row (Dey et al., Eq. 6); ``proba`` goes along."""
        codes = None if self.distance == "euclidean" else self.codes(X)
        found = self.nearest(self.points(X), codes, centres, progress=progress, executor=executor)
        return replace(found, proba=proba)

    def nearest(
        self,
        x: FloatArray,
        codes: Codes | None,
        centres: FloatArray,
        *,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Located:
        """The same from coordinates and codes; the Euclidean distance needs no codes."""
        if codes is None or self.distance == "euclidean":
            found = nearest_centres(x, centres, progress=progress)
        else:
            found = nearest_polytopes(
                codes,
                self.polytopes,
                x,
                centres,
                progress=progress,
                executor=executor,
            )
        return Located(x, found.index, found.tied)


def place(
    model: Model,
    output_layer: OutputLayer | None,
    rows: FitRows,
    distance: Distance,
    *,
    scale: Scale,
) -> tuple[Placement, IntArray, FloatArray]:
    """Learn the placement from rows of a fit; their polytopes, (n,), and coordinates, (n, d)."""
    found = find_polytopes(rows.codes)
    inner = embedded(model, rows.X)
    if inner is None:
        coordinates = fit_coordinates(
            rows.X, n_features=model.n_features, feature_names=model.feature_names, scale=scale
        )
    else:
        coordinates = fit_coordinates(
            inner, n_features=inner.shape[1], feature_names=None, scale=scale
        )
    placement = Placement(model, output_layer, coordinates, found.codes, distance)
    return placement, found.index, coordinates.transform(rows.X if inner is None else inner)
