"""The child process: reads one request, runs one function of the core, answers in JSON lines.

Run as ``python -m kdcal_core.jobs.worker`` by `kdcal_core.jobs.runner` and by nobody else.
The request is the first line of standard input. The answers go to the pipe that was standard
output; before anything else runs, standard output itself is pointed at standard error, since
libraries print.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from kdcal_core.errors import InputError

PACKAGE = "kdcal_core."
_REPORT_EVERY = 0.05  # seconds; a function may call progress as often as it likes


class _Channel:
    """The pipe to the parent process: one JSON object a line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._last = 0.0

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, allow_nan=False).encode() + b"\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()

    def progress(self, share: float, note: str = "") -> None:
        now = time.monotonic()
        if now - self._last >= _REPORT_EVERY or share >= 1:
            self._last = now
            self.send({"progress": float(share), "note": str(note)})


def _take_stdout() -> BinaryIO:
    """Keep the pipe behind standard output for us and point standard output at standard error."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(pipe, "wb")


def _limit(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system: the time limit alone has to do
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _end_with_parent(stdin: BinaryIO) -> None:
    """Die when the parent does: it holds our standard input open for as long as it lives."""

    def wait() -> None:
        stdin.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def find_target(target: str) -> Callable[..., Any]:
    """The function named ``module:function``, which must be defined in the core.

    Raises
    ------
    ValueError
        Where the name leads outside ``kdcal_core`` or to something that is no function.

    Examples
    --------
    >>> find_target("kdcal_core.jobs._probes:echo").__name__
    'echo'
    >>> find_target("os:system")
    Traceback (most recent call last):
    ValueError: 'os:system' is not a function of kdcal_core
    """
    module, _, name = target.partition(":")
    refusal = ValueError(f"{target!r} is not a function of kdcal_core")
    if not module.startswith(PACKAGE):
        raise refusal
    function = getattr(import_module(module), name, None)
    if not inspect.isfunction(function) or not function.__module__.startswith(PACKAGE):
        raise refusal
    return function


def _answer(request: dict[str, Any], channel: _Channel) -> dict[str, Any]:
    try:
        function = find_target(request["target"])
        kwargs = dict(request["kwargs"])
        if "progress" in inspect.signature(function).parameters:
            kwargs["progress"] = channel.progress
        return {"result": function(**kwargs)}
    except InputError as error:
        place = {"file": error.file, "column": error.column, "row": error.row}
        return {"input_error": {"what": error.what, "fix": error.fix, **place}}
    except Exception as error:
        traceback.print_exc()
        return _failure(error)


def _failure(error: Exception) -> dict[str, Any]:
    first = (str(error).strip().splitlines() or [""])[0]  # libraries add their stack traces
    return {"error": f"{type(error).__name__}: {first}"[:500]}


def main() -> None:
    """Serve one request and end."""
    channel = _Channel(_take_stdout())
    stdin = sys.stdin.buffer
    request = json.loads(stdin.readline())
    _end_with_parent(stdin)
    _limit(request["memory_bytes"])
    answer = _answer(request, channel)
    try:
        channel.send(answer)
    except (TypeError, ValueError) as error:  # the function returned what JSON cannot carry
        channel.send(_failure(error))
    sys.stderr.flush()
    # no teardown: libraries with threads of their own take seconds over it, or crash in it
    os._exit(0)


if __name__ == "__main__":
    main()
