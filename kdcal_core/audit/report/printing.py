"""A report as PDF or as a picture, by Chromium where there is one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from kdcal_core.errors import InputError

VARIABLE = "KDCAL_CHROMIUM"
"""Names the program that prints, in place of one on the PATH."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PAGE = (794, 1123)  # A4 at 96 dots an inch
_MARGIN = 32  # of the body, above and below, in pixels
# a column as high as the page: the first row that does not fit goes into the next, which is hidden
_FIRST_PAGE = (
    f"height: {_PAGE[1] - 2 * _MARGIN}px; columns: 1; column-fill: auto; column-gap: 100vw; "
    "overflow: hidden"
)
_SECONDS = 180
_FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    # a dead proxy: a report needs nothing from elsewhere
    "--proxy-server=127.0.0.1:9",
)


def can_print() -> bool:
    """Whether there is a browser that prints."""
    try:
        chromium()
    except InputError:
        return False
    return True


def chromium() -> Path:
    """The browser that prints.

    Raises
    ------
    InputError
        If there is none.
    """
    given = os.environ.get(VARIABLE)
    names = (given,) if given else _NAMES
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise InputError(
            "A PDF or a picture of a report needs Chromium or Google Chrome, and none was found",
            fix=f"Install it, name its program in {VARIABLE}, or print the HTML file in a browser.",
        )
    return Path(found)


def pdf_report(html: bytes) -> bytes:
    """A report as PDF on A4 pages.

    Parameters
    ----------
    html : bytes
        As of `html_report`.

    Raises
    ------
    InputError
        If there is no Chromium, or it does not print.
    """
    wide = "--window-size=1000,1400"  # charts are drawn on a screen, and then printed
    return _printed(html, "report.pdf", (wide, "--no-pdf-header-footer", "--print-to-pdf={}"))


def png_of_first_page(html: bytes) -> bytes:
    """The beginning of a report as a picture, as large as an A4 page; it ends below a whole row.

    Raises
    ------
    InputError
        As of `pdf_report`.
    """
    size = f"--window-size={_PAGE[0]},{_PAGE[1]}"
    page = html.replace(b"<main>", f'<main class="first-page" style="{_FIRST_PAGE}">'.encode(), 1)
    return _printed(page, "report.png", (size, "--screenshot={}"))


def _printed(html: bytes, name: str, asks: tuple[str, ...]) -> bytes:
    program = chromium()
    with tempfile.TemporaryDirectory(prefix="kdcal-print-", ignore_cleanup_errors=True) as folder:
        page, made = Path(folder, "report.html"), Path(folder, name)
        page.write_bytes(html)
        flags = [*_FLAGS, f"--user-data-dir={folder}/profile"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium refuses to start for root otherwise
        _run([str(program), *flags, *(one.format(made) for one in asks), page.as_uri()])
        try:
            return made.read_bytes()
        except OSError as error:
            raise _failed("it wrote no file") from error


def _run(command: list[str]) -> None:
    """Run the browser, and end it with all that it started if it takes too long."""
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise _failed(error.strerror or "it cannot be started") from error
    try:
        code = process.wait(_SECONDS)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise _failed(f"it took longer than {_SECONDS} seconds") from error
    if code:
        raise _failed(f"it ended with code {code}")


def _failed(why: str) -> InputError:
    return InputError(
        f"Chromium did not print the report: {why}",
        fix="Print the HTML file in a browser.",
    )
