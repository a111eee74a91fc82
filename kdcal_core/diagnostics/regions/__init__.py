"""Where in the inputs a model is wrong: a search corrected for chance, and fixed regions."""

from kdcal_core.diagnostics.regions.judging import (
    describe_pit_regions,
    describe_regions,
    join_searches,
)
from kdcal_core.diagnostics.regions.region import (
    ANY_PART,
    Region,
    RegionFault,
    RegionSearch,
    region_finding,
    search_finding,
)
from kdcal_core.diagnostics.regions.search import (
    find_pit_regions,
    find_regions,
    redraws_by_default,
)

__all__ = [
    "ANY_PART",
    "Region",
    "RegionFault",
    "RegionSearch",
    "describe_pit_regions",
    "describe_regions",
    "find_pit_regions",
    "find_regions",
    "join_searches",
    "redraws_by_default",
    "region_finding",
    "search_finding",
]


def __dir__() -> list[str]:
    return sorted(__all__)
