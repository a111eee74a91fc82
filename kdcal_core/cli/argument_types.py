"""What the words of an option are read as: names, pairs, numbers."""

from __future__ import annotations

import argparse
from typing import Any


class OneOrMany(argparse.Action):
    """Stores one word as it is, and several as a tuple; given again, it adds to them."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        """Store the words of the option."""
        known = getattr(namespace, self.dest, None) or ()
        found = (*((known,) if isinstance(known, str) else known), *values)
        setattr(namespace, self.dest, found[0] if len(found) == 1 else found)


class Listed(argparse.Action):
    """Stores names, or pairs whose first word is the name; given again, it adds to them."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        """Add the names of the option to those before it."""
        found = (*(getattr(namespace, self.dest, None) or ()), *values)
        if len({one if isinstance(one, str) else one[0] for one in found}) < len(found):
            raise argparse.ArgumentError(self, "the same name is given twice")
        setattr(namespace, self.dest, found)


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names, all different and not empty."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different names")
    return found


def parameters(text: str) -> tuple[tuple[str, str], ...]:
    """Parameters and their columns, "mean=mu,std=sigma".

    Examples
    --------
    >>> parameters("mean=mu, 0.5=the median")
    (('mean', 'mu'), ('0.5', 'the median'))
    """
    return _pairs([part.partition("=") for part in text.split(",")], text, "mean=mu,std=sigma")


def setting(text: str) -> tuple[str, str]:
    """A setting's name and its value.

    Examples
    --------
    >>> setting("max_depth=2"), setting("column=a=b")
    (('max_depth', '2'), ('column', 'a=b'))
    """
    name, sign, value = text.partition("=")
    if not name.strip() or not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not like max_depth=2")
    return name.strip(), value.strip()


def outputs(text: str) -> tuple[tuple[str, str], ...]:
    """Classes and their columns, "no=p_0,yes=p_1"; the last of several = signs separates them.

    Examples
    --------
    >>> outputs("<=50K=p_low, >50K=p_high")
    (('<=50K', 'p_low'), ('>50K', 'p_high'))
    """
    return _pairs([part.rpartition("=") for part in text.split(",")], text, "0=p_no,1=p_yes")


def _pairs(
    parts: list[tuple[str, str, str]], text: str, example: str
) -> tuple[tuple[str, str], ...]:
    found = tuple((name.strip(), column.strip()) for name, _, column in parts)
    if not all(name and column for name, column in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list like {example}")
    return found


def whole(text: str) -> int:
    """A whole number from 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def level(text: str) -> float:
    """A number between 0 and 1, both excluded."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value
