"""What `kdcal watch` says: sentences, JSON by its published schema, and JUnit."""

from __future__ import annotations

import json
from typing import Any

from kdcal_core import __version__
from kdcal_core.audit.gate_words import finite, limit_json
from kdcal_core.audit.junit import Case, junit_text
from kdcal_core.audit.watch_limits import WatchResult, WithLabels
from kdcal_core.audit.watch_rates import disputed_rate, event_rates
from kdcal_core.audit.watch_result import Watch
from kdcal_core.charts import (
    e_process_words,
    measures_words,
    moved_beyond_chance,
    shares_beyond_chance,
    shares_words,
    shift_words,
)
from kdcal_core.checks import limit_text
from kdcal_core.diagnostics import (
    Estimate,
    ForecastMeasures,
    LabelFree,
    LabelShift,
    ScoreShift,
    SequentialCalibration,
    estimate_text,
)
from kdcal_core.text import counted, in_sentence, listed

JSON_FORMAT = 2
"""Of `watch_json`: increased when a field is renamed or removed or changes its meaning."""

_REMEDIES = {
    "unknown_at_most": "Look at these rows: the reference rows say nothing about them.",
    "unknown_by_density_at_most": "Look at these rows: the model has seen hardly any like them.",
    "psi_at_most": "Find out what changed, and audit the model on labelled rows like the new ones.",
    "coverage_error_at_most": "Recalibrate the model on recent labelled rows, and audit it again.",
    "alpha": "Recalibrate the model on recent labelled rows, and audit it again.",
}
_REMEDY = "Audit the model on labelled rows like the new ones before it is used on."


def headline(watch: Watch) -> str:
    """The verdict in a sentence."""
    rows = counted(watch.table.rows, "new row")
    by_verdict = {
        verdict: [one.title.lower() for one in watch.results if one.verdict == verdict]
        for verdict in ("fail", "not enough evidence")
    }
    if names := by_verdict["fail"]:
        return f"Beyond its limit on {rows}: {listed(names)}."
    if names := by_verdict["not enough evidence"]:
        return f"Not enough evidence on {rows}: {listed(names)}."
    return f"Nothing is beyond its limit on {rows}."


def beside(watch: Watch) -> LabelShift | ScoreShift | None:
    """What else is tested beside the first shift, in the same correction."""
    return watch.shares if watch.width is None else watch.width


def order_words(watch: Watch) -> str:
    """A warning where the test read outcomes in long runs, or nothing."""
    if not watch.state.in_runs:
        return ""
    stated = "probabilities" if watch.forecasts is None else "forecasts"
    return (
        "The outcomes stand in long runs, as in a table that is sorted by them. The sequential "
        f"test reads rows in their order and then signals for calibrated {stated} too: give "
        "the rows in the order in which they came."
    )


def score_name(watch: Watch) -> str:
    """What is watched in each row, in lower case. Untrusted text."""
    if watch.forecasts is not None:
        return "predicted median"
    return f"probability of {watch.event}" if watch.event else "confidence"


def reference_words(watch: Watch) -> str:
    """Which rows the new table is compared with, and which audit judged them. Untrusted text."""
    judged = "" if watch.audit is None else f", judged by {watch.audit.words}"
    return f"{watch.n_reference:,} reference rows: the {watch.which} set{judged}"


def finding(watch: Watch) -> str:
    """What has changed, and what to do about it. May hold untrusted text."""
    beyond = [one.title for one in watch.results if one.of_audit and one.verdict == "fail"]
    said = [_changes(watch), *filter(None, [disputed_rate(watch)])]
    if beyond:
        said.append(f"Beyond a limit of the audit: {in_sentence(listed(beyond))}.")
    return " ".join(said)


