"""Two versions of a model: every measure with its difference, paired by row on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from kdcal_core.calibration import Calibrated
from kdcal_core.data import FloatArray, ScoredSet, check_weight
from kdcal_core.diagnostics.between_sets import ChangedEstimate, changed_estimate, direction_of
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression import paired_difference
from kdcal_core.diagnostics.summaries import ClassSummary
from kdcal_core.distributions import RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation.counted_pair import CountedPair
from kdcal_core.evaluation.distribution_measures import (
    interval_rows,
    regression_scores,
    row_scores,
)
from kdcal_core.evaluation.measures import (
    MEASURES,
    Judged,
    Scored,
    counted_measures,
    scored_measures,
)
from kdcal_core.evaluation.paired import (
    LEAST_ROWS,
    PairedDifference,
    Verdict,
    against_model,
    untested,
    without_interval,
)
from kdcal_core.progress import Progress
from kdcal_core.statistics import (
    RowDesign,
    dependence_of,
    design_of,
    holm,
    kish,
    t_quantile_of_rows,
    units,
)


@dataclass(frozen=True)
class VersionMeasure:
    """A measure of both versions.

    Attributes
    ----------
    key : str
        Of `kdcal_core.evaluation.MEASURES`.
    before, after : Estimate
    difference : PairedDifference
        After less before, paired by row. Its ``adjusted_p`` and ``verdict`` are corrected for the
        number of measures (Holm).
    """

    key: str
    before: Estimate
    after: Estimate
    difference: PairedDifference


def compare_versions(
    before: ScoredSet,
    after: ScoredSet,
    *,
    event: int | None = None,
    level: float = 0.95,
    n_boot: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
    summaries: tuple[ClassSummary, ClassSummary] | None = None,
) -> tuple[VersionMeasure, ...]:
    """Compare two versions that were scored on the same rows, in the same order.

    Parameters
    ----------
    before, after : ScoredSet of n rows
        With the same classes, true classes and weights.
    event : int, optional
        With two classes, the one whose probability calibration errors are about.
    n_boot, seed, progress
        As of `kdcal_core.evaluation.compare`.
    summaries : pair of ClassSummary, optional
        Of both, where very many rows count alike and do not depend on one another: one pass then
        counts what the versions share, and estimates are those of the summaries.

    Raises
    ------
    InputError
        If the rows are not the same.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> after = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "a", "evaluation")
    >>> worse = p**3 / (p**3 + (1 - p)**3)
    >>> before = replace(after, proba=np.column_stack([1 - worse, worse]))
    >>> found = {one.key: one for one in compare_versions(before, after, event=1, n_boot=200)}
    >>> found["log_loss"].difference.verdict, found["auc"].difference.verdict
    ('better', 'cannot be told apart')
    """
    weight = check_weight(before.weight, before.n_rows)
    if (
        before.classes != after.classes
        or not np.array_equal(before.y, after.y)
        or not np.array_equal(weight, check_weight(after.weight, after.n_rows))
    ):
        raise _other_rows()
    if summaries is not None:
        if {one.n for one in summaries} != {before.n_rows}:
            raise _other_rows()
        pair = CountedPair.of(before, after, summaries, event, level, n_boot, seed)
        return _measures(counted_measures(pair, progress), level)
    count = np.bincount(before.y, weights=weight, minlength=len(before.classes))
    judged = Judged(
        before.y,
        weight,
        np.zeros(before.n_rows, dtype=np.int64),
        (_stated(before), _stated(after)),
        (),
        count / count.sum(),
        kish(weight),
        before.classes,
        event,
        after.grouping or before.grouping,
    )
    scored = scored_measures(judged, level=level, n_boot=n_boot, seed=seed, progress=progress)
    return _measures(scored, level)


def _measures(scored: Sequence[Scored], level: float) -> tuple[VersionMeasure, ...]:
    found = [_measure(one, level) for one in scored]
    adjusted = holm(np.array([one.difference.p_value for one in found]))
    return tuple(
        replace(one, difference=_corrected(one.difference, float(p), level))
        for one, p in zip(found, adjusted, strict=True)
    )


def _stated(rows: ScoredSet) -> Calibrated:
    return Calibrated(rows.proba, rows.proba.argmax(axis=1), rows.proba.max(axis=1))


def _measure(scored: Scored, level: float) -> VersionMeasure:
    before, after = map(without_interval, scored.estimates)
    keys = ("before", "after")
    pairs = against_model(scored.spread, scored.measure, keys, 0, before.n, level)
    pairs = pairs if before.n >= LEAST_ROWS else untested(pairs)
    return VersionMeasure(scored.measure.key, before, after, pairs[1])


def _corrected(pair: PairedDifference, adjusted: float, level: float) -> PairedDifference:
    verdict: Verdict = pair.verdict if adjusted < 1.0 - level else "cannot be told apart"
    return replace(pair, adjusted_p=adjusted, verdict=verdict)


def changed_measures(found: Sequence[VersionMeasure]) -> tuple[ChangedEstimate, ...]:
    """What :func:`compare_versions` found, in the form of any two versions' estimates."""
    return tuple(_changed(one) for one in found)


def _changed(one: VersionMeasure) -> ChangedEstimate:
    pair, lower = one.difference, MEASURES[one.key].lower_is_better
    difference = replace(pair.difference, percent=one.after.percent)
    beyond = pair.verdict != "cannot be told apart"
    direction = direction_of(difference, lower, beyond_chance=beyond)
    title = MEASURES[one.key].title
    return ChangedEstimate(title, title, one.before, one.after, difference, direction)


