"""The measures of the Out of distribution page, made as in `set_measures`.

Each reads the finished `ForeignRun` in the folder ``run``, and those that use the kernel density
version take a `GraphSetting` as JSON. The size of the results does not depend on the number of
rows; tables of rows hold at most `MAX_ROWS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.calibration import CALIBRATORS, Selection, TopLabelCalibrator, score_calibrator
from kdcal_core.calibration.graph.gamma_floor_blend import Blend
from kdcal_core.data import FloatArray, ScoredSet, pixel_places, row_dependence
from kdcal_core.diagnostics import (
    DistanceCurve,
    Estimate,
    LogDensities,
    Surest,
    UnknownChange,
    confidence_by_distance,
    fpr_at_95_tpr,
    log_densities,
    mean_max_confidence,
    ood_auroc,
    ood_calibration_error,
    summary,
    unknown_change,
    unknown_share,
)
from kdcal_core.diagnostics.targets import class_shares as shares_of
from kdcal_core.errors import InputError
from kdcal_core.review import PARTS, Which
from kdcal_core.statistics import Dependence, RowDesign
from kdcal_core.store import load
from kdcal_core.tasks.decorators import ALL_ROWS, Sets, require_model, review_task, the_set
from kdcal_core.tasks.foreign import ForeignRun, ForeignSet, foreign_dependence, foreign_frame
from kdcal_core.tasks.graph import Rows, Version, load_estimator, placed
from kdcal_core.tasks.pit_measures import MAX_ROWS
from kdcal_core.tasks.set_measures import fitted

BAND = (10.0, 90.0)
SAYS, VERSION_SAYS, UNKNOWN = "Model says", "Kernel density version says", "Unknown"


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Share of each class among the rows of a set, by weight, (K,), and their effective number."""

    share: FloatArray
    rows: float


@review_task("Counting classes", reads=the_set, edition="rows together")
def class_shares(sets: Sets, *, which: Which) -> ClassShares:
    """The share of each class."""
    scored = sets.read(which)
    return ClassShares(*shares_of(scored.y, len(scored.classes), scored.design))


@dataclass(frozen=True, eq=False)
class ByDistance:
    """Mean max confidence on the spheres around the data.

    Attributes
    ----------
    model : DistanceCurve
    version : DistanceCurve or None
        Curve of the kernel density version, where there is one.
    unknown : (R,) float64 or None
        Share of the rows on each sphere whose density is below the version's floor.
    """

    model: DistanceCurve
    version: DistanceCurve | None
    unknown: FloatArray | None


@review_task("Out of distribution: measuring far from the data", reads=PARTS)
def confidence_far_away(sets: Sets, *, run: str, graph: dict[str, Any] | None = None) -> ByDistance:
    """Confidence of the model and of its version on the spheres of a run."""
    opened, version = _run(sets, run), Version.of(sets, graph)
    model = by_distance(opened, opened.rows.proba)
    if version is None:
        return ByDistance(model, None, None)
    spheres = opened.sets("sphere")
    below = version.unknown(run, opened.rows.located)[spheres[0].start : spheres[-1].stop]
    return ByDistance(
        model,
        by_distance(opened, version.posterior(run, opened.rows.located)),
        np.asarray(below.reshape(len(spheres), -1).mean(axis=1)),
    )


@review_task(
    lambda arguments: f"Out of distribution: fitting {CALIBRATORS[arguments['key']].label}",
    reads=PARTS,
)
def calibrated_by_distance(sets: Sets, *, which: Which, key: str, run: str) -> DistanceCurve:
    """Confidence, on spheres around the data, of a calibrator fitted on a set.

    Parameters
    ----------
    key : str
        Key of a method in the registry, which is fitted with its default settings.
    run : str
        Folder of the finished `ForeignRun` with the spheres.
    """
    foreign = _run(sets, run)

    def make() -> TopLabelCalibrator:
        return fitted(score_calibrator(key), sets.read(which))

    calibrator: TopLabelCalibrator = sets.keep(("fitted", which, key), make)
    return by_distance(foreign, calibrator.predict_proba(foreign.rows.proba))


@dataclass(frozen=True, eq=False)
class ForeignAnswers:
    """The answers for one set of foreign rows.

    Attributes
    ----------
    model : tuple of Estimate
        OCE, AUROC and FPR@95 of the model's confidence.
    confidence : Estimate
        Mean max confidence of the model.
    surest : Surest
    version : VersionAnswers or None
        The answers of the kernel density version, where there is one.
    """

    model: tuple[Estimate, Estimate, Estimate]
    confidence: Estimate
    surest: Surest
    version: VersionAnswers | None


