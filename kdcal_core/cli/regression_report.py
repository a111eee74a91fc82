"""A regression's results as text for a terminal."""

from __future__ import annotations

from kdcal_core.cli.measured_regression import MeasuredRegression
from kdcal_core.cli.report import estimates_table
from kdcal_core.cli.terminal import table
from kdcal_core.diagnostics import (
    Coverage,
    Estimate,
    PitHistogram,
    RegionPit,
    UniformityTest,
)
from kdcal_core.text import counted, number_text, p_text, printable, range_text


def regression_report(measured: MeasuredRegression, source: str, share: float) -> str:
    """One set's results, ready to print.

    Parameters
    ----------
    measured : MeasuredRegression
    source : str
        Name of the table. Untrusted text.
    share : float
        Level of the intervals.
    """
    scored = measured.scored
    interval = f"{100 * share:g}% interval"
    head = (
        f"{scored.name.capitalize()} set: {printable(source, 80)}, "
        f"{counted(scored.n_rows, 'row')}, regression ({scored.distribution.family})"
    )
    parts = [
        "\n".join([head, *map(printable, (*measured.findings, *measured.notes))]),
        estimates_table(tuple(measured.scores.rows.values()), interval),
        _coverage(measured.coverage, interval),
        _tests(measured.tests),
        *(_regions(name, regions, interval) for name, regions in measured.by_column.items()),
        _histogram(measured.histogram),
    ]
    return "\n\n".join(parts)


def _coverage(result: Coverage, interval: str) -> str:
    rows = [
        (
            f"{100 * row.level:g}%",
            *_with_interval(row.coverage),
            _value(row.width),
            _value(row.interval_score),
            _value(row.smis) if row.smis else "",
        )
        for row in result.rows
    ]
    header = ("Stated", "Holds", interval, "Mean width", "Interval score", "sMIS")
    return table(header, rows)


def _tests(tests: tuple[UniformityTest, ...]) -> str:
    rows = [(one.title, f"{one.statistic:.4g}", p_text(one.p_value), one.note) for one in tests]
    return table(("Are PIT values uniform?", "Statistic", "p value", "Note"), rows, left=(0, 3))


def _regions(name: str, regions: tuple[RegionPit, ...], interval: str) -> str:
    rows = [
        (
            printable(one.name, 40),
            one.fault.kind,
            *(_with_interval(one.coverage.coverage) if one.coverage else ("", "")),
            p_text(one.adjusted_p),
            f"{one.n:,}",
        )
        for one in regions
    ]
    header = (printable(f"By {name}", 40), "Predictions", "95% holds", interval, "p, Holm", "Rows")
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


def _with_interval(estimate: Estimate) -> tuple[str, str]:
    return _value(estimate), range_text(estimate.low, estimate.high, estimate.percent)


def _value(estimate: Estimate) -> str:
    return number_text(estimate.value, estimate.high - estimate.low, estimate.percent)
