"""The list of measures: name, meaning, unit and direction of each, and how methods are compared.

Each module adds its measures to the list at its end (`Measure.offer`), and importing
`kdcal_core.evaluation` imports all its modules, so a new measure is one new file. Pages,
comparisons, charts, the card of an exported file and the command line read everything about a
measure from `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeVar, cast, get_args

import numpy as np

from kdcal_core.blocks import on_all_cores
from kdcal_core.calibration import Calibrated
from kdcal_core.data import FloatArray, IntArray, check_weight
from kdcal_core.diagnostics.calibration_error import row_draws
from kdcal_core.diagnostics.estimate import Estimate, of_event
from kdcal_core.diagnostics.regression.coverage import CoverageRow, mean_estimate
from kdcal_core.diagnostics.targets import Target, confidence_target
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.evaluation.spread import Spread
from kdcal_core.offers import offer
from kdcal_core.once import Once
from kdcal_core.progress import Progress
from kdcal_core.statistics import Dependence, Resamples, RowDesign, dependence_of, design_of

if TYPE_CHECKING:
    from kdcal_core.evaluation.counted_pair import CountedPair

T = TypeVar("T")
Group = Literal["inside", "outside", "ranking", "speed"]
Family = Literal[
    "inside",
    "outside",
    "ranking",
    "speed",
    "confidence",
    "foreign",
    "simulation",
    "distribution",
    "fault",
]

ByRow = Callable[..., FloatArray]
BySet = Callable[..., Estimate]
Paired = Callable[..., Estimate]
Compared = Callable[["Judged", "Drawn"], tuple[list[Estimate], Spread] | None]
Counted = Callable[["CountedPair"], tuple[list[Estimate], Spread] | None]
OfDistributions = Callable[["PredictedRows"], Estimate | None]


@dataclass(frozen=True)
class Measure:
    """A measure of models and calibrators.

    Attributes
    ----------
    key, title : str
        Stable identifier, and the name on screens, which labels its estimates.
    meaning : str
        What it measures, in a sentence or two for readers who do not know its name.
    unit : str
        Unit of its values: "nats", "probability", "share", "the outcome's unit", "seconds", ...
    lower_is_better : bool or None
        None where neither direction is better.
    family : str
        What it concerns; the list is ordered by it. Measures by which calibrators are compared:
        "inside", how well confidence fits on data like the calibration set; "outside", confidence
        far from it; "ranking", the order of rows and classes, and how sure the errors are; "speed",
        time and size. Measures of a set alone: "confidence" in the predicted class, "foreign" rows,
        a "simulation" whose truth is known, the predictive "distribution" of a regression, and the
        "fault" of its PIT values.
    test : str or None
        The test of the difference between two methods on the same rows.
    by_row : callable or None
        ``(proba, y) -> (n,)``: each row's part, where the measure is a mean over the rows. For
        predictive distributions ``(distribution, y, scale) -> (n,)``, lower is better.
    by_set : callable or None
        ``(proba, y, *, level, sample_weight) -> Estimate`` over the rows of a set.
    paired : callable or None
        ``(proba_a, proba_b, y, *, level, sample_weight) -> Estimate``: the measure of a less that
        of b over the same rows, for this pair alone.
    compared : callable or None
        Estimates of all methods on the judged rows, with their joint variation; returns None where
        the measure is not defined on these rows.
    counted : callable or None
        As ``compared``, of two versions of very many rows from what was counted of both.
    of_distributions : callable or None
        ``(PredictedRows) -> Estimate`` of predictive distributions, or None where it is not defined
        on these rows. By default the mean of ``by_row``. It may use the distributions' mean,
        standard deviation, density, CRPS and 95% interval; of many rows no more is kept.
    on_card : bool
        Whether the card of an exported calibrator reports it before and after.
    """

    key: str
    title: str
    meaning: str
    unit: str
    lower_is_better: bool | None
    family: Family
    test: str | None = None
    by_row: ByRow | None = field(default=None, repr=False)
    by_set: BySet | None = field(default=None, repr=False)
    paired: Paired | None = field(default=None, repr=False)
    compared: Compared | None = field(default=None, repr=False)
    counted: Counted | None = field(default=None, repr=False)
    of_distributions: OfDistributions | None = field(default=None, repr=False)
    on_card: bool = False

    @property
    def group(self) -> Group | None:
        """The family as a group of Compare; None where it does not compare calibrators."""
        return cast(Group, self.family) if self.family in get_args(Group) else None

    def offer(self) -> None:
        """Add the measure to the list.

        Raises
        ------
        ValueError
            If another measure has its key.
        """
        offer(self, MEASURES, get_args(Family))


MEASURES: dict[str, Measure] = {}
"""Every measure by key, in the order shown: by family, then in the order of `Measure.offer`."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The random draws that all measures of a comparison share, with the level and the seed.

    ``once`` keeps what several measures need; measures run side by side.
    """

    rows: Resamples
    level: float
    seed: int
    once: Once = field(default_factory=Once)


@dataclass(frozen=True, eq=False)
class Judged:
    """The n judged rows, with each method's answers for them and for the far rows.

    ``far`` holds each method's probabilities (m, K) for the far rows; empty without far rows.
    ``prior`` (K,) are the class shares that ``prior_rows`` effective rows show.
    ``event`` is the class whose probability is judged; None for the confidence. ``dependence`` is
    that of the judged rows, and ``far_dependence`` that of the far rows.
    """

    y: IntArray
    weight: FloatArray
    fold: IntArray
    found: tuple[Calibrated, ...]
    far: tuple[FloatArray, ...]
    prior: FloatArray
    prior_rows: float
    classes: tuple[str, ...]
    event: int | None = None
    dependence: Dependence | None = None
    far_dependence: Dependence | None = None

    @property
    def design(self) -> FloatArray | RowDesign:
        """Weights and dependence of the judged rows, as a ``sample_weight``."""
        return design_of(self.weight, self.dependence)

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    def stated(self, one: Calibrated) -> Target:
        """The event's probability and whether it happened.

        Without an event, the confidence in the predicted class and whether it was right.
        """
        if self.event is None:
            said, hit = one.confidence, one.predicted == self.y
        else:
            said, hit = one.proba[:, self.event], self.y == self.event
        return confidence_target(np.clip(said, 0.0, 1.0), hit.astype(np.int64), self.design)

    def named(self, estimate: Estimate) -> Estimate:
        """An estimate of what is stated, with the event in its name where there is one."""
        return estimate if self.event is None else of_event(estimate)


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Predictive distributions of n rows with all that measures need.

    Attributes
    ----------
    distribution : PredictiveDistribution
    y : (n,)
        Outcomes.
    scale : float
        Mean absolute outcome of the calibration set, for sMIS.
    pit : (n,)
    rows : mapping of measure key to (n,)
        Each row's part of the measures that have ``by_row``.
    central : CoverageRow
        Coverage of the central 95% intervals.
    weight : (n,) or None
    true_mean : (n,) or None
    true_distribution : PredictiveDistribution or None
    level : float
        Level of the intervals.
    seed : int
    """

    distribution: PredictiveDistribution
    y: FloatArray
    scale: float
    pit: FloatArray
    rows: Mapping[str, FloatArray]
    central: CoverageRow
    weight: FloatArray | None
    true_mean: FloatArray | None
    true_distribution: PredictiveDistribution | None
    level: float
    seed: int

    def mean(self, rows: FloatArray, name: str) -> Estimate:
        """The weighted mean of one value for each row, with its normal interval."""
        weight, together = check_weight(self.weight, len(rows)), dependence_of(self.weight)
        return mean_estimate(rows, weight, self.level, name, "", dependence=together)


