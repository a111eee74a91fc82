"""Whether calibration by regions pays here: the paper's conditions, checked on these rows."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app.regions import regions_text as text
from app.regions.regions_parts import View
from app.regions.regions_repair import Repair
from kdcal_core.calibration.regions import RegionFit
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.tasks import ModelEstimates
from kdcal_core.text import escape_markdown


def conditions(
    view: View, whole: ModelEstimates, fits: Sequence[RegionFit], repair: Repair | None
) -> None:
    """The paper's three conditions for use, checked on these rows and the regions' maps."""
    with st.container(border=True):
        st.markdown("**Does calibration by regions pay here?**")
        for holds, words in _checked(view, whole.gap, [one for one in fits if one.n], repair):
            icon = ":material/check:" if holds else ":material/close:"
            st.markdown(f"{icon} {escape_markdown(words, 600)}")
        with st.popover("When it pays, in the paper's words and ours", type="tertiary"):
            st.markdown(text.ADVICE)


def _checked(
    view: View, gap: Estimate, fits: list[RegionFit], repair: Repair | None
) -> list[tuple[bool, str]]:
    sure = gap.low > 0
    thin = [one for one in fits if one.needed]
    search = view.search
    many = len(search.faulty)
    parts = [
        (
            sure,
            f"An over-confident model: stated confidence minus accuracy is {estimate_text(gap)}"
            + ("." if sure else ", so it is not too sure of itself over all rows."),
        ),
        (many > 0 and len(fits) > 1, f"Regions that can be told apart: {_apart(many, len(fits))}."),
        (
            not thin,
            _enough(len(fits)) if not thin else _thin(thin, len(fits)),
        ),
    ]
    lift = repair.after.auc.lift if repair and repair.after.auc else None
    if lift is not None:
        parts.append(
            (
                lift.low > 0,
                f"What it did on rows that no map has seen: AUROC lift {estimate_text(lift)}.",
            )
        )
    return parts


def _apart(many: int, count: int) -> str:
    if count == 1:
        return "there is only one region, so one map for all rows does the same"
    if many:
        return f"{many:,} of {count:,} {'is' if many == 1 else 'are'} wrong beyond chance"
    return "none is wrong beyond chance, so one map for all rows may do as well"


def _enough(count: int) -> str:
    where = "the one region holds" if count == 1 else f"each of {count:,} regions holds"
    return f"Enough rows that the model has not seen: {where} 20 or more of its rarer class."


def _thin(thin: list[RegionFit], count: int) -> str:
    verb = "holds" if len(thin) == 1 else "hold"
    lean = "leans" if len(thin) == 1 else "lean"
    return (
        f"Enough rows that the model has not seen: {len(thin):,} of {count:,} regions {verb} fewer "
        f"than 20 of a class and {lean} on the region around."
    )
