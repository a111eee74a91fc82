"""A comparison of calibrators: dots with intervals, paired differences, and findings.

Also the reliability diagrams of all calibrators, side by side on one scale. Names of a user's own
calibrators are not escaped in sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import ACROSS, UP, Chart, cut, edge_title, panel, template
from kdcal_core.charts.marks import band, boxes, dot_panels, identity, mark, strokes
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.charts.reliability import bin_points, reliability_titles
from kdcal_core.diagnostics import (
    Estimate,
    ReliabilityCurve,
    estimate_text,
    interval_text,
    value_text,
)
from kdcal_core.evaluation import (
    Against,
    Comparison,
    Group,
    MethodScores,
    PairedDifference,
    meanings,
)
from kdcal_core.text import bytes_text, escape_html, in_sentence, listed, seconds_text

MODEL_NAME = "The model as it is"

DOTS = """
Each line is a method, each panel a measure. The bar is the 95% interval of the method alone; the
grey line and band are the model as it is. **Full marks** are the best of the measure and all that
cannot be told apart from it: the truly best one is among them with 95% probability. Hollow marks
are worse than the best beyond chance.

Methods with overlapping intervals can still differ beyond chance, because both were judged on the
same rows: look at the paired differences below. Log loss and Brier score need no bins, so no choice
of bins can favour a method.
"""
SPEED = """
Seconds to fit are for the fit on all calibration rows, with the range of all fits if there were
several. Seconds for a million rows are timed on 10,000 rows. Both depend on the machine and on its
other work.
"""
PAIRED = """
Each method minus the one it is compared with, on the same rows, so rows that are hard for both
cancel out. Means of row losses are compared by a paired t test, AUROC by DeLong's covariances, and
calibration errors by resampling rows for both together, at the least favourable true errors that
the rows allow. **Full marks** differ beyond chance after correction for all methods.

Against the best, the p value comes from a joint test over all methods (Hansen 2005), which allows
for the fact that the same rows also chose the best.
"""


_GROUP_WORDS: dict[Group | None, str] = {
    None: "of no group",
    "inside": "inside the data",
    "outside": "far outside",
    "ranking": "of ranking",
    "speed": "of speed",
}


def method_name(found: Comparison, key: str) -> str:
    """The name of a method on charts. A user's own name is untrusted text."""
    return MODEL_NAME if key == found.reference else found.method(key).name


def ranked(found: Comparison, measure: str) -> tuple[str, ...]:
    """Keys of all methods, the best by this measure first; ties keep the order of the list.

    For measures of speed the model comes last, because it has nothing to fit.
    """
    chosen = found.measure(measure)
    sign = 1.0 if chosen.lower_is_better else -1.0

    def place(one: MethodScores) -> tuple[bool, float]:
        idle = chosen.group == "speed" and one.key == found.reference
        # methods with the same map differ only by rounding
        return idle, sign * float(f"{one.scores[measure].value:.12g}")

    return tuple(one.key for one in sorted(found.methods, key=place))


def comparison_chart(
    found: Comparison,
    measures: Sequence[str],
    order: Sequence[str],
    *,
    dark: bool = False,
    narrow: bool = False,
) -> Chart:
    """Every method by each of these measures, which belong to one group.

    On a ``narrow`` page, a phone's, the measures stand one below the other.
    """
    group = found.measure(measures[0]).group
    return Chart(
        comparison_figure(found, measures, order, dark=dark, narrow=narrow),
        finding=_marks_words(group),
        alt=comparison_alt(found, measures, order),
        how_to_read=f"{SPEED if group == 'speed' else DOTS}\n{meanings(measures)}\n",
        table=lambda: comparison_table(found, measures),
        name=in_sentence(found.measure(measures[0]).title)
        if len(measures) == 1
        else f"measures {_GROUP_WORDS[group]}",
    )


