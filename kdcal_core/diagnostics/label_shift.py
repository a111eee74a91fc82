"""Class shares of a table without labels, and posteriors adjusted to them: label shift.

Salamon et al., *Confidence calibration*, section XIII.B, name the mismatch of class frequencies in
the test set and in use as the largest unassessed source of uncertainty and advise to keep use
statistics. They give no estimator. The one here is the expectation-maximization of Saerens,
Latinne and Decaestecker (2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2

from kdcal_core.data import FloatArray, IntArray, at_most, check_columns, check_rows, column_names
from kdcal_core.diagnostics.calibration_test import target_test
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.label_shift_fit import label_shift_fit
from kdcal_core.diagnostics.shift import check_draws
from kdcal_core.diagnostics.targets import check_level, check_seed, targets
from kdcal_core.diagnostics.unit_changes import UnitChanges
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    design_of,
    holm,
    independent_rows,
    pooled,
    small_sample_factor,
)
from kdcal_core.text import p_text

DRAWS = 200
LEAST_ROWS = 30
POOR = 0.05
"""Adjusted p value of the test of calibration below which the posteriors are called poor."""

REFUSED = 0.01
"""p value up to which the posteriors are said not to be explained by any shares."""

ASSUMPTIONS = (
    "Only the shares of the classes changed: rows of one class look as they did in the reference "
    "table.",
    "The posteriors are calibrated on the reference rows.",
    "Every class of the new rows is one of the reference classes.",
)

_MOST_ITERATIONS = 10_000
_TOLERANCE = 1e-9
_MOST_DRAWN = 10_000  # rows behind the draws
_SHUFFLED = 5_000  # rows are shuffled up to this many; above, means are normal
_SHUFFLES = 1_999
_MOST_GROUPS = 2_000  # of dependent rows, that are drawn together
_CLIP = 1e-6


@dataclass(frozen=True)
class Convergence:
    """How the iteration ended: steps of expectation-maximization, and the last change."""

    iterations: int
    change: float
    converged: bool


@dataclass(frozen=True, eq=False)
class LabelShift:
    """Class shares of new rows, estimated without labels.

    Attributes
    ----------
    shares : tuple of K Estimate
        Share of each class in the new rows; ``expected`` is its share in the reference rows.
    changes : tuple of K Estimate
        New share minus reference share.
    prior, reference_prior : (K,) array
        The same shares as arrays, and those they are compared with: mean reference posteriors.
    adjusted : (m, K) array
        Posteriors of the new rows under the new shares.
    p_value : float
        Of the hypothesis that the mean posteriors, and so the shares, did not change.
    fit_p_value : float
        Of the hypothesis that some shares explain the new posteriors (`label_shift_fit`); NaN where
        rows are too few to say.
    convergence : Convergence
    calibration_p_values : (K,) array
        Of the calibration of each class's posterior on the reference rows, adjusted by Holm.
    miscalibrated : tuple of int
        Classes whose adjusted p value is at most 0.05: the shares cannot be trusted there.
    assumptions, cautions : tuple of str
    n_reference, n_new, draws, seed : int
    """

    shares: tuple[Estimate, ...]
    changes: tuple[Estimate, ...]
    prior: FloatArray
    reference_prior: FloatArray
    adjusted: FloatArray
    p_value: float
    fit_p_value: float
    convergence: Convergence
    calibration_p_values: FloatArray
    miscalibrated: tuple[int, ...]
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...]
    n_reference: int
    n_new: int
    draws: int
    seed: int

    @property
    def misfit(self) -> str:
        """That no shares are an answer, as a sentence; empty where some may be."""
        return _misfit(self.fit_p_value)


def _misfit(p_value: float) -> str:
    if not p_value <= REFUSED:
        return ""
    return (
        f"No shares of the classes explain the new probabilities (p value {p_text(p_value)}): rows "
        "of a class look different from before."
    )


def label_shift(
    new_proba: Any,
    proba: Any,
    y: Any,
    *,
    dependence: Dependence | None = None,
    level: float = 0.95,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> LabelShift:
    """Class shares of new rows by the EM of Saerens et al. (2002), with intervals and a test.

    Parameters
    ----------
    new_proba : (m, K) array-like or data frame, or (m,)
        Calibrated posteriors of the new rows.
    proba : (n, K) array-like or data frame, or (n,)
        Those of the reference rows, which the calibrator was not fitted on.
    y : (n,) array-like
        True classes of the reference rows, as for :func:`kdcal_core.diagnostics.reliability`.
    dependence : Dependence, optional
        Of the n + m rows, the reference rows first, so that a cluster may have rows in both tables.
    level : float
    n_draws, seed : int
        Draws behind the intervals, and the seed of all draws.

    Returns
    -------
    LabelShift

    Raises
    ------
    InputError
        For values that are not probabilities or labels (the row is named), another number of
        classes, a class with no posterior in the reference rows, or fewer than 30 rows of a table.

    Notes
    -----
    With reference shares a_k, posteriors p_ik and new shares s_k, each step sets s_k to the mean
    over the new rows of s_k p_ik / a_k, scaled to sum to one in every row. The likelihood is
    concave, so the limit is its maximum. Steps are extrapolated (Varadhan and Roland 2008), which
    changes the speed and not the limit. The a_k are mean posteriors of the reference rows rather
    than shares of labels: without a shift the limit is then the start, even if the posteriors are
    slightly off (Alexandari, Kundaje and Shrikumar 2020).

    The intervals are percentiles of a bootstrap with three sources: which new rows were seen,
    which reference rows were seen, and the posteriors' own calibration, known only as well as the
    reference labels show it. For the last, slope and offsets of the log posteriors are drawn from
    their normal distribution about 1 and 0 (the parameters of bias-corrected temperature scaling,
    with the sandwich variance). With more than 10,000 rows in a table 10,000 are drawn, so that
    the intervals are then too wide rather than too narrow.

    The test of a change compares mean posteriors by Hotelling's distance. It is the score test of
    the same likelihood. Rows are shuffled between the tables, so its level is exact; above 5,000
    rows it is chi-square. Of dependent rows, clusters or blocks of times are resampled, and each
    one's part of the difference of the means is multiplied by a random normal number (the wild
    bootstrap; Shao 2010). With 40 clusters of 10 rows in each table and a correlation of .2 the
    test at 5% then refused equal tables in 6% of 200 runs, and that of independent rows in 23%.

    That test also refuses changes other than of shares. A second one, `label_shift_fit`, tells them
    apart: it refuses where no shares explain the new posteriors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def table(share, n=2000):
    ...     y = (rng.random(n) < share).astype(int)
    ...     odds = 2.0 * (rng.normal(size=n) + 2.0 * y - 1.0) + np.log(0.3 / 0.7)
    ...     return np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))]), y
    >>> (proba, y), (new, _) = table(0.3), table(0.6)
    >>> found = label_shift(new, proba, y, n_draws=50)
    >>> round(found.shares[1].value, 1), found.p_value < 0.01
    (0.6, True)
    """
    check_level(level)
    check_seed(seed)
    check_draws(n_draws)
    named = column_names(proba)
    proba, y, classes = check_rows(proba, y)
    n_classes = proba.shape[1]
    new = check_columns(new_proba, classes, named, n_classes=n_classes)
    for rows, noun in ((proba, "reference"), (new, "new")):
        if len(rows) < LEAST_ROWS:
            raise InputError(
                f"The {noun} table has {len(rows)} rows", fix=f"Give at least {LEAST_ROWS}."
            )
    reference_prior = proba.mean(axis=0)
    if not (reference_prior > 0.0).all():
        raise InputError(
            f"Class {int(np.argmin(reference_prior)) + 1} has probability 0 in all reference rows",
            fix="Leave the class out of both tables.",
        )
    prior, convergence = _most_likely(new / reference_prior)
    together = None if dependence is None or dependence.alone else dependence
    held_together = None if together is None else together.only(slice(None, len(proba)))
    moved, held = _drawn(new, proba, y, together, n_draws, np.random.default_rng([seed, 0]))
    design = design_of(None, held_together)
    fit = label_shift_fit(new, proba, y, dependence=together, seed=seed)
    p_values = holm([target_test(one, seed) for one in targets(proba, y, design, "class")])
    poor = tuple(int(k) for k in np.flatnonzero(p_values <= POOR))
    how = f"percentile bootstrap of both tables and of the calibration, {n_draws:,} draws"

    def estimates(value: FloatArray, drawn: FloatArray, least: float, what: str) -> Any:
        tail = 0.5 * (1.0 - level)
        # unbiased for few draws; the default's interval is too narrow
        ends = np.quantile(drawn, [tail, 1.0 - tail], axis=0, method="weibull")
        low = np.clip(np.minimum(ends[0], value), least, 1.0)
        high = np.clip(np.maximum(ends[1], value), least, 1.0)
        return tuple(
            Estimate(
                name=f"{what} of class {k + 1}, EM of Saerens et al. (2002)",
                label=what,
                value=float(value[k]),
                low=float(low[k]),
                high=float(high[k]),
                n=len(new),
                level=level,
                interval=how,
                expected=float(reference_prior[k]) if least == 0.0 else None,
                percent=True,
                lower_is_better=None,
                expected_words="in the reference rows",
            )
            for k in range(n_classes)
        )

    return LabelShift(
        shares=estimates(prior, moved, 0.0, "Share in the new rows"),
        changes=estimates(prior - reference_prior, moved - held, -1.0, "Change of the share"),
        prior=prior,
        reference_prior=reference_prior,
        adjusted=adjusted_posteriors(new, reference_prior, prior),
        p_value=_mean_test(new, proba, together, np.random.default_rng([seed, 1])),
        fit_p_value=fit,
        convergence=convergence,
        calibration_p_values=p_values,
        miscalibrated=poor,
        assumptions=ASSUMPTIONS,
        cautions=_cautions(p_values, poor, fit, convergence),
        n_reference=len(proba),
        n_new=len(new),
        draws=n_draws,
        seed=seed,
    )


def adjusted_posteriors(proba: Any, prior: Any, new_prior: Any) -> FloatArray:
    """Posteriors (m, K) if the classes' shares change from ``prior`` (K,) to ``new_prior`` (K,).

    Each is multiplied by new_prior / prior, and rows are scaled to sum to one (Saerens et al. 2002,
    Eq. 2.4). Shares are positive in ``prior``.

    Examples
    --------
    >>> adjusted_posteriors([[0.5, 0.5]], [0.5, 0.5], [0.2, 0.8]).tolist()
    [[0.2, 0.8]]
    """
    proba = check_columns(proba)
    weighed = proba * (np.asarray(new_prior) / np.asarray(prior))
    total = weighed.sum(axis=1, keepdims=True)
    # a row that only impossible classes explain stays as it is
    return np.asarray(np.where(total > 0.0, weighed / np.where(total > 0.0, total, 1.0), proba))


def _most_likely(
    ratio: FloatArray, start: FloatArray | None = None, tolerance: float = _TOLERANCE
) -> tuple[FloatArray, Convergence]:
    """Shares (K,) that maximize the mean log of ratio (m, K) @ shares, and how they were found."""
    n, k = ratio.shape
    at = np.full(k, 1.0 / k) if start is None else 0.9 * start + 0.1 / k

    def step(shares: FloatArray) -> FloatArray:
        mixed = np.maximum(ratio @ shares, 1e-300)
        moved = shares * ((1.0 / mixed) @ ratio) / n
        return np.asarray(moved / moved.sum())

    def likelihood(shares: FloatArray) -> float:
        return float(np.log(np.maximum(ratio @ shares, 1e-300)).mean())

    taken, change = 0, np.inf
    while taken < _MOST_ITERATIONS:
        one = step(at)
        two = step(one)
        taken += 2
        first, bend = one - at, two - 2.0 * one + at
        change = float(np.abs(first).max())
        if change < tolerance:
            return two, Convergence(taken, change, True)
        size = np.linalg.norm(bend)
        at = two
        if size > 0.0:
            reach = max(float(np.linalg.norm(first) / size), 1.0)
            far = np.maximum(one - first + 2.0 * reach * first + reach**2 * bend, 1e-300)
            far = step(far / far.sum())
            taken += 1
            if likelihood(far) >= likelihood(two):
                at = far
    return at, Convergence(taken, change, False)


def _drawn(
    new: FloatArray,
    proba: FloatArray,
    y: IntArray,
    together: Dependence | None,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Bootstrap draws of new and of reference shares, (n_draws, K) each, about the estimates."""
    n = len(proba)
    own = [None if together is None else together.only(at) for at in (slice(n, None), slice(n))]
    parameters = _calibration_doubt(proba, y, own[1], n_draws, rng)
    seed = int(rng.integers(2**31))
    # the means are those of all rows: draws from a part of them deviate from the part's own
    kept = [at_most(len(rows), _MOST_DRAWN, seed) for rows in (new, proba)]
    parts = [rows[at] for rows, at in zip((new, proba), kept, strict=True)]
    own = [None if one is None else one.only(at) for one, at in zip(own, kept, strict=True)]
    logs = [np.log(np.maximum(part, _CLIP)) for part in parts]
    held = parts[1].mean(axis=0)
    centre, _ = _most_likely(parts[0] / held)
    moved, reference = np.empty((2, n_draws, new.shape[1]))
    for b, (slope, offsets) in enumerate(zip(parameters[:, 0], parameters[:, 1:], strict=True)):
        unseen, seen = (
            softmax(log[_resample(len(log), one, rng)] * (1.0 + slope) + offsets, axis=1)
            for log, one in zip(logs, own, strict=True)
        )
        reference[b] = seen.mean(axis=0)
        moved[b], _ = _most_likely(unseen / reference[b], centre, 1e-6)
    prior, _ = _most_likely(new / proba.mean(axis=0))
    return moved - centre + prior, reference - held + proba.mean(axis=0)