def _changes(watch: Watch) -> str:
    moved, test = moved_beyond_chance(watch.shift, beside(watch)), watch.state.test
    scores = shift_words(watch.shift, beside(watch))
    changed = scores
    if watch.width is not None and not moved and moved_beyond_chance(watch.width, watch.shift):
        changed, moved = shift_words(watch.width, watch.shift), True
    stated = "probabilities" if watch.forecasts is None else "forecasts"
    if watch.shares is not None and not moved and shares_beyond_chance(watch.shares, watch.shift):
        changed, moved = shares_words(watch.shares, watch.classes, watch.shift), True
    if test.crossed_at is not None:
        order = order_words(watch)
        who = "the labels contradict"
        if watch.test is None:  # this table has none that count
            who = "labels of an earlier table contradicted"
        return (f"{order} As they stand, " if order else "Recalibrate: ") + (
            f"{who} the stated {stated} (signal at labelled row "
            f"{test.crossed_at:,} of {test.n:,}){', and' if moved else ';'} {in_sentence(changed)}"
        )
    if moved:
        return f"{changed} {measures_words(watch.measures)}"
    labels = ""
    if watch.test is not None:
        n = counted(test.n, "label")
        labels = f", and {n} {'does' if test.n == 1 else 'do'} not contradict the {stated}"
    psi = scores.partition(": ")[2].rstrip(".")
    rows = counted(watch.table.rows, "new row")
    return f"Nothing beyond chance has changed in {rows}: {psi}{labels}."


def result_words(watch: Watch, one: WatchResult) -> str:
    """What was found, and the limit."""
    if one.limit is None or one.estimate is None:
        said = _signal_before(watch) if watch.test is None else e_process_words(watch.test)
        return f"{said} {order_words(watch)}".rstrip()
    said = estimate_text(one.estimate, chance=one.source == "scores")
    how = {"without labels": ", without labels", "labels": ", from labels"}
    whose = " (of the audit)" if one.of_audit else ""
    limit = f"limit {limit_text(one.limit, one.estimate)}{whose}"
    return f"{said}{how.get(one.source, '')}; {limit}."


def _signal_before(watch: Watch) -> str:
    before = watch.state.test
    lacks = "no labels" if watch.labels is None else "no labels that were not counted before"
    return (
        f"Recalibrate: the test signalled at labelled row {before.crossed_at:,} of an earlier "
        f"table, and this one has {lacks}."
    )


def weights_words(watch: Watch) -> str:
    """What the estimates without labels are made of.

    That is what reference rows were weighted by, and how many they then count as; of a regression
    the factor between the CRPS and what the forecasts expect.
    """
    if watch.forecasts is not None:
        factor = estimate_text(watch.forecasts.factor, chance=False)
        return (
            f"The CRPS of the {watch.n_reference:,} reference rows is {factor} times what their "
            "forecasts expect, and so it is expected of the new rows. Coverage and PIT distance "
            "only labels show."
        )
    found = watch.watched
    return (
        f"Weighted by {found.weighted_by} to resemble the new rows, {found.n_reference:,} "
        f"reference rows count as {found.effective_rows:,.0f}."
    )


def cautions(watch: Watch) -> tuple[str, ...]:
    """Cautions of all estimates, each once, and that two of them exclude each other."""
    more = filter(None, [disputed_rate(watch), order_words(watch)])
    return (*label_free_cautions(watch), *share_cautions(watch), *more)


def label_free_cautions(watch: Watch) -> tuple[str, ...]:
    """Cautions of the estimates without labels, each once."""
    if watch.forecasts is not None:
        return watch.forecasts.cautions
    parts: list[str] = []
    for one in _label_free(watch).values():
        parts += one.cautions
        if not one.covered:
            parts.append(
                "The reference rows do not cover the new ones, so there are no estimates without "
                f"labels ({one.rate.rows.interval})."
            )
    return tuple(dict.fromkeys(parts))


def share_cautions(watch: Watch) -> tuple[str, ...]:
    """Cautions of the classes' shares, or why there are none."""
    if watch.shares is not None:
        return watch.shares.cautions
    if watch.why_no_shares:
        return (f"The classes' shares cannot be estimated. {watch.why_no_shares}",)
    return ()


