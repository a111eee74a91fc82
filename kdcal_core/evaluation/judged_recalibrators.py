"""Recalibrators fitted by a split or by cross-fitting, and judged against the model.

Every recalibrator is measured on the same rows, which its fit has not seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from kdcal_core.blocks import cores, on_all_cores
from kdcal_core.data import FloatArray, IntArray, at_most, fit_and_held, random_folds
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression import (
    coverage,
    fault,
    mean_scale,
    paired_difference,
    uniformity_tests,
)
from kdcal_core.diagnostics.regression.coverage import Coverage
from kdcal_core.diagnostics.regression.distribution_scores import RegressionScores
from kdcal_core.diagnostics.regression.fault import Fault
from kdcal_core.diagnostics.regression.uniformity import UniformityTest
from kdcal_core.distributions import PredictiveDistribution, RegressionSet, resolution_note
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation.distribution_measures import regression_scores, row_measures
from kdcal_core.evaluation.held_out import Judge
from kdcal_core.evaluation.methods import FIT_ERRORS, why_it_failed
from kdcal_core.evaluation.row_answers import STATED, Keep, KeptAnswers, RowAnswers
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression import (
    RECALIBRATORS,
    SIMPLEST_FIRST,
    Neighbourhoods,
    NeighbourSelection,
    Recalibrator,
    RecalibratorSpec,
    numbers_to_try,
    repair_words,
    select_neighbours,
    simplest_repair,
)
from kdcal_core.regression.neighbour_search import Kernel
from kdcal_core.regression.recalibrators import check_space, fit_together
from kdcal_core.statistics import RowDesign
from kdcal_core.text import in_sentence

MODEL = "model"
MOST_SHOWN = 5_000
"""Maximum number of rows whose distribution is kept; of more rows a random sample is drawn."""


_BLOCK_ROWS = 5_000  # of all threads together
_RECOMMENDED = "recommended"
_LEAST_SCALE = 1e-100  # dividing by less makes squares overflow
_FEWEST = 20  # fewest rows for a local test


@dataclass(frozen=True, eq=False)
class Space:
    """Coordinates of the calibration set's and the evaluation set's rows in one space.

    Attributes
    ----------
    name : str
        Untrusted text.
    calibration : (n, d)
    evaluation : (m, d) or None
    """

    name: str
    calibration: FloatArray
    evaluation: FloatArray | None

    @property
    def judged(self) -> FloatArray:
        """The rows on which results are judged."""
        return self.calibration if self.evaluation is None else self.evaluation

    def single(self) -> Space:
        """The same space in single precision, in which spaces are stored."""
        calibration = cast(FloatArray, self.calibration.astype(np.float32))
        if self.evaluation is None:
            return Space(self.name, calibration, None)
        return Space(self.name, calibration, cast(FloatArray, self.evaluation.astype(np.float32)))


@dataclass(frozen=True)
class RecalibratorScores:
    """One method on the judged rows.

    Attributes
    ----------
    key : str
        `MODEL` or the recalibrator's key.
    title : str
    scores : RegressionScores
        Every measure with its interval. Infinite ones are left out, and the notes say so.
    coverage : Coverage
    tests : tuple of UniformityTest
    fault : Fault
        Fault of all rows together.
    differences : dict
        Estimates of the paired difference from the model, for every measure that is a mean over the
        rows and is finite; below 0 where the method is better. Empty for the model.
    needed, looked_at : int
        Number of neighbourhoods in the space that are miscalibrated beyond chance, and number of
        neighbourhoods tested.
    fit_seconds, predict_seconds : float
    notes : tuple of str
        Warnings of its fits, in sentences.
    """

    key: str
    title: str
    scores: RegressionScores
    coverage: Coverage
    tests: tuple[UniformityTest, ...]
    fault: Fault
    differences: dict[str, Estimate]
    needed: int
    looked_at: int
    fit_seconds: float
    predict_seconds: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RepairChoice:
    """Which repair is recommended, and whether a better model is the answer.

    Attributes
    ----------
    key : str
        The recommended method, `MODEL` for none.
    reason : str
        Why, as sentences.
    better : str or None
        Key of a second model, shown only for comparison, whose CRPS on the judged rows is lower
        than that of the model and of every repair, each beyond chance; None for none.
    better_by : Estimate or None
        Its paired difference from the best of these, below 0.
    """

    key: str
    reason: str
    better: str | None = None
    better_by: Estimate | None = None


@dataclass(frozen=True, eq=False)
class JudgedRecalibrators:
    """The model and every recalibrator judged on the same rows; see :func:`judge_recalibrators`.

    Attributes
    ----------
    judge : {"evaluation", "cross-fitted"}
    scale : float
        Mean absolute outcome of the calibration set, the divisor of sMIS.
    shown : (r,) int64
        Judged rows whose quantiles are kept, ascending.
    methods : tuple of RecalibratorScores
        The model first.
    answers : dict of method key to RowAnswers
    failed : dict of method key to sentence
        Why a recalibrator is not among ``methods``.
    choice : RepairChoice
    """

    judge: Judge
    scale: float
    shown: IntArray
    methods: tuple[RecalibratorScores, ...]
    answers: dict[str, RowAnswers]
    failed: dict[str, str]
    choice: RepairChoice


def judge_recalibrators(
    keys: Sequence[str],
    calibration: RegressionSet,
    evaluation: RegressionSet | None,
    space: Space,
    *,
    inputs: Space | None = None,
    settings: Mapping[str, Any] | None = None,
    folds: int = 5,
    seed: int = 0,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> JudgedRecalibrators:
    """Fit recalibrators on the calibration set and judge them on rows held out from the fit.

    Parameters
    ----------
    keys : sequence of str
        Of :data:`kdcal_core.regression.RECALIBRATORS`. The model as it is always takes part.
    calibration, evaluation : RegressionSet
        Each recalibrator is fitted once on the calibration set and judged on the evaluation set.
        Without one, every calibration row is judged by fits on the other folds.
    space : Space
        Space in which neighbours are searched.
    inputs : Space, optional
        The inputs, for methods that read them whatever the space; by default ``space``.
    settings : mapping of str to value, optional
        Settings of the recalibrators by name; each takes those that it has.
    folds, seed : int
        Number of folds of the cross-fitting, at most one for each row, and the seed of all draws.
    keep : callable, optional
        Applied to one method's arrays of answers before the next method is fitted.
    progress : callable, optional
        Called with the share done and a sentence; may raise to cancel.

    Raises
    ------
    InputError
        Where rows, outcomes and space do not match. A recalibrator that cannot be fitted is named
        in ``failed``, and the others are still judged.

    Notes
    -----
    Measures and fits use the weights; a local test counts every row once.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 300))
    >>> rows = RegressionSet(Normal(np.zeros(300), 1.0), 1.0 + noise, "digest", "calibration")
    >>> found = judge_recalibrators(["global"], rows, None, Space("x", x[:, np.newaxis], None))
    >>> found.judge, [one.key for one in found.methods]
    ('cross-fitted', ['model', 'global'])
    >>> found.methods[1].differences["crps"].high < 0  # the model predicted 1 too low
    True
    """
    judged = calibration if evaluation is None else evaluation
    shown = at_most(judged.n_rows, MOST_SHOWN, [seed, 2])
    size = mean_scale(calibration.y)
    scale = size if size > _LEAST_SCALE else 1.0
    rows = _Rows(calibration, judged, space, inputs or space, shown, scale, seed)
    n_folds = min(folds, judged.n_rows) if evaluation is None else None
    methods: list[RecalibratorScores] = []
    answers: dict[str, RowAnswers] = {}
    failed: dict[str, str] = {}
    model: KeptAnswers | None = None
    given = {"seed": seed, **(settings or {})}
    keys = (MODEL, *dict.fromkeys(keys))
    for at, key in enumerate(keys):
        spec = RECALIBRATORS.get(key)
        if spec is None and key != MODEL:
            raise InputError(
                f"There is no method {key!r}", fix=f"Choose among {', '.join(RECALIBRATORS)}."
            )
        report = part_of(progress, at / len(keys), (at + 1) / len(keys))
        with quiet() as said:
            try:
                found, seconds, reason = _answered(rows, spec, given, n_folds, seed, report)
            except FIT_ERRORS as error:
                if spec is None:
                    raise
                failed[key] = why_it_failed(error)
                continue
        answers[key] = found.kept(keep or np.asarray)
        notes = tuple(dict.fromkeys([*reason, *said]))
        methods.append(_scores(rows, spec, found, model, seconds, notes, seed))
        model = model or found
    return JudgedRecalibrators(
        judge="cross-fitted" if evaluation is None else "evaluation",
        scale=rows.scale,
        shown=shown,
        methods=tuple(methods),
        answers=answers,
        failed=failed,
        choice=_choice(methods, answers, judged),
    )


def _choice(
    methods: Sequence[RecalibratorScores],
    answers: Mapping[str, RowAnswers],
    judged: RegressionSet,
) -> RepairChoice:
    """The simplest repair whose CRPS on the judged rows is as good as the best."""
    crps = {key: np.asarray(answers[key].crps) for key in SIMPLEST_FIRST if key in answers}
    crps = {key: values for key, values in crps.items() if np.isfinite(values).all()}
    n = len(answers[MODEL].crps)
    if MODEL not in crps or n < _FEWEST:
        return RepairChoice(MODEL, "")
    weight = np.ones(n) if judged.weight is None else np.asarray(judged.weight)
    found = simplest_repair(crps, weight, dependence=judged.grouping)
    keys = tuple(crps)
    key, reason = keys[found.at], repair_words(found, keys, f"on {n:,} held-out rows")
    own = next((one for one in methods if one.key == _RECOMMENDED), None)
    if own is not None:
        key, reason = own.key, " ".join(own.notes[:1])
        crps[own.key] = np.asarray(answers[own.key].crps)
    return RepairChoice(key, reason, *_better_model(crps, answers, judged.design))


def _better_model(
    crps: Mapping[str, FloatArray],
    answers: Mapping[str, RowAnswers],
    weight: FloatArray | RowDesign | None,
) -> tuple[str | None, Estimate | None]:
    """The second model that beats the model and every repair beyond chance, and by how much."""
    best: tuple[str | None, Estimate | None] = (None, None)
    for key in answers:
        if key == MODEL or not RECALIBRATORS[key].comparison:
            continue
        own = np.asarray(answers[key].crps)
        if not np.isfinite(own).all():
            continue
        gains = [
            paired_difference(own, values, weight=weight, name="CRPS", label="CRPS")
            for values in crps.values()
        ]
        least = max(gains, key=lambda one: one.value)
        if all(one.high < 0 for one in gains) and (best[1] is None or least.value < best[1].value):
            best = key, least
    return best


def choose_neighbours(
    calibration: RegressionSet,
    spaces: Sequence[Space],
    k: int,
    *,
    kernel: Kernel = "epanechnikov",
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> NeighbourSelection:
    """The space and the number of neighbours with the least cross-fitted CRPS.

    Tries numbers from 10 to 2,000 and ``k``, each at most the number of rows that a fold is fitted
    on.
    """
    n, together = calibration.n_rows, calibration.grouping
    folds = min(folds, n)
    return select_neighbours(
        calibration.distribution,
        calibration.y,
        {space.name: space.calibration for space in spaces},
        numbers_to_try(n, folds, k),
        kernel=kernel,
        folds=folds,
        seed=seed,
        dependence=together,
        sample_weight=calibration.weight,
        progress=progress,
    )


def repairs(methods: Sequence[RecalibratorScores]) -> list[RecalibratorScores]:
    """The methods that repair the model, the greatest fall of the CRPS first."""
    found = [
        one
        for one in methods
        if "crps" in one.differences and not RECALIBRATORS[one.key].comparison
    ]
    return sorted(found, key=lambda one: one.differences["crps"].value)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows and the space on which every method is fitted and judged."""

    fit: RegressionSet
    judged: RegressionSet
    space: Space
    inputs: Space
    shown: IntArray
    scale: float
    seed: int

    def space_of(self, spec: RecalibratorSpec) -> Space:
        """The space that a method is fitted in."""
        return self.inputs if spec.reads_inputs else self.space

    @cached_property
    def neighbourhoods(self) -> Neighbourhoods:
        """The neighbourhoods of the local test, the same for all methods."""
        space = check_space(self.space.judged, self.judged.n_rows)
        return Neighbourhoods.of(space, seed=self.seed, dependence=self.judged.grouping)


