"""The guides of `app/guides`: Markdown for a code host and for the Help page.

The app puts lists of the core, such as the one of all checks, where a guide marks their place. A
code host shows the words that stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

FOLDER = Path(__file__).parents[1] / "guides"
# in the order in which the Help page lists them
NAMES = (
    "loading",
    "predictions",
    "pages",
    "glossary",
    "checks",
    "audits",
    "calibrators",
    "command_line",
    "gates",
    "watch",
    "python",
    "coming_from",
    "measured",
    "deploying",
    "changes",
)
_CHECKS = re.compile(r"<!-- table of checks -->.*?<!-- end of the table -->", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_INSIDE = re.compile(r"^```[a-z]*\n(.*?)\n?```$", re.DOTALL)
_HEADING = re.compile(r"^#+ ", re.MULTILINE)
_SECTION = re.compile(r"^### (.*)\n+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Guide:
    """A guide: its name, which is also its address, its title, and its Markdown with all tables."""

    name: str
    title: str
    text: str


def read_guide(name: str) -> Guide:
    """A guide by its name, one of `NAMES`.

    Examples
    --------
    >>> read_guide("python").title
    'From Python'
    """
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    text = _CHECKS.sub(lambda _: checks_table(), text)
    return Guide(name, text.partition("\n")[0].removeprefix("# "), text)


def checks_table() -> str:
    """Every check with its question, default limit and test against chance, as a Markdown table.

    Examples
    --------
    >>> print(chr(10).join(checks_table().split(chr(10))[:3]))
    | code | check | question | default limit | against chance |
    |---|---|---|---|---|
    | KC001 | Overall calibration | Do events happen as often as stated? | at most 0.05 | yes |
    """
    from kdcal_core.checks import CHECKS, limit_text

    rows = (
        f"| {one.code} | {one.title} | {one.question} | {limit_text(one.limit, one)} "
        f"| {'yes' if 'chance' in one.ways else 'no'} |"
        for one in CHECKS.values()
    )
    head = "| code | check | question | default limit | against chance |"
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def on_screen(text: str, review: str | None = None) -> str:
    """A guide's Markdown for the Help page, which has its own title.

    Headings move one level down. A link to another guide opens that guide and keeps the open
    review. The app serves no other file of the repository, so a link to one becomes its path.

    Parameters
    ----------
    text : str
        Markdown with one heading of the first level.
    review : str, optional
        Id of the open review.

    Examples
    --------
    >>> on_screen("# Title" + chr(10) + "See [Python](python.md) and [the tests](../../tests).")
    '## Title\\nSee [Python](?guide=From%20Python) and the tests (`tests`).'
    """
    parts = []
    end = 0
    for code in _FENCED.finditer(text):  # where # begins a comment
        parts += [_prose(text[end : code.start()], review), code.group()]
        end = code.end()
    return "".join([*parts, _prose(text[end:], review)])


def cut(shown: str) -> tuple[str, dict[str, str]]:
    """The title and introduction of a guide on the Help page, and its sections by their headings.

    Examples
    --------
    >>> cut(on_screen("# Title\\n\\nTo begin.\\n\\n## One\\n\\nText.\\n\\n## Two\\n\\nMore.\\n"))
    ('## Title\\n\\nTo begin.\\n\\n', {'One': 'Text.\\n\\n', 'Two': 'More.\\n'})
    """
    lead, *rest = _SECTION.split(shown)
    return lead, dict(zip(rest[::2], rest[1::2], strict=True))


def prose_and_code(shown: str) -> Iterator[tuple[str, bool]]:
    """The parts of a section in their order, each with whether it is code, which lost its fences.

    Examples
    --------
    >>> list(prose_and_code("Try:\\n\\n```bash\\nkdcal app\\n```\\n\\nIt starts.\\n"))
    [('Try:', False), ('kdcal app', True), ('It starts.', False)]
    """
    end = 0
    for code in _FENCED.finditer(shown):
        if before := shown[end : code.start()].strip():
            yield before, False
        yield _INSIDE.sub(r"\1", code.group()), True
        end = code.end()
    if rest := shown[end:].strip():
        yield rest, False


def _prose(text: str, review: str | None) -> str:
    deeper = _HEADING.sub(lambda heading: f"#{heading.group()}", text)
    return _LINK.sub(lambda link: _link(link[1], link[2], review), deeper)


def _link(label: str, target: str, review: str | None) -> str:
    if "://" in target:
        return f"[{label}]({target})"
    path = PurePosixPath(target)
    if path.parent == PurePosixPath() and path.stem in NAMES:
        kept = f"&review={quote(review)}" if review else ""
        return f"[{label}](?guide={quote(read_guide(path.stem).title)}{kept})"
    inside = target.removeprefix("../../")
    return f"`{inside}`" if label.strip("`") == inside else f"{label} (`{inside}`)"
