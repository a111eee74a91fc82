"""Make an audit of a review: every check, every estimate, and the charts, in one job."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

import kdcal_core
from kdcal_core.audit.asked import AuditSettings, audit_settings, limits_of, subject_of
from kdcal_core.audit.chart_keeping import charts_of, kept_charts
from kdcal_core.audit.content import (
    FORMAT,
    AuditContent,
    Code,
    KeptChart,
)
from kdcal_core.checks import (
    CHECKS,
    CheckedReview,
    MeasuredChecks,
    headline,
    judge_checks,
    next_step,
)
from kdcal_core.data.row_sketch import RowSketch, row_sketch
from kdcal_core.diagnostics import (
    Estimate,
)
from kdcal_core.errors import InputError
from kdcal_core.jobs.builds import files_digest, installed
from kdcal_core.progress import part_of
from kdcal_core.review import PARTS, Review, open_doubts, open_questions, undeclared_groups
from kdcal_core.review.review import input_columns
from kdcal_core.statistics import GroupSums
from kdcal_core.tasks import (
    Sets,
    every_sums,
    measured_checks,
    pit_overview,
    review_task,
    score_sums,
    set_estimates,
)
from kdcal_core.tasks.decorators import require_scored

_SEED = 0
_PACKAGES = (
    *("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "numba", "plotly", "torch"),
    *("onnx", "onnxruntime", "skops", "xgboost-cpu", "lightgbm"),
)


def code_digest() -> str:
    """The digest of kdcal's own files."""
    return code_facts().digest


@cache
def code_facts() -> Code:
    """The versions of kdcal, Python and the packages that compute, and the digest of our files."""
    return Code(
        kdcal=kdcal_core.__version__,
        digest=files_digest(),
        python=platform.python_version(),
        packages=installed(_PACKAGES),
    )


@review_task(
    "Audit: computing everything",
    reads=PARTS,
    needs=require_scored,
    default=audit_settings,
    covers=lambda review: [review.title, list(open_doubts(review))],
    edition=code_digest,
)
def make_audit(sets: Sets, *, settings: AuditSettings) -> AuditContent:
    """Everything that an audit keeps of a review.

    Raises
    ------
    InputError
        If limits compare with a baseline and none is given, or a file is gone.
    """
    review, which = sets.reader.review, settings.which
    codes = settings.codes or tuple(one.code for one in CHECKS.values())
    known = {one.code: one for one in settings.measured if one.code in codes}
    asked = [one for one in codes if one not in known]
    measuring = part_of(sets.progress, 0.0, 0.7)
    found = measured_checks(sets, which, settings.event, settings.groups, asked, measuring)
    known |= {one.code: one for one in found.checks}
    measured = replace(found, checks=tuple(known[one] for one in CHECKS if one in known))
    checked = judged(review, settings, measured)
    sets.progress(0.7, "Measuring, with intervals")
    estimates, sums = _estimates(sets, settings)
    sets.progress(0.8, "Drawing")
    charts = kept_charts(charts_of(sets, settings))
    content = content_of(review, settings, measured, checked, estimates, charts, sums)
    return replace(content, sketch=_sketch(sets, settings))


def _sketch(sets: Sets, settings: AuditSettings) -> RowSketch | None:
    """Of the judged rows, by the columns that describe them and what became of each."""
    review, which = sets.reader.review, settings.which
    columns = tuple(input_columns(review))
    if not settings.rows_key or not columns:
        return None
    if review.task == "regression":
        outcome = sets.distributions(which).y
    else:
        rows = sets.read(which)
        outcome = np.asarray(rows.classes, dtype=object)[rows.y]
    return row_sketch(sets.frame(which, columns), outcome, bytes.fromhex(settings.rows_key))


def judged(review: Review, settings: AuditSettings, measured: MeasuredChecks) -> CheckedReview:
    """The verdicts of an audit.

    Raises
    ------
    InputError
        If limits compare with a baseline and none is given.
    """
    limits = limits_of(review.task, settings.codes, settings.limits)
    compared = sorted(code for code, one in limits.items() if one.against == "baseline")
    if compared and settings.baseline is None:
        raise InputError(
            f"The limits of {', '.join(compared)} compare with a baseline, and none is given",
            fix="Give one, or give these checks limits of their own.",
        )
    return judge_checks(
        measured,
        limits,
        baseline=settings.baseline.measured if settings.baseline else None,
        required=settings.required,
    )


def content_of(
    review: Review,
    settings: AuditSettings,
    measured: MeasuredChecks,
    checked: CheckedReview,
    estimates: tuple[Estimate, ...],
    charts: tuple[KeptChart, ...],
    sums: Mapping[str, GroupSums] | None = None,
) -> AuditContent:
    """What an audit keeps of what was computed."""
    return AuditContent(
        format=FORMAT,
        title=settings.title,
        subject=subject_of(review, settings),
        code=code_facts(),
        seed=_SEED,
        limits=limits_of(review.task, settings.codes, settings.limits),
        measured=measured,
        checked=checked,
        headline=headline(checked),
        next_step=next_step(
            checked,
            undeclared=undeclared_groups(review, settings.groups),
            questions=open_questions(review),
        ),
        estimates=estimates,
        charts=charts,
        baseline=settings.baseline.without_sums if settings.baseline else None,
        calibrator=settings.calibrator,
        sums=dict(sums or {}),
    )


def _estimates(
    sets: Sets, settings: AuditSettings
) -> tuple[tuple[Estimate, ...], dict[str, GroupSums]]:
    """Every estimate, and what pairs them with another model's."""
    which, event = settings.which, settings.event
    if sets.reader.review.task == "regression":
        rows = pit_overview(sets, which=which).scores.rows
        return tuple(rows.values()), score_sums(sets, which, rows)
    estimates = set_estimates(sets, which=which, event=event).estimates
    return estimates, every_sums(sets, which, event, estimates)
