"""Charts of stored audits, which may come from elsewhere."""

from __future__ import annotations

import pytest

from app.shared.kept_audits import kept_chart
from kdcal_core.audit import KeptChart
from kdcal_core.errors import InputError

WHOLE = '{"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}'
BROKEN = ("", "{", "[1]", '{"data": 1}', '{"data": [{"type": "bar", "y0z": 1}]}', "[" * 5_000)


def chart(figure: str) -> KeptChart:
    return KeptChart("k", "Title", "overview", "Finding.", "Alt.", "How.", figure, WHOLE, "a\n1\n")


@pytest.mark.parametrize("figure", BROKEN)
def test_a_broken_chart_is_an_error_of_the_audit(figure: str) -> None:
    assert kept_chart(chart(figure), dark=True).finding == "Finding."
    with pytest.raises(InputError, match=r"not an audit that kdcal wrote, or it was altered"):
        kept_chart(chart(figure), dark=False)


def test_a_high_chart_beside_text_is_lowered_and_has_no_legend() -> None:
    high = chart(WHOLE.replace("{}", '{"height": 552, "margin": {"b": 106}}'))
    lowered = kept_chart(high, dark=False, height=330).figure.layout
    assert (lowered.height, lowered.showlegend, lowered.margin.b) == (330, False, 46)
    assert kept_chart(high, dark=False).figure.layout.height == 552
