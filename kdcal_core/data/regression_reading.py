"""What the columns of a regression were taken for: outcome, point, ends of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from kdcal_core.data.column_doubts import MOST_CHOICES, Choice, ColumnReader, Doubt, Reading
from kdcal_core.data.column_kinds import mostly_numbers, sampled, simple
from kdcal_core.data.regression_guesses import (
    Bounds,
    Parameters,
    bounds_in,
    continued,
    follows,
    held_columns,
    interval_levels,
    is_outcome_name,
    like_an_outcome,
    measured_columns,
    says_outcome,
)
from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.schema import Roles
from kdcal_core.text import formatted, listed

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of an interval whose level no name says
NO_LEVEL = "none"


class RegressionReader(ColumnReader):
    def read(self, roles: Roles) -> Reading:
        options = [] if "target" in self.said else self._targets(roles)
        doubts = [self._target_doubt(roles, options)] if len(options) > 1 else []
        if self.model or roles.family not in ("point", None):
            return Reading(roles, tuple(doubts))
        taken = {
            name for name in (roles.target, roles.weight, roles.split, roles.true_mean) if name
        }
        bounds = bounds_in(self.frame, taken | {column for _, column in roles.parameters})
        if not bounds:
            return Reading(roles, tuple(doubts))
        known = tuple(one for one in bounds if one.level is not None)
        if known:
            return _as_intervals(self.frame, roles, known, doubts)
        (one, *_) = bounds
        said = self.said.get("level")
        if said == NO_LEVEL and roles.parameters:
            return Reading(roles, tuple(doubts))
        if said is not None and (level := _level(said)) is not None:
            return _as_intervals(self.frame, roles, [replace(one, level=level)], doubts)
        held = self._held(roles, one.lower, one.upper)
        choices = [Choice(f"{level:g}", f"{level:.0%}") for level in LEVELS]
        if roles.parameters:
            point = roles.parameters[0][1]
            choices.append(Choice(NO_LEVEL, f"Use {point[:40]} alone"))
        doubt = Doubt(
            "level",
            f"The columns {one.lower[:60]!r} and {one.upper[:60]!r} are the ends of an interval, "
            f"and no name says its level.{held} Which share of the outcomes was it made to hold?",
            tuple(choices),
        )
        unread = replace(
            roles,
            family="quantiles",
            parameters=(),
            features=tuple(c for c in roles.features if c not in (one.lower, one.upper)),
        )
        return Reading(unread, (*doubts, doubt))

    def _targets(self, roles: Roles) -> list[str]:
        if roles.target is None:
            return []
        certain = next((how for how in (is_outcome_name, says_outcome) if how(roles.target)), None)
        if not certain and continued(self.frame, set()) == (
            roles.target,
            roles.family,
            roles.parameters,
        ):
            return [roles.target]  # price beside price_mean and price_std
        if not (self.model or roles.parameters or certain):  # perhaps there are bounds alone
            return list(dict.fromkeys([roles.target, *held_columns(self.frame, set())]))
        taken = {*used_columns(roles)} - {roles.target}
        if not self.model:
            taken -= {*roles.features}
        bounds = bounds_in(self.frame, set())
        taken |= {name for one in bounds for name in (one.lower, one.upper)}
        free = measured_columns(self.frame, taken)
        if certain:
            free = [name for name in free if certain(name)]
        return list(dict.fromkeys([roles.target, *free]))

    def _target_doubt(self, roles: Roles, names: Sequence[str]) -> Doubt:
        near = {
            name: float("nan") if self.model else follows(self.frame, roles.parameters, name)
            for name in names
        }
        ordered = [names[0], *sorted(names[1:], key=lambda name: -like_an_outcome(near[name]))]
        others = listed([repr(name[:60]) for name in ordered[1:]], 3)
        return Doubt(
            "target",
            f"The column {str(roles.target)[:60]!r} was taken for the outcome, and {others} could "
            "be it too.",
            tuple(
                Choice(
                    name,
                    f"{name[:60]} is the outcome",
                    f"correlation with the prediction {formatted(near[name], '.3f')}"
                    if np.isfinite(near[name])
                    else "",
                )
                for name in ordered[:MOST_CHOICES]
            ),
        )

    def _held(self, roles: Roles, lower: str, upper: str) -> str:
        """How many of the outcomes lie in the interval."""
        if roles.target is None or not mostly_numbers(self.frame[roles.target]):
            return ""
        low, y, high = sampled(self.frame, [lower, roles.target, upper]).T
        inside = float(np.mean((low <= y) & (y <= high)))
        return f" It holds {inside:.1%} of the outcomes."


def two_numbers(frame: pd.DataFrame, roles: Roles, said: Mapping[str, str]) -> Reading | None:
    """An outcome and its prediction, where no name says which is which and nothing else is there.

    None unless exactly two columns hold measured numbers.
    """
    columns = measured_columns(frame, set())
    if len(columns) != 2:
        return None
    options = {
        ",".join(pair): replace(
            roles,
            task="regression",
            family="point",
            target=pair[0],
            parameters=(("mean", pair[1]),),
            features=tuple(one for one in roles.features if one not in pair),
        )
        for pair in (columns, columns[::-1])
    }
    if (read := options.get(said.get("order", ""))) is not None:
        return Reading(read)
    doubt = Doubt(
        "order",
        f"The columns {columns[0][:60]!r} and {columns[1][:60]!r} hold measured numbers, and no "
        "name says which is the outcome and which its prediction.",
        tuple(
            Choice(answer, f"{read.target[:40]} is the outcome")
            for answer, read in options.items()
            if read.target
        ),
    )
    return Reading(roles, (doubt,))


def _level(answer: str) -> float | None:
    try:
        level = float(answer)
    except ValueError:
        return None
    return level if 0.0 < level < 1.0 else None


def _as_intervals(
    frame: pd.DataFrame, roles: Roles, bounds: Sequence[Bounds], doubts: Sequence[Doubt]
) -> Reading:
    """The ends of intervals as quantiles, and a point between all of them as the median."""
    notes = []
    found: dict[float, str] = {}
    for one in bounds:
        assert one.level is not None
        found |= dict(zip(interval_levels(one.level), (one.lower, one.upper), strict=True))
    ends = set(found.values())
    if roles.family == "point":
        ((_, point),) = roles.parameters
        if all(_between(frame, one.lower, point, one.upper) for one in bounds):
            found[0.5] = point
            notes.append(f"{point!r} lies within every interval and was read as the median.")
            if "median" not in simple(point):
                notes[-1] += " Of skewed distributions a mean is another number: leave it out."
    parameters: Parameters = tuple((f"{level:.12g}", found[level]) for level in sorted(found))
    features = tuple(name for name in roles.features if name not in ends)
    read = replace(roles, family="quantiles", parameters=parameters, features=features)
    for one in bounds:
        assert one.level is not None
        notes.append(
            f"{one.lower!r} and {one.upper!r} were read as an interval of {one.level:.0%}."
        )
    return Reading(read, tuple(doubts), tuple(notes))


def _between(frame: pd.DataFrame, lower: str, point: str, upper: str) -> bool:
    low, middle, high = (
        pd.to_numeric(frame[name], errors="coerce") for name in (lower, point, upper)
    )
    return bool(((low <= middle) & (middle <= high)).all())
