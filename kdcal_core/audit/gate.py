"""Gates: an audit without a browser, which passes, fails, or says that the rows do not decide."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kdcal_core.audit.beginning import Begun, begin
from kdcal_core.audit.bounds import require_name
from kdcal_core.audit.calibrated import (
    FITTED_THERE,
    Calibrated,
    ask_calibrated,
    copies_of,
    of_sources,
)
from kdcal_core.audit.config import AuditConfig, Undecided, read_config, toml_option
from kdcal_core.audit.content import (
    AuditContent,
    Baseline,
    CalibratorFacts,
    failures,
    read_content,
)
from kdcal_core.audit.events import AuditApproved, Person
from kdcal_core.audit.junit import Case, junit_text
from kdcal_core.audit.making import AuditSettings, limits_of, make_audit
from kdcal_core.audit.project import Audit, Project
from kdcal_core.audit.record import Record
from kdcal_core.audit.signing import digest
from kdcal_core.checks import (
    CHECKS,
    MeasuredCheck,
    Verdict,
    evidence_text,
    result_text,
)
from kdcal_core.data import Roles, Task
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.models.model_signature import verified_signature
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.review import (
    Limit,
    NamedFiles,
    Question,
    Review,
    Which,
    Workspace,
    check_files,
    event_of,
    need,
    scored_review,
    set_question,
)
from kdcal_core.store import encode
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks import Request, equal_sets
from kdcal_core.text import listed

LATEST = "latest"
_SECONDS = 24 * 3600.0
_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "not enough evidence": 3}
JSON_FORMAT = 1
"""Of `gate_json`: increased when a field is renamed or removed or changes its meaning."""


@dataclass(frozen=True)
class Gate:
    """The result of a gate.

    Attributes
    ----------
    content : AuditContent
    exit_code : int
        0 pass, 1 fail, 3 not enough evidence, unless the configuration counts that as either.
    project, audit : str
        Where it is in the record; empty if it is in none.
    receipt : dict or None
        That the record gave for it.
    """

    content: AuditContent
    exit_code: int
    project: str = ""
    audit: str = ""
    receipt: dict[str, Any] | None = None

    @property
    def verdict(self) -> Verdict:
        """Of all checks together."""
        return self.content.checked.verdict


def run_gate(
    config: AuditConfig,
    *,
    record: Record | None = None,
    who: Person | None = None,
    progress: Progress | None = None,
) -> Gate:
    """Audit what a configuration names.

    If the configuration names a project, who may not draft audits in it is refused at once, and
    limits are locked in its record before anything is computed. Files are read, and the model is
    run, in processes with limits.

    Parameters
    ----------
    record : Record, optional
        By default that of this machine, opened only if a project is named.
    who : Person, optional
        By default this machine's key where it is a member of the project, else the user of the
        operating system.

    Raises
    ------
    InputError
        For input that cannot be used: nothing is recorded then but the lock.
    """
    started = start_gate(config, record, who)
    with gate_folder() as folder:
        loaded = load_gate(config, str(folder), progress=part_of(progress, 0.0, 0.2))
        asked = ask_gate(started, loaded)
        content = judge_gate(
            config, loaded, asked.settings, str(folder), progress=part_of(progress, 0.2, 1.0)
        )
    return end_gate(started, asked, content)


@dataclass(frozen=True)
class StartedGate:
    """A gate whose names, rights, baselines and signature were checked."""

    config: AuditConfig
    record: Record | None
    who: Person | None
    earlier: Sequence[Callable[[], bytes]]
    signature: str


@dataclass(frozen=True)
class LoadedGate:
    """The rows of a gate, read and scored, in a workspace in its folder."""

    review: Review
    calibrated: Calibrated | None


@dataclass(frozen=True)
class AskedGate:
    """What a gate asks, its limits locked in the record if there is one."""

    settings: AuditSettings
    project: Project | None
    begun: Begun


def start_gate(config: AuditConfig, record: Record | None, who: Person | None) -> StartedGate:
    """Check what can be checked before a file is read; parameters and errors of `run_gate`."""
    require_name(config.title, "An audit")  # before hours of computing
    if config.project:
        require_name(config.project, "A project")
    if config.project or config.baseline == LATEST:
        record = record or Record()
    if record is not None and config.project:
        known = record.named(config.project)
        who = who or record.acting(known)
        if known is not None:
            record.require_draft(known, who)
        else:
            record.require_writable()
    return StartedGate(config, record, who, _baselines(config, record), verified(config))


def load_gate(config: AuditConfig, folder: str, progress: Progress = silent) -> LoadedGate:
    """Read and score the rows, in any process that sees the files; see `gate_folder`."""
    workspace = Workspace(Path(folder) / "reviews")
    files, calibrated = judged_files(config, workspace, Path(folder), part_of(progress, 0.0, 0.5))
    if calibrated is not None:
        calibrated.require_new_rows()
    check_files(files)
    review = with_question(workspace, scored_review(workspace, files), config, files)
    return LoadedGate(review, calibrated)


def ask_gate(started: StartedGate, loaded: LoadedGate) -> AskedGate:
    """Lock the limits in the record, where there is one, before anything is measured."""
    config, review, record, who = started.config, loaded.review, started.record, started.who
    event = None if config.view == "confidence" else review.event
    baseline = _first_alike(started.earlier, review, event) if started.earlier else None
    limits = limits_of(review.task, config.codes, config.limits)
    _require_of_task(config.required, review.task)
    project = None
    if record is not None and who is not None and config.project:
        project = _locked(record, config.project, limits, who)
    which: Which = "evaluation" if review.has_evaluation else "calibration"
    begun = begin(project, limits, review, which)
    settings = AuditSettings(
        title=config.title,
        which=which,
        event=event,
        groups=config.groups,
        limits=limits,
        codes=tuple(limits),
        required=config.required,
        baseline=baseline,
        signature=started.signature,
    )
    return AskedGate(settings, project, begun)


def judge_gate(
    config: AuditConfig,
    loaded: LoadedGate,
    settings: AuditSettings,
    folder: str,
    progress: Progress = silent,
) -> AuditContent:
    """Compute the audit, in any process that sees the folder in which the rows were loaded."""
    place, calibrated = Path(folder), loaded.calibrated
    workspace = Workspace(place / "reviews")
    if calibrated is not None:
        apart = _apart(config, workspace, calibrated, place, part_of(progress, 0.0, 0.1))
        settings = replace(settings, measured=apart)
    request = make_audit.request(workspace, loaded.review, settings)
    content = make_audit.read(made_apart(request, place / "audit", part_of(progress, 0.1, 1.0)))
    if calibrated is None:
        return content
    request = equal_sets.request(workspace, calibrated.source)
    equal = equal_sets.read(made_apart(request, place / "equal", silent))
    return of_sources(content, calibrated, settings, copies_of(equal))


def end_gate(started: StartedGate, asked: AskedGate, content: AuditContent) -> Gate:
    """Keep the audit in the record, where there is one."""
    code = exit_code(content.checked.verdict, started.config.undecided)
    record, project, who = started.record, asked.project, started.who
    if record is None or project is None or who is None:
        return Gate(content, code)
    audit = record.draft(project.id, content, who, begun=asked.begun)
    return Gate(content, code, project.id, audit.id, record.receipt(project.id, audit.id))


def assert_passes(config: str | Path | AuditConfig, **more: Any) -> Gate:
    """The gate for a test: an error with the failed checks unless it passes.

    Parameters
    ----------
    config : path or AuditConfig
    more
        As of `run_gate`.

    Raises
    ------
    AssertionError
        If the exit code is not 0.

    Examples
    --------
    In a file that pytest runs::

        from kdcal_core.audit import assert_passes

        def test_the_model_may_be_trusted():
            assert_passes("audit.toml")
    """
    known = config if isinstance(config, AuditConfig) else read_config(Path(config))
    gate = run_gate(known, **more)
    if gate.exit_code:
        raise AssertionError("\n".join([gate.content.headline, *failures(gate.content)]))
    return gate


def gate_json(gate: Gate) -> dict[str, Any]:
    """What the command prints as JSON; its schema is `kdcal_core/audit/gate.schema.json`."""
    content = gate.content
    return {
        "format": JSON_FORMAT,
        "kdcal": content.code.kdcal,
        "title": content.title,
        "verdict": gate.verdict,
        "exit_code": gate.exit_code,
        "headline": content.headline,
        "next_step": content.next_step,
        "doubts": list(content.subject.doubts),
        "model": encode(content.subject.model),
        "calibrator": content.calibrator
        and {"title": content.calibrator.title, "digest": content.calibrator.digest},
        "tables": [
            {"part": one.part, "name": one.name, "sha256": one.digest, "rows": one.n_rows}
            for one in content.subject.tables
        ],
        "judged": {"set": content.subject.which, "rows": content.checked.n},
        "record": {"project": gate.project, "audit": gate.audit} if gate.audit else None,
        "checks": [
            {
                "code": one.code,
                "title": one.check.title,
                "question": one.check.question,
                "verdict": one.verdict,
                "limit": limit_json(one.limit),
                "why_not": one.why_not,
                "parts": [
                    {
                        "name": part.name,
                        "label": part.estimate.label,
                        "estimator": part.estimate.name,
                        "value": finite(part.estimate.value),
                        "low": finite(part.estimate.low),
                        "high": finite(part.estimate.high),
                        "level": part.estimate.level,
                        "rows": part.estimate.n,
                        "verdict": part.verdict,
                        "rows_needed": part.rows_needed,
                    }
                    for part in one.parts
                ],
            }
            for one in content.checked.results
        ],
    }


def limit_json(limit: Limit) -> dict[str, Any]:
    """A limit in JSON; an end that is not there is null."""
    return {
        "at_least": finite(limit.low),
        "at_most": finite(limit.high),
        "against": limit.against,
    }


def finite(value: float) -> float | None:
    """A number as JSON can hold it: None where it is infinite or none."""
    return float(value) if abs(value) < float("inf") else None


def gate_junit(gate: Gate) -> str:
    """The checks as a JUnit test suite, which CI systems show.

    A check that could not be answered is skipped, unless it must be answered: then it is "not
    enough evidence", which is a failure where the gate does not pass for it, and skipped where it
    does.
    """
    undecided_fails = gate.exit_code in (1, 3) and gate.verdict == "not enough evidence"
    cases, missing = [], gate.content.checked.unanswered
    for one in gate.content.checked.results:
        name, said = f"{one.code} {one.check.title}", result_text(one)
        if one.verdict == "fail" or (one.verdict == "not enough evidence" and undecided_fails):
            more = f"{one.remedy} {evidence_text(one, one.worst)}".rstrip()
            cases.append(Case(name, "fail", said, str(one.verdict), more))
        elif one in missing and undecided_fails:
            cases.append(Case(name, "fail", said, "not enough evidence", "It must be answered."))
        else:
            cases.append(Case(name, "pass" if one.verdict == "pass" else "skip", said))
    return junit_text(f"kdcal {gate.content.title}", "kdcal.checks", cases)


def exit_code(verdict: Verdict, undecided: Undecided) -> int:
    """The exit code of a verdict, if "not enough evidence" counts as this."""
    if verdict == "not enough evidence" and undecided != "own":
        return _CODES[undecided]
    return _CODES[verdict]


@contextmanager
def gate_folder(root: Path | None = None) -> Iterator[Path]:
    """A folder for the files of one gate; in ``root``, which other processes may see."""
    with tempfile.TemporaryDirectory(
        prefix="kdcal-", dir=root, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def with_question(
    workspace: Workspace, review: Review, config: AuditConfig, files: NamedFiles
) -> Review:
    """The review with the configuration's event, groups and limits."""
    event_of(review, files)  # refuses a class that it does not have
    for column in config.groups:
        for table in review.tables.values():
            need(table, column, "The table has no such column")
    question = Question(
        event=config.event, view=config.view, groups=config.groups, limits=config.limits
    )
    set_question(workspace, review.id, question)
    return workspace.read(review.id)


