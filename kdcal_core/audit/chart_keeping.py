"""The charts that an audit keeps: its own, those of comparisons, and those that were seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.io as pio

from kdcal_core.audit.asked import AuditSettings
from kdcal_core.audit.content import (
    KeptChart,
)
from kdcal_core.calibration import EventCurve
from kdcal_core.charts import (
    Chart,
    MeasuredRecalibration,
    better_model_words,
    comparison_chart,
    comparison_finding,
    comparison_table,
    confidence_curve_chart,
    confusion_chart,
    cost_chart,
    coverage_chart,
    decisions_chart,
    distance_chart,
    distance_finding,
    ecdf_chart,
    groups_chart,
    judged_text,
    net_benefit_chart,
    paired_chart,
    pit_chart,
    pit_groups_chart,
    quantile_reliability_chart,
    ranked,
    rates_chart,
    recalibration_advice,
    recalibration_differences_chart,
    recalibration_measures_chart,
    regions_chart,
    regions_words,
    reliability_by_class_chart,
    reliability_chart,
    scores_chart,
)
from kdcal_core.diagnostics import (
    AnchorKind,
    Confusion,
    Costs,
    DecisionCounts,
    GroupTable,
    PitHistogram,
    RegionSearch,
    Reliability,
    ScoreHistogram,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Decision, Review, Which
from kdcal_core.store import encode
from kdcal_core.tasks import (
    ALL_BINS,
    ComparisonRun,
    ForeignSettings,
    PitOverview,
    RecalibrationRecord,
    RegionQuestion,
    Sets,
    class_curves,
    class_histograms,
    class_shares,
    pit_histograms,
    pit_overview,
    recalibration_judged_text,
    region_search,
    score_foreign,
    set_decisions,
    set_groups,
    set_overview,
    set_pit_groups,
    set_reliability,
    threshold_of,
)
from kdcal_core.tasks.decorators import is_large
from kdcal_core.tasks.foreign_measures import by_distance

_FIT: Which = "calibration"
_RULE, _BARS = "mon2", 10  # as the page Confidence by class begins
CLASS_BINS = 15
"""Of the reliability by class, as the page Reliability begins."""
_LEAD = "log_loss"  # by which calibrators are ordered, as on the page Compare
_SEED = 0
_OTHER_REGIONS = (
    " The check region by region finds regions on one half of the rows and judges them on the "
    "other, so that its regions are others."
)
_FAR_ROWS = 1000  # on each sphere, as on the page


def charts_of_comparison(run: ComparisonRun) -> tuple[KeptChart, ...]:
    """What an audit keeps of a finished comparison of calibrators; nothing if none could be fitted.

    An audit does not compare calibrators itself, which may take minutes.
    """
    found = run.comparison
    measures = sorted(
        (one.key for one in found.measures if one.group == "inside"), key=lambda one: one != _LEAD
    )
    if len(found.methods) < 2 or not measures:
        return ()
    order = ranked(found, measures[0])

    def every(dark: bool) -> Chart:
        chart = comparison_chart(found, measures, order, dark=dark)
        said = (comparison_finding(found, measures[0]), judged_text(found, run.n_fit))
        return replace(chart, finding=" ".join((*said, chart.finding)))

    def paired(dark: bool) -> Chart:
        chart = paired_chart(found, measures, order, "model", dark=dark)
        return replace(chart, table=lambda: comparison_table(found, measures[:1]))

    titles = "Calibrators", "Calibrators against the model"
    return (
        _kept("compare", titles[0], "compare", every),
        _kept("compare_paired", titles[1], "compare", paired),  # all numbers are in the first one
    )


def charts_of_recalibration(record: RecalibrationRecord) -> tuple[KeptChart, ...]:
    """As `charts_of_comparison`, of a regression's recalibrators."""
    if len(record.methods) < 2:
        return ()
    lines = [MeasuredRecalibration.of(one) for one in record.methods]
    said = (
        recalibration_judged_text(record),
        better_model_words(record.methods, record.choice),
        recalibration_advice(record.methods, record.choice),
    )

    def every(dark: bool) -> Chart:
        chart = recalibration_measures_chart(lines, dark=dark)
        return replace(chart, finding=" ".join(filter(None, (chart.finding, *said))))

    def changes(dark: bool) -> Chart:
        return recalibration_differences_chart(lines, dark=dark)

    titles = "Recalibrators", "Recalibrators against the model"
    return (
        _kept("recalibration", titles[0], "recalibration", every),
        _kept("recalibration_changes", titles[1], "recalibration", changes),
    )


