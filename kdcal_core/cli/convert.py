"""``kdcal convert``: converts a pickle to a file that kdcal reads, on the user's own machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from kdcal_core.cli.terminal import Report, check_out
from kdcal_core.errors import InputError
from kdcal_core.text import printable


def run(options: argparse.Namespace) -> Report:
    """Convert ``options.source`` into ``options.out``; return the report.

    Raises
    ------
    InputError
        The source cannot be read or converted, or the target's folder is missing.
    """
    source, out = Path(options.source), Path(options.out)
    if not source.is_file():
        raise InputError("There is no such file", fix="Check its path.", file=str(source))
    check_out(options.out, (options.source,), force=options.force)
    from kdcal_core.models.convert import convert

    said = convert(source, out, example_width=options.example_width)
    if options.json:
        from kdcal_core.cli.as_json import json_report
        from kdcal_core.store.disk import digest_of

        return json_report(
            {"source": options.source, "said": said, "out": options.out, "sha256": digest_of(out)}
        )
    return Report(printable(said))