def _require_of_task(codes: tuple[str, ...], task: Task) -> None:
    """Refuse checks that must be answered and are of another task."""
    for code in codes:
        if task not in CHECKS[code].tasks:
            raise InputError(
                f"The check {code} is not one of a {task}",
                fix="Take it out of checks.only and of the limits.",
            )


def _locked(record: Record, name: str, limits: dict[str, Any], who: Person) -> Project:
    """The project of this name, made if need be, with these limits locked in it."""
    project = record.named(name) or _created(record, name, who)
    if project.lock_of(limits) is None:
        record.lock(project.id, limits, who, note="by the configuration of a gate")
    return record.project(project.id)


def _created(record: Record, name: str, who: Person) -> Project:
    try:
        return record.create(name, who)
    except InputError:
        found = record.named(name)  # another gate may have created it meanwhile
        if found is None:
            raise
        return found


def _apart(
    config: AuditConfig,
    workspace: Workspace,
    calibrated: Calibrated,
    folder: Path,
    progress: Progress,
) -> tuple[MeasuredCheck, ...]:
    """The checks that a table of a calibrator's output cannot answer, but its sources may."""
    request = ask_calibrated.request(
        workspace,
        calibrated.source,
        which=calibrated.which,
        calibrator=config.calibrator,
        codes=list(config.codes or CHECKS),
    )
    found = ask_calibrated.read(made_apart(request, folder / "apart", progress)).checks
    return (*found, FITTED_THERE) if calibrated.which == "evaluation" else found


