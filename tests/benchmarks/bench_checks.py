"""How often verdicts are wrong, and what the test of calibration finds beside older ones.

``python -m tests.benchmarks.bench_checks [tests|limits|gains|levels] [--processes N]`` measures and
writes ``RESULTS_checks.md``; ``run()`` times the checks among the other benchmarks.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import chi2, norm

from kdcal_core.checks import (
    CHECKS,
    Evidence,
    gain_of_a_recalibration,
    judge_checks,
    measure_checks,
)
from kdcal_core.checks.verdicts import VERDICTS
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics import calibration_test
from kdcal_core.diagnostics.calibration_test import _DRAWS, _largest
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.evaluation import Space
from kdcal_core.evaluation.overlap import SetRows
from kdcal_core.review import (
    Limit,
    ReviewData,
    ReviewReader,
    Which,
    Workspace,
    samples,
    start_sample,
)
from kdcal_core.statistics import Dependence
from kdcal_core.tasks import Sets, checks_settings, thorough_checks

RESULTS = Path(__file__).parent / "RESULTS_checks.md"
RUNS_OF_TESTS, FEW_RUNS_OF_TESTS, SIZES = 600, 200, (200, 1_000, 5_000)
AGAIN, SEEDS_AGAIN = ("KC010", "KC101", "KC121", "KC205"), range(1_000, 21_000)
RUNS, REVIEWS, LIMIT_SIZES = 400, 200, (500, 2_000)
OWN_RUNS, FRESH_ROWS = {("KC103", 0.05): 400, ("KC123", 0.05): 100}, 30_000
ECE_DRAWS = 200

Fault = Callable[[FloatArray], FloatArray]

FAULTS: dict[str, Fault] = {
    "calibrated": lambda p: p,
    "log odds 1.25 times too large": lambda p: expit(logit(p) / 1.25),
    "log odds 1.25 times too small": lambda p: expit(logit(p) * 1.25),
    "log odds shifted by 0.25": lambda p: expit(logit(p) - 0.25),
    "only above 0.8, by 0.08": lambda p: np.where(p > 0.8, p - 0.08, p),
    "a bump of 0.1 at 0.5": lambda p: p + 0.1 * np.exp(-(((p - 0.5) / 0.12) ** 2)),
    "a wave of 0.06": lambda p: np.clip(p + 0.06 * np.sin(4 * np.pi * p), 0.001, 0.999),
}
"""The true probability for a stated one."""

RARE = -3.5  # mean log odds of a rare event
RARE_FAULTS: dict[str, Fault] = {
    "calibrated": lambda p: p,
    "log odds 1.25 times too large": lambda p: expit(logit(p) / 1.25),
    "log odds 1.25 times too small": lambda p: expit(logit(p) * 1.25),
    "1.5 times too far from their mean": lambda p: expit(RARE + (logit(p) - RARE) / 1.5),
    "1.5 times too close to their mean": lambda p: expit(RARE + (logit(p) - RARE) * 1.5),
    "log odds shifted by 0.25": lambda p: expit(logit(p) - 0.25),
    "only the top tenth, by 0.75": lambda p: expit(
        logit(p) - 0.75 * (logit(p) > RARE + norm.ppf(0.9))
    ),
    "a bump of 0.75 at the median": lambda p: expit(
        logit(p) + 0.75 * np.exp(-(((logit(p) - RARE) / 0.5) ** 2))
    ),
}


@dataclass(frozen=True)
class Scores:
    """Stated probabilities, what may be wrong with them, and how many rows are tried."""

    words: str
    drawn: Callable[[np.random.Generator, int], FloatArray]
    faults: dict[str, Fault]
    sizes: tuple[int, ...] = SIZES[:2]


def _two_sided(rng: np.random.Generator, n: int) -> FloatArray:
    return np.asarray(expit(rng.normal(size=n) * 1.5))


def _confident(rng: np.random.Generator, n: int) -> FloatArray:
    p = _two_sided(rng, n)
    return np.maximum(p, 1.0 - p)


SCORES: dict[str, Scores] = {
    "event": Scores("Stated log odds are N(0, 1.5^2)", _two_sided, FAULTS, SIZES),
    "rare": Scores(
        "A rare event: stated log odds are N(-3.5, 1)",
        lambda rng, n: np.asarray(expit(RARE + rng.normal(size=n))),
        RARE_FAULTS,
    ),
    "confidence": Scores(
        "Confidence in the predicted of two classes, whose log odds are N(0, 1.5^2)",
        _confident,
        FAULTS,
    ),
}


def spiegelhalter(score: FloatArray, hit: IntArray) -> float:
    """p value of Spiegelhalter's z (1986)."""
    away = ((hit - score) * (1 - 2 * score)).sum()
    return float(2 * norm.sf(abs(away) / ((1 - 2 * score) ** 2 * score * (1 - score)).sum() ** 0.5))


