"""What a run reads of a review, as plain values that travel to a worker process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs import job_key
from kdcal_core.review import Part, Review, ReviewReader, Workspace
from kdcal_core.review.reader import no_model


@dataclass(frozen=True)
class Request:
    """A run to start as a job: what `kdcal_core.jobs.JobManager.submit` takes.

    Attributes
    ----------
    target : str
        ``"kdcal_core.tasks.x:function"``.
    kwargs : dict
        Its arguments, JSON.
    key : str
        Digest of all that the result depends on.
    title : str
        What is done, for people.
    """

    target: str
    kwargs: dict[str, Any]
    key: str
    title: str


def request(target: str, title: str, kwargs: dict[str, Any], identity: dict[str, Any]) -> Request:
    """A request whose key follows from ``identity``."""
    return Request(target, kwargs, job_key(target, identity), title)


def review_request(
    target: str,
    title: str,
    reader: ReviewReader,
    kwargs: dict[str, Any],
    identity: dict[str, Any] | None = None,
) -> Request:
    """A request for what is computed from a review.

    Its key covers what the reader may read, ``kwargs``, and ``identity`` where that is given in
    place of them. The target gets ``kwargs`` and ``read``, for `opened_reader`.
    """
    known = reader.identity
    return request(
        target,
        title,
        {
            "read": {
                "home": str(reader.workspace.root),
                "review": reader.review.id,
                "identity": known,
            },
            **kwargs,
        },
        {"read": known, **(kwargs if identity is None else identity)},
    )


def opened_reader(read: dict[str, Any], reads: Collection[Part]) -> ReviewReader:
    """In a worker, the reader that a `review_request` was made for.

    Raises
    ------
    InputError
        Where the review is gone, or has changed since.
    """
    workspace = Workspace(Path(read["home"]))
    return ReviewReader(workspace, read["review"], reads, expected=read["identity"])


def require_scored(review: Review) -> None:
    """Refuse a review that is not scored.

    Raises
    ------
    InputError
    """
    if not review.ready or review.roles is None:
        raise InputError(
            "The rows have not been scored yet", fix="Finish the review on the Load page."
        )


def require_model(review: Review) -> None:
    """Refuse a review that is not scored, or holds predictions without their model.

    Raises
    ------
    InputError
    """
    require_scored(review)
    if review.model is None or review.model_file is None:
        raise no_model()


def require_regression(review: Review) -> None:
    """Refuse a review that is not scored, or is of a classification.

    Raises
    ------
    InputError
    """
    require_scored(review)
    if review.task != "regression":
        raise InputError(
            "The review is of a classification, and recalibration is for regressions",
            fix="Open a regression, or change the task on the Load page.",
        )


def require_classification(
    review: Review, why: str, *, fix: str = "Use the Recalibration page."
) -> None:
    """Refuse a review that is not scored, or is of a regression, which ``why`` speaks against.

    Raises
    ------
    InputError
    """
    require_scored(review)
    if review.task != "classification":
        raise InputError(f"The review is of a regression, and {why}", fix=fix)


def check_ranges(settings: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse a setting that lies outside its range; of a tuple each value is looked at.

    Sliders keep to their ends only in an honest browser.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_ranges(SimpleNamespace(n=0), {"n": (1, 10)})
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The setting 'n' is 0. Choose a number from 1 to 10.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        for one in value if isinstance(value, tuple) else (value,):
            if not low <= one <= high:
                raise InputError(
                    f"The setting {name!r} is {one:,}",
                    fix=f"Choose a number from {low:,} to {high:,}.",
                )
