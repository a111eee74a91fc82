"""Decision curves and expected cost by threshold, with the words beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure
from kdcal_core.charts.confusion import confusion_chart
from kdcal_core.charts.marks import hovered, mark, ribbon
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import (
    Band,
    BestThreshold,
    Costs,
    DecisionCounts,
    best_threshold,
    cost_at,
    decision_confusion,
    decision_rates,
    decision_table,
    estimate_text,
    expected_cost,
    flagging_at,
    net_benefit,
    net_benefit_of_all,
    rates_table,
    useful_thresholds,
)
from kdcal_core.text import counted, escape_html, in_sentence, listed, number_text, range_text

NET_BENEFIT = """
**Horizontal axis**: the threshold. A row is flagged if its stated probability is at least that
large. The threshold says how many false alarms you accept for one true positive: four at 20%.

**Vertical axis**: net benefit per row, true positives minus weighted false positives (Vickers and
Elkin 2006): true positives / n - false positives / n x threshold / (1 - threshold).

**Lines**: the model, flagging every row, and flagging none. A model is worth using at the
thresholds where its line lies above both others. Consider only thresholds that you would use. The
band is the 95% interval at each threshold by itself.
"""
COST = """
**Horizontal axis**: the threshold. **Vertical axis**: the mean cost per row, with the 95% interval
at each threshold by itself.