def hosmer_lemeshow(score: FloatArray, hit: IntArray) -> float:
    """p value of Hosmer and Lemeshow's test on ten groups, for rows that were not fitted on."""
    group = np.argsort(np.argsort(score)) * 10 // len(score)
    said, seen = (np.bincount(group, weights=one) for one in (score, hit))
    rows = np.bincount(group)
    return float(chi2.sf(((seen - said) ** 2 / (said * (1 - said / rows))).sum(), 10))


def plain_bootstrap(score: FloatArray, hit: IntArray, rng: np.random.Generator) -> float:
    """0 where the percentile interval of the ECE lies above 0.01, else 1."""
    cell = np.minimum((score * 15).astype(int), 14)
    gap = hit - score
    n = len(score)
    drawn = [
        np.abs(np.bincount(cell[at], weights=gap[at], minlength=15)).sum() / n
        for at in rng.integers(0, n, (ECE_DRAWS, n))
    ]
    return float(np.quantile(drawn, 0.025) <= 0.01)


def neyman(score: FloatArray, hit: IntArray, seed: int) -> tuple[float, float]:
    """p values of kdcal's test, and of the adaptive Neyman test alone on the same redraws."""
    alone: list[FloatArray] = []

    def recorded(projections: FloatArray, contrast: FloatArray) -> FloatArray:
        alone.append(_largest(projections, np.zeros(len(contrast))))
        return _largest(projections, contrast)

    with patch("kdcal_core.diagnostics.calibration_test._largest", recorded):
        p_value = calibration_test(score, hit, seed=seed)
    seen, drawn = alone[0][0], np.concatenate(alone[1:])[:_DRAWS]
    return p_value, float((1 + (drawn >= seen).sum()) / (1 + len(drawn)))


def p_values(
    score: FloatArray, hit: IntArray, seed: int, *, plain: bool = False
) -> dict[str, float]:
    """p value of every test; the ``plain`` bootstrap, which refuses nearly all, only if asked."""
    ours, alone = neyman(score, hit, seed)
    found = {
        "kdcal": ours,
        "the same without the contrast": alone,
        "Spiegelhalter": spiegelhalter(score, hit),
        "Hosmer-Lemeshow": hosmer_lemeshow(score, hit),
    }
    if plain:
        rng = np.random.default_rng(seed)
        found["plain bootstrap of ECE, above 0.01"] = plain_bootstrap(score, hit, rng)
    return found


def runs_of(fault: str, n: int) -> int:
    """Runs: fewer of many rows with a fault that kdcal's test finds in each."""
    slow = n > 1_000 and fault not in ("calibrated", "a bump of 0.1 at 0.5")
    return FEW_RUNS_OF_TESTS if slow else RUNS_OF_TESTS


def refused(scores: str, fault: str, n: int) -> dict[str, float]:
    """Share of runs in which each test refuses at 5%."""
    made, runs = SCORES[scores], runs_of(fault, n)
    counts: Counter[str] = Counter()
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        score = made.drawn(rng, n)
        hit = (rng.random(n) < made.faults[fault](score)).astype(np.int64)
        found = p_values(score, hit, seed, plain=scores == "event")
        counts.update({name: int(p <= 0.05) for name, p in found.items()})
    return {name: counts[name] / runs for name in found}


# -- verdicts where the truth is known: on the limit, clearly beyond it, clearly within --


def _unit_interval(n: int, rng: np.random.Generator) -> FloatArray:
    """True probabilities that may be stated 0.1 too high."""
    return rng.uniform(0.05, 0.8, n)


def _drawn(p: FloatArray, rng: np.random.Generator) -> IntArray:
    return (rng.random(len(p)) < p).astype(np.int64)


def _two(stated: FloatArray, y: IntArray, name: str = "evaluation") -> ScoredSet:
    return ScoredSet(np.column_stack([1 - stated, stated]), y, ("no", "yes"), "", name)  # type: ignore[arg-type]


def _classes(n: int, rng: np.random.Generator, said: Fault, **more: Any) -> Evidence:
    """The event of two classes, and what a model says of its true probability."""
    p = _unit_interval(n, rng)
    return Evidence(_two(said(p), _drawn(p, rng)), event=1, **more)


def _table(n: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])


def _groups(n: int) -> pd.DataFrame:
    return pd.DataFrame({"site": np.resize(["n", "e", "s", "w"], n)})


def _by_predicted_class(n: int, rng: np.random.Generator, gap: float) -> Evidence:
    """Confidences too high by the same gap, whichever of two classes is predicted."""
    confidence, second = rng.uniform(0.65, 0.95, n), rng.integers(0, 2, n)
    right = rng.random(n) < confidence - gap
    stated = np.where(second == 1, confidence, 1.0 - confidence)
    return Evidence(_two(stated, np.where(right, second, 1 - second)))


