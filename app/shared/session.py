"""Which review is open, and the frame around every page: header, empty state, errors, links."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import get_args

import streamlit as st

from kdcal_core.data import Task
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Review,
    Workspace,
    check_scored,
    create_review,
    open_doubts,
    read_review,
    samples,
    start_sample,
)
from kdcal_core.text import escape_markdown

_KEY = "review"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Place:
    """A page of the app: its file, what it is called and for, and which reviews it suits."""

    path: str
    title: str
    icon: str
    purpose: str
    section: str = "Diagnose"
    tasks: tuple[Task, ...] = ("classification",)


PLACES = {
    "load": _Place(
        "../pages/load.py",
        "Load",
        ":material/upload_file:",
        "Open a sample, or bring a model and its held-out rows",
        "Review",
        get_args(Task),
    ),
    "reliability": _Place(
        "../pages/reliability.py",
        "Reliability",
        ":material/analytics:",
        "What the model says against how often it is right",
    ),
    "confidence": _Place(
        "../pages/confidence_by_class.py",
        "Confidence by class",
        ":material/stacked_line_chart:",
        "How often each predicted class is right, at every score",
    ),
    "foreign": _Place(
        "../pages/out_of_distribution.py",
        "Out of distribution",
        ":material/explore:",
        "How confident the model stays as rows leave its data",
    ),
    "map": _Place(
        "../pages/posterior_map.py",
        "Posterior map",
        ":material/gradient:",
        "What the model says all over a plane, and far outside its data",
    ),
    "pit": _Place(
        "../pages/pit.py",
        "PIT",
        ":material/bar_chart:",
        "Whether outcomes fall where the distributions said, over all rows and place by place",
        tasks=("regression",),
    ),
    "recalibration": _Place(
        "../pages/recalibration.py",
        "Recalibration",
        ":material/build:",
        "Predictive distributions before and after a repair, and what it gained",
        tasks=("regression",),
    ),
    "regions": _Place(
        "../pages/regions.py",
        "Regions",
        ":material/account_tree:",
        "In which regions of the inputs the model is wrong, and what repairing them does",
        "Diagnose",
        get_args(Task),
    ),
    "compare": _Place(
        "../pages/compare.py",
        "Compare",
        ":material/compare_arrows:",
        "Every calibrator on the same rows, and which of them can be told apart",
    ),
    "export": _Place(
        "../pages/export.py",
        "Choose and export",
        ":material/output:",
        "One calibrator, what it gains, and its file to take away",
    ),
    "lab": _Place(
        "../pages/simulation_lab.py",
        "Simulation lab",
        ":material/science:",
        "Models trained on the spot where the truth is known, among their data and far outside",
        "Learn",
        get_args(Task),
    ),
}


def pages() -> dict[str, list[st.Page]]:
    """Every page under its section. Those for another task than the open review's stay hidden.

    A hidden page can still be opened by its address, and then says what it is for.
    """
    task = _open_task()
    sections: dict[str, list[st.Page]] = {}
    for name, place in PLACES.items():
        suits = task is None or task in place.tasks
        sections.setdefault(place.section, []).append(_page(name, suits))
    return sections


def _page(name: str, visible: bool) -> st.Page:
    """The first place is where the app opens."""
    place = PLACES[name]
    return st.Page(
        place.path,
        title=place.title,
        icon=place.icon,
        help=place.purpose,
        default=name == next(iter(PLACES)),
        visibility="visible" if visible else "hidden",
    )


def _open_task() -> Task | None:
    """The open review's task; None where none is open, so that every page is seen."""
    chosen = st.query_params.get(_KEY) or st.session_state.get(_KEY)
    try:
        return _task_of(read_review(workspace(), chosen)) if chosen else None
    except (InputError, OSError):  # the page itself tells what is wrong
        return None


def _task_of(review: Review) -> Task | None:
    """The review's task; None while it holds nothing that could tell."""
    told = review.tables or review.parent or review.chosen_task
    return review.task if told else None


