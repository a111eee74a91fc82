"""The rate of the event in a new table: its estimates, what each assumes, and which to believe."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kdcal_core.audit.watch_limits import WithLabels
from kdcal_core.audit.watch_result import Watch
from kdcal_core.diagnostics import Estimate, LabelFree, LabelShift, estimate_text, value_text
from kdcal_core.text import counted, listed, printable


@dataclass(frozen=True)
class EventRates:
    """The estimates of one rate. Each without labels denies what the other takes for granted.

    Attributes
    ----------
    event : str
        Its name, without characters that cannot be printed.
    by_scores : Estimate
        From reference rows that resemble the new ones (covariate shift). No number where the
        reference rows do not cover the new ones.
    by_shares : Estimate
        From the shares of the classes (label shift).
    from_labels : Estimate or None
    reference : Estimate
        On the reference rows, from their labels.
    stated : float
        Mean of the probabilities of the reference rows, with which ``by_shares`` is compared.
    alike : {"scores", "features"}
        In what reference rows resemble the new ones.
    misfit : str
        That label shift is ruled out, as a sentence; empty where it is not.
    calibrated : bool
        Whether the probabilities of the event are calibrated on the reference rows, as far as its
        test shows.
    n_new : int
    """

    event: str
    by_scores: Estimate
    by_shares: Estimate
    from_labels: Estimate | None
    reference: Estimate
    stated: float
    alike: str
    misfit: str
    calibrated: bool
    n_new: int

    @property
    def contradict(self) -> bool:
        """Whether the intervals of the two estimates without labels exclude each other."""
        return _apart(self.by_scores, self.by_shares)


def event_rates(watch: Watch) -> EventRates | None:
    """The estimates of the event's rate; None without an event, or without one of the two."""
    if watch.shares is None or watch.forecasts is not None or watch.performance.event is None:
        return None
    return _rates(watch, watch.performance.event, watch.shares)


def _rates(watch: Watch, by_scores: LabelFree, by_shares: LabelShift) -> EventRates:
    at = watch.classes.index(watch.asked_event)
    return EventRates(
        event=printable(watch.asked_event, 60),
        by_scores=by_scores.rate.rows,
        by_shares=by_shares.shares[at],
        from_labels=watch.labels.rate if isinstance(watch.labels, WithLabels) else None,
        reference=by_scores.rate.reference,
        stated=float(by_shares.reference_prior[at]),
        alike="features" if by_scores.weighted_by == "features" else "scores",
        misfit=by_shares.misfit,
        calibrated=at not in by_shares.miscalibrated,
        n_new=by_scores.n_new,
    )


def _apart(one: Estimate, other: Estimate) -> bool:
    """Whether two intervals have no number in common; no where one is unknown."""
    return one.low > other.high or other.low > one.high


def disputed_rate(watch: Watch) -> str:
    """That the two estimates of the event's rate exclude each other; empty where they do not.

    This is a finding: at least one of the two assumptions fails.
    """
    found = event_rates(watch)
    if found is None or not found.contradict:
        return ""
    if found.misfit:
        return (
            f"The rate of {found.event} is {_said(found.by_scores)} by the {found.alike}. "
            f"{found.misfit} {_verdict(found)}"
        )
    scored, shared = (_said(one) for one in (found.by_scores, found.by_shares))
    return (
        f"The rate of {found.event} is {scored} by the {found.alike} and {shared} by the classes' "
        f"shares: at least one of their assumptions is wrong. {_verdict(found)}"
    )


def _said(one: Estimate) -> str:
    return estimate_text(one, chance=False)


def _verdict(found: EventRates) -> str:
    """What the labels or the calibration of the reference rows say about a contradiction."""
    if found.from_labels is not None:
        each = {f"by the {found.alike}": found.by_scores, "by the shares": found.by_shares}
        wrong = [by for by, one in each.items() if _apart(one, found.from_labels)]
        contradicts = f"contradicts the estimate {listed(wrong)}" if wrong else "fits both"
        n, said = counted(found.from_labels.n, "label"), _said(found.from_labels)
        return f"The rate in {n}, {said}, {contradicts}."
    if not found.calibrated and not found.misfit:
        return (
            "The estimate by the shares also assumes that the probabilities of the reference rows "
            "are calibrated, and they are not."
        )
    return "Only labels show which." if not found.misfit else "Only labels show the rate."


def rate_views(found: EventRates) -> tuple[tuple[str, str], ...]:
    """Each estimate of the rate: its value, and what it assumes and when to believe it.

    The second text continues the first as a sentence. Untrusted text.
    """
    event, alike, views = found.event, found.alike, []
    if math.isfinite(found.by_scores.value):
        views.append(
            (
                _said(found.by_scores),
                f"by the {alike} (covariate shift): assumes that rows with equal {alike} have the "
                f"same chance of {event} in both tables. Believe it where other kinds of rows "
                f"come, such as customers of another region, and what leads to {event} is the "
                "same as before.",
            )
        )
    more = "" if found.calibrated else ", which they are not: calibrate first"
    out = ", which is ruled out here" if found.misfit else ""
    views.append(
        (
            _said(found.by_shares),
            f"by the classes' shares (label shift){out}: assumes that rows of each class look the "
            "same in both tables, and that the probabilities are calibrated on the reference rows"
            f"{more}. Believe it where {event} itself has become more or less frequent, such as a "
            "disease in an epidemic, and shows in the same way as before.",
        )
    )
    if found.from_labels is not None:
        n = found.from_labels.n
        rows = "all new rows" if n == found.n_new else counted(n, "new row")
        early = "" if n == found.n_new else f", if those of {event} come as soon as the others"
        views.append(
            (
                _said(found.from_labels),
                f"from the labels of {rows}: needs neither assumption. Believe it first{early}.",
            )
        )
    return tuple(views)


def reference_rates_words(found: EventRates) -> str:
    """Why the rate of the reference rows has two values. Untrusted text."""
    agree = (
        "" if found.contradict else " The estimates without labels do not contradict each other."
    )
    return (
        f"Of the reference rows, {_said(found.reference)} are {found.event} by their labels, and "
        f"the mean of their probabilities is {value_text(found.reference, found.stated)}. The "
        f"estimate by the {found.alike} is compared with the former, the one by the classes' "
        f"shares with the latter.{agree}"
    )
