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
from kdcal_core.tasks.graph import READS as GRAPH_READS
from kdcal_core.tasks.inputs import Request, opened_reader, review_request
from kdcal_core.tasks.posterior_grid import READS as GRID_READS
from kdcal_core.tasks.regions import READS as REGIONS_READS
from kdcal_core.tasks.set_measures import Sets
from kdcal_core.tasks.spaces import LAYER, SPACE_READS

T = TypeVar("T")

Title = str | Callable[[dict[str, Any]], str]
Reads = tuple[Part, ...] | Callable[[dict[str, Any]], tuple[Part, ...]]

_SETS: tuple[Part, ...] = ("calibration", "evaluation")
_TABLES: tuple[Part, ...] = (*_SETS, "training", "foreign")


def _one(asked: dict[str, Any]) -> tuple[Part, ...]:
    """The set that is looked at."""
    which: Part = asked["which"]
    return (which,)


def _scaled(asked: dict[str, Any]) -> tuple[Part, ...]:
    """The set that is looked at, on the scale of the calibration set."""
    return tuple(dict.fromkeys(("calibration", *_one(asked))))


def _compared(asked: dict[str, Any]) -> tuple[Part, ...]:
    """The set that methods are fitted on, and the one that they are judged on."""
    return _SETS if asked["with_evaluation"] else ("calibration",)


def _placed(asked: dict[str, Any]) -> tuple[Part, ...]:
    """Both sets, which are placed in a space; a hidden layer is read by the model."""
    return SPACE_READS if asked["space"].startswith(LAYER) else _SETS


def _cut(asked: dict[str, Any]) -> tuple[Part, ...]:
    """The set that is cut into regions; where its classes differ is found on the training rows."""
    grown = asked["asked"]["purpose"] == "classes"
    return (*_one(asked), "training") if grown else _one(asked)


# what each measure does and reads, with the settings that distinguish two of them; the parts that
# an opened run was made of count as read, because its arrays are as long
_TABLE: dict[Callable[..., Any], tuple[Title, Reads]] = {
    of.set_fitness: ("Load: counting rows", _one),
    equal_sets: ("Load: comparing rows of the tables", _TABLES),
    of.set_overview: ("Measuring all rows, with intervals", _one),
    of.set_reliability: ("Reliability: drawing up the diagram", _one),
    of.set_estimates: ("Reliability: measuring everything, with intervals", _one),
    of.predicted_class: ("Confidence by class: measuring the rows of one class", _one),
    of.class_histograms: ("Confidence by class: counting scores", _one),
    of.class_halves: ("Confidence by class: halving the rows", _one),
    of.class_curves: ("Confidence by class: fitting the kernel densities", _one),
    of.class_method: (lambda asked: f"Confidence by class: fitting {_method(asked['key'])}", _one),
    of.method_losses: ("Confidence by class: comparing the methods", _compared),
    foreign.class_shares: ("Counting classes", _one),
    foreign.calibrated_by_distance: (
        lambda asked: f"Out of distribution: fitting {_method(asked['key'])}",
        PARTS,
    ),
    foreign.confidence_far_away: ("Out of distribution: measuring far from the data", PARTS),
    foreign.foreign_answers: ("Out of distribution: comparing rows", PARTS),
    foreign.surest_rows: ("Out of distribution: picking rows", PARTS),
    foreign.graph_chosen: ("Out of distribution: comparing exponents", GRAPH_READS),
    foreign.among_ordinary: ("Out of distribution: measuring among ordinary rows", GRAPH_READS),
    posterior.version_map: ("Posterior map: asking the kernel density version", GRID_READS),
    posterior.rows_in_box: ("Posterior map: measuring the rows in the box", GRID_READS),
    posterior.table_of_box: ("Posterior map: picking rows", GRID_READS),
    pit.pit_overview: ("PIT: measuring all rows, with intervals", _scaled),
    pit.pit_histograms: ("PIT: counting PIT values", _one),
    pit.pit_along: (lambda asked: f"PIT: looking along {_column(asked['column'])}", _scaled),
    pit.pit_places: (lambda asked: f"PIT: testing places of {asked['k']:,} rows", _placed),
    pit.pit_rows: ("PIT: picking rows", _one),
    recalibrated.recalibrated_map: ("Recalibration: finding missed outcomes", SPACE_READS),
    recalibrated.coverage_along: (
        lambda asked: f"Recalibration: counting along {_column(asked['column'])}",
        SPACE_READS,
    ),
    recalibrated.recalibrated_pit: ("Recalibration: counting PIT values", SPACE_READS),
    recalibrated.shown_rows: ("Recalibration: reading the rows", SPACE_READS),
    recalibrated.row_closely: (
        lambda asked: f"Recalibration: looking around row {asked['row'] + 1:,}",
        SPACE_READS,
    ),
    recalibrated.recalibrated_intervals: ("Recalibration: reading intervals", SPACE_READS),
    recalibrated.true_means: ("Recalibration: comparing means", SPACE_READS),
    regions.region_columns: ("Regions: reading the columns", _one),
    regions.region_search: ("Regions: looking for regions", _cut),
    regions.region_panels: ("Regions: looking at them closely", _cut),
    regions.regions_at_once: ("Regions: looking for regions", _cut),
    regions.model_estimates: ("Regions: measuring all rows, with intervals", _one),
    regions.region_rows: ("Regions: picking rows", _cut),
    regions.region_pit_rows: ("Regions: picking rows", _cut),
    regions.repair_scores: ("Regions: reading the scores of a method", REGIONS_READS),
}
_MEASURES = {one.__name__: one for one in _TABLE}
_COLUMNS = {pit.MEAN: "the predicted mean", pit.SPREAD: "the predicted standard deviation"}


def reads_of(measure: Callable[..., Any], settings: dict[str, Any]) -> tuple[Part, ...]:
    """The parts of a review that a measure reads at these settings, and no others.

    Examples
    --------
    >>> reads_of(of.set_overview, {"which": "evaluation"})
    ('evaluation',)
    """
    _, reads = _TABLE[measure]
    return reads if isinstance(reads, tuple) else reads(settings)


def title_of(measure: Callable[..., Any], settings: dict[str, Any]) -> str:
    """What a measure does at these settings, for people. May hold a column's untrusted name.

    Examples
    --------
    >>> title_of(of.class_method, {"which": "calibration", "labels": [0], "key": "isotonic"})
    'Confidence by class: fitting Isotonic'
    """
    title, _ = _TABLE[measure]
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
    reader = ReviewReader(workspace, review.id, reads_of(measure, settings), review=review)
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
    asked = _MEASURES[measure]
    reader = opened_reader(read, reads_of(asked, settings))
    save(Path(folder), asked(Sets(reader, progress), **settings))
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
