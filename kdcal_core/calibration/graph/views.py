"""The parts of a model that a kernel density graph uses: a partition, and the points in it."""

from __future__ import annotations

import warnings
from typing import Literal

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models import (
    Features,
    HasCodes,
    HasHead,
    HasLogits,
    Model,
    NamesActivations,
)
from kdcal_core.partition import ActivationCodes, Codes, LeafCodes

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
