"""KC010: what the model states far from its data."""

from __future__ import annotations

from dataclasses import replace

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import ood_calibration_error
from kdcal_core.diagnostics.targets import class_shares
from kdcal_core.evaluation.compare import FarRows, far_rows
from kdcal_core.review import Limit


def _needs(evidence: Evidence) -> str | None:
    if evidence.review is None or evidence.review().model is None:
        return (
            "It asks the model about rows far from the data, and here are only predictions. Load "
            "the model's file beside the table."
        )
    return None


def _far(evidence: Evidence) -> FarRows:
    assert evidence.review is not None
    return far_rows(evidence.review(), evidence.seed)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    assert evidence.review is not None
    far = evidence.once("far rows", lambda: _far(evidence))
    known = evidence.review().calibration
    shares, rows = class_shares(known.y, far.proba.shape[1], known.design)
    found = ood_calibration_error(
        far.proba,
        shares,
        prior_kind="empirical",
        prior_rows=rows,
        level=level,
        dependence=far.dependence,
    )
    return [Part(replace(found, label="Distance to the prior (OCE)"))]


Check(
    code="KC010",
    title="Far from the data",
    question="Does the model become unsure where it has no data?",
    fault="it stays sure far from its data",
    family="calibration",
    tasks=("classification",),
    limit=Limit(high=0.25),
    bounds=(0.0, 1.0),
    measured=_measured,
    remedy="Most models stay sure far from their data. Use the kernel density version of a forest "
    "or a network, or refuse rows that lie outside the training data.",
    page="out_of_distribution",
    method="How far confidence lies from that of the classes' shares, on the review's foreign "
    "rows or on a sphere at five times the distance of the farthest row.",
    needs=_needs,
    quick=False,
    no_chance="no outcomes are known there that chance could move, and a model that states the "
    "classes' shares has the value 0",
).offer()
