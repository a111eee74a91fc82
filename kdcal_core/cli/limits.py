"""``kdcal limits``: the limits that a server sets for its users, and what sets them."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from kdcal_core.cli.as_json import json_report
from kdcal_core.cli.terminal import Report, table
from kdcal_core.jobs import confinement
from kdcal_core.jobs.limits import worker_bytes
from kdcal_core.quotas import QUOTAS, WORKER, Quota


def run(options: Namespace) -> Report:
    """Every limit with its value in this environment, and how far processes are confined.

    Parameters
    ----------
    options : Namespace
        ``json`` : bool.

    Examples
    --------
    >>> run(Namespace(json=False)).text.splitlines()[0].split()
    ['variable', 'limits', 'value', 'set', 'by']
    """
    if options.json:
        found = [
            {"variable": one.variable, "value": _value(one), "unit": one.unit, "set": one.is_set}
            for one in QUOTAS
        ]
        return json_report({"limits": found, "confinement": asdict(confinement())})
    rows = [
        (one.variable, one.what, _words(one), "environment" if one.is_set else "default")
        for one in QUOTAS
    ]
    shown = table(("variable", "limits", "value", "set by"), rows, left=(0, 1, 3))
    return Report(f"{shown}\n\n{confinement().sentence}", asked=True)


def _value(quota: Quota) -> float:
    if quota is WORKER and not quota.is_set:
        return round(worker_bytes() / 2**30, 1)
    assert quota.value is not None
    return quota.value


def _words(quota: Quota) -> str:
    value = f"{_value(quota):,}"
    return value if quota.is_counted else f"{value} {quota.unit}"
