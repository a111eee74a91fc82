"""Distributions to plain arrays and back, in memory and in files that may have been changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from kdcal_core.distributions.base import PredictiveDistribution
from kdcal_core.distributions.empirical import Empirical
from kdcal_core.distributions.gamma import Gamma
from kdcal_core.distributions.mapped import Mapped
from kdcal_core.distributions.normal import LogNormal, Normal
from kdcal_core.distributions.quantiles import Quantiles
from kdcal_core.distributions.student_t import StudentT
from kdcal_core.distributions.weighted import Weighted
from kdcal_core.errors import InputError

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
DEEPEST = 4


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
    shapes = {name: list(values.shape) for name, values in arrays.items()}
    described = {"family": distribution.family, "shapes": shapes}
    (folder / DESCRIPTION).write_text(json.dumps(described), encoding="utf-8")


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


def _read(folder: Path) -> PredictiveDistribution:
    described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    family, shapes = described["family"], described["shapes"]
    if not isinstance(family, str) or not isinstance(shapes, dict):
        raise TypeError("a description of another form")
    _check_names(family, list(shapes))
    arrays = {}
    for name, shape in shapes.items():
        # np.load would try a zip file or a pickle where the first bytes look like one
        values = open_memmap(folder / f"{name}.npy", mode="r")
        if values.dtype != np.float64 or list(values.shape) != shape:
            raise ValueError("an array of another shape")
        arrays[name] = values
    return from_arrays(family, arrays)


def _check_names(family: str, names: list[str]) -> None:
    """Only names that the family has become names of files."""
    inner = [name for name in names if "." in name]
    for name in inner:
        *families, parameter = name.split(".")
        known = families[-1] in KINDS and parameter in KINDS[families[-1]][1]
        wrapped = all(one == Mapped.family for one in families[:-1]) and (
            known or (families[-1] == Mapped.family and parameter in ("knots", "values"))
        )
        if family != Mapped.family or not wrapped or len(families) > DEEPEST:
            raise ValueError("an array of an unknown name")
    own = ("knots", "values") if family == Mapped.family else KINDS[family][1]
    if set(names) - set(inner) != set(own):
        raise ValueError("an array of an unknown name")


def _mapped_from(arrays: Mapping[str, NDArray[Any]]) -> Mapped:
    inner = [name for name in arrays if "." in name]
    families = {name.split(".", 1)[0] for name in inner}
    if set(arrays) - set(inner) != {"knots", "values"} or len(families) != 1:
        raise InputError("The arrays make no distribution of the family 'mapped'")
    base = from_arrays(families.pop(), {name.split(".", 1)[1]: arrays[name] for name in inner})
    return Mapped(base, arrays["knots"], arrays["values"])