def _title(spec: RecalibratorSpec | None) -> str:
    return spec.title if spec else "The model as it is"


def _answered(
    rows: _Rows,
    spec: RecalibratorSpec | None,
    settings: Mapping[str, Any],
    n_folds: int | None,
    seed: int,
    progress: Progress,
) -> tuple[KeptAnswers, tuple[float, float], list[str]]:
    """One method's answers for all judged rows, the seconds to fit and predict, and its reasons."""
    answers = KeptAnswers(np.asarray(rows.judged.y), rows.shown, rows.scale, seed)
    fitting = predicting = 0.0
    reasons: list[str] = []
    done, title = 0, _title(spec)
    # one after the other where each block warns of its own rows, so that notes keep their order
    workers = 1 if settings.get("radius") is not None else cores()
    for kept, held in _divisions(rows, spec, n_folds, seed):
        start = time.perf_counter()
        fitted = _fitted(rows, spec, settings, kept) if spec else None
        fitting += time.perf_counter() - start
        reasons += [one for one in [getattr(fitted, "reason_", None)] if one is not None]
        blocks = np.array_split(held, max(1, -(-len(held) * workers // _BLOCK_ROWS)))
        notes = [
            f"{title}: {done + len(held) * at // len(blocks):,} of {len(answers):,} rows"
            for at in range(len(blocks))
        ]
        part = part_of(progress, done / len(answers), (done + len(held)) / len(answers))
        start = time.perf_counter()
        work = partial(_answer, rows, spec, fitted, answers)
        on_all_cores(work, blocks, note=notes.__getitem__, progress=part, most=workers)
        predicting += time.perf_counter() - start
        done += len(held)
    if len(reasons) > 1:
        reasons = [f"In the first of {len(reasons):,} folds: {in_sentence(reasons[0])}"]
    return answers, (fitting, predicting), reasons


def _answer(
    rows: _Rows,
    spec: RecalibratorSpec | None,
    fitted: Recalibrator | None,
    answers: KeptAnswers,
    block: IntArray,
) -> None:
    """One method's answers for some of the judged rows."""
    distribution: PredictiveDistribution = rows.judged.distribution[block]
    if fitted is not None and spec is not None:
        distribution = fitted.predict(distribution, rows.space_of(spec).judged[block])
    answers.fill(block, distribution)


def _divisions(
    rows: _Rows, spec: RecalibratorSpec | None, n_folds: int | None, seed: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows to fit on and rows to answer for."""
    n = rows.judged.n_rows
    if n_folds is None or spec is None:
        yield np.arange(rows.fit.n_rows), np.arange(n)
    else:
        together = rows.judged.grouping
        yield from fit_and_held(random_folds(n, n_folds, seed, together, fewer=True))


def _fitted(
    rows: _Rows, spec: RecalibratorSpec, settings: Mapping[str, Any], kept: IntArray
) -> Recalibrator:
    given = {name: value for name, value in settings.items() if name in spec.settings}
    together = rows.fit.grouping
    return fit_together(
        spec.make(**given),
        rows.fit.distribution[kept],
        rows.fit.y[kept],
        rows.space_of(spec).calibration[kept],
        None if together is None else together.only(kept),
        None if rows.fit.weight is None else rows.fit.weight[kept],
    )


def _scores(
    rows: _Rows,
    spec: RecalibratorSpec | None,
    answers: KeptAnswers,
    model: KeptAnswers | None,
    seconds: tuple[float, float],
    notes: tuple[str, ...],
    seed: int,
) -> RecalibratorScores:
    judged, weight = rows.judged, rows.judged.design
    as_distribution = cast(PredictiveDistribution, answers)
    scores = regression_scores(
        as_distribution,
        judged.y,
        scale=rows.scale,
        true_mean=judged.true_mean,
        pit=answers.pit,
        rows=answers.scores,
        weight=weight,
        seed=seed,
        name=_title(spec),
    )
    finite = {name: one for name, one in scores.rows.items() if _is_finite(one)}
    if spec is None and (unresolved := resolution_note(judged.distribution)):
        notes = (*notes, unresolved)
    none = int((answers.scores["log_score"] == np.inf).sum())
    if none:  # with one row no mean has an interval, whatever the densities
        outcomes = f"{none:,} outcomes lie" if none != 1 else "1 outcome lies"
        notes = (
            *notes,
            f"The log score is left out: {outcomes} where the distributions have almost no density "
            "(below 1e-300), which alone would decide it.",
        )
    needed, looked_at = _local_test(answers.pit, rows)
    return RecalibratorScores(
        key=spec.key if spec else MODEL,
        title=_title(spec),
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
    answers: KeptAnswers, model: KeptAnswers, weight: FloatArray | RowDesign | None
) -> dict[str, Estimate]:
    scores = {one.key: (answers.scores[one.key], model.scores[one.key]) for one in row_measures()}
    titles = {one.key: one.title for one in row_measures()}
    return {
        key: paired_difference(*both, weight=weight, name=titles[key], label=titles[key])
        for key, both in scores.items()
        if np.isfinite(both).all()
    }


def _local_test(pit: FloatArray, rows: _Rows) -> tuple[int, int]:
    """Number of neighbourhoods miscalibrated beyond chance, and number of those tested."""
    if len(pit) < _FEWEST:
        return 0, 0
    found = rows.neighbourhoods.test(pit)
    return int(found.needed.sum()), len(found.centres)


def _is_finite(estimate: Estimate) -> bool:
    return bool(np.isfinite([estimate.value, estimate.low, estimate.high]).all())
