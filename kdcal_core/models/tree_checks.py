"""Checks of uploaded trees that compiled code would follow without looking.

The libraries index into memory with the numbers of a file: a child or a feature out of range
reads foreign memory or ends the process, a cycle never ends. Every format's trees pass here
before they are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError

_FIX = "The file is damaged or was made to do harm; save the model again from its source."


def unsafe(what: str) -> InputError:
    """The error for a tree that must not be used."""
    return InputError(what, fix=_FIX)


def check_children(
    left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_], *, where: str
) -> None:
    """Check that the inner nodes of a tree, from node 0 down, form a tree.

    Every node has at most one parent and node 0 has none, so whoever walks down from node 0
    meets each node at most once and ends at a leaf.

    Parameters
    ----------
    left, right : (n_nodes,) int arrays
        Children of each node; looked at where ``inner`` only.
    inner : (n_nodes,) bool array
        True for nodes that split.
    where : str
        Which tree, for the message.

    Raises
    ------
    InputError
        A child is out of range, or a node has two parents.

    Examples
    --------
    >>> import numpy as np
    >>> check_children(np.array([1, 0, 0]), np.array([7, 0, 0]), np.array([True, False, False]),
    ...                where="tree 1")
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: A child index of tree 1 is out of range. The file is damaged or \
was made to do harm; save the model again from its source.
    """
    children = np.concatenate([left[inner], right[inner]])
    check_range(children, 1, len(inner), what=f"A child index of {where}")
    if np.unique(children).size != children.size:
        raise unsafe(f"A node of {where} has two parents")


def check_range(values: NDArray[Any], low: int, stop: int, *, what: str) -> None:
    """Check ``low <= value < stop`` for every value."""
    if values.size and (values.min() < low or values.max() >= stop):
        raise unsafe(f"{what} is out of range")
