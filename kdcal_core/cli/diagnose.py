"""``kdcal diagnose``: the app's estimates for a pipeline, through the same review room."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kdcal_core.cli import record
from kdcal_core.cli.measured import measure
from kdcal_core.cli.report import report
from kdcal_core.cli.text import printable
from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.parents import ParentInfo
from kdcal_core.review import (
    Review,
    TableInfo,
    Which,
    Workspace,
    add_model,
    add_table,
    create_review,
    load_set,
    score,
    set_roles,
)


def run(options: argparse.Namespace) -> None:
    """Measure, print, and write the JSON file where one is wanted.

    Raises
    ------
    InputError
        For what cannot be used, with its file, column and row.
    """
    _check(options)
    # Files are read in a worker process with limits, as hostile as an upload to the app.
    with tempfile.TemporaryDirectory(prefix="kdcal-") as folder:
        workspace = Workspace(Path(folder))
        review = _scored(workspace, options)
        measured = [
            measure(load_set(workspace, review.id, which), n_bins=options.bins, level=options.level)
            for which in _sets(review)
        ]
        content = record.record(measured, _inputs(review), _settings(options))
    texts = [report(one, review.tables[one.scored.name].name, options.level) for one in measured]
    if review.parent:
        texts.insert(0, printable(f"Model: {review.parent.name}, {review.parent.kind}"))
    print("\n\n".join(texts))
    if options.json:
        record.write(Path(options.json), content)


def _check(options: argparse.Namespace) -> None:
    if options.data and not options.model:
        raise InputError("--data needs --model", fix="Or give --predictions alone.")
    if options.predictions and options.model:
        raise InputError("--predictions takes no --model", fix="Give --data with --model.")
    for path in (options.model, options.data, options.predictions, options.evaluation):
        if path and not Path(path).is_file():
            raise InputError("There is no such file", fix="Check its path.", file=path)
    if options.json and not Path(options.json).absolute().parent.is_dir():
        raise InputError(
            "The folder to write into does not exist", fix="Create it first.", file=options.json
        )


def _scored(workspace: Workspace, options: argparse.Namespace) -> Review:
    review = create_review(workspace)
    if options.model:
        model = Path(options.model)
        review = add_model(workspace, review.id, model, model.name)
    table = Path(options.data or options.predictions)
    review = add_table(workspace, review.id, "calibration", table, table.name)
    wanted = _Wanted(options.target, options.weight, options.classes)
    roles = wanted.roles(review.tables["calibration"], review.parent, review.roles or Roles())
    set_roles(workspace, review.id, roles, options.classes)
    if options.evaluation:
        further = Path(options.evaluation)
        add_table(workspace, review.id, "evaluation", further, further.name)
    return score(workspace, review.id)


@dataclass(frozen=True)
class _Wanted:
    """What the user said of the columns; the rest is guessed as the app guesses it."""

    target: str
    weight: str | None
    classes: tuple[str, ...] | None

    def roles(self, table: TableInfo, parent: ParentInfo | None, guessed: Roles) -> Roles:
        """The role of each column.

        A weight or split column counts only where it is asked for by name.
        """
        for column in filter(None, (self.target, self.weight)):
            _need(table, column, "The table has no such column")
        plain = Roles(target=self.target, weight=self.weight)
        if parent is None:
            outputs = self._named(guessed.outputs)
            return replace(plain, outputs=outputs, output_kind=guessed.output_kind)
        for column in parent.feature_names or ():
            _need(table, column, "The model needs a column that the table does not have")
        return replace(plain, features=parent.feature_names or self._others(table, guessed))

    def _named(self, outputs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        if self.classes is None or len(self.classes) != len(outputs):
            return outputs  # a wrong number of names is told where they are set
        columns = (column for _, column in outputs)
        return tuple(zip(self.classes, columns, strict=True))

    def _others(self, table: TableInfo, guessed: Roles) -> tuple[str, ...]:
        """For a model that names no columns: all of the table that are nothing else."""
        taken = {self.target, self.weight, guessed.split, guessed.predicted}
        taken |= {column for _, column in guessed.outputs}
        return tuple(name for name in table.column_names if name not in taken)


def _need(table: TableInfo, column: str, what: str) -> None:
    if column not in table.column_names:
        known = ", ".join(table.column_names[:10]) + (", ..." if len(table.columns) > 10 else "")
        raise InputError(what, fix=f"Its columns are: {known}.", file=table.name, column=column)


def _sets(review: Review) -> tuple[Which, ...]:
    return ("calibration", "evaluation") if review.has_evaluation else ("calibration",)


def _inputs(review: Review) -> dict[str, dict[str, Any] | None]:
    inputs: dict[str, dict[str, Any] | None] = {"model": None}
    if review.parent:
        info = review.parent
        inputs["model"] = {"name": info.name, "kind": info.kind, "sha256": info.digest}
    for which, table in review.tables.items():
        inputs[which] = {"name": table.name, "rows": table.n_rows, "sha256": table.digest}
    return inputs


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    names = ("target", "weight", "classes", "bins", "level")
    return {name: getattr(options, name) for name in names}