@dataclass(frozen=True, eq=False)
class VersionAnswers:
    """The kernel density version's answers for one set of foreign rows.

    Attributes
    ----------
    estimates : tuple of Estimate
        OCE, and AUROC and FPR@95 of its log density.
    by_confidence : Estimate
        AUROC of its confidence, for comparison.
    confidence : Estimate
        Mean max confidence.
    unknown : Estimate
        Share of the ordinary rows below the floor.
    n_unknown : int
        Foreign rows below the floor.
    densities : LogDensities
        Log densities of the ordinary and of the foreign rows.
    ties : tuple of two int
        Number of ordinary and of foreign rows with several equally near regions.
    switch_radius : float
        Median over the regions of the distance from the centre, in standard deviations of the
        region, where region and prior have equal weight.
    """

    estimates: tuple[Estimate, Estimate, Estimate]
    by_confidence: Estimate
    confidence: Estimate
    unknown: Estimate
    n_unknown: int
    densities: LogDensities
    ties: tuple[int, int]
    switch_radius: float = 0.0


@review_task(
    "Out of distribution: comparing rows", reads=PARTS, edition="rows and foreign rows together"
)
def foreign_answers(
    sets: Sets,
    *,
    which: Which,
    run: str,
    start: int,
    stop: int,
    name: str,
    graph: dict[str, Any] | None = None,
) -> ForeignAnswers:
    """Compare some rows of a run with ordinary rows.

    Parameters
    ----------
    which : str
        Set of the ordinary rows, for a model without a kernel density version. Otherwise the
        ordinary rows are those on which the version is judged.
    start, stop : int
        Range of the foreign rows among those of the run.
    name : str
        Name of the foreign rows on screens.
    """
    opened, version = _run(sets, run), Version.of(sets, graph)
    rows = opened.rows.part(start, stop)
    proba = rows.proba
    said = proba.max(axis=1), proba.argmax(axis=1)
    one = next(one for one in opened.sets() if (one.start, one.stop) == (start, stop))
    far = foreign_dependence(sets, opened.record.settings, one)
    sets.progress(0.2, "Comparing the rows")
    if version is None:
        inner = sets.read(which)
        known, design = class_shares(sets, which="calibration"), _design(inner.grouping)
        model = _by_confidence(inner.proba, proba, known.share, known.rows, design=design, far=far)
        return ForeignAnswers(model, _confidence(proba, far), Surest.of(*said), None)
    ordinary, graph_now, floor = version.run.rows, version.graph, version.floor
    given = version.setting.prior is not None
    design = _design(_together(sets, version))
    own = version.posterior(run, opened.rows.located)[start:stop]
    inside = version.log_density("judged", ordinary.located)
    outside = version.log_density(run, opened.rows.located)[start:stop]
    sure = version.posterior("judged", ordinary.located).max(axis=1)
    answers = VersionAnswers(
        (
            _oce(own, graph_now.prior, given=given, far=far),
            ood_auroc(inside, outside, weight_in=design, dependence_out=far),
            fpr_at_95_tpr(inside, outside, weight_in=design, dependence_out=far),
        ),
        ood_auroc(sure, own.max(axis=1), by="confidence", weight_in=design, dependence_out=far),
        _confidence(own, far),
        unknown_share(inside < floor, sample_weight=design),
        int((outside < floor).sum()),
        log_densities(inside, {name: outside}, floor),
        (_tied(ordinary), _tied(rows)),
        float(np.median(graph_now.switch_radii)),
    )
    return ForeignAnswers(
        _by_confidence(ordinary.proba, proba, graph_now.prior, given=given, design=design, far=far),
        _confidence(proba, far),
        Surest.of(*said, own.max(axis=1)),
        answers,
    )


@dataclass(frozen=True, eq=False)
class SurestRows:
    """Foreign rows with their features, sorted by descending confidence of the model.

    Attributes
    ----------
    said : DataFrame
        The answers for each row. Untrusted texts.
    features : DataFrame
        Features as read or made. Untrusted names and texts.
    """

    said: pd.DataFrame
    features: pd.DataFrame