def paired_chart(
    found: Comparison,
    measures: Sequence[str],
    order: Sequence[str],
    against: Against,
    *,
    dark: bool = False,
    narrow: bool = False,
) -> Chart:
    """Differences on the same rows; the sentences are about the first measure.

    ``narrow`` is as of :func:`comparison_chart`.
    """
    return Chart(
        paired_figure(found, measures, order, against, dark=dark, narrow=narrow),
        finding=paired_words(found, measures[0], against),
        alt=paired_alt(found, measures[0], against),
        how_to_read=PAIRED,
        table=lambda: comparison_table(found, measures),
        name=f"paired differences {_GROUP_WORDS[found.measure(measures[0]).group]}",
    )


def comparison_figure(
    found: Comparison,
    measures: Sequence[str],
    order: Sequence[str],
    *,
    dark: bool,
    narrow: bool = False,
) -> go.Figure:
    """One panel per measure, one line per method, in the given order.

    The model is a grey circle, and its interval a pale band through all lines. Calibrators have
    their own colours and marks, full if they are the best of the measure or cannot be told apart
    from it. Measures of speed have logarithmic axes, without a dot for 0, and all their marks are
    full.
    """
    colours = palette(dark)
    titles = [found.measure(key).title for key in measures]
    figure = dot_panels([method_name(found, key) for key in order], titles, dark, narrow=narrow)
    reference = found.method(found.reference)
    for at, key in enumerate(measures):
        speed = found.measure(key).group == "speed"
        full = order if speed else found.close_to_best(key)
        estimates = [found.method(one).scores[key] for one in order]
        figure.add_trace(_dots(found, order, estimates, full, colours, at, above_zero=speed))
        x_axis = panel(at)["xaxis"].replace("x", "xaxis")
        if speed:
            figure.update_layout({x_axis: {"type": "log", "dtick": 1}})
            continue
        one = reference.scores[key]
        band(figure, one, colours.model, panel(at))
        mark(figure, one.value, colours.model, panel(at), dash="solid")
        if one.percent:
            figure.update_layout({x_axis: {"tickformat": ".0%"}})
    return figure


def paired_figure(
    found: Comparison,
    measures: Sequence[str],
    order: Sequence[str],
    against: Against,
    *,
    dark: bool,
    narrow: bool = False,
) -> go.Figure:
    """Each method minus the model, or minus the best of the measure, on the same rows.

    Full marks differ from 0 after correction for all methods. The reference has no mark.
    """
    colours = palette(dark)
    shown = [key for key in order if against == "best" or key != found.reference]
    titles = [found.measure(key).title for key in measures]
    figure = dot_panels([method_name(found, key) for key in shown], titles, dark, narrow=narrow)
    for at, key in enumerate(measures):
        pairs = {pair.key: pair for pair in found.paired[key, against]}
        other = found.best[key] if against == "best" else found.reference
        distinct = [one for one in shown if pairs[one].verdict != "cannot be told apart"]
        lines = [None if one == other else pairs[one].difference for one in shown]
        figure.add_trace(_dots(found, shown, lines, distinct, colours, at))
        mark(figure, 0.0, colours.truth, panel(at))
    return figure


def comparison_table(found: Comparison, measures: Sequence[str]) -> pd.DataFrame:
    """Data of the dots and the paired differences: one row per method and measure."""
    table = found.table()
    named = table["method"].map(lambda key: method_name(found, key))
    return table.assign(name=named)[table["measure"].isin(list(measures))]


def _dots(
    found: Comparison,
    order: Sequence[str],
    estimates: Sequence[Estimate | None],
    full: Sequence[str],
    colours: Palette,
    at: int,
    *,
    above_zero: bool = False,
) -> go.Scatter:
    known = [
        (line, key, one)
        for line, (key, one) in enumerate(zip(order, estimates, strict=True))
        if one is not None and np.isfinite(one.value) and (one.value > 0 or not above_zero)
    ]
    styles = [method_style(key, colours) for _, key, _ in known]
    colour = [one for one, _, _ in styles]
    names = {key: method_name(found, key) for _, key, _ in known}
    return go.Scatter(
        x=[one.value for _, _, one in known],
        y=[line for line, _, _ in known],
        mode="markers",
        marker={
            "size": 10,
            "color": colour,
            "symbol": [
                symbol + ("" if key in full else "-open")
                for (_, _, symbol), (_, key, _) in zip(styles, known, strict=True)
            ],
            "line": {"width": 1.5, "color": colour},
        },
        error_x=strokes([one for _, _, one in known], colours),
        text=[
            f"{names[key]}<br>{estimate_text(one)}<br>{one.n:,} {'fits' if above_zero else 'rows'}"
            for _, key, one in known
        ],
        hovertemplate="%{text}<extra></extra>",
        **panel(at),
    )


