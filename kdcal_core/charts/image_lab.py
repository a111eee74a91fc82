"""The simulation lab for images: confidence as images shift, the images, and the finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, Panels, new_figure
from kdcal_core.charts.lab_measures import MeasuredMethod, measures_chart
from kdcal_core.charts.marks import BandLine, band_lines
from kdcal_core.charts.palette import palette
from kdcal_core.charts.pictures import PANEL_HEIGHT, PANEL_WIDTH, mosaic
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics import Estimate, estimate_text, value_text
from kdcal_core.text import listed

BANDED = ("model", "geodesic")  # more bands would hide each other
NARROW = 3  # images side by side, so that captions fit on a phone
PRIOR = 0.5  # as many circles as rectangles
SHIFTED = """
The mean of the largest probability over 100 images at each place of the shift. **Bands** contain
the middle half of the images; curves without a band show it on hover. At the **dotted lines**
images are like those of the training set. Elsewhere they are not, so confidence should fall towards
the prior (dashes). This is Fig. 5 of Dey et al. for one seed.

Isotonic and sigmoid calibration only transform the network's probability. The kernel density
versions place an image by the outputs of the convolution: an image whose outputs lie nearer to the
middle of the ordinary ones, as those of a dark or thin object do, is not foreign to them.
"""
PICTURES = """
The same image along the shift. Under each stand its place, the mean confidence of the network at
that place, and that of the geodesic kernel density version. Shades are on one scale. The three
channels of a colour image are equal, so it looks like a grey one.
"""
INSIDE = """
There are 500 fresh images like those of the training set. The network was trained on seven tenths
of the others; the other three tenths determine isotonic, sigmoid, the exponent and the floor.

