"""What ``kdcal diagnose`` measures in a scored set, as JSON and as text.

The same input gives the same bytes of JSON.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd

from kdcal_core import __version__
from kdcal_core.cli.as_json import plain
from kdcal_core.cli.terminal import table
from kdcal_core.data import ScoredSet
from kdcal_core.data.schema import Task
from kdcal_core.diagnostics import (
    Confusion,
    Coverage,
    Estimate,
    Fault,
    GroupMeasures,
    GroupTable,
    PitHistogram,
    Region,
    RegionPit,
    RegionSearch,
    RegressionScores,
    Reliability,
    ReliabilityCurve,
    UniformityTest,
    confusion,
    confusion_finding,
    coverage,
    declared_divisions,
    declared_pit_regions,
    event_summary,
    fault,
    groups_finding,
    headline_estimate,
    interval_text,
    measure_groups,
    pit_by_column,
    pit_groups_finding,
    pit_histogram,
    regions_finding,
    regression_findings,
    reliability,
    reliability_finding,
    uniformity_tests,
    value_text,
)
from kdcal_core.distributions import RegressionSet, randomised_pit
from kdcal_core.evaluation import estimates_of, meaning_of, regression_scores
from kdcal_core.store.archive import new_file
from kdcal_core.text import (
    counted,
    formatted,
    in_sentence,
    number_text,
    p_text,
    printable,
    range_text,
)


@dataclass(frozen=True)
class SummarisedSet:
    """What a report says of a set of which only a summary was kept."""

    name: str
    digest: str
    n_rows: int
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Measured:
    """One set's results.

    ``notes`` are cautions for the reader. ``event`` is the class whose probability is asked about,
    from 0; None for the confidence in the prediction. ``diagram`` is the reliability diagram of
    all rows; ``by_class`` holds one curve of a single bin for each predicted class: its rows, mean
    confidence, and share right.
    """

    scored: ScoredSet | SummarisedSet
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    by_class: Reliability
    diagram: Reliability
    confusion: Confusion
    event: int | None = None
    groups: GroupTable | None = None


def measure(
    scored: ScoredSet,
    *,
    notes: tuple[str, ...] = (),
    n_bins: int,
    level: float,
    event: int | None = None,
    groups: pd.DataFrame | None = None,
) -> Measured:
    """Everything that ``kdcal diagnose`` reports about a set.

    Parameters
    ----------
    scored : ScoredSet
    notes : tuple of str
        Cautions about the rows.
    n_bins : int
        Bins of the reliability diagram.
    level : float
        Level of all intervals and bands, between 0 and 1.
    event : int, optional
        The class, from 0, whose probability the diagram, its finding and the first estimates are
        about, as on the pages; without it they are about the confidence in the prediction.
    groups : DataFrame of n rows, optional
        The columns of the declared groups, which are judged about the same.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.3, 0.7]] * 50)
    >>> scored = ScoredSet(proba, np.array([0, 1] * 50), ("a", "b"), "digest", "evaluation")
    >>> result = measure(scored, n_bins=10, level=0.95)
    >>> result.findings[1]
    'All 100 predictions are right.'
    >>> [int(curve.count[0]) for curve in result.by_class.curves]
    [50, 50]
    """
    proba, y, weight = scored.proba, scored.y, scored.design
    diagram = reliability(
        proba,
        y,
        kind="confidence" if event is None else "class",
        label=event,
        n_bins=n_bins,
        level=level,
        sample_weight=weight,
    )
    by_class = reliability(
        proba, y, kind="top-label", n_bins=1, level=level, sample_weight=weight, smooth=False
    )
    counts = confusion(proba, y, sample_weight=weight)
    estimates = estimates_of(scored, level=level)
    asked = estimates if event is None else event_summary(scored, event, level=level)
    if event is not None:
        estimates = (*asked, *(one for one in estimates if one.name not in {a.name for a in asked}))
    found = None
    if groups is not None:
        found = measure_groups(scored, declared_divisions(groups), event=event, level=level)
    findings = (
        reliability_finding(diagram, headline_estimate(asked), scored.classes),
        confusion_finding(counts, scored.classes),
        *class_groups_words(found),
    )
    return Measured(scored, findings, notes, estimates, by_class, diagram, counts, event, found)


def class_groups_words(found: GroupTable | None) -> tuple[str, ...]:
    """The finding about declared groups, if there are any."""
    return () if found is None else (f"Groups: {in_sentence(groups_finding(found))}",)


def pit_groups_words(found: RegionSearch | None) -> tuple[str, ...]:
    """As `class_groups_words`, of a regression."""
    return () if found is None else (f"Groups: {in_sentence(pit_groups_finding(found))}",)


#: What groups the rows where no column is given
PREDICTED_MEAN = "predicted mean"


@dataclass(frozen=True, eq=False)
class MeasuredRegression:
    """One set's results.

    ``family`` is that of the distributions. ``notes`` are cautions for the reader; ``by_column``
    holds the regions of each requested column.
    """

    scored: RegressionSet | SummarisedSet
    family: str
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    fault: Fault
    tests: tuple[UniformityTest, ...]
    scores: RegressionScores
    coverage: Coverage
    histogram: PitHistogram
    by_column: Mapping[str, tuple[RegionPit, ...]]
    groups: RegionSearch | None = None


def measure_regression(
    scored: RegressionSet,
    columns: Mapping[str, pd.Series[Any]],
    *,
    notes: tuple[str, ...] = (),
    scale: float,
    n_bins: int,
    level: float,
    seed: int,
    fitted_spread: bool = False,
    groups: pd.DataFrame | None = None,
) -> MeasuredRegression:
    """Everything that ``kdcal diagnose`` reports about a regression's set.

    Parameters
    ----------
    scored : RegressionSet
    columns : mapping of name to (n,) column
        Each is divided into regions, which are judged; without columns, the predicted mean is. The
        p values are corrected for the number of regions of a column (Holm).
    notes : tuple of str
        Cautions about the rows.
    scale : float
        Mean absolute outcome of the calibration set, the divisor of sMIS.
    n_bins : int
        Bins of the PIT histogram.
    level : float
        Level of all intervals and bands, between 0 and 1.
    seed : int
        Seed of the randomised PIT values and of the Monte Carlo tests.
    fitted_spread : bool
        Whether the model gives single numbers, with one spread fitted to the residuals.
    groups : DataFrame of n rows, optional
        The columns of the declared groups.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> y = np.random.default_rng(0).normal(2.0, size=500)
    >>> scored = RegressionSet(Normal(np.zeros(500), 1.0), y, "digest", "evaluation")
    >>> result = measure_regression(scored, {}, scale=2.0, n_bins=20, level=0.95, seed=0)
    >>> result.fault.kind, list(result.by_column)
    ('too low', ['predicted mean'])
    """
    distribution, y, weight = scored.distribution, scored.y, scored.design
    pit = randomised_pit(distribution, y, seed)
    held = coverage(distribution, y, scale=scale, weight=weight, level=level)
    stated = distribution.stated_levels
    found = fault(pit, level=level, sample_weight=weight, stated=stated)
    asked = columns or {PREDICTED_MEAN: pd.Series(distribution.mean())}
    by_column = {
        name: pit_by_column(
            pit,
            column,
            distribution=distribution,
            y=y,
            scale=scale,
            level=level,
            sample_weight=weight,
        )
        for name, column in asked.items()
    }
    judged = None
    if groups is not None:
        judged = declared_pit_regions(pit, groups, level=level, sample_weight=weight)
    local = (f"By {name}: {regions_finding(parts)}" for name, parts in by_column.items())
    return MeasuredRegression(
        scored=scored,
        family=distribution.family,
        findings=(
            *regression_findings(held, found, fitted_spread=fitted_spread),
            *local,
            *pit_groups_words(judged),
        ),
        notes=notes,
        fault=found,
        tests=uniformity_tests(pit, seed=seed, sample_weight=weight),
        scores=regression_scores(
            distribution,
            y,
            scale=scale,
            true_mean=scored.true_mean,
            pit=pit,
            weight=weight,
            level=level,
            seed=seed,
        ),
        coverage=held,
        histogram=pit_histogram(pit, bins=n_bins, level=level, sample_weight=weight),
        by_column=by_column,
        groups=judged,
    )


# Increased when a field is renamed or removed or changes its meaning, not for new fields.
FORMAT = 1


def record(
    measured: list[Measured] | list[MeasuredRegression],
    task: Task,
    inputs: dict[str, dict[str, Any] | None],
    settings: dict[str, Any],
    doubts: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Everything that ``kdcal diagnose`` found, as JSON values.

    Parameters
    ----------
    measured : list of Measured or of MeasuredRegression
        One for each set.
    task : str
        "classification" or "regression".
    inputs : dict
        Name and SHA-256 of each file, under "model", "calibration" and "evaluation".
    settings : dict
        What the user asked for.
    doubts : tuple of str
        Doubts about which classes the probabilities belong to, each with the option that settles
        it.

    Returns
    -------
    dict
        ``format`` is the version of this layout. Numbers that are not defined are None.
    """
    return {
        "format": FORMAT,
        "kdcal": __version__,
        "task": task,
        "inputs": inputs,
        "settings": settings,
        "doubts": doubts,
        "sets": [
            _regression_set(one) if isinstance(one, MeasuredRegression) else _set(one)
            for one in measured
        ],
    }


