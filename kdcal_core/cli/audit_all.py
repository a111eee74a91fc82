"""``kdcal audit run --all``: many audits in one run, and one table of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kdcal_core.cli.audit import RUN_FILES, deliver, write_gate
from kdcal_core.cli.gate_outputs import check_outs
from kdcal_core.cli.terminal import Report, out_folder, progress_line, table, write_file
from kdcal_core.errors import InputError
from kdcal_core.jobs.executors import chosen_executor
from kdcal_core.text import counted, printable

if TYPE_CHECKING:
    from kdcal_core.audit import GateOutcome, NamedConfig


def run_all(options: argparse.Namespace) -> Report:
    """Run the audits, write their files, and report them in one table.

    Raises
    ------
    InputError
        For a list that cannot be used, and for files that may not be written. Input of one audit
        that cannot be used is a row of the table.
    """
    from kdcal_core.audit import gates_json_text, gates_junit, read_configs, run_gates, worst_code

    configs = read_configs(Path(options.all))
    folders = _folders(configs)
    names = [f"{folder}/{file}" for folder in folders for file in RUN_FILES]
    out = check_outs(options.out, names, options.junit, (options.all, *_reads(configs)))
    outcomes: list[GateOutcome] = []
    with (
        chosen_executor() as executor,
        progress_line() as progress,
        closing(run_gates(configs, executor=executor, progress=progress)) as done,
    ):
        for outcome, folder in zip(done, folders, strict=True):
            outcomes.append(outcome)
            if out is not None and outcome.gate is not None:
                write_gate(outcome.gate, out_folder(str(out / folder)))
    if options.junit:
        write_file(Path(options.junit), gates_junit(outcomes).encode("utf-8", "replace"))
    if any(one.gate is not None and one.gate.audit for one in outcomes):
        deliver()
    code = worst_code(outcomes)
    if options.json:
        return Report(gates_json_text(outcomes).rstrip(), code, asked=True)
    said = [_text(outcomes)]
    if out is not None:
        said.append(f"Wrote {printable(str(out), 200)}.")
    return Report("\n\n".join(said), code)


def _text(outcomes: Sequence[GateOutcome]) -> str:
    rows, below = [], []
    for one in outcomes:
        content = None if one.gate is None else one.gate.content
        judged = "" if content is None else f"{content.checked.n:,}"
        rows.append((one.config.name, one.verdict, judged, f"{one.exit_code}"))
        below.append(one.error if content is None else content.headline)
    verdicts = [one.verdict for one in outcomes]
    counts = ", ".join(
        f"{verdicts.count(verdict):,} {words}"
        for verdict, words in _WORDS.items()
        if verdict in verdicts
    )
    header = ("Audit", "Verdict", "Rows", "Exit code")
    said = table(header, rows, left=(0, 1), below=below)
    return f"{said}\n\n{counted(len(outcomes), 'audit')}: {counts}."


_WORDS = {
    "pass": "passed",
    "fail": "failed",
    "not enough evidence": "without enough evidence",
    "cannot be used": "with input that cannot be used",
}


def _folders(configs: Sequence[NamedConfig]) -> list[str]:
    """A folder for each audit, which says its place in the list and its name.

    Examples
    --------
    >>> from kdcal_core.audit import NamedConfig
    >>> _folders([NamedConfig("models/a b/audit.toml", Path("x"))])
    ['001-models-a-b-audit']
    """
    digits = max(3, len(str(len(configs))))
    plain = [re.sub(r"[^A-Za-z0-9._]+", "-", one.name.removesuffix(".toml")) for one in configs]
    return [f"{at:0{digits}}-{name.strip('-.')[-80:]}" for at, name in enumerate(plain, 1)]


def _reads(configs: Sequence[NamedConfig]) -> Iterable[str]:
    """Every file that the audits read; of a configuration with a fault, itself."""
    from kdcal_core.audit import read_config

    for one in configs:
        yield str(one.path)
        with suppress(InputError):
            yield from read_config(one.path).reads
