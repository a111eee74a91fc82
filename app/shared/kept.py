"""A cache in the server's memory between runs, limited by bytes, not by number."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import pandas as pd

from kdcal_core.memory import total_bytes

T = TypeVar("T")
P = ParamSpec("P")


class Kept:
    """Results and rows by content digest and settings; the least recently used are dropped first.

    Kept values are shared by all sessions and must not be changed. A value of more than
    ``max_bytes`` is not kept.

    Examples
    --------
    >>> kept = Kept(1000)
    >>> kept.get("zeros", lambda: np.zeros(100)).sum(), kept.total_bytes
    (np.float64(0.0), 800)
    >>> kept.get("ones", lambda: np.ones(50)).sum(), kept.total_bytes
    (np.float64(50.0), 400)
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._items: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, threading.RLock] = {}
        self._changing = threading.Lock()
        self.total_bytes = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value under the key, or the result of ``make``, computed once for all sessions."""
        with self._changing:
            if key in self._items:
                return cast(T, self._used(key))
            making = self._making.setdefault(key, threading.RLock())
        with making:
            with self._changing:
                if key in self._items:  # another session made it meanwhile
                    return cast(T, self._used(key))
            try:
                value = make()
                self._keep(key, value)
            finally:
                with self._changing:
                    self._making.pop(key, None)
        return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._items

    def clear(self) -> None:
        """Delete everything."""
        with self._changing:
            self._items.clear()
            self.total_bytes = 0

    def _used(self, key: Hashable) -> Any:
        self._items.move_to_end(key)
        return self._items[key][0]

    def _keep(self, key: Hashable, value: Any) -> None:
        size = bytes_of(value)
        if size > self._max_bytes:
            return
        with self._changing:
            self._items[key] = value, size
            self.total_bytes += size
            while self.total_bytes > self._max_bytes:
                _, (_, gone) = self._items.popitem(last=False)
                self.total_bytes -= gone


def bytes_of(value: Any) -> int:
    """Bytes of the arrays and frames in a value, each counted once, without mapped files.

    Examples
    --------
    >>> one = np.zeros(10)
    >>> bytes_of({"a": one, "b": (one, [np.zeros(5)])})
    120
    """
    return _bytes_of(value, set())


def _bytes_of(value: Any, met: set[int]) -> int:
    if id(value) in met or value is None or isinstance(value, str | int | float | type):
        return 0
    met.add(id(value))
    if isinstance(value, np.ndarray):
        if isinstance(value, np.memmap):
            return 0
        # a view keeps its whole base array alive
        return value.nbytes if value.base is None else _bytes_of_base(value, met)
    if isinstance(value, pd.DataFrame | pd.Series):
        return int(np.sum(value.memory_usage(index=True, deep=False)))
    if isinstance(value, dict):
        return sum(_bytes_of(item, met) for item in value.values())
    if isinstance(value, tuple | list):
        return sum(_bytes_of(item, met) for item in value)
    if dataclasses.is_dataclass(value):
        return sum(_bytes_of(getattr(value, one.name), met) for one in dataclasses.fields(value))
    return sum(_bytes_of(item, met) for item in getattr(value, "__dict__", {}).values())


def _bytes_of_base(view: np.ndarray[Any, Any], met: set[int]) -> int:
    base = view.base
    if isinstance(base, np.ndarray):
        return _bytes_of(base, met)
    return 0 if base is None or type(base).__name__ == "mmap" else view.nbytes


_SHARE = 16  # of the machine's memory
KEPT = Kept(max(256 * 1024**2, total_bytes() // _SHARE))


def by_digest(make: Callable[P, T]) -> Callable[P, T]:
    """Cache a function by its positional arguments only, one of which is a digest.

    Its keyword arguments are its inputs, which the digest identifies.
    """

    @functools.wraps(make)
    def kept(*args: P.args, **kwargs: P.kwargs) -> T:
        return KEPT.get((make.__module__, make.__qualname__, *args), lambda: make(*args, **kwargs))

    return kept