def record_text(content: dict[str, Any]) -> str:
    """JSON that every parser can read: no NaN, no infinity."""
    return json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)


def write_record(path: Path, content: dict[str, Any]) -> None:
    """Write the JSON; the file appears whole or not at all."""
    with new_file(path) as made:
        made.write_text(record_text(content) + "\n", encoding="utf-8", errors="backslashreplace")


def _set(measured: Measured) -> dict[str, Any]:
    scored = measured.scored
    (diagram,) = measured.diagram.curves
    return {
        "name": scored.name,
        "digest": scored.digest,
        "n": scored.n_rows,
        "classes": scored.classes,
        **({} if measured.event is None else {"event": scored.classes[measured.event]}),
        "findings": measured.findings,
        "notes": measured.notes,
        "estimates": [_estimate(one) for one in measured.estimates],
        "by_predicted_class": [
            {"class": name, **_bins(curve)[0]}
            for name, curve in zip(scored.classes, measured.by_class.curves, strict=True)
        ],
        "reliability": _bins(diagram),
        "confusion": measured.confusion.joint,
        **(
            {}
            if measured.groups is None
            else {"groups": [_group(one) for one in measured.groups.groups]}
        ),
    }


def _regression_set(measured: MeasuredRegression) -> dict[str, Any]:
    scored = measured.scored
    return {
        "name": scored.name,
        "digest": scored.digest,
        "n": scored.n_rows,
        "distribution": measured.family,
        "findings": measured.findings,
        "notes": measured.notes,
        "fault": dataclasses.asdict(measured.fault),
        "tests": [dataclasses.asdict(one) for one in measured.tests],
        "estimates": [{"key": key, **_estimate(one)} for key, one in measured.scores.rows.items()],
        "coverage": [dataclasses.asdict(row) for row in measured.coverage.rows],
        "scale": measured.coverage.scale,
        "pit_histogram": measured.histogram.table().to_dict("records"),
        "by_column": [
            {"column": name, "regions": [_region(one) for one in regions]}
            for name, regions in measured.by_column.items()
        ],
        **(
            {}
            if measured.groups is None
            else {"groups": [_judged(one) for one in measured.groups.regions]}
        ),
    }


