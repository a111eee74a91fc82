"""Tables in: files read and checked once, at the door."""

from __future__ import annotations

from kdcal_core.data.checks import (
    check_labels,
    check_proba,
    check_weight,
    digest_arrays,
    softmax_logits,
)
from kdcal_core.data.types import FloatArray, IntArray, Roles, ScoredSet, Table

__all__ = [
    "FloatArray",
    "IntArray",
    "Roles",
    "ScoredSet",
    "Table",
    "check_labels",
    "check_proba",
    "check_weight",
    "digest_arrays",
    "softmax_logits",
]