def made_apart(
    request: Request, found: Path, progress: Progress, what: str = "Computing the audit"
) -> Path:
    """The folder with the result of a task, computed in a process of its own."""
    found.mkdir()
    run_limited(
        request.target,
        {**request.kwargs},
        folder=found,
        seconds=_SECONDS,
        progress=progress,
        what=what,
    )
    return found


def judged_files(
    config: AuditConfig,
    workspace: Workspace,
    folder: Path,
    progress: Progress,
    suffix: str = ".csv",
) -> tuple[NamedFiles, Calibrated | None]:
    """The files to audit; with a calibrator, its output on the judged rows as predictions.

    Parameters
    ----------
    suffix : {".csv", ".parquet"}
        Of the table of its output; Parquet keeps the kind of each column.
    """
    if config.calibrator is None:
        return config.files, None
    files = config.files
    if not files.target or not Path(config.calibrator).is_file():
        raise InputError("There is no such file", fix="Check its path.", file=config.calibrator)
    check_files(files)
    review = scored_review(workspace, files)
    which: Which = "evaluation" if review.has_evaluation else "calibration"
    source = files.evaluation or files.data or files.predictions or ""
    stated = {column for _, column in (review.roles or Roles()).outputs}
    scored = folder / f"calibrated{suffix}"
    found = run_limited(
        "kdcal_core.calibration.export.score_table:score_table",
        {
            "calibrator": config.calibrator,
            "data": source,
            "out": str(scored),
            "suffix": scored.suffix,
            "model": files.model,
            "outputs": [list(pair) for pair in files.outputs or ()],
            "output_kind": files.output_kind,
            "keep": [one for one in review.tables[which].column_names if one not in stated],
        },
        seconds=_SECONDS,
        progress=progress,
        what="Scoring the table",
    )
    classes = tuple(found["classes"])
    judged = replace(
        files,
        model=None,
        data=None,
        predictions=str(scored),
        evaluation=None,
        training=None,
        foreign=(),
        classes=None,
        outputs=tuple((name, f"proba_{name}") for name in classes),
        output_kind="probability",
        option=toml_option,
    )
    facts = CalibratorFacts(
        key=Path(config.calibrator).stem,
        title=Path(config.calibrator).name,
        digest=digest_of(Path(config.calibrator)),
        finding="The audit judges this calibrator's output in place of the model's.",
        model=digest_of(Path(files.model)) if files.model else "",
        rows=digest_of(Path(source)),
    )
    return judged, Calibrated(review, which, facts, frozenset(found["fitted_on"].values()))


