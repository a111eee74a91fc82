"""Findings of the regression pages: results as plain sentences with numbers.

Names of regions pass through as they are: callers escape them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdcal_core.diagnostics.regression.coverage import Coverage, CoverageRow, coverage_finding
from kdcal_core.diagnostics.regression.fault import Fault, FaultKind
from kdcal_core.diagnostics.regression.local import LocalPit
from kdcal_core.diagnostics.regression.regions import RegionPit
from kdcal_core.text import listed

_ADVERBS: dict[FaultKind, str] = {
    "too low": "predictions are too low",
    "too high": "predictions are too high",
    "too narrow": "stated spreads are too narrow",
    "too wide": "stated spreads are too wide",
    "other": "stated distributions have the wrong shape",
}
_OPPOSITES = (("too low", "too high"), ("too narrow", "too wide"))


def regression_findings(
    coverage: Coverage,
    fault: Fault,
    *,
    regions: Sequence[RegionPit] = (),
    local: LocalPit | None = None,
    fitted_spread: bool = False,
) -> tuple[str, ...]:
    """The main findings: over all rows, then where they differ.

    Parameters
    ----------
    coverage : Coverage
        Of all rows; the sentence speaks of its 95% intervals, or its last row where it has none.
    fault : Fault
        Of all rows.
    regions : sequence of RegionPit, optional
        A partition or the stretches of a column.
    local : LocalPit, optional
        Neighbourhoods on the map.
    fitted_spread : bool
        Whether the model gives single numbers, whose one spread was fitted to residuals.

    Returns
    -------
    tuple of str
        One to four sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.diagnostics.regression import coverage as covered, fault as found_fault
    >>> from kdcal_core.distributions import Normal
    >>> y = np.linspace(-1.9, 1.9, 200)
    >>> states = Normal(np.zeros(200), 1.0)
    >>> found = regression_findings(covered(states, y), found_fault(states.cdf(y)))
    >>> found[0]
    'Stated 95% intervals hold 100.0% (98.2% to 100.0%, 200 rows): more than they say.'
    """
    found = [coverage_finding(_main_row(coverage), fitted_spread=fitted_spread)]
    if fault.kind != "none":
        found.append(fault.words)
    if regions:
        found.append(regions_finding(regions))
    if local is not None:
        found.append(local_finding(local))
    return tuple(found)


def regions_finding(regions: Sequence[RegionPit]) -> str:
    """Which of the regions are faulty, the worst of them, and whether opposite faults cancel."""
    faulty = [region for region in regions if region.fault.kind != "none"]
    if not faulty:
        return f"None of {len(regions):,} regions departs from calibration beyond chance."
    worst = max(faulty, key=_evidence)
    verb = "departs" if len(faulty) == 1 else "depart"
    lead = f"{len(faulty):,} of {len(regions):,} regions {verb} from calibration"
    held = [region.coverage.coverage for region in regions if region.coverage is not None]
    if held:
        low, high = (100 * edge(estimate.value for estimate in held) for edge in (min, max))
        lead += f", their 95% intervals hold from {low:.0f}% to {high:.0f}%"
    lead += _cancel({region.fault.kind for region in faulty})
    words = worst.fault.words.replace(" here", "", 1)
    return f"{lead}. Most of all in {worst.name}, where {words[0].lower()}{words[1:]}"


def local_finding(local: LocalPit) -> str:
    """Where on the map predictions are faulty, and whether opposite faults cancel."""
    count = len(local.kind)
    looked = f"{count:,} neighbourhoods of {local.k:,} rows each"
    kinds: list[FaultKind] = [kind for kind in _ADVERBS if local.share(kind) > 0]
    if not kinds:
        return f"None of {looked} departs from calibration beyond chance."
    shares = [
        f"{_ADVERBS[kind]} in {round(local.share(kind) * count):,}"
        for kind in sorted(kinds, key=lambda kind: -local.share(kind))
    ]
    low, high = 100 * local.coverage.min(), 100 * local.coverage.max()
    return (
        f"Of {looked}, {listed(shares)}{_cancel(set(kinds))}; 95% intervals hold from "
        f"{low:.0f}% to {high:.0f}% of a neighbourhood."
    )


def _main_row(coverage: Coverage) -> CoverageRow:
    at95 = [row for row in coverage.rows if abs(row.level - 0.95) < 1e-9]
    return at95[0] if at95 else coverage.rows[-1]


def _cancel(kinds: set[FaultKind]) -> str:
    if any(a in kinds and b in kinds for a, b in _OPPOSITES):
        return ", opposite faults that partly cancel in the whole"
    return ""


def _evidence(region: RegionPit) -> float:
    """Squared departure times rows, which still orders faults whose p values are 0."""
    return float(region.ecdf.effective * (region.ecdf.difference @ region.ecdf.difference))
