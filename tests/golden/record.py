"""Results as plain figures, as text whose difference can be read, and compared with a tolerance."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

RTOL = 1e-12
"""Largest relative difference between a figure and the stored one."""
ATOL = 1e-15
"""Differences of sums that come to zero but for rounding."""
P_VALUES = ("p_value", "adjusted_p", "overall_p")
"""Compared by their difference: a relative one grows with the statistic, which is rounded too."""

CODES = ("key", "kind", "task", "shape", "judged_on", "fitted_on", "space", "reference")
"""Texts that are results. All others are prose, names or paths, which may be improved freely."""
READ = "label"
"""Stands in the files for whoever reads them, and is not compared."""
_LEFT_OUT = (
    *("settings", "measures", "level", "percent", "lower_is_better", "target"),
    *("fit_seconds", "predict_seconds", "seconds", "size_bytes"),
)
_MOST = 24  # an array with more numbers is stored by its mean, its size and some of its values


def figures(value: Any) -> Any:
    """A result without texts, times and files: dataclasses and arrays as JSON values.

    Examples
    --------
    >>> figures({"key": "platt", "title": "Platt scaling", "value": np.float64(0.5), "seconds": 3})
    {'key': 'platt', 'value': 0.5}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return figures(found)
    if isinstance(value, dict):
        return {
            (name if isinstance(name, str) else " / ".join(map(str, name))): figures(one)
            for name, one in value.items()
            if name not in _LEFT_OUT
            and not (isinstance(name, str) and name.startswith("_"))
            and not _is_prose(name, one)
        }
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, np.generic):
        return figures(value.item())
    if isinstance(value, list | tuple):
        return [figures(one) for one in value if not isinstance(one, str)]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is not a figure")


def _is_prose(name: Any, value: Any) -> bool:
    if isinstance(value, Path):
        return True
    if isinstance(value, list | tuple) and any(isinstance(one, str) for one in value):
        return True
    return isinstance(value, str) and name not in (*CODES, READ)


def array(values: Any) -> Any:
    """An array: all of a small one, of a large one what a changed number is seen in.

    The second mean gives each number another weight, so that two exchanged rows are seen.
    """
    found = np.asarray(values)
    if found.size <= _MOST:
        return figures(found.tolist())
    flat = found.astype(np.float64).ravel()
    at = np.linspace(0, flat.size - 1, 8).astype(np.int64)
    finite = np.where(np.isfinite(flat), flat, 0.0)
    return {
        "shape": list(found.shape),
        "finite": int(np.isfinite(flat).sum()),
        "mean": math.fsum(finite) / flat.size,
        "ramp": math.fsum(finite * np.linspace(-1.0, 1.0, flat.size)) / flat.size,
        "size": math.sqrt(math.fsum(finite**2) / flat.size),
        "values": figures(flat[at].tolist()),
    }


def text(value: Any) -> str:
    """JSON with sorted names, shortest exact floats, and a line for each group of scalars."""
    return _text(value, "") + "\n"


def _text(value: Any, indent: str) -> str:
    inner = indent + "  "
    parts: list[str]
    if isinstance(value, dict) and not all(map(_is_scalar, value.values())):
        parts = [f"{json.dumps(name)}: {_text(value[name], inner)}" for name in sorted(value)]
        ends = "{}"
    elif isinstance(value, list) and not all(map(_is_scalar, value)):
        parts, ends = [_text(one, inner) for one in value], "[]"
    else:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return ends[0] + ",".join(f"\n{inner}{part}" for part in parts) + f"\n{indent}{ends[1]}"


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def differences(stored: Any, found: Any, rtol: float = RTOL, where: str = "") -> Iterator[str]:
    """Where two results differ, a line each.

    Examples
    --------
    >>> list(differences({"ece": 0.25, "n": 3}, {"ece": 0.5, "n": 3}))
    ['ece: 0.25 is now 0.5']
    >>> list(differences([1.0], [1.0 + 1e-14]))
    []
    """
    if isinstance(stored, dict) and isinstance(found, dict):
        for name in sorted(stored.keys() | found.keys()):
            place = f"{where}.{name}" if where else name
            if name not in found:
                yield f"{place}: is gone"
            elif name not in stored:
                yield f"{place}: is new"
            elif name != READ:
                yield from differences(stored[name], found[name], rtol, place)
    elif isinstance(stored, list) and isinstance(found, list):
        if len(stored) != len(found):
            yield f"{where}: {len(stored)} entries are now {len(found)}"
        for at, (one, other) in enumerate(zip(stored, found, strict=False)):
            yield from differences(one, other, rtol, f"{where}[{at}]")
    elif not _same(stored, found, rtol, rtol if where.endswith(P_VALUES) else ATOL):
        yield f"{where}: {stored!r} is now {found!r}"


def _same(stored: Any, found: Any, rtol: float, atol: float) -> bool:
    numbers = [
        isinstance(one, int | float) and not isinstance(one, bool) for one in (stored, found)
    ]
    if all(numbers):
        return math.isclose(stored, found, rel_tol=rtol, abs_tol=atol if rtol == RTOL else rtol)
    return type(stored) is type(found) and stored == found
