"""The results as JSON: the same input gives the same bytes."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core import __version__
from kdcal_core.cli.measured import Measured
from kdcal_core.cli.measured_regression import MeasuredRegression
from kdcal_core.data.schema import Task
from kdcal_core.diagnostics import Estimate, RegionPit, ReliabilityCurve
from kdcal_core.evaluation import meaning_of
from kdcal_core.store.archive import new_file

# Raised when a field is renamed, removed or changes its meaning; new fields do not raise it.
FORMAT = 1


def record(
    measured: list[Measured] | list[MeasuredRegression],
    task: Task,
    inputs: dict[str, dict[str, Any] | None],
    settings: dict[str, Any],
    doubts: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Everything that ``kdcal diagnose`` found, as JSON values.

    Parameters
    ----------
    measured : list of Measured or of MeasuredRegression
        One a set.
    task : str
        "classification" or "regression".
    inputs : dict
        Name and SHA-256 of each file, under "model", "calibration" and "evaluation".
    settings : dict
        What the user asked for.
    doubts : tuple of str
        Doubts about which classes the probabilities belong to, each with the option that settles
        it.

    Returns
    -------
    dict
        ``format`` is the version of this layout. Numbers that are not defined are None.
    """
    return {
        "format": FORMAT,
        "kdcal": __version__,
        "task": task,
        "inputs": inputs,
        "settings": settings,
        "doubts": doubts,
        "sets": [
            _regression_set(one) if isinstance(one, MeasuredRegression) else _set(one)
            for one in measured
        ],
    }


def record_text(content: dict[str, Any]) -> str:
    """JSON that every parser reads: no NaN, no infinity."""
    return json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)


def write_record(path: Path, content: dict[str, Any]) -> None:
    """Write the JSON; the file appears whole or not at all."""
    with new_file(path) as made:
        made.write_text(record_text(content) + "\n", encoding="utf-8", errors="backslashreplace")


def _set(measured: Measured) -> dict[str, Any]:
    scored = measured.scored
    (diagram,) = measured.diagram.curves
    return {
        "name": scored.name,
        "digest": scored.digest,
        "n": scored.n_rows,
        "classes": scored.classes,
        "findings": measured.findings,
        "notes": measured.notes,
        "estimates": [_estimate(one) for one in measured.estimates],
        "by_predicted_class": [
            {"class": name, **_bins(curve)[0]}
            for name, curve in zip(scored.classes, measured.by_class.curves, strict=True)
        ],
        "reliability": _bins(diagram),
        "confusion": measured.confusion.joint,
    }


def _regression_set(measured: MeasuredRegression) -> dict[str, Any]:
    scored = measured.scored
    return {
        "name": scored.name,
        "digest": scored.digest,
        "n": scored.n_rows,
        "distribution": scored.distribution.family,
        "findings": measured.findings,
        "notes": measured.notes,
        "fault": dataclasses.asdict(measured.fault),
        "tests": [dataclasses.asdict(one) for one in measured.tests],
        "estimates": [{"key": key, **_estimate(one)} for key, one in measured.scores.rows.items()],
        "coverage": [dataclasses.asdict(row) for row in measured.coverage.rows],
        "scale": measured.coverage.scale,
        "pit_histogram": measured.histogram.table().to_dict("records"),
        "by_column": [
            {"column": name, "regions": [_region(one) for one in regions]}
            for name, regions in measured.by_column.items()
        ],
    }


def _region(region: RegionPit) -> dict[str, Any]:
    return {
        "name": region.name,
        "n": region.n,
        "share": region.share,
        "p_value": region.p_value,
        "adjusted_p": region.adjusted_p,
        "fault": dataclasses.asdict(region.fault),
        "coverage": dataclasses.asdict(region.coverage) if region.coverage else None,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {**dataclasses.asdict(estimate), "meaning": meaning_of(estimate)}


def _bins(curve: ReliabilityCurve) -> list[dict[str, Any]]:
    return [
        {
            "bin_low": curve.edges[j],
            "bin_high": curve.edges[j + 1],
            "n": curve.count[j],
            "weight": curve.weight[j],
            "confidence": curve.confidence[j],
            "frequency": curve.accuracy[j],
            "low": curve.low[j],
            "high": curve.high[j],
            "band_low": curve.band_low[j],
            "band_high": curve.band_high[j],
        }
        for j in range(len(curve.count))
    ]


def plain(value: Any) -> Any:
    """NumPy's types as Python's, and what is not a finite number as None.

    Examples
    --------
    >>> plain({"low": float("nan"), "high": np.float64(1.5)})
    {'low': None, 'high': 1.5}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