def comparison_finding(found: Comparison, measure: str) -> str:
    """The best method by a measure, those that cannot be told apart from it, and any gain.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.data import ScoredSet
    >>> from kdcal_core.evaluation import compare
    >>> from kdcal_core.review import ReviewData
    >>> p = np.random.default_rng(0).uniform(0.05, 0.95, 400)
    >>> y = (np.random.default_rng(1).random(400) < p).astype(int)
    >>> rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    >>> found = compare(["sts"], ReviewData(rows, None, rows.classes, {}), n_boot=200)
    >>> comparison_finding(found, "ece")  # doctest: +ELLIPSIS
    'STS and the model as it is cannot be told apart in ECE, on these 400 rows...
    """
    chosen = found.measure(measure)
    if chosen.group == "speed":
        return _speed(found, measure)
    order = ranked(found, measure)
    close = [key for key in order if key in found.close_to_best(measure)]
    others = [key for key in close if key != found.reference]
    title, rows = in_sentence(chosen.title), _rows(found, measure)
    if not others:
        n = len(found.methods) - 1
        return (
            f"The model as it is has the best {title}, beyond chance, on {rows}: "
            f"{'the calibrator is' if n == 1 else f'all {n} calibrators are'} worse."
        )
    best = found.method(found.best[measure])
    if len(close) == 1:
        value = estimate_text(best.scores[measure])
        lead = f"{best.name} has the best {title}, beyond chance, on {rows}: {value}"
    else:
        lead = f"{_named(found, close)} cannot be told apart in {title}, on {rows}"
    pairs = {pair.key: pair for pair in found.paired[measure, "model"]}
    return f"{lead}; {_held(found, pairs, others)}.{_to_take(found, measure)}"


def against_model(found: Comparison, measure: str) -> str:
    """Methods better and worse than the model by a measure, beyond chance; "" if there are none."""
    if found.measure(measure).group == "speed":
        return ""
    verdicts: dict[str, list[str]] = {"better": [], "worse": [], "cannot be told apart": []}
    order = ranked(found, measure)
    pairs = {pair.key: pair for pair in found.paired[measure, "model"]}
    for key in order:
        if key != found.reference:
            verdicts[pairs[key].verdict].append(key)
    if not verdicts["better"] and not verdicts["worse"]:
        return ""
    parts = []
    for verdict, words in (
        ("better", "Better than the model as it is"),
        ("worse", "Worse than it"),
        ("cannot be told apart", "Cannot be told apart from it"),
    ):
        if verdicts[verdict]:
            parts.append(f"{words}: {_named(found, verdicts[verdict])}.")
    return " ".join(parts)


def judged_text(found: Comparison, n_fit: int) -> str:
    """The question, and the rows on which calibrators were fitted and judged."""
    what = "the confidence in the prediction"
    if found.event is not None:
        what = f"the probability of {found.event}"
    asked = f"Calibration errors and diagrams are of {what}."
    if found.folds:
        return (
            f"Cross-fitted in {found.folds} folds: each of {found.n:,} calibration rows is judged "
            f"with calibrators fitted on the other folds. {asked} Seed {found.seed}."
        )
    return (
        f"Fitted on {n_fit:,} calibration rows, judged on {found.n:,} rows of the evaluation "
        f"set. {asked} Seed {found.seed}."
    )


def comparison_alt(found: Comparison, measures: Sequence[str], order: Sequence[str]) -> str:
    """Alternative text of the dots: the first measure's values in order."""
    key = measures[0]
    values = ", ".join(
        f"{method_name(found, one)} {estimate_text(found.method(one).scores[key])}"
        for one in order[:8]
    )
    titles = ", ".join(found.measure(one).title for one in measures)
    return (
        f"{titles} of {len(order)} methods, with intervals. By {found.measure(key).title}: {values}"
    )


