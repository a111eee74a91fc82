"""Audits of a calibrator's output: of which model and files it is, and what only they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from kdcal_core.audit.asked import AuditSettings, subject_of
from kdcal_core.audit.config import AuditConfig
from kdcal_core.audit.content import AuditContent, CalibratorFacts
from kdcal_core.calibration.export import LoadedCalibrator, load_calibrator
from kdcal_core.checks import (
    MeasuredCheck,
    MeasuredChecks,
    headline,
    measure_checks,
    next_step,
)
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models import Features
from kdcal_core.review import PARTS, Review, ReviewData, Which, open_questions, undeclared_groups
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks import EqualSets, Sets, evidence_of, review_task
from kdcal_core.tasks.decorators import require_scored

_ASKED = ("KC010", "KC201")
"""Checks that read the model or the other tables, and not the model's output on the judged rows."""

FITTED_THERE = MeasuredCheck(
    "KC011",
    why_not="A calibrator suits the rows to which it was fitted, which those of the calibration "
    "set may be, so its output there is no comparison. The audit of the model as it is answers "
    "this.",
)


@dataclass(frozen=True)
class Calibrated:
    """What a calibrator's output that is audited comes from.

    Attributes
    ----------
    source : Review
        Of the model and the tables that were named, with the model's own output.
    which : str
        The set of it whose rows are judged.
    facts : CalibratorFacts
    fitted_on : frozenset of SHA-256
        The tables to which the calibrator was fitted.
    """

    source: Review
    which: Which
    facts: CalibratorFacts
    fitted_on: frozenset[str] = frozenset()

    def require_new_rows(self) -> None:
        """Refuse to judge the calibrator on the table to which it was fitted.

        Raises
        ------
        InputError
        """
        judged = self.source.tables[self.which]
        if judged.digest in self.fitted_on:
            raise self._fitted_there(
                "that are judged", "Name further held-out rows as the evaluation set.", judged.name
            )

    def require_new_table(self, digest: str, name: str) -> None:
        """Refuse to watch the table to which the calibrator was fitted.

        Raises
        ------
        InputError
        """
        if digest in self.fitted_on:
            raise self._fitted_there("of the new table", "Give rows that came later.", name)

    def _fitted_there(self, which: str, fix: str, file: str) -> InputError:
        return fitted_there(self.facts.title, which, fix, file)


def fitted_there(calibrator: str, which: str, fix: str, file: str) -> InputError:
    """The error of a calibrator that is judged on rows to which it was fitted."""
    return InputError(
        f"The calibrator {calibrator[:80]!r} was fitted on the rows {which}, which says nothing of "
        "other rows",
        fix=fix,
        file=file,
    )


def facts_of(config: AuditConfig, rows: str) -> CalibratorFacts:
    """What an audit says of the calibrator that a configuration names; ``rows`` is their SHA-256.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    assert config.calibrator is not None
    path, model = Path(config.calibrator), config.files.model
    return CalibratorFacts(
        key=path.stem,
        title=path.name,
        digest=digest_of(path),
        finding="The audit judges this calibrator's output in place of the model's.",
        model=digest_of(Path(model)) if model else "",
        rows=rows,
    )


def of_sources(
    content: AuditContent,
    calibrated: Calibrated,
    settings: AuditSettings,
    copies: Iterable[str] = (),
) -> AuditContent:
    """The audit of a table of calibrated output, as one of the files that the output comes from.

    Only the digest of what was judged is of the output.

    Parameters
    ----------
    copies : iterable of str
        As of `copies_of`.
    """
    judged = content.subject
    asked = replace(settings, which=calibrated.which, event=None)
    subject = subject_of(calibrated.source, asked)
    tables = tuple(
        replace(one, scored=content.rows_digest if one.part == subject.which else "")
        for one in subject.tables
    )
    doubts = tuple(dict.fromkeys((*subject.doubts, *judged.doubts, *copies)))
    subject = replace(subject, event=judged.event, tables=tables, doubts=doubts)
    return of_calibrator(replace(content, subject=subject), calibrated, settings)


def of_calibrator(
    content: AuditContent, calibrated: Calibrated, settings: AuditSettings
) -> AuditContent:
    """The audit with the words and the facts of a calibrated model."""
    return replace(
        content,
        headline=headline(content.checked, "The calibrated model"),
        next_step=next_step(
            content.checked,
            keep="the model with this calibrator",
            undeclared=undeclared_groups(calibrated.source, settings.groups),
            questions=open_questions(calibrated.source),
        ),
        calibrator=calibrated.facts,
    )


def copies_of(found: EqualSets) -> tuple[str, ...]:
    """What the reader must know of judged rows to which model or calibrator were fitted."""
    return tuple(one.sentence for one in found.notes if one.about == "copies" and not one.foreign)


@review_task("Audit: asking the calibrated model", reads=PARTS, needs=require_scored)
def ask_calibrated(
    sets: Sets, *, which: Which, calibrator: str, codes: list[str]
) -> MeasuredChecks:
    """The checks that need the model or its other tables, answered for a calibrator's output.

    Parameters
    ----------
    which : str
        The set whose rows are judged.
    calibrator : str
        Path of its file, which is for this model.
    codes : list of str
        Of these checks, the ones that are made.
    """
    evidence = evidence_of(sets, which)
    opened = evidence.review
    if opened is not None:
        evidence = replace(evidence, review=_with_calibrator(opened, calibrator))
    asked = [one for one in _ASKED if one in codes]
    return measure_checks(evidence, asked, sets.progress)


def _with_calibrator(review: Callable[[], ReviewData], path: str) -> Callable[[], ReviewData]:
    def opened() -> ReviewData:
        data = review()
        if data.model is None:
            return data
        loaded = load_calibrator(path, model=data.model, any_model=True)
        return replace(data, model=_CalibratedModel(loaded))

    return opened


class _CalibratedModel:
    """A model and its calibrator as one model."""

    def __init__(self, loaded: LoadedCalibrator) -> None:
        assert loaded.model is not None
        model = loaded.model
        self.kind, self.classes, self.named_classes = model.kind, model.classes, model.named_classes
        self.n_features, self.feature_names = model.n_features, model.feature_names
        self._loaded = loaded

    def predict_proba(self, X: Features) -> FloatArray:
        """Calibrated probabilities."""
        return self._loaded.score_rows(X).proba
