"""A job's work and how it ended, in one line of JSON that the worker writes and the server reads.

The function of a job is found by its name and called with a progress function. It ends with a
result, with an error for users, or because it was stopped.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import threading
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.quotas import WORKER, Quota
from kdcal_core.text import bytes_text, counted


class Cancelled(Exception):  # noqa: N818 - asked for, so not an error
    """The work was cancelled because somebody asked for it."""


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
    """Run the function and report in one line of JSON how it ended.

    Parameters
    ----------
    target, kwargs
        See `find_target`; the arguments.
    folder, progress
        Passed to the function if it has parameters of these names.

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
    except Exception as error:  # also of json.dumps: a result that is not JSON
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
                with contextlib.suppress(OSError):  # the reader has ended
                    self._send(*newest)
            elif self._closed.is_set():
                return
            self._closed.wait(EVERY)


KEPT_SAFE = "Nothing that was loaded before is lost."
_OUT_OF_MEMORY = re.compile(
    r"MemoryError|bad_alloc|bad allocation|[Cc]an(?:'t|not) allocate memory|out of memory"
    # of a library that finds no room, not of one that may not be run
    r"|failed to map segment from shared object(?!: Op)"
)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")


def value_of(message: Mapping[str, Any], what: str, memory_bytes: int | None = None) -> Any:
    """The result in a worker's last message; an error in it is raised.

    Parameters
    ----------
    message : mapping
        As `kdcal_core.jobs.runner.parse` returns it, but not a message of progress.
    what : str
        The step as the beginning of a sentence.
    memory_bytes : int, optional
        The worker's limit of memory.

    Raises
    ------
    InputError, Cancelled

    Examples
    --------
    >>> value_of({"result": 3}, "Counting")
    3
    >>> value_of({"error": "ValueError: no numbers"}, "Counting")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: Counting failed: ValueError: no numbers. Check that ...
    """
    match message:
        case {"result": result}:
            return result
        case {"input_error": dict() as fields}:
            raise InputError(**fields)
        case {"cancelled": True}:
            raise Cancelled(what)
    text = str(message["error"])
    fix = f"Check that the file is what its name says. {KEPT_SAFE}"
    raise failure(what, text, fix=fix, memory_bytes=memory_bytes)


def failure(
    what: str, reason: str, *, fix: str = "", memory_bytes: int | None = None
) -> InputError:
    """The error for users that follows from the text of an exception.

    Examples
    --------
    >>> str(failure("Counting", "ValueError: no numbers"))
    'Counting failed: ValueError: no numbers.'
    >>> failure("Counting", "OSError: [Errno 28] No space left on device").what
    'Counting could not keep its files (No space left on device)'
    """
    if lack_of_memory(reason):
        return too_large(what, memory_bytes)
    if found := _NO_SPACE.search(reason):
        return not_kept(what, found.group())
    return InputError(f"{what} failed: {reason}", fix=fix)


def lack_of_memory(text: str) -> bool:
    """Whether an error's text reports a lack of memory, whichever library wrote it.

    Examples
    --------
    >>> lack_of_memory("std::bad_alloc"), lack_of_memory("no such file")
    (True, False)
    >>> unmapped = "libone.so: failed to map segment from shared object"
    >>> lack_of_memory(unmapped), lack_of_memory(f"{unmapped}: Operation not permitted")
    (True, False)
    """
    return _OUT_OF_MEMORY.search(text) is not None


def too_large(what: str, memory_bytes: int | None) -> InputError:
    """It needed more memory than there is, or than the limit that is named.

    Examples
    --------
    >>> too_large("Fitting", 1024**3).what
    'Fitting needed more memory than the 1.0 GiB it may use'
    """
    limit = "there is"
    if memory_bytes is not None:
        limit = f"the {bytes_text(memory_bytes)} it may use"
    return InputError(
        f"{what} needed more memory than {limit}",
        fix=f"Try fewer rows or a smaller model. {WORKER.raised} {KEPT_SAFE}",
    )


def ended_by_system(what: str, peak_bytes: int) -> InputError:
    """The system ended it while memory ran out, though it kept its own limit.

    Examples
    --------
    >>> ended_by_system("Fitting", 3 * 1024**3).what
    'Fitting was ended by the system, which ran out of memory; it held 3.0 GiB'
    """
    held = bytes_text(peak_bytes)
    return InputError(
        f"{what} was ended by the system, which ran out of memory; it held {held}",
        fix=f"Start it again when fewer programs are running, or try fewer rows. {KEPT_SAFE}",
    )


def ended_from_outside(
    what: str, signal: str, peak_bytes: int, memory_bytes: int | None
) -> InputError:
    """Somebody or something else ended its process; nothing suggests a lack of memory.

    Examples
    --------
    >>> ended_from_outside("Fitting", "SIGKILL, signal 9", 2**30, 2**33).what
    'Fitting ended early: its process was ended from outside (SIGKILL, signal 9)'
    """
    held = ""
    if peak_bytes and memory_bytes:
        held = (
            f" It held {bytes_text(peak_bytes)} of the {bytes_text(memory_bytes)} that it "
            "may use, so memory does not look like the reason."
        )
    return InputError(
        f"{what} ended early: its process was ended from outside ({signal})",
        fix=f"Start it again.{held} {KEPT_SAFE}",
    )


def too_slow(what: str, limit: float | Quota) -> InputError:
    """It took longer than its limit, in seconds or as it is set.

    Examples
    --------
    >>> too_slow("Fitting", 1800).what
    'Fitting took longer than 1,800 seconds and was stopped'
    """
    raised = f" {limit.raised}" if isinstance(limit, Quota) else ""
    return InputError(
        f"{what} took longer than {counted(round(seconds_of(limit)), 'second')} and was stopped",
        fix=f"Try fewer rows or a smaller model.{raised} {KEPT_SAFE}",
    )


def seconds_of(limit: float | Quota) -> float:
    """A limit of time in seconds."""
    return limit.amount if isinstance(limit, Quota) else limit


def unwatched(what: str, seconds: float) -> InputError:
    """It was stopped, because nobody had watched it for so long.

    Examples
    --------
    >>> unwatched("Fitting", 900).what
    'Fitting was stopped, because nobody had its page open for 15 minutes'
    """
    time = f"{seconds / 60:,.0f} minutes" if seconds >= 120 else f"{seconds:,.0f} seconds"
    return InputError(
        f"{what} was stopped, because nobody had its page open for {time}",
        fix="Start it again, and leave a page of the review open.",
    )


def not_kept(what: str, reason: str) -> InputError:
    """Its files could not be written.

    Examples
    --------
    >>> not_kept("Fitting", "No space left on device").what
    'Fitting could not keep its files (No space left on device)'
    """
    return InputError(
        f"{what} could not keep its files ({reason})",
        fix=(
            "Free some space, or let KDCAL_HOME name a folder that kdcal may write to, and start "
            f"it again. {KEPT_SAFE}"
        ),
    )
