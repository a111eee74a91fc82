"""Model files: one adapter for each format, all behind one small protocol.

A review of predictions only has no model: its table holds the probabilities, and this room is not
used.
"""

from __future__ import annotations

from kdcal_core.models.formats import (
    load_model,
    model_formats,
    model_info,
    model_suffixes,
    refuse_pickle,
    wrap_model,
)
from kdcal_core.models.protocol import (
    Features,
    HasCodes,
    HasDropout,
    HasEmbedding,
    HasHead,
    HasLayers,
    HasLogits,
    HasMembers,
    Model,
    ModelInfo,
    NamesActivations,
    Regressor,
    fingerprint,
)

__all__ = [
    "Features",
    "HasCodes",
    "HasDropout",
    "HasEmbedding",
    "HasHead",
    "HasLayers",
    "HasLogits",
    "HasMembers",
    "Model",
    "ModelInfo",
    "NamesActivations",
    "Regressor",
    "fingerprint",
    "load_model",
    "model_formats",
    "model_info",
    "model_suffixes",
    "refuse_pickle",
    "wrap_model",
]


def __dir__() -> list[str]:
    return sorted(__all__)
