"""The navigation: every page under its section, and links between them.

A page is a file in `pages/`, a folder in `app/` with its description (`Place`) and its parts, and
one line in `SECTIONS`. All three have the page's name, which is also its address.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

import streamlit as st

from app.shared import in_browser, session
from kdcal_core.data import Task

SECTIONS: dict[str, tuple[str, ...]] = {
    "Review": (
        "load",
        "overview",
        "audits",
        "versions",
        "watch",
    ),
    "Diagnose": (
        "reliability",
        "decisions",
        "groups",
        "confidence_by_class",
        "out_of_distribution",
        "posterior_map",
        "pit",
        "recalibration",
        "regions",
        "compare",
        "export",
    ),
    "Learn": (
        "simulation_lab",
        "help",
    ),
}
"""The names of the pages by section, in the order shown. The app opens at the first."""
_MADE = "pages_of_task"  # in the session, because making them takes a tenth of a run


@dataclass(frozen=True)
class Place:
    """The description of a page: `PLACE` in the page's folder.

    Attributes
    ----------
    title : str
        Its name in the navigation and above the page.
    icon : str
        Name of a Material icon.
    purpose : str
        What the page shows, as a sentence without a full stop.
    will_show : str
        What will appear on it, for a page that waits for a review.
    tasks : tuple of str
        The tasks that it supports; if the open review has another one, the page is hidden.
    rows_alone : str
        Which of its numbers treat rows as independent although a column says that they are not:
        the subject of a sentence; empty where none does. In a classification.
    forecasts_alone : str
        The same in a regression.
    """

    title: str
    icon: str
    purpose: str
    will_show: str = ""
    tasks: tuple[Task, ...] = ("classification",)
    rows_alone: str = ""
    forecasts_alone: str = ""


@cache
def places() -> dict[str, Place]:
    """Every page by name, in the order shown."""
    # by name, because shared code must not import pages
    names = (name for section in SECTIONS.values() for name in section)
    return {name: import_module(f"app.{name}").PLACE for name in names}


def pages(task: Task | None) -> dict[str, list[st.Page]]:
    """Every page under its section. Those for another task than the open review's stay hidden.

    A hidden page can still be opened by its address, and then shows its purpose.

    Parameters
    ----------
    task : str or None
        Of the open review; None lists every page.
    """
    made: dict[Task | None, dict[str, list[st.Page]]] = st.session_state.setdefault(_MADE, {})
    if task not in made:
        made[task] = {
            section: [_page(name, task) for name in names] for section, names in SECTIONS.items()
        }
        next(iter(made[task].values())).append(_first_by_name())
    return made[task]


def _first_by_name() -> st.Page:
    """The first page, whose address is the app's, under the address that its name suggests."""
    first = next(iter(places()))

    def turn() -> None:
        st.switch_page(_path(first), query_params=st.query_params.to_dict())

    return st.Page(turn, title=places()[first].title, url_path=first, visibility="hidden")


def _page(name: str, task: Task | None) -> st.Page:
    place, first = places()[name], name == next(iter(places()))
    return st.Page(
        _path(name),
        title=place.title,
        icon=place.icon,
        help=place.purpose,
        default=first,
        url_path="start" if first else name,  # the first one's is never shown
        visibility="visible" if task is None or task in place.tasks else "hidden",
    )


def _path(name: str) -> str:
    return f"../pages/{name}.py"


def page_link(name: str, label: str) -> None:
    """A link to another page that keeps the review open."""
    st.page_link(
        _path(name),
        label=label,
        icon=places()[name].icon,
        query_params=session.in_address(),
    )


def go_to(name: str) -> None:
    """Open another page with the open review, and end this run."""
    in_browser.focus_title()
    st.switch_page(_path(name), query_params=session.in_address())