def verified(config: AuditConfig) -> str:
    """What is known of the model's signature once it is verified; empty where none is given."""
    if config.signature is None:
        return ""
    if config.files.model is None:
        raise InputError("A signature is given, and no model", fix="Give files.model.")
    key = Path(config.signature_key) if config.signature_key else None
    return verified_signature(Path(config.files.model), Path(config.signature), key)


def _first_alike(
    earlier: Sequence[Callable[[], bytes]], review: Review, event: int | None
) -> Baseline:
    """The first of the earlier audits that asked the same; the first one's error without any."""
    errors = []
    for read in earlier:
        stored = read()
        content = read_content(stored)
        try:
            _require_alike(content, review, event)
        except InputError as error:
            errors.append(error)
        else:
            return Baseline(content.title, digest(stored), content.measured)
    if len(errors) == 1:
        raise errors[0]
    raise InputError(
        f"None of the {len(errors):,} approved audits asked what this audit asks. The latest: "
        f"{errors[0].what}",
        fix="Approve one that asks the same, or name its file as the baseline.",
    )


def _require_alike(content: AuditContent, review: Review, event: int | None) -> None:
    """Refuse an earlier audit of another task, other classes, or another event or view."""
    subject, named = content.subject, f"The baseline {content.title[:80]!r}"
    if subject.task != review.task:
        raise InputError(
            f"{named} is of a {subject.task}, and this audit of a {review.task}",
            fix="Name an audit of the same task.",
        )
    if sorted(subject.classes) != sorted(review.classes):
        theirs, ours = (
            listed([repr(one[:40]) for one in names], 5)
            for names in (subject.classes, review.classes)
        )
        raise InputError(
            f"{named} has the classes {theirs}, and this audit {ours}",
            fix="Name an audit of the same classes.",
        )
    asked = None if event is None else review.classes[event]
    if subject.event != asked:
        theirs, ours = (
            "the confidence in the predicted class" if one is None else f"the event {one[:40]!r}"
            for one in (subject.event, asked)
        )
        raise InputError(
            f"{named} judges {theirs}, and this audit {ours}",
            fix="Name an audit of the same event and view.",
        )


