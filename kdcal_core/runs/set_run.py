"""A measure of a scored set as a job: asked for by name, its small result read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from kdcal_core.progress import Progress
from kdcal_core.review import Review, Workspace, load_set
from kdcal_core.runs import set_measures
from kdcal_core.runs.inputs import Request, request, review_identity
from kdcal_core.runs.set_measures import Sets
from kdcal_core.runs.storage import load_whole, save_record

T = TypeVar("T")

_TITLES: dict[str, str] = {
    "set_fitness": "Counting rows",
    "set_overview": "Measuring all rows, with intervals",
    "set_reliability": "Drawing up the reliability diagram",
    "set_estimates": "Measuring everything, with intervals",
    "predicted_class": "Measuring the rows of one predicted class",
    "class_histograms": "Counting scores class by class",
    "class_halves": "Halving the rows",
    "class_curves": "Fitting the kernel densities",
    "class_method": "Fitting a method",
    "method_losses": "Comparing the methods",
}


def title_of(measure: Callable[..., Any]) -> str:
    """What a measure does, for people.

    Examples
    --------
    >>> title_of(set_measures.class_halves)
    'Halving the rows'
    """
    return _TITLES[measure.__name__]


def set_request(
    workspace: Workspace, review: Review, measure: Callable[..., Any], settings: dict[str, Any]
) -> Request:
    """The job that computes a measure of the review's sets.

    Parameters
    ----------
    measure : callable
        A function of `kdcal_core.runs.set_measures`.
    settings : dict
        Its arguments but for the sets, JSON.
    """
    identity = {
        "measure": measure.__name__,
        "settings": settings,
        "review": review_identity(review, with_foreign=False),
    }
    kwargs = {
        "home": str(workspace.root),
        "review": review.id,
        "measure": measure.__name__,
        "settings": settings,
    }
    return request("kdcal_core.runs.set_run:measure_set", title_of(measure), kwargs, identity)


def measure_set(
    home: str,
    review: str,
    measure: str,
    settings: dict[str, Any],
    folder: str,
    progress: Progress,
) -> dict[str, Any]:
    """Compute a measure in a worker process; `read_measure` reads what it leaves in ``folder``.

    Raises
    ------
    InputError
        Where the rows are gone or damaged.
    """
    if measure not in _TITLES:
        raise ValueError(f"{measure!r} is not a measure of a set")
    workspace = Workspace(Path(home))
    sets = Sets(workspace, review, lambda which: load_set(workspace, review, which), progress)
    save_record(Path(folder), getattr(set_measures, measure)(sets, **settings))
    return {"measure": measure}


def read_measure(measure: Callable[..., T], folder: str | Path) -> T:
    """The result that `measure_set` left in its folder, as the measure returned it.

    Raises
    ------
    InputError
        Where it is not there (any more), or damaged.
    """
    kind: type[T] = get_type_hints(measure)["return"]
    return load_whole(Path(folder), kind)
