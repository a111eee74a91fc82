"""Tables in: files read and checked once, at the door."""

from __future__ import annotations

from kdcal_core.data.checks import (
    check_labels,
    check_proba,
    check_weight,
    digest_arrays,
    softmax_logits,
)
from kdcal_core.data.columns import (
    check_roles,
    feature_frame,
    numeric_matrix,
    output_matrix,
    target_labels,
    weight_column,
)
from kdcal_core.data.fitness import Fitness, fitness
from kdcal_core.data.labels import absent_classes, classes_of, encode_labels
from kdcal_core.data.roles import guess_roles
from kdcal_core.data.splits import split_by_column, stratified_folds, stratified_halves
from kdcal_core.data.tables import read_table, table_from_frame
from kdcal_core.data.text import escape_html, escape_markdown
from kdcal_core.data.types import FloatArray, IntArray, Roles, ScoredSet, Table

__all__ = [
    "Fitness",
    "FloatArray",
    "IntArray",
    "Roles",
    "ScoredSet",
    "Table",
    "absent_classes",
    "check_labels",
    "check_proba",
    "check_roles",
    "check_weight",
    "classes_of",
    "digest_arrays",
    "encode_labels",
    "escape_html",
    "escape_markdown",
    "feature_frame",
    "fitness",
    "guess_roles",
    "numeric_matrix",
    "output_matrix",
    "read_table",
    "softmax_logits",
    "split_by_column",
    "stratified_folds",
    "stratified_halves",
    "table_from_frame",
    "target_labels",
    "weight_column",
]
