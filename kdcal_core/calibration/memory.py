"""Memory that is free for a fit, so that one which cannot succeed is refused beforehand."""

from __future__ import annotations

from kdcal_core.errors import InputError
from kdcal_core.jobs.memory import available_bytes


def refuse_beyond_memory(needed: int, what: str, fix: str) -> None:
    """Raise an :class:`InputError` with the estimate where ``needed`` bytes are not there.

    Examples
    --------
    >>> refuse_beyond_memory(1000, "A small fit", "Nothing needs to be done.")
    """
    available = available_bytes()
    if needed > available:
        raise InputError(
            f"{what} would take about {needed / 1e9:,.1f} GB of memory, and about "
            f"{available / 1e9:,.1f} GB are free",
            fix=fix,
        )
