"""Fit one recalibrator on a regression, judge it on rows it has not seen, and write its file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from kdcal_core.diagnostics import pit_histogram, quantile_reliability
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import (
    MEASURES,
    MODEL,
    Judge,
    RecalibratorScores,
    RepairChoice,
    Space,
    choose_neighbours,
    judge_recalibrators,
)
from kdcal_core.models.file_marks import CardEstimate, DataMark, ModelMark
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.regression import (
    RECALIBRATORS,
    RecalibratorCard,
    SpaceOfRows,
    StoredRecalibrator,
    recalibrator_card,
    save_recalibrator,
)
from kdcal_core.regression.recalibrators import fit_together
from kdcal_core.regression.spaces import BOTH, INPUTS
from kdcal_core.review import Review, ReviewReader
from kdcal_core.tasks.decorators import Sets, require_regression, review_task
from kdcal_core.tasks.pit_measures import LEVELS
from kdcal_core.tasks.recalibrated_measures import PitValues
from kdcal_core.tasks.recalibration import WEIGHTED
from kdcal_core.tasks.spaces import SPACE_READS, read_space, space_names, space_of_inputs

REPAIR_FILE = "recalibrator.kdcal"
ON_CARD = ("crps", "coverage95", "smis95", "rmse")


def repair_keys() -> tuple[str, ...]:
    """Keys of the recalibrators that a file can hold: all but those shown only for comparison.

    Examples
    --------
    >>> "local" in repair_keys(), "boosting" in repair_keys()
    (True, False)
    """
    return tuple(key for key, spec in RECALIBRATORS.items() if not spec.comparison)


@dataclass(frozen=True)
class RepairSettings:
    """Which recalibrator is fitted and exported.

    Attributes
    ----------
    key : str
        One of `repair_keys`.
    space : str or None
        Space in which neighbours are searched, one of `space_names`; None for the recommended one.
        Untrusted text.
    k : int or None
        Number of neighbours; None chooses it by cross-fitted CRPS.
    kernel : str
    smoothing : str
        As in `RecalibrationSettings`.
    folds, seed : int
        Folds of the cross-fitting where there is no evaluation set, and seed of all draws.
    """

    key: str = "recommended"
    space: str | None = None
    k: int | None = None
    kernel: Literal["epanechnikov", "uniform"] = "epanechnikov"
    smoothing: Literal["auto", "kernel", "none"] = "auto"
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True, eq=False)
class FittedRepair:
    """A fitted recalibrator with its comparison with the model.

    Attributes
    ----------
    recalibrator : StoredRecalibrator
    card : RecalibratorCard
    encoding : SpaceOfRows
        How new rows get their coordinates.
    seconds : float
        Duration of the fit.
    judge : {"evaluation", "cross-fitted"}
    n_fit, n_judged : int
    methods : tuple of RecalibratorScores
        The model, and the recalibrator where it could be judged.
    choice : RepairChoice
    before, after : PitValues
        PIT values of the judged rows, of the model and of the recalibrator.
    """

    recalibrator: StoredRecalibrator
    card: RecalibratorCard
    encoding: SpaceOfRows
    seconds: float
    judge: Judge
    n_fit: int
    n_judged: int
    methods: tuple[RecalibratorScores, ...]
    choice: RepairChoice
    before: PitValues
    after: PitValues


def fit_and_judge_repair(
    reader: ReviewReader, settings: RepairSettings, progress: Progress = silent
) -> FittedRepair:
    """Fit on the calibration set, and judge on the evaluation set or by cross-fitting.

    The reader must be allowed to read `SPACE_READS`.

    Raises
    ------
    InputError
        Where the recalibrator cannot be fitted or judged on these rows.
    """
    review, spec = reader.review, RECALIBRATORS[settings.key]
    name = settings.space or space_names(review)[0]
    fit, judged = reader.distributions("calibration"), reader.distributions(reader.judged)
    space = read_space(reader, name, part_of(progress, 0.0, 0.1))
    encoding = SpaceOfRows(name)
    if name in (INPUTS, BOTH):
        encoding = space_of_inputs(reader, with_prediction=name == BOTH)
    given = _settings(fit, space, settings, part_of(progress, 0.1, 0.3))
    found = judge_recalibrators(
        [settings.key],
        fit,
        judged if reader.has("evaluation") else None,
        space,
        settings=given,
        folds=settings.folds,
        seed=settings.seed,
        progress=part_of(progress, 0.3, 0.8),
    )
    if settings.key in found.failed:
        raise InputError(
            f"{spec.title} cannot be fitted here",
            fix=found.failed[settings.key],
        )
    progress(0.8, f"Fitting: {spec.title}")
    start = time.perf_counter()
    with quiet() as said:
        own = {key: value for key, value in given.items() if key in spec.settings}
        recalibrator = fit_together(
            spec.make(**own), fit.distribution, fit.y, space.calibration, fit.grouping, fit.weight
        )
    assert isinstance(recalibrator, StoredRecalibrator)
    seconds = time.perf_counter() - start
    pits = [found.answers[key].pit for key in (MODEL, settings.key)]
    before, after = (
        PitValues(
            pit_histogram(pit, sample_weight=judged.design),
            quantile_reliability(pit, LEVELS, sample_weight=judged.design),
        )
        for pit in pits
    )
    reason = getattr(recalibrator, "reason_", None)
    notes = dict.fromkeys([*([reason] if reason else []), *said])
    if fit.weight is not None:
        notes[WEIGHTED] = None
    card = _card(review, settings, recalibrator, encoding, found.methods, list(notes))
    return FittedRepair(
        recalibrator=recalibrator,
        card=card,
        encoding=encoding,
        seconds=seconds,
        judge=found.judge,
        n_fit=fit.n_rows,
        n_judged=judged.n_rows,
        methods=found.methods,
        choice=found.choice,
        before=before,
        after=after,
    )


def _settings(
    fit: Any, space: Space, settings: RepairSettings, progress: Progress
) -> dict[str, Any]:
    """The recalibrator's settings, with a number of neighbours where one must be chosen."""
    given = {
        name: value
        for name, value in asdict(settings).items()
        if name in ("kernel", "smoothing", "seed")
    }
    spec = RECALIBRATORS[settings.key]
    if "k" not in spec.settings:
        return given
    if settings.k is not None:
        return {**given, "k": min(settings.k, fit.n_rows)}
    if spec.family == "recommended":  # it chooses them itself
        return given
    found = choose_neighbours(
        fit,
        [space],
        1000,
        kernel=settings.kernel,
        folds=settings.folds,
        seed=settings.seed,
        progress=progress,
    )
    return {**given, "k": found.best_k}


