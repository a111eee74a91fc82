"""Gates: an audit without a browser, which passes, fails, or says that the rows do not decide."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdcal_core.audit.asked import AuditSettings, limits_of
from kdcal_core.audit.beginning import Begun, begin
from kdcal_core.audit.bounds import require_name
from kdcal_core.audit.config import AuditConfig, Undecided, read_config
from kdcal_core.audit.content import AuditContent, failures
from kdcal_core.audit.events import Person
from kdcal_core.audit.gate_baselines import LATEST, earlier_audits, first_alike
from kdcal_core.audit.gate_files import LoadedFiles, load_files, verified
from kdcal_core.audit.gate_summary import LoadedSummary, load_summary
from kdcal_core.audit.project import Project
from kdcal_core.audit.record import Record
from kdcal_core.checks import CHECKS, Verdict
from kdcal_core.data import Task
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.review import Decision, Which
from kdcal_core.review.folder_review import is_folder

Loaded = LoadedFiles | LoadedSummary
"""What a gate loaded: the rows of files, or the summary of a folder of them."""

_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "not enough evidence": 3}


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
    locked, results_known
        As of `AuditDrafted`.
    """

    content: AuditContent
    exit_code: int
    project: str = ""
    audit: str = ""
    receipt: dict[str, Any] | None = None
    locked: int | None = None
    results_known: str = ""

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
        loaded = load_gate(config, str(folder), part_of(progress, 0.0, 0.2), spread=True)
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
class AskedGate:
    """What a gate asks, its limits locked in the record if there is one."""

    settings: AuditSettings
    project: Project | None
    begun: Begun


def start_gate(
    config: AuditConfig, record: Record | None = None, who: Person | None = None
) -> StartedGate:
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
    return StartedGate(config, record, who, earlier_audits(config, record), verified(config))


def load_gate(
    config: AuditConfig, folder: str, progress: Progress = silent, *, spread: bool = False
) -> Loaded:
    """Read the rows, in any process that sees the files; see `gate_folder`.

    ``spread`` is as of `kdcal_core.audit.gate_summary.load_summary`.
    """
    if is_folder(config.files):
        return load_summary(config, folder, progress, spread=spread)
    return load_files(config, folder, progress)


def ask_gate(started: StartedGate, loaded: Loaded) -> AskedGate:
    """Lock the limits in the record, where there is one, before anything is measured."""
    config, review, record, who = started.config, loaded.review, started.record, started.who
    event = None if config.view == "confidence" else review.event
    if event is None and config.decision != Decision():
        raise InputError(
            "[decision] is about an event, and this audit judges none",
            fix="Name the event under [roles], or leave the table out.",
        )
    baseline = first_alike(started.earlier, review, event) if started.earlier else None
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
        decision=config.decision,
        limits=limits,
        codes=tuple(limits),
        required=config.required,
        baseline=baseline,
        signature=started.signature,
        rows_key=record.rows_key() if record is not None and project is not None else "",
    )
    return AskedGate(settings, project, begun)


def judge_gate(
    config: AuditConfig,
    loaded: Loaded,
    settings: AuditSettings,
    folder: str,
    progress: Progress = silent,
) -> AuditContent:
    """Compute the audit, in any process that sees the folder in which the rows were loaded."""
    return loaded.judge(config, settings, folder, progress)


def end_gate(started: StartedGate, asked: AskedGate, content: AuditContent) -> Gate:
    """Keep the audit in the record, where there is one."""
    code = exit_code(content.checked.verdict, started.config.undecided)
    record, project, who = started.record, asked.project, started.who
    if record is None or project is None or who is None:
        return Gate(content, code)
    audit = record.draft(project.id, content, who, begun=asked.begun)
    receipt, facts = record.receipt(project.id, audit.id), audit.facts
    named = (project.id, audit.id)
    return Gate(content, code, *named, receipt, facts.locked, facts.results_known)


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
