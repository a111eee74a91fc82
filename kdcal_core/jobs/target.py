"""The function that a job runs: found by its name, run with its progress, answered as JSON."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import threading
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs.outcome import Cancelled
from kdcal_core.progress import Progress

PACKAGE = "kdcal_core."
FURTHER = "KDCAL_TARGETS"  # in the environment: further modules, by commas; for tests


def find_target(target: str) -> Callable[..., Any]:
    """The function named ``module:function``, which must be defined in the core.

    The environment of the server may name further modules in ``KDCAL_TARGETS``.

    Raises
    ------
    ValueError
        Where the name leads outside these modules or to something that is no function.

    Examples
    --------
    >>> find_target("kdcal_core.text:bytes_text").__name__
    'bytes_text'
    >>> find_target("os:system")
    Traceback (most recent call last):
    ValueError: 'os:system' is not a function of kdcal_core
    """
    module, _, name = target.partition(":")
    refusal = ValueError(f"{target!r} is not a function of kdcal_core")
    if not _may_run(module):
        raise refusal
    function = getattr(import_module(module), name, None)
    if not inspect.isfunction(function) or not _may_run(function.__module__):
        raise refusal
    return function


def _may_run(module: str) -> bool:
    return module.startswith(PACKAGE) or module in os.environ.get(FURTHER, "").split(",")


def answer(
    target: str,
    kwargs: Mapping[str, Any],
    folder: str | None,
    progress: Progress,
) -> str:
    """Run the function and say in one line of JSON how it ended.

    Parameters
    ----------
    target, kwargs
        See `find_target`; the arguments.
    folder, progress
        Handed to the function where it has parameters of these names.

    Returns
    -------
    str
        An object with exactly one of the keys ``result``, ``input_error``, ``cancelled`` or
        ``error``; see `kdcal_core.jobs.runner.parse`.

    Examples
    --------
    >>> answer("kdcal_core.text:counted", {"n": 3, "noun": "row"}, None, lambda share, note: None)
    '{"result": "3 rows"}'
    """
    try:
        function = find_target(target)
        extras = (
            {"progress": progress} if folder is None else {"progress": progress, "folder": folder}
        )
        wanted = extras.keys() & inspect.signature(function).parameters.keys()
        given = {**kwargs, **{name: extras[name] for name in wanted}}
        return json.dumps({"result": function(**given)}, allow_nan=False)
    except Cancelled:
        return json.dumps({"cancelled": True})
    except InputError as error:
        return refusal(error)
    except Exception as error:  # also of json.dumps: a result that JSON cannot carry
        traceback.print_exc()
        first = (str(error).strip().splitlines() or [""])[0]  # libraries add stack traces
        return json.dumps({"error": f"{type(error).__name__}: {first}"[:500]})


def refusal(error: InputError) -> str:
    """An error of input as such a line.

    Examples
    --------
    >>> refusal(InputError("Wrong", fix="Correct it."))[:50]
    '{"input_error": {"what": "Wrong", "fix": "Correct '
    """
    place = {"file": error.file, "column": error.column, "row": error.row}
    return json.dumps({"input_error": {"what": error.what, "fix": error.fix, **place}})


EVERY = 0.1  # seconds between two reports; a function may call progress as often as it likes


class Reporter:
    """Callable ``(share, note)``. Passes on the newest call, at most ten times a second.

    A thread sends, so that the last report before a long silence arrives too, and a slow listener
    never delays the work.

    Parameters
    ----------
    send : callable
        Gets a share from 0 to 1 and a note.
    asked : callable
        Whether the work was asked to stop; then the next call raises `Cancelled`, inside the
        function, which may clean up.

    Examples
    --------
    >>> heard = []
    >>> with Reporter(lambda *news: heard.append(news), lambda: False) as progress:
    ...     progress(0.5, "halfway")
    >>> heard
    [(0.5, 'halfway')]
    """

    def __init__(self, send: Progress, asked: Callable[[], bool]) -> None:
        self._send = send
        self._asked = asked
        self._newest: tuple[float, str] | None = None
        self._news = threading.Condition()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._news:
            self._closed.set()
            self._news.notify_all()
        self._thread.join()

    def __call__(self, share: float, note: str = "") -> None:
        if self._asked():
            raise Cancelled
        with self._news:
            self._newest = min(1.0, max(0.0, float(share))), str(note)
            self._news.notify_all()

    def _pass_on(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._newest is not None or self._closed.is_set())
                newest, self._newest = self._newest, None
            if newest is not None:
                with contextlib.suppress(OSError):  # nobody listens any more
                    self._send(*newest)
            elif self._closed.is_set():
                return
            self._closed.wait(EVERY)
