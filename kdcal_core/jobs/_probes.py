"""Functions that do on purpose what a hostile file might do. Used by the tests of this room only.

They live inside the core because a worker runs nothing from elsewhere.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from kdcal_core.errors import InputError


def echo(value: Any) -> Any:
    """Give the argument back, after printing, as libraries do."""
    print("a library prints")
    os.write(1, b"so does native code\n")
    return value


def count(n: int, pause: float, progress: Callable[[float, str], None]) -> int:
    """Report ``n`` steps of ``pause`` seconds each."""
    for step in range(1, n + 1):
        time.sleep(pause)
        progress(step / n, f"step {step}")
    return n


def sleep(seconds: float, pid_file: str | None = None) -> None:
    """Sleep, with a child process that sleeps too and whose id goes into ``pid_file``."""
    if pid_file is not None:
        child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
        with open(pid_file, "w") as file:  # noqa: PTH123
            file.write(str(child.pid))
    time.sleep(seconds)


def allocate(n_bytes: int) -> int:
    """Fill that much memory."""
    return len(b"x" * n_bytes)


def crash() -> None:
    """Read address zero."""
    ctypes.string_at(0)


def end(code: int) -> None:
    """End without an answer."""
    os._exit(code)


def fail(text: str) -> None:
    """Raise what is not an error of input."""
    raise RuntimeError(text)


def refuse(fields: dict[str, Any]) -> None:
    """Raise the error of input with these fields."""
    raise InputError(**fields)


def environment() -> dict[str, str]:
    """The process's environment."""
    return dict(os.environ)


def shout(line: str, times: int = 1) -> None:
    """Write raw text to whatever pipe leads to the parent, past all good manners."""
    for fd in range(3, 64):
        try:
            for _ in range(times):
                os.write(fd, line.encode())
        except OSError:
            continue
    time.sleep(60)
