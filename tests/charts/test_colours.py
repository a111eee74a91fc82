"""One colour for each method on all pages, told apart with every kind of colour vision."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import plotly.graph_objects as go
import pytest
from colorspacious import cspace_convert, deltaE

from kdcal_core import charts, diagnostics
from kdcal_core.calibration import CALIBRATORS, TopLabelKDE
from kdcal_core.charts.comparison import comparison_figure, method_reliability_figure
from kdcal_core.charts.confidence import bandwidth_figure, confidence_curve_figure
from kdcal_core.charts.coverage import coverage_by_figure, quantile_reliability_figure
from kdcal_core.charts.methods import losses_figure, method_cloud
from kdcal_core.charts.palette import VERSIONS, method_style, palette
from kdcal_core.charts.pit import fault_colour
from kdcal_core.charts.predictive_density import predictive_density_figure
from kdcal_core.charts.recalibration import recalibration_measures_figure
from kdcal_core.charts.reliability import reliability_figure
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import Estimate, density_curve, top_label_losses
from kdcal_core.diagnostics.calibrator_map import CalibratorMap, MapLine
from kdcal_core.diagnostics.regression.coverage import CoverageRow
from kdcal_core.diagnostics.regression.distribution_scores import RegressionScores
from kdcal_core.diagnostics.regression.pit_curves import pit_histogram, quantile_reliability
from kdcal_core.distributions import Normal
from kdcal_core.evaluation import Comparison, compare
from kdcal_core.regression import RECALIBRATORS
from kdcal_core.review import ReviewData

VISIONS = ("full", "protanomaly", "deuteranomaly", "tritanomaly")
METHODS = [key for key in CALIBRATORS if key != "uncalibrated"]


def seen(colour: str, vision: str) -> np.ndarray:
    """The sRGB colour that a reader with this vision sees (Machado et al. 2009, severity 100)."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    if vision == "full":
        return rgb
    space = {"name": "sRGB1+CVD", "cvd_type": vision, "severity": 100}
    return np.clip(cspace_convert(rgb, space, "sRGB1"), 0.0, 1.0)


def difference(one: str, two: str) -> float:
    """The smallest difference of two colours over all visions, in CAM02-UCS."""
    return min(
        float(deltaE(seen(one, vision), seen(two, vision), input_space="sRGB1"))
        for vision in VISIONS
    )


@pytest.mark.parametrize("dark", [False, True])
def test_colours_stay_apart_with_every_colour_vision(dark: bool) -> None:
    colours = palette(dark)
    assert difference(colours.model, colours.calibrated) >= 17.5
    assert difference(colours.right, colours.wrong) >= 11.5
    for one, two in combinations(colours.classes, 2):
        assert difference(one, two) >= 12.5, (one, two)
    for one in colours.classes:
        assert difference(one, colours.model) >= 12, one
    # regions: over- and under-confident
    assert difference(colours.diverging[0][1], colours.diverging[-1][1]) >= 15
    faults = [colours.too_low, colours.too_high, colours.too_narrow, colours.too_wide]
    for one, two in combinations(faults, 2):
        assert difference(one, two) >= 11.5, (one, two)


@pytest.mark.parametrize("dark", [False, True])
def test_each_method_has_a_look_of_its_own(dark: bool) -> None:
    colours = palette(dark)
    for keys in (CALIBRATORS, ["model", "truth", *RECALIBRATORS], ["model", *VERSIONS]):
        looks = [method_style(key, colours) for key in keys]
        assert len(set(looks)) == len(looks)
    model = method_style("model", colours)
    for key in (*METHODS, *RECALIBRATORS, *VERSIONS):
        colour, _, symbol = method_style(key, colours)
        assert colour != model[0], key
        assert symbol != model[2], key
    in_the_lab = method_style("geodesic", colours)
    assert in_the_lab == method_style("kernel_density", colours)


@pytest.fixture(scope="module")
def scored() -> ScoredSet:
    p = np.random.default_rng(0).uniform(0.05, 0.95, 300)
    y = (np.random.default_rng(1).random(300) < p**2).astype(np.int64)
    return ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")


@pytest.fixture(scope="module")
def compared(scored: ScoredSet) -> Comparison:
    data = ReviewData(scored, None, scored.classes, {})
    return compare(["isotonic", "sts", "kde_mon2", "histogram"], data, n_boot=200)


def colours_of(figure: go.Figure, name: str) -> set[str]:
    """The opaque colours of the traces with this name, of lines and of marks."""
    found: set[str] = set()
    for trace in figure.data:
        if (trace.name or "").startswith(name):
            line = trace.line.color if trace.type == "scatter" else None
            for part in (line, trace.marker.color):
                found |= {part} if isinstance(part, str) else set(part if part is not None else ())
    return {solid(one) for one in found}


def solid(colour: str) -> str:
    """A colour without its opacity."""
    if colour.startswith("#"):
        return colour
    parts = colour.removeprefix("rgba(").split(",")[:3]
    return "#" + "".join(f"{int(part):02x}" for part in parts)


