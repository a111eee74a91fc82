"""What every way to send a message needs: its error, and an end to its waiting."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator


class Undelivered(Exception):  # noqa: N818 (it is what happened to the message)
    """A message was not delivered.

    Parameters
    ----------
    words : str
        Why, in words without a password or a secret address.
    final : bool
        Whether another try would not help.
    """

    def __init__(self, words: str, *, final: bool = False) -> None:
        super().__init__(words)
        self.words, self.final = words, final


@contextlib.contextmanager
def ended_after(seconds: float, held: Callable[[], socket.socket | None]) -> Iterator[None]:
    """End a connection that is open for longer, so that whoever waits for it goes on.

    Timeouts of a socket begin anew with every byte: a peer that sends one now and then would keep
    us for ever.

    Parameters
    ----------
    held : callable
        Returns the connection's socket; None before there is one.
    """

    def end() -> None:
        connected = held()
        if connected is not None:
            with contextlib.suppress(OSError):
                # the plain socket's: that of TLS would send what is written next in clear
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