Draw = Callable[[bool], Chart]


Drawn = Iterator[tuple[str, str, str, Draw]]
"""Key, title and page of charts, each with what draws it."""


def kept_charts(drawn: Drawn) -> tuple[KeptChart, ...]:
    """Charts, each a key, a title, a page and what draws it, as an audit keeps them."""
    return tuple(_kept(*one) for one in drawn)


def with_seen(own: Sequence[KeptChart], seen: Sequence[KeptChart]) -> tuple[KeptChart, ...]:
    """The charts of an audit with those that a person saw: at other settings behind its own one.

    Examples
    --------
    >>> own, other, seen = (
    ...     KeptChart(key, "Chart", "page", "", "", "", figure, figure, "")
    ...     for key, figure in (("a", "1"), ("b", "2"), ("a", "3"))
    ... )
    >>> [(one.key, one.title) for one in with_seen([own, other], [seen])]
    [('a', 'Chart'), ('a_seen', 'Chart, as it was seen'), ('b', 'Chart')]
    >>> [one.key for one in with_seen([own], [own, other])]
    ['a', 'b']
    """
    known = {one.key: one for one in own}
    other = {one.key: one for one in seen if one.key in known}
    charts: list[KeptChart] = []
    for one in own:
        charts.append(one)
        beside = other.get(one.key)
        if beside is not None and beside.light != one.light:
            title = f"{one.title}, as it was seen"
            charts.append(replace(beside, key=f"{one.key}_seen", title=title))
    return (*charts, *(one for one in seen if one.key not in known))


def _kept(key: str, title: str, page: str, draw: Draw) -> KeptChart:
    light, dark = draw(False), draw(True)
    return KeptChart(
        key,
        title,
        page,
        light.finding,
        light.alt,
        light.how_to_read,
        _json(light),
        _json(dark),
        light.table().to_csv(index=False),
    )


def _json(chart: Chart) -> str:
    return str(pio.to_json(chart.figure, engine="json"))


def charts_of(sets: Sets, settings: AuditSettings) -> Drawn:
    """Every chart of an audit of a review's rows."""
    regression = sets.reader.review.task == "regression"
    return (_of_regression if regression else _of_classification)(sets, settings)


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """What the charts of a classification show, of rows or of a summary of them.

    ``by_class`` is the reliability of each predicted class, of more than two. ``decisions`` are
    those of an event.
    """

    reliability: Reliability
    by_class: Reliability | None
    scores: ScoreHistogram
    confusion: Confusion
    decisions: DecisionCounts | None


