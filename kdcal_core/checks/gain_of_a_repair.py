"""KC103: whether a calibrator would make the probabilities better."""

from __future__ import annotations

import warnings
from dataclasses import replace

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.errors import InputWarning
from kdcal_core.evaluation import MEASURES, HeldOut, held_out_answers, methods_of
from kdcal_core.review import Limit

QUICK_CALIBRATORS = ("sts", "platt", "beta", "isotonic")
"""Calibrators that are tried: few, quick to fit, and safe with few rows."""


def _needs(evidence: Evidence) -> str | None:
    return None if evidence.review is not None else "There is no review to fit calibrators on."


def _answers(evidence: Evidence) -> HeldOut:
    assert evidence.review is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # notes of a fit that only Compare shows
        return held_out_answers(
            methods_of(QUICK_CALIBRATORS, evidence.seed),
            evidence.review(),
            judge="cross-fitted" if evidence.rows.name == "calibration" else "evaluation",
            seed=evidence.seed,
        )


def _measured(evidence: Evidence, level: float) -> list[Part]:
    held = evidence.once("repairs", lambda: _answers(evidence))
    rows, measure = held.rows, MEASURES["log_loss"]
    assert measure.paired is not None
    assert measure.by_set is not None
    now = measure.by_set(rows.proba, rows.y, sample_weight=rows.weight).value
    parts = []
    for method, said in zip(held.methods, held.said, strict=True):
        if method.key not in QUICK_CALIBRATORS or now <= 0.0:
            continue
        gained = measure.paired(
            rows.proba, said.proba, rows.y, level=level, sample_weight=rows.weight
        )
        share = replace(
            gained,
            name="Log loss gained by the calibrator, as a share of the model's",
            label="Log loss gained",
            value=gained.value / now,
            low=gained.low / now,
            high=gained.high / now,
            percent=True,
        )
        parts.append(Part(share, method.name))
    return parts


Check(
    code="KC103",
    title="Room for a repair",
    question="Would a calibrator make the probabilities clearly better?",
    family="usefulness",
    tasks=("classification",),
    limit=Limit(high=0.05),
    measured=_measured,
    remedy="A repair is worth it: compare the calibrators on these rows and export the one that "
    "is recommended.",
    page="compare",
    method="What four quick calibrators gain in log loss on rows that they were not fitted on, "
    "paired by row.",
    needs=_needs,
    quick=False,
).offer()