def assumptions(watch: Watch) -> tuple[tuple[str, str], ...]:
    """What each kind of number takes for granted: (kind, sentence)."""
    found = [
        ("Without labels", one)
        for one in (watch.forecasts or watch.performance.predictions).assumptions
    ]
    if watch.unknown is not None:
        found.append(
            (
                "Unknown rows",
                "A row is unknown if its density is below the floor of the model's kernel density "
                "version. Rows with usual inputs in a rare combination may not be.",
            )
        )
    if watch.shares is not None:
        found += [("Shares", one) for one in watch.shares.assumptions]
    if watch.test is not None:
        found += [("Test", one) for one in watch.test.assumptions]
    return tuple(found)


def _label_free(watch: Watch) -> dict[str, LabelFree]:
    if watch.forecasts is not None:
        return {}
    found = {"predictions": watch.performance.predictions}
    return found | ({} if watch.performance.event is None else {"event": watch.performance.event})


def watch_json(watch: Watch) -> dict[str, Any]:
    """What the command prints as JSON; its schema is `kdcal_core/audit/watch.schema.json`."""
    return {
        "format": JSON_FORMAT,
        "kdcal": __version__,
        "title": watch.title,
        "verdict": watch.verdict,
        "exit_code": watch.exit_code,
        "headline": headline(watch),
        "seed": watch.seed,
        "reference": {
            "set": watch.which,
            "rows": watch.n_reference,
            "sha256": watch.state.of.reference,
            "model": watch.state.of.model or None,
            "calibrator": watch.state.of.calibrator or None,
        },
        "audit": _audit(watch),
        "new": {
            "name": watch.table.name,
            "sha256": watch.table.sha256,
            "rows": watch.table.rows,
            "labelled": watch.table.labelled,
        },
        "earlier_tables": len(watch.state.tables) - 1,
        "task": "classification" if watch.forecasts is None else "regression",
        "classes": list(watch.classes),
        "watched": watch.event or None,
        "event": watch.asked_event or None,
        "results": [
            {
                "key": one.key,
                "title": one.title,
                "verdict": one.verdict,
                "source": one.source,
                "limit_of": "audit" if one.of_audit else "watch",
                "limit": None if one.limit is None else limit_json(one.limit),
                "estimate": None if one.estimate is None else _estimate(one.estimate),
                "said": result_words(watch, one),
            }
            for one in watch.results
        ],
        "drift": [
            {
                "of": shift.noun,
                "key": one.key,
                "estimate": _estimate(one.estimate),
                "p_value": one.p_value,
            }
            for shift in watch.shifts
            for one in shift.tests
        ],
        "bins": [
            {
                "of": shift.noun,
                "edges": [finite(one) for one in shift.bins.edges.tolist()],
                "reference": [int(one) for one in shift.bins.count],
                "new": [int(one) for one in shift.new_count],
            }
            for shift in watch.shifts
        ],
        "without_labels": {name: _of_label_free(one) for name, one in _label_free(watch).items()},
        "forecasts": _forecasts(watch),
        "unknown": _unknown(watch),
        "class_shares": _shares(watch),
        "event_rates": _event_rates(watch),
        "labels": _labels(watch),
        "test": None if watch.test is None else _test(watch.test),
        "assumptions": [{"of": of, "said": said} for of, said in assumptions(watch)],
        "cautions": list(cautions(watch)),
        "notes": list(watch.notes),
    }


def _audit(watch: Watch) -> dict[str, Any] | None:
    found = watch.audit
    if found is None:
        return None
    return {
        "id": found.audit or None,
        "title": found.title,
        "project": found.project or None,
        "state": found.state or None,
        "drafted": found.at or None,
        "sha256": found.content,
    }


def _forecasts(watch: Watch) -> dict[str, Any] | None:
    found = watch.forecasts
    if found is None:
        return None
    return {
        "crps": _estimate(found.crps),
        "width": _estimate(found.width),
        "factor": _estimate(found.factor),
        "outside": _estimate(found.outside),
        "covered": found.covered,
        "reference": _of_forecasts(found.reference),
        "labels": _of_forecasts(watch.labels)
        if isinstance(watch.labels, ForecastMeasures)
        else None,
    }


def _of_forecasts(found: ForecastMeasures) -> dict[str, Any]:
    return {
        "crps": _estimate(found.crps),
        "width": _estimate(found.width),
        "width_of": found.level,
        "pit_distance": _estimate(found.pit_distance),
        "coverage": [
            {"stated": one.level, "estimate": _estimate(one.coverage)} for one in found.coverage
        ],
    }


