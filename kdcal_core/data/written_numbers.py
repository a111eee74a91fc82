"""Numbers that are written as text: which columns hold them, and how they are read.

Amounts with a currency sign or thousands separators are read as numbers where one reading fits all
values of a column. Everything else stays text, with a note on what to change.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from kdcal_core.text import listed

_CURRENCY = (
    r"(?:(?:US|A|C|R|HK|NZ|S)?\$|[€£¥₹₩₽₺₫฿₦]|kr\.?|zł|Kč|USD|EUR|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK"
    r"|PLN|CZK|INR|CNY|BRL|MXN|ZAR)"
)
_BODY = r"(?:\d[\d.,'’\s\x{A0}\x{202F}]*|[.,]\d+)"
_WITH_CURRENCY = (
    rf"^\s*(?:[+\-−]?\s*{_CURRENCY}\s*[+\-−]?{_BODY}|[+\-−]?{_BODY}{_CURRENCY}"
    rf"|\({_CURRENCY}\s*{_BODY}\))\s*$"
)
_AMOUNT = rf"{_WITH_CURRENCY}|^\s*(?:[+\-−]?{_BODY}|\({_BODY}\))\s*$"
_GROUPS = r"[1-9]\d{0,2}"
# the whole part and the rest, with a decimal point and with a decimal comma
_READINGS = {
    ".": rf"^(?:\d+|{_GROUPS}(?:[,'’\s\x{{A0}}\x{{202F}}]\d{{3}})+)?(?:\.\d*)?$",
    ",": rf"^(?:\d+|{_GROUPS}(?:[.'’\s\x{{A0}}\x{{202F}}]\d{{3}})+)?(?:,\d*)?$",
}
_ENGLISH = ("$", "£", "¥", "₹", "USD", "GBP", "JPY", "CAD", "AUD", "NZD", "INR")
_FEWEST_GROUPED = 3


def amounts_in(values: pa.ChunkedArray, name: str) -> tuple[pa.ChunkedArray, str] | None:
    """Text that holds amounts as float64, with a note; None for other text.

    All values are read alike: with a currency sign, thousands separators or both, and with the
    decimal sign under which all of them are numbers. Where both signs would do, dollars, pounds
    and the like have a decimal point; else separators before three digits are of thousands if
    other values, below a thousand, have none. An amount of which that leaves two readings stays
    text, and the note says so.

    Examples
    --------
    >>> found, note = amounts_in(pa.chunked_array([["$1,234", None, "-$5.50"]]), "price")
    >>> found.to_pylist(), note
    ([1234.0, None, -5.5], "Column 'price' holds amounts: $1,234 was read as 1,234.")
    >>> amounts_in(pa.chunked_array([["1.234,50 €", "7 €"]]), "price")[0].to_pylist()
    [1234.5, 7.0]
    >>> amounts_in(pa.chunked_array([["1.234 €"]]), "price")[1]
    "Column 'price' was kept as text: 1.234 € may be 1234 or 1.234. Write all of them as numbers."
    >>> amounts_in(pa.chunked_array([["<=50K", "17"]]), "income") is None
    True
    """
    if not _all(values.slice(0, _LOOKED_AT), _AMOUNT):
        return None
    known = values.drop_null()
    if not len(known) or not _all(known, _AMOUNT):
        return None
    signs = [one for one in pc.unique(_sign_of(known)).to_pylist() if one]
    bare = pc.replace_substring_regex(known, _CURRENCY + r"|[()+\-−]", "")
    bare = pc.utf8_trim_whitespace(bare)
    readings = [sign for sign, pattern in _READINGS.items() if _all(bare, pattern)]
    sign = _decimal_sign(bare, readings, signs)
    example = known[_first_written(bare)].as_py().strip()[:40]
    if len(signs) > 1:
        return values, (
            f"Column {name!r} was kept as text: its amounts are in several currencies "
            f"({listed(signs, 3)}). Convert them into one, and write them as numbers."
        )
    if not readings or (not signs and not _is_grouped(bare, readings)):
        return None
    if sign is None:
        digits = re.sub(r"\D", "", example)
        return values, (
            f"Column {name!r} was kept as text: {example} may be {digits} or "
            f"{digits[:-3]}.{digits[-3:]}. Write all of them as numbers."
        )
    text = pc.replace_substring_regex(
        pc.replace_substring_regex(values, _CURRENCY + r"|[^0-9.,]", ""),
        r"\." if sign == "," else ",",
        "",
    )
    numbers = pc.replace_substring(text, ",", ".").cast(pa.float64())
    below = pc.match_substring_regex(values, r"[\-−(]")
    numbers = pc.if_else(below, pc.negate(numbers), numbers)
    read = numbers.drop_null()[_first_written(bare)].as_py()
    return numbers, f"Column {name!r} holds amounts: {example} was read as {read:,.10g}."


def _all(values: pa.ChunkedArray, pattern: str) -> bool:
    """Whether all values match; missing ones do."""
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py() is not False)


def _sign_of(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The currency sign of each value; null without one."""
    return pc.struct_field(pc.extract_regex(values, f"(?P<sign>{_CURRENCY})"), "sign")


