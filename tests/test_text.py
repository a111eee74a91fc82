"""Words for numbers and lists at their edges; the forms of numbers are in test_findings."""

import math

import pytest

from kdcal_core.text import (
    MINUS,
    and_more,
    bytes_text,
    counted,
    formatted,
    listed,
    number_text,
    p_text,
    printable,
    range_text,
    typed,
)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "1.00"),
        (0.0501, "0.050"),
        (0.001, "0.001"),
        (0.00099, "0.0010"),
        (1e-4, "0.0001"),
        (9.9e-5, "below 0.0001"),
        (0.0, "below 0.0001"),
        (math.nan, "not defined"),
    ],
)
def test_a_p_value_has_the_decimals_that_decide(p: float, text: str) -> None:
    assert p_text(p) == text


def test_a_list_counts_what_it_does_not_name() -> None:
    names = [f"c{at}" for at in range(2000)]
    assert listed(names, 2) == "c0, c1 and 1,998 more"
    assert listed(names[:3], 1) == "c0 and 2 more"
    assert listed(iter(names[:2])) == "c0 and c1"
    assert listed(["a"], 1, last="or") == "a"
    assert and_more(-1) == ""


def test_counts_and_ranges_have_separators() -> None:
    assert counted(0, "row") == "0 rows"
    assert range_text(1200.0, 3400.0) == "1,200 to 3,400"
    assert range_text(0.1, math.nan) == "no interval"


@pytest.mark.parametrize("form", [".3g", "+.2f", ",.0f", ".0%", "g", ".2e"])
@pytest.mark.parametrize("value", [-12345.678, -0.25, -3.1e-8, 0.0, 0.25, 12345.678])
def test_a_number_differs_from_python_s_in_its_signs_alone(value: float, form: str) -> None:
    text = formatted(value, form)
    assert typed(text) == format(value, form)
    assert text.startswith(MINUS) == (value < 0)
    assert not set(text) & {"-", "e"}


def test_every_form_of_a_number_has_the_minus_sign() -> None:
    assert MINUS == "\u2212"
    assert number_text(-0.0412, 0.02) == f"{MINUS}0.041"
    assert number_text(-1204.0, 300.0) == f"{MINUS}1,204"
    assert number_text(-2.41e-7, 1e-8) == f"{MINUS}2.4 × 10⁻⁷"
    assert range_text(-0.07, -0.01, percent=True) == f"{MINUS}7% to {MINUS}1%"


def test_a_rounded_zero_has_no_sign() -> None:
    assert number_text(-0.00001, 0.02) == "0.000"
    assert range_text(-0.0001, 0.0312, percent=True) == "0.0% to 3.1%"


def test_an_interval_that_excludes_zero_does_not_end_at_it() -> None:
    assert range_text(-0.08, -0.00041) == "−0.08 to −0.0004"
    assert range_text(0.000021, 0.05, percent=True) == "0.002% to 5.0%"
    assert range_text(0.000019, 0.08) == "2 × 10⁻⁵ to 0.08"
    for low, high in ((0.0, 0.08), (6e-7, 0.08), (-0.0004, 0.08)):
        assert range_text(low, high) == "0.00 to 0.08"
    assert range_text(-0.08, 0.0) == range_text(-0.08, 0.0004) == "−0.08 to 0.00"


def test_bytes_keep_two_figures() -> None:
    assert [bytes_text(n) for n in (1, 1023, 1024, 10 << 10, 1 << 30, 3000 << 30)] == [
        "1 byte",
        "1,023 bytes",
        "1.0 KiB",
        "10 KiB",
        "1.0 GiB",
        "3,000 GiB",
    ]


def test_a_joiner_is_printed_between_two_emoji_and_nowhere_else() -> None:
    family, firefighter = "\U0001f469\u200d\U0001f469", "\U0001f469\U0001f3fd\u200d\U0001f692"
    rainbow = "\U0001f3f3\ufe0f\u200d\U0001f308"
    for joined in (family, firefighter, rainbow, f"Team {family}\u200d\U0001f467."):
        assert printable(joined) == joined
    apart = ("ad\u200dmin", "\u200d\U0001f469", "\U0001f469\u200d", "\U0001f469\u200da", "\u200d")
    for hidden in (*apart, "\U0001f469\u200d\u200d\U0001f469", "a\ufe0f\u200d\U0001f469"):
        assert printable(hidden) == hidden.replace("\u200d", "\ufffd")
    assert printable("\U0001f469\u200c\U0001f469") == "\U0001f469\ufffd\U0001f469"
