"""One calibrator: its map from score to calibrated probability; reliability before and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure, square, unit_axis
from kdcal_core.charts.marks import identity
from kdcal_core.charts.palette import faded, method_style, palette
from kdcal_core.charts.reliability import reliability_alt, reliability_figure
from kdcal_core.diagnostics import ReliabilityCurve, estimate_text, value_text
from kdcal_core.diagnostics.calibrator_map import CalibratorMap
from kdcal_core.evaluation import MEASURES, Comparison, Gain, PairedDifference
from kdcal_core.text import escape_html

_NAME = 44
_SCORES = (0.5, 0.7, 0.9)
_LOW_SCORES = (0.05, 0.1, 0.2)  # of a rare event, whose rows lie far below one half
_LOW = 0.3  # nearly all of them do where 95% state less
_NEAR = 0.05  # rows this near to a score show its calibrated value
_FEWEST = 10
_FEW_JUDGED = 200  # with fewer rows to judge on, finding no difference says little

MAP = """
The horizontal axis is the model's probability, the vertical axis the calibrated one. On the dashed
diagonal nothing changes; below it the calibrator lowers the probability, above it raises it. Dots
are real rows, at most 1,000.

With two classes the score is the probability of the second class. With more it is the confidence
in the predicted class, with a line for each class that is predicted. With regions (Durfee et al.,
section 5) each region has its own line. If the result depends on more than the score, such as the
other classes' probabilities or an average over several partitions, only dots are shown. At most
eight lines are drawn, those with most rows.
"""


DIAGRAMS = """
On the left is the model as it is, on the right the same rows calibrated by fits that have not seen
them. At points on the dashed diagonal, stated and observed agree. Grey boxes contain the points of
a perfectly calibrated model in 95% of all samples of this size, so a point in its box is no
evidence of a fault. The bars below count the rows; a calibrator may move rows to other scores. Look
at every calibrator before you use it (Salamon et al., section XII).
"""


def calibrator_map_chart(
    found: CalibratorMap, method: str, classes: Sequence[str], *, dark: bool = False
) -> Chart:
    """The calibrated probability of each score by the calibrator with the key ``method``."""
    x_title, y_title = _axes(found, classes)
    words = f"{_scale(found, classes)}: {calibrator_map_words(found)}"
    return Chart(
        calibrator_map_figure(found, method, dark=dark, x_title=x_title, y_title=y_title),
        finding=words,
        alt=f"Stated against calibrated probability. {words}",
        how_to_read=MAP,
        table=lambda: calibrator_map_table(found),
        name="map",
    )


def judged_reliability_chart(
    curve: ReliabilityCurve, method: str, *, dark: bool = False, of_class: bool = False
) -> Chart:
    """The reliability of the model as it is, or of its calibrated output, in its own colour.

    ``method`` is "model" or the calibrator's key; ``of_class`` says whether it is about the
    probability of one class, and not the confidence.
    """
    calibrated = method != "model"
    who = "Calibrated" if calibrated else "The model as it is"
    figure = reliability_figure(curve, dark=dark, drawn_as=method, of_class=of_class, small=True)
    return Chart(
        figure,
        finding=f"{who}: {_worst_words(curve)}",
        alt=f"{who}. {reliability_alt(curve)}",
        how_to_read=DIAGRAMS,
        table=curve.table,
        name=f"reliability {'after' if calibrated else 'before'}",
    )


def calibrator_map_figure(
    found: CalibratorMap, method: str, *, dark: bool, x_title: str, y_title: str
) -> go.Figure:
    """A calibrator as curves in a square from 0 to 1, over a sample of real rows.

    Where the calibrator changes nothing, lines and rows lie on the diagonal. A single line has
    the calibrator's colour; several have the classes', in order of their number of rows.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=440)
    figure.add_trace(
        go.Scatter(
            x=found.rows_x,
            y=found.rows_y,
            mode="markers",
            marker={"color": faded(colours.model, 0.35), "size": 4, "line": {"width": 0}},
            name=f"{len(found.rows_x):,} rows",
            hovertemplate="Stated %{x:.1%}, calibrated %{y:.1%}<extra></extra>",
        )
    )
    figure.add_trace(identity(colours).update(name="Unchanged"))
    own, _, _ = method_style(method, colours)
    for at, (line, y) in enumerate(zip(found.lines, found.y, strict=True)):
        colour = own if len(found.lines) == 1 else colours.classes[at % len(colours.classes)]
        name = (
            f"Region {at + 1}" if found.shape == "regions" else escape_html(line.name, limit=_NAME)
        )
        figure.add_trace(
            go.Scatter(
                x=found.x,
                y=y,
                mode="lines",
                line={"color": colour, "width": 2.2 if line.n >= 100 else 1.2},
                name=name if len(found.lines) > 1 else "Calibrator",
                hovertemplate=(
                    f"Stated %{{x:.1%}}, calibrated %{{y:.1%}}"
                    f"<extra>{name}, {line.n:,} rows</extra>"
                ),
            )
        )
    unit_axis(figure, "xaxis", x_title)
    unit_axis(figure, "yaxis", y_title)
    square(figure)
    if len(found.lines) > 1:
        figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1.0, "yanchor": "top"})
    return figure


