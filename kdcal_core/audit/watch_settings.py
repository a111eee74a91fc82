"""What is watched in a review, and whether the review allows it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kdcal_core.audit.config import Undecided, WatchLimits, WeightedBy
from kdcal_core.audit.watch_audit import ReferenceAudit, reference_set, require_same_rows
from kdcal_core.audit.watch_limits import check_limits
from kdcal_core.audit.watch_state import Watched, WatchedTable, WatchState, check_continues
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.errors import InputError
from kdcal_core.review import Review, TableInfo
from kdcal_core.tasks import usable_calibrators
from kdcal_core.text import in_sentence

_RULER = WatchLimits()


@dataclass(frozen=True, eq=False)
class WatchSettings:
    """What is watched in a review.

    Attributes
    ----------
    table : str or None
        Name of the new table among `Review.watched`; None for a table that is made of evaluation
        rows and held against the calibration set, which shows what a shift looks like.
    digest : str
        Its digest, filled in if empty.
    method : str or None
        Key of a calibrator that reads nothing but probabilities. It is fitted on the calibration
        set, and its output stands in place of the model's: on the reference rows held out from the
        fit, or cross-fitted.
    earlier : tuple of (name, digest)
        New tables of the review that came before, whose labels the sequential test counts first.
    title : str
        Untrusted text.
    limits : WatchLimits
    undecided : {"own", "pass", "fail"}
        As of `AuditConfig`.
    state : WatchState or None
        After the tables before these.
    of : Watched or None
        What is watched, where files outside of the review say so.
    file : WatchedTable or None
        The file from which the new table was made, where it is not the table itself.
    weighted_by : {"scores", "features"}
        As of `AuditConfig`; features are the columns of inputs, of a new table that has them
        (`why_no_features`). The weights are of rows, so a calibrated version has the same ones as
        the model, and the estimates are of its probabilities.
    audit : ReferenceAudit or None
        The audit of the reference rows whose limits hold where ``limits`` has none.
    seed : int
    """

    table: str | None = None
    digest: str = ""
    method: str | None = None
    earlier: tuple[tuple[str, str], ...] = ()
    title: str = ""
    limits: WatchLimits = _RULER
    undecided: Undecided = "own"
    state: WatchState | None = None
    of: Watched | None = None
    file: WatchedTable | None = None
    weighted_by: WeightedBy = "scores"
    audit: ReferenceAudit | None = None
    seed: int = 0


def watched_of(review: Review, method: str | None = None) -> Watched:
    """What a review watches: its model, or its predictions, on its judged rows, or a calibrator."""
    fitted_on = review.tables["calibration"].digest
    return Watched(
        model=review.model.digest if review.model else "",
        calibrator="" if method is None else f"{method} fitted on {fitted_on}",
        reference=review.tables[reference_set(review)].digest,
        classes=review.classes,
        event="" if review.event is None else review.classes[review.event],
    )


def why_no_features(review: Review, table: str | None) -> str:
    """Why the reference rows cannot be weighted by features for a new table; empty if they can.

    Parameters
    ----------
    table : str or None
        As of `WatchSettings`.

    Returns
    -------
    str
        As the end of a sentence. May hold untrusted text.
    """
    if review.task == "regression":
        return "the review is a regression"
    columns = () if review.roles is None else review.roles.features
    if table is None:
        return "the new table is made of scores alone"
    if not columns:
        return "no column describes the rows of both tables"
    there = set(review.watched[table].column_names) if table in review.watched else set(columns)
    if lacking := [one for one in columns if one not in there]:
        return f"the new table lacks the column {lacking[0][:60]!r}"
    return ""


def settled(review: Review, settings: WatchSettings) -> WatchSettings:
    """The settings with the new table's digest; refuse a state and limits that do not fit."""
    check_limits(settings.limits, review.event_class, review.task)
    _check_method(review, settings.method)
    by_features = settings.weighted_by == "features"
    if by_features and (why_not := why_no_features(review, settings.table)):
        raise InputError(
            f"The reference rows cannot be weighted by features, because {why_not}",
            fix="Watch the model on its inputs, or weight by scores.",
            file=settings.table,
        )
    of = settings.of or watched_of(review, settings.method)
    if settings.table is None:
        if not review.has_evaluation:
            raise InputError(
                "The review has no evaluation set of which a new table could be made",
                fix="Give a new table.",
            )
        _check_audit(review, settings)
        return replace(settings, of=replace(of, reference=review.tables["calibration"].digest))
    _check_audit(review, settings)
    table = _table(review, settings.table, settings.digest)
    for name, digest in settings.earlier:
        _table(review, name, digest)
    file = settings.file or WatchedTable(table.name, table.digest, 0, 0)
    if settings.state is not None:
        check_continues(settings.state, of, settings.limits.alpha, file)
    return replace(settings, digest=table.digest, of=of, file=file)


def _check_audit(review: Review, settings: WatchSettings) -> None:
    if settings.audit is not None:
        which = reference_set(review, made=settings.table is None)
        require_same_rows(settings.audit, review, which)


def _check_method(review: Review, method: str | None) -> None:
    """Refuse a calibrator that the review cannot use, or that reads more than probabilities."""
    if method is None:
        return
    if review.task == "regression":
        raise InputError(
            "A calibrator of probabilities cannot be watched in a regression",
            fix="Watch the forecasts as they are.",
        )
    if method not in CALIBRATORS:
        raise InputError(f"There is no calibrator {method[:60]!r}", fix="Choose another one.")
    why_not = usable_calibrators(review).get(method)
    if CALIBRATORS[method].needs:
        why_not = "It reads more than probabilities."
    if why_not:
        label = CALIBRATORS[method].label
        raise InputError(
            f"{label} cannot be watched: {in_sentence(why_not)}".rstrip("."),
            fix="Choose a calibrator that reads nothing but probabilities.",
        )


def _table(review: Review, name: str, digest: str) -> TableInfo:
    """The review's new table of this name and, unless that is not yet known, of this digest."""
    table = review.watched.get(name)
    if table is None or digest not in ("", table.digest):
        raise InputError(
            "The new table is no longer part of the review", fix="Add it again.", file=name
        )
    return table
