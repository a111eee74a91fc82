"""How results, charts, tables and models show themselves in a terminal and in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from kdcal_core.text import counted, escape_html, listed, printable

_LONGEST = 200  # characters of a line


class Shown:
    """Shows an object in a few lines, however much it holds; names in it may be untrusted.

    Examples
    --------
    >>> class Box(Shown):
    ...     def _shown(self):
    ...         yield "Box", "a <small> one"
    ...         yield "Rows", "1,204"
    >>> Box()
    Box: a <small> one
      Rows: 1,204
    >>> Box()._repr_html_()
    '<table><tr><th>Box</th><td>a &lt;small&gt; one</td></tr><tr><th>Rows</th><td>1,204</td></tr>\
</table>'
    """

    @abstractmethod
    def _shown(self) -> Iterator[tuple[str, str]]:
        """What each line is, and its text; the first names the object."""

    def __repr__(self) -> str:
        lines = (f"{what}: {printable(text, _LONGEST)}" for what, text in self._shown())
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{escape_html(what)}</th><td>{escape_html(text, _LONGEST)}</td></tr>"
            for what, text in self._shown()
        )
        return f"<table>{''.join(rows)}</table>"


def names_text(names: tuple[str, ...], noun: str, plural: str | None = None) -> str:
    """How many names there are, and the first of them.

    Examples
    --------
    >>> names_text(("age", "job"), "column"), names_text(tuple("abcdefg"), "class", "classes")
    ('2 columns: age and job', '7 classes: a, b, c, d, e and 2 more')
    """
    return f"{counted(len(names), noun, plural)}: {listed((name[:40] for name in names), 5)}"
