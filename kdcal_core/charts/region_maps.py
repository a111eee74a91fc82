"""Platt's map of each region: what becomes of a stated probability, as lines on the unit square."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from kdcal_core.calibration.regions import RegionMap
from kdcal_core.calibration.regions.region_map import CURVE_POINTS
from kdcal_core.charts.chart import Chart
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.parts import identity
from kdcal_core.charts.template import new_figure, square, unit_axis
from kdcal_core.text import escape_html, number_text

_EXAMPLES = (0.2, 0.8)  # stated probabilities whose change is said
_SUREST = 0.999
_SHIFT = 0.1  # of the log odds; a smaller one is next to nothing
_FLAT = 0.1  # slope below which a map forgets the score

MAPS = r"""
Platt's map of each region (Durfee et al., section 2.1 and Algorithm 1): log odds times a slope plus
an offset, fitted on the region's rows. **On the dashed line** nothing changes; a line **above** it
says that the class is stated too low there, **below** it too high. A slope **below 1** pulls
probabilities towards one half: the model was too sure. A slope of **0** forgets the score and
leaves the region's rate, so the maps lie between the model and the tree (section 5.2). A
**negative** slope turns the order round and is flagged, never hidden (decision D105). Regions with
few rows lean on the region around them; how much stands beside.
"""


def region_maps_chart(maps: Sequence[RegionMap], picked: int, words: str, *, dark: bool) -> Chart:
    """Platt's map of every region; ``words`` say what the picked one does (`region_map_words`)."""
    return Chart(
        region_maps_figure(maps, dark=dark, picked=picked),
        finding="",
        alt=f"Platt maps of {len(maps):,} regions. This region: {words}",
        how_to_read=MAPS,
        table=lambda: region_maps_table(maps),
        name="maps of the regions",
    )


def region_maps_figure(
    maps: Sequence[RegionMap], *, dark: bool, picked: int | None = None
) -> go.Figure:
    """Platt's map of every region on the unit square; the picked one strong, the others pale.

    Each line runs over the stated probabilities that its region holds. A line on the diagonal
    leaves the model as it is; a flat one forgets it.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=400)
    figure.add_trace(identity(colours))
    others = [one for one in maps if one.leaf != picked]
    if others:
        line = {"color": faded(colours.model, 0.45), "width": 1.4}
        figure.add_trace(_lines(others, "Other regions", line))
    if len(others) < len(maps):
        mine = [one for one in maps if one.leaf == picked]
        figure.add_trace(_lines(mine, "This region", {"color": colours.calibrated, "width": 3}))
    unit_axis(figure, "xaxis", "Stated probability")
    unit_axis(figure, "yaxis", "Calibrated probability")
    figure.update_layout(margin={"t": 56})
    square(figure)
    return figure


def region_maps_table(maps: Sequence[RegionMap]) -> pd.DataFrame:
    """Slope and offset of every region."""
    return pd.DataFrame([vars(one) for one in maps])


def _lines(maps: Sequence[RegionMap], name: str, line: dict[str, object]) -> go.Scatter:
    """Several maps as one trace, with a gap between them: a trace each is slow to make."""
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
    """What a region's map makes of the stated probability of the class ``name``, in a sentence.

    It says what becomes of a stated 20% and 80%, or of the lowest and highest that the region
    states where these lie within, and of the mean.

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
        f"{_map_does(one, name)}: {_map_examples(one)} (slope {one.slope:.2f}, offset "
        f"{one.offset:.2f}).{leans}{flagged}"
    )


def _map_does(one: RegionMap, name: str) -> str:
    """What the whole map does, by the shift of the log odds of what is said."""
    if one.slope < 0:
        return (
            f"A higher stated probability of class {name} means a lower one here, so look at the "
            "rows before using the map"
        )
    if one.slope < _FLAT:
        return f"The stated probability of class {name} says next to nothing here"
    ends = _ends(one)
    low, high = _shifts(ends, one.apply(ends))
    of_mean = _shifts([one.mean], [one.mean_after])[0]
    up, down = max(low, high, of_mean) > _SHIFT, min(low, high, of_mean) < -_SHIFT
    if up and down and one.slope < 1.0:
        return f"Class {name} is stated too surely, low ones too low and high ones too high"
    if up and down:
        return f"Class {name} is not stated surely enough, low ones too high and high ones too low"
    if not up and not down:
        return f"Next to nothing changes for class {name}"
    return f"Class {name} is stated {'too low' if up else 'too high'}"


def _shifts(stated: ArrayLike, after: ArrayLike) -> list[float]:
    """How far the log odds move; of probabilities not nearer to 0 and 1 than are said."""
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
    """Stated probabilities whose change is said; the region states from ``low`` to ``high``."""
    low, high = np.clip([one.low, one.high], 1.0 - _SUREST, _SUREST).tolist()
    first, last = _EXAMPLES
    return (
        first if low <= first <= high else low,
        last if low <= last <= high else high,
    )


def _share(p: float) -> str:
    """A probability in percent, with a decimal near 0 and 1."""
    if not 1.0 - _SUREST <= p <= _SUREST:
        return "over 99.9%" if p > 0.5 else "below 0.1%"
    return number_text(p, max(0.6 * min(p, 1.0 - p), 0.006), percent=True)
