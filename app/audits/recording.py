"""From a review to an audit: a short form, a job that computes everything, and the draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.audits import audit_address
from app.shared import (
    audits_here,
    checked,
    chosen_calibrator,
    job_results,
    session,
    waiting,
)
from app.shared.emphasis import emphasis, quiet
from app.shared.labels import unique_labels
from app.shared.last_compared import last_comparison, last_recalibration
from app.shared.seen_charts import any_seen, seen_charts
from kdcal_core.audit import (
    Audit,
    AuditContent,
    AuditDrafted,
    AuditSettings,
    Baseline,
    CalibratorFacts,
    Happened,
    KeptChart,
    PendingAudit,
    Person,
    Project,
    Record,
    audit_settings,
    begin,
    charts_of_comparison,
    charts_of_recalibration,
    code_digest,
    deliver_in_background,
    drafting,
    exported_facts,
    forget_pending,
    keep_pending,
    kept_charts,
    left_behind,
    limits_of,
    make_audit,
    moment_text,
    named_facts,
    new_id,
    pending_of,
    person_text,
    since_when,
    with_moments,
    with_seen,
)
from kdcal_core.checks import CHECKS
from kdcal_core.errors import InputError
from kdcal_core.review import KnownResults, Limit, Review
from kdcal_core.text import counted, escape_markdown, printable

_PENDING = "audit_being_recorded"  # the review whose audit this session began to record
_NEW = ""  # in place of a project's id
_CHOSEN, _MADE = "audit_into_project", "audit_project_made"
_NONE = "none"  # in place of a calibrator's key
_SEEN = "Charts that you looked at with other settings are kept as you saw them. "


def recording(
    record: Record, review: Review | None, projects: Sequence[Project], who: Person
) -> None:
    """The audit that is being computed, or the form to record one of the open review."""
    pending = _pending(review)
    if pending is not None and _can_be_finished(pending):
        _follow(record, pending, who)
    elif pending is not None:
        _begun_before_an_update(pending.review, pending.title)
    elif review is not None and left_behind(session.workspace(), review.id):
        _begun_before_an_update(review.id, review.title)
    elif review is not None and audits_here.asked_to_record(review):
        _form(record, review, [one for one in projects if one.may(who, "reviewer")], who)


def is_recording(review: Review | None) -> bool:
    """Whether an audit of the open review, or one that this session began, is being computed."""
    return _pending(review) is not None or (
        review is not None and left_behind(session.workspace(), review.id)
    )


def _pending(review: Review | None) -> PendingAudit | None:
    """The audit that waits for its draft; a reload of the page finds it by the open review."""
    begun = st.session_state.get(_PENDING)
    ids = dict.fromkeys(one for one in (begun, review and review.id) if one)
    waiting_ones = (pending_of(session.workspace(), one) for one in ids)
    return next((one for one in waiting_ones if one is not None), None)


def _can_be_finished(pending: PendingAudit) -> bool:
    """Whether its result is there, or this kdcal began it."""
    job = waiting.find(pending.asked.key)
    return pending.code == code_digest() or (job is not None and job.state == "done")


def _begun_before_an_update(review_id: str, title: str) -> None:
    """Say that an audit was cut off, and offer to begin it again."""
    st.warning(
        f"The audit {escape_markdown(title, 80)} was being computed when kdcal was updated. It "
        "cannot be finished, and nothing of it was recorded. Begin it again with this version.",
        icon=":material/update:",
    )
    if st.button("Begin it again", key="audit_again", type=emphasis(), icon=":material/replay:"):
        forget_pending(session.workspace(), review_id)
        st.session_state.pop(_PENDING, None)
        audits_here.ask_to_record(session.current_review())
        st.rerun()


def _follow(record: Record, pending: PendingAudit, who: Person) -> None:
    """The progress of the computation; the draft once it is done."""
    with st.container(border=True):
        st.subheader(f"Recording the audit {escape_markdown(pending.title, 80)}", anchor=False)
        job = job_results.finished(pending.asked, pending.review)
        found = None if job is None else job_results.result_of(job, make_audit)
        if found is None:
            running = waiting.find(pending.asked.key)
            if running is None or running.finished:
                _give_up(pending)
            return
        try:
            audit = _draft(record, pending, found, who)
        except (InputError, OSError):
            _give_up(pending)
            raise  # the app reports it
    st.session_state.pop(_PENDING, None)
    if audit is None:  # another tab wrote it
        st.rerun()
    deliver_in_background(record)
    audits_here.ask_to_record(None)
    audit_address.open_to_work(pending.project, audit.id)


def _draft(record: Record, pending: PendingAudit, found: AuditContent, who: Person) -> Audit | None:
    """The draft of what was computed; None where another session has written it."""
    with drafting(session.workspace(), pending) as waits:
        if not waits:
            return None
        return record.draft(
            pending.project,
            replace(
                found,
                title=pending.title,
                calibrator=pending.calibrator,
                charts=with_seen(found.charts, pending.charts),
            ),
            who,
            begun=pending.begun,
            audit=pending.audit,
        )


def _give_up(pending: PendingAudit) -> None:
    if st.button("Do not record it", key="audit_give_up", type="tertiary"):
        forget_pending(session.workspace(), pending.review)
        st.session_state.pop(_PENDING, None)
        st.rerun()


def _form(record: Record, review: Review, projects: Sequence[Project], who: Person) -> None:
    with st.container(border=True):
        st.header("Record an audit", anchor=False)
        left, right = st.columns(2)
        with left:
            into = _project(projects, review)
        project, name = into or (None, "")
        title = right.text_input(
            "Title", value=review.title[:200], max_chars=200, key=f"audit_title_{review.id}"
        )
        limits = _limits(review)
        lock = None if project is None else project.lock_of(limits)
        st.markdown(f"{_icon(lock, review)} {escape_markdown(lock_text(lock, review), 600)}")
        calibrator = _calibrator(review)
        settings = _settings(review)
        with st.container(horizontal=True):
            begun = st.button(
                "Record the audit",
                key="audit_begin",
                type=emphasis(),
                icon=":material/history_edu:",
                disabled=settings is None or into is None,
            )
            locked = _lock_popover(review, disabled=lock is not None or into is None)
            if st.button("Close", key="audit_form_close", type="tertiary"):
                audits_here.ask_to_record(None)
                st.rerun()
        which = audit_settings(review).which
        st.caption(
            f"Every check, estimate and chart is computed on the "
            f"{counted(review.sets[which].n_rows, 'row')} of the {which} set. This takes from "
            "seconds to minutes, and you can go on working meanwhile. "
            f"{_compared_words(review)}{_SEEN * any_seen(review)}The audit keeps no rows."
        )
        if not begun and locked is None:
            return
        try:
            if locked is not None:
                kept = project or record.create(name, who)
                record.lock(kept.id, limits, who, note=locked)
                st.session_state[_MADE] = kept.id
            elif settings is not None:
                _begin(record, review, settings, calibrator, project, name, title, who)
        except (InputError, OSError) as error:
            session.error_box(error, of_action=True)
            return
        st.rerun()


def _limits(review: Review) -> dict[str, Limit]:
    """Every limit that an audit of this review holds its checks against."""
    return limits_of(review.task, given=review.question.limits)


def _project(
    projects: Sequence[Project], review: Review
) -> tuple[Project, str] | tuple[None, str] | None:
    """The chosen project, or None with the name of a new one; None until one is chosen."""
    named = {one.id: one for one in projects}
    labels = unique_labels(["New project", *(printable(one.name, 80) for one in projects)])
    texts = dict(zip((_NEW, *named), labels, strict=True))
    options = [*named, _NEW]
    key = f"{_CHOSEN}_{review.id}"
    if (made := st.session_state.pop(_MADE, None)) in named:
        st.session_state[key] = made
    usual = _usual(projects, review) if named else _NEW
    chosen = st.selectbox(
        "Project",
        options,
        index=None if usual is None else options.index(usual),
        format_func=texts.__getitem__,
        placeholder="Choose a project",
        key=key,
    )
    if chosen is None:
        return None
    if chosen != _NEW:
        return named[chosen], ""
    name = st.text_input("Name of the new project", max_chars=200, key="audit_new_project")
    return None, name


def _usual(projects: Sequence[Project], review: Review) -> str | None:
    """The project that last had an audit of this review; else of its model; else of its task.

    Before one of its task comes the one that last locked these limits.
    """
    rows = review.sets[audit_settings(review).which].digest
    model = rows if review.model is None else review.model.digest

    def nearness(facts: AuditDrafted) -> int:
        if facts.rows == rows:
            return 4
        if facts.model == model:
            return 3
        asked = [CHECKS[code] for code in facts.limits if code in CHECKS]
        return int(all(review.task in one.tasks for one in asked))

    found = [
        (nearness(one.facts), one.drafted.when.at, project.id)
        for project in projects
        for one in project.audits.values()
    ]
    limits = _limits(review)
    locks = ((project.lock_of(limits), project.id) for project in projects)
    found += [(2, lock.when.at, project) for lock, project in locks if lock is not None]
    nearest, _, usual = max(found, default=(0, "", ""))
    return usual if nearest else None


def lock_text(lock: Happened | None, review: Review) -> str:
    """Whether the limits were chosen before the results, and what the audit will say of it."""
    known = _known(lock, review)
    if lock is None and not known:
        return (
            "The limits of this review are not locked in the project. This machine knows no "
            "results of these rows yet: lock the limits now, if the audit is to say that they were "
            "fixed before."
        )
    results = f"results of these rows have been known {with_moments(known)}"
    if lock is None:
        return (
            f"The limits of this review are not locked in the project, and {results}. The audit "
            "will say so."
        )
    locked = (
        f"The limits of this review were locked by entry {lock.number} on "
        f"{moment_text(lock.when.at)}, by {person_text(lock.who)}"
    )
    if known:
        return f"{locked}, but {results}. The audit will say so."
    return f"{locked}, before this machine knew results of these rows."


def _known(lock: Happened | None, review: Review) -> str:
    """Since when this machine has known results of the rows that will be judged; or empty."""
    rows = review.sets[audit_settings(review).which].known_as
    return since_when(lock, KnownResults().read(), rows)[0]


def _icon(lock: Happened | None, review: Review) -> str:
    beforehand = lock is not None and not _known(lock, review)
    return ":material/lock:" if beforehand else ":material/lock_open:"


def _lock_popover(review: Review, *, disabled: bool) -> str | None:
    """A note for the record if the limits are to be locked now; None otherwise."""
    with st.popover("Lock these limits", icon=":material/lock:", type=quiet(), disabled=disabled):
        st.markdown(
            f"The limits of {counted(len(_limits(review)), 'check')} will be fixed in the "
            "project: those that you set on Overview, and the defaults of the other checks. An "
            "audit with the same limits will say that they were locked. A lock cannot be taken "
            "back."
        )
        note = st.text_input("Note (optional)", max_chars=500, key="audit_lock_note")
        if st.button("Lock them", key="audit_lock", type=emphasis()):
            return note
    return None


def _calibrator(review: Review) -> CalibratorFacts | None:
    """The calibrator that was chosen for the model, or that none was; the audit says which."""
    known = chosen_calibrator.choices(review)
    last = chosen_calibrator.last_exported(review)
    first = _NONE if last is None else last.record.settings.key
    texts = unique_labels(["None: the model is used as it is", *known.values()])
    labels = dict(zip((_NONE, *known), texts, strict=True))
    left, right = st.columns(2, vertical_alignment="bottom")
    key: str = left.selectbox(
        "Chosen calibrator",
        list(labels),
        index=list(labels).index(first) if first in labels else 0,
        format_func=labels.__getitem__,
        key=f"audit_calibrator_{review.id}",
        help="It is kept beside the results, which are those of the model as it is. To audit its "
        "output, name its file in the configuration of a gate, or load its output as predictions.",
    )
    if key == _NONE:
        right.caption("The audit says that none was chosen.")
        return None
    run = chosen_calibrator.export_of(review, key)
    facts = named_facts(key) if run is None else exported_facts(run)
    if facts.digest:
        how = f"With its file, SHA-256 {facts.digest[:12]}, and what it gains."
    elif review.task == "regression":
        how = "By its name. A recalibrator has no file."
    else:
        how = "By its name: no file of it is written yet. Choose and export writes one."
    right.caption(f"{how} The numbers of the audit stay those of the model without it.")
    return facts


def _compared_words(review: Review) -> str:
    """Whether a comparison of calibrators or recalibrators is kept, too; a sentence."""
    if review.task == "regression":
        record, what, page = last_recalibration(review), "recalibrator", "Recalibration"
        n = 0 if record is None else len(record.methods) - 1
    else:
        run, what, page = last_comparison(review), "calibrator", "Compare"
        n = 0 if run is None else len(run.comparison.methods) - 1
    if not n:
        return ""
    return f"The comparison of {counted(n, what)} that is on the page {page} is kept as it is. "


def _compared(review: Review) -> tuple[KeptChart, ...]:
    """The charts of that comparison."""
    if review.task == "regression":
        record = last_recalibration(review)
        return () if record is None else charts_of_recalibration(record)
    run = last_comparison(review)
    return () if run is None else charts_of_comparison(run)


def _settings(review: Review) -> AuditSettings | None:
    """What the audit asks; None while the baseline of the limits is measured, or has no answer."""
    settings = audit_settings(review)
    if not any(one.against == "baseline" for one in settings.limits.values()):
        return settings
    compared = checked.baseline(review)
    if compared.why_not:
        st.warning(compared.why_not, icon=":material/link_off:")
    if compared.measured is None or not compared.complete or compared.why_not:
        return None
    baseline = Baseline(compared.name, compared.digest, compared.measured)
    return replace(settings, baseline=baseline)


def _begin(
    record: Record,
    review: Review,
    settings: AuditSettings,
    calibrator: CalibratorFacts | None,
    project: Project | None,
    name: str,
    title: str,
    who: Person,
) -> None:
    """Start the computation. The draft adds title and calibrator, which change no number."""
    if not title.strip():
        raise InputError("An audit needs a title", fix="Write one.")
    settings = replace(settings, rows_key=record.rows_key())
    asked = make_audit.request(session.workspace(), review, settings)
    kept = project or record.create(name, who)
    record.require_draft(kept, who)  # before minutes of computing
    begun = begin(record.project(kept.id), _limits(review), review, settings.which)
    keep_pending(
        session.workspace(),
        PendingAudit(
            *(review.id, asked, kept.id, title, new_id(), begun, calibrator, code_digest()),
            charts=(*_compared(review), *kept_charts(seen_charts(review))),
        ),
    )
    st.session_state[_PENDING] = review.id
    job_results.begin(asked, review.id)
