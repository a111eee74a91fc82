"""What a comparison of calibrators was asked for, and all it came to, read back as it was."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics.comparison import Comparison, Measure, MethodScores, PairedDifference
from kdcal_core.diagnostics.comparison.results import Judge, Verdict
from kdcal_core.diagnostics.results import Reliability, ReliabilityCurve, Strategy
from kdcal_core.tasks.storage import damaged, load_array, load_whole, save_array, save_record

_BINS = (
    *("count", "weight", "effective", "confidence", "accuracy"),
    *("low", "high", "band_low", "band_high"),
)
_SMOOTH = ("smooth_x", "smooth_y", "smooth_low", "smooth_high")
_ISOTONIC = ("isotonic_x", "isotonic_y")
_PARTS = {"bins": _BINS, "smooth": _SMOOTH, "isotonic": _ISOTONIC}
_FLOATS = ("value", "low", "high", "expected")


@dataclass(frozen=True)
class ComparisonSettings:
    """Which calibrators are compared, and how they are judged.

    Attributes
    ----------
    calibrators : tuple of str
        Keys of `kdcal_core.calibration.CALIBRATORS`; the parent takes part always.
    judge : str or None
        "evaluation" or "cross-fitted"; None for the evaluation set where there is one.
    folds, seed : int
    n_boot : int
        Resamples behind the intervals of calibration errors.
    """

    calibrators: tuple[str, ...]
    judge: Judge | None = None
    folds: int = 5
    seed: int = 0
    n_boot: int = 1000


# JSON knows no infinity, and an interval of very few rows may have one: numbers are kept as text.


@dataclass(frozen=True)
class _Estimate:
    name: str
    label: str
    value: str
    low: str
    high: str
    n: int
    level: float
    interval: str
    expected: str | None
    percent: bool
    lower_is_better: bool | None


@dataclass(frozen=True)
class _Pair:
    key: str
    difference: _Estimate
    p_value: str
    adjusted_p: str
    verdict: Verdict


@dataclass(frozen=True)
class _Method:
    key: str
    name: str
    family: str
    scores: dict[str, _Estimate]
    fit_seconds: float
    predict_seconds: float
    size_bytes: int
    n: int
    strategy: Strategy
    n_bins: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Pairs:
    measure: str
    against_best: bool
    pairs: tuple[_Pair, ...]


@dataclass(frozen=True)
class ComparisonRecord:
    """What was done, and every number of it but the reliability diagrams.

    Attributes
    ----------
    settings : ComparisonSettings
    n_fit : int
        Rows of the calibration set.
    others
        As in :class:`kdcal_core.diagnostics.comparison.Comparison`.
    """

    settings: ComparisonSettings
    n_fit: int
    methods: tuple[_Method, ...]
    measures: tuple[Measure, ...]
    reference: str
    best: dict[str, str]
    paired: tuple[_Pairs, ...]
    n: int
    folds: int
    judged: str
    overlap: int | None
    seed: int
    notes: tuple[str, ...]
    failed: dict[str, str]
    level: float


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

    @classmethod
    def read(cls, folder: str | Path) -> ComparisonRun:
        """What `compare_calibrators` left in its folder.

        Raises
        ------
        InputError
            Where it is not there (any more), or damaged.
        """
        path = Path(folder)
        record = load_whole(path, ComparisonRecord)
        try:
            return cls(record.settings, record.n_fit, _comparison(path, record))
        except (ValueError, KeyError, IndexError) as error:
            raise damaged() from error


def save_comparison(
    folder: Path, settings: ComparisonSettings, n_fit: int, found: Comparison
) -> None:
    """Write a comparison as one record and the arrays of its reliability diagrams."""
    for at, method in enumerate(found.methods):
        (curve,) = method.reliability.curves
        save_array(folder, f"curve_{at}_edges", curve.edges)
        for name, part in _PARTS.items():
            rows = [np.asarray(getattr(curve, one), dtype=np.float64) for one in part]
            save_array(folder, f"curve_{at}_{name}", np.stack(rows))
    record = ComparisonRecord(
        settings=settings,
        n_fit=n_fit,
        methods=tuple(_kept_method(method) for method in found.methods),
        measures=found.measures,
        reference=found.reference,
        best=found.best,
        paired=tuple(
            _Pairs(measure, against == "best", tuple(_kept_pair(pair) for pair in pairs))
            for (measure, against), pairs in found.paired.items()
        ),
        n=found.n,
        folds=found.folds,
        judged=found.judged,
        overlap=found.overlap,
        seed=found.seed,
        notes=found.notes,
        failed=found.failed,
        level=found.level,
    )
    save_record(folder, record)


def _kept_method(method: MethodScores) -> _Method:
    told = method.reliability
    return _Method(
        method.key,
        method.name,
        method.family,
        {key: _kept(estimate) for key, estimate in method.scores.items()},
        float(method.fit_seconds),
        float(method.predict_seconds_per_million),
        int(method.size_bytes),
        told.n,
        told.strategy,
        told.n_bins,
        method.notes,
    )


def _kept_pair(pair: PairedDifference) -> _Pair:
    return _Pair(
        pair.key, _kept(pair.difference), _text(pair.p_value), _text(pair.adjusted_p), pair.verdict
    )


def _kept(estimate: Estimate) -> _Estimate:
    values = asdict(estimate)
    texts = {name: None if values[name] is None else _text(values[name]) for name in _FLOATS}
    return _Estimate(**{**values, **texts})


def _text(value: float) -> str:
    """All digits of a number; also of one that is infinite or not defined."""
    return repr(float(value))


def _comparison(folder: Path, record: ComparisonRecord) -> Comparison:
    return Comparison(
        methods=tuple(
            _method(folder, at, kept, record.level) for at, kept in enumerate(record.methods)
        ),
        measures=record.measures,
        reference=record.reference,
        best=record.best,
        paired={
            (kept.measure, "best" if kept.against_best else "parent"): tuple(
                _pair(pair) for pair in kept.pairs
            )
            for kept in record.paired
        },
        n=record.n,
        folds=record.folds,
        judged=record.judged,
        overlap=record.overlap,
        seed=record.seed,
        notes=record.notes,
        failed=record.failed,
        level=record.level,
    )


def _method(folder: Path, at: int, kept: _Method, level: float) -> MethodScores:
    arrays: dict[str, Any] = {"edges": load_array(folder, f"curve_{at}_edges")}
    for name, part in _PARTS.items():
        arrays.update(zip(part, load_array(folder, f"curve_{at}_{name}"), strict=True))
    arrays["count"] = arrays["count"].astype(np.int64)
    curve = ReliabilityCurve(label=None, n=kept.n, **arrays)
    return MethodScores(
        key=kept.key,
        name=kept.name,
        family=kept.family,
        scores={key: _estimate(one) for key, one in kept.scores.items()},
        fit_seconds=kept.fit_seconds,
        predict_seconds_per_million=kept.predict_seconds,
        size_bytes=kept.size_bytes,
        reliability=Reliability("confidence", kept.strategy, kept.n_bins, level, kept.n, (curve,)),
        notes=kept.notes,
    )


def _pair(kept: _Pair) -> PairedDifference:
    return PairedDifference(
        kept.key,
        _estimate(kept.difference),
        float(kept.p_value),
        float(kept.adjusted_p),
        kept.verdict,
    )


def _estimate(kept: _Estimate) -> Estimate:
    values = {one.name: getattr(kept, one.name) for one in fields(kept)}
    numbers = {name: None if values[name] is None else float(values[name]) for name in _FLOATS}
    return Estimate(**{**values, **numbers})