def _by_class(n: int, rng: np.random.Generator, gap: float) -> Evidence:
    """Three classes: the first stated too often, the second too rarely, the third right."""
    true = rng.dirichlet([4.0, 6.0, 4.0], n) * 0.7 + [0.08, 0.14, 0.08]
    y = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2)
    stated = true + np.array([gap, -gap, 0.0])
    return Evidence(ScoredSet(stated, y, ("a", "b", "c"), "", "evaluation"))


def _errors(n: int, rng: np.random.Generator, mean: float) -> Evidence:
    """Errors, a tenth of the rows, with this mean confidence; other rows are surer."""
    wrong = rng.random(n) < 0.1
    confidence = np.where(wrong, rng.uniform(mean - 0.045, mean + 0.045, n), 0.97)
    return Evidence(_two(confidence, (~wrong).astype(np.int64)))


class _Sure:
    """A model that is certain of the second class everywhere."""

    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        return np.tile([0.0, 1.0], (len(X), 1))


def _far(n: int, rng: np.random.Generator, distance: float) -> Evidence:
    """Certain everywhere, where the share of its class is 1 less the distance."""
    y = (rng.random(n) < 1.0 - distance).astype(np.int64)
    rows = _two(np.full(n, 0.5), y, "calibration")
    review = ReviewData(
        rows,
        None,
        rows.classes,
        {"calibration": _table(n, rng)},
        model=_Sure(),  # type: ignore[arg-type]
    )
    return Evidence(rows, event=1, review=lambda: review)


def _two_sets(n: int, rng: np.random.Generator, gap: float) -> Evidence:
    """Evaluation rows stated too high by the gap, beside calibration rows that are right."""
    p, q = _unit_interval(n, rng), _unit_interval(n, rng)
    other = _two(q, _drawn(q, rng), "calibration")
    return Evidence(_two(p + gap, _drawn(p, rng)), other, event=1)


def _latest(n: int) -> tuple[FloatArray, Dependence]:
    """1 for the last quarter of the rows of a hundred days, and their days."""
    day = np.arange(n) * 100 // n
    return np.where(day >= 75, 1.0, 0.0), Dependence.of("time", day)


def _latest_events(n: int, rng: np.random.Generator, gap: float) -> Evidence:
    """The event happens less often than stated by the gap in the last quarter of the days."""
    late, days = _latest(n)
    p = _unit_interval(n, rng)
    return Evidence(replace(_two(p, _drawn(p - gap * late, rng)), dependence=days), event=1)


def _latest_forecasts(n: int, rng: np.random.Generator, by: float) -> Evidence:
    """PIT values of the last quarter of the days as of `_moved`."""
    late, days = _latest(n)
    found = _of_pit(np.where(late == 1.0, _moved(n, rng, by), rng.random(n)))
    return Evidence(replace(found.predicted, dependence=days))


def _of_pit(pit: FloatArray, **more: Any) -> Evidence:
    """Standard normal forecasts whose PIT values are these."""
    y = norm.ppf(np.clip(pit, 1e-12, 1.0 - 1e-12))
    return Evidence(RegressionSet(Normal(np.zeros(len(y)), 1.0), y, "", "evaluation"), **more)


def _tilted(n: int, rng: np.random.Generator, distance: float) -> Evidence:
    """PIT values with a linear density, at this Wasserstein distance from the uniform one."""
    a, u = 6.0 * distance, rng.random(n)
    if a == 0.0:
        return _of_pit(u)
    return _of_pit((a - 1.0 + np.sqrt((1.0 - a) ** 2 + 4.0 * a * u)) / (2.0 * a))


def _moved(n: int, rng: np.random.Generator, by: float) -> FloatArray:
    """PIT values whose mean is too high by this number, and whose spread by this share."""
    mean, variance = 0.5 + by, (1.0 + by) ** 2 / 12.0
    total = mean * (1.0 - mean) / variance - 1.0
    return rng.beta(mean * total, (1.0 - mean) * total, n)


def _ranked(n: int, rng: np.random.Generator, area: float) -> Evidence:
    """Scores of two classes with this area under the curve."""
    y = rng.integers(0, 2, n)
    score = rng.normal(size=n) + y * (2**0.5) * norm.ppf(area)
    return Evidence(_two(expit(score), y), event=1)


def _informed(n: int, rng: np.random.Generator, more: float) -> Evidence:
    """Says 0.3 or 0.7 of two equal classes, so often right that it gains nothing, or more often."""
    worth_nothing = np.log(0.5 / (0.3 * 0.7) ** 0.5) / np.log(0.7 / 0.3)
    up = rng.integers(0, 2, n)
    p = 0.5 + (2 * up - 1) * (worth_nothing + more)
    return Evidence(_two(np.where(up, 0.7, 0.3), _drawn(p, rng)), event=1)


