"""The one way a page asks for a measure of a review's scored sets, wherever it is computed.

A measure is a function of the core from rows to a small frozen result. For a small review it runs
here, at once; for a large one it runs as a job, whose result is kept by its digest. The page asks
the same either way, and draws nothing while the answer is None::

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
    **settings: Any,
) -> T | None:
    """A measure of the review's sets; None while a job computes it, whose progress is shown.

    Parameters
    ----------
    measure : ReviewTask
        Of `kdcal_core.tasks`.
    offer : callable, optional
        Draws what is offered and says whether it was accepted: a job that was never begun then
        waits for that. Of no account where there is no job.
    settings
        The measure's arguments but for the sets, JSON.
    """
    if not in_worker(review, measure, settings):
        return _here(review, measure, settings)
    asked = measure.request(session.workspace(), review, **settings)
    return _elsewhere(review, measure, asked, offer)


def at_hand(review: Review, measure: ReviewTask[Any], **settings: Any) -> bool:
    """Whether :func:`of` gives the measure without waiting for a job."""
    if not in_worker(review, measure, settings):
        return True
    job = waiting.find(measure.request(session.workspace(), review, **settings).key)
    return job is not None and job.state == "done"


def all_of(
    review: Review, measure: ReviewTask[T], each: Sequence[dict[str, Any]]
) -> list[T] | None:
    """The same measure at several settings; where jobs compute them, these run side by side.

    None until all are there; the progress of the first that is missing is shown.
    """
    if not any(in_worker(review, measure, one) for one in each):
        return [_here(review, measure, settings) for settings in each]
    asked = [measure.request(session.workspace(), review, **one) for one in each]
    for one in asked:
        if waiting.find(one.key) is None:
            job_results.begin(one, review)
    found = []
    for one in asked:
        answer = _elsewhere(review, measure, one, None)
        if answer is None:
            return None
        found.append(answer)
    return found


def in_job(review: Review, measure: ReviewTask[T], **settings: Any) -> T | None:
    """A measure that is a job for any review, because it takes long; begun at once.

    None until it is there; its progress is shown.
    """
    asked = measure.request(session.workspace(), review, **settings)
    return _elsewhere(review, measure, asked, None)


def on_demand(
    review: Review, measure: ReviewTask[T], *, label: str, **settings: Any
) -> Callable[[], T] | None:
    """What gives the measure, for a download that is made when somebody asks for it.

    Where a job has to compute it, there is a button with this ``label`` and then the progress
    until it is done, and None is returned.
    """
    if not in_worker(review, measure, settings):
        return lambda: _here(review, measure, settings)
    asked = measure.request(session.workspace(), review, **settings)
    found = _elsewhere(
        review,
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
    """Whether a measure at these settings reads too many rows for the process of the app."""
    return is_large(review, measure.reads_at(**settings))


def keep_of(review: Review, reads: Collection[Part]) -> Keep:
    """What measures of a review keep in the server, as `kdcal_core.tasks.Sets` takes it.

    It is named by the identity of what they may read.
    """
    known = json.dumps(identity(review, reads), sort_keys=True)

    def keep(key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        return KEPT.get((*key, known), make)

    return keep


def _space(reader: ReviewReader, name: str) -> Space:
    """A space; a hidden layer is there once `layer_of` gave it."""
    if not name.startswith(LAYER):
        return regression_space(reader, name)
    found = layer_of(reader.review, name)
    assert found is not None  # whoever asks waits for it first
    return found


def layer_of(review: Review, name: str) -> Space | None:
    """Coordinates in a hidden layer, once a job has read it; before, the page shows progress.

    For a small review: a worker that measures a large one reads the layer itself.
    """
    job = job_results.finished(keep_space.request(session.workspace(), review, name=name), review)
    return None if job is None else job_results.result_of(job, keep_space)


def _elsewhere(
    review: Review, measure: ReviewTask[T], asked: Request, offer: Callable[[], bool] | None
) -> T | None:
    job = job_results.finished(asked, review, offer=offer)
    if job is None:
        return None
    return job_results.result_of(job, measure)
