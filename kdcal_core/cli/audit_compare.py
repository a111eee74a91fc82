"""``kdcal audit compare``: what changed from one audit to others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kdcal_core.cli.as_json import json_report
from kdcal_core.cli.audit_named import content_of, the_record
from kdcal_core.cli.terminal import Report, table
from kdcal_core.text import printable

if TYPE_CHECKING:
    from kdcal_core.audit import AuditContent, ComparedAudits
    from kdcal_core.diagnostics import ChangedEstimate


def compare(options: argparse.Namespace) -> Report:
    """Compare an audit with others, of the record or of files."""
    from kdcal_core.audit import compare_with_baseline, errors_of_content

    record = the_record()
    names = (options.before, *options.after)
    contents = [content_of(record, one) for one in names]
    with errors_of_content():
        found = compare_with_baseline(contents[0], contents[1:])
        if options.json:
            return json_report(compared_values(names, contents, found))
        if len(found) == 1:
            return Report(_compared_text(found[0]), asked=True)
        return Report(_several_text(contents, found), asked=True)


def _compared_text(found: ComparedAudits) -> str:
    """What changed between two audits, ready to print."""
    from kdcal_core.audit import compared_words
    from kdcal_core.charts import direction_text
    from kdcal_core.diagnostics import estimate_text, value_text

    parts = [printable(compared_words(found), 1000)]
    if found.facts:
        parts.append(table(("Changed", "Before", "After"), found.facts, left=(0, 1, 2)))
    verdicts = [
        (f"{one.code}", one.before or "not made", one.after or "not made")
        for one in found.verdicts
        if one.before != one.after
    ]
    if verdicts:
        parts.append(table(("Verdict of", "Before", "After"), verdicts, left=(0, 1, 2)))
    rows = [
        (one.name, value_text(one.before), value_text(one.after),
         estimate_text(one.difference, chance=False), direction_text(one.direction))
        for one in found.estimates
    ]  # fmt: skip
    header = ("Estimate", "Before", "After", "Difference", "Is")
    parts.append(table(header, rows, left=(0, 4)))
    parts.append(printable(_rows_text(found), 1000))
    return "\n\n".join(parts)


def _rows_text(found: ComparedAudits) -> str:
    """Whether the rows are the same, and what that means for the differences."""
    from kdcal_core.audit import overlap_words, paired_words

    if not found.same_rows:
        return f"They judged other rows. {overlap_words(found)}"
    files = "" if found.same_file else ", in two files: the outcomes are the same in one order"
    return f"Both were judged on the same rows{files}. {paired_words(found)}".strip()


def _several_text(contents: Sequence[AuditContent], found: Sequence[ComparedAudits]) -> str:
    """What changed from one audit to each of several, ready to print."""
    from kdcal_core.audit import compared_words, estimates_beside, facts_beside, verdicts_beside
    from kdcal_core.charts import direction_text
    from kdcal_core.diagnostics import estimate_text, value_text

    def said(one: ChangedEstimate) -> str:
        found = estimate_text(one.difference, chance=False)
        return f"{found}, {direction_text(one.direction)}"

    letters = [chr(ord("A") + at) if at < 26 else f"A{at}" for at in range(len(contents))]
    where = [
        "",
        *(", the same rows as A" if one.same_rows else ", other rows than A" for one in found),
    ]
    parts = [
        "\n".join(
            printable(f"{letter} is {one.title}{more}.", 200)
            for letter, one, more in zip(letters, contents, where, strict=True)
        ),
        "\n".join(
            printable(compared_words(one, letters[0], letter), 1000)
            for letter, one in zip(letters[1:], found, strict=True)
        ),
    ]
    left = tuple(range(len(letters) + 1))
    facts = [
        (one.name, one.before, *one.after) for one in facts_beside([one.facts for one in found])
    ]
    if facts:
        parts.append(table(("Changed", *letters), facts, left=left))
    verdicts = [
        tuple(one or "not made" for one in (each.name, each.before, *each.after))
        for each in verdicts_beside(contents)
        if set(each.after) != {each.before}
    ]
    if verdicts:
        parts.append(table(("Verdict of", *letters), verdicts, left=left))
    rows = [
        (
            each.name,
            value_text(each.before),
            *("" if one is None else said(one) for one in each.after),
        )
        for each in estimates_beside([one.estimates for one in found])
    ]
    header = ("Estimate", "A", *(f"{letter} minus A" for letter in letters[1:]))
    parts.append(table(header, rows, left=left))
    parts.append(
        "Each interval is for its difference alone. What is better or worse allows for the number "
        "of all differences here (Holm)."
    )
    parts += [
        printable(f"{letter}: {_rows_text(one)}", 1000)
        for letter, one in zip(letters[1:], found, strict=True)
    ]
    return "\n\n".join(parts)


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
    from kdcal_core.audit import compared_words

    return {
        **asdict(found),
        "finding": compared_words(found),
        "facts": [
            {"name": name, "before": before, "after": after} for name, before, after in found.facts
        ],
    }
