"""Messages about audits: kept with their entry, signed, sent at least once, to nobody else."""

from __future__ import annotations

import ipaddress
import json
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from audit_people import ME
from audit_place import Place
from audit_words import said
from notify_servers import Mails, Receiver, certificate, mail_server, receiver
from standardwebhooks.webhooks import Webhook
from urllib3.util import connection

from kdcal_core.audit import (
    AuditApproved,
    AuditConfig,
    AuditContent,
    AuditDrafted,
    AuditRejected,
    AuditSubmitted,
    AuditSuperseded,
    Commented,
    Delivery,
    FindingOpened,
    Gate,
    Outbox,
    Record,
    deliver_before_exit,
    deliver_due,
    deliver_in_background,
    notify,
    webhook,
)
from kdcal_core.audit.content import failures
from kdcal_core.audit.mail import send_mail
from kdcal_core.audit.notices import Notice, mail_subject, mail_text
from kdcal_core.audit.outbox import LEASE_SECONDS
from kdcal_core.audit.sending import Undelivered
from kdcal_core.errors import InputError
from kdcal_core.review import NamedFiles

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHECKS = ["KC001 Calibration error: fail. 0.1 (0.08 to 0.12).", "KC002 Slope: not enough evidence."]
DRAFTED = AuditDrafted(
    audit="a1",
    title="Q3",
    content="0" * 64,
    verdict="fail",
    headline="The model fails 1 of 2 checks.",
    model="m",
    rows="r",
    n=1204,
    limits={},
)
FOREVER = 10 * 24 * 3600.0  # longer than any wait between tries


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = time.time()

    def __call__(self) -> float:
        return self.at


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test connect to another machine by mistake."""
    real = connection.create_connection

    def connect(address: tuple[str, int], *rest: Any, **more: Any) -> socket.socket:
        assert ipaddress.ip_address(address[0]).is_loopback, address
        return real(address, *rest, **more)

    monkeypatch.setattr(connection, "create_connection", connect)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver on this machine, to which messages go."""
    with receiver() as found:
        monkeypatch.setenv("KDCAL_WEBHOOK_URL", found.url)
        monkeypatch.setenv("KDCAL_WEBHOOK_SECRET", SECRET)
        monkeypatch.setenv("KDCAL_WEBHOOK_PRIVATE", "1")
        yield found


@pytest.fixture
def post_box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mails]:
    """A mail server on this machine, to which messages go."""
    with mail_server() as found:
        monkeypatch.setenv("KDCAL_SMTP_URL", f"smtp+plain://127.0.0.1:{found.port}")
        monkeypatch.setenv("KDCAL_MAIL_FROM", "kdcal <kdcal@example.org>")
        monkeypatch.setenv("KDCAL_MAIL_TO", "ann@example.org, Ben <ben@example.org>")
        yield found


def draft(record: Record, event: AuditDrafted = DRAFTED, checks: list[str] = CHECKS) -> str:
    """A project with an audit; its id."""
    known = record.named("Credit risk")
    project = (known or record.create("Credit risk", ME)).id
    record.write(project, event, ME, checks=checks)
    return project


def waiting(record: Record) -> list[tuple[str, int, bool]]:
    messages = Outbox(record.database).messages()
    return [(one.channel, one.tries, one.given_up) for one in messages]


def test_people_are_told_of_every_step(record: Record, hook: Receiver) -> None:
    project = draft(record)
    draft(record, replace(DRAFTED, audit="a2", title="Q4"))
    for event in (
        FindingOpened("a1", "f1", "Over-confident", "high"),
        Commented("a1", "nobody is told of comments"),
        *(
            AuditSubmitted("a1"),
            AuditApproved("a1", "Good enough."),
            AuditSubmitted("a2"),
            AuditApproved("a2", "Good enough."),
        ),
        AuditSuperseded("a1", "a2"),
    ):
        record.write(project, event, ME)
    draft(record, replace(DRAFTED, audit="a3"))
    record.write(project, AuditSubmitted("a3"), ME)
    record.write(project, AuditRejected("a3", "No."), ME)
    assert deliver_due(record) == Delivery(sent=11)
    told = [
        (one.said["type"], one.said["data"]["title"], one.said["data"]["state"])
        for one in hook.received
    ]
    assert told == [
        ("audit.drafted", "Q3", "draft"),
        ("audit.drafted", "Q4", "draft"),
        ("finding.opened", "Q3", "draft"),
        ("audit.submitted", "Q3", "submitted"),
        ("audit.approved", "Q3", "approved"),
        ("audit.submitted", "Q4", "submitted"),
        ("audit.approved", "Q4", "approved"),
        ("audit.superseded", "Q3", "superseded"),
        ("audit.drafted", "Q3", "draft"),
        ("audit.submitted", "Q3", "submitted"),
        ("audit.rejected", "Q3", "rejected"),
    ]
    assert hook.received[2].said["data"]["finding"] == {
        "title": "Over-confident",
        "severity": "high",
    }
    assert waiting(record) == []


