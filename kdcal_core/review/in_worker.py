"""The functions of the worker process, the only one that reads the content of uploaded files.

They take paths and return JSON; arrays and tables stay in files. Errors use the owner's name of a
file, not its name on disk. They also describe a table's columns, from which roles can be chosen.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types
from pyarrow import feather

from kdcal_core.data import (
    Reading,
    Roles,
    Table,
    Task,
    check_roles,
    classes_of,
    digest_arrays,
    feature_frame,
    fitness,
    output_matrix,
    read_columns,
    read_table,
    row_dependence,
    split_by_column,
    target_labels,
    weight_column,
)
from kdcal_core.data.column_kinds import simple, why_no_input
from kdcal_core.data.folder_parts import parts_of
from kdcal_core.data.labels import odd_answers
from kdcal_core.data.target_words import target_shows
from kdcal_core.data.times import time_span
from kdcal_core.errors import InputError, quiet
from kdcal_core.models import Model, ModelInfo, Regressor, load_model, model_info
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.review.review import LOOKED_AT, ColumnInfo, SetInfo, TableInfo
from kdcal_core.review.scoring import in_file, in_rows_of, predict, read_frame, score_regression
from kdcal_core.review.sealed_files import (
    dependence_arrays,
    scored_digest,
    seal,
    seal_folder,
)
from kdcal_core.review.set_summary import write_fitness, write_summary
from kdcal_core.store import decode, write_arrays
from kdcal_core.store.disk import digest_of
from kdcal_core.text import listed

_EXAMPLES = 3
_FIRST_ROWS = 5
_MAX_TEXT = 40
_OPENING = 0.3  # share of the progress of scoring that opening the model takes
_TRIED_ROWS = 2_000  # of which a model's predictions show what a target would be


def describe_columns(frame: pd.DataFrame) -> tuple[ColumnInfo, ...]:
    """One `ColumnInfo` for each column, in the table's order.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1.5, None, 1.5], "b": ["x", "y", "z"]})
    >>> [(c.name, c.kind, c.n_missing, c.n_distinct, c.examples) for c in describe_columns(frame)]
    [('a', 'number', 1, 1, ('1.5',)), ('b', 'text', 0, 3, ('x', 'y', 'z'))]
    """
    return tuple(_describe(str(name), frame.iloc[:, j]) for j, name in enumerate(frame.columns))


def _describe(name: str, column: pd.Series[Any]) -> ColumnInfo:
    distinct = column.iloc[:LOOKED_AT].dropna().unique()
    return ColumnInfo(
        name=name,
        kind=_kind(column.dtype),
        n_missing=int(column.isna().sum()),
        n_distinct=len(distinct),
        examples=tuple(_text(value) for value in distinct[:_EXAMPLES]),
        pair=_pair(column) if len(distinct) <= 2 else (),
        no_input=why_no_input(simple(name), column),
        first=tuple(_text(value) for value in column.iloc[:_FIRST_ROWS]),
    )


def _pair(column: pd.Series[Any]) -> tuple[str, ...]:
    """The two labels in all rows; the first rows of a sorted table have only one."""
    labels = column.dropna().unique()
    return classes_of(labels) if len(labels) == 2 else ()


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:_MAX_TEXT]


def _kind(dtype: Any) -> Literal["number", "text", "boolean", "date"]:
    if types.is_bool_dtype(dtype):
        return "boolean"
    if types.is_numeric_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype):
        return "date"
    return "text"


def inspect_model(
    path: str,
    name: str,
    frame_path: str | None = None,
    digest: str = "",
    task: Task | None = None,
    hint: Task | None = None,
    answers: dict[str, str] | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Load a model, and use it to guess the roles of the calibration table again.

    Parameters
    ----------
    task : str or None
        The user's choice; None if the file determines it.
    hint : str or None
        The likely task of the calibration table, for a file that does not name its own.

    Returns
    -------
    dict
        ``model``: a ModelInfo; ``roles``: Roles or None; ``notes``: the reader's warnings.
    """
    with in_file(name), quiet() as said:
        model = _load(path, name, task, hint, progress)
        info = model_info(model, path, name)
    reading = None
    if frame_path is not None:
        reading = _read_columns(Table(read_frame(frame_path), digest, name), info, answers=answers)
    return {"model": asdict(info), "reading": asdict(reading) if reading else None, "notes": said}


def read_again(
    frame_path: str,
    name: str,
    digest: str,
    model: dict[str, Any] | None,
    task: Task | None,
    answers: dict[str, str],
) -> dict[str, Any]:
    """The Reading of a stored table, for a chosen task or chosen answers."""
    table = Table(read_frame(frame_path), digest, name)
    info = decode(ModelInfo, model) if model else None
    return asdict(_read_columns(table, info, task, answers))