def _gain_of(sharper: float) -> float:
    """Share of the log loss that undoing log odds ``sharper`` times too large gains."""
    z = 1.5 * norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    p, said = expit(z), np.clip(expit(sharper * z), 1e-12, 1.0 - 1e-12)
    now, best = (-(p * np.log(q) + (1 - p) * np.log(1 - q)).mean() for q in (said, p))
    return float((now - best) / now)


def _repaired(n: int, rng: np.random.Generator, gain: float, fresh: int = 0) -> Evidence:
    """Log odds too large, so that no calibrator gains more than this; both sets have n rows.

    With ``fresh`` the judged rows are so many others, for the same calibration rows.
    """
    sharper = brentq(lambda s: _gain_of(s) - gain, 1.0, 6.0) if gain else 1.0

    def rows(rng: np.random.Generator, n: int, name: str) -> ScoredSet:
        z = rng.normal(size=n) * 1.5
        return _two(expit(sharper * z), _drawn(expit(z), rng), name)

    first, second, third = rng.spawn(3)
    known = rows(first, n, "calibration")
    judged = rows(third if fresh else second, fresh or n, "evaluation")
    review = ReviewData(known, judged, known.classes, {})
    return Evidence(judged, known, event=1, review=lambda: review)


def _skilled(n: int, rng: np.random.Generator, skill: float) -> Evidence:
    """Half of the outcome's variance is known; the forecast is so wide that it has this skill."""
    trivial = np.pi**-0.5
    wide = brentq(
        lambda s: (2.0 / np.pi * (0.5 + s * s)) ** 0.5 - s * np.pi**-0.5 - (1.0 - skill) * trivial,
        0.8,
        20.0,
    )
    mean = rng.normal(size=n) * 0.5**0.5
    y = mean + rng.normal(size=n) * 0.5**0.5
    return Evidence(RegressionSet(Normal(mean, wide), y, "", "evaluation"))


def _recalibrated(n: int, rng: np.random.Generator, gain: float, fresh: int = 0) -> Evidence:
    """Forecasts too narrow, so that no recalibrator gains more than this; both sets have n rows.

    ``fresh`` is as in `_repaired`.
    """
    best = np.pi**-0.5

    def loss(spread: float) -> float:
        return float((2.0 / np.pi * (1.0 + spread**2)) ** 0.5 - spread * best)

    spread = brentq(lambda s: 1.0 - best / loss(s) - gain, 0.01, 1.0) if gain else 1.0

    def rows(rng: np.random.Generator, n: int, name: str) -> tuple[RegressionSet, FloatArray]:
        mean = rng.normal(size=n)
        y = mean + rng.normal(size=n)
        return RegressionSet(Normal(mean, spread), y, "", name), mean[:, np.newaxis]

    first, second, third = rng.spawn(3)
    known, x_known = rows(first, n, "calibration")
    judged, x_judged = rows(third if fresh else second, fresh or n, "evaluation")
    space = Space("prediction", x_known, x_judged)
    return Evidence(judged, known, space=lambda: space)


def _copied(n: int, rng: np.random.Generator, share: float) -> Evidence:
    """Two tables of two coarse columns, which match by chance, and this share of copies."""
    columns = [pd.DataFrame(rng.integers(0, 300, (n, 2)), columns=["a", "b"]) for _ in range(2)]
    ys = [rng.integers(0, 2, n) for _ in range(2)]
    copies = round(share * n)
    columns[1].iloc[:copies], ys[1][:copies] = columns[0].iloc[:copies], ys[0][:copies]
    sets = [
        SetRows("evaluation", columns[0], ys[0]),
        SetRows("calibration", columns[1], ys[1]),
    ]
    return Evidence(_two(np.full(n, 0.5), ys[0]), sets=lambda: sets)


def _lacking(n: int, rng: np.random.Generator, share: float) -> Evidence:
    """Three inputs that lack this share of their values."""
    missing = {name: int(rng.binomial(n, share)) for name in "abc"}
    return Evidence(_two(np.full(n, 0.5), rng.integers(0, 2, n)), missing=missing)


def _guessed(n: int, rng: np.random.Generator, more: float) -> Evidence:
    """Predictions of three equal classes that are right in a third of the rows, or more."""
    y = rng.integers(0, 3, n)
    said = np.where(rng.random(n) < 1 / 3 + more, y, (y + rng.integers(1, 3, n)) % 3)
    return Evidence(ScoredSet(0.1 + 0.7 * np.eye(3)[said], y, ("a", "b", "c"), "", "evaluation"))


def _certain(n: int, rng: np.random.Generator, share: float) -> Evidence:
    return Evidence(_two(np.where(rng.random(n) < share, 1.0, 0.7), rng.integers(0, 2, n)), event=1)


def _narrow(n: int, rng: np.random.Generator, range_: float) -> Evidence:
    """Uniform stated log odds whose 1% and 99% quantiles are this far apart."""
    p = np.asarray(expit((rng.random(n) - 0.5) * range_ / 0.98))
    return Evidence(_two(p, _drawn(p, rng)), event=1)


