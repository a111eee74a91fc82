"""What a reader sees on a page in Streamlit's test runner, from top to bottom."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from texts.snapshot import visible

_UNSEEN = ("bidi_component", "component_instance", "iframe", "empty")
_HEADINGS = {"title": "# ", "header": "## ", "subheader": "### "}
_SOFT_BREAK = re.compile(r"(?<!\n)\n *(?![\n*#|`$-]|\d+\. )")


def page_text(at: AppTest) -> str:
    """The words of a page: headings, sentences, tiles, controls, alternative texts and tables.

    What opens on demand (tabs, expanders, popovers) stands indented below its name.
    """
    return "\n".join(_lines(at.main))


def said(at: AppTest) -> list[str]:
    """What a page says at first sight: headings, sentences and notices, nothing that opens."""
    kinds = (*_HEADINGS, "markdown", "caption", "info", "warning", "error", "success")
    return [
        line for element in _elements(at.main) if element.type in kinds for line in _words(element)
    ]


def _elements(block: Block) -> Iterator[Any]:
    for child in block.children.values():
        if not isinstance(child, Block):
            yield child
        elif not _opens(child):
            yield from _elements(child)


def _opens(block: Block) -> str:
    """The name under which a block's contents open on demand, or nothing."""
    if block.type in ("expander", "tab"):
        return f"[{block.type}] {_plain(block.label)}"
    named = {field.name for field, _ in block.proto.ListFields()} if block.proto else {}
    return f"[popover] {_plain(block.proto.popover.label)}" if "popover" in named else ""


def _lines(block: Block) -> Iterator[str]:
    for child in block.children.values():
        if not isinstance(child, Block):
            yield from _words(child)
        elif name := _opens(child):
            yield name
            yield from (f"    {line}" for line in _lines(child))
        else:
            yield from _lines(child)


def _plain(escaped: Any) -> str:
    """What the reader sees of escaped text, a paragraph a line."""
    return _SOFT_BREAK.sub(" ", visible(str(escaped)).strip())


def _words(element: Any) -> Iterator[str]:
    kind, proto = element.type, element.proto
    if kind in _UNSEEN:
        return
    if kind in _HEADINGS:
        yield _HEADINGS[kind] + _plain(element.value)
    elif kind in ("markdown", "caption", "text"):
        yield from _plain(element.value).splitlines()
    elif kind == "code":
        yield from (f"    {line}" for line in str(element.value).splitlines())
    elif kind == "plotly_chart":
        yield "[chart]"
        yield from (f"    {line}" for line in _plain(proto.alt).splitlines())
    elif kind in ("dataframe", "table"):
        yield f"[{kind}] {' | '.join(map(str, element.value.columns))}"
        yield from (f"    {line}" for line in _beside(element))
    else:
        yield f"[{kind}] {_control(proto)}"
        yield from (f"    {line}" for line in _plain(getattr(proto, "help", "")).splitlines())


def _beside(table: Any) -> Iterator[str]:
    """The rows of a table of sentences, and what explains the columns of another."""
    if table.type == "table":
        yield from (" | ".join(map(_plain, row)) for row in table.value.itertuples())
    elif table.proto.columns:
        for name, one in json.loads(table.proto.columns).items():
            if one.get("help"):
                yield f"{name}: {one['help']}"


def _control(proto: Any) -> str:
    parts = (_plain(getattr(proto, name, "")) for name in ("label", "body", "delta"))
    options = (_plain(getattr(one, "content", one)) for one in getattr(proto, "options", ()))
    label, choice = ": ".join(filter(None, parts)), " | ".join(options)
    return f"{label} ({choice})" if choice else label