def test_the_receiver_verifies_what_was_sent(record: Record, hook: Receiver) -> None:
    draft(record)
    deliver_due(record)
    (got,) = hook.received
    said = Webhook(SECRET).verify(got.body, got.headers)
    assert said["data"] == {
        "project": "Credit risk",
        "audit": "a1",
        "title": "Q3",
        "state": "draft",
        "verdict": "fail",
        "headline": "The model fails 1 of 2 checks.",
        "checks": CHECKS,
        "finding": None,
        "entry": 2,
    }
    assert got.path == "/in/path-of-many-secrets?key=more"
    assert got.headers["host"] == f"127.0.0.1:{hook.port}"
    assert got.headers["content-type"] == "application/json"
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(SECRET).verify(got.body.replace(b"fail", b"pass"), got.headers)


def test_checks_are_those_of_the_content(
    record: Record, hook: Receiver, content: AuditContent
) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    record.write(project.id, AuditSubmitted(audit.id), ME)
    record.delete_files(project.id, (audit.id,), "a test", ME)
    record.write(project.id, AuditApproved(audit.id, "Good enough."), ME)
    deliver_due(record)
    said = [one.said["data"]["checks"] for one in hook.received]
    assert said == [failures(content), failures(content), []]


def test_nothing_is_kept_where_nothing_is_configured(record: Record) -> None:
    draft(record)
    assert waiting(record) == []
    assert deliver_due(record) == Delivery()


