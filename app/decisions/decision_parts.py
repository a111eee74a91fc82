"""The parts of the Decisions page: threshold, errors, net benefit, cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from app.shared import session, set_results, tiles
from app.shared.charts import drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.follow import follow
from app.shared.seen_charts import seen
from app.shared.version_choice import choose_version
from kdcal_core.audit import audit_settings
from kdcal_core.charts import (
    Chart,
    cost_chart,
    decision_words,
    decisions_chart,
    net_benefit_chart,
    rates_chart,
)
from kdcal_core.diagnostics import (
    Costs,
    DecisionCounts,
    best_threshold,
    decision_rates,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Decision, Review, Which, set_decision
from kdcal_core.tasks import RepairedDecisions, repaired_decisions, set_decisions, threshold_of
from kdcal_core.text import escape_label, escape_markdown, in_sentence, printable

_RARE = 0.05  # an event less frequent than this needs a finer scale of thresholds


@dataclass(frozen=True)
class Decided:
    """What the page shows: the rows, the event, the threshold, and whose probabilities decide.

    ``counts`` are those of the model as it is; ``repaired`` those of the calibrated version that
    decides instead, and ``method`` its key.
    """

    review: Review
    which: Which
    event: int
    threshold: float
    counts: DecisionCounts
    method: str | None = None
    repaired: RepairedDecisions | None = None

    @property
    def deciding(self) -> DecisionCounts:
        """The counts of the version that decides."""
        return self.counts if self.repaired is None else self.repaired.counts

    @property
    def deciding_by(self) -> str:
        """ "model", or the key of the calibrator whose probabilities decide."""
        return (self.method if self.repaired is not None else None) or "model"

    @property
    def name(self) -> str:
        """The event's name; untrusted text."""
        return self.review.classes[self.event]

    @property
    def of(self) -> str:
        """The subject of downloaded files."""
        return f"{self.review.title} {self.which} {self.name}"


def choose_event(review: Review) -> int:
    """The class whose probability decides: the review's event, or one chosen here."""
    default = review.event
    if default is not None:
        return default
    chosen: int = st.selectbox(
        "Class to flag",
        options=range(len(review.classes)),
        index=review.event_class or 0,
        format_func=lambda at: f"Flag: {review.classes[at][:80]}",
        key=f"decisions_event_{review.id}",
        persist_state="session",
        label_visibility="collapsed",
        width=150,
    )
    return chosen


def decided(review: Review, which: Which, event: int) -> Decided | None:
    """The counts at every threshold, and the chosen threshold; None while a job counts."""
    counts = set_results.of(review, set_decisions, which=which, event=event)
    if counts is None:
        return None
    if not 0.0 < counts.rate < 1.0:
        name = escape_markdown(review.classes[event], 60)
        st.info(
            f"Of these rows {'all' if counts.rate else 'none'} are {name}, so no threshold can "
            "be judged: that needs rows with the event and rows without it.",
            icon=":material/info:",
        )
        return None
    decision = _decision(review, event)
    threshold = threshold_of(counts, decision)
    scale, key = _Scale.of(counts.rate, threshold), _slider(review, event)
    name = printable(review.classes[event], 60)
    # not as a default, because the button below the costs sets it too, and until somebody chooses
    # a threshold it follows the costs and the set
    if decision.threshold is not None:
        threshold = st.session_state.get(key, 100.0 * threshold) / 100.0
    follow(key, scale.percent(threshold))
    percent: float = st.slider(
        escape_label(f"Flag a row where the probability of {name} is at least", 120),
        min_value=scale.step,
        max_value=scale.top,
        step=scale.step,
        format=scale.form,
        key=key,
        persist_state="session",
        on_change=_keep_threshold,
        args=(review.id, review.classes[event], key),
        width=420 if len(review.classes) == 2 else 280,  # the choice of a class stands there too
    )
    if decision.threshold is None:
        st.caption(f"No threshold is chosen yet. {_start_words(decision, name)}", width=220)
    return Decided(review, which, event, percent / 100.0, counts)


def _start_words(decision: Decision, name: str) -> str:
    if decision.costs:
        return "This one follows from the costs below."
    return f"This one is the share of the rows of class {escape_markdown(name, 60)}."


def _slider(review: Review, event: int) -> str:
    return f"decisions_threshold_{review.id}_{event}"


