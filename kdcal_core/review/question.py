"""The question of a review: its event, its groups, its limits, and how rows are decided on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from kdcal_core.errors import InputError
from kdcal_core.text import formatted

Against = Literal["value", "chance", "baseline"]
View = Literal["event", "confidence"]
RETIRED = frozenset({"KC207"})  # a range of probabilities; KC209 asks for one of log odds
"""Codes of checks that are no longer made. A code whose estimate changes its meaning is retired,
because limits that were set for it would apply to something else."""
CASES = ("true_positive", "false_positive", "false_negative", "true_negative")


@dataclass(frozen=True)
class Limit:
    """Which values of an estimate are good enough.

    Attributes
    ----------
    low, high : float
        The smallest and the largest value that passes; infinite if there is no such end.
    against : {"value", "chance", "baseline"}
        What the limit applies to. "value": the estimate itself. "chance": the value that a
        calibrated model with these rows would rarely exceed; ``low`` and ``high`` are ignored.
        "baseline": the estimate minus that of another review (`Question.baseline`).

    Raises
    ------
    InputError
        If no value could pass, or an end is not a number.

    Examples
    --------
    >>> Limit(high=0.05)
    Limit(low=-inf, high=0.05, against='value')
    >>> Limit(low=0.2, high=0.1)
    Traceback (most recent call last):
    kdcal_core.errors.InputError: No value lies within 0.2 to 0.1. Give a lower end that is not \
above the upper one.
    """

    low: float = -math.inf
    high: float = math.inf
    against: Against = "value"

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(
                f"No value lies within {formatted(self.low, 'g')} to {formatted(self.high, 'g')}",
                fix="Give a lower end that is not above the upper one.",
            )
        if self.against not in get_args(Against):
            raise InputError(
                f"A limit cannot be against {self.against!r}",
                fix=f"Choose one of {', '.join(get_args(Against))}.",
            )


@dataclass(frozen=True)
class Decision:
    """From which probability of a class its rows are flagged, and what right and wrong flags cost.

    Attributes
    ----------
    threshold : float or None
        Above 0, below 1; None where nobody has chosen one.
    costs : dict of case to float
        The parameters of `kdcal_core.diagnostics.Costs`; empty where nobody has written any.

    Raises
    ------
    InputError
        If the threshold is no such number, or a cost is of no case or not finite.
    """

    threshold: float | None = None
    costs: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0.0 < self.threshold < 1.0:
            raise InputError(
                f"A threshold cannot be {formatted(self.threshold, 'g')}",
                fix="Give a number above 0 and below 1.",
            )
        for case, cost in self.costs.items():
            if case not in CASES or not math.isfinite(cost):
                raise InputError(
                    f"There is no cost {formatted(cost, 'g')} of {case[:60]!r}",
                    fix=f"Give finite costs of {', '.join(CASES)}.",
                )


@dataclass(frozen=True)
class Question:
    """What a review asks about its model.

    Attributes
    ----------
    event : str or None
        With two classes, the one whose probability is reviewed; None for the default
        (`kdcal_core.data.labels.default_event`). Untrusted text.
    view : {"event", "confidence"}
        With two classes, whether the event's probability is reviewed, or the confidence in the
        predicted class.
    groups : tuple of str
        Columns whose values divide the rows into declared groups. Untrusted text.
    limits : dict of code to Limit
        They replace the limits of the checks. Those of `RETIRED` checks, which a stored review
        may hold, are left out.
    decisions : dict of class to Decision
        No check depends on them. Untrusted text.
    baseline : str or None
        Id of another review, with which limits against the baseline compare.
    """

    event: str | None = None
    view: View = "event"
    groups: tuple[str, ...] = ()
    limits: dict[str, Limit] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    baseline: str | None = None

    def __post_init__(self) -> None:
        kept = {code: one for code, one in self.limits.items() if code not in RETIRED}
        object.__setattr__(self, "limits", kept)

    def decision_of(self, classes: Sequence[str], event: int | None) -> Decision:
        """What was chosen for one of the classes; nothing for no event.

        Examples
        --------
        >>> Question(decisions={"yes": Decision(0.3)}).decision_of(("no", "yes"), 1).threshold
        0.3
        """
        return Decision() if event is None else self.decisions.get(classes[event], Decision())
