"""The child process: reads one request, runs one function of the core, answers in JSON lines.

Only `kdcal_core.jobs.runner` runs it, as ``python -m kdcal_core.jobs.worker``.
The request is the first line of standard input; a further line ``cancel`` asks it to stop. The
answers go to the pipe that was standard output. Standard output itself is redirected to standard
error before anything else runs, because libraries print.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import BinaryIO

from kdcal_core.errors import InputError
from kdcal_core.forks import allow_forks
from kdcal_core.jobs.limits import allow_leaving
from kdcal_core.jobs.outcome import Reporter, answer, find_target, refusal
from kdcal_core.jobs.sandbox import confine, confine_job
from kdcal_core.memory import memory_limit


def _take_stdout() -> BinaryIO:
    """The pipe behind standard output, which is then redirected to standard error."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(pipe, "wb")


def _limit(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system: there is only the time limit
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(memory_limit(), (memory_bytes, memory_bytes))


def _listen(stdin: BinaryIO) -> threading.Event:
    """An event that is set when the process is asked to stop.

    The process ends when its parent does, because standard input is then closed.
    """
    asked = threading.Event()

    def hear() -> None:
        for line in stdin:
            if line == b"cancel\n":
                asked.set()
        os._exit(1)

    threading.Thread(target=hear, daemon=True).start()
    return asked


def main() -> None:
    """Serve one request and end."""
    pipe = _take_stdout()
    stdin = sys.stdin.buffer
    request = json.loads(stdin.readline())
    _limit(request["memory_bytes"])

    saying = threading.Lock()  # a trial that takes too long reports it from another thread

    def say(line: str) -> None:
        with saying:
            pipe.write(line.encode() + b"\n")
            pipe.flush()

    def report(share: float, note: str) -> None:
        say(json.dumps({"progress": share, "note": note}))

    def leave(error: InputError) -> None:
        say(refusal(error))
        os._exit(0)

    allow_leaving(leave)
    allow_forks()
    if request.get("prepared"):
        answer(request["prepared"], {}, None, report)
    if request.get("confined"):
        confine(request["kwargs"], request["folder"])
    elif request.get("temporary"):  # the process of a job
        with contextlib.suppress(Exception):  # the answer reports it
            find_target(request["target"])  # modules may keep compiled code when they are imported
        confine_job(request["reads"], request["folder"], request["temporary"])
    asked = _listen(stdin)  # not before: Landlock limits a thread and those that it starts
    with Reporter(report, asked.is_set) as progress:
        last = answer(request["target"], request["kwargs"], request["folder"], progress)
    say(last)
    sys.stderr.flush()
    # no teardown: libraries with threads take seconds for it, or crash
    os._exit(0)


if __name__ == "__main__":
    main()