def _resample(n: int, together: Dependence | None, rng: np.random.Generator) -> IntArray:
    """Positions of rows drawn with replacement, alone or by clusters or blocks of times."""
    if together is None:
        return rng.integers(n, size=n)
    found = independent_rows(n, 1, _MOST_GROUPS, rng, together)
    return np.repeat(np.arange(n), found.times[0].astype(np.int64)[found.group])


def _calibration_doubt(
    proba: FloatArray,
    y: IntArray,
    together: Dependence | None,
    n_draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws of a slope (minus 1) and of K offsets of the log posteriors, (n_draws, 1 + K).

    Their maximum likelihood estimates about (0, 0) are normal with the sandwich variance.
    """
    logs = np.log(np.maximum(proba, _CLIP))
    n, k = proba.shape
    mean = (proba * logs).sum(axis=1)
    found = np.eye(k)[y] - proba
    score = np.column_stack([logs[np.arange(n), y] - mean, found])
    information = np.empty((1 + k, 1 + k))
    information[0, 0] = ((proba * logs**2).sum(axis=1) - mean**2).sum()
    information[0, 1:] = information[1:, 0] = (proba * (logs - mean[:, None])).sum(axis=0)
    information[1:, 1:] = np.diag(proba.sum(axis=0)) - proba.T @ proba
    # a weak pull to 0, because offsets matter only up to a constant and a class may be rare
    inverse = np.linalg.inv(information + 0.5 * np.eye(1 + k))
    if together is not None:
        units = len(np.unique(together.unit))
        score = pooled(score.T, together).T * small_sample_factor(units, together.lags) ** 0.5
    root = inverse @ np.linalg.cholesky(score.T @ score + 0.5 * np.eye(1 + k))
    return np.asarray(rng.normal(size=(n_draws, 1 + k)) @ root.T)


def _mean_test(
    new: FloatArray, proba: FloatArray, together: Dependence | None, rng: np.random.Generator
) -> float:
    """p value of equal mean posteriors of both tables."""
    both = np.concatenate([new, proba])
    m, n = len(new), len(proba)
    centred = both - both.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / (m + n))
    kept = values > 1e-12 * max(float(values.max()), 1e-300)
    if not kept.any() or values.max() < 1e-18:
        return 1.0
    scaled = centred @ (vectors[:, kept] / np.sqrt(values[kept]))
    # the pooled rows have mean 0, so the new rows' sum alone shows the difference
    seen = float(np.square(scaled[:m].sum(axis=0)).sum())
    if together is not None:
        rows = np.concatenate([scaled[m:], scaled[:m]])
        change = rows[n:].mean(axis=0) - rows[:n].mean(axis=0)
        by_chance = UnitChanges.of_means(rows, n, together).drawn(_SHUFFLES, rng)
        drawn, seen = np.square(by_chance).sum(axis=1), float(np.square(change).sum())
        return (1 + int((drawn >= seen * (1.0 - 1e-9)).sum())) / (1 + _SHUFFLES)
    if m + n > _SHUFFLED:
        scale = m * n / (m + n - 1.0)
        return float(chi2.sf(seen / scale, int(kept.sum())))
    order = rng.random((_SHUFFLES, m + n))
    chosen = order <= np.partition(order, m - 1, axis=1)[:, m - 1 : m]
    drawn = np.square(chosen.astype(np.float64) @ scaled).sum(axis=1)
    return (1 + int((drawn >= seen * (1.0 - 1e-9)).sum())) / (1 + _SHUFFLES)


def _cautions(
    p_values: FloatArray, poor: tuple[int, ...], fit: float, convergence: Convergence
) -> tuple[str, ...]:
    found = []
    if fit <= REFUSED:
        found.append(f"{_misfit(fit)} The shares below only come nearest.")
    if poor:
        found.append(
            f"On the reference rows the posteriors of {len(poor)} of {len(p_values)} classes "
            "disagree with the outcomes (smallest p value after Holm: "
            f"{p_text(float(p_values.min()))}). Shares estimated from them are biased; calibrate "
            "first."
        )
    if not convergence.converged:
        found.append(
            f"The iteration did not converge within {convergence.iterations:,} steps: the classes "
            "are hardly distinguishable by their posteriors."
        )
    return tuple(found)
