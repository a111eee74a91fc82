"""What ``kdcal audit compare --json`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kdcal_core.audit import compared_words

if TYPE_CHECKING:
    from kdcal_core.audit import AuditContent, ComparedAudits


def compared_values(
    names: Sequence[str], contents: Sequence[AuditContent], found: Sequence[ComparedAudits]
) -> dict[str, Any]:
    """What changed from one audit to each of several, as JSON values.

    Parameters
    ----------
    names : sequence of str
        How the audits were named, the baseline first.
    contents : sequence of AuditContent
        The same audits.
    found : sequence of ComparedAudits
        Of each but the baseline. What is better or worse allows for all of them (Holm), while each
        interval is for its difference alone.
    """
    titles = [
        {"named": name, "title": one.title} for name, one in zip(names, contents, strict=True)
    ]
    return {
        "baseline": titles[0],
        "compared": [
            {**title, **_values(one)} for title, one in zip(titles[1:], found, strict=True)
        ],
    }


def _values(found: ComparedAudits) -> dict[str, Any]:
    return {
        **asdict(found),
        "finding": compared_words(found),
        "facts": [
            {"name": name, "before": before, "after": after} for name, before, after in found.facts
        ],
    }
