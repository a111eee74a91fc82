"""Measures of the PIT page on a review's rows; see `app.shared.set_results`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.shared import set_results
from kdcal_core.diagnostics import PitHistogram, RegionPit
from kdcal_core.review import Review, Which, identity
from kdcal_core.tasks import (
    PitOverview,
    PitPlaces,
    PitRows,
    is_large,
    pit_along,
    pit_histograms,
    pit_overview,
    pit_places,
    pit_rows,
)

BINS = (5, 50)  # of the histogram, least and most


@dataclass(frozen=True, eq=False)
class Judged:
    """The rows that a page shows."""

    review: Review
    which: Which

    @cached_property
    def key(self) -> str:
        """A key that distinguishes these rows from all others."""
        return json.dumps(identity(self.review, (self.which,)), sort_keys=True)

    @property
    def short(self) -> str:
        """The key, shortened for the key of a widget, which goes to the browser."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]

    @property
    def n_rows(self) -> int:
        return self.review.sets[self.which].n_rows

    @property
    def outcome(self) -> str:
        """The outcome's name. Untrusted text."""
        return (self.review.roles and self.review.roles.target) or "Outcome"


def overview_of(judged: Judged) -> PitOverview | None:
    """Everything about all rows together, except the histogram with its bins."""
    return set_results.of(judged.review, pit_overview, which=judged.which)


def histogram_of(judged: Judged, bins: int) -> PitHistogram | None:
    """The PIT histogram of all rows; with many rows one job makes all that can be chosen."""
    every = range(BINS[0], BINS[1] + 1) if is_large(judged.review) else (bins,)
    found = set_results.of(judged.review, pit_histograms, which=judged.which, bins=list(every))
    return None if found is None else found.with_bins(bins)


def by_column(judged: Judged, column: str, bins: int) -> tuple[RegionPit, ...] | None:
    """The PIT along a column of the table, or along the predictions (`MEAN`, `SPREAD`)."""
    found = set_results.of(judged.review, pit_along, which=judged.which, column=column, bins=bins)
    return None if found is None else found.regions


def places_of(judged: Judged, space: str, k: int, across: str, up: str) -> PitPlaces | None:
    """The rows of the local view, their places on a map, and neighbourhoods, tested."""
    return set_results.of(
        judged.review, pit_places, which=judged.which, space=space, k=k, across=across, up=up
    )


def rows_of(judged: Judged, **asked: Any) -> PitRows | None:
    """Rows picked by `pit_rows`, starting with those whose outcome lies furthest out."""
    return set_results.of(judged.review, pit_rows, which=judged.which, **asked)
