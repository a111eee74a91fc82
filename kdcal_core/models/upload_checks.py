"""Checks of uploaded models of any format: the indices of trees, and a trial on a few rows.

The libraries' compiled code indexes memory with the numbers of a file, unchecked: a child or a
feature out of range reads foreign memory or ends the process, and a cycle never ends. So the trees
of every format are checked here before they are used. Every model file must also pass a trial run
that limits what one row may take.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.jobs import TRIAL_SECONDS, trial
from kdcal_core.quotas import CLASSES, MODEL, TREE_NODES
from kdcal_core.text import counted

LOAD_PREDICTIONS = "Write the model's predictions into a table and load that instead."
_FIX = "The file is damaged or malicious; save the model again from its source."


def unsafe(what: str) -> InputError:
    """The error for a model that must not be used."""
    return InputError(what, fix=_FIX)


def check_children(
    left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_], *, where: str
) -> None:
    """Check that the inner nodes of a tree, from node 0 down, form a tree.

    Every node has at most one parent and node 0 has none, so a walk down from node 0 meets each
    node at most once and ends at a leaf.

    Parameters
    ----------
    left, right : (n_nodes,) int arrays
        Children of each node; used only where ``inner`` is True.
    inner : (n_nodes,) bool array
        True for nodes that split.
    where : str
        The tree, for the message.

    Raises
    ------
    InputError
        If a child is out of range or a node has two parents.

    Examples
    --------
    >>> import numpy as np
    >>> check_children(np.array([1, 0, 0]), np.array([7, 0, 0]), np.array([True, False, False]),
    ...                where="tree 1")
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: A child index of tree 1 is out of range. The file is damaged or \
malicious; save the model again from its source.
    """
    children = np.concatenate([left[inner], right[inner]])
    check_range(children, 1, len(inner), what=f"A child index of {where}")
    if children.size and np.bincount(children).max() > 1:
        raise unsafe(f"A node of {where} has two parents")


def check_tree_nodes(n_nodes: int) -> None:
    """Refuse a model with more nodes in all its trees than the limit."""
    TREE_NODES.refuse_beyond(n_nodes, "The model's trees", verb="have", fix=LOAD_PREDICTIONS)


def check_model_size(n_bytes: int, what: str) -> None:
    """Refuse a model that is larger than the limit; ``what`` is "The model", or its content."""
    MODEL.refuse_beyond(n_bytes, what, fix=LOAD_PREDICTIONS)


def check_class_count(n_classes: int) -> None:
    """Refuse a model with more classes than the limit."""
    CLASSES.refuse_beyond(n_classes, "The model", fix=LOAD_PREDICTIONS)


def check_range(values: NDArray[Any], low: int, stop: int, *, what: str) -> None:
    """Check ``low <= value < stop`` for every value."""
    if values.size and (values.min() < low or values.max() >= stop):
        raise unsafe(f"{what} is out of range")


#: Maximum number of elements in one tensor of one row: 128 MB as float32.
MOST_ROW_CELLS = 1 << 25
_FIXED_TIMES = 4  # more rows may take at most this many times the limit of one row
_MOST_TRIAL_CELLS = 1 << 24
# Primes, so that they are not mistaken for a layer's width.
_TRIAL_ROWS = (61, 31, 13, 7, 3, 2)
_OPENED_A_SECOND = 20 << 20  # a trial has one second more for each so many bytes of the file
_COST_FIX = f"It may be too large for kdcal, or malicious. {LOAD_PREDICTIONS}"


def most_cells(n_rows: int) -> int:
    """Maximum number of elements of a tensor for the fewest rows that a model takes.

    Examples
    --------
    >>> most_cells(1) == MOST_ROW_CELLS
    True
    """
    return MOST_ROW_CELLS * min(n_rows, _FIXED_TIMES)


def trial_rows(row_cells: int) -> int:
    """Number of rows to try a model on: fewer where each takes much memory.

    Examples
    --------
    >>> trial_rows(100), trial_rows(1_000_000), trial_rows(1 << 25)
    (61, 13, 1)
    """
    return next((n for n in _TRIAL_ROWS if n * row_cells <= _MOST_TRIAL_CELLS), 1)


@contextmanager
def model_trial(n_rows: int, n_bytes: int, more_bytes: int) -> Iterator[None]:
    """Open a model and run it on a few rows, in a worker under limits of time and memory.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_bytes : int
        Size of the model.
    more_bytes : int
        Memory that it may take in addition to what this process already takes.

    Raises
    ------
    InputError
        If it takes too much time or memory.
    """
    with trial(
        f"The model, opened and tried on {counted(n_rows, 'row')},",
        fix=_COST_FIX,
        seconds=TRIAL_SECONDS + n_bytes / _OPENED_A_SECOND,
        more_bytes=more_bytes,
    ):
        yield