def show_targets(
    model: dict[str, str],
    frame_path: str,
    features: list[str],
    classes: list[str],
    targets: list[str],
    progress: Progress,
) -> list[str]:
    """What the model's predictions for some rows show if each of these columns is the target.

    Parameters
    ----------
    model : dict
        ``path`` and ``name``.
    features, targets : list of str
        Columns of the table.
    """
    opened = load_model(model["path"], name=model["name"], task="classification")
    frame = read_frame(frame_path)
    rows = frame.iloc[:: max(len(frame) // _TRIED_ROWS, 1)].dropna(subset=targets)
    rows = rows.reset_index(drop=True)
    proba = None
    if len(rows) and not isinstance(opened, Regressor):
        proba = predict(opened, rows[features], tuple(classes), progress)
    return [target_shows(rows[target], classes, proba) for target in targets]


def import_table(
    path: str,
    name: str,
    frame_path: str,
    model: dict[str, Any] | None,
    task: Task | None = None,
    answers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Read an uploaded table and keep it as an uncompressed Arrow file at ``frame_path``.

    Parameters
    ----------
    model : dict or None
        The ModelInfo of the model, if there is one: its names help to guess the roles.
    task : str or None
        The user's choice, for a table without a model.
    answers : dict or None
        The user's answers about its columns.

    Returns
    -------
    dict
        ``table``: a TableInfo; ``reading``: a Reading of its columns.
    """
    table = _read(path, name)
    with in_rows_of(table.frame):
        reading = _read_columns(table, decode(ModelInfo, model) if model else None, task, answers)
    kept = _keep_frame(table, Path(path), frame_path)
    return {"table": asdict(kept), "reading": asdict(reading)}


def divide_table(frame_path: str, table: dict[str, Any], column: str, paths: dict[str, str]) -> Any:
    """Divide a table's rows by its split column.

    Parameters
    ----------
    paths : dict
        Where to keep the rows of "calibration", "evaluation" and "training".

    Returns
    -------
    dict
        A TableInfo for each part that has rows.
    """
    whole = decode(TableInfo, table)
    frame = read_frame(frame_path)
    rows = split_by_column(frame, column, file=whole.name)
    parts = {"training": rows.pop("train", None), **rows}
    tables = {}
    for part, path in paths.items():
        positions = parts.get(part)
        if positions is not None:
            digest = digest_arrays(whole.digest, part)
            made = Table(frame.iloc[positions], digest, whole.name, whole.notes)
            tables[part] = asdict(_keep_frame(made, Path(frame_path), path))
    return tables


def rename_columns(frame_path: str, table: dict[str, Any], path: str) -> dict[str, Any]:
    """Keep a table at ``path`` with the names of columns that its ``other_names`` give it.

    Returns
    -------
    dict
        Its TableInfo, with a note on the names in the file.
    """
    whole = decode(TableInfo, table)
    frame = read_frame(frame_path).rename(columns=dict(whole.other_names))
    twice = next((str(name) for name in frame.columns[frame.columns.duplicated()]), None)
    if twice is not None:
        raise InputError(
            "The table would have two columns of this name",
            fix="Rename one of them in the file.",
            column=twice,
        )
    read = [f"{new!r} as {old!r}" for new, old in whole.other_names]
    digest = digest_arrays(whole.digest, *(name for pair in whole.other_names for name in pair))
    made = Table(frame, digest, whole.name, (*whole.notes, f"Read {listed(read)}."))
    return asdict(_keep_frame(made, Path(frame_path), path))


def score_tables(
    model: dict[str, str] | None,
    tables: list[dict[str, str]],
    roles: dict[str, Any],
    classes: list[str],
    progress: Progress,
) -> dict[str, Any]:
    """Score every table and save its arrays.

    Parameters
    ----------
    model : dict or None
        ``path`` and ``name``; None if the tables contain the outputs.
    tables : list of dict
        ``which``, ``name``, ``frame_path`` and ``folder``, a fresh folder for the arrays.

    Returns
    -------
    dict
        A SetInfo for each "which".
    """
    chosen = decode(Roles, roles)
    opened = None
    if model is not None:
        progress(0.0, "Opening the model")
        with in_file(model["name"]):
            opened = load_model(
                model["path"],
                name=model["name"],
                task=chosen.task,
                progress=part_of(progress, 0.0, _OPENING),
            )
        progress = part_of(progress, _OPENING, 1.0)
    return _score_all(tables, opened, chosen, classes, progress)


def open_sample(
    model: dict[str, str] | None,
    tables: list[dict[str, str]],
    asides: list[dict[str, str]],
    target: str,
    classes: list[str],
    progress: Progress,
) -> dict[str, Any]:
    """All steps of a shipped sample in one call: inspect the model, read and score its tables.

    Parameters are those of `score_tables`; each table also has a ``path``. ``asides`` are the
    training and the foreign tables: ``path``, ``name`` and ``frame_path`` of each.

    Returns
    -------
    dict
        ``model``, ``roles``, ``tables`` and ``sets``, as returned by the single steps;
        ``asides``: a TableInfo for each.
    """
    opened, info = None, None
    if model is not None:
        progress(0.0, "Opening the model")
        opened = load_model(model["path"], name=model["name"])
        info = model_info(opened, model["path"], model["name"])
    roles: Roles | None = None
    infos = {}
    for one in tables:
        table = _read(one["path"], one["name"])
        if roles is None:
            roles = _read_columns(table, info, answers={"target": target}).roles
        infos[one["which"]] = asdict(_keep_frame(table, Path(one["path"]), one["frame_path"]))
    sets = _score_all(tables, opened, roles or Roles(), classes, progress)
    return {
        "model": asdict(info) if info else None,
        "roles": asdict(roles) if roles else None,
        "tables": infos,
        "sets": sets,
        "asides": [
            asdict(
                _keep_frame(_read(one["path"], one["name"]), Path(one["path"]), one["frame_path"])
            )
            for one in asides
        ],
    }


def _score_all(
    tables: list[dict[str, str]],
    model: Model | Regressor | None,
    roles: Roles,
    classes: list[str],
    progress: Progress,
) -> dict[str, Any]:
    """Score every table; the calibration set is first and determines the spread of the other."""
    sets: dict[str, Any] = {}
    spread: float | None = None
    for index, one in enumerate(tables):
        report = part_of(progress, index / len(tables), (index + 1) / len(tables))
        report(0.0, f"Scoring the {one['which']} rows")
        table = Table(read_frame(one["frame_path"]), "", one["name"])
        if roles.task == "regression":
            regressor = cast("Regressor | None", model)
            info = score_regression(table, regressor, roles, one["folder"], spread, report)
            spread = info.spread
        else:
            classifier = cast("Model | None", model)
            info = _score(table, classifier, roles, classes, one["folder"], report)
        sets[one["which"]] = asdict(info)
    return sets


def _load(
    path: str, name: str, task: Task | None, hint: Task | None, progress: Progress
) -> Model | Regressor:
    if task is None and hint == "regression":
        try:
            return load_model(path, name=name, task=hint, progress=progress)
        except InputError:  # the file is for the other task, or faulty for both
            return load_model(path, name=name, progress=progress)
    return load_model(path, name=name, task=task, progress=progress)


def _score(
    table: Table,
    model: Model | None,
    roles: Roles,
    classes: list[str],
    folder: str,
    progress: Progress,
) -> SetInfo:
    names = tuple(classes)
    with in_file(table.name), in_rows_of(table.frame):
        check_roles(
            table,
            roles,
            classes=names,
            n_features=model.n_features if model else None,
            feature_names=model.feature_names if model else None,
            needs_outputs=model is None,
        )
        y = target_labels(table, roles, names)
        weight = weight_column(table, roles)
        dependence = row_dependence(table, roles)
        if model is None:
            proba = output_matrix(table, roles, names)
        else:
            proba = predict(model, feature_frame(table, roles), names, progress)
    path = Path(folder)
    path.mkdir(mode=0o700)
    units = dependence_arrays(dependence)
    write_arrays(path, {"proba": proba, "y": y, "weight": weight, **units})
    alone = weight is None and dependence is None
    write_summary(path, proba, y, names, table.frame, independent=alone)
    write_fitness(path, len(y), lambda: fitness(proba, y, names))
    seal_folder(path)
    odd = odd_answers(proba, y, names)
    return SetInfo(
        digest=scored_digest(proba, y, weight, dependence, names),
        n_rows=len(y),
        accuracy=float(np.mean(proba.argmax(axis=1) == y)),
        folder=path.name,
        doubts=(odd.sentence,) if odd is not None and odd.beyond_chance else (),
        swapped=odd is not None and odd.swapped,
        class_rows=tuple(np.bincount(y, minlength=len(names)).tolist()),
        units=0 if dependence is None else dependence.n_units,
        span=() if roles.time is None else time_span(table.frame[roles.time]),
        answers=scored_digest(proba, y, None, None, names),
    )


def _read_columns(
    table: Table,
    model: ModelInfo | None,
    task: Task | None = None,
    answers: dict[str, str] | None = None,
) -> Reading:
    if model is None:
        return read_columns(table, task=task, answers=answers)
    return read_columns(
        table,
        classes=model.classes if model.named_classes else None,
        n_classes=len(model.classes) or None,
        feature_names=model.feature_names,
        n_features=model.n_features,
        task=model.task,
        family=model.family,
        answers=answers,
    )


def _read(path: str, name: str) -> Table:
    with in_file(name):
        return read_table(path, name=name)


def _keep_frame(table: Table, source: Path, frame_path: str) -> TableInfo:
    # the index of a divided table is the rows' position in the file
    arrow = pa.Table.from_pandas(table.frame)
    folder = parts_of(table.frame)
    # uncompressed, so that it can be memory-mapped
    feather.write_feather(arrow, frame_path, compression="uncompressed")
    seal(Path(frame_path))
    return TableInfo(
        name=table.name,
        digest=table.digest,
        n_rows=table.n_rows,
        columns=describe_columns(table.frame),
        notes=tuple(table.notes),
        size_bytes=source.stat().st_size,
        file=Path(frame_path).name,
        sha256=digest_of(Path(frame_path)),
        partial=() if folder is None else folder.partial,
    )
