"""Tables in: files read and checked once, at the door."""

from __future__ import annotations

from kdcal_core.data.checks import (
    check_labels,
    check_proba,
    check_weight,
    digest_arrays,
    softmax_logits,
)
from kdcal_core.data.labels import absent_classes, classes_of, encode_labels
from kdcal_core.data.text import escape_html, escape_markdown
from kdcal_core.data.types import FloatArray, IntArray, Roles, ScoredSet, Table

__all__ = [
    "FloatArray",
    "IntArray",
    "Roles",
    "ScoredSet",
    "Table",
    "absent_classes",
    "check_labels",
    "check_proba",
    "check_weight",
    "classes_of",
    "digest_arrays",
    "encode_labels",
    "escape_html",
    "escape_markdown",
    "softmax_logits",
]
