"""One fair comparison of any calibrators: the same rows, the same folds, the same draws.

They are compared on held-out rows and, where the model is loaded, on rows far from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.calibration import Calibrator
from kdcal_core.data import FloatArray, ScoredSet, at_most, check_weight
from kdcal_core.data.foreign_rows import extent, on_spheres
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.reliability import Reliability, confidence_reliability
from kdcal_core.diagnostics.scores import BrierSplit, brier_parts, split_of_parts
from kdcal_core.diagnostics.targets import check_level, check_seed, class_shares
from kdcal_core.errors import InputError, warn
from kdcal_core.evaluation.held_out import Judge, held_out_answers
from kdcal_core.evaluation.measures import (
    MEASURES,
    Judged,
    Measure,
    Scored,
    compared_measures,
    scored_measures,
)
from kdcal_core.evaluation.methods import REFERENCE, Answer, Method, methods_of
from kdcal_core.evaluation.overlap import Note, overlap, overlap_note
from kdcal_core.evaluation.paired import (
    LEAST_ROWS,
    PairedDifference,
    against_best,
    against_model,
    untested,
    without_interval,
)
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import ReviewData
from kdcal_core.statistics import Dependence, mean_interval, only, side_by_side

Against = Literal["model", "best"]


@dataclass(frozen=True, eq=False)
class MethodScores:
    """All measures of one method.

    Attributes
    ----------
    key, name, family : str
        Names of a user's own calibrators are untrusted text.
    scores : dict of measure key to Estimate
        On fewer than 20 rows there is no interval: ``low`` and ``high`` are NaN.
    fit_seconds, predict_seconds_per_million : float
        Wall-clock times, the only numbers here that differ between runs.
    size_bytes : int
        Size of the fitted state.
    reliability : Reliability
        Reliability of the confidence in the predicted class, or of the event's probability, on the
        judged rows.
    split : BrierSplit
        The full-vector Brier score on the judged rows, in its parts.
    notes : tuple of str
        Notes on the fit on the whole calibration set.
    reads_inputs : bool
        Whether it reads more than the model's probabilities.
    discriminates : tuple of float or None
        Interval of its discrimination less the model's, paired by row; None for the model, and on
        fewer than 20 rows. Both curves of :class:`BrierSplit` fit noise of the same rows, which
        their difference leaves out.
    """

    key: str
    name: str
    family: str
    scores: dict[str, Estimate]
    fit_seconds: float
    predict_seconds_per_million: float
    size_bytes: int
    reliability: Reliability
    split: BrierSplit
    notes: tuple[str, ...] = ()
    reads_inputs: bool = False
    discriminates: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Calibrators side by side on the same rows; see :func:`kdcal_core.evaluation.compare`.

    Attributes
    ----------
    methods : tuple of MethodScores
        The model first, then the others in the requested order.
    measured : tuple of str
        Keys of the measures that are defined on these rows.
    reference : str
        Key of the model's method.
    best : dict of measure key to method key
    paired : dict of (measure key, "model" or "best") to tuple of PairedDifference
        One for each method, in the order of ``methods``; measures of group "speed" are not paired.
    n : int
        Number of judged rows.
    folds : int
        0 where methods are judged on the evaluation set.
    judged : str
        In words: "cross-fitted on the calibration set" or "evaluation set".
    overlap : int or None
        Rows of the evaluation set that are also in the calibration set; None without an evaluation
        set.
    seed : int
    notes : tuple of Note
        What the reader must know, in sentences.
    failed : dict of method key to sentence
        Why a method is not among ``methods``.
    level : float
    event : str or None
        The class whose probability calibration errors and diagrams are about; None for the
        confidence in the predicted class. Untrusted text.
    """

    methods: tuple[MethodScores, ...]
    measured: tuple[str, ...]
    reference: str
    best: dict[str, str]
    paired: dict[tuple[str, Against], tuple[PairedDifference, ...]]
    n: int
    folds: int
    judged: str
    overlap: int | None
    seed: int
    notes: tuple[Note, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    level: float = 0.95
    event: str | None = None

    def method(self, key: str) -> MethodScores:
        """The method of this key."""
        return next(one for one in self.methods if one.key == key)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that are defined on these rows."""
        return tuple(MEASURES[key] for key in self.measured)

    def measure(self, key: str) -> Measure:
        """The measure of this key."""
        return MEASURES[key]

    def close_to_best(self, measure: str) -> tuple[str, ...]:
        """Keys of the best method and of all that cannot be distinguished from it.

        The truly best method is among them with probability ``level``.
        """
        pairs = self.paired[measure, "best"]
        return tuple(pair.key for pair in pairs if pair.verdict != "worse")

    def smallest_of_best(self, measure: str) -> str:
        """Key of the smallest fitted state among those that cannot be told apart from the best.

        A calibrator that is better than the model beyond chance comes before the model as it is,
        and the model before any other.
        """
        close = self.close_to_best(measure)
        verdicts = {pair.key: pair.verdict for pair in self.paired[measure, "model"]}
        better = [key for key in close if verdicts[key] == "better"]
        if self.reference in close and not better:
            return self.reference
        return min(better or close, key=lambda key: self.method(key).size_bytes)

    def table(self) -> pd.DataFrame:
        """One row a method and measure, for download."""
        rows = []
        for measure in self.measures:
            pairs = {
                against: {pair.key: pair for pair in self.paired.get((measure.key, against), ())}
                for against in ("model", "best")
            }
            for method in self.methods:
                score = method.scores[measure.key]
                row = {
                    "measure": measure.key,
                    "method": method.key,
                    "value": score.value,
                    "low": score.low,
                    "high": score.high,
                    "n": score.n,
                }
                for against, found in pairs.items():
                    pair = found.get(method.key)
                    row[f"less_{against}"] = pair.difference.value if pair else None
                    row[f"less_{against}_low"] = pair.difference.low if pair else None
                    row[f"less_{against}_high"] = pair.difference.high if pair else None
                    row[f"adjusted_p_{against}"] = pair.adjusted_p if pair else None
                    row[f"verdict_{against}"] = pair.verdict if pair else None
                rows.append(row)
        return pd.DataFrame(rows)


RADIUS = 5.0
POINTS = 1000
MOST = 10_000


@dataclass(frozen=True, eq=False)
class Gain:
    """One measure before and after on the same rows."""

    before: MethodScores
    after: MethodScores
    pairs: dict[str, PairedDifference]
    comparison: Comparison

    @classmethod
    def of(cls, found: Comparison) -> Gain:
        """The gain of a comparison's only method over the model."""
        after = found.methods[-1]
        pairs = {
            measure.key: next(
                pair for pair in found.paired[measure.key, "model"] if pair.key == after.key
            )
            for measure in found.measures
            if (measure.key, "model") in found.paired
        }
        return cls(found.methods[0], after, pairs, found)

    def of_measure(self, key: str) -> tuple[Estimate, Estimate, PairedDifference]:
        """A measure before, after, and the paired difference."""
        return self.before.scores[key], self.after.scores[key], self.pairs[key]


@dataclass(frozen=True, eq=False)
class FarRows:
    """The model's probabilities (m, K) of far rows, their features, and what they are.

    ``dependence`` says how they depend on one another; None for independent rows.
    """

    proba: FloatArray
    X: pd.DataFrame
    words: str
    dependence: Dependence | None = None


def far_rows(review: ReviewData, seed: int) -> FarRows:
    """Foreign rows of the review, at most 10,000, or else 1,000 points on a sphere around the data.

    The sphere's radius is five times the distance of the farthest row from the centre, with every
    column in units of its standard deviation (Dey et al., section 3.1.1).

    Raises
    ------
    InputError
        Where no model is loaded or no feature is numeric.
    """
    together = None
    model, reference = review.model, review.inputs.get("calibration")
    if model is None or reference is None or reference.shape[1] == 0:
        raise InputError(
            "Confidence far from the data is not measured, because there is no model to ask",
            fix="Review the model itself, not only its predictions.",
        )
    if review.foreign:
        frame = pd.concat(list(review.foreign.values()), ignore_index=True)
        words = f"{min(len(frame), MOST):,} foreign rows of the review"
        chosen = at_most(len(frame), MOST, seed)
        frame = frame.iloc[chosen].reset_index(drop=True)
        together = only(_of_tables(review), chosen)
        if together is not None:
            words += f", with those of one {together.kind} counted together"
        elif review.calibration.grouping is not None:
            words += ", counted as independent"
    else:
        about = review.inputs.get("training", reference)
        frame = on_spheres(about, extent(about), (RADIUS,), POINTS, seed)
        words = (
            f"{POINTS:,} points on a sphere at {RADIUS:g} times the distance of the farthest row, "
            "every column in its standard deviations (not possible rows)"
        )
    return FarRows(model.predict_proba(frame), frame, words, together)


def _of_tables(review: ReviewData) -> Dependence | None:
    """How all foreign rows depend on one another; units of different tables are different ones."""
    found, n = None, 0
    for name, frame in review.foreign.items():
        own = review.foreign_dependence.get(name)
        found = side_by_side(found, n, own, len(frame))
        n += len(frame)
    return found


FITTING = 0.85  # share of the progress that fitting takes
JUDGED: dict[Judge, str] = {
    "evaluation": "evaluation set",
    "cross-fitted": "cross-fitted on the calibration set",
}


def compare(
    calibrators: Sequence[str | tuple[str, Calibrator]],
    review: ReviewData,
    *,
    folds: int = 5,
    seed: int = 0,
    n_boot: int = 1000,
    far: bool | None = None,
    judge: Judge | None = None,
    event: int | None = None,
    level: float = 0.95,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Comparison:
    """Calibrators side by side: every measure with its interval, and which differ beyond chance.

    Parameters
    ----------
    calibrators : sequence of str or (str, Calibrator)
        Keys of :data:`kdcal_core.calibration.CALIBRATORS`, or a name with an unfitted calibrator.
        The model's own scores always take part.
    review : ReviewData
        Calibrators that need more than probabilities (features, training rows, the open model) take
        it from the review where it has them.
    folds, seed : int
        Number of folds of the calibration set, which are the same for all
        methods, and the seed of all draws.
    n_boot : int
        Number of resamples for the intervals of calibration errors and of their differences, at
        least 100 (smooth ECE uses at most 200).
    far : bool, optional
        Whether to judge far from the data too: on the review's foreign rows, or on 1,000 points on
        a sphere at five times the distance of the farthest row. The default is to do so where a
        model is loaded.
    judge : {"evaluation", "cross-fitted"}, optional
        "evaluation" fits once on the calibration set and judges on the evaluation set; it is the
        default where there is one. With "cross-fitted", every row of the calibration set is judged
        by calibrators fitted on the other folds.
    event : int, optional
        With two classes, the one whose probability calibration errors and reliability diagrams are
        about. The default is the confidence in the predicted class. Log loss, Brier score and
        AUROC are the same for both questions.
    level : float
    progress : callable, optional
        Called with the share done and a sentence; may raise to cancel.
    executor : concurrent.futures.Executor, optional
        Its workers fit the calibrators. Only wall-clock times depend on it.

    Raises
    ------
    InputError
        For a setting out of range, an event where there are not two classes, an unknown calibrator
        or too few rows for the folds, or where
        the model's own scores cannot be judged. A method that cannot be fitted is reported in
        ``failed``, and the comparison goes on without it.

    Notes
    -----
    *Means* (log loss, Brier, accuracy, OCE) are compared by the paired t test of their row losses.
    The test concerns the calibrators fitted here (with cross-fitting their mean over the folds:
    Bayle, Bayle, Janson and Mackey 2020), not those that another calibration set would give.
    Dependent rows (`ScoredSet.dependence`) are in one fold and are compared together: by clusters,
    or in time by the test of Diebold and Mariano (1995) with the variance of Newey and West (1987)
    and the correction of Harvey, Leybourne and Newbold (1997).
    *AUROC* is compared by DeLong's covariances (1988) with t quantiles; rows are ranked only within
    their fold. In simulations of two equal methods with 6 to 20 rows of the rarer class, the test
    found a difference in 2 to 4% of runs, with one fold or five.

    *Calibration errors* are magnitudes, so noise increases them, and more so the more bins a method
    fills and the smaller its true error is. Their plain difference therefore favours methods that
    state few values. Here both methods' gaps are resampled with the same rows, at every pair of
    true errors that the observed values allow, and the least favourable pair counts. The difference
    shown is that of the two estimates shown. Its interval and its verdict allow for the noise, and
    the interval always includes the difference. In simulations with equal errors, the verdict was
    "better" in at most about 4% of runs, and "worse" likewise (errors of opposite sign); mostly in
    none. The plain bootstrap gives one of these verdicts in up to 85% of runs where one method
    states few values.

    *Best*: the method that leads on these rows was selected on them, which flatters it. A method is
    called worse than the best only where the joint test over all methods rejects the hypothesis
    that no other method is better (Hansen 2005). The methods that are not rejected therefore
    include the truly best one with probability ``level``.

    p values are corrected for all methods, separately for each measure: by Holm's method, and those
    of differences from the model also by joint draws, which know how alike methods are (Westfall
    and Young 1993). Fewer than 20 rows are too few for a test, and their estimates have no interval
    (NaN): rows that happen to be alike would make it too narrow.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 400)
    >>> y = (rng.random(400) < 0.5 + 0.4 * (p - 0.5)).astype(int)  # says more than is so
    >>> rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    >>> found = compare(["sts"], ReviewData(rows, None, rows.classes, {}), n_boot=200)
    >>> [pair.verdict for pair in found.paired["log_loss", "model"]]
    ['cannot be told apart', 'better']
    """
    check_level(level)
    check_seed(seed)
    if n_boot < 100:
        raise InputError(f"n_boot is {n_boot}", fix="Choose at least 100 draws.")
    if event is not None and (len(review.classes) != 2 or event not in (0, 1)):
        raise InputError(
            f"The event is {event!r}, but there are {len(review.classes)} classes",
            fix="Give 0 or 1 for two classes, and no event for more.",
        )
    methods = methods_of(calibrators, seed)
    notes: list[Note] = []
    distant = _distant(review, far, seed, notes)
    held = held_out_answers(
        methods,
        review,
        judge=judge,
        folds=folds,
        seed=seed,
        also={} if distant is None else {"far": (distant.proba, distant.X)},
        timed=True,
        progress=part_of(progress, 0.0, FITTING),
        executor=executor,
    )
    if REFERENCE in held.failed:
        raise InputError(f"The model's own scores cannot be judged: {held.failed[REFERENCE]}")
    rows, left, fits = held.rows, held.methods, held.fits
    judged = Judged(
        rows.y,
        check_weight(rows.weight, rows.n_rows),
        held.fold,
        held.said,
        () if distant is None else tuple(found[-1].answers["far"].proba for found in fits),
        *_prior(review.calibration),
        review.classes,
        event,
        rows.grouping,
        None if distant is None else distant.dependence,
    )
    scored = tuple(
        replace(one, estimates=tuple(map(without_interval, one.estimates)))
        for one in scored_measures(
            judged, level=level, n_boot=n_boot, seed=seed, progress=part_of(progress, FITTING, 1.0)
        )
    )
    shared = _shared(review, notes)
    notes += _readings(scored, judged, distant)
    parts = [brier_parts(one.proba, judged.y, judged.weight) for one in judged.found]
    methods_scored = tuple(
        _method_scores(at, one, fits[at], judged, scored, parts, level, seed)
        for at, one in enumerate(left)
    )
    speed = [one for one in compared_measures() if one.group == "speed"]
    measures = (*(one.measure for one in scored), *speed)
    best = {
        one.key: _best(one, [method.scores[one.key].value for method in methods_scored])
        for one in measures
    }
    paired: dict[tuple[str, Against], tuple[PairedDifference, ...]] = {}
    keys = [one.key for one in left]
    for one in scored:
        n = one.estimates[0].n
        spread, measure = one.spread, one.measure
        to_model = against_model(spread, measure, keys, 0, n, level, seed)
        to_best = against_best(spread, measure, keys, best[measure.key], n, level, seed)
        paired[measure.key, "model"] = to_model if n >= LEAST_ROWS else untested(to_model)
        paired[measure.key, "best"] = to_best if n >= LEAST_ROWS else untested(to_best)
    if progress is not None:
        progress(1.0, "Comparison done")
    return Comparison(
        methods=methods_scored,
        measured=tuple(one.key for one in measures),
        reference=REFERENCE,
        best={key: keys[at] for key, at in best.items()},
        paired=paired,
        n=rows.n_rows,
        folds=folds if held.judge == "cross-fitted" else 0,
        judged=JUDGED[held.judge],
        overlap=shared,
        seed=seed,
        notes=tuple(notes),
        failed=held.failed,
        level=level,
        event=None if event is None else review.classes[event],
    )


def _distant(review: ReviewData, far: bool | None, seed: int, notes: list[Note]) -> FarRows | None:
    """Far rows where they are wanted; where there are none, a note is added that says why."""
    if far is False:
        return None
    try:
        return far_rows(review, seed)
    except InputError as error:
        if far:
            raise
        notes.append(Note(str(error)))
        return None


def _prior(rows: ScoredSet) -> tuple[FloatArray, float]:
    """Class shares of the calibration set, (K,), and its effective number of rows."""
    return class_shares(rows.y, len(rows.classes), rows.design)


def _shared(review: ReviewData, notes: list[Note]) -> int | None:
    """Rows that are in both sets; adds a note, or a warning where there are more than by chance."""
    found = overlap(review)
    if found is None:
        return None
    if (note := overlap_note(found)) is not None:
        notes.append(note)
        if note.about == "copies":
            warn(note.sentence, stacklevel=3)
    return found.rows


def _readings(scored: Sequence[Scored], judged: Judged, distant: FarRows | None) -> list[Note]:
    """How to read some of the measures on these rows."""
    notes: list[Note] = []
    if len(judged.y) < LEAST_ROWS:
        few = (
            f"{'1 row is' if len(judged.y) == 1 else f'{len(judged.y)} rows are'} too few to "
            "distinguish calibrators: no interval is given, as it would be too narrow, and no "
            f"test was made. At least {LEAST_ROWS} rows are needed, and small differences take "
            "hundreds."
        )
        notes.append(Note(few))
    if distant is not None:
        far = (
            f"Far away means {distant.words}; OCE compares confidence with the largest class "
            "share of the calibration set. AUROC and FPR@95 rank rows by the confidence that each "
            "method states."
        )
        notes.append(Note(far, "outside"))
    if not any(one.measure.key == "auc" for one in scored):
        none = "There is no AUROC: the judged rows are all of one class."
        notes.append(Note(none, "ranking"))
    elif judged.n_classes > 2:
        mean = "AUROC is the mean of each class against the rest, weighted by the classes' shares."
        notes.append(Note(mean, "ranking"))
    return notes


def _method_scores(
    at: int,
    method: Method,
    fits: Sequence[Answer],
    judged: Judged,
    scored: Sequence[Scored],
    parts: Sequence[FloatArray],
    level: float,
    seed: int,
) -> MethodScores:
    last = fits[-1]
    stated = judged.stated(judged.found[at])
    seconds = [one.fit_seconds for one in fits]
    scores = {one.measure.key: one.estimates[at] for one in scored}
    for key, values, words in (
        ("fit_seconds", [last.fit_seconds, *seconds], "range of all fits"),
        ("predict_seconds", [last.pace], "one run"),
        ("size_bytes", [float(last.size)], "exact"),
    ):
        title = MEASURES[key].title
        scores[key] = Estimate(
            name=title,
            label=title,
            value=values[0],
            low=min(values),
            high=max(values),
            n=len(seconds),
            level=level,
            interval=words,
        )
    return MethodScores(
        key=method.key,
        name=method.name,
        family=method.family,
        scores=scores,
        fit_seconds=last.fit_seconds,
        predict_seconds_per_million=last.pace,
        size_bytes=last.size,
        reliability=confidence_reliability(
            stated.score,
            stated.hit.astype(np.int64),
            level=level,
            sample_weight=stated.design,
            seed=seed,
        ),
        split=split_of_parts(parts[at], judged.weight),
        notes=last.notes,
        reads_inputs=method.calibrator.needs_inputs,
        discriminates=_discriminates(parts[at], parts[0], judged, level) if at else None,
    )


def _discriminates(
    parts: FloatArray, of_model: FloatArray, judged: Judged, level: float
) -> tuple[float, float] | None:
    if len(judged.y) < LEAST_ROWS:
        return None
    gained = parts[1] - of_model[1]
    dependence = judged.dependence
    _, low, high = mean_interval(gained, judged.weight, level, student=True, dependence=dependence)
    return low, high


def _best(measure: Measure, values: Sequence[float]) -> int:
    """Index of the best value; the first of equal ones."""
    return int(np.argmin(values) if measure.lower_is_better else np.argmax(values))