def paired_words(found: Comparison, measure: str, against: str) -> str:
    """A sentence on how many methods differ from the reference beyond chance."""
    title = in_sentence(found.measure(measure).title)
    if against == "model":
        pairs = [one for one in found.paired[measure, "model"] if one.key != found.reference]
        better = [one for one in pairs if one.verdict == "better"]
        worse = [one for one in pairs if one.verdict == "worse"]
        return (
            f"By {title}, {len(better)} of {len(pairs)} calibrators are better than the model as "
            f"it is and {len(worse)} worse, beyond chance and corrected for all of them."
        )
    best = found.best[measure]
    pairs = [one for one in found.paired[measure, "best"] if one.key != best]
    worse = [one for one in pairs if one.verdict == "worse"]
    name = method_name(found, best)
    return (
        f"By {title}, {name if best != found.reference else in_sentence(name)} leads on "
        f"these rows, and {len(worse)} of {len(pairs)} others are worse beyond chance."
    )


def paired_alt(found: Comparison, measure: str, against: str) -> str:
    """Alternative text of the paired differences."""
    pairs = ", ".join(
        f"{method_name(found, one.key)} {estimate_text(one.difference)} ({one.verdict})"
        for one in found.paired[measure, "best" if against == "best" else "model"][:8]
    )
    other = "the best" if against == "best" else "the model as it is"
    return f"Paired differences to {other} in {found.measure(measure).title}: {pairs}"


def _held(found: Comparison, pairs: dict[str, PairedDifference], keys: Sequence[str]) -> str:
    """Whether these methods are better than the model as it is, with the first one's difference."""
    better = [key for key in keys if pairs[key].verdict == "better"]
    if not better:
        if len(keys) == 1:
            return "it cannot be told apart from the model as it is"
        return "no calibrator is better than the model as it is beyond chance"
    first = better[0]
    change = pairs[first].difference
    if len(better) == len(keys):
        who = {1: "it is" if len(keys) == 1 else "", 2: "both are"}.get(len(keys), "all are")
    else:
        who = f"{_named(found, better)} {'is' if len(better) == 1 else 'are'}"
    of = "" if len(keys) == 1 else f" of {method_name(found, first)}"
    gain = f"{value_text(change)}, {interval_text(change)}"
    return f"{who} better than the model as it is (paired difference{of} {gain})"


def _to_take(found: Comparison, measure: str) -> str:
    """Which of several equally good methods is the simplest to use; "" if one is the best."""
    if len(found.close_to_best(measure)) == 1:
        return ""
    take = found.smallest_of_best(measure)
    if take == found.reference:
        return _alone(found, measure) or " Keep the model as it is."
    if all(pair.verdict != "better" for pair in found.paired[measure, "model"]):
        return ""
    one = found.method(take)
    return f" The smallest of them is {one.name}, with {bytes_text(one.size_bytes)}."


def _alone(found: Comparison, measure: str) -> str:
    """That the best calibrator would be better were it the only one; empty where it would not."""
    best = found.best[measure]
    pair = next(one for one in found.paired[measure, "model"] if one.key == best)
    change = pair.difference
    gain = -change.high if change.lower_is_better else change.low
    if not gain > 0.0 or best == found.reference:
        return ""
    name = method_name(found, best)
    return f" {name} would be better, were it the only one tried: more rows would decide."


def _speed(found: Comparison, measure: str) -> str:
    chosen = found.measure(measure)
    order = [key for key in ranked(found, measure) if key != found.reference]
    first, last = (found.method(order[at]) for at in (0, -1))
    values = [amount(measure, one.scores[measure].value) for one in (first, last)]
    if len(order) == 1:
        return f"{chosen.title}: {first.name} {values[0]}."
    return f"{chosen.title}: from {values[0]} ({first.name}) to {values[1]} ({last.name})."