def page_link(name: str, label: str, icon: str | None = None) -> None:
    """A link to another page that keeps the review open."""
    place = PLACES[name]
    current = st.session_state.get(_KEY)
    st.page_link(
        place.path,
        label=label,
        icon=icon or place.icon,
        query_params={_KEY: current} if current else None,
    )


def workspace() -> Workspace:
    """Where reviews are kept on this machine."""
    return Workspace()


def current_review() -> Review | None:
    """The review named by the address, or else the one last open in this session.

    Its id goes back into the address at every run, because a change of page drops it. Where the
    id names no review, says so and returns None.
    """
    chosen = st.query_params.get(_KEY) or st.session_state.get(_KEY)
    if not chosen:
        return None
    if not workspace().exists(chosen):
        close_review()
        st.warning(
            "The review named in the address is not kept on this machine. It may have been "
            "deleted, or the address may be cut short.",
            icon=":material/link_off:",
        )
        return None
    try:
        review = read_review(workspace(), chosen)
    except InputError as error:  # it is there, and damaged
        close_review()
        error_box(error)
        return None
    open_review(review.id)
    return review


def open_review(review_id: str) -> None:
    """Make this the review of the session and of the address."""
    st.session_state[_KEY] = review_id
    if st.query_params.get(_KEY) != review_id:
        st.query_params[_KEY] = review_id


def open_review_id() -> str | None:
    """The id of the review that is open in this session, as `current_review` found it."""
    review_id: str | None = st.session_state.get(_KEY)
    return review_id


def close_review() -> None:
    """Leave the review; it stays in the workspace."""
    st.session_state.pop(_KEY, None)
    if _KEY in st.query_params:
        del st.query_params[_KEY]


def new_review() -> str:
    """Create an empty review, open it, and return its id."""
    review = create_review(workspace())
    open_review(review.id)
    return review.id


def scored_review(page_name: str) -> Review | None:
    """The open review with its header where it can be diagnosed; else the page's empty state.

    The page's title stands above either: the one heading of the first level.
    """
    st.title(PLACES[page_name].title, anchor=False)
    review = current_review()
    task = None if review is None else _task_of(review)
    if review is not None and task is not None and task not in PLACES[page_name].tasks:
        header(review)
        _other_task(page_name, review)
        return None
    if review is not None and review.ready:
        try:
            check_scored(workspace(), review)
        except InputError as error:  # deleted behind the app's back
            error_box(error)
        else:
            header(review)
            return review
    empty_state(page_name, unfinished=review is not None)
    return None


def _other_task(page_name: str, review: Review) -> None:
    """What a page is for that does not suit the open review, and where to go instead."""
    place = PLACES[page_name]
    with st.container(border=True):
        st.markdown(
            f"This page is for a {' or a '.join(place.tasks)}: "
            f"{place.purpose[0].lower()}{place.purpose[1:]}. "
            f"The open review, **{escape_markdown(review.title)}**, is a {review.task}."
        )
        st.markdown("These pages suit it:")
        with st.container(horizontal=True):
            for name, other in PLACES.items():
                if review.task in other.tasks:
                    page_link(name, other.title)


def header(review: Review | None) -> None:
    """The slim line above every page: what is reviewed, and what is doubtful about it."""
    if review is None or not review.tables:
        return
    answers = review.roles and (review.roles.outputs or review.roles.parameters)
    alone = "Predictions only" if answers else "No model yet"
    kind = review.parent.kind if review.parent is not None else alone
    rows = ", ".join(
        f"{which} set {table.n_rows:,} rows" for which, table in sorted(review.tables.items())
    )
    parts = [f"**{escape_markdown(review.title)}**", escape_markdown(kind)]
    if review.classes:
        parts.append(f"{len(review.classes):,} classes")
    if review.task == "regression":
        family = review.roles.family if review.roles else None
        parts.append(f"regression ({FAMILIES[family].title.lower()})" if family else "regression")
    st.caption(" · ".join([*parts, rows]))
    for doubt in open_doubts(review):
        st.warning(escape_markdown(doubt, 700), icon=":material/help:")


