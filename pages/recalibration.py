"""Recalibration: the predictive distributions of a regression before and after a repair."""

from __future__ import annotations

from app.recalibration import recalibration_compare as compare
from app.recalibration import recalibration_parts as parts
from app.recalibration import recalibration_results as results
from app.recalibration import recalibration_rows as rows
from app.shared import page_top

review = page_top.scored_review("recalibration")
if review is not None:
    view = parts.recalibrated(review)
    if view is not None:
        parts.finding(view)
        places = parts.maps(view)
        parts.over_a_column(view)
        shown = results.shown_of(view)
        if shown is not None:
            rows.densities(view, shown)
            if places is not None:
                rows.intervals(view, shown, places)
        compare.pit_and_quantiles(view)
        compare.every_method(view)
        compare.choice(view)
        compare.truth(view)
        compare.advice()
