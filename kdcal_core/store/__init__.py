"""The one codec: dataclasses and arrays to JSON and npy, in a folder or in a sealed zip."""

from __future__ import annotations

from kdcal_core.store.archive import (
    new_file,
    read_archive,
    telling_contradictions,
    write_archive,
)
from kdcal_core.store.folder import damaged, keep_array, load, load_part, read_array, save
from kdcal_core.store.named import Describer, Maker, is_storable, storable, storable_class
from kdcal_core.store.values import decode, encode

__all__ = [
    "Describer",
    "Maker",
    "damaged",
    "decode",
    "encode",
    "is_storable",
    "keep_array",
    "load",
    "load_part",
    "new_file",
    "read_archive",
    "read_array",
    "save",
    "storable",
    "storable_class",
    "telling_contradictions",
    "write_archive",
]