def charts_of_counts(counts: ClassCounts, review: Review, settings: AuditSettings) -> Drawn:
    """Charts of the set as a whole."""
    classes, event = review.classes, settings.event
    yield (
        *("reliability", "Reliability", "reliability"),
        lambda dark: reliability_chart(counts.reliability, classes, dark=dark),
    )
    if (by_class := counts.by_class) is not None:
        yield (
            *("reliability_by_class", "Reliability by predicted class", "reliability"),
            lambda dark: reliability_by_class_chart(by_class, classes, dark=dark),
        )
    yield (
        *("scores", "Confidence of right and wrong predictions", "reliability"),
        lambda dark: scores_chart(counts.scores, dark=dark),
    )
    yield (
        *("confusion", "Predicted and true classes", "reliability"),
        lambda dark: confusion_chart(counts.confusion, "joint", classes, dark=dark),
    )
    if (decisions := counts.decisions) is not None and event is not None:
        decision = settings.decision
        threshold = threshold_of(decisions, decision)
        names = (classes[1 - event] if len(classes) == 2 else "another class", classes[event])
        yield (
            *("net_benefit", "Net benefit by threshold", "decisions"),
            lambda dark: net_benefit_chart(decisions, threshold, dark=dark),
        )
        yield (
            *("decisions", "Decisions at the threshold", "decisions"),
            lambda dark: _decided(
                decisions_chart(decisions, threshold, names, dark=dark), decision, names[1]
            ),
        )
        yield (
            *("rates", "Sensitivity and specificity by threshold", "decisions"),
            lambda dark: rates_chart(decisions, threshold, dark=dark),
        )
        if decision.costs:
            yield (
                *("cost", "Mean cost by threshold", "decisions"),
                lambda dark: cost_chart(decisions, Costs(**decision.costs), threshold, dark=dark),
            )


def _decided(chart: Chart, decision: Decision, name: str) -> Chart:
    """The chart with where its threshold comes from."""
    return replace(chart, finding=f"{chart.finding} {threshold_words(decision, name)}")


def threshold_words(decision: Decision, name: str) -> str:
    """Where the threshold of an audit comes from, in a sentence. Untrusted text.

    Examples
    --------
    >>> threshold_words(Decision(), "sick")
    'No threshold was chosen: this one is the share of the rows of class sick.'
    """
    if decision.threshold is not None:
        return "This threshold was chosen."
    if decision.costs:
        return "No threshold was chosen: this one follows from the costs."
    return f"No threshold was chosen: this one is the share of the rows of class {name}."


def _counts(sets: Sets, which: Which, event: int | None) -> ClassCounts:
    overview, by_class = set_overview(sets, which=which, event=event), None
    if len(sets.reader.review.classes) > 2:
        by_class = set_reliability(
            sets, which=which, kind="top-label", n_bins=CLASS_BINS, strategy="uniform"
        )
    decisions = None if event is None else set_decisions(sets, which=which, event=event)
    return ClassCounts(
        overview.reliability, by_class, overview.scores, overview.confusion, decisions
    )


def _of_classification(sets: Sets, settings: AuditSettings) -> Drawn:
    review, which, event = sets.reader.review, settings.which, settings.event
    yield from charts_of_counts(_counts(sets, which, event), review, settings)
    if settings.groups:
        groups = set_groups(sets, which=which, event=event, columns=settings.groups)
        yield chart_of_groups(groups)
    question = encode(RegionQuestion("wrong", label=event))
    try:
        search = region_search(sets, which=which, asked=question).search
    except InputError:  # no column describes the rows; the check on regions says so
        search = None
    if search is not None:
        yield chart_of_regions(search, None if event is None else review.classes[event])
    if (far := _far_away(sets, which)) is not None:
        yield "far_away", "Confidence far from the data", "out_of_distribution", far
    if (curve := _by_score(sets, event)) is not None:
        yield "confidence", "Confidence by class", "confidence_by_class", curve


def _by_score(sets: Sets, event: int | None) -> Draw | None:
    """What the calibration set says of each score, as the page Confidence by class begins.

    Of the event, or of the predicted class that is most often wrong. Of few enough rows to be
    fitted beside everything else.
    """
    review = sets.reader.review
    if _FIT not in review.sets or is_large(review):
        return None
    label = event
    try:
        if label is None:
            joint = set_overview(sets, which=_FIT).confusion.joint
            label = int(np.argmax(joint.sum(axis=0) - np.diag(joint)))
        elif len(review.classes) > 2:
            return None  # the curve is that of the top label, or of an event of two classes
        labels = [label] if event is None else [0, 1]
        kind: AnchorKind = "top-label" if event is None else "class"
        found = class_curves(sets, which=_FIT, labels=labels, bandwidth=_RULE).curves[_RULE]
        bars = class_histograms(sets, which=_FIT, labels=[label], n_bins=_BARS, kind=kind).anchors
    except InputError:  # too few rows of the class; the page says so too
        return None
    whole = found[0] if event is None else EventCurve.of(found[event], found[1 - event])
    curve = whole.thinned()
    name = review.classes[label]

    def draw(dark: bool) -> Chart:
        chart = confidence_curve_chart(curve, bars[0], name, dark=dark)
        said, below, _ = chart.alt.partition(" Below it ")
        words = f"{said} {chart.finding}" if below else chart.finding
        return replace(chart, finding=f"{words} These are rows of the calibration set.")

    return draw


