"""The files of a gate: read and scored, and judged, each in a process with limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from kdcal_core.audit.asked import AuditSettings
from kdcal_core.audit.calibrated import (
    FITTED_THERE,
    Calibrated,
    ask_calibrated,
    copies_of,
    facts_of,
    of_sources,
)
from kdcal_core.audit.config import AuditConfig, toml_option
from kdcal_core.audit.content import AuditContent
from kdcal_core.audit.making import make_audit
from kdcal_core.checks import CHECKS, MeasuredCheck
from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.models.model_signature import verified_signature
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.regression.recalibrated_table import LEVELS
from kdcal_core.review import (
    NamedFiles,
    Question,
    Review,
    Which,
    Workspace,
    check_files,
    event_of,
    need_groups,
    scored_review,
    set_question,
)
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks import Request, equal_sets

_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class LoadedFiles:
    """The rows of a gate, read and scored, in a workspace in its folder."""

    review: Review
    calibrated: Calibrated | None

    def judge(
        self,
        config: AuditConfig,
        settings: AuditSettings,
        folder: str,
        progress: Progress = silent,
    ) -> AuditContent:
        """The audit of these rows, in any process that sees the folder in which they lie."""
        place, calibrated = Path(folder), self.calibrated
        workspace = Workspace(place / "reviews")
        if calibrated is not None:
            apart = _apart(config, workspace, calibrated, place, part_of(progress, 0.0, 0.1))
            settings = replace(settings, measured=apart)
        request = make_audit.request(workspace, self.review, settings)
        made = made_apart(request, place / "audit", part_of(progress, 0.1, 1.0))
        content = make_audit.read(made)
        if calibrated is None:
            return content
        request = equal_sets.request(workspace, calibrated.source)
        equal = equal_sets.read(made_apart(request, place / "equal", silent))
        return of_sources(content, calibrated, settings, copies_of(equal))


def load_files(config: AuditConfig, folder: str, progress: Progress = silent) -> LoadedFiles:
    """Read and score the rows of a configuration's files, in an empty folder."""
    workspace = Workspace(Path(folder) / "reviews")
    files, calibrated = judged_files(config, workspace, Path(folder), part_of(progress, 0.0, 0.5))
    if calibrated is not None:
        calibrated.require_new_rows()
    check_files(files)
    review = with_question(workspace, scored_review(workspace, files), config, files)
    return LoadedFiles(review, calibrated)


def verified(config: AuditConfig) -> str:
    """What is known of the model's signature once it is verified; empty where none is given."""
    if config.signature is None:
        return ""
    if config.files.model is None:
        raise InputError("A signature is given, and no model", fix="Give files.model.")
    key = Path(config.signature_key) if config.signature_key else None
    return verified_signature(Path(config.files.model), Path(config.signature), key)


def with_question(
    workspace: Workspace, review: Review, config: AuditConfig, files: NamedFiles
) -> Review:
    """The review with the configuration's event, groups and limits."""
    event_of(review, files)  # refuses a class that it does not have
    need_groups(review, config.groups)
    question = Question(
        event=config.event, view=config.view, groups=config.groups, limits=config.limits
    )
    set_question(workspace, review.id, question)
    return workspace.read(review.id)


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
    source = files.evaluation or files.table
    roles, regression = review.roles or Roles(), review.task == "regression"
    stated = {column for _, column in (*roles.outputs, *roles.parameters)}
    # a number that is kept as text is a number again in CSV alone
    scored = folder / f"calibrated{'.csv' if regression else suffix}"
    found = run_limited(
        "kdcal_core.audit.watch_rows:calibrator_output",
        {
            "calibrator": config.calibrator,
            "data": source,
            "out": str(scored),
            "task": review.task,
            "model": files.model,
            "stated": stated_columns(files),
            "output_kind": files.output_kind,
            "keep": [one for one in review.tables[which].column_names if one not in stated],
        },
        seconds=_SECONDS,
        progress=progress,
        what="Scoring the table",
    )
    judged = replace(
        files,
        model=None,
        data=None,
        predictions=str(scored),
        evaluation=None,
        training=None,
        foreign=(),
        classes=None,
        option=toml_option,
    )
    if regression:
        columns = tuple((str(level), str(level)) for level in LEVELS)
        judged = replace(judged, family="quantiles", parameters=columns)
    else:
        columns = tuple((name, f"proba_{name}") for name in found["classes"])
        judged = replace(judged, outputs=columns, output_kind="probability")
    facts = facts_of(config, digest_of(Path(source)))
    return judged, Calibrated(review, which, facts, frozenset(found["fitted_on"].values()))


def stated_columns(files: NamedFiles) -> list[list[str]]:
    """What the predictions' columns hold: pairs of a class, or of a parameter, and a column."""
    return [list(pair) for pair in files.outputs or files.parameters or ()]


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
