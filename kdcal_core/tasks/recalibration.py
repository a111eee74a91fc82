"""Recalibrate a review's predictive distributions by several methods, and judge each of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from kdcal_core.data import FloatArray, IntArray, stratified_folds
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression import (
    coverage,
    fault,
    paired_difference,
    regression_scores,
    uniformity_tests,
)
from kdcal_core.distributions import PredictiveDistribution, RegressionSet
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.evaluation import MEASURES
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression import (
    RECALIBRATORS,
    Recalibrator,
    RecalibratorSpec,
    local_uniformity,
    select_neighbours,
)
from kdcal_core.review import Review
from kdcal_core.tasks.recalibration_answers import (
    MODEL,
    MOST_SHOWN,
    STATED,
    KeptAnswers,
    MethodResult,
    RecalibrationRecord,
    RecalibrationRun,
    RecalibrationSettings,
    RowAnswers,
    Selection,
)
from kdcal_core.tasks.sets import Sets
from kdcal_core.tasks.spaces import SPACE_READS, Space, principal_axes, read_space, space_names
from kdcal_core.tasks.task import require_regression, review_task

_BLOCK_ROWS = 5_000
_COUNTS = (10, 25, 50, 100, 250, 500, 1000, 2000)
_LEAST_SCALE = 1e-100  # squares of what is divided by less are no numbers
_FEWEST = 20  # rows that a local test can say anything about
_FEW_NEIGHBOURS = 100  # fewer made intervals of 99% hold 97% on real tables


@dataclass(frozen=True, eq=False)
class _Rows:
    """What every method is fitted and judged on, and the report of how far it is."""

    fit: RegressionSet
    judged: RegressionSet
    space: Space
    shown: IntArray
    scale: float
    cross_fitted: bool


def _likeliest(review: Review) -> RecalibrationSettings:
    return RecalibrationSettings(space=space_names(review)[0])


def _settled(review: Review, settings: RecalibrationSettings) -> RecalibrationSettings:
    spaces = space_names(review)
    unknown = next((key for key in settings.methods if key not in RECALIBRATORS), None)
    if unknown is not None or not settings.methods:
        raise InputError(
            f"There is no method {unknown!r}" if unknown else "No method is chosen",
            fix=f"Choose among {', '.join(RECALIBRATORS)}.",
        )
    if settings.space not in spaces:
        raise InputError(
            f"The review offers no space {settings.space!r}",
            fix=f"Choose among {', '.join(spaces)}.",
        )
    if settings.radius is not None and not 0 < settings.radius < np.inf:
        raise InputError(
            f"The radius is {settings.radius:g}", fix="Give a distance above zero, or a k."
        )
    return settings


@review_task(
    "Recalibrating",
    reads=SPACE_READS,
    needs=require_regression,
    default=_likeliest,
    ranges={"k": (1.0, 1e7), "folds": (2.0, 50.0), "seed": (0.0, 2.0**31)},
    settle=_settled,
)
def recalibrate(sets: Sets, settings: RecalibrationSettings) -> RecalibrationRun:
    """Recalibrate a review: fit and judge every method.

    Raises
    ------
    InputError
        For rows that do not fit the model. A method that cannot be fitted on so few rows is
        named in the record's notes instead.
    """
    reader, progress, path = sets.reader, sets.progress, sets.folder
    assert path is not None  # of every job
    chosen = settings
    fit = reader.distributions("calibration")
    judged = reader.distributions(reader.judged)
    candidates = space_names(reader.review) if chosen.choose else (chosen.space,)
    spaces_read = [
        read_space(
            reader,
            name,
            part_of(progress, 0.1 * at / len(candidates), 0.1 * (at + 1) / len(candidates)),
        )
        for at, name in enumerate(candidates)
    ]
    selection = _selection(fit, spaces_read, chosen, part_of(progress, 0.1, 0.3))
    if selection is not None:
        chosen = replace(chosen, k=selection.k, space=selection.space)
    space = next(one for one in spaces_read if one.name == chosen.space)
    shown = _shown(judged.n_rows, chosen.seed)
    size = float(np.mean(np.abs(fit.y)))
    scale = size if size > _LEAST_SCALE else 1.0
    rows = _Rows(fit, judged, space, shown, scale, not reader.has("evaluation"))
    results, kept, notes = _methods(rows, chosen, path, part_of(progress, 0.3, 1.0))
    if fit.weight is not None:
        notes.append("The measures count by the rows' weights; the fits count every row once.")
    if chosen.radius is None and chosen.k < _FEW_NEIGHBOURS and "local" in chosen.methods:
        notes.append(
            f"With {chosen.k:,} neighbours the outermost intervals tend to be too narrow: for "
            "those of 99%, look at 100 neighbours or more as well."
        )
    record = RecalibrationRecord(
        settings=settings,
        space=space.name,
        k=min(chosen.k, fit.n_rows),
        judged_on="cross-fitted" if rows.cross_fitted else "evaluation",
        n_fit=fit.n_rows,
        n_judged=judged.n_rows,
        scale=scale,
        methods=tuple(results),
        selection=selection,
        has_evaluation=reader.has("evaluation"),
        has_truth=judged.true_mean is not None,
        weighted=judged.weight is not None,
        notes=tuple(notes),
    )
    return RecalibrationRun(
        record=record,
        y=judged.y,
        true_mean=judged.true_mean,
        shown=shown,
        space=space.single(),
        axes=principal_axes(space.calibration, space.judged),
        answers=kept,
        folder=path,
    )


def _selection(
    fit: RegressionSet, spaces: list[Space], settings: RecalibrationSettings, progress: Progress
) -> Selection | None:
    if not settings.choose:
        return None
    folds = min(settings.folds, fit.n_rows)
    most = fit.n_rows - -(-fit.n_rows // folds)  # rows that a fold can learn from
    found = select_neighbours(
        fit.distribution,
        fit.y,
        {space.name: space.calibration for space in spaces},
        sorted({min(k, most) for k in (*_COUNTS, settings.k)}),
        kernel=settings.kernel,
        folds=folds,
        seed=settings.seed,
        progress=progress,
    )
    return Selection(
        spaces=found.spaces,
        ks=tuple(int(k) for k in found.ks),
        crps=_nested(found.crps),
        standard_error=_nested(found.standard_error),
        model_crps=found.model_crps,
        space=found.best_space,
        k=int(found.best_k),
        words=found.words,
        n=found.n,
    )


def _nested(values: FloatArray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(one) for one in row) for row in values)


def _shown(n: int, seed: int) -> IntArray:
    if n <= MOST_SHOWN:
        return np.arange(n)
    drawn = np.random.default_rng([seed, 2]).choice(n, MOST_SHOWN, replace=False)
    return np.sort(drawn).astype(np.int64)


def _methods(
    rows: _Rows, settings: RecalibrationSettings, folder: Path, progress: Progress
) -> tuple[list[MethodResult], dict[str, RowAnswers], list[str]]:
    """The model and every method, judged; their answers; what had to be left out."""
    results: list[MethodResult] = []
    kept: dict[str, RowAnswers] = {}
    notes: list[str] = []
    model: KeptAnswers | None = None
    keys = (MODEL, *dict.fromkeys(settings.methods))
    for at, key in enumerate(keys):
        report = part_of(progress, at / len(keys), (at + 1) / len(keys))
        spec = RECALIBRATORS.get(key)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InputWarning)
            try:
                answers, seconds = _answered(rows, spec, settings, report)
            except InputError as error:
                if spec is None:
                    raise
                notes.append(f"{spec.title} was left out. {error}")
                continue
        warned = (str(one.message) for one in caught if issubclass(one.category, InputWarning))
        kept[key] = answers.kept(folder)
        results.append(
            _judged(
                rows, spec, answers, model, seconds, tuple(dict.fromkeys(warned)), settings.seed
            )
        )
        model = model or answers
    return results, kept, notes


def _answered(
    rows: _Rows,
    spec: RecalibratorSpec | None,
    settings: RecalibrationSettings,
    progress: Progress,
) -> tuple[KeptAnswers, tuple[float, float]]:
    """The answers of one method for all judged rows, and seconds to fit and to predict."""
    answers = KeptAnswers(np.asarray(rows.judged.y), rows.shown, rows.scale, settings.seed)
    fitting = predicting = 0.0
    done, title = 0, spec.title if spec else "The model as it is"
    for kept, held in _divisions(rows, spec, settings):
        start = time.perf_counter()
        fitted = _fitted(rows, spec, settings, kept) if spec else None
        fitting += time.perf_counter() - start
        for block in np.array_split(held, max(1, -(-len(held) // _BLOCK_ROWS))):
            progress(done / len(answers), f"{title}: {done:,} of {len(answers):,} rows")
            start = time.perf_counter()
            distribution: PredictiveDistribution = rows.judged.distribution[block]
            if fitted is not None:
                distribution = fitted.predict(distribution, rows.space.judged[block])
            answers.fill(block, distribution)
            predicting += time.perf_counter() - start
            done += len(block)
    return answers, (fitting, predicting)


def _divisions(
    rows: _Rows, spec: RecalibratorSpec | None, settings: RecalibrationSettings
) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows to fit on and rows to answer for."""
    n = rows.judged.n_rows
    if not rows.cross_fitted or spec is None:
        yield np.arange(rows.fit.n_rows), np.arange(n)
        return
    fold = stratified_folds(np.zeros(n, dtype=np.int64), min(settings.folds, n), settings.seed)
    for one in range(int(fold.max()) + 1):
        yield np.flatnonzero(fold != one), np.flatnonzero(fold == one)


