"""The rows that the Regions page looks at, and what is asked of their columns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from app.shared import set_results
from app.shared.pit_results import Judged
from kdcal_core.review import Review, Which, identity
from kdcal_core.tasks import RegionColumns, region_columns


@dataclass(frozen=True, eq=False)
class Looked:
    """The rows that the page looks at, and the columns that describe them."""

    review: Review
    which: Which
    known: RegionColumns

    @property
    def regression(self) -> bool:
        return self.review.task == "regression"

    @property
    def judged(self) -> Judged:
        """The rows, as the PIT page asks of them."""
        return Judged(self.review, self.which)

    @cached_property
    def key(self) -> str:
        """What distinguishes these rows from all others."""
        return json.dumps(identity(self.review, (self.which, "training")), sort_keys=True)

    @property
    def binary(self) -> bool:
        return not self.regression and len(self.review.classes) == 2

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that trees can be grown on."""
        return self.known.inputs

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to look along: the inputs, then those without a role."""
        return self.known.columns


def looked_at(review: Review, which: Which) -> Looked | None:
    """The rows of a set with their columns; None while a job reads them."""
    known = set_results.of(review, region_columns, which=which)
    return None if known is None else Looked(review, which, known)
