"""The page Versions: two audits of a project, their trend, and two reviews."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app.shared import navigation, page_top, people
from app.shared.labels import unique_labels
from app.shared.sections import sections
from app.versions import versions_compared, versions_reviews, versions_trend
from kdcal_core.audit import Audit, Person, Project, Record
from kdcal_core.review import Review
from kdcal_core.text import counted, escape_markdown, printable


def title() -> None:
    """The page's one heading of the first level."""
    st.title(navigation.places()["versions"].title, anchor=False)


def versions(opened: Callable[[], Record], review: Review | None, who: Person) -> None:
    """Audits of a project, their trend, and reviews, each once there are any."""
    page_top.header(review)
    if not people.may_work(who):
        st.info(
            "On a server that others visit too, audits and reviews are not compared for people who "
            "have not signed in.",
            icon=":material/lock:",
        )
        return
    record = opened()
    seen = record.projects(who)
    able = [one for one in seen if len(comparable(one)) > 1]
    reviews = {"Reviews": partial(versions_reviews.two_reviews, review)}
    if not able:
        audits_need = {"Audits": partial(_nothing_yet, seen)}
        first = reviews if review is not None and review.ready else audits_need
        sections("versions_first", {**first, **reviews, **audits_need})
        return
    compared, trend = versions_compared.side_by_side, versions_trend.over_time
    sections(
        "versions_sections",
        {
            "Audits": partial(_audits, record, able, compared, "compared"),
            "Over time": partial(_audits, record, able, trend, "trend"),
            **reviews,
        },
    )


def _audits(
    record: Record,
    able: Sequence[Project],
    draw: Callable[[Record, Project, Sequence[Audit]], None],
    key: str,
) -> None:
    """A section about the audits of a project, which is chosen in it."""
    project = _project(able, key)
    draw(record, project, comparable(project))


def comparable(project: Project) -> tuple[Audit, ...]:
    """The audits of a project whose files are still there, in the order of their entries.

    A clock may have jumped back between two of them.
    """
    return tuple(one for one in project.audits.values() if one.has_files)


def _project(projects: Sequence[Project], key: str) -> Project:
    """The project that is chosen; at first the one with the last audit."""
    last = max(projects, key=lambda one: comparable(one)[-1].drafted.when.at)
    if len(projects) == 1:
        n = counted(len(comparable(last)), "audit")
        st.caption(f"Project **{escape_markdown(last.name, 200)}** · {n}")
        return last
    names = unique_labels([printable(one.name, 80) for one in projects])
    labels = {one.id: name for one, name in zip(projects, names, strict=True)}
    known = {one.id: one for one in projects}
    chosen = st.selectbox(
        "Project",
        list(labels),
        index=list(labels).index(last.id),
        format_func=labels.__getitem__,
        key=f"versions_project_{key}",
        width=420,
    )
    return known[chosen]


def _nothing_yet(projects: Sequence[Project]) -> None:
    """What will appear, what it needs, and the way to it."""
    found = [one for one in projects if one.audits]
    with st.container(border=True):
        st.markdown(navigation.places()["versions"].will_show)
        if any(len(one.audits) > 1 for one in found):
            st.markdown(
                "It needs two audits of one project with their files, which have been deleted."
            )
        else:
            n = sum(len(one.audits) for one in found)
            have = f" There {'is' if n == 1 else 'are'} {counted(n, 'audit')} so far." if n else ""
            st.markdown(f"It needs two audits of one project.{have}")
        navigation.page_link("audits", "Record an audit on the Audits page")
