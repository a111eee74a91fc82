"""The parts of the PIT page about all rows together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.shared import pit_results, tiles
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.pit_results import BINS, Judged
from app.shared.seen_charts import seen
from app.shared.tables import show_estimates, show_table
from kdcal_core.charts import (
    Chart,
    coverage_chart,
    ecdf_chart,
    pit_chart,
    pit_findings,
    quantile_reliability_chart,
)
from kdcal_core.diagnostics import (
    CoverageRow,
    Estimate,
    LocalPit,
    UniformityTest,
    estimate_text,
    value_text,
)
from kdcal_core.evaluation import MEASURES
from kdcal_core.tasks import ALL_BINS, PitOverview
from kdcal_core.text import escape_markdown, figures_text, p_text

TESTS = """
Four tests of whether the PIT values of all rows could come from the uniform distribution, as they
do for calibrated distributions (Torres et al., section 4.1, use several tests). **Statistic**: how
far they are from it, in each test's own measure. **p value**: how often calibrated distributions
with the same number of rows would give a statistic at least as large; below 0.05 is commonly called
a departure beyond chance. With very many rows a small p value can mean a difference too small to
matter: the histogram shows how large it is.

Kolmogorov-Smirnov uses the largest gap between observed and uniform shares, and Cramér-von Mises
the mean square of all gaps. Anderson-Darling gives more weight to the ends, where extreme outcomes
are. Frosini uses the mean of the absolute gaps; its p value comes from random draws.
"""


def finding(judged: Judged, whole: PitOverview, local: LocalPit | None) -> list[str]:
    """The main finding as a heading; returns the further ones, in sentences."""
    first, *more = pit_findings(
        whole.coverage,
        whole.fault,
        local=local,
        fitted_spread=_fitted_spread(judged),
    )
    st.header(escape_markdown(first, 400), anchor=False)
    return more


def estimates(judged: Judged, whole: PitOverview, local: LocalPit | None) -> None:
    """The tiles beside the map."""
    scores, fitted = whole.scores.rows, _fitted_spread(judged)
    held = whole.coverage.main
    shown = [held.coverage, scores["crps"], whole.fault.bias]
    with st.container(border=True, height="stretch", gap="xsmall"):
        for estimate, note in zip(
            shown, [_stated(held, fitted), *map(_rows, shown[1:])], strict=True
        ):
            tiles.estimate_metric(estimate, note)
        _places(local)


def further_findings(whole: PitOverview, more: Sequence[str]) -> None:
    """What else was found, below the map."""
    if more:
        st.markdown(escape_markdown(" ".join(more), 1500))
    if whole.resolution:
        st.caption(whole.resolution)


def _fitted_spread(judged: Judged) -> bool:
    return judged.review.sets[judged.which].spread is not None


def _stated(row: CoverageRow, fitted: bool) -> str:
    level = f"{100 * row.level:g}%"
    return f"{f'spread fitted for {level}' if fitted else f'{level} stated'}, {_rows(row.coverage)}"


def _rows(estimate: Estimate) -> str:
    return f"{estimate.n:,} rows"


def _places(local: LocalPit | None) -> None:
    """The tile that counts neighbourhoods; it has no interval, because they overlap."""
    with st.container(gap=None):
        _places_metric(local)
        text = f"neighbourhoods of {local.k:,} rows" if local is not None else "see place by place"
        st.caption(text)


def _places_metric(local: LocalPit | None) -> None:
    st.metric(
        "Places that differ",
        f"{local.n_faulty:,} of {len(local.kind):,}" if local is not None else "not tested",
        delta=f"smallest p {p_text(local.adjusted_p.min())}" if local is not None else None,
        delta_color="off",
        delta_arrow="off",
        help="Neighbourhoods whose PIT values differ from uniform beyond chance. The p values are "
        "corrected for the number of neighbourhoods: if the model is right everywhere, any is "
        "named in at most 5% of all samples. The check of distributions region by region may "
        "disagree, because it holds the few regions of a tree, judged on half of the rows, against "
        "a limit.",
    )


@st.fragment
def all_rows(judged: Judged, whole: PitOverview | None) -> None:
    """Histogram and ECDF difference of all PIT values."""
    with st.container(border=True):
        title, setting = st.columns([3, 1], vertical_alignment="center")
        title.subheader("All rows together", anchor=False)
        with setting:
            bins = st.slider("Bins", *BINS, ALL_BINS, key="pit_bins", persist_state="session")
        left, right = st.columns(2, gap="medium")
        with left:
            _histogram(judged, bins, whole)
        if whole is None:
            return
        with right:
            _seen(judged, "pit_ecdf", "PIT against uniform", ecdf_chart, whole.ecdf)
            show(
                drawn_once(ecdf_chart, whole.ecdf, dark=is_dark()),
                key="pit_ecdf",
                of=f"{judged.review.title} {judged.which}",
            )


def _seen(judged: Judged, key: str, title: str, make: Callable[..., Chart], found: Any) -> None:
    """Note a chart for an audit, which draws the same of its own set."""
    seen(judged.review, key, title, "pit", make, found, settings=f"{judged.which} set")


def _histogram(judged: Judged, bins: int, whole: PitOverview | None) -> None:
    found = pit_results.histogram_of(judged, bins)
    if found is None:
        return
    kind = whole.fault.kind if whole is not None else "none"
    seen(
        *(judged.review, "pit", "PIT histogram", "pit", pit_chart, found),
        kind=kind,
        settings=f"{bins} bins; {judged.which} set",
    )
    show(
        drawn_once(pit_chart, found, kind=kind, dark=is_dark()),
        key="pit_histogram",
        of=f"{judged.review.title} {judged.which}",
    )
    outside = judged.review.sets[judged.which].outside
    if outside:
        verb = "outcome lies" if outside == 1 else "outcomes lie"
        st.caption(
            f"{outside:,} {verb} so far from the prediction that the PIT value is exactly 0 or 1, "
            "which counts in the first or the last bar."
        )


def uniformity(judged: Judged, whole: PitOverview) -> None:
    """The tests of uniformity."""
    table = _test_table(whole.tests)
    show_table(
        table.assign(
            **{
                "Statistic": [figures_text(test.statistic) for test in whole.tests],
                "p value": [p_text(test.p_value) for test in whole.tests],
            }
        ),
        key="pit_tests",
        column_config={"Rows": st.column_config.NumberColumn(format="localized")},
        alt="Tests of uniformity of the PIT values with statistic and p value",
    )
    with st.container(horizontal=True, gap="small"):
        with st.popover("How these tests work", type=quiet(), icon=":material/help:"):
            st.markdown(TESTS)
        csv_button(
            lambda: table, key="pit_tests_csv", of=judged.review.title, what="uniformity tests"
        )


def _test_table(tests: tuple[UniformityTest, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Test of uniformity": [test.title for test in tests],
            "Statistic": [test.statistic for test in tests],
            "p value": [test.p_value for test in tests],
            "Rows": [test.n for test in tests],
            "Note": [_test_note(test) for test in tests],
        }
    )


def _test_note(test: UniformityTest) -> str:
    drawn = f"{test.draws:,} random draws, seed {test.seed}" if test.draws is not None else ""
    return "; ".join(part for part in (drawn, test.note) if part)


def quantiles_and_levels(judged: Judged, whole: PitOverview) -> None:
    """Reliability of stated quantiles, beside coverage at several levels."""
    title = f"{judged.review.title} {judged.which}"
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.subheader("Stated quantiles", anchor=False)
        titled = "quantiles", "Reliability of quantiles"
        _seen(judged, *titled, quantile_reliability_chart, whole.quantiles)
        show(
            drawn_once(quantile_reliability_chart, whole.quantiles, dark=is_dark()),
            key="pit_quantiles",
            of=title,
        )
    with right.container(border=True, height="stretch"):
        st.subheader("Stated intervals", anchor=False)
        _seen(judged, "coverage", "Coverage of intervals", coverage_chart, whole.coverage)
        show(drawn_once(coverage_chart, whole.coverage, dark=is_dark()), key="pit_levels", of=title)
        _width_table(whole)


def _width_table(whole: PitOverview) -> None:
    rows = whole.coverage.rows
    show_table(
        pd.DataFrame(
            {
                "Stated": [f"{100 * row.level:g}%" for row in rows],
                "Observed": [estimate_text(row.coverage, chance=False) for row in rows],
                "Mean width": [_width(row.width) for row in rows],
                "Scaled score": [value_text(row.smis) if row.smis else "" for row in rows],
            }
        ),
        key="pit_widths",
        column_config={
            "Scaled score": st.column_config.TextColumn(
                help=f"{MEASURES['smis95'].meaning} Torres et al., Eq. 5, as Gneiting and Raftery "
                "define the score."
            )
        },
        alt="Coverage, mean width and scaled interval score of intervals by stated level",
    )


def _width(width: Estimate) -> str:
    """The mean width, with decimals if all intervals have the same width."""
    return value_text(width) if width.high > width.low else figures_text(width.value)


@st.fragment
def every_measure(judged: Judged, whole: PitOverview) -> None:
    """The table of all measures with full names."""
    with st.container(border=True):
        estimates = [one for key, one in whole.scores.rows.items() if _is_known(key, whole)]
        show_estimates(
            estimates,
            key="pit_measures",
            of=f"{judged.review.title} {judged.which}",
            what="measures",
        )


def _is_known(key: str, whole: PitOverview) -> bool:
    """False for the scaled score if all outcomes of the calibration set are zero."""
    return key != "smis95" or whole.scale is not None
