"""A child that acts and says what was confirmed, and is killed without a warning."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

KILLS = int(os.environ.get("KDCAL_KILLS", "20"))
"""Moments of each test, or a share of them; 200 are tried by hand."""


def in_child(act: Callable[[Callable[[str], None]], None]) -> tuple[int, int]:
    """Fork a process that acts and writes what it confirms to a pipe; its id and the pipe."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            act(lambda said: os.write(write, f"{said}\n".encode()) and None)
        finally:
            os._exit(0)
    os.close(write)
    return child, read


def kill_after(child: int, read: int, seconds: float) -> list[str]:
    """What the child confirmed before it was killed."""
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode().split()