@review_task("Out of distribution: picking rows", reads=PARTS)
def surest_rows(
    sets: Sets,
    *,
    run: str,
    start: int,
    stop: int,
    graph: dict[str, Any] | None = None,
    most: int = MAX_ROWS,
) -> SurestRows:
    """The ``most`` foreign rows of a set of the run with the highest confidence.

    Raises
    ------
    InputError
        Where an uploaded table is missing.
    """
    opened, version = _run(sets, run), Version.of(sets, graph)
    one = next(one for one in opened.sets() if (one.start, one.stop) == (start, stop))
    proba = opened.rows.part(start, stop).proba
    order = np.argsort(-proba.max(axis=1), kind="stable")[: min(most, MAX_ROWS)]
    names = np.array(opened.record.classes, dtype=object)
    said = {
        "Row": order + 1,
        "Predicted class": names[proba[order].argmax(axis=1)],
        SAYS: proba[order].max(axis=1),
    }
    if version is not None:
        located = opened.rows.located
        said[VERSION_SAYS] = version.posterior(run, located)[start:stop][order].max(axis=1)
        said[UNKNOWN] = version.unknown(run, located)[start:stop][order]
    sets.progress(0.5, "Reading the rows")
    features = _frame(sets, run, opened, one).iloc[order].reset_index(drop=True)
    return SurestRows(pd.DataFrame(said), features)


CELLS = 5000  # pixels of all pictures that are sent together
PICTURES = 8  # in a line


@dataclass(frozen=True, eq=False)
class ForeignPictures:
    """Foreign rows that are pictures: the most confident first, then the least confident.

    Attributes
    ----------
    pixels : (m, R, C) float64
    predicted : tuple of m str
        Untrusted text.
    confidence : (m,) float64
    version : (m,) float64 or None
        Confidence of the kernel density version.
    n_surest : int
    """

    pixels: FloatArray
    predicted: tuple[str, ...]
    confidence: FloatArray
    version: FloatArray | None
    n_surest: int