def test_a_message_is_kept_with_its_entry_or_not_at_all(
    record: Record, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = draft(record)
    with pytest.raises(InputError, match="Only an audit that is submitted"):
        record.write(project, AuditApproved("a1", "Good enough."), ME)
    assert waiting(record) == [("webhook", 0, False)]
    used = Outbox(record.database).messages()[0].id
    monkeypatch.setattr(notify, "new_message_id", lambda: used)
    before = len(record.database.read(project))
    with pytest.raises(InputError, match="refuses"):
        record.write(project, AuditSubmitted("a1"), ME)
    assert len(record.database.read(project)) == before
    assert record.project(project).audits["a1"].state == "draft"


def test_a_failed_try_is_repeated_with_the_same_identifier(record: Record, hook: Receiver) -> None:
    clock = Clock()
    draft(record)
    hook.answers = [500, 429]
    assert deliver_due(record, now=clock) == Delivery(failed=1)
    (message,) = Outbox(record.database).messages()
    assert message.said == "The receiver answered 500"
    assert deliver_due(record, now=clock) == Delivery()
    clock.at += 31
    assert deliver_due(record, now=clock) == Delivery(failed=1)
    clock.at += 31
    assert deliver_due(record, now=clock) == Delivery()  # the waits grow
    clock.at += 120
    assert deliver_due(record, now=clock) == Delivery(sent=1)
    assert len({one.headers["webhook-id"] for one in hook.received}) == 1
    assert len({one.body for one in hook.received}) == 1
    for one in hook.received:
        Webhook(SECRET).verify(one.body, one.headers)


def test_a_message_is_given_up_and_tried_again_when_asked(
    record: Record, hook: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    draft(record)
    hook.answers = [503] * notify.MOST_TRIES
    found = []
    for _ in range(notify.MOST_TRIES + 3):
        found.append(deliver_due(record, now=clock))
        clock.at += FOREVER
    assert len(hook.received) == notify.MOST_TRIES
    assert found[notify.MOST_TRIES - 1] == Delivery(given_up=1)
    assert "given up: The receiver answered 503" in caplog.text
    assert waiting(record) == [("webhook", notify.MOST_TRIES, True)]
    outbox = Outbox(record.database)
    assert outbox.begin_again(("webhook",), clock()) == 1
    assert deliver_due(record, now=clock) == Delivery(sent=1)
    assert waiting(record) == []


def test_a_receiver_that_is_gone_is_not_asked_again(record: Record, hook: Receiver) -> None:
    draft(record)
    hook.answers = [410]
    assert deliver_due(record) == Delivery(given_up=1)


def test_one_message_that_fails_does_not_keep_the_others(record: Record, hook: Receiver) -> None:
    project = draft(record)
    record.write(project, AuditSubmitted("a1"), ME)
    hook.answers = [500]
    assert deliver_due(record) == Delivery(sent=1, failed=1)


def test_both_channels_have_their_own_tries(
    record: Record, hook: Receiver, post_box: Mails
) -> None:
    draft(record)
    hook.answers = [500]
    assert deliver_due(record) == Delivery(sent=1, failed=1)
    assert waiting(record) == [("webhook", 1, False)]
    assert len(post_box.received) == 1


def test_what_is_not_configured_here_is_left_to_others(
    record: Record, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft(record)
    monkeypatch.delenv("KDCAL_WEBHOOK_URL")
    monkeypatch.setenv("KDCAL_SMTP_URL", "smtp://127.0.0.1:1")
    assert deliver_due(record) == Delivery()
    assert waiting(record) == [("webhook", 0, False)]


def test_two_that_deliver_at_once_send_each_message_once(place: Place, hook: Receiver) -> None:
    first, second = place.open(), place.open()
    project = draft(first)
    for at in range(11):
        first.write(project, FindingOpened("a1", f"f{at}", f"Finding {at}", "low"), ME)
    done: list[Delivery] = []
    threads = [
        threading.Thread(target=lambda one=one: done.append(deliver_due(one)))
        for one in (first, second, first)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sum(one.sent for one in done) == 12
    assert len({one.headers["webhook-id"] for one in hook.received}) == len(hook.received) == 12
    second.database.close()
    first.database.close()


def _deliver_elsewhere(place: Place) -> None:
    deliver_due(place.open())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that begin as copies")
def test_a_process_that_dies_while_it_sends_loses_nothing(place: Place, hook: Receiver) -> None:
    record = place.open()
    draft(record)
    asked = threading.Event()
    release = threading.Event()

    def hang(_: Any) -> None:
        asked.set()
        release.wait(60)

    hook.answers = [hang]
    other = multiprocessing.get_context("fork").Process(target=_deliver_elsewhere, args=(place,))
    other.start()
    assert asked.wait(60)
    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    release.set()
    clock = Clock()
    assert deliver_due(record, now=clock) == Delivery()  # it may still be alive
    clock.at += LEASE_SECONDS + 1
    assert deliver_due(record, now=clock) == Delivery(sent=1)
    assert len({one.headers["webhook-id"] for one in hook.received}) == 1
    record.database.close()


def test_processes_that_die_at_every_try_end_too(record: Record, hook: Receiver) -> None:
    draft(record)
    outbox, clock = Outbox(record.database), Clock()
    for _ in range(notify.MOST_TRIES):
        assert outbox.take(("webhook",), clock()) is not None
        clock.at += LEASE_SECONDS + 1
    assert deliver_due(record, now=clock) == Delivery(given_up=1)
    assert hook.received == []


def test_who_is_late_does_not_disturb_who_tries_now(record: Record, hook: Receiver) -> None:
    draft(record)
    outbox, clock = Outbox(record.database), Clock()
    late = outbox.take(("webhook",), clock())
    clock.at += LEASE_SECONDS + 1
    current = outbox.take(("webhook",), clock())
    assert late is not None
    assert current is not None
    outbox.try_later(late, 0, "late")
    outbox.give_up(late, "late")
    assert outbox.take(("webhook",), clock()) is None
    assert waiting(record) == [("webhook", 2, False)]


def test_messages_of_a_newer_kdcal_wait(
    place: Place, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = place.open()
    monkeypatch.setattr(notify, "notice_text", lambda notice: '{"kind": "audit.moved"}')
    draft(record)
    assert deliver_due(record) == Delivery(failed=1)
    assert "newer kdcal" in Outbox(record.database).messages()[0].said
    record.database.close()


def test_the_background_sends_and_tries_again(
    place: Place, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = place.open()
    monkeypatch.setattr(notify, "_WAITS", (1,) * 6)
    draft(record)
    hook.answers = [500]
    began = time.monotonic()
    deliver_in_background(record)
    deliver_in_background(record)
    assert time.monotonic() - began < 5
    _until(lambda: waiting(record) == [])
    assert len(hook.received) == 2
    draft(record, replace(DRAFTED, audit="a2"))
    deliver_in_background(record)
    _until(lambda: len(hook.received) == 3 and waiting(record) == [])
    _until(lambda: not notify._postmen[record.database.place]._runs)
    record.database.close()


def _until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_command_does_not_wait_for_a_slow_receiver(record: Record, hook: Receiver) -> None:
    draft(record)
    release = threading.Event()
    hook.answers = [lambda _: release.wait(60)]
    began = time.monotonic()
    deliver_before_exit(record, 0.5)
    assert time.monotonic() - began < 5
    assert waiting(record) == [("webhook", 1, False)]
    release.set()
    _until(lambda: not any(one.name == "kdcal-notify" for one in threading.enumerate()))


# The webhook alone, without a database


def post(url: str, *, private: bool = False, secret: str = SECRET) -> None:
    webhook.post(url, secret, "msg_1", b"{}", private=private)


def refused(url: str, *, private: bool = False, secret: str = SECRET) -> str:
    with pytest.raises(Undelivered) as caught:
        post(url, private=private, secret=secret)
    assert "hidden" not in caught.value.words
    return caught.value.words


def test_redirects_are_not_followed(hook: Receiver) -> None:
    with receiver() as other:

        def redirect(handler: Any) -> None:
            handler.send_response(302)
            handler.send_header("Location", other.url)
            handler.end_headers()

        hook.answers = [redirect, 301, 307, 308]
        for _ in range(4):
            assert "redirects are not followed" in refused(hook.url, private=True)
        assert other.received == []


def test_no_body_is_read(hook: Receiver) -> None:
    sent = []

    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(1 << 40))
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 65536)
            sent.append(65536)

    hook.answers = [endless]
    post(hook.url, private=True)
    assert sum(sent) < 1 << 26  # what the system holds ready for us


def test_a_receiver_of_one_byte_a_while_is_left(
    hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_MOST_SECONDS", 0.5)

    def slow(handler: Any) -> None:
        for _ in range(600):
            handler.wfile.write(b"H")
            handler.wfile.flush()
            time.sleep(0.1)

    hook.answers = [slow]
    began = time.monotonic()
    assert "did not answer" in refused(hook.url, private=True)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1"),
        *("240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254"),
        *("192.88.99.1", "3fff::1", "2001::1", "fec0::1", "64:ff9b:1::1", "198.51.100.1"),
        *("::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::a9fe:a9fe", "ff02::1", "2001:db8::1"),
    ],
)
def test_addresses_that_are_not_public_are_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _known_as(monkeypatch, ["93.184.216.34", address])
    assert f"{address}, which is not public" in refused("https://hooks.example.org/hidden")
    assert asked == ["hooks.example.org"]
    literal = f"[{address}]" if ":" in address else address
    assert "which is not public" in refused(f"https://{literal}/hidden")


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "017700000001", "localhost"])
def test_other_spellings_of_this_machine_are_refused(host: str) -> None:
    said = refused(f"https://{host}/hidden")
    assert "not public" in said or "is not known" in said


def _known_as(
    monkeypatch: pytest.MonkeyPatch, *answers: list[str], host: str = "hooks.example.org"
) -> list[str]:
    """Let a host have the first of these addresses when asked, then the others; who was asked."""
    asked: list[str] = []
    left = list(answers)
    real = socket.getaddrinfo

    def resolve(name: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if name != host:
            ipaddress.ip_address(name)  # no other name is asked for
            return real(name, port, *rest, **more)
        asked.append(name)
        return [
            (
                socket.AF_INET6 if ":" in one else socket.AF_INET,
                *(socket.SOCK_STREAM, 6, ""),
                (one, port),
            )
            for one in left.pop(0)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def test_a_host_is_asked_once_and_that_address_is_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = _known_as(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    connected: list[str] = []

    def connect(address: tuple[str, int], *_: Any, **__: Any) -> Any:
        connected.append(address[0])
        raise OSError("no network in a test")

    monkeypatch.setattr(connection, "create_connection", connect)
    assert "cannot be reached" in refused("https://hooks.example.org/hidden")
    assert (asked, connected) == (["hooks.example.org"], ["93.184.216.34"])


def test_the_next_address_is_tried_where_one_is_closed(
    hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _known_as(monkeypatch, ["127.0.0.2", "127.0.0.1"])
    post(f"http://hooks.example.org:{hook.port}/in", private=True)
    assert asked == ["hooks.example.org"]
    assert hook.received[0].headers["host"] == f"hooks.example.org:{hook.port}"


def test_tls_is_of_the_host_s_name_at_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, context = certificate(tmp_path, "hooks.example.org")
    _known_as(monkeypatch, *[["127.0.0.1"]] * 3)
    with receiver(context) as found:
        url = f"https://hooks.example.org:{found.port}/in"
        assert "certificate verify failed" in refused(url, private=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        post(url, private=True)
        assert len(found.received) == 1
        # nor does it help that the address leads to a machine with a certificate of its own
        _known_as(monkeypatch, ["127.0.0.1"], host="other.example.org")
        said = refused(url.replace("hooks", "other"), private=True)
        assert "match" in said
        assert len(found.received) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://hooks.example.org/hidden", "only https:// is allowed"),
        ("ftp://hooks.example.org/hidden", "begins with https://"),
        ("file:///etc/hidden", "begins with https://"),
        ("hooks", "begins with https://"),
        ("https://ann:hidden@hooks.example.org/", "holds a user"),
        ("https://[::1/hidden", "no address"),
        ("https://hooks.example.org:99999/hidden", "no address"),
        ("https://no-such-host.invalid/hidden", "is not known"),
    ],
)
def test_addresses_that_are_none_are_refused_in_words(url: str, said: str) -> None:
    assert said in refused(url)


@pytest.mark.parametrize("secret", ["", "whsec_", "hello", "x" * 40 + "!", "c2VjcmV0", "whsec_ü"])
def test_a_weak_secret_is_refused(secret: str, hook: Receiver) -> None:
    with pytest.raises(Undelivered, match="is not base64 of 24 to 64 bytes"):
        post(hook.url, private=True, secret=secret)
    assert hook.received == []


# Mail alone


def send(
    port: int, scheme: str = "smtp+plain", login: str = "", to: str = "ann@example.org"
) -> None:
    send_mail(
        f"{scheme}://{login}127.0.0.1:{port}",
        "kdcal@example.org",
        "ann@example.org",
        subject="Fail: Q3",
        text="Text",
        message="msg_1",
    )


def test_a_mail_says_the_verdict_and_the_checks(record: Record, post_box: Mails) -> None:
    draft(record)
    assert deliver_due(record) == Delivery(sent=1)
    (mail,) = post_box.received
    assert mail["subject"] == "Fail: Q3 (drafted)"
    assert mail["to"] == "ann@example.org, Ben <ben@example.org>"
    assert mail["auto-submitted"] == "auto-generated"
    assert post_box.envelopes == [("kdcal@example.org", ("ann@example.org", "ben@example.org"))]
    text = mail.get_content()
    assert mail.get_content_type() == "text/plain"
    assert "The model fails 1 of 2 checks." in text
    assert "2 checks fail or lack evidence:" in text
    assert all(f"- {one}" in text for one in CHECKS)
    assert "entry 2 of the project's record" in text


def test_starttls_is_used_where_offered_and_else_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, context = certificate(tmp_path, "127.0.0.1")
    with mail_server(context) as mails:
        with pytest.raises(Undelivered, match="certificate verify failed"):
            send(mails.port, "smtp")
        with pytest.raises(Undelivered, match="certificate verify failed"):
            send(mails.port, "smtp+plain")
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        send(mails.port, "smtp")
        send(mails.port, "smtp+plain")
        assert mails.secure == [True, True]
    with mail_server() as mails:
        with pytest.raises(Undelivered, match="does not offer STARTTLS"):
            send(mails.port, "smtp")
        send(mails.port, "smtp+plain")
        assert mails.secure == [False]


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_tls_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted, context = certificate(tmp_path, "127.0.0.1")
    with mail_server(context, at_once=True, login=("ann", "p@ss word")) as mails:
        with pytest.raises(Undelivered, match="certificate verify failed"):
            send(mails.port, "smtps")
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        send(mails.port, "smtps", "ann:p%40ss%20word@")
        assert len(mails.received) == 1
        for login in ("ann:wrong-password@", "ben:p%40ss%20word@"):
            with pytest.raises(Undelivered, match="the user or the password is refused") as caught:
                send(mails.port, "smtps", login)
            assert "wrong-password" not in caught.value.words
            assert "p@ss" not in caught.value.words


def test_a_mail_for_some_is_not_sent_twice(record: Record, post_box: Mails) -> None:
    post_box.refuse = ("ben@example.org",)
    draft(record)
    assert deliver_due(record) == Delivery(given_up=1)
    assert len(post_box.received) == 1
    assert "refused ben@example.org" in Outbox(record.database).messages()[0].said
    post_box.refuse = ("ann@example.org", "ben@example.org")
    record.write(record.projects()[0].id, AuditSubmitted("a1"), ME)
    assert deliver_due(record) == Delivery(failed=1)


@pytest.mark.parametrize(
    ("url", "to", "said"),
    [
        ("http://mail", "ann@example.org", "is not like smtps://"),
        ("smtp://", "ann@example.org", "is not like smtps://"),
        ("smtp://ann:secret@mail:x", "ann@example.org", "is not like smtps://"),
        ("smtp+plain://127.0.0.1:1", "ann", "KDCAL_MAIL_TO is not a list"),
        ("smtp+plain://127.0.0.1:1", "", "KDCAL_MAIL_TO is not a list"),
        ("smtp+plain://127.0.0.1:1", "a@b.org\r\nBcc: eve@b.org", "KDCAL_MAIL_TO is not a list"),
        ("smtp+plain://ann:secret@127.0.0.1:1", "ann@example.org", "refused"),
    ],
)
def test_mail_that_cannot_be_sent_says_why(url: str, to: str, said: str) -> None:
    with pytest.raises(Undelivered) as caught:
        send_mail(url, "kdcal@example.org", to, subject="S", text="T", message="msg_1")
    assert said in caught.value.words
    assert "secret" not in caught.value.words


HOSTILE = (
    "Q3\r\nBcc: eve@example.org",
    "Q3\nContent-Type: text/html\n\n<script>",
    "\U0001f98a fox \u202egnp.exe",
    "=?utf-8?q?Bcc=3A?=",
    "\x00\x1b[31m\x85\u2028Subject: other",
    "x" * 10_000,
    "\U0001f98a" * 10_000,
    ".\r\n.\r\nMAIL FROM:<eve@example.org>",
)


@pytest.mark.parametrize("title", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_titles_arrive_as_words(
    place: Place, hook: Receiver, post_box: Mails, title: str
) -> None:
    record = place.open()
    event = replace(DRAFTED, title=title[:200], headline=title)
    project = draft(record, event, [title] * 3)
    record.write(project, FindingOpened("a1", "f1", title[:200], "low"), ME, checks=[title] * 200)
    assert deliver_due(record) == Delivery(sent=4)
    for mail in post_box.received:
        assert set(mail.keys()) == {
            *("Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "MIME-Version"),
            *("Content-Type", "Content-Transfer-Encoding"),
        }
        assert len(mail["subject"]) < 300
        assert mail["subject"].startswith("Fail: ")
        assert mail.get_content_type() == "text/plain"
    assert {to for _, to in post_box.envelopes} == {("ann@example.org", "ben@example.org")}
    for got in hook.received:
        said = Webhook(SECRET).verify(got.body, got.headers)["data"]
        assert len(got.body) < 400_000
        assert len(said["title"]) <= 200
        assert len(said["headline"]) <= 600
        texts = (said["title"], said["headline"], *said["checks"])
        assert all(one.isprintable() for one in texts)
    assert hook.received[1].said["data"]["checks"][-1] == "and 100 more."
    record.database.close()


def test_words_hold_no_more_than_a_subject_s_length() -> None:
    notice = Notice("audit.drafted", "2026", "p", "\U0001f98a" * 300, "a", 1, "draft", "fail", "h")
    assert len(mail_subject(notice)) < 200
    assert "\n" not in mail_subject(notice)
    assert "No check fails" in mail_text(notice)


# The command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    return Record()


def test_the_command_tells_what_happened_to_a_test_message(
    hook: Receiver, post_box: Mails, home: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(capsys, "notify", "--test")
    assert found.splitlines() == [
        "By webhook: the test message was accepted.",
        "By mail: the test message was accepted.",
    ]
    assert hook.received[0].said["type"] == "test"
    hook.answers = [500]
    found = said(capsys, "notify", "--test", code=1)
    assert "By webhook: the test message was not sent. The receiver answered 500." in found
    tests = json.loads(said(capsys, "notify", "--test", "--json"))["tests"]
    assert tests[0] == {"channel": "webhook", "accepted": True, "why": ""}


def test_the_command_sends_what_is_due_and_lists_failures(
    hook: Receiver, home: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    draft(home)
    hook.answers = [500]
    found = said(capsys, "notify", code=1)
    assert "Sent 0 messages." in found
    assert "The receiver answered 500" in found
    assert "Credit risk" in found
    hook.answers = [410]
    found = said(capsys, "notify", "--again", code=1)
    assert "given up" in found
    found = said(capsys, "notify", code=1)
    assert "'kdcal audit notify --again'" in found
    (left,) = json.loads(said(capsys, "notify", "--json", code=1))["left"]
    assert (left["project"], left["channel"], left["due"]) == ("Credit risk", "webhook", None)
    assert "(410)" in left["why"]
    assert said(capsys, "notify", "--again") == "Sent 1 message.\n"
    assert said(capsys, "notify") == "Sent 0 messages.\n"


def test_a_step_of_the_command_line_tells_people(
    hook: Receiver, home: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    draft(home)
    said(capsys, "submit", "a1")
    assert [one.said["type"] for one in hook.received] == ["audit.drafted", "audit.submitted"]


def test_a_gate_tells_people_and_keeps_its_exit_code(
    hook: Receiver,
    home: Record,
    content: AuditContent,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gate(*_: Any, **__: Any) -> Gate:
        project = home.named("Credit risk") or home.create("Credit risk", ME)
        return Gate(content, 3, project.id, home.draft(project.id, content, ME).id)

    monkeypatch.setattr("kdcal_core.audit.run_gate", gate)
    monkeypatch.setattr(
        "kdcal_core.audit.read_config", lambda path: AuditConfig("Q3", NamedFiles())
    )
    said(capsys, "run", "--config", "audit.toml", "--json", code=3)
    assert [one.said["data"]["headline"] for one in hook.received] == [content.headline]
    monkeypatch.setenv("KDCAL_DATABASE_URL", "postgresql://127.0.0.1:1/audits")
    said(capsys, "run", "--config", "audit.toml", "--json", code=3)


def test_the_command_says_what_is_not_configured(
    home: Record, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "KDCAL_WEBHOOK_URL" in said(capsys, "notify", code=2)
    assert "KDCAL_SMTP_URL" in said(capsys, "notify", "--test", code=2)
    monkeypatch.setenv("KDCAL_WEBHOOK_URL", "https://hooks.example.org/in")
    found = said(capsys, "notify", "--test", code=1)
    assert "not sent. KDCAL_WEBHOOK_SECRET is not set." in found


def test_an_event_of_no_audit_is_told_of_nobody(record: Record, hook: Receiver) -> None:
    record.create("Credit risk", ME)
    assert waiting(record) == []