@dataclass(frozen=True, eq=False)
class Scored:
    """One measure of all methods."""

    measure: Measure
    estimates: tuple[Estimate, ...]
    spread: Spread


_LONGEST = "smooth_ece"


def scored_measures(
    judged: Judged,
    *,
    level: float,
    n_boot: int,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Scored, ...]:
    """All measures except those of speed and those that are not defined on these rows.

    Measures share the cores: each has its own seed, so its numbers do not depend on the others.
    """
    rng = np.random.default_rng(seed)
    draws = row_draws(len(judged.y), n_boot, rng, judged.dependence)
    drawn = Drawn(draws, level, seed)
    asked = [one for one in MEASURES.values() if one.compared is not None]

    def scored(measure: Measure) -> Scored | None:
        assert measure.compared is not None
        return _scored(measure, measure.compared(judged, drawn))

    # the longest first, so that none is left alone at the end
    order = sorted(asked, key=lambda one: one.key != _LONGEST)
    found = on_all_cores(
        scored, order, note=lambda at: f"Measuring: {order[at].title}", progress=progress
    )
    by_key = {one.measure.key: one for one in found if one is not None}
    return tuple(by_key[one.key] for one in asked if one.key in by_key)


def _scored(measure: Measure, result: tuple[list[Estimate], Spread] | None) -> Scored | None:
    if result is None:
        return None
    estimates, spread = result
    titled = tuple(
        replace(one, label=measure.title, lower_is_better=measure.lower_is_better)
        for one in estimates
    )
    shown = np.array([one.value for one in titled])
    return Scored(measure, titled, replace(spread, shown=shown))


def counted_measures(pair: CountedPair, progress: Progress | None = None) -> tuple[Scored, ...]:
    """As :func:`scored_measures`, of two versions of very many rows."""
    asked = [one for one in MEASURES.values() if one.counted is not None]

    def scored(measure: Measure) -> Scored | None:
        assert measure.counted is not None
        return _scored(measure, measure.counted(pair))

    found = on_all_cores(
        scored, asked, note=lambda at: f"Measuring: {asked[at].title}", progress=progress
    )
    return tuple(one for one in found if one is not None)


def compared_measures() -> tuple[Measure, ...]:
    """The measures by which calibrators are compared, in the order shown.

    Examples
    --------
    >>> [one.key for one in compared_measures() if one.group == "ranking"]
    ['auc', 'accuracy', 'mmc_errors']
    """
    return tuple(one for one in MEASURES.values() if one.group is not None)


def meaning_of(estimate: Estimate) -> str:
    """What an estimate means, for readers who do not know its name; "" if it is unknown.

    Examples
    --------
    >>> from kdcal_core.diagnostics import accuracy
    >>> meaning_of(accuracy([[0.9, 0.1]], [0]))
    'How often the predicted class is the true one.'
    """
    titled = (one.meaning for one in MEASURES.values() if one.title == estimate.label)
    return next(titled, "")


def meanings(keys: Iterable[str]) -> str:
    """The meanings of some measures, as a list in Markdown.

    Examples
    --------
    >>> meanings(["accuracy"])
    '* **Accuracy.** How often the predicted class is the true one.'
    """
    found = (MEASURES[key] for key in keys)
    return "\n".join(f"* **{one.title}.** {one.meaning}" for one in found)