def _fitted(
    rows: _Rows, spec: RecalibratorSpec, settings: RecalibrationSettings, kept: IntArray
) -> Recalibrator:
    given = {name: value for name, value in asdict(settings).items() if name in spec.settings}
    if spec.key == "isotonic":  # whose map is smooth or not
        given["smoothing"] = "none" if settings.smoothing == "none" else "auto"
    return spec.make(**given).fit(
        rows.fit.distribution[kept], rows.fit.y[kept], rows.space.calibration[kept]
    )


def _judged(
    rows: _Rows,
    spec: RecalibratorSpec | None,
    answers: KeptAnswers,
    model: KeptAnswers | None,
    seconds: tuple[float, float],
    notes: tuple[str, ...],
    seed: int,
) -> MethodResult:
    judged, weight = rows.judged, rows.judged.weight
    as_distribution = cast(PredictiveDistribution, answers)
    title = spec.title if spec else "The model as it is"
    scores = regression_scores(
        as_distribution,
        judged.y,
        scale=rows.scale,
        true_mean=judged.true_mean,
        pit=answers.pit,
        weight=weight,
        seed=seed,
        name=title,
    )
    finite = {name: one for name, one in scores.rows.items() if _is_finite(one)}
    if "log_score" not in finite:
        none = int((answers.scores["log_score"] == np.inf).sum())
        outcomes = f"{none:,} outcomes lie" if none != 1 else "1 outcome lies"
        notes = (
            *notes,
            f"The log score is left out: {outcomes} where the distributions have next to no "
            "density (below 1e-300), and would decide it alone.",
        )
    needed, looked_at = _local_test(answers.pit, rows.space.judged, seed)
    return MethodResult(
        key=spec.key if spec else MODEL,
        title=title,
        scores=replace(scores, rows=finite),
        coverage=coverage(as_distribution, judged.y, STATED, scale=rows.scale, weight=weight),
        tests=uniformity_tests(answers.pit, seed=seed, sample_weight=weight),
        fault=fault(answers.pit, sample_weight=weight),
        differences=_differences(answers, model, weight) if model else {},
        needed=needed,
        looked_at=looked_at,
        fit_seconds=seconds[0],
        predict_seconds=seconds[1],
        notes=notes,
    )


def _differences(
    answers: KeptAnswers, model: KeptAnswers, weight: FloatArray | None
) -> dict[str, Estimate]:
    labels = {key: MEASURES[key].title for key in ("crps", "log_score", "mse", "smis95")}
    return {
        name: paired_difference(
            answers.scores[name], model.scores[name], weight=weight, name=label, label=label
        )
        for name, label in labels.items()
        if np.isfinite(answers.scores[name]).all() and np.isfinite(model.scores[name]).all()
    }


def _local_test(pit: FloatArray, space: FloatArray, seed: int) -> tuple[int, int]:
    """How many neighbourhoods are miscalibrated beyond chance, of how many looked at."""
    if len(pit) < _FEWEST:
        return 0, 0
    found = local_uniformity(pit, space, seed=seed)
    return int(found.needed.sum()), len(found.centres)


def _is_finite(estimate: Estimate) -> bool:
    return bool(np.isfinite([estimate.value, estimate.low, estimate.high]).all())