def _certain_of(n: int, rng: np.random.Generator, share: float) -> Evidence:
    """Half of the rows stated as certain, so that this share of all rows is certain and wrong."""
    certain = rng.random(n) < 0.5
    wrong = rng.random(n) < np.where(certain, 2.0 * share, 0.3)
    said = np.where(certain, 1.0, 0.7)
    return Evidence(_two(said, np.where(wrong, 0, 1)), event=1)


def _forecast(n: int, rng: np.random.Generator, spread: float, shift: float) -> Evidence:
    mean = rng.normal(size=n)
    y = mean + rng.normal(size=n)
    return Evidence(RegressionSet(Normal(mean + shift, spread), y, "", "evaluation"))


@dataclass(frozen=True)
class Known:
    """Rows with a known truth, which lies on the default limit, clearly beyond, or clearly within.

    ``within`` is None where no truth is clearly within: against chance.
    """

    drawn: Callable[[int, np.random.Generator, float], Evidence]
    on: float
    beyond: float
    within: float | None
    runs: int = RUNS


def _stated(said: Callable[[FloatArray, float], FloatArray], **more: Any) -> Any:
    return lambda n, rng, at: _classes(n, rng, lambda p: said(p, at), **more)


KNOWN: dict[str, Known] = {
    "KC001": Known(_stated(lambda p, at: p + at), 0.05, 0.1, 0.0),
    "KC002": Known(_stated(lambda p, at: p + at), 0.03, 0.06, 0.0),
    "KC003": Known(_stated(lambda p, at: expit(logit(p) - at)), 0.3, 0.6, 0.0),
    "KC004": Known(_stated(lambda p, at: expit(logit(p) / at)), 0.8, 0.6, 1.0),
    "KC005": Known(_by_predicted_class, 0.05, 0.1, 0.0),
    "KC006": Known(_by_class, 0.03, 0.06, 0.0),
    "KC007": Known(
        lambda n, rng, at: _classes(n, rng, lambda p: p + at, inputs=lambda: _table(n, rng)),
        0.1, 0.2, 0.0,
    ),
    "KC008": Known(
        lambda n, rng, at: _classes(n, rng, lambda p: p + at, groups=lambda: _groups(n)),
        0.05, 0.1, 0.0,
    ),
    "KC009": Known(_errors, 0.9, 0.95, 0.8),
    "KC010": Known(_far, 0.25, 0.45, 0.05),
    "KC011": Known(_two_sets, 0.05, 0.1, 0.0),
    "KC012": Known(_latest_events, 0.05, 0.1, 0.0),
    "KC021": Known(_tilted, 0.05, 0.1, 0.0),
    # 75% of the outcomes in the central 80%; 45.5% and 92.1% in those of 50 and 95%
    "KC022": Known(
        lambda n, rng, at: _forecast(n, rng, norm.ppf(0.5 + at / 2) / norm.ppf(0.9), 0.0),
        0.75, 0.65, 0.8,
    ),
    "KC023": Known(lambda n, rng, at: _forecast(n, rng, 1.0, at * 2**0.5), 0.1, 0.2, 0.0),
    "KC024": Known(
        lambda n, rng, at: _of_pit(_moved(n, rng, at), inputs=lambda: _table(n, rng)),
        0.15, 0.25, 0.0,
    ),
    "KC025": Known(
        lambda n, rng, at: _of_pit(_moved(n, rng, at), groups=lambda: _groups(n)), 0.1, 0.2, 0.0
    ),
    "KC026": Known(_latest_forecasts, 0.1, 0.2, 0.0),
    "KC101": Known(_ranked, 0.7, 0.6, 0.8),
    "KC102": Known(_informed, 0.0, -0.08, 0.08),
    "KC103": Known(_repaired, 0.05, 0.1, 0.0, runs=200),
    "KC121": Known(_skilled, 0.0, -0.1, 0.1),
    "KC123": Known(_recalibrated, 0.05, 0.1, 0.0, runs=200),
    "KC201": Known(_copied, 0.0, 0.02, None),
    "KC203": Known(_lacking, 0.2, 0.3, 0.1),
    "KC204": Known(_guessed, 0.0, -0.1, 0.1),
    "KC205": Known(_ranked, 0.5, 0.4, 0.6),
    "KC206": Known(_certain, 0.5, 0.6, 0.4),
    "KC208": Known(_certain_of, 0.02, 0.05, 0.005),
    "KC209": Known(_narrow, 1.0, 0.8, 2.0),
}  # fmt: skip
"""Every check but KC202, which counts rows and never fails."""


