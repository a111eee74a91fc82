"""The measures of the Regions page on a scored set, made as in `set_measures`.

The size of the results does not depend on the number of rows: tables of rows hold at most
`MAX_ROWS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.calibration.regions import Hierarchy, RegionFit, RegionMap, Scores, fit_maps
from kdcal_core.calibration.regions.region_layers import region_fits
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics import (
    Estimate,
    Fault,
    PitHistogram,
    RegionSearch,
    ReliabilityCurve,
    ScoreSpread,
    auc,
    confidence_gap,
    confidence_reliability,
    fault,
    log_loss,
    pit_histogram,
)
from kdcal_core.diagnostics.summaries import (
    summary_auroc,
    summary_gap,
    summary_log_loss,
)
from kdcal_core.diagnostics.targets import Target, targets
from kdcal_core.evaluation import MODEL
from kdcal_core.review import Which
from kdcal_core.statistics import of_rows
from kdcal_core.store import decode, load
from kdcal_core.tasks.decorators import ALL_ROWS, SUMMED, Sets, review_task, the_set
from kdcal_core.tasks.drawn_sets import positions_in
from kdcal_core.tasks.pit_measures import MAX_ROWS, PitRows, pit_rows, pit_values
from kdcal_core.tasks.region_partitions import (
    SEARCHES,
    FoundRegions,
    RegionQuestion,
    divided_parts,
    is_regression,
    judged_sets,
    region_search,
    rows_in,
    search_key,
    searched,
)
from kdcal_core.tasks.regions import EventScores, RegionsRun

PANEL_BINS = 10  # bins of the panel of a region
SCORE_BINS = 15  # bins of all judged rows before and after calibration


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


@review_task("Regions: looking at them closely", reads=divided_parts, edition=SEARCHES)
def region_panels(
    sets: Sets,
    *,
    which: Which,
    asked: dict[str, Any],
    run: str | None = None,
    leaves: Sequence[int] | None = None,
) -> RegionPanels:
    """Panels of some or all regions that `region_search` finds for the same arguments."""
    question, sets = decode(RegionQuestion, asked), judged_sets(sets, which, run)
    search = searched(sets, which, question, run)
    sets.progress(0.5, "Looking at the regions closely")
    regression = is_regression(sets)
    panel = _pit_panel if regression else _stated_panel
    key = search_key(which, question, run)
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


@review_task("Regions: looking for regions", reads=divided_parts, edition=SEARCHES)
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


@review_task("Regions: picking rows", reads=divided_parts)
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
    question, sets = decode(RegionQuestion, asked), judged_sets(sets, which, run)
    search = searched(sets, which, question, run)
    scored, review = sets.read(which), sets.reader.review
    rows = rows_in(search, leaf)
    order = np.argsort(scored.proba[rows, scored.y[rows]], kind="stable")
    first = rows[order[: min(most, MAX_ROWS)]]
    target = review.roles.target if review.roles else None
    own = sets.frame(which).iloc[first].reset_index(drop=True)
    own = own.drop(columns=[name for name in (target,) if name in own])
    answers = _answers(scored, first, question.label)
    return RegionRows(len(rows), positions_in(sets, which, first), answers, own)


@review_task("Regions: picking rows", reads=divided_parts)
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
    sets = judged_sets(sets, which, run)
    search = searched(sets, which, decode(RegionQuestion, asked), run)
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


@review_task("Regions: reading the scores of a method", reads=ALL_ROWS, edition="clusters, weights")
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
        diagram.curves[0],
        _spread(found, judged.weight),
        None if training is None else _spread(asked(training)),
    )


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


def _spread(found: EventScores, weight: FloatArray | None = None) -> ScoreSpread:
    return ScoreSpread.of(found.score, found.hit, weight)
