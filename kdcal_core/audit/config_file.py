"""The configuration that asks what an audit asked, as a TOML file with comments."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kdcal_core.audit.config import (
    WATCH_KEYS,
    WATCH_OF_CLASSES,
    WATCH_OF_FORECASTS,
    WatchLimits,
)
from kdcal_core.audit.content import AuditContent, Subject
from kdcal_core.checks import CHECKS, check_of
from kdcal_core.review import Decision, Limit
from kdcal_core.text import in_sentence, listed, printable

COMMAND = "kdcal audit run --config audit.toml --out audit"
_OF_AN_EVENT = ("auc_at_least", "rate_change_at_most")
_EXAMPLES = {
    "unknown_at_most": 0.05,
    "unknown_by_density_at_most": 0.05,
    "accuracy_at_least": 0.8,
    "auc_at_least": 0.8,
    "rate_change_at_most": 0.1,
    "calibration_error_at_most": 0.05,
    "crps_at_most": 1.0,
    "coverage_error_at_most": 0.05,
}


def config_text(
    subject: Subject,
    limits: Mapping[str, Limit],
    *,
    title: str,
    project: str = "",
    files: Mapping[str, str | Sequence[str]] | None = None,
    foreign: Sequence[str] = (),
    calibrator: str = "",
    required: Collection[str] = (),
    dependence: Sequence[tuple[str, str]] = (),
) -> str:
    """The configuration with which `COMMAND` asks the same, beside the same files.

    Every limit is in it, those that nobody changed too. All signs are printable.

    Parameters
    ----------
    limits : mapping of code to Limit
        Of all checks that are made.
    files : mapping of part to name or names, optional
        In place of the names of the subject's tables and model: "model", "predictions",
        "calibration", "evaluation", "training", "signature", "signature_key".
    foreign : sequence of str
        Names of the tables of foreign rows, beside ``files``.
    calibrator : str
        Name of a calibrator's file, if its output is judged.
    required : collection of str
        Codes of the checks that must be answered.
    dependence : sequence of (role, column)
        Columns by which rows may depend on one another, where nobody said yet whether it counts:
        "cluster" of what several rows belong to, "time" of dates.
    """
    named = {
        key: toml_string(one) if isinstance(one, str) else _strings(one)
        for key, one in (files or _names(subject)).items()
    }
    if not files:
        foreign = [one.name for one in subject.tables if one.part == "foreign"]
    named |= {"foreign": _strings(foreign)} if foreign else {}
    named |= {"calibrator": toml_string(calibrator)} if calibrator else {}
    lines = [
        f"# What '{COMMAND}' asks. Paths are relative to this file.",
        "",
        "[audit]",
        f"title = {toml_string(title)}",
        f"project = {toml_string(project)}"
        if project
        else '# project = "NAME"  # keeps the audit in the record of that project',
        '# not_enough_evidence = "own"  # or "pass", "fail"; "own" is exit code 3',
        "",
        "[files]",
        *(f"{key} = {value}" for key, value in named.items()),
        *_signature_lines(subject, named),
        "",
        "[roles]",
        *(f"{key} = {value}" for key, value in _roles(subject)),
        *_dependence_lines(subject, dependence),
        "",
        "# A check passes where its whole interval is within the limit, and fails where it is",
        '# wholly beyond. against = "baseline": the difference from the audit under [baseline].',
        *_chance_lines(limits),
    ]
    for code, limit in limits.items():
        check = check_of(code)
        lines += ["", f"# {check.title}: {in_sentence(check.question)}", f"[limits.{code}]"]
        lines += [f"{key} = {value}" for key, value in _limit(limit)]
    made = [one.code for one in CHECKS.values() if subject.task in one.tasks]
    if list(limits) != made and set(limits) <= set(required):
        lines += ["", "[checks]", f"only = {_strings(limits)}"]
    elif list(limits) != made:  # "only" would ask for an answer of each
        lines += ["", "[checks]", f"skip = {_strings(one for one in made if one not in limits)}"]
    lines += _decision_lines(subject.decision)
    if any(one.against == "baseline" for one in limits.values()):
        lines += ["", "[baseline]", 'audit = "earlier/audit.json"']
    else:
        lines += ["", "# [baseline]", '# audit = "earlier/audit.json"']
    lines += ["", *_watch_lines(subject)]
    return "\n".join([*lines, ""])


_WHY_DEPENDENT = {
    "cluster": 'rows of one belong together; "" if they do not',
    "time": "rows come in this order, and near ones may be alike",
}


def _dependence_lines(subject: Subject, dependence: Sequence[tuple[str, str]]) -> Iterator[str]:
    """That rows are independent, where nothing else is said; a comment where that is not known."""
    if subject.roles.cluster or subject.roles.time:
        return
    if not dependence:
        yield 'cluster = ""  # rows are independent, whatever their columns are called'
    if len({role for role, _ in dependence}) > 1:
        yield "# One of these two: rows that belong together, or their order in time."
    for role, name in dependence:
        yield f"# {role} = {toml_string(name)}  # {_WHY_DEPENDENT[role]}"
    if dependence and all(role == "time" for role, _ in dependence):
        yield '# cluster = ""  # rows are independent'


def _chance_lines(codes: Iterable[str]) -> Iterator[str]:
    """Which of the checks can have a limit against chance, as a comment."""
    tested = [code for code in codes if "chance" in check_of(code).ways]
    if tested:
        yield '# against = "chance": no more than a calibrated model of this size would show. It is'
        yield f"# only for {listed(tested, len(tested))}, which have a test of that."


def _decision_lines(decision: Decision) -> Iterator[str]:
    """The threshold and the costs that somebody chose; nothing without any."""
    threshold = {} if decision.threshold is None else {"threshold": decision.threshold}
    if chosen := threshold | decision.costs:
        yield from ("", "# From which probability rows are flagged, and what each case costs.")
        yield from ("[decision]", *(f"{key} = {float(one)!r}" for key, one in chosen.items()))


def _signature_lines(subject: Subject, named: Collection[str]) -> Iterator[str]:
    """What is known of the model's signature, as a comment, and how to ask for it again."""
    said = subject.model.signature if subject.model is not None else ""
    if said:
        yield f"# Its signature, when this was written: {printable(said, 200).rstrip('. ')}."
        if "signature" not in named:
            yield '# signature = "model.sig"  # name it and the key, and it is verified again'
            yield '# signature_key = "maker.pub"'


