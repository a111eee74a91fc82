"""The effect of calibration by regions: each region's map, reliability, AUROC and log loss.

A region's map (Platt's) turns a stated probability into a calibrated one; it is a line on the unit
square. Titles of calibrators may contain names that are not escaped: escape the sentences before
they reach a screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from kdcal_core.calibration.regions import RegionMap
from kdcal_core.calibration.regions.region_layers import CURVE_POINTS
from kdcal_core.charts.chart import Chart, new_figure, square, unit_axis
from kdcal_core.charts.marks import identity
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.reliability import reliability_alt, reliability_figure
from kdcal_core.diagnostics import Estimate, PairedAuc, ReliabilityCurve, estimate_text, value_text
from kdcal_core.text import counted, escape_html, formatted, number_text, share_text

_EXAMPLES = (0.2, 0.8)  # stated probabilities whose change is reported
_SUREST = 0.999
_SHIFT = 0.1  # of the log odds; a smaller one is negligible
_FLAT = 0.1  # slope below which a map ignores the score

MAPS = r"""
Platt's map of each region (Durfee et al., section 2.1 and Algorithm 1): log odds times a slope plus
an offset, fitted on the region's rows. **On the dashed line** nothing changes. A line **above** it
means that the class is stated too low there, a line **below** it too high. A slope **below 1**
pulls probabilities towards one half: the model was too sure. A slope of **0** ignores the score and
gives the region's rate, so the maps lie between the model and the tree (section 5.2). A
**negative** slope reverses the order and is always flagged. Regions with few rows borrow from the
region around them; the share is shown beside each.
"""


def region_maps_chart(
    maps: Sequence[RegionMap], picked: int, words: str, *, dark: bool = False
) -> Chart:
    """Platt's map of every region; ``words`` describe the picked one (`region_map_words`)."""
    return Chart(
        region_maps_figure(maps, dark=dark, picked=picked),
        finding="",
        alt=f"Platt maps of {counted(len(maps), 'region')}. This region: {words}",
        how_to_read=MAPS,
        table=lambda: region_maps_table(maps),
        name="maps of the regions",
    )


