"""Receipts: signed statements of how far a record goes, to be kept elsewhere."""

from __future__ import annotations

from typing import Any

from kdcal_core.audit.events import Moment
from kdcal_core.audit.project import Project
from kdcal_core.audit.signing import Signer, read_statement, statement
from kdcal_core.store import encode

RECEIPT = "https://kdcal.org/receipt/v1"
"""Type of the statement that a receipt makes."""


def made_receipt(
    project: Project, when: Moment, audit: str | None, signer: Signer
) -> dict[str, Any]:
    """The receipt of a project as it stands, as `Record.receipt` gives it.

    Parameters
    ----------
    when : Moment
        Of the project's last entry.
    audit : str or None
        The audit that it is for.
    """
    subjects = {"record": project.head}
    said: dict[str, Any] = {
        "project": project.id,
        "name": project.name,
        "number": project.number,
        "when": encode(when),
    }
    if audit is not None:
        found = project.audits[audit]
        subjects["audit"] = found.facts.content
        said |= {
            "audit": found.id,
            "title": found.facts.title,
            "state": found.state,
            "verdict": found.facts.verdict,
        }
    return statement(subjects, RECEIPT, said, signer)


def receipt_project(receipt: Any) -> str:
    """The id of the project that a receipt is of, whoever signed it.

    Raises
    ------
    InputError
        If it is no receipt.
    """
    predicate = read_statement(receipt, RECEIPT)["predicate"]
    return str(predicate.get("project", ""))
