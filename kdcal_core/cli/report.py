"""The results as text for a terminal."""

from __future__ import annotations

import math
from textwrap import fill

from kdcal_core.cli.measured import Measured
from kdcal_core.cli.terminal import table
from kdcal_core.diagnostics import Estimate, Reliability, ReliabilityCurve
from kdcal_core.text import counted, number_text, printable, range_text


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
    scored = measured.scored
    interval = f"{100 * share:g}% interval"
    head = (
        f"{scored.name.capitalize()} set: {printable(source, 80)}, "
        f"{counted(scored.n_rows, 'row')}, {len(scored.classes)} classes"
    )
    parts = [
        "\n".join([head, *map(printable, (*measured.findings, *measured.notes))]),
        estimates_table(measured.estimates, interval),
        _by_class(measured.by_class, scored.classes, interval),
        _diagram(measured.diagram, interval),
    ]
    return "\n\n".join(parts)


def estimates_table(estimates: tuple[Estimate, ...], interval: str) -> str:
    """Each estimate with its interval and what chance alone would give, its estimator below."""
    rows = []
    for one in estimates:
        width = one.high - one.low
        value, expected = one.value, one.expected
        shown = number_text(value, width, one.percent, one.largest)
        chance = "" if expected is None else number_text(expected, width, one.percent, one.largest)
        bounds = range_text(one.low, one.high, one.percent) if math.isfinite(value) else ""
        bounds = "none" if bounds and math.isnan(width) else bounds
        rows.append((one.label, shown, bounds, chance, f"{one.n:,}"))
    header = ("Estimate", "Value", interval, "By chance", "Rows")
    why = [
        fill(f"{one.label} has no interval: {one.interval.removeprefix('none').lstrip(': ')}.", 80)
        for one in estimates
        if math.isfinite(one.value) and math.isnan(one.low)
    ]
    return "\n".join([table(header, rows, below=[one.name for one in estimates]), *why])


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


def _diagram(result: Reliability, interval: str) -> str:
    (curve,) = result.curves
    rows = [
        (f"{curve.edges[j]:.3g} to {curve.edges[j + 1]:.3g}", *_said_and_seen(curve, j))
        for j in range(len(curve.count))
        if curve.count[j]
    ]
    return table(("Confidence", "Says", "Sees", interval, "Rows"), rows)


def _said_and_seen(curve: ReliabilityCurve, j: int) -> tuple[str, str, str, str]:
    """Mean confidence, share right with its interval, and rows of one bin that holds rows."""
    low, high = float(curve.low[j]), float(curve.high[j])
    said, seen = (
        number_text(float(value), high - low) for value in (curve.confidence[j], curve.accuracy[j])
    )
    return said, seen, range_text(low, high), f"{int(curve.count[j]):,}"
