"""What an audit says of the themes that guidelines ask about."""

from __future__ import annotations

from kdcal_core.audit.content import AuditContent
from kdcal_core.audit.events import AuditApproved
from kdcal_core.audit.project import Audit
from kdcal_core.audit.report.guidelines.guideline import Says
from kdcal_core.audit.report.sections import answer_text
from kdcal_core.checks import evidence_text, found_text
from kdcal_core.diagnostics import has_interval
from kdcal_core.text import counted, in_sentence, listed


def check_answer(content: AuditContent, code: str) -> str:
    """The answer of a check in a sentence; empty where it was not made or not answered."""
    for one in content.checked.results:
        if one.code == code and one.parts:
            return f"{one.check.title}: {one.verdict}. {answer_text(one)}"
    return ""


def check_answers(content: AuditContent, *codes: str) -> str:
    """The answers of several checks."""
    return " ".join(filter(None, (check_answer(content, code) for code in codes)))


def numbers_of_rows(content: AuditContent, audit: Audit | None) -> str:
    """How many rows there are, and where they are too few."""
    tables = [
        f"{counted(one.n_rows, 'row')} ({one.part})"
        for one in content.subject.tables
        if one.part != "foreign"
    ]
    few = [
        f"{in_sentence(one.check.title)} ({in_sentence(evidence_text(one, one.worst)).rstrip('.')})"
        for one in content.checked.of("not enough evidence")
    ]
    unsure = f" Checks that lack evidence: {listed(few, len(few), between=';')}." if few else ""
    roles = content.subject.roles
    together = ""
    if column := roles.cluster or roles.time:
        how = "are of one cluster where" if roles.cluster else "are in time in the order of"
        together = f" Rows {how} {column!r}{' is the same' if roles.cluster else ''}."
    return f"{listed(tables)}. {check_answer(content, 'KC202')}{together}{unsure}"


def outcome(content: AuditContent, audit: Audit | None) -> str:
    """What is predicted."""
    subject = content.subject
    roles = subject.roles
    target = f"The outcome is the column {roles.target!r}. " if roles.target else ""
    if roles.judges_right:
        target = f"The outcome is whether {roles.predicted!r} is the class of {roles.target!r}. "
    if subject.task == "regression":
        return f"{target}It is a number."
    event = f" The event is {subject.event!r}." if subject.event is not None else ""
    return f"{target}It has {counted(len(subject.classes), 'class', 'classes')}.{event}"


def measures(content: AuditContent, audit: Audit | None) -> str:
    """The checks and charts."""
    titles = [in_sentence(one.check.title) for one in content.checked.results]
    charts = [in_sentence(one.title) for one in content.charts]
    return (
        f"Checks: {listed(titles, len(titles), between=';')}. Charts: "
        f"{listed(charts, len(charts), between=';')}. "
        "Sections 4, 6 and 7 say how each is computed."
    )


def updating(content: AuditContent, audit: Audit | None) -> str:
    """What calibrators were tried, and whether one was chosen."""
    tried = check_answers(content, "KC103", "KC123")
    chosen = content.calibrator
    if chosen is None:
        return f"No calibrator was chosen with this audit. {tried}"
    return f"The calibrator {chosen.title} was chosen. {chosen.finding} {tried}"


def how_predicted(content: AuditContent, audit: Audit | None) -> str:
    """Where the predictions come from."""
    model = content.subject.model
    if model is None:
        files = sum(one.files for one in content.subject.tables)
        where = f"a folder of {counted(files, 'file')}" if files else "a table"
        found = f"The predictions were read from {where}; how they were computed is not known here."
    else:
        found = (
            f"kdcal computed the predictions from the file {model.name!r} ({model.kind}, SHA-256 "
            f"{model.digest})."
        )
    chosen = content.calibrator
    if chosen is None or not chosen.rows:
        return found
    return (
        f"{found} The calibrator of the file {chosen.title!r} (SHA-256 {chosen.digest}) changed "
        "them, and what it gives was judged."
    )


def groups(content: AuditContent, audit: Audit | None) -> str:
    """Performance in declared groups."""
    groups = content.subject.groups
    if not groups:
        return "No groups were declared, so performance in groups was not judged."
    return f"Declared groups: {listed(groups)}. {check_answers(content, 'KC008', 'KC025')}"


def places(content: AuditContent, audit: Audit | None) -> str:
    """Performance in regions and groups."""
    return check_answers(content, "KC007", "KC024", "KC008", "KC025")


def sets_alike(content: AuditContent, audit: Audit | None) -> str:
    """Differences between sets, and rows that they share."""
    return check_answers(content, "KC201", "KC011", "KC010")


def missing_values(content: AuditContent, audit: Audit | None) -> str:
    """Missing values."""
    return check_answer(content, "KC203")


def code_and_seed(content: AuditContent, audit: Audit | None) -> str:
    """The version of kdcal and the seed."""
    code = content.code
    return f"kdcal {code.kdcal}, SHA-256 of its files {code.digest}, seed {content.seed}."


def performance(content: AuditContent, audit: Audit | None) -> str:
    """The headline and the first estimates."""
    found = [f"{one.label} {found_text(one)}" for one in content.estimates[:6]]
    shown = f" Among the estimates: {listed(found, 6, between=';')}." if found else ""
    return f"{content.headline}{shown} Sections 3 and 6 have all, with intervals."


def limitations(content: AuditContent, audit: Audit | None) -> str:
    """What was not answered, and doubts."""
    unanswered = [in_sentence(one.check.title) for one in content.checked.of(None)]
    without = (
        f"Checks without an answer: {listed(unanswered, 20, between=';')}." if unanswered else ""
    )
    doubts = " ".join(content.subject.doubts)
    return " ".join(filter(None, (without, doubts and f"Doubts about the data: {doubts}")))


