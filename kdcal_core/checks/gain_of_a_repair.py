"""KC103: whether a calibrator would make the probabilities better."""

from __future__ import annotations

import math

from kdcal_core.checks.check import Check, Part, Repairs
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import FloatArray, check_weight
from kdcal_core.diagnostics import ratio_estimate
from kdcal_core.diagnostics.influence import Influence, ratio_influence
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import MEASURES, HeldOut, held_out_answers, methods_of
from kdcal_core.review import Limit

QUICK_CALIBRATORS = ("sts", "platt", "beta", "isotonic", "svs")
"""Calibrators that are tried: few, quick to fit, and safe with few rows."""


def _needs(evidence: Evidence) -> str | None:
    return None if evidence.review is not None else "There is no review to fit calibrators on."


def _answers(evidence: Evidence) -> HeldOut:
    assert evidence.review is not None
    with quiet():  # notes of a fit that only Compare shows
        return held_out_answers(
            methods_of(QUICK_CALIBRATORS, evidence.seed),
            evidence.review(),
            judge="cross-fitted" if evidence.rows.name == "calibration" else "evaluation",
            seed=evidence.seed,
        )


def _losses(evidence: Evidence) -> tuple[HeldOut, FloatArray, dict[str, FloatArray]]:
    """What was tried; of each row the log loss of the model, and of each method by its name."""
    held = evidence.once("repairs", lambda: _answers(evidence))
    rows, by_row = held.rows, MEASURES["log_loss"].by_row
    assert by_row is not None
    losses = {
        method.name: by_row(said.proba, rows.y)
        for method, said in zip(held.methods, held.said, strict=True)
        if method.key in QUICK_CALIBRATORS
    }
    return held, by_row(rows.proba, rows.y), losses


def _measured(evidence: Evidence, level: float) -> list[Part]:
    held, now, losses = _losses(evidence)
    if not now.any():
        raise InputError(
            "The model is certain and right in every row, so its log loss is 0",
            fix="There is nothing to repair.",
        )
    return [
        Part(
            ratio_estimate(
                now - loss,
                now,
                weight=held.rows.design,
                level=level,
                name="Log loss gained by the calibrator, as a share of the model's",
                label="Log loss gained",
                percent=True,
                lower_is_better=True,
            ),
            name,
        )
        for name, loss in losses.items()
    ]


def _influence(evidence: Evidence) -> list[Influence]:
    """With the calibrators held fixed, as the intervals have them."""
    held, now, losses = _losses(evidence)
    weight = check_weight(held.rows.weight, held.rows.n_rows)
    return [ratio_influence(now - loss, now, weight) for loss in losses.values()]


Check(
    code="KC103",
    title="Room for a repair",
    question="Would a calibrator make the probabilities clearly better?",
    fault="a calibrator would improve it",
    family="usefulness",
    tasks=("classification",),
    limit=Limit(high=0.05),
    bounds=(-math.inf, 1.0),
    percent=True,
    measured=_measured,
    remedy="A repair is worth it: recalibrate, and audit the calibrated version.",
    page="compare",
    method="What five quick calibrators gain in log loss on rows that they were not fitted on, "
    "over the model's log loss there. Fieller's interval: both are uncertain, and paired by row.",
    needs=_needs,
    influence=_influence,
    quick=False,
    repairs=Repairs("quick calibrators", "log loss"),
    no_chance="a calibrator gains nothing of a calibrated model on rows that it was not fitted "
    "on, so that 0 can be the upper end",
).offer()
