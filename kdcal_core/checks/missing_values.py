"""KC203: how many values the inputs lack."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, largest
from kdcal_core.checks.evidence import Evidence
from kdcal_core.review import Limit


def _needs(evidence: Evidence) -> str | None:
    return None if evidence.missing else "No column describes the rows."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    n = evidence.rows.n_rows
    columns, counts = [*evidence.missing], [*evidence.missing.values()]
    found = largest(
        "Share of rows without a value", "Missing", [one / n for one in counts], n, level
    )
    name = columns[counts.index(max(counts))] if any(counts) else ""
    return [Part(found, name, key="most missing")]


Check(
    code="KC203",
    title="Missing values",
    question="Does any input lack many of its values?",
    fault="an input lacks too many of its values",
    family="data",
    tasks=("classification", "regression"),
    limit=Limit(high=0.2),
    bounds=(0.0, 1.0),
    percent=True,
    measured=_measured,
    remedy="Find out why the values are missing, and whether they were missing as often in "
    "training. Look at the rows with and without them.",
    page="load",
    method="The share of rows without a value, of the input with most missing values, with Clopper "
    "and Pearson's interval, corrected for the choice among the inputs.",
    needs=_needs,
    of_tables=True,
).offer()
