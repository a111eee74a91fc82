"""The fixture that holds what a test sees to what is stored."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kdcal_core.review.known_results import this_host

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

TEXTS = Path(__file__).parent
TESTS = TEXTS.parent
Texts = Callable[..., None]
WRITE = pytest.StashKey[bool]()
"""Whether texts are stored instead of compared."""
_HEAD = "=== "
_MASKS = (
    (re.compile(r"(?:below )?\d[\d.,]* (?:milliseconds|seconds?|minutes?|ms|s)\b"), "(time)"),
    (re.compile(r"\b\d[\d.,]* (?:bytes|KB|KiB|MB|MiB)\b"), "(size)"),
    (re.compile(r"\b[0-9a-f]{8}(?:[0-9a-f]{4,56}|(?: [0-9a-f]{8}){7})\b"), "(digest)"),
    (re.compile(r"\b\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC\b"), "(date)"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?"), "(date)"),
    (re.compile(r"\bkdcal \d+(?:\.\d+)+"), "kdcal (version)"),
)
_SENTENCE = re.compile(r"(?<=[^A-Z][.!?]) +(?=[A-Z*\[])")


def visible(escaped: str) -> str:
    """What the reader sees of escaped text."""
    return html.unescape(escaped).replace("\u200b", "")


def masked(text: str, *paths: Path) -> str:
    """A text without what differs from one machine or run to the next.

    Examples
    --------
    >>> masked("Done in 1.4 s: 3 rows are left.")
    'Done in (time): 3 rows are left.'
    """
    text = visible(text).replace(f"this machine ({this_host()})", "this machine (host)")
    for path in paths:
        text = text.replace(str(path), "(folder)")
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _sentence_a_line(text: str) -> str:
    lines = []
    for line in filter(str.strip, text.splitlines()):
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(_SENTENCE.sub(f"\n{indent}", line))
    return "\n".join(lines)


def sections(path: Path) -> dict[str, str]:
    """The stored texts of a file by the names of what said them."""
    if not path.exists():
        return {}
    parts = re.split(rf"^{_HEAD}(.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _store(path: Path, said: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(f"{_HEAD}{name}\n{text}" for name, text in said.items())
    path.write_text(f"{text}\n", encoding="utf-8")


@cache
def _same_processor() -> bool:
    """Whether figures must be the stored ones to the last digit, see `golden.processor`."""
    from golden.groups import SAMPLES
    from golden.processor import outputs_digest
    from golden.stored import PROCESSOR

    return outputs_digest(SAMPLES) == PROCESSOR.read_text(encoding="utf-8").strip()


def _without_figures(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "#", text)


def _whole(said: AppTest | str | Iterable[str]) -> str:
    if isinstance(said, str):
        return said
    if hasattr(said, "main"):
        from texts.pages import page_text

        return _sentence_a_line(page_text(said))
    return _sentence_a_line("\n".join(said))


@pytest.fixture
def texts(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Texts:
    """Hold a page, a text or several texts to the stored ones."""
    module = Path(request.path)
    path = TEXTS / module.parent.relative_to(TESTS) / f"{module.stem.removeprefix('test_')}.txt"
    name = request.node.name.removeprefix("test_").replace("_", " ")
    write = request.config.stash.get(WRITE, False)
    held: set[str] = set()

    def hold(said: AppTest | str | Iterable[str], part: str = "") -> None:
        text = masked(_whole(said), tmp_path, tmp_path_factory.getbasetemp())
        section = f"{name}: {part}" if part else name
        assert section not in held, f"give each text a part of its own: {section}"
        held.add(section)
        stored = sections(path)
        if write:
            _store(path, {**stored, section: text})
            return
        before, now = stored.get(section, ""), text
        if before != now and not _same_processor():
            before, now = _without_figures(before), _without_figures(now)
        if before != now:
            changes = unified_diff(before.splitlines(), now.splitlines(), "stored", "now", "", "")
            pytest.fail(
                f"{path.relative_to(TESTS)}, {section}. Where the new words are better, "
                "run python -m tests.texts --write:\n" + "\n".join(changes),
                pytrace=False,
            )

    return hold
