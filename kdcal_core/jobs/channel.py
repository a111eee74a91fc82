"""What the worker says, read with suspicion: after a hostile file it may say anything."""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import IO, Any

MAX_BYTES = 32 * 1024**2  # all that one worker may say
_TAIL_LINES = 40
_MAX_NOTE = 200


class Malformed(Exception):  # noqa: N818
    """The worker said something that is not an answer."""


def parse(line: bytes) -> dict[str, Any]:
    """One line from the worker as a checked message.

    Returns
    -------
    dict
        Exactly one of the keys ``progress`` (with ``note``), ``result``, ``input_error``,
        ``cancelled`` or ``error``.

    Raises
    ------
    Malformed
        For anything else, strict JSON numbers included: no NaN, no infinity.

    Examples
    --------
    >>> parse(b'{"progress": 2.0}')
    {'progress': 1.0, 'note': ''}
    >>> parse(b'[1]')
    Traceback (most recent call last):
    kdcal_core.jobs.channel.Malformed: an answer of no known kind
    """
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed("an answer that is not JSON") from error
    match message:
        case {"progress": int() | float() as share}:
            note = str(message.get("note", ""))[:_MAX_NOTE]
            # an integer may be too large for a float: clamp first
            return {"progress": float(min(1, max(0, share))), "note": note}
        case {"result": result}:
            return {"result": result}
        case {"input_error": dict() as fields}:
            return {"input_error": _error_fields(fields)}
        case {"cancelled": True}:
            return {"cancelled": True}
        case {"error": str() as text}:
            return {"error": text}
    raise Malformed("an answer of no known kind")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _error_fields(error: dict[str, Any]) -> dict[str, Any]:
    what, fix = error.get("what"), error.get("fix")
    if not isinstance(what, str) or not isinstance(fix, str):
        raise Malformed("an error without words")
    fields: dict[str, Any] = {"what": what, "fix": fix}
    for key, kind in (("file", str), ("column", str), ("row", int)):
        value = error.get(key)
        if value is not None and not isinstance(value, kind):
            raise Malformed(f"an error with a wrong {key}")
        fields[key] = value
    return fields


class Listener:
    """Listens to a worker in two threads; keeps its newest progress, its answer, its last words.

    Memory is bounded whatever the worker does: progress overwrites progress, and a worker that
    says more than `MAX_BYTES` is cut off.
    """

    def __init__(self, answers: IO[bytes], errors: IO[bytes]) -> None:
        self.answer: dict[str, Any] | None = None
        self.fault = ""
        self._progress: dict[str, Any] | None = None
        self._news = threading.Condition()
        self._ended = False
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._threads = [
            threading.Thread(target=self._hear_answers, args=(answers,), daemon=True),
            threading.Thread(target=self._hear_errors, args=(errors,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come: the answer is here, or the pipe is closed."""
        return self._ended

    def wait(self, seconds: float) -> None:
        """Return when there is news, after ``seconds`` at the latest."""
        with self._news:
            if self._progress is None and not self._ended:
                self._news.wait(seconds)

    def take_progress(self) -> tuple[float, str] | None:
        """The newest progress not yet taken."""
        with self._news:
            message, self._progress = self._progress, None
        return (message["progress"], message["note"]) if message else None

    def last_words(self) -> str:
        """The end of what the ended worker wrote to standard output and standard error."""
        for thread in self._threads:
            thread.join(1.0)
        return b"".join(self._tail).decode(errors="replace")

    def _hear_answers(self, stream: IO[bytes]) -> None:
        try:
            self._read_messages(stream)
        except Malformed as fault:
            self.fault = str(fault)
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()

    def _read_messages(self, stream: IO[bytes]) -> None:
        left = MAX_BYTES
        with stream:
            while line := stream.readline(left + 1):
                left -= len(line)
                if left < 0:
                    raise Malformed("a reply that is too large")
                message = parse(line)
                if "progress" not in message:
                    self.answer = message
                    return
                with self._news:
                    self._progress = message
                    self._news.notify_all()

    def _hear_errors(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(4096):
                self._tail.append(line)