def limits_beforehand(content: AuditContent, audit: Audit | None) -> str:
    """Whether limits were locked before results were known."""
    if audit is None or audit.facts.locked is None:
        return "No entry of a record locked the limits beforehand."
    known = audit.facts.results_known
    when = f"after results were known {known}" if known else "before any result in the record"
    return f"Entry {audit.facts.locked} of the record locked the limits, {when}."


def second_person(content: AuditContent, audit: Audit | None) -> str:
    """Who recorded and who approved the audit."""
    if audit is None:
        return "No record holds this audit, so nobody has approved it."
    drafted, approved = audit.drafted.who, audit.last(AuditApproved)
    said = f"State of the audit: {audit.state}. {drafted.name} recorded it ({drafted.believed})."
    if approved is None:
        return said
    who = approved.who
    checked = drafted.identity is not None and who.identity is not None
    another = (
        ", another person who signed in," if checked and who.identity != drafted.identity else ""
    )
    return f"{said} {who.name}{another} approved it ({who.believed})."


def findings(content: AuditContent, audit: Audit | None) -> str:
    """The record's findings."""
    if audit is None or not audit.findings:
        return "The record has no findings on this audit."
    left = sum(one.state == "open" for one in audit.findings.values())
    return f"The record has {counted(len(audit.findings), 'finding')}, of which {left:,} open."


def rows_judged(content: AuditContent, audit: Audit | None) -> str:
    """How many rows of the set were judged."""
    which = content.subject.which
    rows = next(one.n_rows for one in content.subject.tables if one.part == which)
    some = f"{content.checked.n:,} of {counted(rows, 'row')} of the {which} set were judged."
    return f"{some} Rows that were left out before the table was made are not known here."


def outcome_apart(content: AuditContent, audit: Audit | None) -> str:
    """Whether the outcome is among the columns that the model reads."""
    roles = content.subject.roles
    if not roles.features or not roles.target:
        return ""
    read = roles.target in roles.features
    return (
        f"The column of the outcome, {roles.target!r}, is {'' if read else 'not '}among the "
        f"{counted(len(roles.features), 'column')} that the model reads."
    )


def discrimination(content: AuditContent, audit: Audit | None) -> str:
    """Calibration and discrimination."""
    known = [one for one in content.estimates if one.label.startswith(("AUROC", "Accuracy"))]
    found = [f"{one.label} {found_text(one)}" for one in known[:4]]
    shown = f" Also measured: {listed(found, 4, between=';')}." if found else ""
    return f"{check_answers(content, *CALIBRATION)}{shown}".strip()


CALIBRATION = ("KC001", "KC002", "KC004", "KC101", "KC021", "KC022")
"""Checks of calibration and of discrimination, of either task."""


def uncertainty(content: AuditContent, audit: Audit | None) -> str:
    """Intervals, and what verdicts allow for."""
    level = f"{content.checked.level:.0%}"
    bare = sum(not has_interval(one) for one in content.estimates)
    but = f", but for {bare:,} that say why they have none" if bare else ""
    return (
        f"Estimates have intervals{but}. Verdicts hold at {level} for all checks together: they "
        "allow for the number of checks."
    )


def model_signature(content: AuditContent, audit: Audit | None) -> str:
    """What is known of the model's signature."""
    model = content.subject.model
    return "" if model is None or not model.signature else f"{model.signature}."


def all_of(*says: Says) -> Says:
    """What several say, in one text."""
    return lambda content, audit: " ".join(filter(None, (one(content, audit) for one in says)))


def made_again(content: AuditContent, audit: Audit | None) -> str:
    """How the audit is made again."""
    return (
        f"{code_and_seed(content, audit)} Section 7 has the command that makes the audit again; "
        "the same files give the same bytes."
    )


def baseline(content: AuditContent, audit: Audit | None) -> str:
    """What limits compare with."""
    if content.baseline is None:
        return check_answer(content, "KC011")
    found = check_answer(content, "KC011")
    return f"Limits compare with the baseline {content.baseline.name!r}. {found}"


def verdict(content: AuditContent, audit: Audit | None) -> str:
    """The verdict."""
    return f"Verdict: {content.checked.verdict}. {content.headline}"


def aim(content: AuditContent, audit: Audit | None) -> str:
    """What this report is for."""
    return "This report evaluates a model, and does not develop one."


def preparation(content: AuditContent, audit: Audit | None) -> str:
    """Faults of the tables."""
    return check_answers(content, "KC203", "KC201")


def predictors(content: AuditContent, audit: Audit | None) -> str:
    """The columns that the model reads."""
    features = content.subject.roles.features
    return f"Columns that the model reads: {listed(features, 20)}." if features else ""


def division(content: AuditContent, audit: Audit | None) -> str:
    """The tables and which one is judged."""
    subject = content.subject
    tables = [f"{one.part} ({counted(one.n_rows, 'row')})" for one in subject.tables]
    return f"Tables: {listed(tables)}. The {subject.which} set was judged."


def kind_of_model(content: AuditContent, audit: Audit | None) -> str:
    """The kind of the model."""
    model = content.subject.model
    return "" if model is None else f"Kind of model: {model.kind}."


def model_output(content: AuditContent, audit: Audit | None) -> str:
    """What the model states."""
    subject = content.subject
    if subject.task == "regression":
        return "The model states a distribution of the outcome."
    return f"The model states a probability of each class: {listed(subject.classes, 20)}."


def identity_of_model(content: AuditContent, audit: Audit | None) -> str:
    """The model's file and digest."""
    model = content.subject.model
    return "" if model is None else f"The file {model.name!r} has the SHA-256 {model.digest}."
