"""Charts as pages last showed them, which an audit of the review keeps beside its own.

An audit draws each page's charts itself, with the settings at which the page begins. Where a person
chose others, or fitted something that no audit fits, this is what that person saw, whether or not
the page was reloaded since.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app.shared import navigation, sign_in
from kdcal_core.charts import Chart
from kdcal_core.review import Review, identity


@dataclass(frozen=True, eq=False)
class _Seen:
    title: str
    page: str
    settings: str
    finding: str
    make: Callable[..., Chart]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def drawn(self, dark: bool) -> Chart:
        made = self.make(*self.args, **self.kwargs, dark=dark)
        page = navigation.places()[self.page].title
        shown = f"As the page {page} showed it: {self.settings}."
        return replace(made, finding=" ".join(filter(None, (self.finding, made.finding, shown))))


def seen(
    review: Review,
    key: str,
    title: str,
    page: str,
    make: Callable[..., Chart],
    *args: Any,
    settings: str,
    finding: str = "",
    **kwargs: Any,
) -> None:
    """Note a chart that the page shows now.

    Parameters
    ----------
    key, title : str
        As of `kdcal_core.audit.KeptChart`, the key that of the audit's own chart, if it has one.
    page : str
        Name of the page.
    make : callable
        A function of `kdcal_core.charts` whose chart holds no rows.
    args, kwargs
        Its arguments except the theme.
    settings : str
        At which settings it is shown, in words. Plain text, which may hold untrusted names.
    finding : str, default=""
        What the page says of it beside the chart's own finding.
    """
    _of_today(review)[key] = _Seen(title, page, settings, finding, make, args, kwargs)


def any_seen(review: Review) -> bool:
    """Whether a page showed a chart of this review as it is now."""
    return bool(_of_today(review))


def seen_charts(review: Review) -> Iterator[tuple[str, str, str, Callable[[bool], Chart]]]:
    """The charts that pages showed of this review as it is now, for `kdcal_core.audit.kept_charts`.

    Those first shown come first.
    """
    for key, one in list(_of_today(review).items()):  # another tab may show a chart meanwhile
        yield key, one.title, one.page, one.drawn


def _of_today(review: Review) -> dict[str, _Seen]:
    return _seen_by(sign_in.identity_in_front(), review.id, _known(review))


@st.cache_resource(max_entries=16, show_spinner=False)
def _seen_by(who: tuple[str, str] | None, review: str, known: str) -> dict[str, _Seen]:
    """What one person saw of a review by key, in the server's memory: a reload is a new session."""
    del who, review, known  # only the cache's key
    return {}


def _known(review: Review) -> str:
    """What charts are of: contents and roles, and which event and groups the review asks about."""
    asked = [identity(review), review.event, review.question.groups]
    return json.dumps(asked, sort_keys=True)
