"""The measures of the Regions page on a scored set, made as in `set_measures`.

The size of the results does not depend on the number of rows: a search is kept without the region
of each row, and tables of rows hold at most `MAX_ROWS`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.calibration.regions import Hierarchy, RegionFit, RegionMap, Scores, fit_maps
from kdcal_core.calibration.regions.region_layers import region_fits
from kdcal_core.data import IntArray, Roles, ScoredSet, target_labels, used_columns
from kdcal_core.data.column_kinds import is_number, simple, why_no_input
from kdcal_core.diagnostics import (
    Estimate,
    Fault,
    PitHistogram,
    RegionSearch,
    ReliabilityCurve,
    ScoreSpread,
    auc,
    column_regions,
    confidence_gap,
    confidence_reliability,
    describe_pit_regions,
    describe_regions,
    fault,
    find_pit_regions,
    find_regions,
    log_loss,
    pit_histogram,
)
from kdcal_core.diagnostics.regression.local_faults import OTHERS
from kdcal_core.diagnostics.summaries import (
    summary_auroc,
    summary_gap,
    summary_log_loss,
)
from kdcal_core.diagnostics.targets import Target, targets
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.evaluation import MODEL
from kdcal_core.partition.tree import BinnedInputs, bin_inputs, unusable_columns
from kdcal_core.review import Part, Which, input_columns, left_out
from kdcal_core.statistics import of_rows
from kdcal_core.store import decode, load
from kdcal_core.tasks.decorators import ALL_ROWS, SUMMED, Sets, review_task, the_set
from kdcal_core.tasks.drawn_sets import drawn_of, positions_in
from kdcal_core.tasks.pit_measures import MAX_ROWS, PitRows, pit_rows, pit_values
from kdcal_core.tasks.region_search import RegionSearchRun, class_regions
from kdcal_core.tasks.regions import EventScores, RegionsRun
from kdcal_core.tasks.set_measures import Refused

COLUMN_BINS, COLUMN_LEVELS = 10, 30
PANEL_BINS = 10  # bins of the panel of a region
SCORE_BINS = 15  # bins of all judged rows before and after calibration

Purpose = Literal["wrong", "classes", "column"]


@dataclass(frozen=True)
class RegionQuestion:
    """A question about the rows.

    Attributes
    ----------
    purpose : str
        "wrong": where stated and observed differ; "classes": where the classes differ (Durfee et
        al., Heterogeneous Calibration, Algorithm 1); "column": along one column.
    max_depth : int
    min_rows : int or None
        Fewest rows of a region; None for the search's default.
    label : int or None
        The class whose probability is examined; None for the confidence.
    column : str or None
        The column, for the purpose "column". Untrusted text.
    """

    purpose: Purpose = "wrong"
    max_depth: int = 3
    min_rows: int | None = None
    label: int | None = None
    column: str | None = None

    @property
    def target(self) -> str | int:
        """The stated quantity, as `find_regions` takes it."""
        return "confidence" if self.label is None else self.label


@dataclass(frozen=True, eq=False)
class RegionColumns:
    """The columns of a set that can define regions. All names are untrusted text.

    Attributes
    ----------
    inputs : tuple of str
        Columns on which trees can be grown.
    not_searched : dict of str to str
        Every other column but those of the target and the outputs, with the reason: no tree can
        divide the rows by it.
    columns : tuple of str
        Columns that can define regions alone: the inputs, then those without a role.
    """

    inputs: tuple[str, ...]
    not_searched: dict[str, str]
    columns: tuple[str, ...]


_MAPS = (
    "maps of either of two classes, intervals by scatter, smooth curves, boxes, parts, drawn "
    "rows of many, clusters"
)


def _cut(arguments: dict[str, Any]) -> tuple[Part, ...]:
    """The set that is divided into regions, and the training rows if regions follow the classes."""
    grown = arguments["asked"]["purpose"] == "classes"
    return (*the_set(arguments), "training") if grown else the_set(arguments)


@review_task("Regions: reading the columns", reads=the_set, edition="not searched, drawn rows")
def region_columns(sets: Sets, *, which: Which) -> RegionColumns:
    """The columns of a set that can define regions, in trees and alone."""
    review = sets.reader.review
    roles = review.roles or Roles()
    names = input_columns(review)
    drawn = drawn_of(sets, which)
    frame = drawn.frame(which, tuple(names))
    unusable = unusable_columns(frame)
    inputs = tuple(name for name in names if name not in unusable)
    constant = [name for name in inputs if _is_constant(frame[name])]
    if drawn is not sets:
        constant = [one for one in constant if _is_constant(sets.frame(which, (one,))[one])]
    taken = {*used_columns(roles), *inputs}
    others = [one.name for one in review.tables[which].columns if one.name not in taken]
    beside = (
        *(("Cluster", roles.cluster), ("Time", roles.time)),
        *(("Split", roles.split), ("Weight", roles.weight)),
    )
    reasons = {
        **left_out(review),
        **{name: why_no_input(simple(name), frame[name]) or unusable[name] for name in unusable},
        **dict.fromkeys(constant, "the same value in every row"),
        **{name: f"its role is {role!r}" for role, name in beside if name is not None},
    }
    if review.model is not None:
        reasons |= dict.fromkeys(others, "the model does not read it")
    return RegionColumns(inputs, reasons, (*inputs, *others))


def _is_constant(column: pd.Series[Any]) -> bool:
    known = column.dropna()
    if known.empty:
        return True
    return len(known) == len(column) and bool((known == known.iloc[0]).all())


@dataclass(frozen=True, eq=False)
class FoundRegions:
    """A partition with its results.

    Attributes
    ----------
    search : RegionSearch or None
        The search without the region of each row; None where there are no regions.
    ranked : bool
        Whether regions are sorted by their evidence; otherwise by the values of the column.
    refused : Refused or None
        Why there are no regions.
    """

    search: RegionSearch | None
    ranked: bool = True
    refused: Refused | None = None


@review_task("Regions: looking for regions", reads=_cut, edition=_MAPS)
def region_search(
    sets: Sets, *, which: Which, asked: dict[str, Any], run: str | None = None
) -> FoundRegions:
    """The partition that answers a question, with the faults of each region.

    Parameters
    ----------
    asked : dict
        `RegionQuestion` as JSON.
    run : str, optional
        Folder of the finished `RegionSearchRun` that answers it. Without it, the regions are found
        on half of the rows and judged on the other half; of very many, in drawn ones.
    """
    question, sets = decode(RegionQuestion, asked), _judged(sets, which, run)
    sets.progress(0.05, "Looking for regions")
    try:
        search = _search(sets, which, question, run)
    except _NoRegionsError as error:
        return FoundRegions(None, refused=Refused.of(error.why))
    return FoundRegions(search.without_rows(), _ranked(sets, which, question))


@dataclass(frozen=True, eq=False)
class RegionPanel:
    """Results for some judged rows: reliability (classification) or PIT values (regression).

    Attributes
    ----------
    leaf : int
        Their region; -1 for all judged rows.
    reliability : ReliabilityCurve or None
    pit : PitHistogram or None
    fault : Fault or None
    """

    leaf: int
    reliability: ReliabilityCurve | None = None
    pit: PitHistogram | None = None
    fault: Fault | None = None


@dataclass(frozen=True, eq=False)
class RegionPanels:
    """Detailed results for regions, and for all judged rows.

    Attributes
    ----------
    everything : RegionPanel
        Panel of all judged rows.
    regions : tuple of RegionPanel
        Panels of the requested regions that have judged rows.
    fits : tuple of RegionFit
        Platt map of every region, fitted on its rows; empty for a regression.
    maps : tuple of RegionMap
        The maps of one class over the probabilities that occur in each region. The class is the
        requested one, or else the second of two classes or the first of more.
    """

    everything: RegionPanel
    regions: tuple[RegionPanel, ...]
    fits: tuple[RegionFit, ...]
    maps: tuple[RegionMap, ...]

    def of(self, leaf: int) -> RegionPanel:
        """The panel of a requested region. Raises StopIteration where it has no rows."""
        return next(one for one in self.regions if one.leaf == leaf)


@review_task("Regions: looking at them closely", reads=_cut, edition=_MAPS)
def region_panels(
    sets: Sets,
    *,
    which: Which,
    asked: dict[str, Any],
    run: str | None = None,
    leaves: Sequence[int] | None = None,
) -> RegionPanels:
    """Panels of some or all regions that `region_search` finds for the same arguments."""
    question, sets = decode(RegionQuestion, asked), _judged(sets, which, run)
    search = _search(sets, which, question, run)
    sets.progress(0.5, "Looking at the regions closely")
    regression = _is_regression(sets)
    panel = _pit_panel if regression else _stated_panel
    key = _key(which, question, run)
    everything: RegionPanel = sets.keep(
        ("all judged rows", *key), lambda: panel(sets, which, question, -1, np.sort(search.judged))
    )
    chosen = range(len(search.regions)) if leaves is None else leaves
    regions = tuple(
        panel(sets, which, question, leaf, rows_in(search, leaf))
        for leaf in chosen
        if search.regions[leaf].n
    )
    if regression:
        return RegionPanels(everything, regions, (), ())
    sets.progress(0.8, "Fitting a map to every region")
    fits, maps = sets.keep(
        ("region maps", *key), lambda: _fitted_maps(sets.read(which), search, question)
    )
    return RegionPanels(everything, regions, fits, maps)


@dataclass(frozen=True, eq=False)
class RegionsAtOnce:
    """A partition, and detailed results for its regions; None where there are no regions."""

    found: FoundRegions
    panels: RegionPanels | None


@review_task("Regions: looking for regions", reads=_cut, edition=_MAPS)
def regions_at_once(
    sets: Sets, *, which: Which, asked: dict[str, Any], run: str | None = None
) -> RegionsAtOnce:
    """`region_search` and `region_panels` of all regions, in one reading of the rows."""
    found = region_search(sets, which=which, asked=asked, run=run)
    if found.search is None:
        return RegionsAtOnce(found, None)
    return RegionsAtOnce(found, region_panels(sets, which=which, asked=asked, run=run))


@dataclass(frozen=True, eq=False)
class ModelEstimates:
    """Estimates on all rows of a classification, with the AUROC where two classes occur."""

    log_loss: Estimate
    gap: Estimate
    auc: Estimate | None


@review_task(
    "Regions: measuring all rows, with intervals", reads=the_set, edition=f"{SUMMED}, clusters"
)
def model_estimates(sets: Sets, *, which: Which) -> ModelEstimates:
    """The model as it is, on all rows of a set."""
    whole = sets.summary(which)
    if whole is not None:
        return ModelEstimates(
            summary_log_loss(whole),
            summary_gap(whole),
            summary_auroc(whole) if len(whole.classes) == 2 and whole.joint.any(1).all() else None,
        )
    scored = sets.read(which)
    proba, y, weight = scored.proba, scored.y, scored.design
    two = proba.shape[1] == 2 and len(np.unique(y)) == 2
    return ModelEstimates(
        log_loss(proba, y, sample_weight=weight),
        confidence_gap(proba, y, sample_weight=weight),
        auc(proba[:, 1], y, sample_weight=weight) if two else None,
    )


@dataclass(frozen=True, eq=False)
class RegionRows:
    """Rows of a region, sorted by ascending probability of the true class.

    Attributes
    ----------
    n : int
        Number of judged rows in the whole region.
    rows : (m,) int64
        Positions in the set.
    said : DataFrame
        The model's answers and the true classes. Untrusted names and texts.
    own : DataFrame
        Their columns in the table, without the target. Untrusted names and texts.
    """

    n: int
    rows: IntArray
    said: pd.DataFrame
    own: pd.DataFrame


@review_task("Regions: picking rows", reads=_cut)
def region_rows(
    sets: Sets,
    *,
    which: Which,
    asked: dict[str, Any],
    leaf: int,
    run: str | None = None,
    most: int = MAX_ROWS,
) -> RegionRows:
    """The first judged rows of a region of a classification, at most ``most``."""
    question, sets = decode(RegionQuestion, asked), _judged(sets, which, run)
    search = _search(sets, which, question, run)
    scored, review = sets.read(which), sets.reader.review
    rows = rows_in(search, leaf)
    order = np.argsort(scored.proba[rows, scored.y[rows]], kind="stable")
    first = rows[order[: min(most, MAX_ROWS)]]
    target = review.roles.target if review.roles else None
    own = sets.frame(which).iloc[first].reset_index(drop=True)
    own = own.drop(columns=[name for name in (target,) if name in own])
    answers = _answers(scored, first, question.label)
    return RegionRows(len(rows), positions_in(sets, which, first), answers, own)


@review_task("Regions: picking rows", reads=_cut)
def region_pit_rows(
    sets: Sets,
    *,
    which: Which,
    asked: dict[str, Any],
    leaf: int,
    level: float,
    run: str | None = None,
    most: int = MAX_ROWS,
) -> PitRows:
    """The first judged rows of a region of a regression, in the order of `pit_rows`."""
    sets = _judged(sets, which, run)
    search = _search(sets, which, decode(RegionQuestion, asked), run)
    rows = rows_in(search, leaf)
    found = pit_rows(sets, which=which, level=level, among=rows.tolist(), most=most)
    return replace(found, rows=positions_in(sets, which, found.rows))


@dataclass(frozen=True, eq=False)
class RepairScores:
    """The scores of one method of a `RegionsRun` on the judged rows.

    Attributes
    ----------
    reliability : ReliabilityCurve
    spread : ScoreSpread
    training : ScoreSpread or None
        Scores of the model as it is on its training rows, where the review has these.
    """

    reliability: ReliabilityCurve
    spread: ScoreSpread
    training: ScoreSpread | None


@review_task("Regions: reading the scores of a method", reads=ALL_ROWS, edition="clusters")
def repair_scores(sets: Sets, *, run: str, method: str, label: int | None = None) -> RepairScores:
    """The scores of a method, or of the model as it is (`MODEL`), in the folder ``run``.

    With two classes they are those of the class ``label``, or of the predicted class if it is None.
    """
    opened = load(run, RegionsRun)
    binary = len(sets.reader.review.classes) == 2

    def asked(scores: EventScores) -> EventScores:
        return scores.of_class(label) if binary else scores

    found = asked(opened.scores[method])
    judged = sets.read("evaluation" if sets.reader.review.has_evaluation else "calibration")
    diagram = confidence_reliability(
        found.score, found.hit.astype(np.int64), n_bins=SCORE_BINS, sample_weight=judged.design
    )
    training = opened.training if method == MODEL else None
    return RepairScores(
        diagram.curves[0], _spread(found), None if training is None else _spread(asked(training))
    )


def rows_in(search: RegionSearch, leaf: int) -> IntArray:
    """The judged rows of a region, ascending."""
    return np.sort(search.judged[search.leaf[search.judged] == leaf])


class _NoRegionsError(Exception):
    """There are no regions in the rows, for this reason; unlike rows that cannot be read."""

    def __init__(self, why: InputError) -> None:
        super().__init__(str(why))
        self.why = why


def _search(sets: Sets, which: Which, question: RegionQuestion, run: str | None) -> RegionSearch:
    """The search with the region of each row."""

    def make() -> RegionSearch:
        if run is not None:
            return load(run, RegionSearchRun).search
        if question.purpose == "column":
            return _along(sets, which, question)
        inputs = region_columns(sets, which=which).inputs
        frame = sets.frame(which, tuple(input_columns(sets.reader.review)))[list(inputs)]
        if _is_regression(sets):
            return _of_pit(sets, which, question, frame)
        return _of_stated(sets, which, question, frame)

    found: RegionSearch = sets.keep(("regions", *_key(which, question, run)), make)
    return found


def _judged(sets: Sets, which: Which, run: str | None) -> Sets:
    """The sets that a search divides: drawn rows of very many, but all for a thorough one."""
    return sets if run is not None else drawn_of(sets, which)


def _of_pit(
    sets: Sets, which: Which, question: RegionQuestion, frame: pd.DataFrame
) -> RegionSearch:
    pit, weight = pit_values(sets, which), sets.distributions(which).design
    depth, least = question.max_depth, question.min_rows
    try:
        binned = _binned(sets, which, frame)
        return find_pit_regions(pit, binned, max_depth=depth, min_rows=least, sample_weight=weight)
    except InputError as error:
        raise _NoRegionsError(error) from error


def _of_stated(
    sets: Sets, which: Which, question: RegionQuestion, frame: pd.DataFrame
) -> RegionSearch:
    scored, target = sets.read(which), question.target
    depth, least = question.max_depth, question.min_rows
    known = None
    if question.purpose == "classes" and sets.reader.has("training"):
        known = _training(sets, which, frame)
    try:
        if known is not None:
            inputs, y, looked = known
            return class_regions(
                scored,
                looked,
                training=(inputs, y),
                target=target,
                max_depth=depth,
                min_rows=least,
            )
        binned = _binned(sets, which, frame)
        find = find_regions if question.purpose == "wrong" else class_regions
        return find(scored, binned, target=target, max_depth=depth, min_rows=least)
    except InputError as error:
        raise _NoRegionsError(error) from error


def _along(sets: Sets, which: Which, question: RegionQuestion) -> RegionSearch:
    assert question.column is not None
    column = sets.frame(which, (question.column,))[question.column]
    regression = _is_regression(sets)
    pit = pit_values(sets, which) if regression else None
    try:
        labels, names = column_regions(column, COLUMN_BINS, COLUMN_LEVELS)
        words = [_value_words(question.column, name) for name in names]
        if pit is not None:
            weight = sets.distributions(which).design
            return describe_pit_regions(pit, labels, words, sample_weight=weight)
        return describe_regions(sets.read(which), labels, words, target=question.target)
    except InputError as error:
        raise _NoRegionsError(error) from error


def _value_words(column: str, name: str) -> str:
    return f"{column} is any other" if name == OTHERS else f"{column} is {name}"


def _ranked(sets: Sets, which: Which, question: RegionQuestion) -> bool:
    column = question.column
    return column is None or not is_number(sets.frame(which, (column,))[column])


def _key(which: Which, question: RegionQuestion, run: str | None) -> tuple[str, str, str | None]:
    return which, json.dumps(asdict(question)), run


def _is_regression(sets: Sets) -> bool:
    return sets.reader.review.task == "regression"


def _binned(sets: Sets, which: Which, frame: pd.DataFrame) -> BinnedInputs:
    def make() -> BinnedInputs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # pooled categories are named "other"
            return bin_inputs(frame)

    sets.progress(0.1, "Coding the inputs")
    binned: BinnedInputs = sets.keep(("coded", which), make)
    return binned


def _training(
    sets: Sets, which: Which, frame: pd.DataFrame
) -> tuple[BinnedInputs, IntArray, BinnedInputs]:
    """The coded training rows with their classes, and the set's rows in the same codes."""

    def make() -> tuple[BinnedInputs, IntArray, BinnedInputs]:
        reader = sets.reader
        known = reader.frame("training")
        name = reader.name("training")
        y = target_labels(known, reader.roles, reader.review.classes, file=name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            inputs = bin_inputs(known[list(frame.columns)])
            return inputs, y, bin_inputs(frame, like=inputs.columns)

    sets.progress(0.1, "Reading the training rows")
    found: tuple[BinnedInputs, IntArray, BinnedInputs] = sets.keep(("training", which), make)
    return found


def _stated_panel(
    sets: Sets, which: Which, question: RegionQuestion, leaf: int, rows: IntArray
) -> RegionPanel:
    scored, label = sets.read(which), question.label

    def make() -> Target:
        kind: Literal["confidence", "class"] = "confidence" if label is None else "class"
        (goal,) = targets(scored.proba, scored.y, scored.design, kind, label)
        return goal

    goal: Target = sets.keep(("target", which, label), make)
    found = confidence_reliability(
        goal.score[rows],
        goal.hit[rows].astype(np.int64),
        n_bins=PANEL_BINS,
        sample_weight=of_rows(goal.design, rows),
    )
    return RegionPanel(leaf, reliability=found.curves[0])


def _pit_panel(
    sets: Sets, which: Which, question: RegionQuestion, leaf: int, rows: IntArray
) -> RegionPanel:
    scored = sets.distributions(which)
    pit, weight = pit_values(sets, which)[rows], of_rows(scored.design, rows)
    return RegionPanel(
        leaf,
        pit=pit_histogram(pit, PANEL_BINS, sample_weight=weight),
        fault=fault(pit, sample_weight=weight, stated=scored.distribution.stated_levels),
    )


def _fitted_maps(
    scored: ScoredSet, search: RegionSearch, question: RegionQuestion
) -> tuple[tuple[RegionFit, ...], tuple[RegionMap, ...]]:
    kept = np.flatnonzero(search.leaf >= 0)
    weight = np.ones(len(kept)) if scored.weight is None else scored.weight[kept]
    scores = Scores(scored.proba[kept], scored.y[kept], weight / weight.mean())
    n_regions = len(search.regions)
    hierarchy = Hierarchy.flat(n_regions)
    if search.tree is not None:
        hierarchy = Hierarchy.of_tree(search.tree)
    leaf = search.leaf[kept]
    fit = fit_maps("platt", scores, leaf, hierarchy)
    words = {one.leaf: one.words for one in search.regions}
    fits = region_fits(fit, scores, leaf, n_regions, words.__getitem__)
    return fits, _maps(scored, question.label, search, fits)


def _maps(
    scored: ScoredSet, asked: int | None, search: RegionSearch, fits: Sequence[RegionFit]
) -> tuple[RegionMap, ...]:
    """Maps over the probabilities that occur in each region with rows."""
    binary = len(scored.classes) == 2
    label = asked if asked is not None else 1 if binary else 0
    at = 0 if binary else label
    # the one map of two classes is that of the second: seen from the first, its offset is reversed
    sign = -1.0 if binary and label == 0 else 1.0
    p, weight = scored.proba[:, label], scored.weight
    lines = []
    for one in fits:
        mine = np.flatnonzero(search.leaf == one.leaf)
        if len(mine):
            slope, offset = (one.parameters[name][at] for name in ("slope", "offset"))
            weights = None if weight is None else weight[mine]
            lines.append(RegionMap.of(one.leaf, one.words, slope, sign * offset, p[mine], weights))
    return tuple(lines)


def _answers(scored: ScoredSet, rows: IntArray, asked: int | None) -> pd.DataFrame:
    """The model's probabilities for rows, and their classes."""
    names = np.array(scored.classes, dtype=object)
    predicted = scored.proba[rows].argmax(axis=1)
    columns = {
        "True class": names[scored.y[rows]],
        "Predicted": names[predicted],
        "Confidence": scored.proba[rows, predicted],
    }
    if len(scored.classes) == 2:
        event = 1 if asked is None else asked
        columns[f"P({scored.classes[event]})"] = scored.proba[rows, event]
    return pd.DataFrame(columns)


def _spread(found: EventScores) -> ScoreSpread:
    return ScoreSpread.of(found.score, found.hit)
