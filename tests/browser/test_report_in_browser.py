"""A report opens from a file, offline: nothing is asked for, and nothing but itself runs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import AXE, FAULTS, SIZE
from PIL import Image

from kdcal_core.audit import AuditSettings, audit_settings, make_audit
from kdcal_core.audit.report import html_report, pdf_report, png_of_first_page
from kdcal_core.review import ReviewReader, Workspace, score, start_sample
from kdcal_core.tasks import Sets

pytestmark = pytest.mark.browser


# the width in pixels of the narrowest panel of all charts
PANELS = """Math.min(...[...document.querySelectorAll('.plot')].flatMap(one =>
  Object.entries(one._fullLayout).filter(([name]) => name.startsWith('xaxis'))
    .map(([, axis]) => axis._length)))"""


@dataclass
class Opened:
    """A report in a tab, with what the tab asked for and complained of."""

    page: object
    html: bytes
    n_charts: int
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def _until(page, holds: str) -> None:
    """Wait until a condition holds; the page's policy forbids the browser to ask it itself."""
    for _ in range(100):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"not in time: {holds}")


@pytest.fixture(scope="module", params=["digits", "heteroscedastic"])
def opened(
    request: pytest.FixtureRequest, chromium, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    workspace = Workspace(tmp_path_factory.mktemp("reviews"))
    review = score(workspace, start_sample(workspace, request.param).id)
    asked = audit_settings(review)
    settings = AuditSettings(
        asked.title, asked.which, asked.event, codes=("KC002", "KC005", "KC203")
    )
    content = make_audit(Sets(ReviewReader(workspace, review.id, review=review)), settings=settings)
    html = html_report(content)
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_bytes(html)
    context = chromium.new_context(viewport=SIZE, offline=True)
    page = context.new_page()
    found = Opened(page, html, len(content.charts))
    context.on("request", lambda one: found.requests.append(one.url))
    page.on("console", lambda one: found.complaints.append(one.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.goto(Path(file).as_uri())
    _until(page, f"document.querySelectorAll('.plot .main-svg').length >= {len(content.charts)}")
    yield found
    context.close()


def test_a_report_asks_for_nothing_and_draws_every_chart(opened: Opened) -> None:
    assert [one for one in opened.requests if not one.endswith("/report.html")] == []
    assert opened.complaints == []
    assert opened.page.locator(".plot .main-svg").count() >= opened.n_charts
    outside = opened.page.evaluate(
        "[...document.querySelectorAll('.plot')].map(one => one.scrollWidth - one.clientWidth)"
    )
    assert max(outside) <= 0


def test_a_report_can_be_read_by_everyone(opened: Opened) -> None:
    opened.page.evaluate(
        "[...document.querySelectorAll('details')].forEach(one => one.open = true)"
    )
    opened.page.evaluate(AXE.read_text())  # the page's policy lets no script element in
    assert opened.page.evaluate(FAULTS, [[], None]) == []
    opened.page.set_viewport_size({"width": 390, "height": 844})
    # charts follow the width after a moment
    _until(
        opened.page,
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
    )
    _until(opened.page, f"{PANELS} >= 100")  # those side by side stand below each other
    opened.page.set_viewport_size(SIZE)


def test_a_report_prints(opened: Opened) -> None:
    printed = pdf_report(opened.html)
    assert printed.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 5
    picture = Image.open(io.BytesIO(png_of_first_page(opened.html))).convert("L")
    assert picture.size == (794, 1123)
    # nothing is cut at the end: its margin is blank, as that at the top
    for top in (0, picture.height - 32):
        (low, high) = picture.crop((0, top, picture.width, top + 32)).getextrema()
        assert low == high
