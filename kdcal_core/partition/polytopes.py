"""Polytopes: rows that no tree and no unit tells apart, merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition._checks import check_codes
from kdcal_core.partition.codes import ActivationCodes, Codes, LeafCodes


@dataclass(frozen=True, eq=False)
class Polytopes:
    """The polytopes of a partition that rows fall into.

    Attributes
    ----------
    codes : codes of p rows
        One code a polytope, in lexicographic order, so the order of the rows does not matter.
    index : (n,) int64
        Polytope of each row, 0 to p - 1.
    """

    codes: Codes
    index: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows in each polytope, (p,); at least 1."""
        return np.bincount(self.index, minlength=len(self.codes)).astype(np.int64)


def find_polytopes(codes: Codes) -> Polytopes:
    """Merge the rows whose kernel is 1, which are those of equal codes (paper 000 Algorithm 2).

    Parameters
    ----------
    codes : LeafCodes or ActivationCodes of n >= 1 rows

    Returns
    -------
    Polytopes

    Raises
    ------
    InputError
        If there are no rows, no trees, or a layer has no unit.

    Examples
    --------
    >>> import numpy as np
    >>> found = find_polytopes(LeafCodes(np.array([[2, 1], [1, 3], [2, 1]], dtype=np.int32)))
    >>> found.codes.leaves.tolist(), found.index.tolist(), found.sizes.tolist()
    ([[1, 3], [2, 1]], [1, 0, 1], [1, 2])
    """
    check_codes(codes)
    if not len(codes):
        raise InputError("There are no rows to find polytopes of", fix="Give at least one row.")
    order = lexicographic_order(codes)
    ordered = _sort_keys(codes)[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    index = np.empty(len(codes), dtype=np.int64)
    index[order] = np.cumsum(first) - 1
    return Polytopes(rows_of(codes, order[first]), index)


def lexicographic_order(codes: Codes) -> NDArray[np.int64]:
    """The rows' numbers, (n,), ordered by their codes; equal codes keep their order."""
    return np.argsort(_sort_keys(codes), kind="stable")


def rows_of(codes: Codes, rows: NDArray[np.int64]) -> Codes:
    """The codes of some rows."""
    if isinstance(codes, LeafCodes):
        return LeafCodes(codes.leaves[rows])
    return ActivationCodes(codes.words[rows], codes.layer_widths)


def _sort_keys(codes: Codes) -> NDArray[np.void]:
    """Rows as strings of bytes that sort as the codes do: big-endian, sign bit turned."""
    if isinstance(codes, ActivationCodes):
        values = codes.words.astype(">u8")
    elif codes.leaves.dtype == np.int32:
        values = (np.ascontiguousarray(codes.leaves).view(np.uint32) ^ 2**31).astype(">u4")
    else:
        values = (codes.leaves.astype(np.int64).view(np.uint64) ^ 2**63).astype(">u8")
    width = values.shape[1] * values.dtype.itemsize
    return values.view(np.dtype((np.void, width)))[:, 0]
