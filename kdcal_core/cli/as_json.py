"""Results of commands as JSON."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.cli.terminal import Report


def plain(value: Any) -> Any:
    """Replace NumPy's types by Python's, and numbers that are not finite by None.

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


def json_report(value: Any, code: int = 0) -> Report:
    """A result as JSON, which --quiet leaves; in ASCII, so that every terminal shows it whole.

    Examples
    --------
    >>> print(json_report({"share": float("nan"), "class": "größer"}).text)
    {
      "share": null,
      "class": "gr\\u00f6\\u00dfer"
    }
    """
    return Report(json.dumps(plain(value), indent=2, allow_nan=False), code, asked=True)


def fitted_report(
    options: argparse.Namespace,
    found: dict[str, Any],
    source: str,
    settings: dict[str, Any],
    warnings: Sequence[str] = (),
) -> Report:
    """What `kdcal calibrate` fitted, what it gains, and the digest of the file it wrote.

    Parameters
    ----------
    options : Namespace
        Of the command.
    found : dict
        ``title``, ``rows``, ``notes`` and ``estimates``.
    source : str
        Name of the table of the calibration set.
    settings : dict
        Those that were given.
    """
    from kdcal_core.store.disk import digest_of

    estimates = [
        {name: one[name] for name in one if name != "percent"} for one in found["estimates"]
    ]
    return json_report(
        {
            "task": options.task,
            "calibrator": options.calibrator,
            "title": found["title"],
            "source": source,
            "rows": found["rows"],
            "settings": settings,
            "seed": options.seed,
            "warnings": warnings,
            "notes": found["notes"],
            "estimates": estimates,
            "out": options.out,
            "sha256": digest_of(Path(options.out)),
        }
    )
