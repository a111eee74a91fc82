"""Which requests the server lets through, and the headers of its answers."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from streamlit import config
from streamlit.web import cli

from app.shared.request_rules import RequestRules

METHODS = ["GET", "PUT", "POST", "DELETE"]


async def _page(request):
    return PlainTextResponse("here")


async def _stream(socket):
    await socket.accept()
    await socket.send_text("here")
    await socket.close()


def visitor(host: str = "127.0.0.1:8501") -> TestClient:
    answers = Starlette(
        routes=[Route("/{path:path}", _page, methods=METHODS), WebSocketRoute("/stream", _stream)],
        middleware=[Middleware(RequestRules)],
    )
    return TestClient(answers, base_url=f"http://{host}")


@pytest.fixture(autouse=True)
def hosts():
    """The hosts of `app/.streamlit/config.toml`, which only `streamlit run app` reads."""
    before = config.get_option("server.allowedHosts")
    config.set_option("server.allowedHosts", ["localhost", "127.0.0.1", "::1"])
    yield
    config.set_option("server.allowedHosts", before)


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "localhost", "[::1]:8501"])
@pytest.mark.parametrize("method", METHODS)
def test_requests_of_a_program_to_an_allowed_host_are_answered(host, method):
    assert visitor(host).request(method, "/media/x").text == "here"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil", ""])
@pytest.mark.parametrize("path", ["/", "/media/x", "/_stcore/health"])
def test_another_host_is_refused_on_every_route(host, path):
    refused = visitor().get(path, headers={"host": host})
    assert refused.status_code == 403
    assert "STREAMLIT_SERVER_ALLOWED_HOSTS" in refused.text
    assert "evil" not in refused.text


@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("http://127.0.0.1:8501", True),
        ("https://127.0.0.1:8501", True),  # behind a proxy with TLS
        ("http://127.0.0.1:9999", False),
        ("http://localhost:8501", False),
        ("https://evil.example", False),
        ("null", False),
        ("http://[", False),  # no address at all
        (None, False),
    ],
)
def test_a_websocket_is_opened_by_a_page_of_this_server_only(origin, passes):
    headers = {"host": "127.0.0.1:8501"} | ({} if origin is None else {"origin": origin})
    if passes:
        with visitor().websocket_connect("/stream", headers=headers) as socket:
            assert socket.receive_text() == "here"
    else:
        with (
            pytest.raises(WebSocketDenialResponse) as refused,
            visitor().websocket_connect("/stream", headers=headers),
        ):
            pass
        assert refused.value.status_code == 403


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"origin": "https://evil.example\t<b>"}, "Origin 'https://evil.example <b>'"),
        ({}, "no Origin): This request comes from no page of this server"),
        ({"host": "evil.example"}, "Host 'evil.example', no Origin): This server does not answer"),
    ],
)
def test_a_refused_websocket_is_logged_with_its_reason(headers, said, caplog):
    with (
        pytest.raises(WebSocketDenialResponse),
        visitor().websocket_connect("/stream", headers={"host": "127.0.0.1:8501"} | headers),
    ):
        pass
    (line,) = [one for one in caplog.messages if one.startswith("Refused the websocket")]
    assert said in line
    assert line.startswith("Refused the websocket /stream (Host")
    assert "\n" not in line


def test_a_page_elsewhere_may_not_change_anything_here():
    elsewhere = {"origin": "http://127.0.0.1:9999"}
    assert visitor().get("/", headers=elsewhere).status_code == 200
    for method in METHODS[1:]:
        assert visitor().request(method, "/upload", headers=elsewhere).status_code == 403
    config.set_option("server.corsAllowedOrigins", ["http://127.0.0.1:9999"])
    try:
        assert visitor().put("/upload", headers=elsewhere).status_code == 200
    finally:
        config.set_option("server.corsAllowedOrigins", [])


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "evil.example"])
def test_every_answer_carries_the_headers(host):
    headers = visitor().get("/", headers={"host": host}).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["referrer-policy"] == "same-origin"
    policy = dict(one.split(" ", 1) for one in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert policy["object-src"] == "'none'"
    assert "'unsafe" not in policy["script-src"]
    page = Path(streamlit.__file__).with_name("static").joinpath("index.html").read_text("utf-8")
    for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy["script-src"]


def test_a_fault_is_answered_with_the_headers_too():
    async def fails(request):
        raise RuntimeError

    answers = Starlette(routes=[Route("/", fails)], middleware=[Middleware(RequestRules)])
    visitor = TestClient(answers, base_url="http://localhost", raise_server_exceptions=False)
    answer = visitor.get("/")
    assert answer.status_code == 500
    assert "script-src" in answer.headers["content-security-policy"]


def test_the_environment_names_the_hosts_of_an_installed_app(monkeypatch):
    monkeypatch.setenv("STREAMLIT_SERVER_ALLOWED_HOSTS", "kdcal.example 127.0.0.1")
    asked = cli.main.commands["run"].make_context("run", ["app"]).params["server_allowedHosts"]
    assert asked == ("kdcal.example", "127.0.0.1")
