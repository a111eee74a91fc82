"""A process that has imported the libraries, from which workers are forked.

A new interpreter imports libraries for one to three seconds before it can work. A worker forked
from here has them after some hundredths of a second. Otherwise it is like any other worker: it has
its own session, pipes, environment and limits, and ends after one request. The fork server itself
reads no file and no request, so no data of one worker reach another.

The fork server reports when a worker has ended, because only its parent can see how. It reserves an
ended worker's process number until `ForkedWorker.release`, so that no signal reaches another
process.

Linux only: elsewhere libraries do not survive a fork, or the system cannot watch a process.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

_MAIN = f"from {__name__} import main; main()"
_LONGEST = 1 << 16  # bytes of one message
_PATIENCE = 5.0  # seconds within which a worker must be forked


def can_fork() -> bool:
    """Whether workers can be forked on this system.

    Examples
    --------
    >>> isinstance(can_fork(), bool)
    True
    """
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


class ForkedWorker:
    """A worker as its owner sees it: the part of `subprocess.Popen` that is used here.

    Attributes
    ----------
    pid : int
        0 until it is forked.
    stdin, stdout, stderr : file
        Our ends of its pipes.
    returncode : int or None
        As for `subprocess.Popen`.
    """

    def __init__(self, server: ForkServer, pipes: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> None:
        self.pid = 0
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None
        self.forked = threading.Event()
        self._server = server
        self._over = threading.Event()

    def begin(self, pid: int) -> None:
        """Record that it was forked."""
        self.pid = pid
        self.forked.set()

    def end(self, code: int) -> None:
        """Record how it ended."""
        self.returncode = code
        self._over.set()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it has ended, and return how.

        Raises
        ------
        subprocess.TimeoutExpired
        """
        if not self._over.wait(timeout):
            raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
        return self.returncode

    def terminate(self) -> None:
        """Ask the system to end it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Make the system end it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def release(self) -> None:
        """Give up its process number, once it has ended."""
        self._server.release(self)


class ForkServer:
    """The fork server as its owner sees it.

    Parameters
    ----------
    modules : sequence of str
        Imported before the first worker is forked.
    environment : mapping
        Of the fork server. Each worker has its own, but libraries have read this one.
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, *modules],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=dict(environment),
                start_new_session=True,
            )
        self._starting = threading.Lock()
        self._next: ForkedWorker | None = None
        self._workers: dict[int, ForkedWorker] = {}
        self._settled = threading.Event()  # it is ready, or has failed
        self._closed = False
        threading.Thread(target=self._listen, name="kdcal-fork-server", daemon=True).start()

    def wait(self, seconds: float = 0.0) -> bool:
        """Whether workers can be forked, after waiting for it for ``seconds`` at most."""
        return self._settled.wait(seconds) and not self._closed

    def start(self, environment: Mapping[str, str]) -> ForkedWorker | None:
        """A new worker, or None if workers cannot be forked yet or any more."""
        if not self.wait():
            return None
        theirs, ours = _pipes()
        worker = ForkedWorker(self, ours)
        with self._starting:
            self._next = worker
            try:
                request = json.dumps({"fork": dict(environment)}).encode()
                socket.send_fds(self._socket, [request], theirs)
            except OSError:  # it has just ended
                self._closed = True
            finally:
                for descriptor in theirs:
                    os.close(descriptor)
            if not self._closed and worker.forked.wait(_PATIENCE):
                return worker
        self.close()
        for pipe in ours:
            pipe.close()
        return None

    def release(self, worker: ForkedWorker) -> None:
        """Give up the process number of an ended worker."""
        self._workers.pop(worker.pid, None)
        with contextlib.suppress(OSError):
            self._socket.send(json.dumps({"release": worker.pid}).encode())

    def close(self) -> None:
        """End the fork server. Its workers go on until their owner ends them."""
        self._closed = True
        self.process.kill()
        self.process.wait()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while message := self._socket.recv(_LONGEST):
                self._hear(json.loads(message))
        self._closed = True
        self._settled.set()
        for worker in list(self._workers.values()):  # their ends are no longer reported
            worker.end(-signal.SIGKILL)

    def _hear(self, message: dict[str, int]) -> None:
        match message:
            case {"ready": _}:
                self._settled.set()
            case {"forked": pid}:
                assert self._next is not None
                self._workers[pid] = self._next
                self._next.begin(pid)
            case {"ended": pid, "code": code} if pid in self._workers:
                self._workers[pid].end(code)


def _pipes() -> tuple[list[int], tuple[IO[bytes], IO[bytes], IO[bytes]]]:
    """Standard input, output and error of a worker: its descriptors, and our ends."""
    stdin, to_worker = os.pipe()
    from_worker, stdout = os.pipe()
    words, stderr = os.pipe()
    ours = os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"), os.fdopen(words, "rb")
    return [stdin, stdout, stderr], ours


class _Children:
    """The workers of the fork server, as their parent sees them."""

    def __init__(self, owner: socket.socket) -> None:
        self._owner = owner
        self._selector = selectors.PollSelector()
        self._selector.register(owner, selectors.EVENT_READ)

    def serve(self) -> None:
        """Fork a worker whenever the owner asks for one, until the owner ends."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._owner:
                    message, descriptors, _, _ = socket.recv_fds(self._owner, _LONGEST, 3)
                    if not message:
                        return
                    self._handle(json.loads(message), descriptors)
                else:
                    self._report(key.fd, key.data)

    def _handle(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if "release" in message:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(message["release"], 0)
            return
        reading, begun = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become_worker(message["fork"], descriptors, [reading, *self._open_here()], begun)
        for descriptor in (*descriptors, begun):
            os.close(descriptor)
        os.read(reading, 1)  # until it has a session, which the owner's signals go to
        os.close(reading)
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
        self._say({"forked": pid})

    def _report(self, watched: int, pid: int) -> None:
        """Report how a worker ended; its process number is reserved until it is released."""
        self._selector.unregister(watched)
        os.close(watched)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        exited = ended.si_code == os.CLD_EXITED
        self._say({"ended": pid, "code": ended.si_status if exited else -ended.si_status})

    def _say(self, message: dict[str, int]) -> None:
        self._owner.send(json.dumps(message).encode())

    def _open_here(self) -> list[int]:
        """Descriptors that no worker may have."""
        return [key.fd for key in self._selector.get_map().values()]


def _become_worker(
    environment: dict[str, str], descriptors: list[int], not_ours: list[int], begun: int
) -> NoReturn:
    """Turn this process, just forked, into a worker; close ``begun`` when it is one."""
    try:
        os.setsid()
        for standard, descriptor in enumerate(descriptors):
            os.dup2(descriptor, standard)
        for descriptor in (*descriptors, *not_ours, begun):
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(environment)
        from kdcal_core.jobs import worker

        worker.main()
    except BaseException:  # after any error it must not run the parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def main() -> None:
    """Import the modules, then fork workers until the owner ends."""
    with socket.socket(fileno=os.dup(0)) as owner:
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for module in sys.argv[1:]:
            import_module(module)
        gc.collect()
        gc.freeze()  # so that a collection in a worker does not copy the shared memory
        with contextlib.suppress(BrokenPipeError):  # the owner has ended meanwhile
            owner.send(json.dumps({"ready": 1}).encode())
        _Children(owner).serve()


if __name__ == "__main__":
    main()