def _card(
    review: Review,
    settings: RepairSettings,
    recalibrator: StoredRecalibrator,
    encoding: SpaceOfRows,
    methods: Sequence[RecalibratorScores],
    notes: list[str],
) -> RecalibratorCard:
    roles, model = review.roles, review.model
    assert roles is not None
    assert roles.family is not None
    reads = model is not None or (recalibrator.needs_space and encoding.coordinates is not None)
    calibration = review.sets["calibration"]
    tables = {
        which: DataMark(one.name, one.digest, one.n_rows) for which, one in review.tables.items()
    }
    return recalibrator_card(
        settings.key,
        recalibrator,
        family=roles.family,
        model=None if model is None else ModelMark(model.name, model.kind, model.digest),
        data=tables,
        columns=() if model is not None else roles.parameters,
        spread=calibration.spread,
        outcome=roles.target or "",
        features=tuple(roles.features) if reads else (),
        estimates=_estimates(methods, review),
        notes=tuple(notes),
        seed=settings.seed,
    )


def _estimates(methods: Sequence[RecalibratorScores], review: Review) -> tuple[CardEstimate, ...]:
    if len(methods) < 2:
        return ()
    before, after = methods[0].scores.rows, methods[1].scores.rows
    judged = "evaluation set" if "evaluation" in review.sets else "cross-fitted calibration set"
    return tuple(
        CardEstimate(
            after[key].name,
            MEASURES[key].title,
            before[key].value,
            after[key].value,
            after[key].low,
            after[key].high,
            after[key].n,
            judged,
            after[key].level,
        )
        for key in ON_CARD
        if key in before and key in after
    )