def calibrator_map_table(found: CalibratorMap) -> pd.DataFrame:
    """The lines, one row per score; without lines, the rows that are drawn."""
    if not found.lines:
        order = np.argsort(found.rows_x, kind="stable")
        return pd.DataFrame({"stated": found.rows_x[order], "calibrated": found.rows_y[order]})
    lines = zip(found.lines, found.y, strict=True)
    return pd.DataFrame(
        {"stated": found.x, **{f"{at}: {line.name}": y for at, (line, y) in enumerate(lines, 1)}}
    )


def calibrator_map_regions(found: CalibratorMap) -> pd.DataFrame:
    """The regions by number, with the calibrated values of some scores. Names are untrusted."""
    table = pd.DataFrame(
        {
            "Region": np.arange(1, len(found.lines) + 1),
            "Where": [line.name for line in found.lines],
            "Rows": [line.n for line in found.lines],
        }
    )
    for score in _scores(found):
        table[f"{score:.0%} becomes"] = [_at(found, i, score) for i in range(len(found.lines))]
    return table


def calibrator_map_words(found: CalibratorMap) -> str:
    """The calibrated values of some scores, in a sentence. Names in it are untrusted text.

    Examples
    --------
    >>> from kdcal_core.diagnostics.calibrator_map import MapLine
    >>> x = np.linspace(0.0, 1.0, 101)
    >>> none = np.zeros(0)
    >>> calibrator_map_words(
    ...     CalibratorMap("event", (MapLine("yes", 40),), 1, x, x[None, :] / 2, none, none)
    ... )
    'A stated 50% becomes 25%, 70% becomes 35% and 90% becomes 45%.'
    """
    if not found.lines:
        return _rows_words(found)
    scores = _scores(found)
    digits = 1 if scores is _LOW_SCORES else 0
    if len(found.lines) == 1:
        parts = [f"{at:.0%} becomes {_at(found, 0, at):.{digits}%}" for at in scores]
        return f"A stated {parts[0]}, {parts[1]} and {parts[2]}."
    values = np.array([[_at(found, i, at) for at in scores] for i in range(len(found.lines))])
    lowest, highest = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    at = int(np.argmax(highest - lowest))
    one = "class" if found.shape == "classes" else "region"
    if highest[at] - lowest[at] < 0.005:
        pairs = zip(scores, highest, strict=True)
        parts = [f"{score:.0%} becomes {y:.{digits}%}" for score, y in pairs]
        return f"In every {one} a stated {parts[0]}, {parts[1]} and {parts[2]}."
    kind = "for predictions of" if found.shape == "classes" else "where"
    low, high = np.nanargmin(values[:, at]), np.nanargmax(values[:, at])
    return (
        f"A stated {scores[at]:.0%} becomes {values[low, at]:.{digits}%} {kind} "
        f"{found.lines[low].name}, and {values[high, at]:.{digits}%} {kind} "
        f"{found.lines[high].name}."
    )


def _scores(found: CalibratorMap) -> tuple[float, ...]:
    """The scores whose calibrated values are named: low ones where nearly all rows state them."""
    if found.shape == "classes" or not len(found.rows_x):
        return _SCORES
    return _LOW_SCORES if np.quantile(found.rows_x, 0.95) < _LOW else _SCORES


def _at(found: CalibratorMap, line: int, score: float) -> float:
    return float(found.y[line, int(np.abs(found.x - score).argmin())])


