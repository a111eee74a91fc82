"""A child that acts and says what was confirmed, and is killed without a warning."""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

KILLS = 20
"""Moments of each test, or a share of them. The study `kills` tries 200 of each."""

NOT_BEGUN, ENDED = "before the first step", "after the last step"


class Says:
    """What a child says, on a pipe that outlives it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def begins(self, step: str) -> None:
        """A step begins; a kill until the next one falls into it."""
        self._write(f"begins {step}")

    def confirms(self, what: str = "done") -> None:
        """What a user was told is kept."""
        self._write(f"confirms {what}")

    def _write(self, line: str) -> None:
        os.write(self._pipe, f"{line}\n".encode())


@dataclass
class Tally:
    """Kills by the step into which they fell, and how much was confirmed before them.

    With a ``step`` of its own, a kill's moment is counted from when a child first begins it.
    """

    step: str | None = None
    during: Counter[str] = field(default_factory=Counter)
    confirmed: int = 0


Act = Callable[[Says], None]


def kills(
    act: Act, n: int, seconds: float, moments: random.Random, tally: Tally
) -> Iterator[list[str]]:
    """Kill ``n`` children, each at a random moment of the first seconds; what each confirmed."""
    for _ in range(n):
        yield killed(act, moments.uniform(0.0, seconds), tally)


def killed(act: Act, seconds: float | None, tally: Tally) -> list[str]:
    """What a child confirmed before it was killed; it kills itself, or ends, where None is given.

    Raises
    ------
    AssertionError
        If it failed by itself: what it was to do was then not tried.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            act(Says(write))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = _until(tally.step, pipe) if tally.step is not None else []
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        lines = [one.decode().split(" ", 1) for one in (*said, *pipe.read().splitlines())]
    ended = os.WIFEXITED(status)
    assert not ended or os.WEXITSTATUS(status) == 0, "the child failed by itself"
    begun = [step for kind, step in lines if kind == "begins"]
    tally.during[ENDED if ended else begun[-1] if begun else NOT_BEGUN] += 1
    confirmed = [what for kind, what in lines if kind == "confirms"]
    tally.confirmed += len(confirmed)
    return confirmed


def _until(step: str, pipe: BinaryIO) -> list[bytes]:
    """What a child says until it begins a step, or ends."""
    said = []
    for line in iter(pipe.readline, b""):
        said.append(line.rstrip(b"\n"))
        if said[-1] == f"begins {step}".encode():
            break
    return said