**Shaded**: thresholds whose cost is not clearly larger than the least, by paired differences over
the same rows. **Dashed**: the optimal threshold for these costs if the probabilities are
calibrated, (false alarm - rest) / (false alarm - rest + missed - found) (Elkan 2001). If it lies
outside the shaded thresholds, the probabilities are off: calibrate them first.
"""
DECISIONS = """
**Rows** are true classes, **columns** what the threshold says: a row is flagged, as if it were of
the class to be found, where its stated probability is at least the threshold. Cells count rows, or
add up their weights. The shares in the sentence have exact (Clopper-Pearson) 95% intervals.
"""
RATES = """
**Horizontal axis**: the threshold. **Lines**: sensitivity, the share of events that are flagged;
specificity, the share of other rows that are not; and positive predictive value, the share of
flagged rows with the event. Bands are their exact (Clopper-Pearson) 95% intervals, at each
threshold by itself. Sensitivity falls as the threshold rises, and specificity rises.
"""
_POINTS = 240
_RATE_POINTS = 60
_SHOWN = 0.01  # share of rows still flagged at the right end of the axis
_HARDLY = 0.01  # share of rows whose flags make a decision that is hardly one


def net_benefit_chart(
    counts: DecisionCounts,
    threshold: float,
    *,
    dark: bool = False,
    repaired: DecisionCounts | None = None,
    gained: Band | None = None,
    repaired_name: str = "Calibrated",
    repaired_by: str = "calibrated",
) -> Chart:
    """The decision curve of a model, and of its calibrated version where it is given.

    ``repaired_by`` is the calibrator's key, which sets its colour; ``gained`` is
    the calibrated version's net benefit less the model's. Its name is untrusted text.
    """
    colours = palette(dark)
    at = _drawn(counts, threshold)
    band = net_benefit(counts)
    figure = new_figure(dark, height=330)
    _line(figure, counts, band, at, "Model as it is", colours.model, "solid")
    top = float(np.nanmax(band.value[at]))
    if repaired is not None:
        second = net_benefit(repaired)
        name = escape_html(repaired_name, limit=40)
        colour, _, _ = method_style(repaired_by, colours)
        _line(figure, counts, second, at, name, colour, "6px,2px")
        top = max(top, float(second.value[at].max()))
    for values, name, dash in (
        (net_benefit_of_all(counts), "Flag every row", "2px,3px"),
        (np.zeros_like(band.value), "Flag none", "8px,4px"),
    ):
        figure.add_trace(_plain(counts, values, at, name, colours, dash))
    _upright(figure, counts, at, threshold, colours)
    figure.update_layout(
        yaxis={"title_text": "Net benefit per row", "range": [-0.25 * top, 1.12 * top]}
    )
    words = _useful_words(counts, repaired, repaired_name)
    if gained is not None:
        words = f"{words} {_gained_words(counts, gained, threshold, repaired_name)}"
    return Chart(
        figure,
        finding=words,
        alt=f"Net benefit by threshold: the model, flagging every row, flagging none. {words}",
        how_to_read=NET_BENEFIT,
        table=lambda: decision_table(counts),
        name="net benefit",
    )


def decision_words(counts: DecisionCounts, threshold: float, name: str) -> str:
    """How many rows are flagged at a threshold, and how many of them rightly. Untrusted text.

    Parameters
    ----------
    counts : DecisionCounts
    threshold : float
    name : str
        Of the class whose rows are to be found.

    Examples
    --------
    >>> from kdcal_core.diagnostics import decision_counts
    >>> counts = decision_counts([0.2, 0.8] * 50, [0, 1] * 50)
    >>> decision_words(counts, 0.5, "sick")
    ... # doctest: +NORMALIZE_WHITESPACE
    'Flags 50% (40% to 60%) of the rows and finds 100% (93% to 100%) of the sick rows; of the
     flagged rows, 100% (93% to 100%) are sick.'
    >>> decision_words(counts, 0.9, "1")
    'Flags none of the rows, so all rows of class 1 are missed.'
    """
    found, _, right, _, flagged = decision_rates(counts, threshold)
    rows = f"rows of class {name}" if name.isdecimal() else f"{name} rows"
    if flagged.value == 0.0:
        return f"Flags none of the rows, so all {rows} are missed."
    return (
        f"Flags {estimate_text(flagged)} of the rows and finds {estimate_text(found)} of the "
        f"{rows}; of the flagged rows, {estimate_text(right)} are {name}."
    )


def decisions_chart(
    counts: DecisionCounts, threshold: float, names: tuple[str, str], *, dark: bool = False
) -> Chart:
    """The rows by truth and by what follows at a threshold.

    ``names`` are those of all other rows and of the rows to be found.
    """
    chart = confusion_chart(decision_confusion(counts, threshold), "joint", names, dark=dark)
    chart.figure.update_xaxes(title_text="What the threshold says")
    words = f"At a threshold of {_percent(threshold)}: "
    words += in_sentence(decision_words(counts, threshold, names[1]))
    alt = f"Rows by true class and by what the threshold says. {words}"
    return replace(chart, finding=words, alt=alt, how_to_read=DECISIONS, name="decisions")


def rates_chart(
    counts: DecisionCounts,
    threshold: float,
    *,
    dark: bool = False,
    by: str = "model",
) -> Chart:
    """Sensitivity, specificity and positive predictive value by threshold.

    Parameters
    ----------
    counts : DecisionCounts
    threshold : float
        The chosen one.
    by : str
        "model" or the key of the calibrator whose probabilities decide.
    """
    colours = palette(dark)
    at = _drawn(counts, threshold)
    at = at[np.unique(np.linspace(0, len(at) - 1, _RATE_POINTS).astype(np.int64))]
    table = rates_table(counts, at)
    figure, colour = new_figure(dark, height=360), method_style(by, colours)[0]
    dashes = "solid", "6px,2px", "2px,2px"
    for (label, rates), dash in zip(table.groupby("measure", sort=False), dashes, strict=True):
        x, *ends = rates[["threshold", "share", "share_low", "share_high"]].dropna().to_numpy().T
        _curve(figure, x, Band(*ends), str(label), colour, dash, "{:.1%}")
    _upright(figure, counts, at, threshold, colours)
    figure.update_layout(yaxis={"title_text": "Share", "tickformat": ".0%", "range": [-0.02, 1.02]})
    here = [one for one in decision_rates(counts, threshold)[:3] if np.isfinite(one.value)]
    said = listed([f"{in_sentence(one.label)} {estimate_text(one)}" for one in here])
    words = f"At a threshold of {_percent(threshold)}: {said}."
    return Chart(
        figure,
        finding=words,
        alt=f"Sensitivity, specificity and positive predictive value by threshold. {words}",
        how_to_read=RATES,
        table=lambda: table,
        name="rates by threshold",
    )


def cost_chart(
    counts: DecisionCounts,
    costs: Costs,
    threshold: float,
    *,
    dark: bool = False,
    by: str = "model",
    given: bool = True,
) -> Chart:
    """Mean cost of a row by threshold, with the best thresholds.

    ``by`` is "model" or the key of the calibrator whose probabilities decide.
    """
    colours = palette(dark)
    band, best = expected_cost(counts, costs), best_threshold(counts, costs)
    at = _drawn(counts, max(threshold, best.high, costs.threshold))
    figure = new_figure(dark, height=360)
    figure.add_vrect(
        x0=best.low, x1=best.high, line_width=0, layer="below", fillcolor=faded(colours.right, 0.14)
    )
    _line(figure, counts, band, at, "Mean cost", method_style(by, colours)[0], "solid")
    _upright(figure, counts, at, threshold, colours)
    mark(figure, costs.threshold, colours.truth, {"xaxis": "x", "yaxis": "y"})
    figure.update_layout(yaxis={"title_text": "Mean cost per row", "rangemode": "tozero"})
    words = cost_words(counts, costs, best, threshold, given=given)
    return Chart(
        figure,
        finding=words,
        alt=f"Mean cost of a row by threshold. {words}",
        how_to_read=COST,
        table=lambda: decision_table(counts).assign(
            cost=lambda table: band.value[[counts.at(t) for t in table["threshold"]]]
        ),
        name="expected cost",
    )


def cost_words(
    counts: DecisionCounts,
    costs: Costs,
    best: BestThreshold,
    threshold: float,
    *,
    given: bool = True,
) -> str:
    """Where the cost is least, and what the present threshold costs.

    Without ``given`` nobody has written the costs, and the sentence says that they are assumed.

    Examples
    --------
    >>> from kdcal_core.diagnostics import decision_counts
    >>> counts = decision_counts([0.2, 0.8] * 50, [0, 1] * 50)
    >>> cost_words(counts, Costs(), best_threshold(counts, Costs()), 0.5)
    ... # doctest: +NORMALIZE_WHITESPACE
    'A threshold of 50% costs least: 0.000 (0.000 to 0.046) per row. Thresholds from 20% to 80% do
     not cost clearly more, and 50%, the best one for calibrated probabilities, is among them.'
    """
    if not given:
        words = cost_words(counts, costs, best, threshold)
        return f"With costs assumed equal until they are given, {in_sentence(words)}"
    present = ""
    if not best.low <= threshold <= best.high:
        here = estimate_text(cost_at(counts, costs, threshold))
        present = f" The present threshold of {_percent(threshold)} costs {here}."
    if trivial := _trivial(flagging_at(counts, costs, best.threshold).share):
        return (
            f"{trivial} costs least: {estimate_text(best.cost)} per row. With these "
            f"costs the model does not pay.{present}"
        )
    ends = f"{_percent(best.low)} to {_percent(best.high)}"
    ideal = _percent(costs.threshold)
    if best.low <= costs.threshold <= best.high:
        other = f"and {ideal}, the best one for calibrated probabilities, is among them."
    else:
        other = f"but {ideal}, the best one for calibrated probabilities, does."
    return (
        f"A threshold of {_percent(best.threshold)} costs least: {estimate_text(best.cost)} per "
        f"row.{_hardly_words(counts, costs, best.threshold)} Thresholds from {ends} do not cost "
        f"clearly more, {other}{present}"
    )


def _trivial(share: float) -> str:
    """What it means to flag this share of the rows, where that needs no model."""
    if share < 1e-9:
        return "Flagging none"
    return "Flagging every row" if share > 1.0 - 1e-9 else ""


def _hardly_words(counts: DecisionCounts, costs: Costs, threshold: float) -> str:
    """Whether the cheapest threshold does little else than flagging every row or none."""
    found = flagging_at(counts, costs, threshold)
    rows = f"{found.share:.2%} of the rows"
    if found.n is not None:
        rows = f"{found.n:,} of {counted(counts.n, 'row')}"
    for share, pays, trivial in (
        (found.share, found.pays_over_none, "flagging none"),
        (1.0 - found.share, found.pays_over_all, "flagging every row"),
    ):
        if share <= _HARDLY and pays:
            return f" It flags {rows}."
        if share <= _HARDLY:
            return (
                f" It flags {rows}, nearly the same as {trivial}: with these costs the model does "
                "not pay."
            )
        if not pays:
            return f" It flags {rows}, which is not clearly cheaper than {trivial}."
    return ""


def _percent(share: float) -> str:
    digits = 0 if 0.01 <= share <= 0.99 else 2
    return f"{share:.{digits}%}"


def _useful_words(counts: DecisionCounts, repaired: DecisionCounts | None, name: str) -> str:
    """From where to where the model is worth using, and its calibrated version."""
    model = _stretch(counts)
    if model is None:
        words = "At no threshold is the model clearly better than flagging every row or none."
    else:
        words = f"At {model} the model is better than flagging every row or none."
    if repaired is None:
        return words
    also = _stretch(repaired)
    if also is None:
        return f"{words} With {name} it is at no threshold."
    return f"{words} With {name} it is at {also}."


def _stretch(counts: DecisionCounts) -> str | None:
    found = useful_thresholds(counts)
    if found is None:
        return None
    first, last = map(_percent, found)
    return f"thresholds near {first}" if first == last else f"thresholds from {first} to {last}"


def _gained_words(counts: DecisionCounts, gained: Band, threshold: float, name: str) -> str:
    at = counts.at(threshold)
    value, low, high = (float(one[at]) for one in (gained.value, gained.low, gained.high))
    said = f"{number_text(value, high - low)} ({range_text(low, high)})"
    if low <= 0.0 <= high:
        return f"At {_percent(threshold)} {name} changes it by {said}, within chance."
    return f"At {_percent(threshold)} {name} {'adds' if value > 0 else 'loses'} {said} a row."


def _drawn(counts: DecisionCounts, threshold: float) -> IntArray:
    """Places of the thresholds that are drawn: up to where hardly a row is flagged."""
    share = counts.mass[:2].sum(axis=0) / counts.mass[:, 0].sum()
    last = int(np.flatnonzero(share >= _SHOWN)[-1]) if (share >= _SHOWN).any() else 0
    last = max(last, counts.at(min(1.2 * threshold, 0.999)), counts.at(min(3 * counts.rate, 0.999)))
    return np.unique(np.linspace(0, min(last, len(share) - 1), _POINTS).astype(np.int64))


def _line(
    figure: go.Figure,
    counts: DecisionCounts,
    band: Band,
    at: IntArray,
    name: str,
    colour: str,
    dash: str,
) -> None:
    drawn = Band(band.value[at], band.low[at], band.high[at])
    _curve(figure, counts.thresholds[at], drawn, name, colour, dash, "{:z.4f}")


def _curve(
    figure: go.Figure, x: FloatArray, band: Band, name: str, colour: str, dash: str, form: str
) -> None:
    """A line with its band; ``form`` is that of its numbers under the pointer."""
    figure.add_trace(ribbon(x, band.low, band.high, faded(colour, 0.16), showlegend=False))
    figure.add_trace(
        go.Scatter(
            x=x,
            y=band.value,
            mode="lines",
            line={"color": colour, "width": 2.4, "dash": dash},
            name=name,
            **hovered(
                f"at {{:.1%}}: {form} ({form} to {form})",
                *(x, band.value, band.low, band.high),
                name=name,
            ),
        )
    )


def _plain(
    counts: DecisionCounts,
    values: FloatArray,
    at: IntArray,
    name: str,
    colours: Palette,
    dash: str,
) -> go.Scatter:
    return go.Scatter(
        x=counts.thresholds[at],
        y=values[at],
        mode="lines",
        line={"color": colours.muted, "width": 1.4, "dash": dash},
        name=name,
        **hovered("at {:.1%}: {:z.4f}", counts.thresholds[at], values[at], name=name),
    )


def _upright(
    figure: go.Figure, counts: DecisionCounts, at: IntArray, threshold: float, colours: Palette
) -> None:
    """The axis of thresholds, and the chosen one."""
    figure.add_vline(x=threshold, line={"color": colours.text, "width": 1.4})
    figure.update_layout(
        xaxis={
            "title_text": "Threshold",
            "tickformat": ".0%" if counts.thresholds[at[-1]] > 0.05 else ".2%",
            "range": [0.0, float(counts.thresholds[at[-1]])],
        }
    )
