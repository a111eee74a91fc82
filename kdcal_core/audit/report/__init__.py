"""Reports of audits: an HTML file for people, and a few lines for a pull request."""

from kdcal_core.audit.report.markdown import markdown_report
from kdcal_core.audit.report.page import html_report
from kdcal_core.audit.report.printing import can_print, pdf_report, png_of_first_page
from kdcal_core.audit.report.recorded import (
    Printed,
    print_recorded,
    printed_file,
    recorded_report,
    to_print,
)

__all__ = [
    "Printed",
    "can_print",
    "html_report",
    "markdown_report",
    "pdf_report",
    "png_of_first_page",
    "print_recorded",
    "printed_file",
    "recorded_report",
    "to_print",
]


def __dir__() -> list[str]:
    return sorted(__all__)