def amount(measure: str, value: float) -> str:
    """Seconds or bytes for people.

    Examples
    --------
    >>> amount("fit_seconds", 0.0234), amount("size_bytes", 20480)
    ('0.023 s', '20 KiB')
    """
    return bytes_text(value) if measure == "size_bytes" else seconds_text(value)


def _rows(found: Comparison, measure: str) -> str:
    n = found.paired[measure, "model"][0].difference.n
    return f"these {n:,} rows"


def _named(found: Comparison, keys: Sequence[str]) -> str:
    names = [
        "the model as it is" if key == found.reference else found.method(key).name for key in keys
    ]
    text = listed(names)
    return text[0].upper() + text[1:] if text.startswith("the model") else text


def _marks_words(group: Group | None) -> str:
    """The meaning of the marks."""
    if group == "speed":
        return "Times on this machine and the size of the fitted calibrator, on logarithmic scales."
    return (
        "Full marks are the best of each measure and all that cannot be told apart from it. "
        "The grey band is the model as it is."
    )


_COLUMNS = 4
_TITLE, _SQUARE, _BETWEEN, _STRIP, _TICKS = 34, 172, 18, 40, 34
_HEIGHT = _TITLE + _SQUARE + _BETWEEN + _STRIP + _TICKS
_GAP = 0.03

PICTURES = """
Look at every calibrator before you use it (Salamon et al., section XII). Each point is a bin, with
the stated probability on the horizontal axis and the observed rate, with its Clopper-Pearson
interval, on the vertical axis. Pale points have few rows. The grey boxes show where
a perfectly calibrated model's points would lie. The bars below count the rows, on the same scale in
every panel. Where they are low, the picture says little: a calibrator that states one number for
all rows looks perfect in its only bin.
"""


def method_reliability_chart(
    found: Comparison, order: Sequence[str], *, dark: bool = False
) -> Chart:
    """The reliability diagram of every method, on one scale."""
    figure = method_reliability_figure(found, order, dark=dark)
    return Chart(
        figure,
        finding=_finding(found, order),
        alt=_alt(found, order),
        how_to_read=PICTURES,
        table=lambda: method_reliability_table(found, order),
        name="reliability of every method",
        panels=cut(figure, dark),
    )


def method_reliability_figure(found: Comparison, order: Sequence[str], *, dark: bool) -> go.Figure:
    """One small diagram per method, with the rows of each bin below it on the same axis.

    All panels share the same scales, including those of the counts. Points are the bins with
    Clopper-Pearson bars, small and hollow where rows are few; grey boxes are the consistency band.
    """
    colours = palette(dark)
    columns = min(_COLUMNS, max(len(order), 1))
    curves = [found.method(key).reliability.curves[0] for key in order]
    figure = go.Figure(layout=_layout(found, order, columns, _most(curves), dark))
    for at, (key, curve) in enumerate(zip(order, curves, strict=True)):
        colour, _, _ = method_style(key, colours)
        x, y, below = _axes(at)
        figure.add_trace(
            boxes(
                curve.edges[:-1],
                curve.edges[1:],
                curve.band_low,
                curve.band_high,
                faded(colours.truth, 0.09),
                xaxis=x,
                yaxis=y,
            )
        )
        figure.add_trace(identity(colours, xaxis=x, yaxis=y))
        figure.add_traces(bin_points(curve, colour, "Bins", scale=0.6, xaxis=x, yaxis=y))
        figure.add_trace(_counts(curve, colour, xaxis=x, yaxis=below))
    return figure


def method_reliability_table(found: Comparison, order: Sequence[str]) -> pd.DataFrame:
    """The bins of every diagram, stacked."""
    parts = []
    for key in order:
        table = found.method(key).reliability.curves[0].table()
        table.insert(0, "method", method_name(found, key))
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _most(curves: Sequence[ReliabilityCurve]) -> float:
    return float(max(curve.count.max(initial=1) for curve in curves))


def _axes(at: int) -> tuple[str, str, str]:
    """The horizontal axis, the vertical axis of the square, and that of the counts below it."""

    def numbered(letter: str, place: int) -> str:
        return letter if place == 0 else f"{letter}{place + 1}"

    return numbered("x", at), numbered("y", 2 * at), numbered("y", 2 * at + 1)


