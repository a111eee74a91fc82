"""skops, imported in a fifth of the time.

To list scikit-learn's estimators skops imports every module of scikit-learn. Two of those, which
hold no estimator, import torch and dask: these are hidden from this one import, in this thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Hidden(MetaPathFinder):
    """Finds no library of these names for the thread that has made it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not needed here", name=fullname)
        return None


@contextmanager
def _without(*names: str) -> Iterator[None]:
    hidden = _Hidden(names)
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)


with _without("torch", "dask", "cupy"):
    import skops
    import skops.io

__all__ = ["skops"]