@review_task("Out of distribution: drawing rows", reads=PARTS)
def foreign_pictures(
    sets: Sets, *, run: str, start: int, stop: int, graph: dict[str, Any] | None = None
) -> ForeignPictures | None:
    """The rows of a set of which the model is most and least sure, as pictures.

    None where the columns are no pixels. Rows stay on the server but for these: what a reviewer
    must see of a foreign picture is the picture.
    """
    opened, version = _run(sets, run), Version.of(sets, graph)
    one = next(one for one in opened.sets() if (one.start, one.stop) == (start, stop))
    features = _frame(sets, run, opened, one)
    places = pixel_places([str(name) for name in features.columns])
    if places is None:
        return None
    proba = opened.rows.part(start, stop).proba
    each = min(PICTURES, max(CELLS // (2 * places.size), 1), -(-len(proba) // 2))
    order = np.argsort(-proba.max(axis=1), kind="stable")
    chosen = np.concatenate([order[:each], order[max(len(order) - each, each) :][::-1]])
    pixels = features.iloc[chosen].to_numpy(dtype=np.float64)[:, places.ravel()]
    own = None
    if version is not None:
        own = version.posterior(run, opened.rows.located)[start:stop][chosen].max(axis=1)
    names = opened.record.classes
    return ForeignPictures(
        pixels.reshape(-1, *places.shape),
        tuple(names[at] for at in proba[chosen].argmax(axis=1)),
        proba[chosen].max(axis=1),
        own,
        each,
    )


@dataclass(frozen=True, eq=False)
class GraphChosen:
    """How the kernel's exponent was chosen, and the blend inside the data."""

    selection: Selection
    blend: Blend | None


@review_task("Out of distribution: comparing exponents", reads=ALL_ROWS)
def graph_chosen(sets: Sets, *, graph: dict[str, Any]) -> GraphChosen:
    """Held-out log loss of every exponent with the current setting."""
    found = Version.of(sets, graph)
    assert found is not None
    return GraphChosen(found.graph.selection(), found.graph.blend)


@dataclass(frozen=True, eq=False)
class AmongOrdinary:
    """The same estimates for the model and for its kernel density version."""

    model: tuple[Estimate, ...]
    version: tuple[Estimate, ...]


@review_task(
    "Out of distribution: measuring among ordinary rows", reads=ALL_ROWS, edition="rows together"
)
def among_ordinary(sets: Sets, *, graph: dict[str, Any]) -> AmongOrdinary:
    """Accuracy and calibration on the rows on which the version is judged."""
    version = Version.of(sets, graph)
    assert version is not None
    run = version.run
    rows, classes = run.rows, run.record.classes
    assert rows.y is not None
    together = _together(sets, version)

    def judged(proba: FloatArray) -> tuple[Estimate, ...]:
        assert rows.y is not None
        found = ScoredSet(proba, rows.y, classes, "", "ordinary rows", dependence=together)
        return tuple(summary(found))

    return AmongOrdinary(judged(rows.proba), judged(version.posterior("judged", rows.located)))


@review_task(
    "Watching: counting unknown rows",
    reads=ALL_ROWS,
    needs=require_model,
    edition="rows together",
)
def unknown_new_rows(
    sets: Sets, *, table: str, digest: str, graph: dict[str, Any]
) -> UnknownChange:
    """Rows of a new table below the floor of the kernel density version, and of ordinary rows.

    Parameters
    ----------
    table, digest : str
        As of `kdcal_core.review.ReviewReader.watched`.

    Raises
    ------
    InputError
        For rows that do not fit the model, with file and row.
    """
    from kdcal_core.data import feature_frame
    from kdcal_core.review.scoring import in_file

    reader, version = sets.reader, Version.of(sets, graph)
    assert version is not None
    model = reader.model()
    estimator = load_estimator(graph["folder"], model)
    with in_file(table):
        frame = reader.watched(table, digest)
        features = feature_frame(frame, reader.roles)
        rows = placed(model, features, None, estimator, sets.progress)
    unknown = version.unknown(digest, rows.located)
    ordinary = version.unknown("judged", version.run.rows.located)
    try:
        return unknown_change(unknown, ordinary, dependence=_of_both(sets, version, frame))
    except InputError:  # nothing says how units differ, which the notes of the watch say
        return unknown_change(unknown, ordinary)


def _of_both(sets: Sets, version: Version, new: pd.DataFrame) -> Dependence | None:
    """How the judged rows and then the new ones depend on one another.

    Raises
    ------
    InputError
        For a missing cluster or time.
    """
    roles = sets.reader.roles
    column = roles.time or roles.cluster
    if column is None or column not in new.columns:
        return None
    old = sets.frame(sets.reader.judged, (column,)).iloc[version.run.positions]
    return row_dependence(pd.concat([old, new[[column]]], ignore_index=True), roles)


def by_distance(run: ForeignRun, proba: FloatArray) -> DistanceCurve:
    """Mean confidence on each sphere, from probabilities ``proba`` of the run's rows."""
    return confidence_by_distance(
        run.by_radius(proba), run.radii, q=BAND, seed=run.record.settings.seed
    )


def _run(sets: Sets, run: str) -> ForeignRun:
    found: ForeignRun = sets.keep(("foreign", run), lambda: load(run, ForeignRun))
    return found


def _frame(sets: Sets, run: str, opened: ForeignRun, one: ForeignSet) -> pd.DataFrame:
    at = sets.reader, opened.record.settings, one
    found: pd.DataFrame = sets.keep(
        ("foreign frame", run, one.start, one.stop), lambda: foreign_frame(*at)
    )
    return found


def _by_confidence(
    inner: FloatArray,
    proba: FloatArray,
    prior: FloatArray,
    prior_rows: float | None = None,
    *,
    given: bool = False,
    design: RowDesign | None = None,
    far: Dependence | None = None,
) -> tuple[Estimate, Estimate, Estimate]:
    ordinary, foreign = inner.max(axis=1), proba.max(axis=1)
    depend: dict[str, Any] = {"weight_in": design, "dependence_out": far}
    return (
        _oce(proba, prior, prior_rows, given=given, far=far),
        ood_auroc(ordinary, foreign, by="confidence", **depend),
        fpr_at_95_tpr(ordinary, foreign, by="confidence", **depend),
    )


def _oce(
    proba: FloatArray,
    prior: FloatArray,
    prior_rows: float | None = None,
    *,
    given: bool,
    far: Dependence | None,
) -> Estimate:
    kind: Literal["given", "empirical"] = "given" if given else "empirical"
    return ood_calibration_error(
        proba, prior, prior_kind=kind, prior_rows=prior_rows, dependence=far
    )


def _confidence(proba: FloatArray, far: Dependence | None) -> Estimate:
    return mean_max_confidence(proba, sample_weight=_design(far))


def _together(sets: Sets, version: Version) -> Dependence | None:
    """How the rows on which a version is judged depend on one another."""
    every = sets.read(sets.reader.judged).grouping
    return None if every is None else every.only(version.run.positions)


def _design(together: Dependence | None) -> RowDesign | None:
    """Rows that count the same, whatever their weights."""
    return None if together is None else RowDesign(None, together)


def _tied(rows: Rows) -> int:
    return 0 if rows.located is None else int(rows.located.tied.sum())