@dataclass(frozen=True)
class _Scale:
    """The slider's thresholds, in percent: finer where the event is rare."""

    step: float
    top: float
    decimals: int

    @classmethod
    def of(cls, rate: float, threshold: float) -> _Scale:
        """For an event of this rate, at least as far as a threshold."""
        rare = rate < _RARE
        step, decimals = (0.01, 2) if rare else (0.1, 1)
        top = max(float(np.ceil(rate * 20 * 100)), 1.0) if rare else 99.9
        return cls(step, min(max(top, 100.0 * threshold), 99.9), decimals)

    def percent(self, threshold: float) -> float:
        """The nearest place on the slider."""
        return min(max(round(100.0 * threshold, self.decimals), self.step), self.top)

    @property
    def form(self) -> str:
        """The numbers' printf format."""
        return f"%.{self.decimals}f%%"


def _decision(review: Review, event: int) -> Decision:
    """What the review holds about this class."""
    return review.question.decision_of(review.classes, event)


def _keep_threshold(review_id: str, name: str, key: str) -> None:
    """Callback: the threshold just chosen becomes the review's."""
    with session.reporting_errors():
        threshold = st.session_state[key] / 100.0
        set_decision(session.workspace(), review_id, name, threshold=threshold)


def answer(view: Decided) -> Decided:
    """What the threshold does: a sentence, the decision curve, and the four rates beside it.

    Returns the view with the calibrated version, where one is chosen.
    """
    headline = st.empty()
    picture, estimates = tiles.answer()
    with picture:
        view = _worth(view)
    sentence = decision_words(view.deciding, view.threshold, escape_markdown(view.name, 60))
    if view.repaired is not None:
        sentence = f"With {escape_markdown(view.repaired.name)}: {in_sentence(sentence)}"
    headline.header(sentence, anchor=False)
    with estimates:
        *rates, _ = decision_rates(view.deciding, view.threshold)
        tiles.estimate_column([one for one in rates if one.n])
    return view


def _worth(view: Decided) -> Decided:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Is the model worth using?", anchor=False)
        method = choose_version(view.review, "decisions")
    repaired = _repaired(view, method)
    chosen = replace(view, method=method, repaired=repaired)
    of_version: dict[str, Any] = {
        "repaired": None if repaired is None else repaired.counts,
        "gained": None if repaired is None else repaired.gained,
        "repaired_name": "" if repaired is None else repaired.name,
        "repaired_by": method or "",
    }
    titled = "net_benefit", "Net benefit by threshold"
    _seen(chosen, *titled, net_benefit_chart, view.counts, view.threshold, **of_version)
    show(
        drawn_once(net_benefit_chart, view.counts, view.threshold, dark=is_dark(), **of_version),
        key="net_benefit",
        of=view.of,
    )
    return chosen


def _seen(
    view: Decided, key: str, title: str, make: Callable[..., Chart], *args: Any, **kwargs: Any
) -> None:
    """Note a chart for an audit, which itself draws those of the model and the review's event."""
    begins = audit_settings(view.review)
    if view.repaired is None and (view.which, view.event) == (begins.which, begins.event):
        return
    whose = "the model as it is" if view.repaired is None else view.repaired.name
    settings = f"{view.name[:60]} by {whose}, from {view.threshold:.4g}; {view.which} set"
    seen(view.review, key, title, "decisions", make, *args, settings=settings, **kwargs)


def consequences(view: Decided) -> None:
    """The cost at every threshold, beside the confusion table of this one."""
    left, right = st.columns([5, 3], gap="small")
    with left.container(border=True, height="stretch"):
        _cost(view)
    with right.container(border=True, height="stretch"):
        _decisions(view)


_HERE, _EVERYWHERE = "At this threshold", "At every threshold"