def _rows_words(found: CalibratorMap) -> str:
    parts = []
    for score in _scores(found):
        near = found.rows_y[np.abs(found.rows_x - score) <= min(_NEAR, score / 5)]
        if len(near) >= _FEWEST:
            low, high = np.quantile(near, [0.1, 0.9])
            parts.append(f"about {score:.0%} become {low:.0%} to {high:.0%}")
    if not parts:
        return "Each row's calibrated score depends on its own columns or other probabilities."
    return f"Rows that state {', '.join(parts)} (the middle 80% of them)."


def _worst_words(curve: ReliabilityCurve) -> str:
    """How many bins lie outside what chance explains, and the farthest one."""
    filled = curve.count > 0
    with np.errstate(invalid="ignore"):
        out = np.maximum(curve.band_low - curve.accuracy, curve.accuracy - curve.band_high)
    out = np.where(filled & np.isfinite(out), out, -np.inf)
    n_out = int((out > 0).sum())
    if not n_out:
        return f"all {int(filled.sum())} bins lie within what chance explains."
    at = int(np.argmax(out))
    return (
        f"{n_out} of {int(filled.sum())} bins lie outside what chance explains; the farthest "
        f"says {curve.confidence[at]:.0%} and sees {curve.accuracy[at]:.0%} "
        f"({curve.count[at]:,} rows)."
    )


def _scale(found: CalibratorMap, classes: Sequence[str]) -> str:
    """The quantity that the map changes. Names in it are untrusted text."""
    return f"Probability of {classes[found.event]}" if len(classes) == 2 else "Confidence"


def _axes(found: CalibratorMap, classes: Sequence[str]) -> tuple[str, str]:
    """Titles of the map's two axes."""
    if len(classes) == 2:
        event = escape_html(classes[found.event], limit=30)
        return f"Stated probability of {event}", f"Calibrated probability of {event}"
    return "Stated confidence in the predicted class", "Calibrated probability of that class"


def gain_finding(title: str, gain: Gain) -> str:
    """What the calibrator gains in log loss, and whether that is more than chance."""
    before, after, pair = gain.of_measure("log_loss")
    rows = f"on {after.n:,} rows ({_judged(gain.comparison)})"
    values = f"from {value_text(after, before.value)} to {value_text(after)}"
    by = f"by {_size(pair)} ({_sizes(pair)}) {rows}, {values}"
    if pair.verdict == "better":
        return f"{title}: the log loss falls {by}."
    if pair.verdict == "worse":
        return f"{title}: the log loss rises {by}. Keep the model as it is."
    change = f"{estimate_text(pair.difference, chance=False)} {rows}"
    if gain.pairs["ece_debiased"].verdict == "better":
        return (
            f"{title}: the log loss does not change beyond chance, {change}, but confidence fits "
            "better."
        )
    if after.n < _FEW_JUDGED:
        return (
            f"{title}: {after.n:,} rows are too few to show a gain. The log loss changes by "
            f"{change}."
        )
    return (
        f"{title}: no gain beyond chance. The log loss changes by {change}. This calibrator is not "
        "needed; the pages Regions and Compare show whether another one is."
    )


def gain_further(gain: Gain) -> str:
    """Its effect on the calibration error, on the ranking, and on accuracy."""
    sentences = []
    for key, what in (
        ("ece_debiased", f"The calibration error, {MEASURES['ece_debiased'].title},"),
        ("auc", f"The {MEASURES['auc'].title}"),
        ("accuracy", MEASURES["accuracy"].title),
    ):
        if key not in gain.pairs:
            continue
        before, after, pair = gain.of_measure(key)
        if pair.verdict == "cannot be told apart":
            sentences.append(f"{what} cannot be told apart from the model's.")
        else:
            sentences.append(
                f"{what} gets {pair.verdict}: {value_text(after, before.value)} before, "
                f"{value_text(after)} after."
            )
    return " ".join(sentences)


def _judged(found: Comparison) -> str:
    """The rows used to judge."""
    return "evaluation set" if found.folds == 0 else f"cross-fitted, {found.folds} folds"


def _size(pair: PairedDifference) -> str:
    return value_text(pair.difference, abs(pair.difference.value))


def _sizes(pair: PairedDifference) -> str:
    """The interval of a change's size, smaller end first."""
    low, high = sorted((abs(pair.difference.low), abs(pair.difference.high)))
    return f"{value_text(pair.difference, low)} to {value_text(pair.difference, high)}"