def _of_label_free(found: LabelFree) -> dict[str, Any]:
    of_both = {"rate": found.rate, "auc": found.auc}
    return {
        **{
            name: {
                "rows": _estimate(one.rows),
                "population": _estimate(one.population),
                "reference": _estimate(one.reference),
            }
            for name, one in of_both.items()
        },
        "calibration_error": {
            "rows": _estimate(found.calibration_error),
            "reference": _estimate(found.reference_error),
        },
        "weighted_by": found.weighted_by,
        "effective_rows": finite(found.effective_rows),
        "outside": _estimate(found.outside),
        "covered": found.covered,
    }


def _unknown(watch: Watch) -> dict[str, Any] | None:
    found = watch.unknown
    if found is None:
        return None
    return {
        "new": _estimate(found.new),
        "reference": _estimate(found.reference),
        "change": _estimate(found.change),
        "p_value": found.p_value,
    }


def _shares(watch: Watch) -> dict[str, Any] | None:
    found = watch.shares
    if found is None:
        return None
    return {
        "p_value": found.p_value,
        "fit_p_value": finite(found.fit_p_value),
        "converged": found.convergence.converged,
        "classes": [
            {
                "class": name,
                "share": _estimate(share),
                "change": _estimate(change),
                "miscalibrated": k in found.miscalibrated,
            }
            for k, (name, share, change) in enumerate(
                zip(watch.classes, found.shares, found.changes, strict=True)
            )
        ],
    }


def _event_rates(watch: Watch) -> dict[str, Any] | None:
    found = event_rates(watch)
    if found is None:
        return None
    return {
        "by_covariate_shift": _estimate(found.by_scores),
        "by_label_shift": _estimate(found.by_shares),
        "from_labels": None if found.from_labels is None else _estimate(found.from_labels),
        "reference": _estimate(found.reference),
        "reference_mean_probability": found.stated,
        "reference_calibrated": found.calibrated,
        "contradict": found.contradict,
    }


def _labels(watch: Watch) -> dict[str, Any] | None:
    found = watch.labels
    if not isinstance(found, WithLabels):
        return None
    return {
        "accuracy": _estimate(found.accuracy),
        "calibration_error": _estimate(found.calibration_error),
        "auc": None if found.auc is None else _estimate(found.auc),
        "rate": None if found.rate is None else _estimate(found.rate),
    }


def _test(test: SequentialCalibration) -> dict[str, Any]:
    return {
        "alpha": test.state.alpha,
        "rows": test.state.n,
        "e_value": finite(test.e_value),
        "log_e_value": float(test.log_e_values[-1]),
        "p_value": test.p_value,
        "crossed_at": test.crossed_at,
        "recalibrate": test.recalibrate,
        "fault": test.fault if test.recalibrate else None,
        "gap": _estimate(test.gap),
    }


def _estimate(one: Estimate) -> dict[str, Any]:
    return {
        "name": one.name,
        "label": one.label,
        "value": finite(one.value),
        "low": finite(one.low),
        "high": finite(one.high),
        "level": one.level,
        "rows": one.n,
        "interval": one.interval,
        "expected": None if one.expected is None else finite(one.expected),
    }


def watch_json_text(watch: Watch) -> str:
    """`watch_json` as text."""
    return json.dumps(watch_json(watch), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def watch_junit(watch: Watch) -> str:
    """The results as a JUnit test suite, as `gate_junit`."""
    undecided_fails = watch.exit_code in (1, 3) and watch.verdict == "not enough evidence"
    cases = []
    for one in watch.results:
        said = result_words(watch, one)
        if one.verdict == "fail" or (one.verdict == "not enough evidence" and undecided_fails):
            more = _REMEDIES.get(one.key, _REMEDY)
            cases.append(Case(one.title, "fail", said, one.verdict, more))
        else:
            cases.append(Case(one.title, "pass" if one.verdict == "pass" else "skip", said))
    return junit_text(f"kdcal watch {watch.title}", "kdcal.watch", cases)
