"""One audit or review beside several: a sentence for each, and one of them drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.shared import session
from app.shared.kept_audits import numbers_of, whole_content
from app.shared.sections import sections
from app.shared.tables import show_table
from app.versions.versions_shown import SIDE_WIDTH, all_verdicts, changed_verdicts, charts
from app.versions.versions_tables import differences, facts_table, names_shown
from kdcal_core.audit import (
    Audit,
    ComparedAudits,
    Facts,
    Project,
    Record,
    compare_with_baseline,
    compared_words,
    estimates_beside,
    facts_beside,
    overlap_words,
)
from kdcal_core.charts import ComparedKind, direction_text, several_words, signed_text
from kdcal_core.diagnostics import ChangedEstimate, estimate_text, interval_text
from kdcal_core.errors import InputError
from kdcal_core.text import escape_label, escape_markdown, in_sentence, listed

_MOST_FURTHER = 4
_LETTERS = 900


def further(place: Any, labels: Mapping[str, str], *, key: str, what: str = "audit") -> list[str]:
    """The ids of further versions, each chosen in a box that appears after the one before."""
    chosen: list[str] = []
    for at in range(min(_MOST_FURTHER, len(labels))):
        one = place.selectbox(
            "And with",
            [one for one in labels if one not in chosen],
            index=None,
            format_func=labels.__getitem__,
            placeholder=f"Choose a further {what}",
            key=f"{key}_{at}",
            persist_state="session",
        )
        if one is None:
            break
        chosen.append(one)
    return chosen


def audits_beside(
    record: Record, project: Project, audits: Sequence[Audit], names: Mapping[str, str]
) -> None:
    """The first audit, and the difference of each of the others from it.

    ``names`` are those of all audits by their ids, as in the choices above.
    """
    baseline, *versions = audits
    labels = [names[one.id] for one in audits]
    try:
        contents = [numbers_of(record, one) for one in audits]
        found = compare_with_baseline(contents[0], contents[1:])
    except InputError as error:
        session.error_box(error)
        return
    estimates = [one.estimates for one in found]
    said = [
        compared_words(one, labels[0], label) for one, label in zip(found, labels[1:], strict=True)
    ]
    sentences(several_words(estimates, labels[1:], labels[0]), said)
    st.caption(_rows(labels[1:], found))
    at = drawn(labels[1:])
    of = f"{project.name} {versions[at].facts.title}"
    line = st.container(horizontal=True)
    left, right = line.container(), line.container(width=SIDE_WIDTH)
    with left:
        differences(
            estimates[at],
            key="versions_differences",
            of=of,
            compared="audits",
            paired=found[at].paired,
            unpaired=found[at].unpaired,
            corrected=True,
        )
    with right.container(border=True):
        changed_verdicts(labels, contents)
    sections(
        "versions_further",
        {
            "What changed": partial(
                facts_beside_table, [one.facts for one in found], labels, of="audits"
            ),
            "All verdicts": partial(all_verdicts, labels, contents),
            "All estimates": partial(
                estimates_beside_table, estimates, labels[1:], of="audits", baseline=labels[0]
            ),
            "Charts": partial(
                _charts,
                record,
                [(labels[0], baseline), (labels[1 + at], versions[at])],
                of,
            ),
        },
    )


def sentences(headline: str, each: Sequence[str]) -> None:
    """The headline, and a sentence for each version. Untrusted text."""
    st.header(escape_markdown(headline, _LETTERS), anchor=False)
    st.markdown("\n".join(f"- {escape_markdown(one, _LETTERS)}" for one in each))


def drawn(labels: Sequence[str]) -> int:
    """Which version's differences are drawn."""
    chosen = st.pills(
        "Differences of",
        range(len(labels)),
        format_func=[escape_label(one) for one in labels].__getitem__,
        default=0,
        required=True,
        key="versions_drawn",
    )
    return int(chosen)


def _rows(labels: Sequence[str], found: Sequence[ComparedAudits]) -> str:
    """Which audits judged the rows that the first one did. Our own Markdown."""
    same = [(one.same_rows, one.paired) for one in found]
    said = []
    for icon, wanted, words, more in (
        ("fingerprint", (True, True), "The same rows", "whose differences are paired"),
        (
            "fingerprint",
            (True, False),
            "The same rows",
            "whose intervals of differences are too wide, because an audit holds nothing that "
            "pairs them",
        ),
        ("shuffle", (False, False), "Other rows", "whose differences may come from the rows"),
    ):
        names = [one for one, known in zip(labels, same, strict=True) if known == wanted]
        if names:
            named = escape_markdown(listed(names, 5, between=";"), 600)
            said.append(f":material/{icon}: {words}: {named}, {more}.")
    for label, one in zip(labels, found, strict=True):
        if words := overlap_words(one):
            said.append(f"{escape_markdown(label, 200)}: {in_sentence(words)}")
    return " ".join(said)


def facts_beside_table(found: Sequence[Facts], labels: Sequence[str], *, of: ComparedKind) -> None:
    """What differs in model, data, settings and limits; the first label is that of "before"."""
    facts = [(one.name, one.before, *one.after) for one in facts_beside(found)]
    facts_table(facts, columns=labels, key="versions_facts", of=of)


def estimates_beside_table(
    found: Sequence[Sequence[ChangedEstimate]],
    names: Sequence[str],
    *,
    of: ComparedKind,
    baseline: str = "",
) -> None:
    """Every estimate with its difference from, or to, each of ``names``; of the baseline too."""
    beside = estimates_beside(found)
    columns: dict[str, list[str]] = {"Estimate": names_shown([one.name for one in beside])}
    if baseline:
        columns[baseline] = [estimate_text(one.before, chance=False) for one in beside]
    said = "Difference: " if of == "audits" else "Open review minus "
    for at, name in enumerate(names):
        found_of = [one.after[at] for one in beside]
        columns[f"{said}{name}"] = ["" if one is None else _difference(one) for one in found_of]
        columns[f"Is: {name}"] = [
            "" if one is None else direction_text(one.direction) for one in found_of
        ]
    show_table(
        pd.DataFrame(columns),
        key="versions_estimates",
        alt=f"Every estimate of all {of}, with differences and their intervals",
    )
    st.caption(
        "Each interval is for its difference alone. What is better or worse allows for the number "
        "of all differences in this table (Holm)."
    )


def _difference(one: ChangedEstimate) -> str:
    return f"{signed_text(one.difference)} ({interval_text(one.difference)})"


def _charts(record: Record, pair: Sequence[tuple[str, Audit]], of: str) -> None:
    try:
        whole = [(label, whole_content(record, audit)) for label, audit in pair]
    except InputError as error:
        session.error_box(error)
        return
    charts(whole, of=of)