def _far_away(sets: Sets, which: Which) -> Draw | None:
    """Confidence on spheres around the data, of a model with regions or with foreign rows."""
    review = sets.reader.review
    if review.model is None or not (review.model.has_codes or review.foreign):
        return None
    try:
        run = score_foreign(sets, ForeignSettings(n=_FAR_ROWS, seed=_SEED))
    except InputError:  # the check on what is far away says why
        return None
    record = run.record
    if not record.of_kind("sphere"):
        return None
    curve, prior = by_distance(run, run.rows.proba), class_shares(sets, which=which).share.max()

    def draw(dark: bool) -> Chart:
        chart = distance_chart(
            {"model": curve},
            float(prior),
            n_rows=record.settings.n,
            n_moved=record.n_numeric,
            n_features=record.n_features,
            dark=dark,
        )
        found = distance_finding(curve, None, float(prior))
        return replace(chart, finding=f"{found} {chart.finding}")

    return draw


def _of_regression(sets: Sets, settings: AuditSettings) -> Drawn:
    histograms = pit_histograms(sets, which=settings.which, bins=(ALL_BINS,))
    overview = pit_overview(sets, which=settings.which)
    yield from charts_of_overview(overview, histograms.with_bins(ALL_BINS))
    if settings.groups:
        found = set_pit_groups(sets, which=settings.which, columns=settings.groups)
        yield chart_of_pit_groups(found, settings.groups)


def chart_of_groups(found: GroupTable) -> tuple[str, str, str, Draw]:
    """The declared groups of a classification, of rows or of a summary of them."""
    return "groups", "Declared groups", "groups", lambda dark: groups_chart(found, dark=dark)


def chart_of_pit_groups(found: RegionSearch, columns: Sequence[str]) -> tuple[str, str, str, Draw]:
    """As `chart_of_groups`, of a regression, with the column before names of its values."""

    def draw(dark: bool) -> Chart:
        return pit_groups_chart(found, columns, dark=dark)

    return "groups", "Declared groups", "groups", draw


def chart_of_regions(search: RegionSearch, event: str | None) -> tuple[str, str, str, Draw]:
    """The regions of all rows, with what they show and why the check on regions has others.

    ``event`` is the class whose probability was searched; untrusted text.
    """

    def draw(dark: bool) -> Chart:
        chart = regions_chart(search, dark=dark)
        others = _OTHER_REGIONS * bool(search.redraws and not search.one_part)
        found = regions_words(search, event=event)
        return replace(chart, finding=f"{found} {chart.finding}{others}")

    return "regions", "Regions", "regions", draw


def charts_of_overview(overview: PitOverview, histogram: PitHistogram) -> Drawn:
    """Charts of a regression's set as a whole, of rows or of a summary of them."""
    yield (
        *("pit", "PIT histogram", "pit"),
        lambda dark: pit_chart(histogram, kind=overview.fault.kind, dark=dark),
    )
    yield (
        "pit_ecdf",
        "PIT against uniform",
        "pit",
        lambda dark: ecdf_chart(overview.ecdf, dark=dark),
    )
    yield (
        *("coverage", "Coverage of intervals", "pit"),
        lambda dark: coverage_chart(overview.coverage, dark=dark),
    )
    yield (
        *("quantiles", "Reliability of quantiles", "pit"),
        lambda dark: quantile_reliability_chart(overview.quantiles, dark=dark),
    )
