"""Tell people what happens to audits, by a webhook and by mail.

`Record.write` stores a message for every channel that the environment configures; what is here
sends them. An audit never waits for that: a message that cannot be sent stays in the outbox and is
tried again, less and less often, until it is given up.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdcal_core.audit import mail, webhook
from kdcal_core.audit.notices import (
    Notice,
    mail_subject,
    mail_text,
    notice_text,
    read_notice,
    trial_notice,
    webhook_body,
)
from kdcal_core.audit.outbox import Channel, Message, Outbox, new_message_id
from kdcal_core.audit.sending import Undelivered
from kdcal_core.errors import InputError
from kdcal_core.text import printable

if TYPE_CHECKING:
    from kdcal_core.audit.record import Record

_log = logging.getLogger(__name__)

_VARIABLES: dict[Channel, str] = {"webhook": webhook.URL, "mail": mail.URL}
_WAITS = (30, 120, 600, 3_600, 6 * 3_600, 24 * 3_600)
"""Seconds before the second try, the third, ..."""
MOST_TRIES = len(_WAITS) + 1
_LONGEST_SLEEP, _AFTER_ERROR = 3_600.0, 60.0  # seconds


def configured_channels() -> tuple[Channel, ...]:
    """The ways of sending that this process's environment names."""
    return tuple(one for one, variable in _VARIABLES.items() if os.environ.get(variable))


def messages_of(project: str, notice: Notice) -> tuple[Message, ...]:
    """A message for every channel that is configured."""
    text = notice_text(notice)
    return tuple(
        Message(new_message_id(), project, notice.number, channel, text)
        for channel in configured_channels()
    )


@dataclass(frozen=True)
class Delivery:
    """What a delivery did.

    Attributes
    ----------
    sent : int
        Messages that arrived.
    failed : int
        Tries that failed and will be repeated.
    given_up : int
        Messages that will not be tried again.
    """

    sent: int = 0
    failed: int = 0
    given_up: int = 0


def deliver_due(
    record: Record,
    *,
    seconds: float | None = None,
    now: Callable[[], float] = time.time,
) -> Delivery:
    """Send what is due, one message after the other.

    Only messages of channels that are configured here are touched.

    Parameters
    ----------
    seconds : float, optional
        After this time no further try begins.
    now : callable
        Returns the seconds since 1970.

    Raises
    ------
    InputError
        If the database cannot be used. That a message cannot be sent is no error.
    """
    ends = None if seconds is None else time.monotonic() + seconds
    outbox, channels = Outbox(record.database), configured_channels()
    sent = failed = given_up = 0
    while channels and (ends is None or time.monotonic() < ends):
        message = outbox.take(channels, now())
        if message is None:
            break
        trouble = _trouble(message)
        if trouble is None:
            outbox.sent(message)
            sent += 1
        elif trouble.final or message.tries >= MOST_TRIES:
            outbox.give_up(message, trouble.words)
            given_up += 1
            _log.warning("A message by %s is given up: %s", message.channel, trouble.words)
        else:
            outbox.try_later(message, now() + _WAITS[message.tries - 1], trouble.words)
            failed += 1
    return Delivery(sent, failed, given_up)


def _trouble(message: Message) -> Undelivered | None:
    """Why a message could not be sent; None if it arrived."""
    if message.tries > MOST_TRIES:
        return Undelivered("The process that sent it ended before it had an answer", final=True)
    try:
        send(message.channel, read_notice(message.notice), message.id)
    except Undelivered as error:
        return error
    except InputError as error:
        return Undelivered(printable(error, 300))
    except Exception as error:
        # a fault of ours must not keep the other messages from being sent
        _log.exception("A message by %s could not be sent", message.channel)
        return Undelivered(f"Unexpected error: {type(error).__name__}")
    return None


def send(channel: Channel, notice: Notice, message: str) -> None:
    """Send a notice now.

    Parameters
    ----------
    message : str
        The message's identifier.

    Raises
    ------
    Undelivered
        If it did not arrive.
    """
    if channel == "webhook":
        webhook.post(
            _variable(webhook.URL),
            _variable(webhook.SECRET),
            message,
            webhook_body(notice),
            private=os.environ.get(webhook.PRIVATE) == "1",
        )
    else:
        mail.send_mail(
            _variable(mail.URL),
            _variable(mail.FROM),
            _variable(mail.TO),
            subject=mail_subject(notice),
            text=mail_text(notice),
            message=message,
        )


def _variable(name: str) -> str:
    found = os.environ.get(name)
    if not found:
        raise Undelivered(f"{name} is not set")
    return found


def send_test(when: str) -> dict[Channel, str]:
    """Send a test message on every channel that is configured.

    Parameters
    ----------
    when : str
        The time, as of `Moment`.

    Returns
    -------
    dict of channel to str
        Why it did not arrive; empty where it did.

    Raises
    ------
    InputError
        If no channel is configured.
    """
    require_channels()
    found: dict[Channel, str] = {}
    for channel in configured_channels():
        try:
            send(channel, trial_notice(when), new_message_id())
        except Undelivered as error:
            found[channel] = error.words
        else:
            found[channel] = ""
    return found


def require_channels() -> None:
    """Refuse to go on where no channel is configured.

    Raises
    ------
    InputError
        Which names the variables.
    """
    if not configured_channels():
        raise InputError(
            "No notifications are configured",
            fix=f"Set {webhook.URL} and {webhook.SECRET}, or {mail.URL}, {mail.FROM} and "
            f"{mail.TO}; see the guide to audits.",
        )


def deliver_before_exit(record: Record, seconds: float = 10.0) -> None:
    """Send what is due before a short process ends, and wait no longer than ``seconds``.

    What is being sent then is sent again later.
    """
    if not configured_channels():
        return
    thread = threading.Thread(
        target=_deliver_quietly, args=(record, seconds), name="kdcal-notify", daemon=True
    )
    thread.start()
    thread.join(seconds)


def _deliver_quietly(record: Record, seconds: float | None) -> bool:
    """As `deliver_due`; whether the database could be used."""
    try:
        deliver_due(record, seconds=seconds)
    except InputError as error:
        _log.warning("Messages wait: %s", error)
        return False
    return True


def deliver_in_background(record: Record) -> None:
    """Send what is due, and later what must be tried again, in a thread of this process.

    Returns at once. Call it after a write, and once at the start of a server for what an earlier
    process left. There is one thread for each database; it ends when nothing waits.
    """
    if configured_channels():
        with _postmen_lock:
            postman = _postmen.setdefault(record.database.place, _Postman(record))
        postman.wake()


class _Postman:
    """A thread that sends what is due, and sleeps until the next try is."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._runs = False

    def wake(self) -> None:
        with self._lock:
            self._woken.set()
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="kdcal-notify", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._woken.clear()
            wait = self._deliver()
            with self._lock:
                if wait is None and not self._woken.is_set():
                    self._runs = False
                    return
            self._woken.wait(wait)

    def _deliver(self) -> float | None:
        """Send what is due; the seconds until more is, None where nothing waits."""
        if not _deliver_quietly(self._record, None):
            return _AFTER_ERROR
        try:
            due = Outbox(self._record.database).next_due(configured_channels())
        except InputError:
            return _AFTER_ERROR
        return None if due is None else min(max(due - time.time(), 0.5), _LONGEST_SLEEP)


_postmen: dict[str, _Postman] = {}
_postmen_lock = threading.Lock()