def _baselines(config: AuditConfig, record: Record | None) -> list[Callable[[], bytes]]:
    """What reads the earlier audits that limits may compare with, the preferred one first."""
    if config.baseline == LATEST:
        assert record is not None
        files = record.files
        return [partial(files.get, one.facts.content) for one in _approved(config, record)]
    if not config.baseline:
        return []
    path = Path(config.baseline)
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The baseline cannot be read ({error.strerror or error})",
            fix="Name the file audit.json of an earlier audit.",
            file=path.name,
        ) from error
    return [lambda: stored]


def _approved(config: AuditConfig, record: Record) -> list[Audit]:
    """The project's approved audits whose files are there, the one approved last first."""
    project = record.named(config.project) if config.project else None
    approved = [
        (found.number, one)
        for one in (project.audits.values() if project is not None else ())
        if one.state == "approved" and one.has_files and (found := one.last(AuditApproved))
    ]
    if not approved:
        raise InputError(
            "There is no approved audit that limits could compare with",
            fix="Approve one in the project, or name a file as the baseline.",
        )
    return [one for _, one in sorted(approved, key=lambda pair: pair[0], reverse=True)]


def json_text(gate: Gate) -> str:
    """`gate_json` as text."""
    return json.dumps(gate_json(gate), indent=2, allow_nan=False) + "\n"
