"""Three people and a provider: each sees only what is theirs, and only while the sign-in lasts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from conftest import App, serving
from identity_provider import CLIENT, COOKIE, SECRET, Provider, provider

pytestmark = pytest.mark.browser

SECRETS = """\
[auth]
redirect_uri = "http://127.0.0.1:{{port}}/oauth2callback"
cookie_secret = "only for the tests of the sign-in, and long enough"
client_id = "{client}"
client_secret = "{secret}"
server_metadata_url = "{address}/.well-known/openid-configuration"
"""


@pytest.fixture(scope="module")
def identities() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture(scope="module")
def own_server(identities: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("sign_in")
    secrets = folder / "secrets.toml"
    secrets.write_text(SECRETS.format(client=CLIENT, secret=SECRET, address=identities.address))
    with serving(folder / "home", folder / "server.log", f"--secrets.files={secrets}") as address:
        yield address


@pytest.fixture
def visitor(chromium, own_server: str, identities: Provider) -> Iterator[Callable[[str], App]]:
    """A browser of somebody whom the provider knows."""
    with ExitStack() as stack:

        def arrive(name: str) -> App:
            app = App(chromium, own_server)
            stack.callback(app.close)
            app.context.add_cookies([{"name": COOKIE, "value": name, "url": identities.address}])
            return app

        yield arrive


def _button(app: App, name: str):
    return app.page.get_by_role("button", name=name, exact=True)


def _badge(app: App, word: str):
    return app.page.get_by_text(re.compile(rf"{word}$")).first


def _sign_in(app: App) -> None:
    _button(app, "Sign in").click()
    _button(app, "Sign out").wait_for(timeout=120_000)
    app.idle(120)


def _named(app: App, what: str) -> str:
    return parse_qs(urlsplit(app.page.url).query)[what][0]


def _identity(app: App) -> str:
    """The line that a person sends to an administrator."""
    app.visit("Audits")
    line = app.page.locator("[data-testid='stCode'] code")
    line.wait_for(timeout=60_000)
    return line.inner_text().strip()


def _add_member(app: App, name: str, identity: str, role: str) -> None:
    app.section("Projects")
    app.page.get_by_role("button", name="Members of ").click()
    app.page.get_by_role("textbox", name="Name of a new member").fill(name)
    line = app.page.get_by_role("textbox", name="Identity")
    line.fill(identity)
    app.page.get_by_text(f"{role}: also").click()
    _button(app, "Add the member").click()
    app.until(lambda: not line.count() or not line.input_value())  # the form is empty again
    app.idle()


def _record_an_audit(app: App) -> str:
    """Record an audit of the review whose Overview is open; its place in the address."""
    _button(app, "Record an audit").click()
    begin = _button(app, "Record the audit")
    begin.wait_for(timeout=60_000)
    app.idle()
    if (name := app.page.get_by_label("Name of the new project")).count():
        name.fill("Credit risk")
        name.press("Enter")
        app.idle()
    begin.click()
    _badge(app, "Draft").wait_for(timeout=300_000)
    app.idle(120)
    return _named(app, "audit")


def _submit(app: App) -> None:
    _button(app, "Submit").click()
    _button(app, "Submit it").click()
    _badge(app, "Submitted").wait_for(timeout=60_000)
    app.idle()


def _cannot_approve(app: App) -> None:
    _button(app, "Approve").click()
    app.page.get_by_label("Reason").fill("Right, whatever its verdict is.")
    _button(app, "Approve it").click()
    app.wait_for_text("needs the approval of a second person")
    assert _badge(app, "Submitted").is_visible()


def _record_another(app: App, review: str) -> str:
    """Record a further audit of a review; its place in the address."""
    app.open(f"overview?review={review}")
    app.wait_for_overview()
    return _record_an_audit(app)


def _work_on(app: App, audit: str) -> None:
    """Open an audit at its address, which shows it to be read, and go on to work on it."""
    app.open(f"audits?audit={audit}")
    _button(app, "Work on it").click()
    app.idle()


def _turn_to(app: App, audit: str) -> None:
    """Open another audit from the list of all, to be worked on."""
    _button(app, "All audits").click()
    row = app.page.locator(f".st-key-open_{audit.replace(':', '_')}")
    row.get_by_role("button").click()  # beside it is one that nobody sees
    app.until(lambda: audit in unquote(app.page.url))
    app.idle()


def _approve(app: App) -> None:
    _button(app, "Approve").click()
    app.page.get_by_label("Reason").fill("Right, whatever its verdict is.")
    _button(app, "Approve it").click()
    _badge(app, "Approved").wait_for(timeout=60_000)
    app.idle()


def _open_a_finding(app: App) -> None:
    app.section("Findings")
    _button(app, "Open a finding").click()
    app.page.get_by_label("What must be dealt with").fill("Recalibrate it")
    app.page.get_by_role("radio", name="High").click()
    _button(app, "Open it").click()
    app.page.locator("h3").get_by_text("Recalibrate it").wait_for(timeout=60_000)
    app.idle()


def _accept_the_finding(app: App) -> None:
    """A risk is accepted for a reason, and not without one."""
    app.section("Findings")
    _button(app, "Change Recalibrate it").click()
    app.page.get_by_role("radio", name="Risk accepted").click()
    app.idle()
    _button(app, "Save").click()
    app.wait_for_text("A finding is accepted for a reason")
    reason = app.page.get_by_label("What was done, or who decided")
    reason.fill("The committee decided.")
    reason.press("Tab")
    app.idle()
    _button(app, "Save").click()
    app.wait_for_text("The committee decided.")
    app.section("Comments")  # which closes what was opened


def _download(app: App, button: str, folder: Path) -> Path:
    made = app.page.get_by_role("button", name=button)
    made.wait_for(timeout=180_000)
    app.idle()
    with app.page.expect_download() as download:
        made.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def _asked_for_offline(chromium, report: Path) -> list[str]:
    """What a report asks for, beside itself, where there is no network."""
    context = chromium.new_context(offline=True)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator(".plot .main-svg").first.wait_for(timeout=60_000)
    context.close()
    assert asked.pop(0) == report.as_uri()
    return asked


def test_each_sees_what_is_theirs(
    visitor: Callable[[str], App], identities: Provider, chromium, tmp_path: Path
) -> None:
    ann, ben, eve = visitor("Ann"), visitor("Ben"), visitor("Eve")
    ann.open("overview")
    assert ann.page.locator("h1").inner_text() == "Sign in"
    ann.page.locator("[data-testid='stMain'] button").first.wait_for()
    assert ann.page.locator("[data-testid='stMain'] button").count() == 1
    assert ann.page.locator("[data-testid='stSidebarNav']").count() == 0
    assert ann.faults() == []
    _sign_in(ann)
    ann.visit("Audits")
    _button(ann, "Open a sample").click()
    ann.page.get_by_text("Record an audit").first.wait_for(timeout=120_000)
    ann.idle(120)
    review = _named(ann, "review")
    ann.visit("Overview")
    ann.wait_for_overview()
    audit = _record_an_audit(ann)
    _open_a_finding(ann)
    _submit(ann)
    _cannot_approve(ann)

    ben.open("audits")
    _sign_in(ben)
    identity = _identity(ben)
    assert identity == f"{identities.address} subject-of-Ben"
    _button(ann, "All audits").click()
    ann.page.locator("h2").get_by_text("1 audit in 1 project").wait_for(timeout=60_000)
    ann.idle()
    _add_member(ann, "Ben", identity, "Approver")
    assert ann.faults() == []
    ann.assert_healthy()

    _work_on(ben, audit)
    _accept_the_finding(ben)
    _approve(ben)
    ben.section("History")
    _button(ben, "Download").click()
    report = _download(ben, "Report (HTML)", tmp_path)
    assert _asked_for_offline(chromium, report) == []
    _button(ben, "Make a PDF of the report").click()
    assert _download(ben, "Report (PDF)", tmp_path).read_bytes().startswith(b"%PDF-")
    receipt = _download(ben, "Receipt (JSON)", tmp_path)
    ben.page.keyboard.press("Escape")

    later = _record_another(ann, review)
    _submit(ann)
    _turn_to(ben, later)
    _approve(ben)
    _turn_to(ben, audit)
    _button(ben, "Supersede").click()
    _button(ben, "Supersede it").click()
    _badge(ben, "Superseded").wait_for(timeout=60_000)
    ben.idle()
    ben.section("Verify")
    ben.page.locator("input[type=file]").set_input_files(receipt)
    ben.idle()
    _button(ben, "Verify this record").click()
    ben.wait_for_text("The record holds. ")
    ben.wait_for_text("and 1 receipt were checked")

    second = _record_another(ann, review)
    assert second != audit
    _turn_to(ben, second)
    _submit(ben)
    _cannot_approve(ben)
    ben.visit("Versions")
    ben.page.locator("h2").get_by_text("The audits cannot be told apart").wait_for(timeout=60_000)
    ben.idle()
    ben.assert_healthy()

    for path in (f"overview?review={review}", f"audits?audit={audit}", f"help?review={review}"):
        eve.open(path)
        assert eve.page.locator("h1").inner_text() == "Sign in"
    _sign_in(eve)
    for known, unknown in (
        (f"overview?review={review}", f"overview?review={'A' * 16}"),
        (f"audits?audit={audit}", f"audits?audit={'0' * 16}:{'1' * 16}"),
        ("audits", ""),
    ):
        seen = _seen(eve, known)
        assert not unknown or seen == _seen(eve, unknown)
        assert _button(eve, "Download").count() == 0
        assert "Credit risk" not in eve.page.content()
    eve.assert_healthy()

    _button(eve, "Sign out").click()
    _button(eve, "Sign in").wait_for(timeout=60_000)
    assert "Eve" not in eve.page.locator("[data-testid='stApp']").inner_text()


def _seen(app: App, path: str) -> str:
    """All that a page says, once nothing more is added to it."""
    app.open(path)
    texts = [""]

    def settled() -> bool:
        app.page.wait_for_timeout(1000)
        app.idle()
        texts.append(str(app.page.locator("[data-testid='stApp']").inner_text()))
        return texts[-1] == texts[-2]

    app.until(settled)
    return texts[-1]


def test_the_click_after_the_expiry_asks_to_sign_in(
    visitor: Callable[[str], App], identities: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identities, "lifetime", 20.0)
    app = visitor("Fay")
    app.open()
    _sign_in(app)
    app.page.wait_for_timeout(21_000)
    assert _button(app, "Sign out").is_visible()  # nothing has run since
    app.page.locator('[data-testid="stSidebarNav"]').get_by_text("Help", exact=True).click()
    app.wait_for_text("Your sign-in ended on")
    assert _button(app, "Sign in").count() == 1
    assert app.page.locator("[data-testid='stSidebarNav']").count() == 0
    identities.lifetime = 3600.0
    _sign_in(app)
    app.assert_healthy()
