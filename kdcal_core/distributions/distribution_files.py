"""Distributions as plain arrays and back, in memory and in files that may have been changed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from kdcal_core.distributions.distribution import PredictiveDistribution
from kdcal_core.distributions.parametric import Gamma, LogNormal, Normal, StudentT
from kdcal_core.distributions.sampled import Empirical, Quantiles, Weighted
from kdcal_core.distributions.wrapped import Mapped
from kdcal_core.errors import InputError
from kdcal_core.store import decode, encode
from kdcal_core.store.disk import write_json

DESCRIPTION = "distribution.json"
KINDS: dict[str, tuple[type[PredictiveDistribution], tuple[str, ...]]] = {
    "normal": (Normal, ("mean", "std")),
    "lognormal": (LogNormal, ("mean", "std")),
    "gamma": (Gamma, ("shape", "mean")),
    "student_t": (StudentT, ("mean", "scale", "df")),
    "quantiles": (Quantiles, ("levels", "values")),
    "samples": (Empirical, ("samples",)),
    "weighted": (Weighted, ("samples", "weights")),
}
_NAME = re.compile(r"[a-z_]+(\.[a-z_]+){0,4}")  # families in families, and a parameter


def from_arrays(family: str, arrays: Mapping[str, NDArray[Any]]) -> PredictiveDistribution:
    """The inverse of ``distribution.arrays()``; every check of the constructors holds.

    Raises
    ------
    InputError
        Where the family is unknown, or its arrays are missing, too many, or impossible.

    Examples
    --------
    >>> kept = Normal([0.0, 1.0], 2.0)
    >>> from_arrays(kept.family, kept.arrays()).mean().tolist()
    [0.0, 1.0]
    """
    if family == Mapped.family:
        return _mapped_from(arrays)
    if family not in KINDS or set(arrays) != set(KINDS[family][1]):
        raise InputError(
            f"The arrays {', '.join(sorted(arrays))} make no distribution of the family {family!r}"
        )
    return KINDS[family][0](**arrays)


def save_distribution(distribution: PredictiveDistribution, folder: Path) -> None:
    """Write the parameters as ``.npy`` files into ``folder``, and ``distribution.json`` last.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_distribution(Normal([0.0, 1.0], 2.0), Path(folder))
    ...     load_distribution(Path(folder))
    Normal(2 rows)
    """
    arrays = distribution.arrays()
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    shapes = {name: values.shape for name, values in arrays.items()}
    write_json(folder / DESCRIPTION, encode(_Described(distribution.family, shapes)))


def load_distribution(folder: Path, *, n_rows: int | None = None) -> PredictiveDistribution:
    """The distributions kept in ``folder``, their arrays memory-mapped and read-only.

    Parameters
    ----------
    folder : Path
    n_rows : int, optional
        How many rows there must be.

    Raises
    ------
    InputError
        Where a file is gone, damaged, or not what its description says.
    """
    try:
        distribution = _read(folder)
        if n_rows is not None and len(distribution) != n_rows:
            raise ValueError("another number of rows")
    except (
        *(OSError, ValueError, TypeError, KeyError),
        *(EOFError, OverflowError, RecursionError),
    ) as error:
        # an InputError is a ValueError: its row would be one of a file nobody has seen
        raise InputError(
            "The predictions are no longer kept on this machine, or their file is damaged",
            fix="Load the file again on the Load page.",
        ) from error
    return distribution


@dataclass(frozen=True)
class _Described:
    """What ``distribution.json`` holds."""

    family: str
    shapes: dict[str, tuple[int, ...]]


def _read(folder: Path) -> PredictiveDistribution:
    described = decode(_Described, json.loads((folder / DESCRIPTION).read_bytes()))
    arrays = {}
    for name, shape in described.shapes.items():
        if not _NAME.fullmatch(name):
            raise ValueError("an array of an unknown name")
        # np.load would try a zip file or a pickle where the first bytes look like one
        values = open_memmap(folder / f"{name}.npy", mode="r")
        if values.dtype != np.float64 or values.shape != shape:
            raise ValueError("an array of another shape")
        arrays[name] = values
    return from_arrays(described.family, arrays)


def _mapped_from(arrays: Mapping[str, NDArray[Any]]) -> Mapped:
    inner = [name for name in arrays if "." in name]
    families = {name.split(".", 1)[0] for name in inner}
    if set(arrays) - set(inner) != {"knots", "values"} or len(families) != 1:
        raise InputError("The arrays make no distribution of the family 'mapped'")
    base = from_arrays(families.pop(), {name.split(".", 1)[1]: arrays[name] for name in inner})
    return Mapped(base, arrays["knots"], arrays["values"])
