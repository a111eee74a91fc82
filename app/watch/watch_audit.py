"""The choice of the audit to which the Watch page holds a new table, and what it is held to."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.shared import audits_here, kept_audits
from app.shared.tables import show_table
from kdcal_core.audit import (
    ReferenceAudit,
    Watch,
    audit_choices,
    by_default,
    reference_audit,
    result_words,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Review, Which
from kdcal_core.text import escape_markdown, printable

_NONE = "none"


def choose(review: Review, which: Which) -> ReferenceAudit | None:
    """The chosen audit of the reference rows; at first the latest approved or submitted one.

    Nothing is asked where no audit has judged these rows, or the person may not ask.
    """
    found = audits_here.judging(review.sets[which].digest)
    if not found:
        return None
    first = by_default(found)
    labels = {
        key: f"{said} ({audit.state})"
        for (key, said), (_, audit) in zip(
            audit_choices(audit for _, audit in found).items(), found, strict=True
        )
    }
    chosen: str = st.selectbox(
        "Audit of the reference rows",
        [*labels, _NONE],
        index=[*labels, _NONE].index(_NONE if first is None else first[1].id),
        format_func=lambda key: labels.get(key, "No audit"),
        key=f"watch_audit_{review.id}_{which}",
        persist_state="session",
        help="The new table is held to those limits of this audit that a watch can answer: of the "
        "calibration error and the AUROC, or of a regression's PIT values and coverage.",
    )
    judged = next((one for one in found if one[1].id == chosen), None)
    if judged is None:
        return None
    try:
        content = kept_audits.numbers_of(audits_here.record(), judged[1])
    except InputError:
        content = None  # its files were deleted; the record still knows what it judged
    return reference_audit(review, content, judged)


def judged_words(review: Review, watch: Watch, method: str | None) -> str:
    """Which audit has judged the reference rows, as the end of a sentence in Markdown.

    Nothing of a calibrated version, because audits of these rows judged the model as it is.
    """
    if method is not None:
        return ""
    if watch.audit is not None:
        one = watch.audit
        return f", judged by {escape_markdown(one.words, 300)}"
    found = audits_here.judging(review.sets[watch.which].digest)
    if found is None:
        return ""
    return "; no audit is chosen" if found else "; no audit in the record has judged it"


def limits_of_audit(watch: Watch) -> None:
    """The verdicts by the limits of the audit; nothing without one."""
    if watch.audit is None:
        return
    held = [one for one in watch.results if one.of_audit]
    st.subheader("By the limits of the audit", anchor=False)
    if not held:
        st.caption(
            "The audit has no limit that can be held against a new table. "
            + (
                "Such are limits of the calibration error (KC001), if it asked for the same event, "
                "and of the AUROC (KC101) with two classes."
                if watch.forecasts is None
                else "Such are limits of the PIT distance (KC021), and of the coverage (KC022) if "
                "as far up as down, once there are labels."
            )
        )
        return
    show_table(
        pd.DataFrame(
            {
                "Measure": [printable(one.title, 60) for one in held],
                "Verdict": [one.verdict for one in held],
                "What was found": [result_words(watch, one) for one in held],
            }
        ),
        key="watch_limits",
        alt="What the limits of the audit say of the new rows",
    )
