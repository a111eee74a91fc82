"""Every colour of kdcal: the one module that holds colour literals.

A colour has one meaning on every page, chart and report. Green and orange differ in lightness as
well as in hue, so that a colour-blind reader can tell them apart, also in grey print.
"""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.regression import RECALIBRATORS

TRANSPARENT = "rgba(0, 0, 0, 0)"
Scale = tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Palette:
    """The colours of one theme, as ``#rrggbb``.

    Attributes
    ----------
    model, calibrated : str
        The model under review, and its calibrated output.
    truth : str
        Truth, perfect calibration and the histogram anchor.
    right, wrong : str
        True and false positives (Salamon et al.'s green and orange).
    foreign : str
        Rows far from the data.
    text, muted, grid, surface, page : str
        Text, secondary text, grid lines, the background of hover boxes and of the page.
    classes : tuple of str
        The hues of Okabe and Ito in their order, for classes and for methods. Their lightness is
        chosen so that any two differ by 12.5 or more in CAM02-UCS, and by 13.8 (light) and 15.7
        (dark) in CIEDE2000, with full colour vision and with protanopia, deuteranopia or
        tritanopia, and all stand out from the page by 3:1.
    sequential, diverging : Scale
        From nothing to much; from under-confident (blue) to over-confident (red).
    posterior : tuple of str
        From probability 0 (blue) over the prior (white) to 1 (red), five stops.
    too_low, too_high, too_narrow, too_wide : str
        Faults of a predictive distribution, distinct for colour-blind readers too. As in
        `diverging`, too narrow (over-confident) is red and too wide (under-confident) blue.
    miss : str
        Outcomes outside their intervals (Torres et al., Fig. 3: light red).
    passed, failed, undecided : str
        Verdicts of checks, each with its word and mark. Readable as text.
    """

    model: str
    calibrated: str
    truth: str
    right: str
    wrong: str
    foreign: str
    text: str
    muted: str
    grid: str
    surface: str
    page: str
    classes: tuple[str, ...]
    sequential: Scale
    diverging: Scale
    posterior: tuple[str, str, str, str, str]
    too_low: str
    too_high: str
    too_narrow: str
    too_wide: str
    miss: str
    passed: str
    failed: str
    undecided: str


LIGHT = Palette(
    model="#64748b",
    calibrated="#0a4f5a",
    truth="#111827",
    right="#1b8a4b",
    wrong="#de7b00",
    foreign="#7e3fbf",
    text="#111827",
    muted="#5b6676",
    grid="#e5e9ef",
    surface="#ffffff",
    page="#ffffff",
    classes=(
        "#806100",
        "#0797ff",
        "#0e8e74",
        "#a99200",
        "#0001b9",
        "#6d0f00",
        "#e13362",
        "#3b3835",
    ),
    sequential=((0.0, "#f7f9fb"), (0.25, "#cbd5e1"), (0.6, "#7b8ba3"), (1.0, "#263548")),
    diverging=(
        (0.0, "#2166ac"),
        (0.25, "#92c5de"),
        (0.5, "#f7f7f7"),
        (0.75, "#f4a582"),
        (1.0, "#b2182b"),
    ),
    posterior=("#2166ac", "#92c5de", "#fdfdfd", "#f4a582", "#b2182b"),
    too_low="#bd8700",
    too_high="#b0509a",
    too_narrow="#b2182b",
    too_wide="#1b4b8f",
    miss="#e95f54",
    passed="#137a3e",
    failed="#b2182b",
    undecided="#8a5a00",
)

DARK = Palette(
    model="#94a3b8",
    calibrated="#66f2d2",
    truth="#f8fafc",
    right="#35ad69",
    wrong="#ffb35c",
    foreign="#b794f4",
    text="#e2e8f0",
    muted="#a0aec0",
    grid="#2b394d",
    surface="#1c2736",
    page="#101823",
    classes=(
        "#f18a00",
        "#90d7ff",
        "#57825c",
        "#ffcf94",
        "#4886ff",
        "#d23505",
        "#a65884",
        "#bfbaaf",
    ),
    sequential=((0.0, "#18222f"), (0.25, "#33445a"), (0.6, "#74879f"), (1.0, "#e5ecf5")),
    diverging=(
        (0.0, "#5aa2dd"),
        (0.25, "#2f5f8a"),
        (0.5, "#1b2430"),
        (0.75, "#96503f"),
        (1.0, "#ef6a5d"),
    ),
    # the prior is white in the dark theme too, but less bright
    posterior=("#2a6fb5", "#86b6d3", "#e9edf2", "#e39a79", "#bb2a35"),
    too_low="#ffe08a",
    too_high="#e29bd3",
    too_narrow="#ff6b5e",
    too_wide="#3a7fca",
    miss="#ff8f86",
    passed="#4cc47d",
    failed="#ff8f86",
    undecided="#f0b95b",
)


