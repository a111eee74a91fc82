"""``kdcal watch``: a new table against the reference rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdcal_core.cli.audit_named import content_of_file, find_audit, the_record
from kdcal_core.cli.gate_outputs import check_outs
from kdcal_core.cli.terminal import (
    Report,
    progress_line,
    table,
    write_file,
)
from kdcal_core.text import counted, p_text, printable

if TYPE_CHECKING:
    from kdcal_core.audit import Audit, AuditContent, EventRates, Project, Watch
    from kdcal_core.diagnostics import ScoreShift

STATE, RESULT = "watch.json", "result.json"
_MOST_CLASSES = 20


def run(options: argparse.Namespace) -> Report:
    """Carry out ``kdcal watch``.

    Raises
    ------
    InputError
        For input that cannot be used. No file is written then.
    """
    from kdcal_core.audit import (
        read_config,
        run_watch,
        state_bytes,
        watch_json_text,
        watch_junit,
    )

    config = read_config(Path(options.config))
    reads = (options.config, options.data, *config.reads)
    continued = {STATE: options.state} if options.state else {}
    audit, judged = _audit(options.audit)
    reads += (options.audit,) if audit is not None and judged is None else ()
    out = check_outs(options.out, (RESULT, STATE), options.junit, reads, continued)
    with progress_line() as progress:
        watch = run_watch(
            config,
            options.data,
            state=options.state,
            audit=audit,
            judged=judged,
            seed=options.seed,
            progress=progress,
        )
    if out is not None:
        write_file(out / RESULT, watch_json_text(watch).encode("utf-8", "replace"))
        write_file(out / STATE, state_bytes(watch.state))
    if options.junit:
        write_file(Path(options.junit), watch_junit(watch).encode("utf-8", "replace"))
    if options.json:
        return Report(watch_json_text(watch).rstrip(), watch.exit_code, asked=True)
    said = watch_report(watch)
    if out is not None:
        said += f"\n\nWrote {printable(out / STATE, 200)}, the state for the next table."
    return Report(said, watch.exit_code)


def _audit(name: str | None) -> tuple[AuditContent | None, tuple[Project, Audit] | None]:
    """The audit of this file, or of the record with its project; nothing without a name."""
    if name is None:
        return None, None
    if Path(name).is_file():
        return content_of_file(name), None
    record = the_record()
    judged = find_audit(record, name)
    return record.content(judged[1]), judged


def watch_report(watch: Watch) -> str:
    """A watch, ready to print."""
    from kdcal_core.audit.watch_rates import event_rates
    from kdcal_core.audit.watch_words import (
        assumptions,
        cautions,
        headline,
        reference_words,
        result_words,
        score_name,
    )

    score = f"The watched score is the {score_name(watch)}."
    if watch.forecasts is not None:
        whose = "recalibrated forecasts" if watch.state.of.calibrator else "forecasts as given"
        score = f"Watched are the predicted medians and the interval widths of the {whose}."
    about = (
        f"{counted(watch.table.rows, 'new row')} of {watch.table.name}, "
        f"{watch.table.labelled:,} with a label, against {reference_words(watch)}. "
        f"{score}"
    )
    parts = [*(f"Warning: {printable(one, 600)}" for one in watch.notes)]
    parts += [printable(headline(watch), 600), printable(about, 600)]
    if watch.results:
        rows = [(one.verdict, one.title, result_words(watch, one)) for one in watch.results]
        parts.append(table(("Verdict", "Measure", "What was found"), rows, left=(0, 1, 2)))
    parts += [*(_drift(one) for one in watch.shifts), _performance(watch)]
    if watch.unknown is not None:
        parts.append(_unknown(watch))
    if watch.shares is not None:
        parts.append(_shares(watch))
    if (rates := event_rates(watch)) is not None:
        parts.append(_rates(rates))
    parts += [f"Caution: {printable(one, 600)}" for one in cautions(watch)]
    taken = [(of, said) for of, said in assumptions(watch)]
    parts.append(table(("About", "What is taken for granted"), taken, left=(0, 1)))
    return "\n\n".join(parts)


def _drift(shift: ScoreShift) -> str:
    from kdcal_core.diagnostics import estimate_text, value_text

    rows = [
        (
            one.estimate.label,
            estimate_text(one.estimate, chance=False),
            ""
            if one.estimate.expected is None
            else value_text(one.estimate, one.estimate.expected),
            p_text(one.p_value),
        )
        for one in shift.tests
    ]
    return table((f"Drift of the {shift.noun}", "New rows", "By chance up to", "p"), rows)


def _performance(watch: Watch) -> str:
    from kdcal_core.audit.watch_words import weights_words
    from kdcal_core.diagnostics import estimate_text

    rows = [
        (
            printable(one.title, 60),
            estimate_text(one.reference, chance=False),
            _short(estimate_text(one.new, chance=False)),
            "" if one.labels is None else estimate_text(one.labels, chance=False),
        )
        for one in watch.measures
    ]
    header = ("Measure", "Reference", "New, without labels", "New, from labels")
    last = len(header) if watch.labels is not None else len(header) - 1
    said = table(header[:last], [one[:last] for one in rows], left=(0, 1, 2, 3)[:last])
    return f"{said}\n{weights_words(watch)}"


def _short(said: str) -> str:
    """Why there is no value stands in a caution; here it is enough that there is none."""
    return "not given" if said.startswith("not given") else said


def _unknown(watch: Watch) -> str:
    from kdcal_core.diagnostics import estimate_text

    found = watch.unknown
    assert found is not None
    each = (("New rows", found.new), ("Reference rows", found.reference), ("Change", found.change))
    rows = [(title, estimate_text(one, chance=False), f"{one.n:,}") for title, one in each]
    said = table(("Unknown by density", "Share", "Rows"), rows, left=(0, 1))
    return f"{said}\np of no change: {p_text(found.p_value)}"


def _shares(watch: Watch) -> str:
    from kdcal_core.diagnostics import estimate_text, value_text

    found = watch.shares
    assert found is not None
    each = list(zip(watch.classes, found.shares, found.changes, strict=True))
    rows = [
        (
            printable(name, 60),
            "" if share.expected is None else value_text(share, share.expected),
            estimate_text(share, chance=False),
            estimate_text(change, chance=False),
        )
        for name, share, change in each[:_MOST_CLASSES]
    ]
    head = ("Class", "Reference, mean probability", "New, by label shift", "Change")
    said = table(head, rows)
    more = len(each) - len(rows)
    rest = f"\nand {counted(more, 'further class', 'further classes')}." if more > 0 else ""
    return f"{said}{rest}\np of no change: {p_text(found.p_value)}"


def _rates(found: EventRates) -> str:
    from kdcal_core.audit.watch_rates import rate_views, reference_rates_words

    rows = [(value, printable(words, 600)) for value, words in rate_views(found)]
    said = table((f"Rate of {found.event}", "How, and when to believe it"), rows, left=(0, 1))
    return f"{said}\n{printable(reference_rates_words(found), 600)}"
