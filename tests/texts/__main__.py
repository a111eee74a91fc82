"""Compare what is said with the stored texts, or store it: ``python -m tests.texts --write``.

Only the tests that hold a text are run, in all folders or in the files named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it: `texts`

from texts.snapshot import TESTS, TEXTS, WRITE


class _Holders:
    """Runs the tests that ask for the fixture, and no others."""

    def __init__(self, write: bool) -> None:
        self.write = write

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[WRITE] = self.write

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [one for one in items if "texts" in getattr(one, "fixturenames", ())]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.texts", description=__doc__)
    parser.add_argument("paths", nargs="*", help="test files or folders; all by default")
    parser.add_argument("--write", action="store_true", help="store what is said today")
    options, further = parser.parse_known_args()  # further ones are pytest's
    if options.write and not options.paths:
        for path in TEXTS.rglob("*.txt"):
            path.unlink()  # with what no test says any more
    holders = (path for path in TESTS.rglob("test_*.py") if "texts(" in path.read_text("utf-8"))
    paths = options.paths or [str(path) for path in sorted(holders) if TEXTS not in path.parents]
    return int(pytest.main(["-q", *paths, *further], plugins=[_Holders(options.write)]))


if __name__ == "__main__":
    sys.exit(main())
