"""A partition by the values of a chosen column or by the combinations of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.regions.region_layers import FitRows, PartitionFit, fit_partition
from kdcal_core.data import IntArray
from kdcal_core.errors import InputError
from kdcal_core.partition.tree.binned import MAX_BINS, InputColumn
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand
from kdcal_core.text import formatted, listed

# Numbers with more distinct values than this are binned at their quantiles.
NUMBER_BINS = 10
# The most frequent combinations of values, up to this many, are separate regions.
MAX_REGIONS = 1000


@storable
@dataclass(frozen=True, eq=False)
class ColumnPartition:
    """The values of some columns as regions.

    Attributes
    ----------
    columns : tuple of InputColumn
        The columns, with the meaning of their codes.
    codes : (R - 1, c) uint8 array
        The codes of each region, the most frequent first; the last region holds the rest.
    """

    columns: tuple[InputColumn, ...]
    codes: NDArray[np.uint8]

    @property
    def n_leaves(self) -> int:
        """Number of regions R."""
        return len(self.codes) + 1

    def apply(self, X: pd.DataFrame) -> IntArray:
        """Region of each row, (n,); values that the fit did not see are in the last region."""
        frame = X[[column.name for column in self.columns]]
        return self._regions(_coded(frame, self.columns)[1])

    def _regions(self, codes: NDArray[np.uint8]) -> IntArray:
        known, rows = _keys(self.codes), _keys(codes)
        order = np.argsort(known)
        at = np.searchsorted(known, rows, sorter=order).clip(max=len(known) - 1)
        found = order[at]
        return np.where(known[found] == rows, found, len(known))

    def words(self, leaf: int) -> str:
        """The region in words."""
        if leaf == len(self.codes):
            return "any other " + " and ".join(column.name for column in self.columns)
        parts = zip(self.columns, self.codes[leaf], strict=True)
        return " and ".join(_value_words(column, int(code)) for column, code in parts)

    def check(self) -> None:
        """Refuse codes that do not fit the columns, as in a damaged file."""
        demand(isinstance(self.columns, tuple) and len(self.columns) > 0, "the columns")
        for column in self.columns:
            demand(isinstance(column, InputColumn), "the columns")
            column.check()
        codes = check_array(self, "codes", (None, len(self.columns)), dtype=np.uint8)
        last = np.array([column.missing_code for column in self.columns])
        demand(len(codes) > 0 and bool((codes <= last).all()), "the regions' values")


def column_read(settings: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The requested column."""
    if not isinstance(settings.column, str):
        raise InputError("No column is named to partition by", fix="Name one: column='...'.")
    return _known([settings.column], columns)


def group_columns(settings: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The requested columns, or all."""
    asked = settings.column
    if asked is None:
        return tuple(dict.fromkeys(columns))
    if not len(asked):
        raise InputError(
            "No column is named to partition by", fix="Name some, or give None for all columns."
        )
    return _known([asked] if isinstance(asked, str) else [str(name) for name in asked], columns)


def _known(asked: list[str], columns: tuple[str, ...]) -> tuple[str, ...]:
    for name in asked:
        if name not in columns:
            raise InputError(
                "The inputs do not have the column to partition by",
                fix=f"The inputs have {listed((name[:40] for name in columns), 10)}.",
                column=name,
            )
    return tuple(dict.fromkeys(asked))


def fit_columns(settings: Any, rows: FitRows) -> PartitionFit:
    """The values of the columns, or their combinations, as regions."""
    found, codes = _coded(rows.X, None)
    _, first, counts = np.unique(_keys(codes), return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:MAX_REGIONS]
    partition = ColumnPartition(found, codes[first[order]])
    notes = [
        f"{column.name} has more than {MAX_BINS - 1} values: the rarest are one region, "
        f"{column.categories[-1]!r}."
        for column in found
        if column.pooled
    ]
    if len(first) > MAX_REGIONS:
        notes.append(
            f"{len(first):,} combinations of values occur: the {len(first) - MAX_REGIONS:,} rarest "
            "are one region."
        )
    return fit_partition(settings, rows, partition, tuple(notes), partition.n_leaves - 1)


def _coded(
    frame: pd.DataFrame, like: tuple[InputColumn, ...] | None
) -> tuple[tuple[InputColumn, ...], NDArray[np.uint8]]:
    """The columns' codes; numbers get few bins, so that each holds enough rows."""
    from kdcal_core.partition.tree import bin_inputs

    columns: list[InputColumn] = []
    codes: list[NDArray[np.uint8]] = []
    for i, name in enumerate(frame.columns):
        numeric = pd.api.types.is_numeric_dtype(frame[name].dtype) and not (
            pd.api.types.is_bool_dtype(frame[name].dtype)
        )
        binned = bin_inputs(
            frame[[name]],
            max_bins=NUMBER_BINS if numeric else MAX_BINS,
            like=None if like is None else like[i : i + 1],
        )
        columns += binned.columns
        codes.append(binned.codes[:, 0])
    return tuple(columns), np.column_stack(codes)


def _keys(codes: NDArray[np.uint8]) -> NDArray[Any]:
    """Each row of codes as one value for sorting and comparison."""
    width = codes.shape[1]
    if width > 8:
        return np.ascontiguousarray(codes).view(np.dtype((np.void, width)))[:, 0]
    whole = np.zeros((len(codes), 8), dtype=np.uint8)  # whole numbers sort fastest
    whole[:, :width] = codes
    return whole.view(np.uint64)[:, 0]


def _value_words(column: InputColumn, code: int) -> str:
    if code == column.missing_code:
        return f"{column.name} is missing"
    if column.kind == "category":
        return f"{column.name} is {column.categories[code]}"
    if column.binary:
        return f"{column.name} is {code}"
    low = f"above {formatted(column.edges[code - 1], 'g')}" if code > 0 else ""
    high = f"up to {formatted(column.edges[code], 'g')}" if code < len(column.edges) else ""
    return " ".join(filter(None, [column.name, low, high])) or f"any {column.name}"