def verdicts(code: str, n: int, at: float, seeds: range | None = None) -> dict[str, float]:
    """Share of runs with each verdict where the truth is ``at``."""
    known, counts = KNOWN[code], dict.fromkeys(VERDICTS, 0)
    seeds = range(known.runs) if seeds is None else seeds
    for seed in seeds:
        evidence = known.drawn(n, np.random.default_rng([seed, n, 1]), at)
        (found,) = judge_checks(measure_checks(evidence, [code])).results
        assert found.verdict is not None, found.why_not
        counts[found.verdict] += 1
    return {verdict: count / len(seeds) for verdict, count in counts.items()}


def verdicts_at_own_gain(code: str, n: int, gain: float, seeds: range) -> dict[str, float]:
    """As `verdicts`, with the limit of each run at what the best of its fitted repairs gains.

    That gain is measured on many fresh rows.
    """
    drawn, counts = {"KC103": _repaired, "KC123": _recalibrated}[code], dict.fromkeys(VERDICTS, 0)
    for seed in seeds:
        key = [seed, n, 3]
        measured = measure_checks(drawn(n, np.random.default_rng(key), gain), [code])
        with patch.object(gain_of_a_recalibration, "MOST_ROWS", FRESH_ROWS):
            many = drawn(n, np.random.default_rng(key), gain, fresh=FRESH_ROWS)
            (truth,) = judge_checks(measure_checks(many, [code])).results
        limit = Limit(high=max(one.own.value for one in truth.parts))
        (found,) = judge_checks(measured, {code: limit}).results
        assert found.verdict is not None, found.why_not
        counts[found.verdict] += 1
    return {verdict: count / len(seeds) for verdict, count in counts.items()}


def any_fail(n: int) -> dict[str, float]:
    """Share of reviews in which any quick check fails a calibrated model."""
    quick = [one.code for one in CHECKS.values() if one.quick]
    made: dict[str, Callable[[np.random.Generator], Evidence]] = {
        "two classes": lambda rng: _classes(n, rng, lambda p: p, groups=lambda: _groups(n)),
        "normal forecasts": lambda rng: replace(
            _forecast(n, rng, 1.0, 0.0), groups=lambda: _groups(n)
        ),
    }
    return {
        what: sum(
            judge_checks(measure_checks(draw(np.random.default_rng([seed, n, 2])), quick)).verdict
            == "fail"
            for seed in range(REVIEWS)
        )
        / REVIEWS
        for what, draw in made.items()
    }


def run() -> list[dict[str, Any]]:
    """Seconds of all quick checks, of classes and of forecasts, and of each sample's others."""
    rng = np.random.default_rng(0)
    quick = [one.code for one in CHECKS.values() if one.quick]
    rows = []
    for what, evidence in (
        ("two classes", _classes(10_000, rng, lambda p: p)),
        ("normal forecasts", _forecast(10_000, rng, 1.0, 0.0)),
    ):
        start = perf_counter()
        measure_checks(evidence, quick)
        rows.append(
            {
                "name": "checks",
                "what": f"every quick check, {what}",
                "n": 10_000,
                "seconds": perf_counter() - start,
                "reference": None,
                "reference_seconds": None,
                "ratio": None,
                "goal": 2,
            }
        )
    return rows + thorough()


def thorough() -> list[dict[str, Any]]:
    """Seconds of the checks that a job makes, on every shipped sample as it opens."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        for sample in samples():
            review = start_sample(workspace, sample.name)
            which: Which = "evaluation" if review.has_evaluation else "calibration"
            sets = Sets(ReviewReader(workspace, review.id))
            start = perf_counter()
            found = thorough_checks(sets, **checks_settings(review, which))
            rows.append(
                {
                    "name": "checks",
                    "what": f"the {len(found.checks)} thorough checks, {sample.name}",
                    "n": found.n,
                    "seconds": perf_counter() - start,
                    "reference": None,
                    "reference_seconds": None,
                    "ratio": None,
                    "goal": 60,
                }
            )
    return rows


def main() -> None:
    """Measure the sections, and write them into the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_checks")
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS], help="all by default")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.sections or SECTIONS:
            heading, measured = SECTIONS[name]
            _keep(heading, f"{measured(pool)}\n\nMeasured on {datetime.now(UTC).date()}.\n")


def _keep(heading: str, text: str) -> None:
    """Put a section's text under its heading in the results."""
    before, _, rest = RESULTS.read_text().partition(f"{heading}\n")
    _, found, after = rest.partition("\n## ")
    RESULTS.write_text(f"{before}{heading}\n\n{text}{found}{after}")