def _watch_lines(subject: Subject) -> Iterator[str]:
    """The table [watch] as a comment: defaults, and examples of what has none."""
    yield "# Limits of 'kdcal watch', which holds later tables against the reference rows."
    yield "# [watch]"
    made, regression = WatchLimits(), subject.task == "regression"
    others = set(WATCH_OF_CLASSES if regression else WATCH_OF_FORECASTS)
    others |= set() if len(subject.classes) == 2 else set(_OF_AN_EVENT)
    for key, words in WATCH_KEYS.items():
        if key not in others:
            known = getattr(made, key)
            yield f"# {key} = {_EXAMPLES[key] if known is None else known!r}  # {words}"
    if not regression:
        yield '# weighted_by = "scores"  # or "features": what reference rows are weighted by'


def config_of(content: AuditContent, project: str = "") -> str:
    """The configuration with which `COMMAND` makes an audit again, beside the same files."""
    chosen = content.calibrator
    # one that was only chosen is no part of what was judged
    calibrator = chosen.title if chosen is not None and chosen.rows else ""
    return config_text(
        content.subject,
        content.limits,
        title=content.title,
        project=project,
        calibrator=calibrator,
        required=content.checked.required,
    )


def _names(subject: Subject) -> dict[str, str | Sequence[str]]:
    named: dict[str, str | Sequence[str]] = {
        one.part: one.listed or one.name for one in subject.tables if one.part != "foreign"
    }
    if subject.model is not None:
        return {"model": subject.model.name, **named}
    # without a model the calibration set is the table of predictions
    return {"predictions": named.pop("calibration", ""), **named}


def _roles(subject: Subject) -> Iterator[tuple[str, str]]:
    roles, alone = subject.roles, subject.model is None
    yield "target", toml_string(roles.target or "")
    yield "task", toml_string(subject.task)
    for name in ("weight", "cluster", "time"):
        if column := getattr(roles, name):
            yield name, toml_string(column)
    if roles.majority:
        yield "majority", "true"
    if alone and roles.outputs:
        yield "outputs", _pairs(roles.outputs)
        yield "output_kind", toml_string(roles.output_kind)
    elif subject.classes:
        yield "classes", _strings(subject.classes)
    if subject.task == "regression" and alone:
        yield "family", toml_string(roles.family or "normal")
        yield "parameters", _pairs(roles.parameters)
    if subject.task == "regression" and roles.true_mean:
        yield "true_mean", toml_string(roles.true_mean)
    if subject.event is not None:
        yield "event", toml_string(subject.event)
    elif len(subject.classes) == 2:
        yield "view", '"confidence"  # in the predicted class, in place of an event'
    if subject.groups:
        yield "groups", _strings(subject.groups)


def _limit(limit: Limit) -> Iterator[tuple[str, str]]:
    if limit.against != "value":
        yield "against", toml_string(limit.against)
    if limit.against == "chance":
        return
    if math.isfinite(limit.low):
        yield "at_least", repr(float(limit.low))
    if math.isfinite(limit.high):
        yield "at_most", repr(float(limit.high))


def _strings(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(toml_string, texts))}]"


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{toml_string(a)} = {toml_string(b)}" for a, b in pairs) + "}"


def toml_string(text: str) -> str:
    r"""A basic string of TOML, in which every sign can be seen.

    Examples
    --------
    >>> print(toml_string('a "b"\nc\u202ed'))
    "a \"b\"\u000ac\u202ed"
    """
    return f'"{"".join(map(_sign, text))}"'


def _sign(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    code = ord(sign)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
