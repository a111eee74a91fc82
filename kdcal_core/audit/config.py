"""What an audit of a pipeline asks: a TOML file, read strictly and written with comments."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape, has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, get_args

from kdcal_core.checks import CHECKS
from kdcal_core.data.parquet_folder import (
    allowed_roots,
    is_parted,
    name_of_parted,
    parquet_files,
)
from kdcal_core.data.schema import Family, OutputKind, Task
from kdcal_core.errors import InputError
from kdcal_core.review import CASES, Arrival, Decision, Limit, NamedFiles, Review, places_of
from kdcal_core.text import listed

Undecided = Literal["own", "pass", "fail"]
WeightedBy = Literal["scores", "features"]
_Kind = type | tuple[type, ...]
_ROLES = {
    "target": str,
    "task": str,
    "weight": str,
    "cluster": str,
    "time": str,
    "classes": list,
    "event": str,
    "view": str,
    "groups": list,
    "outputs": dict,
    "output_kind": str,
    "family": str,
    "parameters": dict,
    "true_mean": str,
    "majority": bool,
}
_FILES: dict[str, _Kind] = {
    "directory": str,
    "model": str,
    "calibrator": str,
    "calibration": (str, list),
    "evaluation": str,
    "predictions": (str, list),
    "training": str,
    "foreign": list,
    "signature": str,
    "signature_key": str,
}
_AUDIT = {"title": str, "project": str, "not_enough_evidence": str}
_CHECKS = {"only": list, "skip": list}
_BASELINE = {"audit": str}
_DECISION = {"threshold": float, **dict.fromkeys(CASES, float)}
_LIMIT = {"at_least": float, "at_most": float, "against": str}
WATCH_KEYS = {
    "psi_at_most": "population stability index of the scores; inf for no limit",
    "unknown_at_most": "share of rows whose score is unlike that of all reference rows",
    "unknown_by_density_at_most": "share of rows where a model with regions has seen hardly any",
    "accuracy_at_least": "share of right predictions",
    "auc_at_least": "AUROC of the event, with two classes",
    "rate_change_at_most": "change of the event's rate, up or down, with two classes",
    "calibration_error_at_most": "calibration error of the watched score; of a regression, the "
    "distance of the PIT values from uniform, once there are labels",
    "crps_at_most": "CRPS of a regression",
    "coverage_error_at_most": "coverage of the 50, 80 and 95% intervals of a regression, up or "
    "down from what is stated, once there are labels",
    "alpha": "chance that the sequential test ever signals for a calibrated model",
}
"""What the table ``[watch]`` may hold, each a number, and what it is a limit of."""

WATCH_OF_CLASSES = (
    "accuracy_at_least",
    "auc_at_least",
    "rate_change_at_most",
    "unknown_by_density_at_most",
)
WATCH_OF_FORECASTS = ("crps_at_most", "coverage_error_at_most")
"""Those of a classification, and those of a regression; the others are of both."""

_TABLES = ("audit", "files", "roles", "limits", "checks", "decision", "baseline", "watch")
_WORDS: dict[_Kind, str] = {
    str: "a text",
    list: "a list of texts",
    (str, list): "a text or a list of texts",
    dict: "a table of texts",
    float: "a number",
}


@dataclass(frozen=True)
class WatchLimits:
    """What `kdcal watch` holds a new table against; only what has a limit decides.

    Attributes
    ----------
    psi_at_most : float
        Of the population stability index of the scores; infinite for no limit.
    unknown_at_most : float or None
        Of the share of new rows whose score is unlike that of all reference rows, from 0 to 1.
    unknown_by_density_at_most : float or None
        Of the share of new rows that lie where the model has seen hardly any data, from 0 to 1. It
        needs a model with regions, to which a kernel density version is fitted.
    accuracy_at_least, auc_at_least, calibration_error_at_most : float or None
        From 0 to 1. Of a regression, the last is of the distance of the PIT values from uniform.
    crps_at_most, coverage_error_at_most : float or None
        Of a regression: the mean CRPS, and how far the coverage of its intervals may lie from what
        is stated.
    rate_change_at_most : float or None
        Of the event's rate, up or down: new rows minus reference rows.
    alpha : float
        Chance that the sequential test of calibration ever signals for a calibrated model.
    """

    psi_at_most: float = 0.2
    unknown_at_most: float | None = None
    unknown_by_density_at_most: float | None = None
    accuracy_at_least: float | None = None
    auc_at_least: float | None = None
    rate_change_at_most: float | None = None
    calibration_error_at_most: float | None = None
    crps_at_most: float | None = None
    coverage_error_at_most: float | None = None
    alpha: float = 0.05


@dataclass(frozen=True)
class AuditConfig:
    """What a pipeline's audit asks.

    Attributes
    ----------
    title : str
    project : str
        The project in whose record the audit is kept; empty for none.
    undecided : {"own", "pass", "fail"}
        What "not enough evidence" counts as: its own exit code, a pass or a fail.
    files : NamedFiles
        With absolute paths.
    calibrator : str or None
        A calibrator's file, whose output is audited in place of the model's.
    event, groups
        As of `kdcal_core.review.Question`.
    view : {"event", "confidence"}
    decision : Decision
        From which probability of the event rows are flagged, and what that costs.
    limits : dict of code to Limit
    codes : tuple of str
        The checks that are made; all without any.
    required : tuple of str
        Of these, the checks that must be answered: a file's ``only``, and those that it gives a
        limit other than their own.
    baseline : str
        The earlier audit that limits compare with: a file, or "latest" for the last approved one
        of the project; empty for none.
    signature, signature_key : str or None
        Files of an OpenSSF model signature and of its maker's public key.
    watch : WatchLimits
        Of later tables, which `kdcal watch` holds against the reference rows.
    weighted_by : {"scores", "features"}
        What the reference rows are weighted by, so that they resemble the new ones, for the
        estimates without labels.
    """

    title: str
    files: NamedFiles
    project: str = ""
    undecided: Undecided = "own"
    calibrator: str | None = None
    event: str | None = None
    groups: tuple[str, ...] = ()
    view: Literal["event", "confidence"] = "event"
    decision: Decision = field(default_factory=Decision)
    limits: dict[str, Limit] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    baseline: str = ""
    signature: str | None = None
    signature_key: str | None = None
    watch: WatchLimits = WatchLimits()
    weighted_by: WeightedBy = "scores"

    @property
    def reads(self) -> tuple[str, ...]:
        """Every file that it names, and those of a folder or a list of rows."""
        named = self.files
        one_each = (named.model, named.evaluation, named.training)
        if is_parted(named.rows):
            found = parquet_files(named.rows, allowed_roots() or None)
            rows = [str(path) for path, _ in found]
        else:
            rows = [named.table]
        others = (self.calibrator, self.signature, self.signature_key)
        baseline = "" if self.baseline == "latest" else self.baseline
        return tuple(filter(None, (*one_each, *rows, *named.foreign, *others, baseline)))


def toml_option(name: str, value: str = "") -> str:
    """How a configuration gives something.

    Examples
    --------
    >>> toml_option("outputs", "CLASS=COLUMN"), toml_option("output_kind", "percent")
    ('roles.outputs = {"CLASS" = "COLUMN"}', 'roles.output_kind = "percent"')
    >>> toml_option("data")
    'files.calibration'
    """
    key = "calibration" if name == "data" else name
    table = "files" if key in _FILES else "roles"
    if not value:
        return f"{table}.{key}"
    if "=" in value:
        pairs = (pair.partition("=") for pair in value.split(","))
        inner = ", ".join(f'"{left}" = "{right}"' for left, _, right in pairs)
        return f"{table}.{key} = {{{inner}}}"
    return f'{table}.{key} = "{value}"'


def read_toml(path: Path, what: str, *, name: str, write: str) -> dict[str, Any]:
    """The content of a TOML file.

    Parameters
    ----------
    path : Path
    what : str
        The file, as the beginning of a sentence.
    name, write : str
        What to do where it cannot be read, and where it is no TOML.

    Raises
    ------
    InputError
    """
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{what} cannot be read ({reason})", fix=name, file=str(path)) from error
    except (ValueError, RecursionError) as error:
        reason = str(error)[:120]
        raise InputError(f"{what} is not TOML ({reason})", fix=write, file=path.name) from error


def read_config(path: Path) -> AuditConfig:
    """Read a configuration.

    Raises
    ------
    InputError
        If it is no TOML, or has a key, check, limit or value that is not known: the nearest name
        is suggested.
    """
    content = read_toml(
        path,
        "The configuration",
        name="Name a file, or write one with 'kdcal audit init'.",
        write="Write one with 'kdcal audit init', and change that.",
    )
    try:
        return config_of_tables(content, path.absolute().parent)
    except InputError as error:
        raise error.at(file=path.name) from error


def config_of_tables(content: Mapping[str, Any], folder: Path) -> AuditConfig:
    """A configuration from the tables of its file, whose paths are relative to a folder.

    Raises
    ------
    InputError
        As of `read_config`.
    """
    _known(content, _TABLES, "")
    audit = _table(content, "audit", _AUDIT)
    files = _table(content, "files", _FILES)
    roles = _table(content, "roles", _ROLES)
    checks = _table(content, "checks", _CHECKS)
    decision = _table(content, "decision", _DECISION)
    baseline = _table(content, "baseline", _BASELINE).get("audit", "")
    named = _files(files, roles, folder)
    limits, codes = _limits(content.get("limits", {})), _codes(checks)
    watch = _table(content, "watch", {**dict.fromkeys(WATCH_KEYS, float), "weighted_by": str})
    weighted_by = _one_of(watch, "weighted_by", get_args(WeightedBy), "scores")
    watch.pop("weighted_by", None)
    if any(one.against == "baseline" for one in limits.values()) and not baseline:
        raise InputError(
            "Some limits compare with a baseline, and none is given",
            fix='Give one: baseline.audit = "audit.json" of an earlier audit.',
        )
    return AuditConfig(
        title=audit.get("title") or _name_of(named),
        project=audit.get("project", ""),
        undecided=_one_of(audit, "not_enough_evidence", get_args(Undecided), "own"),
        files=named,
        calibrator=_path(files.get("calibrator"), folder),
        signature=_path(files.get("signature"), folder),
        signature_key=_path(files.get("signature_key"), folder),
        event=roles.get("event"),
        view=_one_of(roles, "view", ("event", "confidence"), "event"),
        groups=_groups(roles),
        decision=Decision(
            decision.get("threshold"),
            {case: float(decision[case]) for case in CASES if case in decision},
        ),
        limits=limits,
        codes=codes,
        required=_required(checks.get("only", ()), limits, codes),
        baseline=baseline if baseline in ("", "latest") else str(_path(baseline, folder)),
        watch=_watch(watch),
        weighted_by=weighted_by,
    )


def _name_of(named: NamedFiles) -> str:
    return Path(named.model).name if named.model else name_of_parted(named.rows)


def _groups(roles: Mapping[str, Any]) -> tuple[str, ...]:
    """Columns of the declared groups, all different."""
    found = tuple(roles.get("groups", ()))
    if len(set(found)) < len(found):
        raise InputError("roles.groups names a column twice", fix="Name each column once.")
    return found


def _table(content: Mapping[str, Any], name: str, known: Mapping[str, _Kind]) -> dict[str, Any]:
    """A table of the configuration, with values of their kinds."""
    found = content.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"[{name}] is not a table", fix=f"Write [{name}] above its keys.")
    _known(found, known, name)
    for key, value in found.items():
        _check_kind(f"{name}.{key}", value, known[key])
    return dict(found)


def _known(found: Mapping[str, Any], known: Collection[str], table: str) -> None:
    for key in found:
        if key not in known:
            where = f"{table}.{key}" if table else f"[{key}]"
            raise InputError(f"There is no {where[:80]!r}", fix=_suggested(key, known))


def _suggested(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=len(known), cutoff=0.5)
    if not near:
        return f"Known are {listed(known, 20)}."

    def likeness(one: str) -> tuple[float, int]:
        """How like the name it is; of those that are equally like, how long they begin alike."""
        begin = takewhile(lambda signs: signs[0] == signs[1], zip(one, name, strict=False))
        return difflib.SequenceMatcher(None, one, name).ratio(), len(list(begin))

    return f"Did you mean {max(near, key=likeness)!r}?"


def _check_kind(where: str, value: Any, kind: _Kind) -> None:
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if kind is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    inner = value.values() if isinstance(value, dict) else value
    if fits and isinstance(value, list | dict):
        fits = all(isinstance(one, str) for one in inner)
    if not fits:
        raise InputError(f"{where} is not {_WORDS[kind]}", fix=f"Write {_WORDS[kind]} there.")


def _one_of(found: Mapping[str, Any], key: str, known: Sequence[str], default: str) -> Any:
    value = found.get(key, default)
    if value not in known:
        raise InputError(f"{key} cannot be {str(value)[:60]!r}", fix=_suggested(str(value), known))
    return value


def _files(files: Mapping[str, Any], roles: Mapping[str, Any], folder: Path) -> NamedFiles:
    named = dict(files)
    if "directory" in named:
        named = {**_in_directory(Path(str(_path(named["directory"], folder)))), **named}
    if "target" not in roles:
        raise InputError(
            "The column of the true class or outcome is not given",
            fix='Write target = "COLUMN" under [roles].',
        )
    without_model = "predictions" in named
    if not without_model and "calibration" not in named:
        raise InputError(
            "No rows are given",
            fix="Write calibration = FILE with model = FILE under [files], or predictions = FILE.",
        )
    pairs = {
        key: tuple((left, right) for left, right in roles[key].items())
        for key in ("outputs", "parameters")
        if key in roles
    }
    return NamedFiles(
        target=roles["target"],
        model=_path(named.get("model"), folder),
        data=None if without_model else _paths(named.get("calibration"), folder),
        predictions=_paths(named.get("predictions"), folder),
        evaluation=_path(named.get("evaluation"), folder),
        training=_path(named.get("training"), folder),
        foreign=tuple(str(_path(one, folder)) for one in named.get("foreign", ())),
        task=_one_of(roles, "task", get_args(Task), "classification") if "task" in roles else None,
        weight=roles.get("weight"),
        cluster=roles.get("cluster"),
        time=roles.get("time"),
        classes=tuple(roles["classes"]) if "classes" in roles else None,
        event=roles.get("event"),
        outputs=pairs.get("outputs"),
        output_kind=_one_of(roles, "output_kind", get_args(OutputKind), "probability")
        if "output_kind" in roles
        else None,
        family=_one_of(roles, "family", get_args(Family), "normal") if "family" in roles else None,
        parameters=pairs.get("parameters"),
        true_mean=roles.get("true_mean"),
        majority=roles.get("majority", False),
        option=toml_option,
    )


def _path(name: str | None, folder: Path) -> str | None:
    return None if name is None else str(folder / name)


def _paths(named: str | list[str] | None, folder: Path) -> str | tuple[str, ...] | None:
    """Files, folders and patterns; a pattern is in the name alone, not in the folder."""
    if isinstance(named, list):
        return tuple(str(_paths(one, folder)) for one in named)
    if named is None or (folder / named).exists() or not has_magic(named):
        return _path(named, folder)
    return str(escape(str(folder)) / Path(named))


def _in_directory(folder: Path) -> dict[str, Any]:
    """The files of a directory, told apart as the Load page does."""
    if not folder.is_dir():
        raise InputError("There is no such directory", fix="Check its path.", file=str(folder))
    paths = sorted(one for one in folder.iterdir() if one.is_file() and one.name[:1] != ".")
    files = [Arrival(one, one.name) for one in paths if one.suffix != ".toml"]
    found: dict[str, Any] = {}
    for path, place in zip(
        (Path(str(one.source)) for one in files), places_of(files, Review("a" * 16)), strict=True
    ):
        if place == "foreign":
            found.setdefault("foreign", []).append(str(path))
        elif place is not None:
            found[place] = str(path)
    if "model" not in found and "calibration" in found:
        found["predictions"] = found.pop("calibration")
    return found


def _limits(found: Any) -> dict[str, Limit]:
    if not isinstance(found, dict):
        raise InputError("[limits] is not a table", fix="Write [limits.KC001] above its ends.")
    limits = {}
    for code, ends in found.items():
        _require_check(code)
        if not isinstance(ends, dict):
            raise InputError(f"limits.{code} is not a table", fix=f"Write [limits.{code}].")
        _known(ends, _LIMIT, f"limits.{code}")
        for key, value in ends.items():
            _check_kind(f"limits.{code}.{key}", value, _LIMIT[key])
        try:
            limit = Limit(
                float(ends.get("at_least", -math.inf)),
                float(ends.get("at_most", math.inf)),
                ends.get("against", "value"),
            )
            limits[code] = CHECKS[code].chosen(limit)
        except OverflowError as error:
            raise InputError(
                f"limits.{code} has a number that is too large", fix="Leave that end out."
            ) from error
        except InputError as error:
            raise InputError(f"limits.{code}: {error.what}", fix=error.fix) from error
    return limits


def _watch(found: Mapping[str, Any]) -> WatchLimits:
    for key, value in found.items():
        if key in ("psi_at_most", "crps_at_most"):
            fits, range_words = value >= 0.0, "a number from 0"
        elif key == "alpha":
            fits, range_words = 0.0 < value < 1.0, "a number between 0 and 1"
        else:
            fits, range_words = 0.0 <= value <= 1.0, "a number from 0 to 1"
        if not fits:  # NaN fits nowhere
            raise InputError(f"watch.{key} is {value:g}", fix=f"Write {range_words} there.")
    return WatchLimits(**{key: float(value) for key, value in found.items()})


def _require_check(code: str) -> None:
    if code in CHECKS:
        return
    number = re.fullmatch(r"KC0*(\d{1,3})", code.upper())
    if number is not None and (meant := f"KC{number[1]:0>3}") in CHECKS:
        raise InputError(f"There is no check {code[:60]!r}", fix=f"Did you mean {meant!r}?")
    named = {one.title.lower(): one.code for one in CHECKS.values()}
    near = difflib.get_close_matches(code.lower().replace("_", " "), named, n=1, cutoff=0.6)
    fix = f"Did you mean {named[near[0]]} ({near[0]})?" if near else _suggested(code, tuple(CHECKS))
    raise InputError(f"There is no check {code[:60]!r}", fix=fix)


def _codes(checks: Mapping[str, Any]) -> tuple[str, ...]:
    for code in (*checks.get("only", ()), *checks.get("skip", ())):
        _require_check(code)
    only, skip = checks.get("only"), set(checks.get("skip", ()))
    if only is None and not skip:
        return ()
    kept = tuple(one for one in CHECKS if (only is None or one in only) and one not in skip)
    if not kept:
        raise InputError("No check is left to be made", fix="Name fewer under checks.skip.")
    return kept


def _required(
    only: Collection[str], limits: Mapping[str, Limit], codes: Collection[str]
) -> tuple[str, ...]:
    """The checks that must be answered, of those that are made.

    A limit that is a check's own asks for nothing more: 'kdcal audit init' writes it for all.
    """
    return tuple(
        code
        for code, one in CHECKS.items()
        if (code in only or limits.get(code, one.limit) != one.limit)
        and (not codes or code in codes)
    )