def region_maps_figure(
    maps: Sequence[RegionMap], *, dark: bool, picked: int | None = None
) -> go.Figure:
    """Platt's map of every region on the unit square; the picked one strong, the others pale.

    Each line covers the stated probabilities in its region. A line on the diagonal changes nothing;
    a flat one ignores the model.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=400)
    figure.add_trace(identity(colours))
    others = [one for one in maps if one.leaf != picked]
    if others:
        line = {"color": faded(colours.muted, 0.45), "width": 1.4}
        figure.add_trace(_lines(others, "Other regions", line))
    if len(others) < len(maps):
        mine = [one for one in maps if one.leaf == picked]
        figure.add_trace(_lines(mine, "This region", {"color": colours.text, "width": 3}))
    unit_axis(figure, "xaxis", "Stated probability")
    unit_axis(figure, "yaxis", "Calibrated probability")
    figure.update_layout(margin={"t": 56})
    square(figure)
    return figure


def region_maps_table(maps: Sequence[RegionMap]) -> pd.DataFrame:
    """Slope and offset of every region."""
    return pd.DataFrame([vars(one) for one in maps])


def _lines(maps: Sequence[RegionMap], name: str, line: dict[str, object]) -> go.Scatter:
    """Several maps as one trace with gaps between them, because many traces are slow."""
    curves = [one.curve() for one in maps]
    names = [f"{one.leaf + 1}: {escape_html(one.words, limit=40)}" for one in maps]
    gap = np.array([np.nan])
    return go.Scatter(
        x=np.concatenate([part for stated, _ in curves for part in (stated, gap)]),
        y=np.concatenate([part for _, mapped in curves for part in (mapped, gap)]),
        text=np.repeat(names, CURVE_POINTS + 1),
        mode="lines",
        line=line,
        name=name,
        hovertemplate="%{x:.3f} becomes %{y:.3f}<extra>%{text}</extra>",
    )


def region_map_words(one: RegionMap, name: str, borrowed: float, flags: Sequence[str]) -> str:
    """What a region's map does to the stated probability of the class ``name``, in a sentence.

    It gives the calibrated values of the mean and of a stated 20% and 80%, or of the region's
    lowest and highest stated probabilities if these lie between.

    Examples
    --------
    >>> import numpy as np
    >>> stated = np.array([0.1, 0.3, 0.5, 0.9])
    >>> region_map_words(RegionMap.of(0, "here", 0.86, 1.01, stated), "yes", 0.1, ())
    'Class yes is stated too low: a stated 20% becomes 45%, 80% becomes 90%, and the mean of 45% \
becomes 64% (slope 0.86, offset 1.01). 10% of the map is borrowed from the region around it.'
    """
    leans = (
        f" {borrowed:.0%} of the map is borrowed from the region around it."
        if borrowed >= 0.005
        else ""
    )
    flagged = f" Careful: {', '.join(flags)}." if flags else ""
    return (
        f"{_map_does(one, name)}: {_map_examples(one)} (slope {formatted(one.slope, '.2f')}, "
        f"offset {formatted(one.offset, '.2f')}).{leans}{flagged}"
    )


def _map_does(one: RegionMap, name: str) -> str:
    """The effect of the whole map, from its shifts of the log odds."""
    if one.slope < 0:
        return (
            f"A higher stated probability of class {name} means a lower one here, so look at the "
            "rows before using the map"
        )
    if one.slope < _FLAT:
        return f"The stated probability of class {name} says very little here"
    ends = _ends(one)
    low, high = _shifts(ends, one.apply(ends))
    of_mean = _shifts([one.mean], [one.mean_after])[0]
    up, down = max(low, high, of_mean) > _SHIFT, min(low, high, of_mean) < -_SHIFT
    if up and down and one.slope < 1.0:
        return (
            f"Probabilities of class {name} are too extreme, low ones too low and high ones too "
            "high"
        )
    if up and down:
        return (
            f"Probabilities of class {name} are not extreme enough, low ones too high and high "
            "ones too low"
        )
    if not up and not down:
        return f"Almost nothing changes for class {name}"
    return f"Class {name} is stated {'too low' if up else 'too high'}"


def _shifts(stated: ArrayLike, after: ArrayLike) -> list[float]:
    """Changes of the log odds, for probabilities clipped to the reported range."""
    p, q = (np.clip(values, 1.0 - _SUREST, _SUREST) for values in (stated, after))
    shifts: list[float] = np.log(q / (1.0 - q) * (1.0 - p) / p).tolist()
    return shifts


def _map_examples(one: RegionMap) -> str:
    ends = list(dict.fromkeys(_share(p) for p in _ends(one)))
    after = [_share(float(p)) for p in one.apply(_ends(one))]
    parts = [f"{p} becomes {q}" for p, q in zip(ends, after, strict=False)]
    return f"a stated {', '.join(parts)}, and the mean of {_share(one.mean)} becomes " + _share(
        one.mean_after
    )


def _ends(one: RegionMap) -> tuple[float, float]:
    """Stated probabilities whose change is reported, within the region's range."""
    low, high = np.clip([one.low, one.high], 1.0 - _SUREST, _SUREST).tolist()
    first, last = _EXAMPLES
    return (
        first if low <= first <= high else low,
        last if low <= last <= high else high,
    )


def _share(p: float) -> str:
    """A probability in percent, with a decimal near 0 and 1."""
    if not 1.0 - _SUREST <= p <= _SUREST:
        return share_text(p)
    return number_text(p, max(0.6 * min(p, 1.0 - p), 0.006), percent=True)


_LINE = 40

LIFT = r"""
The relative increase of the AUROC, with the interval of the paired comparison on the same rows
(Durfee et al., Fig. 3, shows it over runs). **One map for all rows cannot change the order of the
rows**, so it cannot change the AUROC, however over-confident the model is (sections 2 and 4.1).
Maps that differ between regions can, and the best ones only raise it (Lemmas 4.3 and 4.4). All rows
are judged with maps fitted on other rows. With cross-fitting every fold has its own map, which may
change the AUROC slightly.
"""
LOSSES = r"""
Each row's log loss after the repair minus before it, averaged over rows on which no map was fitted,
with the interval of that paired difference. **Left of the dashed line** stated probabilities have
improved. One map for all rows also improves them; only what lies to its left is due to the regions.
"""
BEFORE_AFTER = r"""
Slate circles are the model as it is, the other marks the model calibrated by regions. Both are
judged on rows that were not used in the fit. At points on the diagonal, stated and observed agree.
One map for all rows would also correct this picture; only regions can correct the order of the rows
(Durfee et al., sections 2 and 4).
"""