def _decisions(view: Decided) -> None:
    """The confusion table of the threshold, or the rates of all thresholds."""
    st.subheader("Rows by truth and decision", anchor=False)
    names = (f"not {view.name}"[:80], view.name) if len(view.review.classes) > 2 else (
        view.review.classes[1 - view.event], view.name,
    )  # fmt: skip
    titled = "decisions", "Decisions at the threshold"
    _seen(view, *titled, decisions_chart, view.deciding, view.threshold, names)
    by = view.deciding_by
    titled = "rates", "Sensitivity and specificity by threshold"
    _seen(view, *titled, rates_chart, view.deciding, view.threshold, by=by)
    shown = st.segmented_control(
        "Thresholds",
        [_HERE, _EVERYWHERE],
        default=_HERE,
        required=True,
        key="decisions_shown",
        label_visibility="collapsed",
    )
    if shown == _EVERYWHERE:
        chart = drawn_once(rates_chart, view.deciding, view.threshold, dark=is_dark(), by=by)
        show(chart, key="decision_rates", of=view.of, finding=False)
        return
    if view.review.roles is not None and view.review.roles.weight is not None:
        whole = view.deciding.mass[:, 0].sum()
        st.caption(f"Cells add up the rows' weights: {whole:,.0f} over {view.deciding.n:,} rows.")
    show(
        drawn_once(decisions_chart, view.deciding, view.threshold, names, dark=is_dark()),
        key="decision_confusion",
        of=view.of,
        finding=False,
    )


def _repaired(view: Decided, method: str | None) -> RepairedDecisions | None:
    if method is None:
        return None
    return set_results.of(
        view.review, repaired_decisions, which=view.which, event=view.event, method=method
    )


def _cost(view: Decided) -> None:
    st.subheader("Which threshold costs least?", anchor=False)
    known = _decision(view.review, view.event).costs
    given = ", ".join(
        f"{label.lower()} {known[field]:g}" for label, field in _CASES if known.get(field)
    )
    label = f"Costs: {given or 'assumed equal'}"
    with st.popover(label, icon=":material/tune:", type=quiet(), key="decision_costs"):
        costs = _costs(view)
    if costs is None:
        return
    by = view.deciding_by
    titled = "cost", "Mean cost by threshold"
    _seen(view, *titled, cost_chart, view.deciding, costs, view.threshold, by=by, given=bool(known))
    show(
        drawn_once(
            cost_chart,
            view.deciding,
            costs,
            view.threshold,
            dark=is_dark(),
            by=by,
            given=bool(known),
        ),
        key="expected_cost",
        of=view.of,
    )
    if known:
        scale = _Scale.of(view.counts.rate, view.threshold)
        percent = scale.percent(best_threshold(view.deciding, costs).advised(costs))
        st.button(
            f"Use {scale.form % percent} as the threshold",
            icon=":material/my_location:",
            on_click=_use,
            args=(view, percent),
        )
    if view.repaired is None:
        whose = "the model as it is. A calibrated version, chosen above, has its own best threshold"
    else:
        whose = f"{escape_markdown(view.repaired.name)}, on rows that it was not fitted on"
    st.caption(f"Costs and thresholds here are those of {whose}.")


def _use(view: Decided, percent: float) -> None:
    """Callback: a threshold that the page found becomes the chosen one."""
    key = _slider(view.review, view.event)
    st.session_state[key] = percent
    _keep_threshold(view.review.id, view.name, key)


_CASES = (
    ("Missed event", "false_negative"),
    ("False alarm", "false_positive"),
    ("Found event", "true_positive"),
    ("Correctly not flagged", "true_negative"),
)


def _costs(view: Decided) -> Costs | None:
    """The four costs as written; None if they determine no threshold."""
    st.caption("Cost of a row in each case, in any unit. Write a benefit as a negative number.")
    known = Costs(**_decision(view.review, view.event).costs)
    keys = {field: f"decisions_cost_{field}_{view.review.id}_{view.event}" for _, field in _CASES}
    values = {
        field: st.number_input(
            label,
            value=getattr(known, field),
            key=keys[field],
            persist_state="session",
            on_change=_keep_costs,
            args=(view.review.id, view.name, keys),
        )
        for label, field in _CASES
    }
    if not _decision(view.review, view.event).costs:
        st.button(
            "These are the costs",
            icon=":material/check:",
            on_click=_keep_costs,
            args=(view.review.id, view.name, keys),
        )
    try:
        return Costs(**values)
    except InputError as error:
        session.error_box(error)
        return None


def _keep_costs(review_id: str, name: str, keys: dict[str, str]) -> None:
    """Callback: the costs just written become the review's, if they make a decision."""
    values = {field: st.session_state[key] for field, key in keys.items()}
    try:
        Costs(**values)
    except InputError:  # the page says what is wrong with them
        return
    with session.reporting_errors():
        set_decision(session.workspace(), review_id, name, costs=values)
