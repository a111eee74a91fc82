"""The one codec: dataclasses and arrays to JSON and npy, in a folder or in a sealed zip.

Names are loaded on first use, because a job's worker only needs `kdcal_core.store.disk`, which is
fast to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kdcal_core.store.archive import (
        errors_name_file,
        new_file,
        read_archive,
        write_archive,
    )
    from kdcal_core.store.folder import (
        damaged,
        keep_array,
        load,
        load_part,
        read_array,
        save,
        write_arrays,
    )
    from kdcal_core.store.named import Describer, Maker, is_storable, storable, storable_class
    from kdcal_core.store.values import decode, encode

__all__ = [
    "Describer",
    "Maker",
    "damaged",
    "decode",
    "encode",
    "errors_name_file",
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
    "write_archive",
    "write_arrays",
]

_HOME = {
    **dict.fromkeys(("new_file", "read_archive", "errors_name_file", "write_archive"), "archive"),
    **dict.fromkeys(
        ("damaged", "keep_array", "load", "load_part", "read_array", "save", "write_arrays"),
        "folder",
    ),
    **dict.fromkeys(("Describer", "Maker", "is_storable", "storable", "storable_class"), "named"),
    **dict.fromkeys(("decode", "encode"), "values"),
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"kdcal_core.store.{_HOME[name]}"), name)
    raise AttributeError(f"module 'kdcal_core.store' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