"""


def shift_chart(
    places: Sequence[float],
    confidence: Mapping[str, tuple[str, FloatArray]],
    ordinary: Sequence[float],
    *,
    scale: str,
    dark: bool = False,
) -> Chart:
    """Confidence against the place of a shift: a label and (P, m) values of each method, by key.

    ``ordinary`` are the places of the training set's images, and ``scale`` names the places.
    """
    x = np.array(places)
    lines = [
        BandLine(key, label, x, said.mean(axis=1), *_middle_half(said), filled=key in BANDED)
        for key, (label, said) in confidence.items()
    ]
    words = least_sure_words(x, {key: said.mean(axis=1) for key, (_, said) in confidence.items()})

    def table() -> pd.DataFrame:
        columns = ("confidence", "low", "high")
        parts = []
        for line in lines:
            values = dict(zip(columns, (line.middle, line.low, line.high), strict=True))
            parts.append(pd.DataFrame({"method": line.label, "place": x, **values}))
        return pd.concat(parts, ignore_index=True)

    return Chart(
        _shift_figure(lines, ordinary, scale, dark=dark),
        finding=words,
        alt=f"Mean max confidence by {scale.lower()}, for every method. {words}",
        how_to_read=SHIFTED,
        table=table,
        name="shift",
    )


def shifted_pictures_chart(
    samples: FloatArray,
    places: Sequence[float],
    model: FloatArray,
    version: FloatArray,
    *,
    scale: str,
    dark: bool = False,
) -> Chart:
    """One image at each place (P, R, C) above the mean confidences (P,) of model and version."""
    said = [
        f"{place:g}: {ours:.0%}, {theirs:.0%}"
        for place, ours, theirs in zip(places, model, version, strict=True)
    ]
    n = len(said)
    lines = [range(n // 2 + n % 2), range(n // 2 + n % 2, n)]
    narrow = [range(at, min(at + NARROW, n)) for at in range(0, n, NARROW)]
    titles = tuple(f"{scale} {places[one[0]]:g} to {places[one[-1]]:g}" for one in narrow)
    panels = []
    for one, title in zip(narrow, titles, strict=True):
        figure = mosaic(samples, said, [one], dark=dark, height=PANEL_HEIGHT // 2 + 20)
        panels.append(figure.update_layout(title_text=title, margin={"t": 30, "r": 0}))
    table = pd.DataFrame({"place": places, "model": model, "kernel_density": version})
    return Chart(
        mosaic(samples, said, lines, dark=dark),
        finding="Under each image: its place, and what network and kernel density version say.",
        alt=f"Images by {scale.lower()}, with both confidences: {'; '.join(said)}.",
        how_to_read=PICTURES,
        table=lambda: table,
        name="shifted images",
        panels=Panels(tuple(panels), titles, legend=None, axes="", width=PANEL_WIDTH),
    )


def image_measures_chart(
    titles: Mapping[str, str],
    methods: Sequence[MeasuredMethod],
    *,
    dark: bool = False,
    narrow: bool = False,
) -> Chart:
    """Every measure of every method on ordinary images; ``titles`` name the measures by key."""
    return measures_chart(
        titles, methods, lead="error", how_to_read=INSIDE, dark=dark, narrow=narrow
    )


def glance_images_figure(
    pixels: FloatArray, said: Sequence[str], *, dark: bool = False
) -> go.Figure:
    """A few images (m, R, C) with their names: a thumbnail beside the settings, not a `Chart`."""
    return mosaic(pixels, [*said], [range(len(said))], dark=dark, height=150)


def least_sure_words(places: FloatArray, confidence: Mapping[str, FloatArray]) -> str:
    """Where network and kernel density version are least sure.

    Examples
    --------
    >>> places, sure = np.array([127.0, 190.0, 254.0]), np.array([0.99, 0.93, 0.97])
    >>> least_sure_words(places, {"model": sure, "geodesic": np.array([0.99, 0.80, 0.67])})
    'The network is least sure at 190 (93%), the kernel density version at 254 (67%).'
    """
    lowest = {key: int(np.argmin(said)) for key, said in confidence.items()}
    ours, theirs = (
        f"{places[lowest[key]]:g} ({confidence[key][lowest[key]]:.0%})" for key in BANDED
    )
    return f"The network is least sure at {ours}, the kernel density version at {theirs}."


def image_lab_finding(
    place: str, model: Estimate, version: Estimate, unknown: Estimate, errors: Sequence[Estimate]
) -> str:
    """What both say of the most foreign images, and what the version costs on ordinary ones.

    Parameters
    ----------
    place : str
        The most foreign place in words.
    unknown : Estimate
        Share of its images that the version calls unknown.
    errors : two Estimates
        Error of model and version on ordinary images.

    Examples
    --------
    >>> def share(value): return Estimate("", "", value, value - 0.01, value + 0.01, 100,
    ...                                   percent=True)
    >>> image_lab_finding("intensity 254", share(0.97), share(0.67), share(0.61),
    ...                   [share(0.02), share(0.02)])
    "At intensity 254 the network says 97.0% (96.0% to 98.0%), the kernel density version 67.0% \
(66.0% to 68.0%) and calls 61.0% unknown; the prior is 50%. On ordinary images its error is 2.0%, \
the network's 2.0%."
    """
    before, after = (value_text(each) for each in errors)
    return (
        f"At {place} the network says {estimate_text(model)}, the kernel density version "
        f"{estimate_text(version)} and calls {value_text(unknown)} unknown; the prior is "
        f"{PRIOR:.0%}. On ordinary images its error is {after}, the network's {before}."
    )


def _middle_half(said: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = np.quantile(said, [0.25, 0.75], axis=1)
    return low, high


def _shift_figure(
    lines: Sequence[BandLine], ordinary: Sequence[float], scale: str, *, dark: bool
) -> go.Figure:
    colours = palette(dark)
    figure = new_figure(dark, height=330)
    place = f"{scale} {{:,.3g}}"
    figure.add_traces(band_lines(lines, colours, place, "confidence", "middle half"))
    first, last = float(lines[0].x[0]), float(lines[0].x[-1])
    figure.add_trace(
        go.Scatter(
            x=[first, last],
            y=[PRIOR, PRIOR],
            mode="lines",
            line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
            name=f"Prior {PRIOR:.0%}",
            hoverinfo="skip",
        )
    )
    for each in ordinary:
        figure.add_vline(x=each, line={"color": colours.muted, "width": 1, "dash": "dot"})
    marked = listed([f"{each:g}" for each in ordinary])
    figure.update_layout(
        xaxis={"title_text": f"{scale} (ordinary: {marked})", "range": [first, last]},
        yaxis={
            "title_text": "Mean max confidence",
            "range": [PRIOR - 0.05, 1.02],
            "tickformat": ".0%",
        },
        margin={"t": 64},
    )
    return figure