_WILL_SHOW = {
    "reliability": (
        "Here you will see what the model says against how often it is right: the reliability "
        "diagram with its row counts, the calibration errors with their intervals, and which "
        "classes are taken for which."
    ),
    "confidence": (
        "Here you will see, for each predicted class, how often it is right at every score: the "
        "two densities behind it, the histogram under it, and how the calibrators compare."
    ),
    "foreign": (
        "Here you will see how confident the model stays as rows leave its data: its confidence "
        "against distance beside that of a kernel density version, how well foreign rows are told "
        "from ordinary ones, and which foreign rows it is surest about."
    ),
    "map": (
        "Here you will see what the model says all over a plane, out to twice the range of its "
        "data, beside a kernel density version of it that knows where the data end. Drag a box "
        "over any part of it to see the rows there and whether they bear the model out."
    ),
    "pit": (
        "Here you will see whether outcomes fall where the predicted distributions said they "
        "would: over all rows, and place by place on a map, because good coverage of all rows can "
        "hide predictions that are too low in one place and too high in another."
    ),
    "regions": (
        "Here you will see in which regions of the inputs the model is wrong beyond chance: the "
        "regions drawn as a tree and as a table, each with its rows and its reliability, and what "
        "a repair region by region does to the AUROC and the log loss."
    ),
    "compare": (
        "Here you will see whether any calibrator is better than the model as it is, beyond "
        "chance: every measure with its interval, paired differences on the same rows, a "
        "reliability diagram of each, and what each costs in time and size."
    ),
    "export": (
        "Here you will see what a calibrator gains over the model as it is, its reliability before "
        "and after and what it does to a score, and you can take it away: as one file that scores "
        "new rows anywhere, and as part of the model's ONNX file where ONNX can express it."
    ),
    "recalibration": (
        "Here you will see the same predictions before and after a repair that needs no new "
        "training: which outcomes their intervals miss, whether quantiles come true, and what "
        "each method gained in every measure."
    ),
}


def empty_state(page_name: str, *, unfinished: bool = False) -> None:
    """What will appear on this page, what it needs, and one button that makes it appear."""
    place = PLACES[page_name]
    task = place.tasks[0]
    with st.container(border=True):
        st.markdown(_WILL_SHOW[page_name])
        if unfinished:
            st.markdown(
                "The open review is not finished: its rows have not been scored yet. Finish it "
                "on the Load page."
            )
        else:
            st.markdown(
                "It needs held-out rows with their outcome, and the model or its predictions."
                if task == "regression"
                else "It needs held-out rows with their true class, and the model or its "
                "probabilities."
            )
        with st.container(horizontal=True, vertical_alignment="center"):
            first = next(one for one in samples() if one.task == task)
            if st.button(
                "Open a sample",
                key=f"sample_for_{page_name}",
                type="secondary" if unfinished else "primary",
                icon=":material/play_arrow:",
                help=escape_markdown(first.title),
            ):
                open_sample(first.name)
            page_link("load", "Go to Load")


def open_sample(sample: str) -> None:
    """Start a sample's review, score its rows and open it."""
    with st.spinner("Opening the sample: reading the model and scoring its rows"):
        try:
            opened = start_sample(workspace(), sample)
        except InputError as error:
            error_box(error)
            return
    open_review(opened.id)
    st.rerun()


@contextmanager
def telling() -> Iterator[None]:
    """Tell what a page let through: bad input, and a disk that is full or denies its files."""
    try:
        yield
    except InputError as error:
        error_box(error)
    except OSError as error:
        _log.exception("A page could not use its files")
        reason = error.strerror or type(error).__name__
        error_box(
            InputError(
                f"kdcal could not read or write its files ({reason})",
                fix="Free some space, or let KDCAL_HOME name a folder that kdcal may write to, "
                "and load the page again. Nothing that was loaded before is lost.",
            )
        )


def error_box(error: InputError) -> None:
    """What is wrong, where, and how to mend it; every name in it escaped."""
    where = f" ({escape_markdown(error.where, 300)})" if error.where else ""
    fix = f"\n\n{escape_markdown(error.fix, 1000)}" if error.fix else ""
    st.error(f"{escape_markdown(error.what, 1000)}{where}.{fix}", icon=":material/error:")