def _layout(
    found: Comparison, order: Sequence[str], columns: int, most: float, dark: bool
) -> dict[str, Any]:
    rows = -(-len(order) // columns)
    inside = rows * _HEIGHT
    width = (1 - _GAP * (columns - 1)) / columns
    stated, happens = reliability_titles(found.event is not None)
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + 40,
        "margin": {"l": 66, "t": 4, "b": 36},
        "showlegend": False,
        "annotations": [
            edge_title(stated, dark, name=ACROSS, x=0.5, y=0, yshift=-34, yanchor="bottom"),
            edge_title(f"{happens}, and rows", dark, name=UP, x=0, y=0.5, xshift=-64)
            | {"textangle": -90, "xanchor": "left", "yanchor": "middle"},
        ],
    }
    for at, key in enumerate(order):
        down, across = divmod(at, columns)
        left = across * (width + _GAP)
        top = down * _HEIGHT + _TITLE
        x, y, below = (one.replace(one[0], f"{one[0]}axis") for one in _axes(at))
        layout[x] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": _axes(at)[2],
            "range": [-0.03, 1.04],
            "tickvals": (0, 0.5, 1),
            "constrain": "domain",
        }
        layout[y] = {
            "domain": _domain(top, top + _SQUARE, inside),
            "anchor": _axes(at)[0],
            "range": [-0.03, 1.04],
            "tickvals": (0, 0.5, 1),
            "scaleanchor": _axes(at)[0],
            "scaleratio": 1,
            "constrain": "domain",
            "showticklabels": across == 0,
        }
        start = top + _SQUARE + _BETWEEN
        layout[below] = {
            "domain": _domain(start, start + _STRIP, inside),
            "anchor": _axes(at)[0],
            "range": [0, 1.05 * most],
            "tickvals": (0, most),
            "tickformat": ",.0f",
            "showticklabels": across == 0,
        }
        layout["annotations"].append(
            edge_title(
                escape_html(method_name(found, key), limit=26),
                dark,
                name=_axes(at)[0],
                x=left + width / 2,
                y=1 - top / inside,
                yshift=2,
                yanchor="bottom",
            )
        )
    return layout


def _domain(top: float, bottom: float, inside: float) -> list[float]:
    """Pixels from the top as plotly's share from the bottom."""
    return [max(1 - bottom / inside, 0.0), 1 - top / inside]


def _counts(curve: ReliabilityCurve, colour: str, **axes: str) -> go.Bar:
    left, right = curve.edges[:-1], curve.edges[1:]
    return go.Bar(
        x=(left + right) / 2,
        y=curve.count,
        width=right - left,
        marker={"color": faded(colour, 0.45), "line": {"color": colour, "width": 0.5}},
        customdata=np.column_stack([left, right]),
        hovertemplate=(
            "%{y:,} rows say %{customdata[0]:.2f} to %{customdata[1]:.2f}<extra></extra>"
        ),
        **axes,
    )


def _finding(found: Comparison, order: Sequence[str]) -> str:
    """How many bins of the diagrams leave the band that chance allows."""
    outside = []
    for key in order:
        (curve,) = found.method(key).reliability.curves
        some = curve.count > 0
        missed = (curve.accuracy < curve.band_low) | (curve.accuracy > curve.band_high)
        outside.append((key, int((missed & some).sum()), int(some.sum())))
    model = next(one for one in outside if one[0] == found.reference)
    fewest = min((one for one in outside if one is not model), key=lambda one: one[1] / one[2])
    return (
        f"Bins outside the band that chance allows: {model[1]} of {model[2]} for the model as "
        f"it is, {fewest[1]} of {fewest[2]} for {method_name(found, fewest[0])}. About one bin in "
        "twenty leaves it by chance alone."
    )


def _alt(found: Comparison, order: Sequence[str]) -> str:
    """Alternative text of the small diagrams."""
    names = ", ".join(method_name(found, key) for key in order)
    return f"Reliability diagrams on one scale with the rows of each bin below: {names}"
