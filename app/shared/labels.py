"""Labels, told apart: Streamlit knows an option, and a screen reader a button, by its text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdcal_core.text import escape_label


def unique_labels(texts: Sequence[str]) -> list[str]:
    """The texts in their order, with repeated ones numbered from the second on.

    Of two options with one label, Streamlit takes the last, whichever was chosen.

    Examples
    --------
    >>> unique_labels(["March", "April", "March", "March"])
    ['March', 'April', 'March (2)', 'March (3)']
    >>> unique_labels(["March", "March", "March (2)"])
    ['March', 'March (3)', 'March (2)']
    """
    taken, seen, labels = set(texts), set[str](), []
    following = dict.fromkeys(texts, 2)
    for text in texts:
        label = text
        while label in seen or (label != text and label in taken):
            label = f"{text} ({following[text]})"
            following[text] += 1
        seen.add(label)
        labels.append(label)
    return labels


def words_of(text: str, limit: int = 80) -> str:
    """The words of an untrusted text, for the label of a popover.

    Streamlit names an opened popover after its label as it was given, so that an entity would be
    read aloud. Where the text has signs that Markdown reads, they are left out.

    Examples
    --------
    >>> words_of("March, log_income.csv"), words_of("March <b>*audit*</b>")
    ('March, log_income.csv', 'March b audit b')
    """
    label = escape_label(text, limit)
    return " ".join(re.findall(r"[^\W_]+", text[:limit])) if "&" in label else label
