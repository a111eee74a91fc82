"""Platt's map of each region: what becomes of a stated probability, as lines on the unit square."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.parts import identity
from kdcal_core.charts.template import new_figure, square, unit_axis
from kdcal_core.data import FloatArray, escape_html

_SURE = 1e-6  # stated probabilities are kept this far from 0 and 1, where log odds end
_POINTS = 80  # of a curve; even on the log odds, so that both ends are smooth


@dataclass(frozen=True, eq=False)
class RegionMap:
    """What a region's map makes of a stated probability.

    Attributes
    ----------
    leaf : int
    words : str
        Untrusted.
    slope, offset : float
        Of Platt's map on the log odds.
    low, high : float
        Stated probabilities of the region's rows lie between these.
    mean, mean_after : float
        Of the region's rows, as stated and as the map has it.
    n : int
        Rows that the map was fitted on.
    """

    leaf: int
    words: str
    slope: float
    offset: float
    low: float
    high: float
    mean: float
    mean_after: float
    n: int

    @classmethod
    def of(
        cls,
        leaf: int,
        words: str,
        slope: float,
        offset: float,
        stated: FloatArray,
        weight: FloatArray | None = None,
    ) -> RegionMap:
        """The map of a region whose rows state the probabilities (n,), n >= 1.

        Examples
        --------
        >>> one = RegionMap.of(0, "here", 1.0, 1.0, np.array([0.2, 0.4]))
        >>> one.low, one.n, round(one.mean, 3), round(one.mean_after, 3)
        (0.2, 2, 0.3, 0.525)
        """
        after = _mapped(stated, slope, offset)
        return cls(
            leaf,
            words,
            slope,
            offset,
            float(stated.min()),
            float(stated.max()),
            float(np.average(stated, weights=weight)),
            float(np.average(after, weights=weight)),
            len(stated),
        )

    def apply(self, stated: ArrayLike) -> FloatArray:
        """Calibrated probabilities of stated ones."""
        return _mapped(stated, self.slope, self.offset)

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Stated and calibrated probabilities, over the range of the region's rows."""
        low, high = _log_odds([self.low, self.high]).tolist()
        stated = 1.0 / (1.0 + np.exp(-np.linspace(low, high, _POINTS)))
        return stated, self.apply(stated)


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
        line = {"color": faded(colours.parent, 0.45), "width": 1.4}
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
        text=np.repeat(names, _POINTS + 1),
        mode="lines",
        line=line,
        name=name,
        hovertemplate="%{x:.3f} becomes %{y:.3f}<extra>%{text}</extra>",
    )


def _mapped(stated: ArrayLike, slope: float, offset: float) -> FloatArray:
    odds = slope * _log_odds(stated) + offset
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * odds))


def _log_odds(stated: ArrayLike) -> FloatArray:
    inside = np.clip(np.asarray(stated, dtype=np.float64), _SURE, 1.0 - _SURE)
    return np.asarray(np.log(inside) - np.log1p(-inside))
