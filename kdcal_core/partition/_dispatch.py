"""Which module computes for codes of which kind; each is imported when it is first needed."""

from __future__ import annotations

from typing import Any

from kdcal_core.partition.codes import Codes, LeafCodes


def backend(codes: Codes) -> Any:
    if isinstance(codes, LeafCodes):
        from kdcal_core.partition import _forest

        return _forest
    from kdcal_core.partition import _plain

    return _plain
