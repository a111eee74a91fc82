"""Reading of a scored set's arrays, with checks because their files may have been changed.

Every file is checked against the digest that was written beside it (`kdcal_core.review.seals`), and
all of them against the set's own digest, which the review knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import digest_arrays
from kdcal_core.data.types import FloatArray, ScoredSet
from kdcal_core.errors import InputError
from kdcal_core.review.model import TableInfo
from kdcal_core.review.seals import changed, check_digest, check_folder, seal_folder
from kdcal_core.store import read_array

if TYPE_CHECKING:
    from kdcal_core.distributions import PredictiveDistribution, RegressionSet

DISTRIBUTION = "distribution"  # the subfolder of a regression set that holds its distributions


def table_path(folder: Path, table: TableInfo) -> Path:
    """The file of a table, after a check that it is the one that was added to the review.

    A seal beside a file only shows that the file is unchanged; this check shows that it is this
    table's, even if the seal is missing.

    Raises
    ------
    InputError
        The file is missing, was changed, or is another table's.
    """
    path = folder / table.file
    if table.sha256:
        with kept(table.name):
            check_digest(path, table.sha256)
    return path


def scored_arrays(folder: Path, classes: tuple[str, ...], digest: str, name: str) -> ScoredSet:
    """The scored set in ``folder``, its arrays memory-mapped and read-only.

    Raises
    ------
    InputError
        Where an array is gone, damaged, or not of the others' length.
    """
    weighted = (folder / "weight.npy").exists()
    with kept(name):
        sealed = check_folder(folder)
        proba, y = read_array(folder / "proba.npy"), read_array(folder / "y.npy")
        weight = read_array(folder / "weight.npy") if weighted else None
        if proba.dtype != np.float64 or proba.shape != (*y.shape, len(classes)):
            raise ValueError("probabilities of another shape")
        if y.dtype != np.int64 or y.min(initial=0) < 0 or y.max(initial=0) >= len(classes):
            raise ValueError("classes that do not exist")
        if weight is not None and (weight.dtype, weight.shape) != (np.dtype(np.float64), y.shape):
            raise ValueError("weights of another shape")
        _check_content(folder, sealed, digest, digest_arrays(proba, y, weight, *classes))
    return ScoredSet(proba, y, classes, digest, name, weight)


def regression_arrays(folder: Path, digest: str, name: str) -> RegressionSet:
    """The regression set in ``folder``, its arrays memory-mapped and read-only.

    Raises
    ------
    InputError
        Where an array is gone, damaged, or not of the others' length.
    """
    from kdcal_core.distributions import RegressionSet, load_distribution

    with kept(name):
        sealed = check_folder(folder)
        y = _numbers(folder / "y.npy")
        distribution = load_distribution(folder / DISTRIBUTION, n_rows=len(y))
        weight, true_mean = (
            _numbers(path, len(y)) if path.exists() else None
            for path in (folder / "weight.npy", folder / "true_mean.npy")
        )
        if weight is not None and weight.min(initial=1) <= 0:
            raise ValueError("weights that are not above zero")
        found = regression_digest(y, weight, true_mean, distribution)
        _check_content(folder, sealed, digest, found)
    return RegressionSet(distribution, y, digest, name, weight, true_mean)


def regression_digest(
    y: FloatArray,
    weight: FloatArray | None,
    true_mean: FloatArray | None,
    distribution: PredictiveDistribution,
) -> str:
    """The content digest of a regression set."""
    named = (part for pair in distribution.arrays().items() for part in pair)
    return digest_arrays(y, weight, true_mean, distribution.family, *named)


@contextmanager
def kept(name: str) -> Iterator[None]:
    """Report a missing or damaged file of the review as an input error."""
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error
    except (OSError, ValueError, EOFError, OverflowError) as error:
        raise gone(name) from error


def gone(name: str) -> InputError:
    """The error of a table or set whose rows can no longer be read."""
    return InputError(
        "The rows are no longer kept on this machine, or their file is damaged",
        fix="Load the file again on the Load page.",
        file=name,
    )


def _check_content(folder: Path, sealed: bool, digest: str, found: str) -> None:
    """Refuse files that are not this set's, sealed or not; seal those of an earlier version.

    Seals alone would accept another set's files that were put here together with their seals.
    """
    if found != digest:
        raise changed(folder)
    if not sealed:
        with suppress(OSError):  # the home may be read-only
            seal_folder(folder)


def _numbers(path: Path, n_rows: int | None = None) -> NDArray[Any]:
    values = read_array(path)
    if values.dtype != np.float64 or values.ndim != 1 or n_rows not in (None, len(values)):
        raise ValueError("numbers of another shape")
    if not np.isfinite(values).all():
        raise ValueError("numbers that are not finite")
    return values