@dataclass(frozen=True)
class RepairRecord:
    """The settings and results of an exported repair.

    Attributes
    ----------
    settings : RepairSettings
    space : str or None
        The space of the neighbours; None where none are searched. Untrusted text.
    k : int or None
        Number of neighbours.
    judged_on : {"evaluation", "cross-fitted"}
    n_fit, n_judged : int
    fit_seconds : float
    methods : tuple of RecalibratorScores
        The model and the recalibrator.
    """

    settings: RepairSettings
    space: str | None
    k: int | None
    judged_on: Judge
    n_fit: int
    n_judged: int
    fit_seconds: float
    methods: tuple[RecalibratorScores, ...]

    @property
    def model(self) -> RecalibratorScores:
        return self.methods[0]

    @property
    def repair(self) -> RecalibratorScores:
        return self.methods[1]


@dataclass(frozen=True, eq=False)
class RepairRun:
    """A fitted recalibrator, its comparison with the model, and its file.

    Attributes
    ----------
    record : RepairRecord
    card : RecalibratorCard
        Untrusted text: names of files and columns.
    before, after : PitValues
    file : Path
    """

    record: RepairRecord
    card: RecalibratorCard
    before: PitValues
    after: PitValues
    file: Path = field(repr=False)


def _likeliest(review: Review) -> RepairSettings:
    return RepairSettings(space=space_names(review)[0])


def settled(review: Review, settings: RepairSettings) -> RepairSettings:
    """The settings with a space, after a check that the review offers what they name.

    Raises
    ------
    InputError
    """
    if settings.key not in repair_keys():
        raise InputError(
            f"There is no recalibrator {settings.key[:60]!r} to export",
            fix=f"Choose among {', '.join(repair_keys())}.",
        )
    spaces = space_names(review)
    settings = settings if settings.space else replace(settings, space=spaces[0])
    if settings.space not in spaces:
        raise InputError(
            f"The review offers no space {str(settings.space)[:60]!r}",
            fix=f"Choose among {', '.join(spaces)}.",
        )
    if review.roles is None or review.roles.family not in FAMILIES:
        raise InputError("The forecasts have no family", fix="Choose it on the Load page.")
    return settings


def _names(review: Review) -> dict[str, Any]:
    """The names in the file's card."""
    return {
        "names": [table.name for table in review.tables.values()],
        "model": review.model.name if review.model else None,
    }


@review_task(
    "Fitting and writing the recalibrator",
    reads=SPACE_READS,
    needs=require_regression,
    default=_likeliest,
    ranges={"k": (2.0, 1e7), "folds": (2.0, 20.0), "seed": (0.0, 2.0**31)},
    settle=settled,
    covers=_names,
    edition=lambda: " ".join(("weighted fits", *MEASURES)),
)
def export_repair(sets: Sets, settings: RepairSettings) -> RepairRun:
    """Fit a recalibrator, judge it, and write its file.

    Raises
    ------
    InputError
        Where it cannot be fitted on these rows.
    """
    path = sets.folder
    assert path is not None  # of every job
    made = fit_and_judge_repair(sets.reader, settings, part_of(sets.progress, 0.0, 0.95))
    sets.progress(0.95, "Writing the file")
    save_recalibrator(made.recalibrator, path / REPAIR_FILE, made.card, made.encoding)
    searched = made.recalibrator.needs_space
    inner = getattr(made.recalibrator, "recalibrator_", made.recalibrator)
    record = RepairRecord(
        settings=settings,
        space=made.encoding.name if searched else None,
        k=getattr(inner, "k_", None) if searched else None,
        judged_on=made.judge,
        n_fit=made.n_fit,
        n_judged=made.n_judged,
        fit_seconds=made.seconds,
        methods=made.methods,
    )
    return RepairRun(record, made.card, made.before, made.after, path / REPAIR_FILE)
