"""Values that are computed once and kept, for a run in which several steps need them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Once:
    """Computes each value the first time it is asked for, and keeps it as long as itself.

    A thread that asks for a value that another is computing waits for it. A failure is raised and
    not kept, so that the next one who asks computes again. Kept values must not be changed.

    Examples
    --------
    >>> once = Once()
    >>> once("rows", lambda: [1, 2]), once("rows", lambda: [3])
    ([1, 2], [1, 2])
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Future[Any]] = {}

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value under this key, from ``make`` if there is none yet."""
        kept = self._made.get(key)
        if kept is None:
            own: Future[Any] = Future()
            kept = self._made.setdefault(key, own)
            if kept is own:
                try:
                    own.set_result(make())
                except BaseException as error:
                    del self._made[key]
                    own.set_exception(error)
        found: T = kept.result()
        return found