def repair_reliability_chart(
    before: ReliabilityCurve,
    after: ReliabilityCurve,
    by: str,
    event: str | None,
    *,
    dark: bool = False,
) -> Chart:
    """The model as it is and its calibrated output in one diagram.

    ``by`` is a key of `method_style`; ``event`` is the class whose probability is
    judged; None for the confidence.
    """
    return Chart(
        reliability_figure(
            before,
            dark=dark,
            calibrated=after,
            calibrated_name="Calibrated by regions",
            calibrated_by=by,
            of_class=event is not None,
        ),
        finding=f"Stated probability of {event}." if event else "",
        alt=f"Before: {reliability_alt(before)} After: {reliability_alt(after)}",
        how_to_read=BEFORE_AFTER,
        table=lambda: pd.concat(
            [before.table().assign(who="model"), after.table().assign(who="calibrated")],
            ignore_index=True,
        ),
        name="reliability before and after",
    )


def auc_lift_chart(
    lines: Sequence[tuple[str, PairedAuc]], partitions: Sequence[str], *, dark: bool = False
) -> Chart:
    """How much each way to calibrate raised the AUROC.

    ``partitions`` are the titles of those that calibrate by regions; the finding names the best.
    """
    title, best = max(
        (line for line in lines if line[0] in partitions), key=lambda line: line[1].lift.value
    )
    return Chart(
        auc_lift_figure(lines, dark=dark),
        finding="One map for all rows cannot change the order of the rows. The largest lift: "
        f"{title}, {estimate_text(best.lift)}.",
        alt=lift_alt(lines),
        how_to_read=LIFT,
        table=lambda: auc_lift_table(lines),
        name="AUROC lift",
    )


def loss_change_chart(lines: Sequence[tuple[str, Estimate]], *, dark: bool = False) -> Chart:
    """How much each way to calibrate changed the log loss."""
    return Chart(
        loss_change_figure(lines, dark=dark),
        finding="Log loss minus the model's, row by row: below 0 is better.",
        alt=change_alt(lines),
        how_to_read=LOSSES,
        table=lambda: loss_change_table(lines),
        name="log loss change",
    )


def auc_lift_figure(lines: Sequence[tuple[str, PairedAuc]], *, dark: bool) -> go.Figure:
    """One line per way to calibrate: (b - a) / a with its interval (Durfee et al., Fig. 3).

    At 0 the AUROC has not changed. Titles are untrusted.
    """
    hover = [
        f"AUROC {value_text(pair.a)} before, {value_text(pair.b)} after<br>"
        f"lift {estimate_text(pair.lift, chance=False)}"
        for _, pair in lines
    ]
    lifts = [(title, pair.lift) for title, pair in lines]
    figure, span = _changes(lifts, hover, dark, least=0.002)
    figure.update_xaxes(
        title_text="Relative lift of the AUROC", tickformat=".1%" if span > 0.005 else ".2%"
    )
    return figure


def loss_change_figure(lines: Sequence[tuple[str, Estimate]], *, dark: bool) -> go.Figure:
    """One line per way to calibrate: its log loss minus the model's, row by row, with an interval.

    Below 0 it is better than the model. Titles are untrusted.
    """
    hover = [estimate_text(one, chance=False) for _, one in lines]
    figure, _ = _changes(lines, hover, dark, least=0.001)
    figure.update_xaxes(title_text="Change of the log loss")
    return figure


def auc_lift_table(lines: Sequence[tuple[str, PairedAuc]]) -> pd.DataFrame:
    """The lifts, for download."""
    return pd.DataFrame(
        [
            {
                "calibrated_by": title,
                "auc_before": pair.a.value,
                "auc_after": pair.b.value,
                "lift": pair.lift.value,
                "lift_low": pair.lift.low,
                "lift_high": pair.lift.high,
                "difference": pair.difference.value,
                "p_value": pair.p_value,
            }
            for title, pair in lines
        ]
    )