# each in one theme: a page takes the theme's palette, whatever the method
@pytest.mark.parametrize(("key", "dark"), [(key, at % 2 == 1) for at, key in enumerate(METHODS)])
def test_a_calibrator_has_one_colour_on_every_page(scored: ScoredSet, key: str, dark: bool) -> None:
    colour, _, _ = method_style(key, palette(dark))
    label = CALIBRATORS[key].label
    proba, y = scored.proba, scored.y
    curve = diagnostics.reliability(proba, y, n_bins=5).curves[0]
    anchor = diagnostics.histogram_anchor(proba, y, label=1)
    grid = np.linspace(0.0, 1.0, 50)
    losses = top_label_losses(
        {key: np.full(3, 0.7)}, [0, 1, 1], [0, 1, 1], n_classes=2, rows="three rows"
    )
    counts = diagnostics.decision_counts(proba[:, 1], y)
    none = np.zeros(0)
    one_line = CalibratorMap("event", (MapLine("yes", 300),), 1, grid, grid[None], none, none)
    drawn = {
        "confidence by class": (
            method_cloud(anchor, {}, lines={key: (grid, grid)}, dark=dark, n_rows=50),
            label,
        ),
        "cloud": (
            method_cloud(anchor, {key: (grid, grid)}, dark=dark, n_rows=50),
            label,
        ),
        "losses": (losses_figure(losses, ("no", "yes"), dark=dark), ""),
        "decisions": (
            charts.net_benefit_chart(
                counts, 0.5, dark=dark, repaired=counts, repaired_name="Other", repaired_by=key
            ).figure,
            "Other",
        ),
        "export": (charts.judged_reliability_chart(curve, key, dark=dark).figure, "Bins"),
        "export map": (
            charts.calibrator_map_chart(one_line, key, ("no", "yes"), dark=dark).figure,
            "Calibrator",
        ),
        "beside the model": (
            reliability_figure(
                curve, dark=dark, calibrated=curve, calibrated_name="Other", calibrated_by=key
            ),
            "Other",
        ),
    }
    assert {name: colours_of(*one) for name, one in drawn.items()} == {
        name: {colour} for name in drawn
    }


@pytest.mark.parametrize("dark", [False, True])
def test_compare_draws_methods_in_their_colours(compared: Comparison, dark: bool) -> None:
    keys = [one.key for one in compared.methods]
    own = [method_style(key, palette(dark))[0] for key in keys]
    for trace in comparison_figure(compared, list(compared.measured[:1]), keys, dark=dark).data:
        assert list(trace.marker.color) == own
    small = method_reliability_figure(compared, keys, dark=dark)
    points = [trace for trace in small.data if trace.name == "Bins"]
    assert len({trace.xaxis for trace in points}) == len(keys)
    for trace in points:
        at = int(trace.xaxis[1:] or 1) - 1
        assert solid(trace.marker.color) == own[at]


@pytest.mark.parametrize("dark", [False, True])
def test_both_bandwidths_have_the_colours_of_their_methods(scored: ScoredSet, dark: bool) -> None:
    colours = palette(dark)
    kde = TopLabelKDE().fit(scored.proba, scored.y)
    curves = {rule: kde.with_rule(rule).curve(1) for rule in ("mon", "mon2", "mon4")}
    anchor = diagnostics.histogram_anchor(scored.proba, scored.y, label=1)
    both = bandwidth_figure([curves["mon2"]], [curves["mon"]], [anchor], scored.classes,
                                   dark=dark)  # fmt: skip
    for rule, name in (("mon", "b_mon:"), ("mon2", "b_mon2:")):
        assert colours_of(both, name) == {method_style(f"kde_{rule}", colours)[0]}
    for rule, curve in curves.items():
        alone = confidence_curve_figure(curve, anchor, dark=dark, method=f"kde_{rule}")
        own = {method_style(f"kde_{rule}", colours)[0]}
        assert colours_of(alone, "Safe estimate") == colours_of(alone, "Conf_KDE") == own


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("key", RECALIBRATORS)
def test_a_recalibrator_has_one_colour_on_every_page(key: str, dark: bool) -> None:
    colours = palette(dark)
    colour, _, _ = method_style(key, colours)
    pit = np.linspace(0.001, 0.999, 400)
    quantiles = quantile_reliability(pit)
    share = Estimate("Coverage", "", 0.9, 0.85, 0.94, 200)
    row = CoverageRow(0.95, share, share, share, None)
    after = density_curve(Normal(np.zeros(1), np.ones(1)), 1.0, "calibrated")
    measured = charts.MeasuredRecalibration(key, key, RegressionScores(key, {"crps": share}, 200))
    drawn = {
        "coverage": (
            coverage_by_figure(
                ["a"], [row], dark=dark, column="x", after=[row], after_name="Other", after_by=key
            ),
            "Other",
        ),
        "quantiles": (
            quantile_reliability_figure(
                quantiles, dark=dark, after=quantiles, after_name="Other", after_by=key
            ),
            "Other",
        ),
        "PIT": (
            charts.pit_panels([charts.PitPanel("All", pit_histogram(pit), who=key)], dark=dark),
            "Outcomes, strong",
        ),
        "densities": (
            predictive_density_figure(
                [charts.DensityPanel("Row 1", 1.0, (after,))],
                dark=dark,
                y_title="y",
                after_by=key,
            ),
            "Recalibrated",
        ),
        "measures": (
            recalibration_measures_figure([measured], dark=dark),
            "",
        ),
    }
    found = {name: colours_of(*one) for name, one in drawn.items()}
    assert {name: one & {colour} for name, one in found.items()} == {
        name: {colour} for name in drawn
    }
    assert fault_colour("none", colours, key) == colour
