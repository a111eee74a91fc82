"""What a gate prints: JSON by a published schema, and a JUnit test suite."""

from __future__ import annotations

import json
from typing import Any

from kdcal_core.audit.gate import Gate
from kdcal_core.audit.junit import Case, junit_text
from kdcal_core.checks import evidence_text, result_text
from kdcal_core.review import Limit
from kdcal_core.store import encode

JSON_FORMAT = 1
"""Of `gate_json`: increased when a field is renamed or removed or changes its meaning."""


def gate_json(gate: Gate) -> dict[str, Any]:
    """What the command prints as JSON; its schema is `kdcal_core/audit/gate.schema.json`."""
    content = gate.content
    return {
        "format": JSON_FORMAT,
        "kdcal": content.code.kdcal,
        "title": content.title,
        "verdict": gate.verdict,
        "exit_code": gate.exit_code,
        "headline": content.headline,
        "next_step": content.next_step,
        "doubts": list(content.subject.doubts),
        "model": encode(content.subject.model),
        "calibrator": content.calibrator
        and {"title": content.calibrator.title, "digest": content.calibrator.digest},
        "tables": [
            {"part": one.part, "name": one.name, "sha256": one.digest, "rows": one.n_rows}
            | ({"files": one.files} if one.files else {})
            for one in content.subject.tables
        ],
        "judged": {"set": content.subject.which, "rows": content.checked.n},
        "baseline": content.baseline
        and {"name": content.baseline.name, "sha256": content.baseline.digest},
        "record": {
            "project": gate.project,
            "audit": gate.audit,
            "locked": gate.locked,
            "results_known": gate.results_known,
        }
        if gate.audit
        else None,
        "checks": [
            {
                "code": one.code,
                "title": one.check.title,
                "question": one.check.question,
                "verdict": one.verdict,
                "limit": limit_json(one.limit),
                "why_not": one.why_not,
                "parts": [
                    {
                        "name": part.name,
                        "label": part.estimate.label,
                        "estimator": part.estimate.name,
                        "value": finite(part.estimate.value),
                        "low": finite(part.estimate.low),
                        "high": finite(part.estimate.high),
                        "level": part.estimate.level,
                        "rows": part.estimate.n,
                        "verdict": part.verdict,
                        "rows_needed": part.rows_needed,
                    }
                    for part in one.parts
                ],
            }
            for one in content.checked.results
        ],
    }


def json_text(gate: Gate) -> str:
    """`gate_json` as text."""
    return json.dumps(gate_json(gate), indent=2, allow_nan=False) + "\n"


def limit_json(limit: Limit) -> dict[str, Any]:
    """A limit in JSON; an end that is not there is null."""
    return {
        "at_least": finite(limit.low),
        "at_most": finite(limit.high),
        "against": limit.against,
    }


def finite(value: float) -> float | None:
    """A number as JSON can hold it: None where it is infinite or none."""
    return float(value) if abs(value) < float("inf") else None


def gate_junit(gate: Gate) -> str:
    """The checks as a JUnit test suite, which CI systems show.

    A check that could not be answered is skipped, unless it must be answered: then it is "not
    enough evidence", which is a failure where the gate does not pass for it, and skipped where it
    does.
    """
    undecided_fails = gate.exit_code in (1, 3) and gate.verdict == "not enough evidence"
    cases, missing = [], gate.content.checked.unanswered
    for one in gate.content.checked.results:
        name, said = f"{one.code} {one.check.title}", result_text(one)
        if one.verdict == "fail" or (one.verdict == "not enough evidence" and undecided_fails):
            more = f"{one.remedy} {evidence_text(one, one.worst)}".rstrip()
            cases.append(Case(name, "fail", said, str(one.verdict), more))
        elif one in missing and undecided_fails:
            cases.append(Case(name, "fail", said, "not enough evidence", "It must be answered."))
        else:
            cases.append(Case(name, "pass" if one.verdict == "pass" else "skip", said))
    return junit_text(f"kdcal {gate.content.title}", "kdcal.checks", cases)
