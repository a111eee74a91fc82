"""Numbers, p values, lists and names as words: one way each, for screen, report and command line.

Names of files, columns and classes are untrusted. They pass through lists and counts as they are;
what puts them on a screen makes them harmless there: `escape_markdown` for Streamlit and plotly,
`escape_html` for HTML, `printable` for a terminal.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial

_INVISIBLE = "\u200b"  # zero-width space
# Everything that Markdown, Streamlit's directives, HTML or plotly's pseudo-HTML may read as a
# sign. Numeric entities show as the character in all of them and are never read as a sign,
# whereas a backslash would be visible in a chart.
_SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "\\`*_{}[]()#+-!|<>~$:&\"'=^@./%"}
# Streamlit looks for links, :emoji: and :material/icons: again in the finished text, after
# entities are resolved; an invisible character keeps these from forming.
_LATE_SIGNS = re.compile(r"[:@]|www(?=\.)", re.IGNORECASE)
JOINER = "\u200d"  # without a width of its own; between two emoji it makes one of them
_EMOJI_FORMS = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})  # control, format, surrogate, no character
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and signs that leave a blank
# Words that none of them reads as a sign: letters first, and only marks that are signs elsewhere,
# such as an @ without the full stop of an address after it, parentheses without brackets, or a <
# before a number, which begins no HTML.
_PLAIN_WORDS = re.compile(
    r"[^\W\d_](?:[^\W_]|[ ,'%…]|(?<=[^\W_])_+(?=[^\W_])|(?<=\w)[-./](?=\w)"
    r"|(?<= )[<>]=?(?=\d)|:(?= )|(?<=\w)@(?=[^\W_]+(?: |$))"
    r"|(?<= )\((?=\w)|(?<=\w)\)(?=[ ,]|$))*"
)
_MORE_DECIMALS = 3  # at most, to tell the end of an interval from a limit
_LONG = 1e15  # numbers of more digits are not read as digits
MINUS = "\N{MINUS SIGN}"  # as plotly writes it on every axis, and not the hyphen of a keyboard
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED = {raised: chr(plain) for plain, raised in _RAISED.items() if isinstance(raised, int)}
NUMBER = rf"[+\-{MINUS}]?[\d,]*\.?\d+(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?"
"""The pattern of a number as it is written here. A user's own text may have a hyphen."""
_POWER = re.compile("(?<=\\d) × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def formatted(value: float | Decimal, form: str) -> str:
    """A number in one of Python's formats, for people to read: with a minus sign, and powers of ten
    as on the axes of charts.

    Programs read what Python writes: JSON, files and controls take the number itself.

    Examples
    --------
    >>> formatted(-0.512, "+.2f"), formatted(3.0, "+g"), formatted(-1234.5, ",.0f")
    ('−0.51', '+3', '−1,234')
    >>> formatted(-2.4e-07, ".2g"), formatted(1e300, "g")
    ('−2.4 × 10⁻⁷', '1 × 10³⁰⁰')
    """
    digits, _, power = format(value, form).partition("e")
    signed = f"{MINUS}{digits[1:]}" if digits.startswith("-") else digits
    return f"{signed} × 10{str(int(power)).translate(_RAISED)}" if power else signed


def figures_text(value: float) -> str:
    """A number of unknown size and unit to four figures, thousands separated.

    Examples
    --------
    >>> figures_text(14546.2), figures_text(0.012345), figures_text(-2.0), figures_text(1.5e12)
    ('14,546', '0.01235', '−2', '1.5 × 10¹²')
    """
    return formatted(value, ",.0f" if 1000 <= abs(value) < 1e9 else ".4g")


def typed(text: str) -> str:
    """A number as :func:`formatted` writes it, in the characters of a keyboard, for programs.

    Examples
    --------
    >>> typed("−2.4 × 10⁻⁷"), typed("−0.5 (−0.9 to −0.1)")
    ('-2.4e-07', '-0.5 (-0.9 to -0.1)')
    """
    return _POWER.sub(_typed_power, text).replace(MINUS, "-")


def _typed_power(power: re.Match[str]) -> str:
    return f"e{int(power[1].translate(_LOWERED)):+03d}"


def number_text(value: float, width: float, percent: bool = False, largest: float = 0.0) -> str:
    """A number with as many decimals as its interval's ``width`` warrants.

    Outcomes come in any unit: what decimals cannot show, or only in a very long row of digits, is
    written as a power of ten. Numbers that stand together have one form where each is given the
    ``largest`` magnitude among them.

    Examples
    --------
    >>> number_text(0.04312, 0.02), number_text(0.9312, 0.02, percent=True)
    ('0.043', '93.1%')
    >>> number_text(2.41e-7, 1e-8), number_text(1.5e28, 1e27)
    ('2.4 × 10⁻⁷', '1.5 × 10²⁸')
    >>> number_text(0.412, 0.8), number_text(0.412, math.nan)  # the second has no interval
    ('0.41', '0.412')
    >>> number_text(0.9, 0.6, largest=1.2), number_text(0.0, 2e-6, largest=2e-6)
    ('0.9', '0')
    >>> number_text(-0.0431, 0.02), number_text(-0.0001, 0.02)
    ('−0.043', '0.000')
    >>> number_text(55.26206435, 2e-5), number_text(1507.321, 1e-3)  # at most five figures
    ('55.262', '1,507.3')
    """
    if not math.isfinite(value):
        return "not defined"
    factor = 100.0 if percent else 1.0
    size = max(abs(value), largest)
    spread, shown = width * factor, value * factor
    most = 3 if percent else 5
    if not percent and (abs(value) >= _LONG or (0 < size < 1e-3 and width < 1e-4)):
        return formatted(value, ".2g")
    if math.isfinite(spread) and spread > 1e-9 * abs(shown):  # less is rounding
        # one decimal of a number below 1 says too little, however wide its interval
        least = 2 if not percent and size <= 1.0 and width <= 1.0 else 0
        decimals = min(max(1 - math.floor(math.log10(2.0 * spread)), least), most)
        if size * factor >= 1.0:
            decimals = min(decimals, max(4 - math.floor(math.log10(size * factor)), 0))
    else:  # four figures
        decimals = min(max(3 - math.floor(math.log10(max(abs(shown), 1.0))), 0), most - 2)
    return formatted(shown, f"z,.{decimals}f") + "%" * percent  # z: a rounded zero has no sign


def range_text(
    low: float,
    high: float,
    percent: bool = False,
    largest: float = 0.0,
    apart_from: Sequence[float] = (),
) -> str:
    """An interval as "low to high", with as many decimals as its width warrants.

    An interval that excludes zero has no end that is written as zero, because a verdict may rest on
    its sign; nor is an end written as one of the limits that it is to be kept ``apart_from``. As in
    :func:`number_text`, ``largest`` is the largest magnitude beside it.

    Examples
    --------
    >>> range_text(0.912, 0.9345), range_text(0.0, 0.0312, percent=True)
    ('0.912 to 0.934', '0.0% to 3.1%')
    >>> range_text(-0.08, -0.0004), range_text(-0.08, 0.0004)
    ('−0.08 to −0.0004', '−0.08 to 0.00')
    >>> range_text(0.01, 0.0503), range_text(0.01, 0.0503, apart_from=(0.05,))
    ('0.010 to 0.050', '0.010 to 0.0503')
    >>> range_text(math.nan, math.nan)
    'no interval'
    """
    if math.isnan(low) or math.isnan(high):
        return "no interval"
    width, largest = high - low, max(abs(low), abs(high), largest)

    def end(value: float) -> str:
        for more in range(_MORE_DECIMALS + 1):
            words = partial(number_text, width=width / 10**more, percent=percent, largest=largest)
            if not any(value != one and words(value) == words(one) for one in apart_from):
                return words(value)
        return number_text(value, width, percent, largest)

    ends = [end(low), end(high)]
    near = 0 if low > 0.0 else 1
    away = low > 1e-4 * width or high < -1e-4 * width  # nearer ones say nothing about a sign
    if away and not re.search("[1-9]", ends[near]):
        shown = (low, high)[near] * (100.0 if percent else 1.0)
        ends[near] = formatted(shown, ".1g") + "%" * percent
    return " to ".join(ends)


def share_text(share: float) -> str:
    """A share of things that were counted, in percent; few of them are not none.

    Examples
    --------
    >>> share_text(0.0412), share_text(0.0004), share_text(0.9998)
    ('4.1%', 'less than 0.1%', 'more than 99.9%')
    >>> share_text(0.0), share_text(1.0)
    ('0%', '100%')
    """
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.0005:
        return "less than 0.1%"
    return "more than 99.9%" if share >= 0.9995 else f"{share:.1%}"


def p_text(p_value: float) -> str:
    """A p value: as many decimals as decide anything.

    Examples
    --------
    >>> p_text(0.4321), p_text(0.04321), p_text(0.0004321), p_text(3e-20)
    ('0.43', '0.043', '0.0004', 'below 0.0001')
    """
    if math.isnan(p_value):
        return "not defined"
    if p_value < 1e-4:
        return "below 0.0001"
    return f"{p_value:.{4 if p_value < 1e-3 else 3 if p_value < 0.1 else 2}f}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number of things, its thousands separated.

    Examples
    --------
    >>> counted(1, "row"), counted(1204, "row"), counted(2, "class", "classes")
    ('1 row', '1,204 rows', '2 classes')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def bytes_text(n_bytes: float) -> str:
    """A number of bytes, in units of 1,024.

    Examples
    --------
    >>> bytes_text(812), bytes_text(20480), bytes_text(3.25 * 2**20), bytes_text(5 << 29)
    ('812 bytes', '20 KiB', '3.2 MiB', '2.5 GiB')
    """
    if n_bytes < 1024:
        return counted(round(n_bytes), "byte")
    unit, size = next(
        (unit, n_bytes / 1024**power)
        for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB"))
        if n_bytes >= 1024**power
    )
    return f"{size:,.{0 if size >= 10 else 1}f} {unit}"


def seconds_text(seconds: float) -> str:
    """A time that was measured: two figures, and whole seconds from ten on.

    Examples
    --------
    >>> seconds_text(0.0234), seconds_text(1.26), seconds_text(99.7), seconds_text(1234.5)
    ('0.023 s', '1.3 s', '100 s', '1,234 s')
    >>> seconds_text(0.00002)
    'below 0.001 s'
    """
    if seconds < 0.001:
        return "below 0.001 s"
    return f"{seconds:,.0f} s" if seconds >= 9.95 else f"{seconds:.2g} s"


def and_more(rest: int, last: str = "and") -> str:
    """What follows the first of many: how many more there are, if any.

    Examples
    --------
    >>> f"The column 'age'{and_more(1203)} is empty"
    "The column 'age' and 1,203 more is empty"
    >>> and_more(0)
    ''
    """
    return f" {last} {rest:,} more" if rest > 0 else ""


def listed(names: Iterable[str], most: int = 5, *, last: str = "and", between: str = ",") -> str:
    """Names in a row, "a, b and c"; of more than ``most`` the first, and how many more there are.

    Parameters
    ----------
    names : iterable of str
    most : int
        How many are named at most, 1 or more.
    last : str
        "and", or "or".
    between : str
        ";" where the names themselves hold commas.

    Examples
    --------
    >>> listed(["a"]), listed("ab"), listed("abc"), listed("abcdefgh", 3)
    ('a', 'a and b', 'a, b and c', 'a, b, c and 5 more')
    >>> listed(["a, b", "c"], between=";"), listed("abc", 2, last="or")
    ('a, b; and c', 'a, b or 1 more')
    >>> listed([])
    ''
    """
    every = list(names)
    named = every[:most]
    if len(every) > most:
        named.append(and_more(len(every) - most, last).removeprefix(f" {last} "))
    if len(named) < 2:
        return "".join(named)
    before = between if between != "," else ""
    return f"{f'{between} '.join(named[:-1])}{before} {last} {named[-1]}"


_PEOPLE = (
    *("Brier", "Clopper", "Cox", "Dirichlet", "Gauss", "Hellinger", "Kolmogorov", "Platt", "Venn"),
    "Wasserstein",
)


def in_sentence(text: str) -> str:
    """A title or sentence after other words: its first letter is small unless it always is large.

    Examples
    --------
    >>> in_sentence("Log loss"), in_sentence("ECE, debiased"), in_sentence("A class is rare.")
    ('log loss', 'ECE, debiased', 'a class is rare.')
    >>> in_sentence("Brier score"), in_sentence("Platt scaling")
    ('Brier score', 'Platt scaling')
    """
    if text.startswith(_PEOPLE):
        return text
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def escape_markdown(text: object, limit: int = 80) -> str:
    """Text that shows as itself in Streamlit's Markdown and in plotly's labels.

    Control characters go, runs of blanks become one blank, and what is longer than ``limit``
    characters ends in an ellipsis.

    Parameters
    ----------
    text : object
        Untrusted text; other objects are turned into text first.
    limit : int
        Greatest number of visible characters, at least 1.

    Examples
    --------
    >>> escape_markdown("a*b")
    'a&#42;b'
    >>> escape_markdown("x" * 100, limit=5)
    'xxxx…'
    """
    late = _LATE_SIGNS.sub(lambda sign: sign.group() + _INVISIBLE, _plain(text, limit))
    return late.translate(_SIGNS)


_LINKS = (
    (re.compile(r"&(?=#|\w)"), "&amp;"),  # an entity may hide any sign below
    (re.compile(r"\\(?=[/.:@])"), r"\\" + _INVISIBLE),
    (re.compile(r"\](?=[(\[:])"), "]" + _INVISIBLE),
    (re.compile(r"<(?=[a-z/!?])", re.IGNORECASE), "&lt;"),
    (re.compile(r"(?<=:)(?=[/\\])|(?<=www)(?=\.)|(?<=@)(?=\w)", re.IGNORECASE), _INVISIBLE),
)


def without_links(markdown: str) -> str:
    """Markdown that keeps its emphasis, lists and formulas, but has no link, image or HTML.

    Examples
    --------
    >>> printed = without_links("**Bold** [text](https://example.org) <img src=x>")
    >>> printed.replace("\u200b", "~")
    '**Bold** [text]~(https:~//example.org) &lt;img src=x>'
    """
    markdown = "".join(
        sign for sign in markdown if sign == "\n" or unicodedata.category(sign) not in _UNSEEN
    )
    for pattern, instead in _LINKS:
        markdown = pattern.sub(instead, markdown)
    return markdown


def escape_label(text: object, limit: int = 80) -> str:
    """As :func:`escape_markdown`, for the label of an element that has a help button.

    Streamlit names that button after the label as it was given, so that an entity would be read
    aloud. Plain words therefore stay as they are.

    Examples
    --------
    >>> escape_label("Top-label log loss"), escape_label("Coverage 95%")
    ('Top-label log loss', 'Coverage 95%')
    >>> escape_label("FPR@95"), escape_label("ECE, debiased (l1, 15 equal-width bins)")
    ('FPR@95', 'ECE, debiased (l1, 15 equal-width bins)')
    >>> escape_label("log_income.csv"), escape_label("_a_")
    ('log_income.csv', '&#95;a&#95;')
    >>> escape_label("The probability of <=50K"), escape_label("of <b")
    ('The probability of <=50K', 'of &#60;b')
    >>> escape_label("a*b"), escape_label("- a")
    ('a&#42;b', '&#45; a')
    """
    plain = _plain(text, limit)
    words = _PLAIN_WORDS.fullmatch(plain) and not re.search(r"www\.", plain, re.IGNORECASE)
    return plain if words else escape_markdown(text, limit)


def escape_html(text: object, limit: int = 80) -> str:
    """Text that shows as itself in HTML, inside elements and quoted attributes.

    Control characters, blanks and length are treated as in :func:`escape_markdown`.

    Examples
    --------
    >>> escape_html('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(_plain(text, limit), quote=True)


def is_visible(text: str) -> bool:
    """Whether a text shows anything: more than blanks, format signs, fillers and lone accents.

    Examples
    --------
    >>> is_visible("a"), is_visible("🦊"), is_visible("\\u202e 1")
    (True, True, True)
    >>> is_visible("\\u200b\\u202e "), is_visible("\\u3164"), is_visible("")
    (False, False, False)
    """
    signs = (one for one in text if not one.isspace() and one not in _FILLERS)
    kinds = (unicodedata.category(one) for one in signs)
    return any(one not in _UNSEEN and not one.startswith("M") for one in kinds)


def printable(text: object, limit: int = 2000) -> str:
    """One line without control characters, which a terminal would obey.

    A joiner between two emoji, which makes one of them, stays.

    Examples
    --------
    >>> printable("red\\x1b[31m\\nnext")
    'red�[31m next'
    >>> printable("x" * 10, limit=5)
    'xxxx…'
    """
    line = " ".join(str(text)[: 10 * limit].split())
    shown = "".join(
        sign if sign.isprintable() or _joins(line, at) else "\ufffd" for at, sign in enumerate(line)
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _joins(line: str, at: int) -> bool:
    """Whether the sign there joins two emoji; those before it may have a form and a skin tone."""
    before = line[max(at - 3, 0) : at].rstrip(_EMOJI_FORMS)[-1:]
    pair = before + line[at + 1 : at + 2]
    return line[at] == JOINER and [unicodedata.category(one) for one in pair] == ["So", "So"]


def _plain(text: object, limit: int) -> str:
    """One line without control, format (such as right-to-left override) or surrogate characters."""
    line = re.sub(r"\s+", " ", str(text)[: 20 * limit + 1000])
    if not (line.isascii() and line.isprintable()):  # else there is nothing to look for
        line = "".join(sign for sign in line if unicodedata.category(sign) not in _UNSEEN)
    kept = line.strip()
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"
