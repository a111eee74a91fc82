"""KC123: whether a recalibrator would make the predicted distributions better."""

from __future__ import annotations

import math

import numpy as np

from kdcal_core.checks.bias import needs_spread
from kdcal_core.checks.check import Check, Part, Repairs
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import IntArray, at_most, check_weight
from kdcal_core.diagnostics import ratio_estimate
from kdcal_core.diagnostics.influence import Influence, ratio_influence
from kdcal_core.distributions import RegressionSet
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import MODEL, JudgedRecalibrators, Space, judge_recalibrators
from kdcal_core.review import Limit

QUICK_RECALIBRATORS = ("isotonic", "local")
"""Recalibrators that are tried: one corrects all rows alike, the other each by its neighbours."""
MOST_ROWS = 10_000
"""Of larger sets a random sample is drawn."""


def _needs(evidence: Evidence) -> str | None:
    if (why := needs_spread(evidence)) is not None:
        return why
    return None if evidence.space is not None else "There is no review to fit recalibrators on."


def _drawn(n: int, seed: int) -> IntArray:
    return at_most(n, MOST_ROWS, [seed, n])


def _judged(evidence: Evidence) -> tuple[JudgedRecalibrators, RegressionSet]:
    """The recalibrators, judged on rows that they were not fitted on, and those rows."""
    assert evidence.space is not None
    space, rows = evidence.space(), evidence.predicted
    fit = evidence.calibration or rows
    assert isinstance(fit, RegressionSet)
    kept = _drawn(fit.n_rows, evidence.seed)
    fitted, judged, held = fit.only(kept), None, None  # without other rows, cross-fitted
    if fit is not rows:
        at = _drawn(rows.n_rows, evidence.seed)
        judged, held = rows.only(at), space.judged[at]
    with quiet():  # notes of a fit that Recalibration shows
        found = judge_recalibrators(
            QUICK_RECALIBRATORS,
            fitted,
            judged,
            Space(space.name, space.calibration[kept], held),
            seed=evidence.seed,
            progress=evidence.progress,
        )
    return found, judged or fitted


def _measured(evidence: Evidence, level: float) -> list[Part]:
    found, rows = evidence.once("recalibrations", lambda: _judged(evidence))
    now = found.answers[MODEL].crps
    if not now.any():
        raise InputError(
            "Every distribution is a single value and hits its outcome, so the CRPS is 0",
            fix="There is nothing to repair.",
        )
    return [
        Part(
            ratio_estimate(
                now - found.answers[one.key].crps,
                now,
                weight=rows.design,
                level=level,
                name="CRPS gained by the recalibrator, as a share of the model's",
                label="CRPS gained",
                percent=True,
                lower_is_better=True,
            ),
            one.title,
        )
        for one in found.methods
        if one.key != MODEL
    ]


def _influence(evidence: Evidence) -> list[Influence]:
    """With the recalibrators held fixed, as the intervals have them; of rows not drawn, none."""
    found, rows = evidence.once("recalibrations", lambda: _judged(evidence))
    at = _drawn(evidence.n_rows, evidence.seed)
    every = check_weight(evidence.predicted.weight, evidence.n_rows)
    weight, now = check_weight(rows.weight, rows.n_rows), found.answers[MODEL].crps
    influences: list[Influence] = []
    for one in found.methods:
        if one.key == MODEL:
            continue
        of_drawn = ratio_influence(now - found.answers[one.key].crps, now, weight)
        if of_drawn is None:
            influences.append(None)
            continue
        whole = np.zeros(evidence.n_rows)
        whole[at] = of_drawn * every.sum() / weight.sum()
        influences.append(whole)
    return influences


Check(
    code="KC123",
    title="Room for a recalibration",
    question="Would a recalibrator make the predicted distributions clearly better?",
    fault="a recalibrator would improve it",
    family="usefulness",
    tasks=("regression",),
    limit=Limit(high=0.05),
    bounds=(-math.inf, 1.0),
    percent=True,
    measured=_measured,
    remedy="A repair is worth it: compare the recalibrators on these rows, and use the one "
    "that is recommended.",
    page="recalibration",
    method="What isotonic and local recalibration gain in CRPS on rows that they were not fitted "
    f"on (at most {MOST_ROWS:,} of each set), over the model's CRPS there. Fieller's interval: "
    "both are uncertain, and paired by row.",
    needs=_needs,
    influence=_influence,
    quick=False,
    repairs=Repairs("recalibrators", "CRPS"),
    no_chance="a recalibrator gains nothing of a calibrated model on rows that it was not fitted "
    "on, so that 0 can be the upper end",
).offer()
