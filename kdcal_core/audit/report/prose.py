"""Our own Markdown as HTML: the texts "How to read this", with the papers that they cite."""

from __future__ import annotations

import re
from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from kdcal_core.charts import cited_in

_LOWER = str.maketrans("0123456789aeijkmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑᵢⱼₖₘₙₒₚᵣₛₜᵤᵥₓ")
_FORMULA = re.compile(r"\$([^$\n]+)\$")


@cache
def _reader(*, links: bool) -> MarkdownIt:
    """CommonMark without HTML and images; it makes no link that runs anything."""
    others = [] if links else ["link", "autolink", "reference"]
    off = ["image", "html_inline", "html_block", *others]
    return MarkdownIt("commonmark", {"html": False}).disable(off)


def plain_formula(formula: str) -> str:
    r"""A short formula of our texts without TeX.

    Examples
    --------
    >>> plain_formula(r"\text{Conf}_1"), plain_formula(r"p_i = \hat F_i(y_i)")
    ('Conf₁', 'pᵢ = F̂ᵢ(yᵢ)')
    """
    text = re.sub(r"\\text\{([^}]*)\}", r"\1", formula)
    text = re.sub(r"\\hat ?\{?(\w)\}?", "\\1\N{COMBINING CIRCUMFLEX ACCENT}", text)
    text = re.sub(r"_\{?(\w)\}?", lambda found: found[1].translate(_LOWER), text)
    return text.replace("\\", "")


def prose(markdown: str, *, links: bool = True) -> Markup:
    """A text of ours as HTML.

    Parameters
    ----------
    markdown : str
    links : bool
        Whether links lead anywhere. Those of a text from an audit must not: whoever wrote the audit
        chose the address.

    Examples
    --------
    >>> prose("**Bars** count *rows*.")
    Markup('<p><strong>Bars</strong> count <em>rows</em>.</p>\\n')
    >>> prose("<script>alert(1)</script>")
    Markup('<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\\n')
    >>> prose("[Read](https://example.org) <https://example.org>", links=False)
    Markup('<p>[Read](https://example.org) &lt;https://example.org&gt;</p>\\n')
    """
    seen = "".join(sign for sign in markdown if sign == "\n" or sign.isprintable())
    plain = _FORMULA.sub(lambda found: plain_formula(found[1]), seen)
    return Markup(_reader(links=links).render(plain))


def how_to_read(text: str) -> Markup:
    """How a chart is read, and the papers that the text cites."""
    return prose(text, links=False) + prose(cited_in(text))
