"""Arrays of a scored set, read back with suspicion: their files may have been changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from kdcal_core.data.types import ScoredSet
from kdcal_core.errors import InputError


def scored_arrays(folder: Path, classes: tuple[str, ...], digest: str, name: str) -> ScoredSet:
    """The scored set in ``folder``, its arrays memory-mapped and read-only.

    Raises
    ------
    InputError
        Where an array is gone, damaged, or not of the others' length.
    """
    weighted = (folder / "weight.npy").exists()
    with kept(name):
        proba, y = _mapped(folder / "proba.npy"), _mapped(folder / "y.npy")
        weight = _mapped(folder / "weight.npy") if weighted else None
        if proba.dtype != np.float64 or proba.shape != (*y.shape, len(classes)):
            raise ValueError("probabilities of another shape")
        if y.dtype != np.int64 or y.min(initial=0) < 0 or y.max(initial=0) >= len(classes):
            raise ValueError("classes that there are not")
        if weight is not None and (weight.dtype, weight.shape) != (np.dtype(np.float64), y.shape):
            raise ValueError("weights of another shape")
    return ScoredSet(proba, y, classes, digest, name, weight)


@contextmanager
def kept(name: str) -> Iterator[None]:
    """A file of the review that is gone or damaged is no accident of the code."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, EOFError, OverflowError) as error:
        raise gone(name) from error


def gone(name: str) -> InputError:
    """The rows of this table or set cannot be read any more."""
    return InputError(
        "The rows are no longer kept on this machine, or their file is damaged",
        fix="Load the file again on the Load page.",
        file=name,
    )


def _mapped(path: Path) -> NDArray[Any]:
    # np.load would try a zip file or a pickle where the first bytes look like one
    return open_memmap(path, mode="r")
