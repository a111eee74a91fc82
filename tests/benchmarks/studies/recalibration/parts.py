"""The parts of the study by name; each is a module with ``tasks``, ``run`` and ``write``."""

from __future__ import annotations

from types import ModuleType

from tests.benchmarks.studies.recalibration import (
    real,
    regularised,
    repairs,
    study,
    table1,
    table2,
    table3,
)

PARTS: dict[str, ModuleType] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "study": study,
    "real": real,
    "repairs": repairs,
    "regularised": regularised,
}
