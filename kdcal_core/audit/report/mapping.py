"""Items of guidelines on models, their validation and their reports, and what answers them.

Items are in our own words, by their number or heading. An item that no number can answer says what
a person must write, and one that we did not compare with the guideline's own text says that a
person must check its wording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kdcal_core.audit.content import AuditContent
from kdcal_core.audit.events import AuditApproved
from kdcal_core.audit.project import Audit
from kdcal_core.audit.report.sections import answer_text
from kdcal_core.checks import evidence_text, found_text
from kdcal_core.text import counted, in_sentence, listed

Says = Callable[[AuditContent, Audit | None], str]


def _nothing(content: AuditContent, audit: Audit | None) -> str:
    return ""


@dataclass(frozen=True)
class Item:
    """One item of a guideline.

    Attributes
    ----------
    number : str
        Its number or heading in the guideline.
    asks : str
        What it asks for, in our own words.
    says : callable
        ``(content, audit) -> what this report says``, which may be empty. It may hold names.
    person : str
        What a person must write; empty where the report says it all.
    compared : bool
        Whether ``asks`` was compared with the guideline's own text, and not only with its headings.
    """

    number: str
    asks: str
    says: Says = _nothing
    person: str = ""
    compared: bool = True


@dataclass(frozen=True)
class Guideline:
    """A guideline with its items."""

    name: str
    title: str
    link: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Answer:
    """An item with what the report says of it. Untrusted text."""

    item: Item
    says: str


def answers(guideline: Guideline, content: AuditContent, audit: Audit | None) -> tuple[Answer, ...]:
    """Every item of a guideline, answered from an audit."""
    return tuple(
        Answer(one, one.says(content, audit) or ("" if one.person else _UNEXAMINED))
        for one in guideline.items
    )


_UNEXAMINED = "This audit did not examine it."


def _check(content: AuditContent, code: str) -> str:
    """The answer of a check in a sentence; empty where it was not made or not answered."""
    for one in content.checked.results:
        if one.code == code and one.parts:
            return f"{one.check.title}: {one.verdict}. {answer_text(one)}"
    return ""


def _checks(content: AuditContent, *codes: str) -> str:
    return " ".join(filter(None, (_check(content, code) for code in codes)))


def _rows(content: AuditContent, audit: Audit | None) -> str:
    tables = [
        f"{counted(one.n_rows, 'row')} ({one.part})"
        for one in content.subject.tables
        if one.part != "foreign"
    ]
    few = [
        f"{one.check.title}: {in_sentence(evidence_text(one, one.worst))}"
        for one in content.checked.of("not enough evidence")
    ]
    unsure = f" Not enough evidence: {' '.join(few)}" if few else ""
    roles = content.subject.roles
    together = ""
    if column := roles.cluster or roles.time:
        how = "are of one cluster where" if roles.cluster else "are in time in the order of"
        together = f" Rows {how} {column!r}{' is the same' if roles.cluster else ''}."
    return f"{listed(tables)}. {_check(content, 'KC202')}{together}{unsure}"


def _outcome(content: AuditContent, audit: Audit | None) -> str:
    subject = content.subject
    target = f"The outcome is the column {subject.roles.target!r}. " if subject.roles.target else ""
    if subject.task == "regression":
        return f"{target}It is a number."
    event = f" The event is {subject.event!r}." if subject.event is not None else ""
    return f"{target}It has {counted(len(subject.classes), 'class', 'classes')}.{event}"


def _measures(content: AuditContent, audit: Audit | None) -> str:
    titles = [in_sentence(one.check.title) for one in content.checked.results]
    charts = [in_sentence(one.title) for one in content.charts]
    return (
        f"Checks: {listed(titles, len(titles))}. Charts: {listed(charts, len(charts))}. "
        "Sections 4, 6 and 7 say how each is computed."
    )


def _updating(content: AuditContent, audit: Audit | None) -> str:
    tried = _checks(content, "KC103", "KC123")
    chosen = content.calibrator
    if chosen is None:
        return f"No calibrator was chosen with this audit. {tried}"
    return f"The calibrator {chosen.title} was chosen. {chosen.finding} {tried}"


def _predictions(content: AuditContent, audit: Audit | None) -> str:
    model = content.subject.model
    if model is None:
        found = "The predictions were read from a table; how they were computed is not known here."
    else:
        found = (
            f"kdcal computed them from the file {model.name!r} ({model.kind}, SHA-256 "
            f"{model.digest})."
        )
    chosen = content.calibrator
    if chosen is None or not chosen.rows:
        return found
    return (
        f"{found} Judged is what the calibrator of the file {chosen.title!r} (SHA-256 "
        f"{chosen.digest}) makes of them."
    )


def _groups(content: AuditContent, audit: Audit | None) -> str:
    groups = content.subject.groups
    if not groups:
        return "No groups were declared, so that performance in groups was not judged."
    return f"Declared groups: {listed(groups)}. {_checks(content, 'KC008', 'KC025')}"


def _places(content: AuditContent, audit: Audit | None) -> str:
    return _checks(content, "KC007", "KC024", "KC008", "KC025")


def _sets(content: AuditContent, audit: Audit | None) -> str:
    return _checks(content, "KC201", "KC011", "KC010")


def _missing(content: AuditContent, audit: Audit | None) -> str:
    return _check(content, "KC203")


def _code(content: AuditContent, audit: Audit | None) -> str:
    code = content.code
    return f"kdcal {code.kdcal}, SHA-256 of its files {code.digest}, seed {content.seed}."


def _performance(content: AuditContent, audit: Audit | None) -> str:
    found = [f"{one.label} {found_text(one)}" for one in content.estimates[:6]]
    shown = f" Among the estimates: {listed(found, 6, between=';')}." if found else ""
    return f"{content.headline}{shown} Sections 3 and 6 have all, with intervals."


def _limitations(content: AuditContent, audit: Audit | None) -> str:
    unanswered = [in_sentence(one.check.title) for one in content.checked.of(None)]
    without = f"Checks without an answer: {listed(unanswered, 20)}." if unanswered else ""
    doubts = " ".join(content.subject.doubts)
    return " ".join(filter(None, (without, doubts and f"Doubts about the data: {doubts}")))


def _plan(content: AuditContent, audit: Audit | None) -> str:
    if audit is None or audit.facts.locked is None:
        return "No entry of a record locked the limits beforehand."
    known = audit.facts.results_known
    when = f"after results were known {known}" if known else "before any result in the record"
    return f"Entry {audit.facts.locked} of the record locked the limits, {when}."


def _second_person(content: AuditContent, audit: Audit | None) -> str:
    if audit is None:
        return "No record holds this audit, so that nobody has approved it."
    drafted, approved = audit.drafted.who, audit.last(AuditApproved)
    said = f"The audit is {audit.state}. {drafted.name} recorded it ({drafted.believed})."
    if approved is None:
        return said
    who = approved.who
    checked = drafted.identity is not None and who.identity is not None
    another = (
        ", another person who signed in," if checked and who.identity != drafted.identity else ""
    )
    return f"{said} {who.name}{another} approved it ({who.believed})."


def _findings(content: AuditContent, audit: Audit | None) -> str:
    if audit is None or not audit.findings:
        return "The record has no findings on this audit."
    left = sum(one.state == "open" for one in audit.findings.values())
    return f"The record has {counted(len(audit.findings), 'finding')}, of which {left:,} open."


def _judged(content: AuditContent, audit: Audit | None) -> str:
    which = content.subject.which
    rows = next(one.n_rows for one in content.subject.tables if one.part == which)
    some = f"{content.checked.n:,} of {counted(rows, 'row')} of the {which} set were judged."
    return f"{some} Rows that were left out before the table was made are not known here."


def _apart(content: AuditContent, audit: Audit | None) -> str:
    roles = content.subject.roles
    if not roles.features or not roles.target:
        return ""
    read = roles.target in roles.features
    return (
        f"The column of the outcome, {roles.target!r}, is {'' if read else 'not '}among the "
        f"{counted(len(roles.features), 'column')} that the model reads."
    )


def _discrimination(content: AuditContent, audit: Audit | None) -> str:
    known = [one for one in content.estimates if one.label.startswith(("AUROC", "Accuracy"))]
    found = [f"{one.label} {found_text(one)}" for one in known[:4]]
    shown = f" Discrimination: {listed(found, 4, between=';')}." if found else ""
    return f"{_checks(content, *_CALIBRATION)}{shown}".strip()


_CALIBRATION = ("KC001", "KC002", "KC004", "KC101", "KC021", "KC022")
"""Checks of calibration and of discrimination, of either task."""


def _uncertain(content: AuditContent, audit: Audit | None) -> str:
    level = f"{content.checked.level:.0%}"
    return (
        f"Every estimate has an interval. Verdicts hold at {level} for all checks together: they "
        "allow for their number."
    )


def _signed(content: AuditContent, audit: Audit | None) -> str:
    model = content.subject.model
    return "" if model is None or not model.signature else f"{model.signature}."


def _all_of(*says: Says) -> Says:
    """What several say, in one text."""
    return lambda content, audit: " ".join(filter(None, (one(content, audit) for one in says)))


def _again(content: AuditContent, audit: Audit | None) -> str:
    return (
        f"{_code(content, audit)} Section 7 has the command that makes the audit again; the same "
        "files give the same bytes."
    )


def _baseline(content: AuditContent, audit: Audit | None) -> str:
    if content.baseline is None:
        return _check(content, "KC011")
    return f"Limits compare with the baseline {content.baseline.name!r}. {_check(content, 'KC011')}"


def _verdict(content: AuditContent, audit: Audit | None) -> str:
    return f"Verdict: {content.checked.verdict}. {content.headline}"


def _aim(content: AuditContent, audit: Audit | None) -> str:
    return "This report evaluates a model, and does not develop one."


def _prepared(content: AuditContent, audit: Audit | None) -> str:
    return _checks(content, "KC203", "KC201")


def _predictors(content: AuditContent, audit: Audit | None) -> str:
    features = content.subject.roles.features
    return f"Columns that the model reads: {listed(features, 20)}." if features else ""


def _division(content: AuditContent, audit: Audit | None) -> str:
    subject = content.subject
    tables = [f"{one.part} ({counted(one.n_rows, 'row')})" for one in subject.tables]
    return f"Tables: {listed(tables)}. Judged is the {subject.which} set."


def _kind(content: AuditContent, audit: Audit | None) -> str:
    model = content.subject.model
    return "" if model is None else f"The model is of the kind {model.kind}."


def _output(content: AuditContent, audit: Audit | None) -> str:
    subject = content.subject
    if subject.task == "regression":
        return "The model states a distribution of the outcome."
    return f"The model states a probability of each class: {listed(subject.classes, 20)}."


def _identity(content: AuditContent, audit: Audit | None) -> str:
    model = content.subject.model
    return "" if model is None else f"The file {model.name!r} has the SHA-256 {model.digest}."


TRIPOD = Guideline(
    "TRIPOD+AI",
    "Collins et al. (2024), TRIPOD+AI statement",
    "https://doi.org/10.1136/bmj-2023-078378",
    (
        Item(
            "1",
            "A title that names the model, whom it is for and what it predicts.",
            person="The title of the study.",
            compared=False,
        ),
        Item(
            "2",
            "An abstract with the items of TRIPOD+AI for abstracts.",
            person="The abstract.",
            compared=False,
        ),
        Item(
            "3a",
            "The setting and why the model is needed, beside models that exist.",
            person="Setting, reasons and other models.",
            compared=False,
        ),
        Item(
            "3b",
            "Whom the model is meant for, for what, and who uses it.",
            person="Target population, purpose and users.",
            compared=False,
        ),
        Item(
            "3c",
            "Known inequalities between groups of people.",
            person="Known inequalities.",
            compared=False,
        ),
        Item(
            "4",
            "The aims, and whether a model is developed, evaluated or both.",
            _aim,
            person="The aims of the study.",
            compared=False,
        ),
        Item(
            "5a",
            "Where the data of development and evaluation come from, and whom they represent.",
            person="Source of the data, why they were used, whom they represent.",
        ),
        Item(
            "5b",
            "When the data were collected.",
            person="Dates of collection and of follow-up.",
            compared=False,
        ),
        Item(
            "6a",
            "Where the data were collected, and in how many centres.",
            person="Setting and centres.",
            compared=False,
        ),
        Item(
            "6b",
            "Who could take part.",
            person="Criteria of eligibility.",
            compared=False,
        ),
        Item(
            "6c",
            "Treatments that were received, and how they were handled.",
            person="Treatments, if any matter.",
            compared=False,
        ),
        Item(
            "7",
            "How the data were prepared and their quality was checked.",
            _prepared,
            person="Preparation before these tables were made.",
            compared=False,
        ),
        Item(
            "8a",
            "The predicted outcome: definition, time horizon, how it was assessed.",
            _outcome,
            "Definition, time horizon and assessment of the outcome.",
        ),
        Item(
            "8b",
            "Who assessed an outcome that needs judgement.",
            person="Assessors of the outcome, if it needs judgement.",
            compared=False,
        ),
        Item(
            "8c",
            "What was done so that the outcome was assessed blind.",
            person="Blinding of the outcome's assessment.",
            compared=False,
        ),
        Item(
            "9a",
            "How the first predictors were chosen.",
            person="Choice of predictors.",
            compared=False,
        ),
        Item(
            "9b",
            "All predictors: definition, when and how they were measured.",
            _predictors,
            person="How and when predictors were measured.",
            compared=False,
        ),
        Item(
            "9c",
            "Who assessed predictors that need judgement.",
            person="Assessors of predictors, if any need judgement.",
            compared=False,
        ),
        Item(
            "10",
            "How the number of rows came about, and whether it is enough.",
            _rows,
            "Why this number of rows.",
        ),
        Item(
            "11",
            "What was done about missing values.",
            _missing,
            "How missing values were handled before these tables were made.",
        ),
        Item(
            "12a",
            "How the data were divided and used.",
            _division,
            person="Division of the data during development.",
            compared=False,
        ),
        Item(
            "12b",
            "How predictors were coded and transformed.",
            person="Coding of predictors in the model.",
            compared=False,
        ),
        Item(
            "12c",
            "The kind of model, how it was built and tuned, and its internal validation.",
            _kind,
            person="Building, tuning and internal validation.",
            compared=False,
        ),
        Item(
            "12d",
            "How differences between clusters, such as hospitals, were handled.",
            _groups,
            "Which clusters there are.",
        ),
        Item("12e", "All measures and plots of performance, with reasons.", _measures),
        Item(
            "12f",
            "Updating of the model, such as recalibration, after the evaluation.",
            _updating,
            "Which updating is planned, for whom.",
        ),
        Item("12g", "How the predictions that are evaluated were computed.", _predictions),
        Item(
            "13",
            "Methods for rare classes, and what corrected the probabilities afterwards.",
            _updating,
            person="Whether rare classes were weighted or resampled.",
            compared=False,
        ),
        Item(
            "14",
            "What was done for fairness, and why.",
            _groups,
            "Measures for fairness, and their reasons.",
        ),
        Item(
            "15",
            "What the model gives out, and how thresholds were chosen.",
            _output,
            person="Why the thresholds were chosen.",
            compared=False,
        ),
        Item(
            "16",
            "Differences between the data of development and of evaluation.",
            _sets,
            "Differences in setting, eligibility, outcome and predictors.",
        ),
        Item(
            "17",
            "Approval by an ethics committee, and consent.",
            person="Approval and consent.",
            compared=False,
        ),
        Item(
            "18a",
            "Funding, and the role of those who fund.",
            person="Funding.",
            compared=False,
        ),
        Item(
            "18b",
            "Conflicts of interest.",
            person="Conflicts of interest.",
            compared=False,
        ),
        Item(
            "18c",
            "Where the protocol of the study is.",
            _plan,
            "The protocol, or that there is none.",
        ),
        Item(
            "18d",
            "Where the study is registered.",
            person="The registration, or that there is none.",
            compared=False,
        ),
        Item(
            "18e",
            "Whether and where the data are available.",
            person="Availability of the data.",
            compared=False,
        ),
        Item("18f", "Where the code of the analysis is.", _code, "Where others find the code."),
        Item(
            "19",
            "How patients and the public took part.",
            person="Their part, or that there was none.",
            compared=False,
        ),
        Item(
            "20a",
            "The flow of participants, with and without the outcome.",
            person="The flow of participants and their follow-up.",
            compared=False,
        ),
        Item(
            "20b",
            "Characteristics of the participants, overall and by source.",
            person="Characteristics and missing values.",
            compared=False,
        ),
        Item(
            "20c",
            "Predictors and outcome beside those of the data of development.",
            _sets,
            person="Distributions beside the data of development.",
            compared=False,
        ),
        Item(
            "21",
            "How many participants and events each analysis has.",
            _rows,
            "Numbers for the development of the model.",
        ),
        Item(
            "22",
            "The whole model, so that others can predict with it.",
            _identity,
            person="Where others get the model.",
            compared=False,
        ),
        Item("23a", "Performance with intervals, also in important subgroups.", _performance),
        Item("23b", "Differences in performance between clusters, where examined.", _places),
        Item("24", "Results of updating the model.", _updating),
        Item(
            "25",
            "What the results mean, fairness included.",
            _verdict,
            "The interpretation, beside earlier studies.",
        ),
        Item(
            "26",
            "Limitations, and what they do to the results.",
            _limitations,
            "Limitations of the study.",
        ),
        Item(
            "27a",
            "What is done with poor or missing input where the model is used.",
            _missing,
            person="Handling of poor input.",
            compared=False,
        ),
        Item(
            "27b",
            "Whether users handle input or output, and what they must know.",
            person="The part and the skills of users.",
            compared=False,
        ),
        Item(
            "27c",
            "Next steps of research, and where else the results hold.",
            person="Next steps.",
            compared=False,
        ),
    ),
)

_ANSWER = "The answer, from yes to no; the question's wording is in the article."


def _question(domain: str, asks: str, says: Says = _nothing) -> Item:
    """A theme of the signalling questions, whose wording and number a person must look up."""
    return Item(f"Questions on {domain}", asks, says, _ANSWER, compared=False)


SIGNALLING = (
    _question(
        "participants: sources and inclusion",
        "Whether the sources of the data and the inclusion of rows are appropriate.",
        _all_of(_division, _judged),
    ),
    _question(
        "participants: development and evaluation",
        "Whether the rows of the evaluation are none on which the model was developed.",
        _sets,
    ),
    _question(
        "predictors: definition and time",
        "Whether predictors are defined alike for all rows, known when the model is used, and "
        "assessed without knowledge of the outcome.",
        _predictors,
    ),
    _question(
        "the outcome: definition and assessment",
        "Whether the outcome is defined beforehand, in the same way for all rows, and assessed "
        "without knowledge of the predictors.",
        _outcome,
    ),
    _question(
        "the outcome: predictors in it",
        "Whether predictors are left out of the definition of the outcome.",
        _apart,
    ),
    _question(
        "the analysis: rows and events",
        "Whether there are enough rows with the outcome.",
        _rows,
    ),
    _question(
        "the analysis: rows left out",
        "Whether all rows that belong to the evaluation are in it.",
        _judged,
    ),
    _question(
        "the analysis: missing values",
        "Whether missing values were handled appropriately.",
        _missing,
    ),
    _question(
        "the analysis: predictions",
        "Whether the evaluated predictions are those of the model, computed as where it is used.",
        _predictions,
    ),
    _question(
        "the analysis: calibration and discrimination",
        "Whether calibration and discrimination were both measured, with their uncertainty.",
        _all_of(_discrimination, _uncertain),
    ),
    _question(
        "the analysis: groups",
        "Whether performance was measured in groups of people that matter.",
        _groups,
    ),
    _question(
        "the analysis: fixed beforehand",
        "Whether measures and limits were chosen before results were known.",
        _plan,
    ),
    Item(
        "Other signalling questions",
        "The article has 18 for the evaluation of a model, which also ask what no table can say, "
        "such as blinding, censoring and the time between predictors and outcome.",
        person="The answers to the others, and the rating of each domain.",
        compared=False,
    ),
)

PROBAST = Guideline(
    "PROBAST+AI",
    "Moons et al. (2025), PROBAST+AI, the part on evaluating a model",
    "https://doi.org/10.1136/bmj-2024-082505",
    (
        Item(
            "Domain: participants and data sources",
            "Whether the data suit the evaluation of this model.",
            _sets,
            "Sources of the data, and who was included.",
        ),
        Item(
            "Domain: predictors",
            "Whether predictors were defined and measured alike for all, and are known in time.",
            person="How and when predictors were measured.",
        ),
        Item(
            "Domain: outcome",
            "Whether the outcome was determined well, and without knowledge of the predictors.",
            _outcome,
            "How the outcome was determined.",
        ),
        Item(
            "Domain: analysis",
            "Whether there were enough rows and events, missing values were handled well, and "
            "discrimination and calibration were both measured.",
            lambda content, audit: " ".join(
                filter(
                    None,
                    (
                        _check(content, "KC202"),
                        _missing(content, audit),
                        _checks(content, "KC101", "KC001", "KC004", "KC021", "KC022"),
                    ),
                )
            ),
            "The rating of the risk of bias.",
        ),
        Item(
            "Applicability: participants and data sources",
            "Whether these rows are of the people and setting for which the model is meant.",
            _sets,
            "The rating of applicability.",
        ),
        Item(
            "Applicability: predictors",
            "Whether predictors are defined and measured as where the model is meant to be used.",
            _predictors,
            "The rating of applicability.",
        ),
        Item(
            "Applicability: outcome",
            "Whether the outcome is the one for which the model is meant.",
            _outcome,
            "The rating of applicability.",
        ),
        *SIGNALLING,
    ),
)

SR = Guideline(
    "SR 26-2",
    "Federal Reserve, SR 26-2 (2026), Revised Guidance on Model Risk Management, section V",
    "https://www.federalreserve.gov/supervisionreg/srletters/SR2602.htm",
    (
        Item(
            "Conceptual soundness",
            "Whether design, data and assumptions of the model suit its purpose.",
            person="Purpose, design, assumptions and their limits.",
        ),
        Item(
            "Outcomes analysis",
            "What the model stated against what happened.",
            _verdict,
        ),
        Item(
            "Ongoing monitoring",
            "Whether the model still works as products, customers and data change.",
            _baseline,
            "How often the model is audited again, and what triggers it sooner.",
        ),
    ),
)

SS = Guideline(
    "SS1/23",
    "Prudential Regulation Authority, SS1/23 (2023), Model risk management principles for banks",
    "https://www.bankofengland.co.uk/prudential-regulation/publication/2023/may/"
    "model-risk-management-principles-for-banks-ss",
    (
        Item(
            "Principle 3.3",
            "Tests of performance and stability while a model is developed.",
            _sets,
            "Tests of the developers.",
        ),
        Item(
            "Principle 4.1",
            "A function of validation that is independent and effective.",
            person="Who validates, with which independence and authority.",
            compared=False,
        ),
        Item(
            "Principle 4.2",
            "An independent review of inputs, calculations and outputs of the model, of its "
            "soundness for its purpose, and of the evidence from its development.",
            _all_of(_second_person, _plan, _verdict, _findings),
            "Why the reviewers are independent of the developers; soundness, and the evidence of "
            "the development.",
            compared=False,
        ),
        Item(
            "Principle 4.3",
            "A check that inputs are right and representative, that code and systems compute "
            "what is intended, and that reports are accurate and complete.",
            _all_of(_prepared, _signed, _predictions, _again),
            "The check of the process and the systems in which the model is used.",
            compared=False,
        ),
        Item(
            "Principle 4.4",
            "Monitoring of performance against limits.",
            lambda content, audit: f"{_verdict(content, audit)} {_plan(content, audit)}",
            "The plan of monitoring.",
        ),
        Item(
            "Principle 4.5",
            "Validation again from time to time.",
            person="When the model is validated again.",
        ),
        Item(
            "Principle 5.1",
            "Adjustments after the model, such as a calibrator, are justified and reviewed.",
            _updating,
            "Who reviews the adjustment, and until when it holds.",
        ),
    ),
)

GUIDELINES = (TRIPOD, PROBAST, SR, SS)
