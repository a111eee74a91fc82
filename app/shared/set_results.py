"""How a page gets a measure of a review's scored sets, wherever it is computed.

A measure is a function of the core from rows to a small frozen result. For a small review it runs
here, at once; for a large one it runs as a job, whose result is stored by its digest. The call is
the same in both cases, and the page draws nothing while the result is None::

    found = set_results.of(review, set_overview, which="calibration")
    if found is not None:
        draw(found)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from app.shared import job_results, session, waiting
from app.shared.kept import KEPT
from kdcal_core.evaluation import Space
from kdcal_core.review import Part, Review, ReviewReader, identity
from kdcal_core.tasks import (
    LAYER,
    Keep,
    Request,
    ReviewTask,
    Sets,
    is_large,
    keep_space,
    regression_space,
)
from kdcal_core.text import escape_markdown

T = TypeVar("T")


def of(
    review: Review,
    measure: ReviewTask[T],
    *,
    offer: Callable[[], bool] | None = None,
    owner: str | None = None,
    **settings: Any,
) -> T | None:
    """A measure of the review's sets; None while a job computes it, whose progress is shown.

    Parameters
    ----------
    measure : ReviewTask
        One of `kdcal_core.tasks`.
    offer : callable, optional
        Draws the offer of a new job and returns whether it was accepted; the job waits for that.
        Not used if there is no job.
    owner : str, optional
        Id of the review to which a job belongs, if another one than that which is measured.
    settings
        The measure's arguments except the sets, as JSON.
    """
    if not in_worker(review, measure, settings):
        return _here(review, measure, settings)
    asked = measure.request(session.workspace(), review, **settings)
    return _elsewhere(owner or review.id, measure, asked, offer)


def at_hand(review: Review, measure: ReviewTask[Any], **settings: Any) -> bool:
    """Whether :func:`of` returns the measure without waiting for a job."""
    if not in_worker(review, measure, settings):
        return True
    job = waiting.find(measure.request(session.workspace(), review, **settings).key)
    return job is not None and job.state == "done"


def all_of(
    review: Review, measure: ReviewTask[T], each: Sequence[dict[str, Any]]
) -> list[T] | None:
    """The same measure at several settings; jobs for them run in parallel.

    None until all are available; the page shows the progress of the first missing one.
    """
    if not any(in_worker(review, measure, one) for one in each):
        return [_here(review, measure, settings) for settings in each]
    asked = [measure.request(session.workspace(), review, **one) for one in each]
    for one in asked:
        if waiting.find(one.key) is None:
            job_results.begin(one, review.id)
    found = []
    for one in asked:
        answer = _elsewhere(review.id, measure, one, None)
        if answer is None:
            return None
        found.append(answer)
    return found


def in_job(
    review: Review, measure: ReviewTask[T], *, owner: str | None = None, **settings: Any
) -> T | None:
    """A measure that is a job for any review, because it takes long; it starts at once.

    None until it is available; the page shows its progress. ``owner`` as for `of`.
    """
    asked = measure.request(session.workspace(), review, **settings)
    return _elsewhere(owner or review.id, measure, asked, None)


def on_demand(
    review: Review, measure: ReviewTask[T], *, label: str, **settings: Any
) -> Callable[[], T] | None:
    """A function that returns the measure, for a download made on request.

    If a job must compute it, the page shows a button with this ``label`` and then the progress, and
    the result is None until the job is done.
    """
    if not in_worker(review, measure, settings):
        return lambda: _here(review, measure, settings)
    asked = measure.request(session.workspace(), review, **settings)
    found = _elsewhere(
        review.id,
        measure,
        asked,
        lambda: st.button(
            label, key=f"ask_{asked.key[:16]}", type="tertiary", icon=":material/table_rows:"
        ),
    )
    return None if found is None else lambda: found


def _here(review: Review, measure: ReviewTask[T], settings: dict[str, Any]) -> T:
    reads = measure.reads_at(**settings)
    reader = ReviewReader(session.workspace(), review.id, reads, review=review)
    keep = keep_of(review, reads)

    def make() -> T:
        with st.spinner(escape_markdown(measure.title_at(**settings), 120)):
            sets = Sets(reader, open_space=partial(_space, reader), keep=keep)
            return measure(sets, **settings)

    found: T = keep((measure.name, json.dumps(settings, sort_keys=True)), make)
    return found


def in_worker(review: Review, measure: ReviewTask[Any], settings: dict[str, Any]) -> bool:
    """Whether a measure at these settings reads too many rows for the app's process."""
    return is_large(review, measure.reads_at(**settings))


def keep_of(review: Review, reads: Collection[Part]) -> Keep:
    """The cache of a review's measures in the server, for `kdcal_core.tasks.Sets`.

    Its keys contain the identity of everything that the measures may read.
    """
    known = json.dumps(identity(review, reads), sort_keys=True)

    def keep(key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        return KEPT.get((*key, known), make)

    return keep


def _space(reader: ReviewReader, name: str) -> Space:
    """A space; a hidden layer is available after `layer_of` returned it."""
    if not name.startswith(LAYER):
        return regression_space(reader, name)
    found = layer_of(reader.review, name)
    assert found is not None  # callers wait for it first
    return found


def layer_of(review: Review, name: str) -> Space | None:
    """Coordinates in a hidden layer, after a job has read it; until then, progress is shown.

    Only for small reviews; the worker that measures a large one reads the layer itself.
    """
    asked = keep_space.request(session.workspace(), review, name=name)
    job = job_results.finished(asked, review.id)
    return None if job is None else job_results.result_of(job, keep_space)


def _elsewhere(
    owner: str, measure: ReviewTask[T], asked: Request, offer: Callable[[], bool] | None
) -> T | None:
    job = job_results.finished(asked, owner, offer=offer)
    if job is None:
        return None
    return job_results.result_of(job, measure)
