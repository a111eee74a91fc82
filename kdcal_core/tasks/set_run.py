"""A measure of a scored set as a job: asked for by name, its small result read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.progress import Progress
from kdcal_core.review import PARTS, Part, Review, ReviewReader, Workspace
from kdcal_core.store import load, save
from kdcal_core.tasks import foreign_measures as foreign
from kdcal_core.tasks import map_measures as posterior
from kdcal_core.tasks import pit_measures as pit
from kdcal_core.tasks import recalibrated_measures as recalibrated
from kdcal_core.tasks import region_measures as regions
from kdcal_core.tasks import set_measures as of
from kdcal_core.tasks.equal_sets import equal_sets
from kdcal_core.tasks.inputs import Request, opened_reader, review_request
from kdcal_core.tasks.set_measures import Sets
from kdcal_core.tasks.spaces import Space, read_space

T = TypeVar("T")

# what each measure does, with the setting that tells two of them apart
_TITLES: dict[Callable[..., Any], str | Callable[[dict[str, Any]], str]] = {
    of.set_fitness: "Load: counting rows",
    equal_sets: "Load: comparing rows of the tables",
    of.set_overview: "Measuring all rows, with intervals",
    of.set_reliability: "Reliability: drawing up the diagram",
    of.set_estimates: "Reliability: measuring everything, with intervals",
    of.predicted_class: "Confidence by class: measuring the rows of one class",
    of.class_histograms: "Confidence by class: counting scores",
    of.class_halves: "Confidence by class: halving the rows",
    of.class_curves: "Confidence by class: fitting the kernel densities",
    of.class_method: lambda asked: f"Confidence by class: fitting {_method(asked['key'])}",
    of.method_losses: "Confidence by class: comparing the methods",
    foreign.class_shares: "Counting classes",
    foreign.calibrated_by_distance: lambda asked: (
        f"Out of distribution: fitting {_method(asked['key'])}"
    ),
    foreign.confidence_far_away: "Out of distribution: measuring far from the data",
    foreign.foreign_answers: "Out of distribution: comparing rows",
    foreign.surest_rows: "Out of distribution: picking rows",
    foreign.graph_chosen: "Out of distribution: comparing exponents",
    foreign.among_ordinary: "Out of distribution: measuring among ordinary rows",
    posterior.version_map: "Posterior map: asking the kernel density version",
    posterior.rows_in_box: "Posterior map: measuring the rows in the box",
    posterior.table_of_box: "Posterior map: picking rows",
    pit.pit_overview: "PIT: measuring all rows, with intervals",
    pit.pit_histograms: "PIT: counting PIT values",
    pit.pit_along: lambda asked: f"PIT: looking along {_column(asked['column'])}",
    pit.pit_places: lambda asked: f"PIT: testing places of {asked['k']:,} rows",
    pit.pit_rows: "PIT: picking rows",
    recalibrated.recalibrated_map: "Recalibration: finding missed outcomes",
    recalibrated.coverage_along: lambda asked: (
        f"Recalibration: counting along {_column(asked['column'])}"
    ),
    recalibrated.recalibrated_pit: "Recalibration: counting PIT values",
    recalibrated.shown_rows: "Recalibration: reading the rows",
    recalibrated.row_closely: lambda asked: (
        f"Recalibration: looking around row {asked['row'] + 1:,}"
    ),
    recalibrated.recalibrated_intervals: "Recalibration: reading intervals",
    recalibrated.true_means: "Recalibration: comparing means",
    regions.region_columns: "Regions: reading the columns",
    regions.region_search: "Regions: looking for regions",
    regions.region_panels: "Regions: looking at them closely",
    regions.regions_at_once: "Regions: looking for regions",
    regions.model_estimates: "Regions: measuring all rows, with intervals",
    regions.region_rows: "Regions: picking rows",
    regions.region_pit_rows: "Regions: picking rows",
    regions.repair_scores: "Regions: reading the scores of a method",
}
_MEASURES = {one.__name__: one for one in _TITLES}
# these read the training and the foreign rows too, or what follows from them
_WITH_ASIDES = {
    equal_sets,
    foreign.confidence_far_away,
    foreign.foreign_answers,
    foreign.surest_rows,
    foreign.graph_chosen,
    foreign.among_ordinary,
    posterior.version_map,
    posterior.rows_in_box,
    posterior.table_of_box,
}
_COLUMNS = {pit.MEAN: "the predicted mean", pit.SPREAD: "the predicted standard deviation"}


def reads_asides(measure: Callable[..., Any]) -> bool:
    """Whether a measure reads the training and the foreign rows, besides the scored sets.

    Examples
    --------
    >>> reads_asides(of.set_overview)
    False
    """
    return measure in _WITH_ASIDES


def reads_of(measure: Callable[..., Any]) -> tuple[Part, ...]:
    """The parts of a review that a measure may read.

    Examples
    --------
    >>> "foreign" in reads_of(of.set_overview)
    False
    """
    return PARTS if reads_asides(measure) else ("model", "calibration", "evaluation", "training")


def title_of(measure: Callable[..., Any], settings: dict[str, Any]) -> str:
    """What a measure does at these settings, for people. May hold a column's untrusted name.

    Examples
    --------
    >>> title_of(of.class_method, {"which": "calibration", "labels": [0], "key": "isotonic"})
    'Confidence by class: fitting Isotonic'
    """
    title = _TITLES[measure]
    return title if isinstance(title, str) else title(settings)


def _method(key: str) -> str:
    return CALIBRATORS[key].label


def _column(name: str) -> str:
    return _COLUMNS.get(name, name[:60])


def set_request(
    workspace: Workspace, review: Review, measure: Callable[..., Any], settings: dict[str, Any]
) -> Request:
    """The job that computes a measure of the review's sets.

    Parameters
    ----------
    measure : callable
        A function of `set_measures` or of a module like it, as those of the PIT page.
    settings : dict
        Its arguments but for the sets, JSON.
    """
    reader = ReviewReader(workspace, review.id, reads_of(measure), review=review)
    asked = {"measure": measure.__name__, "settings": settings}
    return review_request(
        "kdcal_core.tasks.set_run:measure_set", title_of(measure, settings), reader, asked
    )


def measure_set(
    read: dict[str, Any],
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
    if measure not in _MEASURES:
        raise ValueError(f"{measure!r} is not a measure of a set")
    reader = opened_reader(read, reads_of(_MEASURES[measure]))

    def space(name: str) -> Space:
        return read_space(reader, name, progress)

    sets = Sets(reader.workspace, reader.review.id, reader.scored, progress, space, reader=reader)
    save(Path(folder), _MEASURES[measure](sets, **settings))
    return {"measure": measure}


def read_measure(measure: Callable[..., T], folder: str | Path) -> T:
    """The result that `measure_set` left in its folder, as the measure returned it.

    Raises
    ------
    InputError
        Where it is not there (any more), or damaged.
    """
    kind: type[T] = get_type_hints(measure)["return"]
    return load(folder, kind)