def palette(dark: bool) -> Palette:
    """The colours of the theme.

    Examples
    --------
    >>> palette(dark=False).truth, palette(dark=True).truth
    ('#111827', '#f8fafc')
    """
    return DARK if dark else LIGHT


_DASHES = ("solid", "6px,2px", "2px,2px", "8px,2px,2px,2px")
_SYMBOLS = ("square", "triangle-up", "cross", "pentagon", "triangle-down")


def ink_on(ground: str) -> str:
    """Near black or white, whichever stands out more from a colour such as "rgb(140, 154, 176)".

    Not pure black: Streamlit keeps colours like "#000001" as placeholders of its theme.

    Examples
    --------
    >>> ink_on("rgb(140, 154, 176)"), ink_on("rgb(38, 53, 72)")
    ('#010101', '#ffffff')
    """
    parts = [int(float(one)) / 255 for one in ground[4:-1].split(",")]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#010101" if luminance > 0.179 else "#ffffff"


_KERNEL, _EUCLIDEAN = 1, 3  # places among the classes' colours
_OWN: dict[str, tuple[str | int, str, str]] = {
    "model": ("model", "solid", "circle"),
    "uncalibrated": ("model", "solid", "circle"),
    "calibrated": ("calibrated", "solid", "diamond"),
    "truth": ("truth", "solid", "line-ns-open"),
    "other_version": (0, "6px,3px", "square"),
    "kde_mon2": ("calibrated", "solid", "diamond"),
    "local": ("calibrated", "solid", "diamond"),
    "kernel_density": (_KERNEL, "solid", "star"),
    "heterogeneous_column": (4, "8px,2px,2px,2px", "hexagon"),
}
VERSIONS: dict[str, tuple[str | int, str, str]] = {
    "geodesic": _OWN["kernel_density"],
    "geodesic_ratio": (_KERNEL, "3px,3px", "circle-open"),
    "geodesic_paper": (_KERNEL, "6px,2px", "star-open"),
    "euclidean": (_EUCLIDEAN, "6px,3px", "diamond"),
    "euclidean_paper": (_EUCLIDEAN, "2px,2px", "diamond-open"),
}
"""The kernel density version by its distance and its settings."""


def method_style(key: str, colours: Palette) -> tuple[str, str, str]:
    """Colour, dash and symbol of a method, the same on every page, chart and report.

    Parameters
    ----------
    key : str
        "model"; "truth"; a key of `CALIBRATORS`, of `RECALIBRATORS` or of `VERSIONS`. Those without
        a style of their own have the classes' colours in the order of their registry, with another
        dash and symbol each time the colours start again. Any other key, such as "calibrated", is a
        calibrated version in general.

    Examples
    --------
    >>> method_style("kde_mon2", palette(dark=False))
    ('#0a4f5a', 'solid', 'diamond')
    """
    known = next((one for one in (CALIBRATORS, RECALIBRATORS) if key in one), None)
    if known is None or key in _OWN:
        colour, dash, symbol = {**_OWN, **VERSIONS}.get(key, _OWN["calibrated"])
        if isinstance(colour, int):
            return colours.classes[colour], dash, symbol
        return str(getattr(colours, colour)), dash, symbol
    turn, step = divmod(
        [name for name in known if name not in _OWN].index(key), len(colours.classes)
    )
    symbol = _SYMBOLS[(step + turn) % len(_SYMBOLS)]
    return colours.classes[step], _DASHES[turn % len(_DASHES)], symbol


def posterior_scale(colours: Palette, prior: float) -> Scale:
    """Blue, white and red from probability 0 to 1 with white at the prior.

    Examples
    --------
    >>> [stop for stop, _ in posterior_scale(palette(dark=False), 0.2)]
    [0.0, 0.1, 0.2, 0.6, 1.0]
    """
    white = min(max(prior, 0.02), 0.98)
    stops = (0.0, white / 2, white, (1 + white) / 2, 1.0)
    return tuple(zip(stops, colours.posterior, strict=True))


def faded(colour: str, opacity: float) -> str:
    """A ``#rrggbb`` colour at an opacity from 0 to 1, for bands and thin data.

    Examples
    --------
    >>> faded("#ff8000", 0.25)
    'rgba(255, 128, 0, 0.25)'
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
