"""What every function of this room asks of its arrays before it computes anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition.codes import WORD_BITS, ActivationCodes, Codes, LeafCodes


def check_codes(codes: Codes) -> None:
    """Codes of at least one tree or unit, with as many words as their layers need."""
    if isinstance(codes, LeafCodes):
        _check_leaves(codes)
    elif isinstance(codes, ActivationCodes):
        _check_words(codes)
    else:
        raise InputError(
            f"Codes of a partition are expected, not {type(codes).__name__}",
            fix="Take the codes from the model.",
        )


def _check_leaves(codes: LeafCodes) -> None:
    leaves = codes.leaves
    if leaves.ndim != 2 or leaves.shape[1] == 0 or leaves.dtype.kind != "i":
        raise InputError(
            f"Leaf codes are integers of shape (rows, trees) with at least one tree, "
            f"not {leaves.dtype} of shape {leaves.shape}",
            fix="Give one leaf id a row and tree.",
        )


def _check_words(codes: ActivationCodes) -> None:
    if not codes.layer_widths or min(codes.layer_widths) < 1:
        raise InputError(
            f"Every layer of a network's codes needs a unit; the widths are {codes.layer_widths}",
            fix="Leave out the layers without units.",
        )
    expected = sum(-(-width // WORD_BITS) for width in codes.layer_widths)
    words = codes.words
    if words.ndim != 2 or words.shape[1] != expected or words.dtype != np.uint64:
        raise InputError(
            f"Layers of {codes.layer_widths} units pack into {expected} words of 64 bits a row, "
            f"not {words.dtype} of shape {words.shape}",
            fix="Pack the activations with pack_bits.",
        )
    last = [part.stop - 1 for part in codes.layer_slices()]
    spare = np.array([-width % WORD_BITS for width in codes.layer_widths], dtype=np.uint64)
    # a full word has none to spare, and no shift by 64 bits is defined
    beyond = words[:, last] >> (WORD_BITS - np.maximum(spare, 1))
    if (beyond[:, spare > 0] != 0).any():
        raise InputError(
            "Bits are set beyond the units of a layer", fix="Pack the activations with pack_bits."
        )


def check_same_partition(a: Codes, b: Codes) -> None:
    """Both codes are of one kind and of one number of trees, or of the same layers."""
    check_codes(a)
    check_codes(b)
    if isinstance(a, LeafCodes) and isinstance(b, LeafCodes):
        one, other = f"{a.leaves.shape[1]:,} trees", f"{b.leaves.shape[1]:,} trees"
    elif isinstance(a, ActivationCodes) and isinstance(b, ActivationCodes):
        one, other = f"layers of {a.layer_widths} units", f"layers of {b.layer_widths} units"
    else:
        one, other = _kind(a), _kind(b)
    if one != other:
        raise InputError(
            f"The codes come from two different partitions: {one} and {other}",
            fix="Compute both from the same model.",
        )


def _kind(codes: Codes) -> str:
    return "leaves of a forest" if isinstance(codes, LeafCodes) else "activations of a network"


def checked_counts(counts: NDArray[Any], n_polytopes: int) -> NDArray[np.int64]:
    """Counts of rows, (p, K), as integers that are not negative."""
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[0] != n_polytopes or counts.shape[1] == 0:
        raise InputError(
            f"Counts have shape ({n_polytopes}, classes), one row a polytope, not {counts.shape}",
            fix="Count the rows of each class in each polytope.",
        )
    if counts.dtype.kind not in "iu" or (counts.size and counts.min() < 0):
        raise InputError(
            "Counts are whole numbers, none below zero",
            fix="Count the rows of each class in each polytope.",
        )
    return np.ascontiguousarray(counts, dtype=np.int64)


def checked_exponents(exponents: NDArray[Any]) -> NDArray[np.float64]:
    """Exponents of the kernel, (G,), finite and above zero."""
    exponents = np.ascontiguousarray(exponents, dtype=np.float64)
    if exponents.ndim != 1 or not len(exponents):
        raise InputError(
            f"Exponents are a list of numbers, not of shape {exponents.shape}",
            fix="Give at least one exponent.",
        )
    if not (np.isfinite(exponents) & (exponents > 0)).all():
        raise InputError("Exponents are finite and above zero", fix="The usual grid is 0.5 to 51.")
    return exponents


def checked_points(points: NDArray[Any], n_rows: int, name: str) -> NDArray[np.float64]:
    """Coordinates, (n_rows, d), finite."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    if points.ndim != 2 or len(points) != n_rows:
        raise InputError(
            f"The {name} have shape ({n_rows}, coordinates), not {points.shape}",
            fix="Give one row of coordinates for each row of codes.",
        )
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise InputError(
            f"The {name} hold a value that is missing or infinite",
            fix="Fill or remove such rows.",
            row=int(bad.argmax()) + 1,
        )
    return points


def checked_threads(threads: int | None) -> int | None:
    if threads is not None and threads < 1:
        raise InputError(f"At least one thread is needed, not {threads}", fix="Give 1 or more.")
    return threads
