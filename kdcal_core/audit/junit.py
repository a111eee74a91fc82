"""What a gate found as a JUnit test suite, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree


@dataclass(frozen=True)
class Case:
    """One question of a suite.

    Attributes
    ----------
    name : str
    outcome : {"pass", "fail", "skip"}
    said : str
        What was found.
    kind : str
        Type of a failure: its verdict.
    more : str
        What to do about a failure.
    """

    name: str
    outcome: Literal["pass", "fail", "skip"]
    said: str
    kind: str = ""
    more: str = ""


def junit_text(title: str, classname: str, cases: Sequence[Case]) -> str:
    """The suite as XML; signs that XML cannot hold are replaced.

    Examples
    --------
    >>> print(junit_text("a", "b", [Case("c", "pass", "")]).splitlines()[1][:62])
    <testsuite name="a" tests="1" failures="0" errors="0" skipped=
    """
    suite = ElementTree.Element("testsuite", name=plain_xml(title))
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(one.outcome == "fail" for one in cases)))
    suite.set("errors", "0")
    suite.set("skipped", str(sum(one.outcome == "skip" for one in cases)))
    for one in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=classname, name=plain_xml(one.name)
        )
        said = plain_xml(one.said)
        if one.outcome == "fail":
            failure = ElementTree.SubElement(case, "failure", message=said, type=one.kind)
            failure.text = plain_xml(one.more)
        elif one.outcome == "skip":
            ElementTree.SubElement(case, "skipped", message=said)
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def plain_xml(text: str) -> str:
    """A text without the characters that XML cannot hold."""
    return "".join(
        one
        if one in "\t\n\r" or 0x20 <= ord(one) < 0xD800 or 0xE000 <= ord(one) < 0xFFFE
        or ord(one) > 0xFFFF
        else "\ufffd"
        for one in text
    )  # fmt: skip