def compare_forecasts(
    before: RegressionSet,
    after: RegressionSet,
    *,
    scale: float,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[tuple[ChangedEstimate, ...], tuple[ChangedEstimate, ...]]:
    """Compare two versions' predictive distributions of the same rows, in the same order.

    Parameters
    ----------
    before, after : RegressionSet of n rows
        With the same outcomes and weights.
    scale : float
        Mean absolute outcome of the calibration set, for sMIS.
    seed : int
        Of randomised PIT values and bootstraps.

    Returns
    -------
    tuple, tuple
        The measures that are means over the rows, paired by row (Student's t), whose directions are
        corrected for their number (Holm); and the others, with the intervals of different rows,
        which are too wide on the same rows.

    Raises
    ------
    InputError
        If the rows are not the same.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> after = RegressionSet(Normal(np.zeros(500), 1.0), y, "", "evaluation")
    >>> before = replace(after, distribution=Normal(np.full(500, 0.5), 1.0))
    >>> paired, others = compare_forecasts(before, after, scale=1.0)
    >>> [(one.label, one.direction) for one in paired][::4]
    [('CRPS', 'better'), ('Coverage 95%', 'not told apart')]
    >>> [one.label for one in others]
    ['RMSE', 'Quantile error', 'Wasserstein']
    """
    weight = check_weight(before.weight, before.n_rows)
    if not np.array_equal(before.y, after.y) or not np.array_equal(
        weight, check_weight(after.weight, after.n_rows)
    ):
        raise _other_rows()
    design = design_of(weight, after.grouping or before.grouping)
    rows, scores = [], []
    for one in (before, after):
        parts = row_scores(one.distribution, one.y, scale=scale)
        scores.append(forecast_estimates(one, scale=scale, parts=parts, level=level, seed=seed))
        rows.append({**parts, **interval_rows(one.distribution, one.y)})
    found = {
        key: _paired(key, [one[key] for one in rows], [one[key] for one in scores], design, level)
        for key in scores[1]
        if key in scores[0] and all(key in one and np.isfinite(one[key]).all() for one in rows)
    }
    adjusted = holm(np.array([p for _, p in found.values()]))
    told = before.n_rows >= LEAST_ROWS
    paired = [
        replace(
            one,
            direction=direction_of(
                one.difference,
                one.after.lower_is_better,
                beyond_chance=told and bool(p < 1.0 - level),
                mirrored=one.mirrored,
            ),
        )
        for (one, _), p in zip(found.values(), adjusted, strict=True)
    ]
    rest = [
        changed_estimate(scores[0][key], one, name=one.label)
        for key, one in scores[1].items()
        if key not in found and key in scores[0]
    ]
    return tuple(paired), tuple(rest)


def forecast_estimates(
    rows: RegressionSet,
    *,
    scale: float,
    parts: Mapping[str, FloatArray] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Every finite measure of predictive distributions by key; ``parts`` as of `row_scores`."""
    found = regression_scores(
        rows.distribution,
        rows.y,
        scale=scale,
        true_mean=rows.true_mean,
        rows=parts,
        weight=rows.design,
        level=level,
        seed=seed,
    )
    return {key: one for key, one in found.rows.items() if np.isfinite(one.value)}


def _paired(
    key: str,
    rows: Sequence[FloatArray],
    scores: Sequence[Estimate],
    design: FloatArray | RowDesign,
    level: float,
) -> tuple[ChangedEstimate, float]:
    """A measure of both versions with its paired difference, and the p value of no difference.

    Of a measure with a target, the mirrored difference too, and the p value of no nearer one.
    """
    before, after = scores
    title = MEASURES[key].title
    difference, p = _difference(rows[1], rows[0], design, after, title, level)
    mirrored = None
    if after.target is not None:
        image = 2.0 * after.target - rows[0]
        mirrored, p_image = _difference(rows[1], image, design, after, title, level)
        # where the distances are not told apart, only the difference itself is claimed
        p = max(p, p_image) if p_image < 1.0 - level else p
    changed = ChangedEstimate(title, title, before, after, difference, "not told apart", mirrored)
    return changed, p


def _difference(
    rows: FloatArray,
    other: FloatArray,
    design: FloatArray | RowDesign,
    after: Estimate,
    title: str,
    level: float,
) -> tuple[Estimate, float]:
    """The mean of ``rows`` less ``other``, both (n,), and the p value of no difference."""
    found = paired_difference(rows, other, weight=design, level=level, label=title)
    weight, together = check_weight(design, len(rows)), dependence_of(design)
    error = (found.high - found.low) / (2.0 * t_quantile_of_rows(level, weight, together))
    freedom = max(kish(units(weight, together)) - 1.0, 1e-9)
    p = 1.0
    if 0.0 < error < np.inf:
        p = 2.0 * float(stdtr(freedom, -abs(found.value) / error))
    elif found.value and error == 0.0:
        p = 0.0  # every row differs by the same
    found = without_interval(replace(found, percent=after.percent, expected=None))
    return replace(found, lower_is_better=after.lower_is_better), p


def _other_rows() -> InputError:
    return InputError(
        "The versions were scored on other rows, or on the same rows in another order",
        fix="Score both on one table.",
    )
