"""Models in: one adapter a file format, all behind one small protocol.

A review of predictions only has no parent: its table carries the probabilities, and nothing
here is called.
"""

from __future__ import annotations

from kdcal_core.parents.base import (
    Features,
    HasCodes,
    HasDropout,
    HasEmbedding,
    HasHead,
    HasLayers,
    HasLogits,
    HasMembers,
    NamesActivations,
    Parent,
    ParentInfo,
    Regressor,
)
from kdcal_core.parents.identity import fingerprint
from kdcal_core.parents.registry import (
    MODEL_SUFFIXES,
    load_parent,
    parent_info,
    refuse_pickle,
    wrap_parent,
)

__all__ = [
    "MODEL_SUFFIXES",
    "Features",
    "HasCodes",
    "HasDropout",
    "HasEmbedding",
    "HasHead",
    "HasLayers",
    "HasLogits",
    "HasMembers",
    "NamesActivations",
    "Parent",
    "ParentInfo",
    "Regressor",
    "fingerprint",
    "load_parent",
    "parent_info",
    "refuse_pickle",
    "wrap_parent",
]
