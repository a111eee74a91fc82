"""The list of checks: a verdict, an estimate, a limit and a link for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import streamlit as st

from app.shared import navigation
from app.shared.sections import folded
from app.shared.tables import show_table
from app.shared.window import open_window, window
from kdcal_core.checks import (
    VERDICTS,
    CheckedReview,
    CheckResult,
    Verdict,
    evidence_text,
    in_form,
    limit_text,
    result_text,
)
from kdcal_core.diagnostics import interval_text
from kdcal_core.text import counted, escape_markdown, in_sentence, listed

_MANY = 5  # checks that stand in the first screen if that many do not pass
_FEW = 4  # checks that stand there anyway
_LONGEST_NAME = 80  # characters of a region or group in a check's one line


class Mark(NamedTuple):
    """A verdict's word, icon and colour."""

    word: str
    icon: str
    colour: str


MARKS: dict[Verdict | None, Mark] = {
    "fail": Mark("Fail", ":material/cancel:", "red"),
    "not enough evidence": Mark("Not enough evidence", ":material/help:", "orange"),
    "pass": Mark("Pass", ":material/check_circle:", "green"),
    None: Mark("Not answered", ":material/remove:", "gray"),
}


def check_list(checked: CheckedReview, *, links: bool = True) -> None:
    """Every check: the first ones that do not pass in full, the others on demand.

    Parameters
    ----------
    links : bool, default=True
        Whether a check has a link to the page that shows more of the open review.
    """
    ordered = [one for verdict in MARKS for one in checked.of(verdict)]
    answered = [one for one in ordered if one.verdict is not None]
    not_passed = sum(one.verdict != "pass" for one in answered)
    first = max(min(not_passed, _MANY), _FEW)
    shown, hidden = answered[:first], answered[first:]
    with st.container(gap=None):
        for result in shown:
            _row(result, links)
    without = checked.of(None)
    if not (hidden or without):
        return

    def more() -> None:
        with st.container(gap=None):
            for result in hidden:
                _row(result, links)
        for result in without:
            why = escape_markdown(result.why_not, 400)
            st.markdown(f"**{result.check.title}.** {why}")

    folded(_further_words(hidden, len(without)), "further_checks", more)


def _further_words(hidden: Sequence[CheckResult], without: int) -> str:
    """How many checks are folded, and what they say; those that fail are named."""
    said = []
    for verdict in VERDICTS:
        those = [in_sentence(one.check.title) for one in hidden if one.verdict == verdict]
        if those:
            named = f" ({listed(those, len(those))})" if verdict == "fail" else ""
            said.append(f"{len(those):,} {MARKS[verdict].word.lower()}{named}")
    if without:
        said.append(f"{without:,} not answered")
    return f"{counted(len(hidden) + without, 'further check')}: {listed(said)}"


def _row(result: CheckResult, links: bool) -> None:
    mark = MARKS[result.verdict]
    with st.container(gap=None):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(mark.word, icon=mark.icon, color=mark.colour)  # type: ignore[arg-type]
            name = f"check_{result.code}"
            st.button(
                result.check.title,
                key=name,
                type="tertiary",  # in dark too: twenty frames would hide the list
                icon=":material/expand_content:",
                icon_position="right",
                help=result.check.question,
                on_click=open_window,
                args=(name,),
            )
            window(name, result.check.question, _details, result)
            if links:
                st.space("stretch")
                title = navigation.places()[result.check.page].title
                navigation.page_link(result.check.page, title)
        st.caption(escape_markdown(result_text(result, _LONGEST_NAME), 400))


def _details(result: CheckResult) -> None:
    check = result.check
    if (why := evidence_text(result, result.worst)) != "":
        st.markdown(why)
    if result.verdict == "fail":
        st.markdown(result.remedy)
    show_table(
        _table(result),
        key=f"parts_{check.code}",
        alt=f"The estimates of the check {check.title.lower()} with their limit and verdict",
    )
    st.caption(f"{check.code}. {check.method}")


def _table(result: CheckResult) -> pd.DataFrame:
    parts = result.parts
    named: dict[str, Sequence[str]] = {}
    if any(one.name for one in parts):
        named["Part"] = [one.name[:80] for one in parts]
    return pd.DataFrame(
        {
            **named,
            "Estimate": [in_form(one.estimate, one.estimate.value) for one in parts],
            "Interval": [interval_text(one.estimate) for one in parts],
            "Limit": [limit_text(result.limit, one.estimate) for one in parts],
            "Verdict": [MARKS[one.verdict].word for one in parts],
            "Rows": [f"{one.estimate.n:,}" for one in parts],
        }
    )
