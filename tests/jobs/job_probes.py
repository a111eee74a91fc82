"""Functions that do on purpose what a hostile file might do.

Workers run them because ``KDCAL_TARGETS`` names this module, see the tests' ``conftest.py``.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.forks import Shared
from kdcal_core.jobs.executors import chosen_executor
from kdcal_core.jobs.limits import trial
from kdcal_core.jobs.outcome import Cancelled
from kdcal_core.progress import Progress


def echo(value: Any) -> Any:
    """Give the argument back, after printing, as libraries do."""
    print("a library prints")
    os.write(1, b"so does native code\n")
    return value


def add(a: int, b: int) -> int:
    """The sum, and not a word more."""
    return a + b


def leave(text: str, pause: float, folder: str, progress: Progress) -> str:
    """Leave a half-written file in ``folder``, wait, finish it."""
    with Path(folder, "a.txt").open("w") as file:
        file.write(text[:1])
        file.flush()
        for step in range(10):
            progress(step / 10, "writing")
            time.sleep(pause / 10)
        file.write(text[1:])
    return text.upper()


def tidy(path: str, pause: float, progress: Progress) -> None:
    """Work until asked to stop; then take ``pause`` seconds to clean up, leaving ``path``."""
    try:
        while True:
            progress(0.5, "working")
            time.sleep(0.02)
    finally:
        time.sleep(pause)
        Path(path).write_text("clean")


def ignore(seconds: float, progress: Progress) -> None:
    """Go on whatever is asked or signalled, for some time."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Cancelled):
            progress(0.5, "deaf")
        time.sleep(0.02)


def hurry(n: int, progress: Progress) -> int:
    """Report ``n`` times within a second."""
    for step in range(n):
        progress(step / n, f"step {step}")
        time.sleep(1 / n)
    return n


def fill(folder: str) -> None:
    """Meet a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)


def count(n: int, pause: float, progress: Progress, hurry: str = "") -> int:
    """Report ``n`` steps of ``pause`` seconds each, or of none once the file ``hurry`` is there."""
    for step in range(1, n + 1):
        if not (hurry and os.path.exists(hurry)):  # noqa: PTH110
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


def map_file(path: str) -> int:
    """Map a file into memory, and read its ends."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:  # noqa: PTH123
        return len(mapped) + mapped[0] + mapped[-1]


def trial_of(busy: float = 0.0, n_bytes: int = 0, after: int = 0) -> int:
    """Try to be busy, or to fill memory; then fill some more."""
    with trial("The model, tried on 8 rows,", fix="Choose another.", seconds=1, more_bytes=2**28):
        end = time.monotonic() + busy
        while time.monotonic() < end:
            pass
        filled = allocate(n_bytes)
    return filled + allocate(after)


def imported(name: str) -> bool:
    """Whether a library is imported before this function needs it."""
    return name in sys.modules


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


def scaled(frame: Any, by: Any) -> Any:
    """A table times an array, and the process that computed it."""
    return frame.assign(x=frame["x"] * by), os.getpid()


def die_once(path: str, n: int) -> int:
    """Kill this process at the first call for ``path``; then give ``n`` back."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def freeze_once(path: str) -> int:
    """Stop this process at the first call for ``path``, leaving its number there.

    It goes on after SIGCONT once ``path.go`` is there.
    """
    if not Path(path).exists():
        Path(path).write_text(str(os.getpid()))
        time.sleep(1.0)  # until another thread has sent the first sign of life
        os.kill(os.getpid(), signal.SIGSTOP)  # which may take a moment
        while not Path(f"{path}.go").exists():
            time.sleep(0.05)
    return os.getpid()


def work_on(path: str, progress: Progress) -> None:
    """Work until stopped, leaving ``path`` as a sign that it began, and another when it ends."""
    Path(path).touch()
    try:
        while True:
            progress(0.5, "working")
            time.sleep(0.02)
    finally:
        Path(f"{path}.ended").touch()


def nap(seconds: float) -> float:
    """Sleep, without a word."""
    time.sleep(seconds)
    return seconds


def _pid(_: int) -> int:
    time.sleep(0.01)
    return os.getpid()


def reach(within: list[str], outside: str, port: int, folder: str) -> dict[str, str]:
    """Try what a model that takes over the process of a job would try."""

    def tried(what: Any) -> str:
        try:
            what()
        except OSError as error:
            return type(error).__name__
        return "done"

    def temporary() -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"1")

    def result() -> None:
        Path(folder, "made").mkdir()
        Path(folder, "made", "a.npy").write_bytes(b"1")

    def connect() -> None:
        socket.create_connection(("127.0.0.1", port), 5).close()

    def share() -> None:
        with Shared(_pid, range(40), copies=1) as shared:
            for _ in shared.mine():
                time.sleep(0.01)
            shared.wait(60)
        if os.getpid() in shared.results.values() or not shared.results:
            raise PermissionError

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(tried(Path(outside).read_bytes) == "PermissionError")
        if os.waitpid(pid, 0)[1] != 0:
            raise PermissionError

    return {
        "read what it may": "".join(Path(one).read_text() for one in within),
        "write its result": tried(result),
        "write temporary files": tried(temporary),
        "share its work": tried(share),
        "see the memory": tried(Path("/proc/meminfo").read_text),
        "read elsewhere": tried(Path(outside).read_text),
        "read elsewhere in a copy of itself": tried(fork),
        "list elsewhere": tried(lambda: list(Path(outside).parent.iterdir())),
        "read accounts": tried(Path("/etc/passwd").read_text),
        "read the server's environment": tried(Path(f"/proc/{os.getppid()}/environ").read_bytes),
        "change what it reads": tried(lambda: Path(within[0]).write_text("x")),
        "write beside it": tried(lambda: Path(within[0]).with_name("new").write_text("x")),
        "write elsewhere": tried(lambda: Path(outside).with_name("new").write_text("x")),
        "write code": tried(lambda: Path(__file__).with_name("new.py").write_text("x")),
        "start a program": tried(lambda: subprocess.run(["/bin/true"], check=True)),
        "connect": tried(connect),
        "send a datagram": tried(lambda: socket.socket(type=socket.SOCK_DGRAM).close()),
    }


MULTIPATH = 262  # TCP over several paths, which Landlock does not limit


def spread(port: int) -> list[Any]:
    """Add numbers on the workers that the environment names; then try to reach another server."""
    with chosen_executor() as executor:
        assert executor is not None
        sums = [one.result(300) for one in [executor.submit(add, at, at) for at in range(4)]]
    for kind in (0, MULTIPATH):
        try:
            with socket.socket(proto=kind) as one:
                one.connect(("127.0.0.1", port))
        except OSError as error:
            refused = type(error).__name__
        else:
            return [sums, f"connected by protocol {kind}"]
    return [sums, refused]


def can_limit() -> bool:
    """Whether this kernel has Landlock, with limits of the network."""
    try:
        from py_landlock import Landlock
    except ImportError:
        return False
    try:
        return int(Landlock(strict=False).abi_version) >= 4
    except (OSError, RuntimeError):
        return False
