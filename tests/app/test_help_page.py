"""The page Help: every guide, by choice and by address."""

from __future__ import annotations

import math
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from app_pages import healthy, launch
from streamlit.testing.v1 import AppTest

from app.help.guides import FOLDER, NAMES, cut, on_screen, read_guide
from kdcal_core.checks import CHECKS
from kdcal_core.review import Workspace, start_sample
from kdcal_core.text import formatted

TITLES = [read_guide(name).title for name in NAMES]
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


def shown(at: AppTest) -> str:
    """The guide on the page, the only thing that is written there."""
    healthy(at)
    assert [title.value for title in at.title] == ["Help"]
    assert len(at.markdown) + len(at.code) >= 1 + len(at.tabs)
    assert all("```" not in one.value for one in at.markdown)
    assert all(one.language == "plaintext" for one in at.code)  # other colours are too pale
    return "\n".join(one.value for one in at.markdown)


def opened(name: str) -> AppTest:
    return launch("help", guide=read_guide(name).title)


def outside_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def test_every_guide_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_guide_by_its_address(name: str) -> None:
    at = opened(name)
    text = outside_code(shown(at))
    headings = re.findall(r"^(#+) (.*)", text, re.MULTILINE)
    assert headings[0] == ("##", read_guide(name).title)
    _, sections = cut(on_screen(read_guide(name).text))
    assert [tab.label for tab in at.tabs] == list(sections)
    assert headings[1:] == []  # the tabs name the sections
    assert at.button_group[0].value == name


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_guides_and_to_the_web_alone(name: str) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", outside_code(on_screen(read_guide(name).text)))
    assert targets
    for target in targets:
        if not target.startswith("https://"):
            assert parse_qs(urlsplit(target).query)["guide"][0] in TITLES


@pytest.mark.parametrize("asked", [None, "no_such_guide"])
def test_the_first_guide_where_the_address_names_none(asked: str | None) -> None:
    address = {} if asked is None else {"guide": asked}
    assert shown(launch("help", **address)).startswith(f"## {read_guide(NAMES[0]).title}")


def test_a_choice_shows_another_guide() -> None:
    at = opened("python")
    at.button_group[0].set_value("measured").run()
    assert shown(at).startswith(f"## {read_guide('measured').title}")


def test_the_open_review_stays_open(workspace: Workspace) -> None:
    review = start_sample(workspace, "digits_predictions").id
    at = launch("help", review, guide=read_guide("loading").title)
    assert f"(?guide=From%20Python&review={review})" in shown(at)
    assert at.query_params["review"] == review
    assert not at.caption  # the header of the review


def test_code_is_shown_as_the_file_has_it() -> None:
    text = "# One\n\n```bash\n# a comment, [not](a.md) a link\n```\n\n## Two\n"
    assert on_screen(text) == text.replace("# One", "## One").replace("## Two", "### Two")


@pytest.mark.parametrize("name", NAMES)
def test_sections_and_what_goes_before_are_the_whole_guide(name: str) -> None:
    text = on_screen(read_guide(name).text)
    lead, sections = cut(text)
    assert len(lead.strip().splitlines()) > 1  # a title and an introduction
    assert lead + "".join(f"### {one}\n\n{part}" for one, part in sections.items()) == text


def test_the_guide_lists_every_check_with_its_default_limit() -> None:
    text = read_guide("checks").text
    assert re.findall(r"^\| (KC\d+) ", text, re.MULTILINE) == list(CHECKS)
    assert "<!--" not in text
    for check in CHECKS.values():
        ends = (check.limit.low, check.limit.high)
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {check.code} ")]
        assert check.title in row
        assert check.question in row
        for end in ends:
            shown = formatted(100 * end, "g") + "%" if check.percent else formatted(end, "g")
            assert math.isinf(end) or re.search(rf"(?<![\d.]){re.escape(shown)}(?![\d.])", row)