def _tests(pool: ProcessPoolExecutor) -> str:
    tested = {
        (name, fault, n): pool.submit(refused, name, fault, n)
        for name, made in SCORES.items()
        for n in made.sizes
        for fault in made.faults
    }
    tables = []
    for name, made in SCORES.items():
        sizes = ", ".join(f"{n:,}" for n in made.sizes)
        found = {
            fault: [tested[name, fault, n].result() for n in made.sizes] for fault in made.faults
        }
        tests = [*found["calibrated"][0]]
        lines = [
            f"{made.words}:\n",
            f"| truth; {sizes} rows | " + " | ".join(tests) + " |",
            "|---" * (len(tests) + 1) + "|",
        ]
        for fault, each in found.items():
            cells = ["; ".join(f"{100 * one[test]:.1f}" for one in each) for test in tests]
            lines.append(f"| {fault} | " + " | ".join(cells) + " |")
        tables.append("\n".join(lines))
    return TESTS_TEXT.format(
        runs=RUNS_OF_TESTS,
        last=RUNS_OF_TESTS - 1,
        few=FEW_RUNS_OF_TESTS,
        tables="\n\n".join(tables),
    )


def _limits(pool: ProcessPoolExecutor) -> str:
    judged = {
        (code, n, at): pool.submit(verdicts, code, n, at)
        for code, known in KNOWN.items()
        for n in LIMIT_SIZES
        for at in {known.on, known.beyond, known.within}
        if at is not None
    }
    reviews = {n: pool.submit(any_fail, n) for n in LIMIT_SIZES}
    sizes = "; ".join(f"{n:,}" for n in LIMIT_SIZES)
    lines = [
        f"| check; {sizes} rows | on the limit | fail | pass | beyond | fail | within | pass |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for code, known in KNOWN.items():
        cells = [f"{code} {CHECKS[code].title}"]
        for at, shown in (
            (known.on, ("fail", "pass")),
            (known.beyond, ("fail",)),
            (known.within, ("pass",)),
        ):
            if at is None:
                cells += ["–", "–"]
                continue
            found = [judged[code, n, at].result() for n in LIMIT_SIZES]
            cells.append(f"{at:g}")
            cells += ["; ".join(f"{100 * one[word]:.1f}" for one in found) for word in shown]
        lines.append(f"| {' | '.join(cells)} |")
    any_ = [f"| reviews; {sizes} rows | any check fails |", "|---|---|"]
    for what in reviews[LIMIT_SIZES[0]].result():
        shares = "; ".join(f"{100 * reviews[n].result()[what]:.1f}" for n in LIMIT_SIZES)
        any_.append(f"| {what} | {shares} |")
    return LIMITS_TEXT.format(
        runs=RUNS,
        last=RUNS - 1,
        few=KNOWN["KC103"].runs,
        reviews=REVIEWS,
        table="\n".join(lines),
        together="\n".join(any_),
    )


def _levels(pool: ProcessPoolExecutor) -> str:
    judged = {
        (code, n): pool.submit(verdicts, code, n, KNOWN[code].on, SEEDS_AGAIN)
        for code in AGAIN
        for n in LIMIT_SIZES
    }
    sizes = "; ".join(f"{n:,}" for n in LIMIT_SIZES)
    lines = [f"| check; {sizes} rows | on the limit | fail | pass |", "|---|---|---|---|"]
    for code in AGAIN:
        found = [judged[code, n].result() for n in LIMIT_SIZES]
        cells = ["; ".join(f"{100 * one[word]:.1f}" for one in found) for word in ("fail", "pass")]
        lines.append(f"| {code} {CHECKS[code].title} | {KNOWN[code].on:g} | {' | '.join(cells)} |")
    return LEVELS_TEXT.format(
        runs=len(SEEDS_AGAIN),
        first=SEEDS_AGAIN[0],
        last=SEEDS_AGAIN[-1],
        table="\n".join(lines),
    )


def _own_gains(pool: ProcessPoolExecutor) -> str:
    judged = {
        (code, gain, n): pool.submit(verdicts_at_own_gain, code, n, gain, range(runs))
        for (code, gain), runs in OWN_RUNS.items()
        for n in LIMIT_SIZES
    }
    sizes = "; ".join(f"{n:,}" for n in LIMIT_SIZES)
    lines = [
        f"| check; {sizes} rows | an ideal repair gains | runs | fail | pass |",
        "|---|---|---|---|---|",
    ]
    for (code, gain), runs in OWN_RUNS.items():
        found = [judged[code, gain, n].result() for n in LIMIT_SIZES]
        shown = ["; ".join(f"{100 * one[word]:.1f}" for one in found) for word in ("fail", "pass")]
        lines.append(f"| {code} {CHECKS[code].title} | {gain:g} | {runs} | {' | '.join(shown)} |")
    return OWN_GAINS_TEXT.format(fresh=FRESH_ROWS, table="\n".join(lines))


OWN_GAINS_TEXT = """KC103 and KC123 ask what the repairs that were fitted gain, which is less than
an ideal one would. Here the limit of each run (seeds from 0 on) is what the best of its fitted
repairs gains on {fresh:,} fresh rows. Shares in percent; on it 2.5% on each side is nominal,
with a standard error of 0.8 points in 400 runs and of 1.6 in 100.

{table}"""

LEVELS_TEXT = """In 400 runs each of these checks once failed on its limit in 3.8 to 4.2%, where
2.5 is nominal. {runs:,} further runs of each, with the seeds {first:,} to {last:,}, show whether
that was chance: a share of 2.5 then has a standard error of 0.1 points.

{table}

All lie below 2.5 and a point, so those fails were chance. KC121 fails a little more often than 2.5%
and passes less often."""

TESTS_TEXT = """Shares of {runs} runs, in percent, seeds 0 to {last}; a share of 5 has a standard
error of 0.9 points, one of 50 of 2.0. At 5,000 rows faults that every run finds took {few} runs.
Outcomes are drawn from the true probability. Share of runs in which each test refuses calibration
at 5%. The first line of a table is the level, the others are power. kdcal's test is Fan's adaptive
Neyman test with Spiegelhalter's contrast as one more shape; "without the contrast" is the test
before 2026-11-24, on the same rows and redraws.

{tables}

The plain percentile interval of the ECE lies above 0 in every run, also where the model is
calibrated, so here it counts as a refusal only where it lies above 0.01; even so it is no test.

What the contrast wins: log odds that are too large or too small are found more often, by up to 11
points. What it loses: up to 3 points where the fault is another one, because the largest of more
projections must pass a higher bar. Spiegelhalter's test alone still finds log odds of a wrong size
more often, by up to 12 points, and by 18 for a rare event, whose shift it finds more often by 9. In
the first table it finds a bump, a wave or a shift far less often. Hosmer and Lemeshow's test finds
some faults of a rare event in 200 rows more often, by up to 11 points, but there it also refuses
7.8% of the calibrated models.

With more than 5,000 rows the projections are taken as normal. Of 400 calibrated models with 6,000
rows (seeds 0 to 399) kdcal's test refused 4.2% of the events, 5.0% of the rare events and 4.5% of
the confidences."""

LIMITS_TEXT = """Shares of {runs} runs, in percent, seeds 0 to {last} (KC103 and KC123: {few} runs).
One check alone, so that no correction for many checks helps. The truth lies on the check's default
limit, beyond it, or within it; the table gives its value. On the limit any verdict but "not enough
evidence" may be called wrong, and the nominal level is 2.5% on each side of an interval. A share of
2.5 has a standard error of 0.8 points, one of 5 has 1.1, one of 50 has 2.5. Beyond the limit "fail"
is the power; within it "pass" is.

{table}

- KC001 once passed on its limit in 5.5% of the runs with 2,000 rows, and in 4.0% of 2,000 further
  runs (seeds 2,000 to 3,999): here every gap has one size, to which noise adds least, and no shape
  that its interval tried was as even. It tries that one since 2026-11-26, and passes in 2.5% of
  these further runs. Its row is of that day.
- KC005 to KC008, KC024 and KC025 have several parts, and all of them lie on the limit. A fail has
  Bonferroni's correction. A pass needs all parts, so on the limit it is rarer.
- KC012 and KC026 compare the last half, quarter, eighth and sixteenth of rows of a hundred days,
  the last quarter of which is changed. So the last quarter lies on the limit, and most other parts
  do not reach it. A pass needs a narrow interval of the last sixteenth: of 100 right models with
  5,000, 10,000 and 20,000 rows KC012 passes 0, 23 and 86, and KC026 90, 100 and 100; of those that
  lie beyond, KC012 finds 41, 87 and 100.
- KC007 and KC024 search columns of noise, so every region that they name is as wrong as all rows.
  Each half of the rows judges the other's regions. A pass needs rows enough to notice a gap at the
  limit in a fifth of them: of 100 right models with 5,000 rows KC007 passes 62, with 10,000 rows 98
  (KC024: 97 and 100). Until 2026-11-26 one half judged, and a search without regions passed: in 11
  of 30 samples of 1,000 rows with a gap of about .17 in one of five wards, now in none of 150
  samples of 1,000 to 5,000 rows.
- KC103 and KC123 fit on as many rows again. An ideal repair would gain what the table says; those
  that are fitted gain less, so that they pass more often; the next section puts the limit at
  their own gain.
- KC201 compares rows that match by chance only, and beyond: with 2% copies. It fails at five
  standard errors.
- KC202 counts rows. It never fails.

All quick checks together, {reviews} reviews of a calibrated model with four declared groups; a
share of 5 has a standard error of 1.5 points:

{together}"""

SECTIONS: dict[str, tuple[str, Callable[[ProcessPoolExecutor], str]]] = {
    "tests": ("## The test of calibration beside older ones", _tests),
    "limits": ("## Verdicts where the truth is known", _limits),
    "gains": ("## Repairs, at what those that were fitted gain", _own_gains),
    "levels": ("## Levels, in more runs", _levels),
}


if __name__ == "__main__":
    main()