def loss_change_table(lines: Sequence[tuple[str, Estimate]]) -> pd.DataFrame:
    """The changes, for download."""
    return pd.DataFrame(
        [
            {"calibrated_by": title, "change": one.value, "low": one.low, "high": one.high}
            for title, one in lines
        ]
    )


def _changes(
    lines: Sequence[tuple[str, Estimate]], hover: Sequence[str], dark: bool, *, least: float
) -> tuple[go.Figure, float]:
    """One mark with its interval for each line, and the span of the axis, at least ``least``."""
    colours = palette(dark)
    where = np.arange(len(lines))
    value, low, high = (
        np.array([getattr(one, part) for _, one in lines]) for part in ("value", "low", "high")
    )
    start, end = low.min(initial=0.0), high.max(initial=0.0)
    span = float(max(end - start, least))
    figure = new_figure(dark, height=96 + _LINE * len(lines))
    figure.add_vline(x=0, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.add_trace(
        go.Scatter(
            x=value,
            y=where,
            mode="markers",
            marker={"color": colours.text, "size": 10},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": high - value,
                "arrayminus": value - low,
                "color": colours.text,
                "thickness": 2,
                "width": 0,
            },
            hovertext=hover,
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )
    figure.update_layout(
        xaxis={"range": [start - 0.06 * span, end + 0.06 * span], "nticks": 8},
        yaxis={
            "tickvals": where,
            "ticktext": [escape_html(title, limit=40) for title, _ in lines],
            "range": [len(lines) - 0.5, -0.5],
            "showgrid": False,
        },
        margin={"t": 16},
    )
    return figure, span


def lift_words(title: str, auc: PairedAuc) -> str:
    """The effect of a partition on the AUROC, in a sentence."""
    lift = auc.lift
    clear = lift.low > 0 or lift.high < 0
    if lift.value == 0.0 and lift.low == lift.high:
        return f"With {title} the order of the rows, and so the AUROC, does not change."
    verb = "rises" if lift.value > 0 else "falls"
    ending = "" if clear else "; that may be chance"
    return (
        f"With {title} the AUROC {verb} from {value_text(auc.a)} to {value_text(auc.b)}, by "
        f"{estimate_text(lift, chance=False)} of its former value{ending}."
    )


def change_words(change: Estimate) -> str:
    """How the log loss changed, row by row."""
    clear = change.high < 0 or change.low > 0
    side = "falls" if change.value < 0 else "rises"
    text = estimate_text(change, chance=False)
    return f"Log loss {side}: change {text}{'' if clear else ', which may be chance'}."


def second_model_words(beside: Estimate, best: str, *, retrain: bool) -> str:
    """What a second model on the same columns gains more than calibration, in a sentence.

    Parameters
    ----------
    beside : Estimate
        Log loss of the second model less that of the best calibration, paired by row.
    best : str
        Title of the best calibration. Untrusted text.
    retrain : bool
        Whether the second model gains more beyond chance.

    Examples
    --------
    >>> gap = Estimate("Log loss: difference", "Difference", -0.022, -0.026, -0.018, 5000)
    >>> second_model_words(gap, "Forest regions", retrain=True)
    'These columns hold signal that the model does not use: retrain it. Boosted trees on its \
logits have a lower log loss than Forest regions, by 0.022 (0.018 to 0.026).'
    """
    if retrain:
        less = replace(beside, value=-beside.value, low=-beside.high, high=-beside.low)
        return (
            "These columns hold signal that the model does not use: retrain it. Boosted trees on "
            f"its logits have a lower log loss than {best}, by "
            f"{estimate_text(less, chance=False)}."
        )
    return (
        "A second model on these columns, boosted trees on the model's logits, gains no more than "
        f"calibration beyond chance: its log loss less that of {best} is "
        f"{estimate_text(beside, chance=False)}."
    )


def lift_alt(lines: Sequence[tuple[str, PairedAuc]]) -> str:
    """Alternative text of the lifts."""
    text = "; ".join(f"{title} {estimate_text(pair.lift, chance=False)}" for title, pair in lines)
    return f"Relative lift of the AUROC by partition, with intervals: {text}."


def change_alt(lines: Sequence[tuple[str, Estimate]]) -> str:
    """Alternative text of the changes of the log loss."""
    text = "; ".join(f"{title} {estimate_text(change, chance=False)}" for title, change in lines)
    return f"Change of the log loss by partition, with intervals: {text}."