def _judged(region: Region) -> dict[str, Any]:
    """A declared group, judged for all groups together."""
    estimates = {"stated": region.stated, "observed": region.observed, "gap": region.gap}
    if region.spread is not None:
        estimates["spread"] = region.spread
    return {
        "name": region.words,
        "n": region.n,
        "share": region.share,
        "p_value": region.p_value,
        "adjusted_p": region.adjusted_p,
        "minimum_detectable": region.minimum_detectable,
        "fault": region.fault,
        **{
            key: dataclasses.asdict(one) if isinstance(one, Estimate) else one
            for key, one in estimates.items()
        },
    }


def _group(one: GroupMeasures) -> dict[str, Any]:
    wide = {"observed": one.rate, "gap": one.gap, "error": one.error, "auroc": one.area}
    return {
        **_judged(one.region),
        **{key: dataclasses.asdict(estimate) for key, estimate in wide.items()},
    }


def _region(region: RegionPit) -> dict[str, Any]:
    return {
        "name": region.name,
        "n": region.n,
        "share": region.share,
        "p_value": region.p_value,
        "adjusted_p": region.adjusted_p,
        "fault": dataclasses.asdict(region.fault),
        "coverage": dataclasses.asdict(region.coverage) if region.coverage else None,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {**dataclasses.asdict(estimate), "meaning": meaning_of(estimate)}


def _bins(curve: ReliabilityCurve) -> list[dict[str, Any]]:
    return [
        {
            "bin_low": curve.edges[j],
            "bin_high": curve.edges[j + 1],
            "n": curve.count[j],
            "weight": curve.weight[j],
            "confidence": curve.confidence[j],
            "frequency": curve.accuracy[j],
            "low": curve.low[j],
            "high": curve.high[j],
            "band_low": curve.band_low[j],
            "band_high": curve.band_high[j],
        }
        for j in range(len(curve.count))
    ]


def report(measured: Measured, source: str, share: float) -> str:
    """One set's results, ready to print.

    Parameters
    ----------
    measured : Measured
    source : str
        Name of the table. Untrusted text.
    share : float
        Level of the intervals.
    """
    scored, interval = measured.scored, f"{100 * share:g}% interval"
    parts = [
        _head(measured, source, f"{len(scored.classes)} classes"),
        estimates_table(measured.estimates, interval),
        _by_class(measured.by_class, scored.classes, interval),
        _diagram(measured.diagram, interval, _asked(measured)),
    ]
    if (found := measured.groups) is not None:
        parts.append(_groups(found))
    return "\n\n".join(parts)


def _groups(found: GroupTable) -> str:
    rows = [
        (
            printable(one.name, 40),
            value_text(one.rate, one.region.stated),
            value_text(one.rate),
            interval_text(one.gap),
            p_text(one.region.adjusted_p),
            one.region.fault,
            f"{one.region.n:,}",
        )
        for one in found.groups
    ]
    header = ("Group", "Says", "Sees", "Sees minus says", "p, Holm", "Fault", "Rows")
    return f"{table(header, rows)}\nIntervals hold for all groups together."


def _pit_groups(found: RegionSearch, interval: str) -> str:
    rows = [
        (
            printable(one.words, 40),
            one.fault,
            value_text(one.gap),
            interval_text(one.gap),
            value_text(one.spread) if one.spread else "",
            interval_text(one.spread) if one.spread else "",
            p_text(one.adjusted_p),
            f"{one.n:,}",
        )
        for one in found.regions
    ]
    header = ("Group", "Predictions", "Location", interval, "Spread", interval, "p, Holm", "Rows")
    return table(header, rows, left=(0, 1))


def _head(measured: Measured | MeasuredRegression, source: str, kind: str) -> str:
    """What was measured on which rows, the findings and the notes."""
    scored = measured.scored
    table = f"{scored.name.capitalize()} set: {printable(source, 80)}"
    first = f"{table}, {counted(scored.n_rows, 'row')}, {kind}"
    return "\n".join([first, *map(printable, (*measured.findings, *measured.notes))])


def estimates_table(estimates: tuple[Estimate, ...], interval: str) -> str:
    """Each estimate with its interval and the expected value, and its full name below."""
    rows = []
    for one in estimates:
        expected = "" if one.expected is None else value_text(one, one.expected)
        bounds = interval_text(one) if math.isfinite(one.value) else ""
        bounds = "none" if bounds and math.isnan(one.low) else bounds
        rows.append((one.label, value_text(one), bounds, expected, f"{one.n:,}"))
    header = ("Estimate", "Value", interval, "Expected", "Rows")
    why = [
        fill(f"{one.label} has no interval{_reason(one.interval)}.", 80)
        for one in estimates
        if math.isfinite(one.value) and math.isnan(one.low)
    ]
    return "\n".join([table(header, rows, below=[one.name for one in estimates]), *why])


def _reason(interval: str) -> str:
    """The words after "has no interval"."""
    said = interval.removeprefix("none")
    return said if said != interval else f": {interval}"


def _by_class(result: Reliability, classes: tuple[str, ...], interval: str) -> str:
    rows = [
        (printable(name, 40), *_said_and_seen(curve, 0))
        for name, curve in zip(classes, result.curves, strict=True)
        if curve.n
    ]
    shown = table(("Predicted class", "Says", "Sees", interval, "Rows"), rows)
    never = len(classes) - len(rows)
    if not never:
        return shown
    return f"{shown}\n{'1 class is' if never == 1 else f'{never:,} classes are'} never predicted."


def _asked(measured: Measured) -> str:
    """What the diagram is about."""
    if measured.event is None:
        return "Confidence"
    return f"Probability of {printable(measured.scored.classes[measured.event], 40)}"


def _diagram(result: Reliability, interval: str, asked: str) -> str:
    (curve,) = result.curves
    rows = [
        (f"{curve.edges[j]:.3g} to {curve.edges[j + 1]:.3g}", *_said_and_seen(curve, j))
        for j in range(len(curve.count))
        if curve.count[j]
    ]
    return table((asked, "Says", "Sees", interval, "Rows"), rows)


def _said_and_seen(curve: ReliabilityCurve, j: int) -> tuple[str, str, str, str]:
    """Mean confidence, share right with its interval, and number of rows of a non-empty bin."""
    low, high = float(curve.low[j]), float(curve.high[j])
    said, seen = (
        number_text(float(value), high - low) for value in (curve.confidence[j], curve.accuracy[j])
    )
    return said, seen, range_text(low, high), f"{int(curve.count[j]):,}"


def regression_report(measured: MeasuredRegression, source: str, share: float) -> str:
    """One set's results, ready to print; arguments as for :func:`report`."""
    interval = f"{100 * share:g}% interval"
    parts = [
        _head(measured, source, f"regression ({measured.family})"),
        estimates_table(tuple(measured.scores.rows.values()), interval),
        _coverage(measured.coverage, interval),
        _tests(measured.tests),
        *(_regions(name, regions, interval) for name, regions in measured.by_column.items()),
        *([] if measured.groups is None else [_pit_groups(measured.groups, interval)]),
        _histogram(measured.histogram),
    ]
    return "\n\n".join(parts)


def _coverage(result: Coverage, interval: str) -> str:
    rows = [
        (
            f"{100 * row.level:g}%",
            value_text(row.coverage),
            interval_text(row.coverage),
            value_text(row.width),
            value_text(row.interval_score),
            value_text(row.smis) if row.smis else "",
        )
        for row in result.rows
    ]
    header = ("Stated", "Holds", interval, "Mean width", "Interval score", "sMIS")
    return table(header, rows)


def _tests(tests: tuple[UniformityTest, ...]) -> str:
    rows = [
        (one.title, formatted(one.statistic, ".4g"), p_text(one.p_value), one.note) for one in tests
    ]
    return table(("Are PIT values uniform?", "Statistic", "p value", "Note"), rows, left=(0, 3))


def _regions(name: str, regions: tuple[RegionPit, ...], interval: str) -> str:
    rows = [
        (
            printable(one.name, 40),
            one.fault.kind,
            value_text(one.coverage.coverage) if one.coverage else "",
            interval_text(one.coverage.coverage) if one.coverage else "",
            p_text(one.adjusted_p),
            f"{one.n:,}",
        )
        for one in regions
    ]
    levels = [one.coverage.level for one in regions if one.coverage]
    holds = f"{100 * levels[0]:g}% holds" if levels else "95% holds"
    header = (printable(f"By {name}", 40), "Predictions", holds, interval, "p, Holm", "Rows")
    return table(header, rows, left=(0, 1))


def _histogram(result: PitHistogram) -> str:
    rows = [
        (
            f"{result.edges[j]:.3g} to {result.edges[j + 1]:.3g}",
            f"{result.counts[j]:,.0f}",
            f"{result.low[j]:,.0f} to {result.high[j]:,.0f}",
        )
        for j in range(len(result.counts))
    ]
    return table(("PIT", "Rows", "If calibrated"), rows)
