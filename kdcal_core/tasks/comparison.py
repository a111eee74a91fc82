"""Compare a review's calibrators as a job: all are fitted and judged on the same rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import Comparison, compare, compared_measures
from kdcal_core.evaluation.held_out import Judge
from kdcal_core.jobs.executors import chosen_executor
from kdcal_core.progress import part_of
from kdcal_core.review import PARTS, Review, review_data
from kdcal_core.review.review import input_columns
from kdcal_core.tasks.decorators import FITTED, Sets, require_classification, review_task


@dataclass(frozen=True)
class ComparisonSettings:
    """Which calibrators are compared, and how they are judged.

    Attributes
    ----------
    calibrators : tuple of str
        Keys of `kdcal_core.calibration.CALIBRATORS`; the model always takes part.
    judge : str or None
        "evaluation" or "cross-fitted"; None for the evaluation set where there is one.
    folds, seed : int
    n_boot : int
        Number of resamples for the intervals of calibration errors.
    event : int or None
        The class whose probability calibration errors are about, with two classes; None for the
        confidence in the predicted class.
    """

    calibrators: tuple[str, ...]
    judge: Judge | None = None
    folds: int = 5
    seed: int = 0
    n_boot: int = 1000
    event: int | None = None


@dataclass(frozen=True, eq=False)
class ComparisonRun:
    """A finished comparison.

    Attributes
    ----------
    settings : ComparisonSettings
    n_fit : int
    comparison : Comparison
    """

    settings: ComparisonSettings
    n_fit: int
    comparison: Comparison = field(repr=False)


_REFERENCE = "uncalibrated"
_READ = 0.03  # share of the progress that reading the rows takes


def usable_calibrators(review: Review) -> dict[str, str | None]:
    """Every calibrator except the model itself, with why this review cannot use it (None: it can).

    In the registry's order.
    """
    facts: dict[str, Any] = {
        "n_classes": len(review.classes),
        "n_inputs": len(input_columns(review)),
        "has_codes": review.model is not None and review.model.has_codes,
    }
    return {key: entry.lacks(**facts) for key, entry in CALIBRATORS.items() if key != _REFERENCE}


def default_calibrators(review: Review) -> tuple[str, ...]:
    """The offered calibrators that this review can use."""
    usable = usable_calibrators(review)
    return tuple(key for key, why in usable.items() if why is None and CALIBRATORS[key].offered)


def _settled(review: Review, settings: ComparisonSettings) -> ComparisonSettings:
    """The checked settings, with calibrators in the registry's order and the judge filled in."""
    unknown = next((key for key in settings.calibrators if key not in CALIBRATORS), None)
    if unknown is not None or not settings.calibrators:
        raise InputError(
            f"There is no calibrator {unknown!r}" if unknown else "No calibrator is chosen",
            fix="Choose at least one calibrator to compare with the model as it is.",
        )
    judge = settings.judge or ("evaluation" if review.has_evaluation else "cross-fitted")
    if judge == "evaluation" and not review.has_evaluation:
        raise InputError("There is no evaluation set", fix="Load one, or judge by cross-fitting.")
    if settings.event is not None and settings.event not in range(len(review.classes)):
        raise InputError(
            f"There is no class {settings.event}", fix="Choose one of the review's classes."
        )
    ordered = tuple(key for key in CALIBRATORS if key in settings.calibrators)
    return replace(settings, calibrators=ordered, judge=judge)


@review_task(
    "Comparing calibrators",
    reads=PARTS,
    needs=require_classification("calibrators are compared for classifications"),
    default=lambda review: ComparisonSettings(default_calibrators(review), event=review.event),
    ranges={"folds": (2.0, 20.0), "seed": (0.0, 2.0**31), "n_boot": (100.0, 10_000.0)},
    settle=_settled,
    edition=lambda: " ".join(
        (
            FITTED,
            "corrected together",
            "foreign rows together",
            *(one.key for one in compared_measures()),
        )
    ),
)
def compare_calibrators(sets: Sets, settings: ComparisonSettings) -> ComparisonRun:
    """Fit and judge every calibrator.

    The same calibrators in another order are the same job, and so are settings that name the
    default judge.

    Raises
    ------
    InputError
        Where there are too few rows for the folds, or a file is missing. A calibrator that cannot
        be fitted is named in the result's ``failed`` instead.
    """
    sets.progress(0.0, "Reading the rows")
    data = review_data(sets.reader, with_model=True)
    with chosen_executor() as executor, quiet():  # the result's notes say the same
        found = compare(
            settings.calibrators,
            data,
            folds=settings.folds,
            seed=settings.seed,
            n_boot=settings.n_boot,
            judge=settings.judge,
            event=settings.event,
            progress=part_of(sets.progress, _READ, 1.0),
            executor=executor,
        )
    return ComparisonRun(settings, data.calibration.n_rows, found)
