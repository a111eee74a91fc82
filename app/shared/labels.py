"""Labels of a choice, told apart: Streamlit knows an option by the text that it shows."""

from __future__ import annotations

from collections.abc import Sequence


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
    for text in texts:
        label, number = text, 2
        while label in seen or (label != text and label in taken):
            label, number = f"{text} ({number})", number + 1
        seen.add(label)
        labels.append(label)
    return labels
