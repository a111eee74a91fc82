"""Untrusted text made harmless: names of files, columns and classes on their way to a screen."""

from __future__ import annotations

import html
import re
import unicodedata

_INVISIBLE = "\u200b"  # zero-width space
# Everything that Markdown, Streamlit's directives, HTML or plotly's pseudo-HTML may read as a
# sign. Numeric entities show as the character in all of them and are never read as a sign,
# whereas a backslash would be visible in a chart.
_SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "\\`*_{}[]()#+-!|<>~$:&\"'=^@./%"}
# Streamlit looks for links, :emoji: and :material/icons: again in the finished text, after
# entities are resolved; an invisible character keeps these from forming.
_LATE_SIGNS = re.compile(r"[:@]|www(?=\.)", re.IGNORECASE)


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


def escape_html(text: object, limit: int = 80) -> str:
    """Text that shows as itself in HTML, inside elements and quoted attributes.

    Control characters, blanks and length are treated as in :func:`escape_markdown`.

    Examples
    --------
    >>> escape_html('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(_plain(text, limit), quote=True)


def _plain(text: object, limit: int) -> str:
    """One line without control, format (such as right-to-left override) or surrogate characters."""
    blanks = re.sub(r"\s+", " ", str(text)[: 20 * limit + 1000])
    kept = "".join(sign for sign in blanks if unicodedata.category(sign) not in _UNSEEN).strip()
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