def _first_written(bare: pa.ChunkedArray) -> int:
    """The first amount with a separator, or else the first one."""
    return max(int(pc.index(pc.match_substring_regex(bare, r"\D"), True).as_py()), 0)


def _is_grouped(bare: pa.ChunkedArray, readings: list[str]) -> bool:
    """Whether numbers without a currency have thousands separators in one of the readings.

    Spaces alone may stand in telephone numbers and codes as well.
    """
    separators = {".": r"[,'’\x{A0}\x{202F}]", ",": r"[.'’\x{A0}\x{202F}]"}
    return not pc.any(pc.match_substring(bare, " ")).as_py() and any(
        pc.any(pc.match_substring_regex(bare, separators[one])).as_py() for one in readings
    )


def _decimal_sign(bare: pa.ChunkedArray, readings: list[str], signs: list[str]) -> str | None:
    """The decimal sign of all values; None where two would do."""
    if len(readings) < 2:
        return readings[0] if readings else None
    separated = pc.match_substring_regex(bare, "[.,]")
    n_separated = pc.sum(separated).as_py()
    if not n_separated or any(one.endswith(_ENGLISH) for one in signs):
        return "."
    if n_separated == len(bare) or n_separated < _FEWEST_GROUPED:
        return None
    return "." if pc.any(pc.match_substring(bare, ",")).as_py() else ","


_DIGITS = r"[+-]?\d+"
# RE2 patterns, each with what it is called and how its numbers are written plainly. A value is of
# the first kind that it fits.
_KINDS: tuple[tuple[str, str, str], ...] = (
    (rf"^\s*{_DIGITS}\s*$", "", ""),
    (rf"^\s*(?:{_DIGITS}\.?\d*|[+-]?\.\d+)(?:[eE][+-]?\d+)?\s*$", "a decimal point", ""),
    (
        r"^\s*[+-]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,}|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,}"
        r"|(?:['’ \x{A0}\x{202F}]\d{3})+(?:[.,]\d+)?)\s*$",
        "thousands separators",
        "leave the thousands separators out",
    ),
    (
        rf"^\s*(?:{_DIGITS},\d*|[+-]?,\d+)(?:[eE][+-]?\d+)?\s*$",
        "a decimal comma",
        "write all of them with a decimal point",
    ),
    (
        r"^\s*[+-]?\d*[.,]?\d+\s*%\s*$",
        "a percent sign",
        "leave the percent signs out and divide by 100",
    ),
    (_WITH_CURRENCY, "a currency sign", "leave the currency signs out"),
)
_LOOKED_AT = 1_000
_MOST = 0.9  # of the values read as numbers


def almost_numbers_note(values: pa.ChunkedArray, name: str, before: int = 0) -> str | None:
    """A note on a column of text that holds numbers, written in ways that are not read as such.

    It names each way of writing, its first value and row, counted from 1, and what to change.
    ``before`` is the number of rows of the file before these.

    Examples
    --------
    >>> almost_numbers_note(pa.chunked_array([["0.05", "0,05", "0.2"]]), "p").split(":")[0]
    "Column 'p' was kept as text, though its values read as numbers"
    >>> almost_numbers_note(pa.chunked_array([["a", "b"]]), "p") is None
    True
    """
    if _share_of_numbers(values.slice(0, _LOOKED_AT)) < _MOST:
        return None
    found, fixes, left = [], [], pc.is_valid(values)
    for pattern, what, fix in _KINDS:
        of_kind = pc.and_(left, pc.fill_null(pc.match_substring_regex(values, pattern), False))
        left = pc.and_not(left, of_kind)
        row = pc.index(of_kind, True).as_py()
        if row >= 0 and what:
            value, at = values[row].as_py().strip()[:40], before + row + 1
            found.append(f"{value} with {what} (first in row {at:,})")
            fixes += [fix] if fix else []
    if not fixes:
        return None
    return (
        f"Column {name!r} was kept as text, though its values read as numbers: "
        f"{' and '.join(found)}. To have it read as numbers, {' and '.join(fixes)}."
        + (
            " Probabilities, outcomes and forecasts may keep them."
            if len(found) == 1 and "%" in found[0]
            else ""
        )
    )


def plain_writing(value: str) -> str:
    """What to change in a column whose value reads as a number and is not one; "" for other text.

    Examples
    --------
    >>> plain_writing("0,05"), plain_writing("5%"), plain_writing("often")
    ('write all of them with a decimal point', 'leave the percent signs out and divide by 100', '')
    """
    for pattern, _, fix in _KINDS:
        if pc.match_substring_regex(pa.array([value]), pattern)[0].as_py():
            return fix
    return ""


def _share_of_numbers(values: pa.ChunkedArray) -> float:
    known = values.drop_null()
    if not len(known):
        return 0.0
    every = "|".join(pattern for pattern, _, _ in _KINDS)
    return float(pc.mean(pc.match_substring_regex(known, every).cast(pa.int8())).as_py())
