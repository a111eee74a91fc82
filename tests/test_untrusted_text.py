"""Untrusted names cannot become markup."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kdcal_core.text import escape_html, escape_markdown, without_links

ENTITY = re.compile(r"&#\d+;")


@pytest.mark.parametrize(
    "text",
    [
        "![x](http://evil.example/p.png)",
        "[link](javascript:alert(1))",
        "<script>alert(1)</script>",
        ":red[hot]",
        ":material/home:",
        ":smile:",
        "https://evil.example/a",
        "www.evil.example",
        "someone@evil.example",
        "$x^2$",
        "# heading",
        "1. list",
        "a_b_c *d* ~~e~~ `f` |g| \\h",
        "%{x} <a href='x'>y</a>",
    ],
)
def test_no_sign_survives(text: str) -> None:
    escaped = escape_markdown(text)
    bare = ENTITY.sub("", escaped)
    assert not set(bare) & set("\\`*_{}[]()#+-!|<>~$:&")
    assert html.unescape(escaped).replace("\u200b", "") == text


@pytest.mark.parametrize(
    "text", [":material/home:", ":smile:", "http://a.b", "www.a.b", "WWW.a.b", "a@b.c"]
)
def test_late_transforms_find_nothing(text: str) -> None:
    seen = html.unescape(escape_markdown(text))
    assert not re.search(r":[\w/+-]+:", seen)
    assert not re.search(r"https?://|www\.", seen, re.IGNORECASE)
    assert not re.search(r"@[-\w]", seen)


@pytest.mark.parametrize(
    "text",
    [
        "[a](http://a.b)",
        "![a][b]\n\n[b]: http://a.b",
        "http:\\//a.b",
        "http:&#47;/a.b",
        "<a.b@c.d>",
    ],
)
def test_markdown_without_links_has_none(text: str) -> None:
    rendered = MarkdownIt("commonmark").render(without_links(text))
    assert "<a" not in rendered
    assert "<img" not in rendered
    assert not re.search(r"https?://|www\.", html.unescape(rendered), re.IGNORECASE)


def test_markdown_without_links_keeps_its_form() -> None:
    text = "**Bold**, *k*, and $\\{a, b\\} \\, c_{1}$ & more\n\n- one"
    assert without_links(text) == text


@given(st.text(), st.integers(1, 100))
def test_length_and_controls(text: str, limit: int) -> None:
    seen = html.unescape(escape_markdown(text, limit)).replace("\u200b", "")
    assert len(seen) <= limit
    assert seen == html.unescape(escape_html(text, limit))
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", seen)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"]), max_size=40))
def test_visible_text_is_kept(text: str) -> None:
    assert html.unescape(escape_html(text)) == text


def test_html_quotes() -> None:
    assert escape_html("\"a' <b> & c") == "&quot;a&#x27; &lt;b&gt; &amp; c"
    assert escape_html("a\nb\tc\x00d") == "a b cd"
    assert escape_html(3.5) == "3.5"
