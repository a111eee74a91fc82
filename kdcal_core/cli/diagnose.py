"""``kdcal diagnose``: the app's estimates for a pipeline, through the same review room."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kdcal_core.cli import record, regression
from kdcal_core.cli.measured import Measured, measure
from kdcal_core.cli.measured_regression import MeasuredRegression
from kdcal_core.cli.outputs import copies_words, doubts_words, outputs_words, table_notes
from kdcal_core.cli.regression import need
from kdcal_core.cli.regression_report import regression_report
from kdcal_core.cli.report import report
from kdcal_core.cli.standard_input import with_standard_input
from kdcal_core.cli.writing import check_out
from kdcal_core.data import Roles, classes_of
from kdcal_core.data.roles import output_kind_named
from kdcal_core.errors import InputError
from kdcal_core.models import ModelInfo
from kdcal_core.review import (
    Review,
    ReviewReader,
    TableInfo,
    Which,
    Workspace,
    add_model,
    add_table,
    create_review,
    load_set,
    score,
    set_roles,
    set_task,
)
from kdcal_core.text import printable

_BINS = 15


def run(options: argparse.Namespace) -> str:
    """Measure, write the JSON file if asked, and return the report or the JSON itself.

    Raises
    ------
    InputError
        For what cannot be used, with its file, column and row.
    """
    with with_standard_input(options) as given:
        return _run(given)


def _run(options: argparse.Namespace) -> str:
    check_files(options)
    to_output = options.json == "-"
    if options.json is not None and not to_output:
        read = (options.data, options.predictions, options.model, options.evaluation)
        check_out(options.json, read, force=options.force)
    # Files are read in a worker process with limits, because they may be hostile.
    with tempfile.TemporaryDirectory(prefix="kdcal-") as folder:
        workspace = Workspace(Path(folder))
        review = scored_review(workspace, options)
        measured = _measured(workspace, review, options)
        doubts = (*doubts_words(review), *copies_words(workspace, review))
        settings = _settings(options, review)
        content = record.record(measured, review.task, _inputs(review), settings, doubts)
    if to_output:
        for doubt in doubts:
            print(f"kdcal: warning: {doubt}", file=sys.stderr)
        return record.text(content)
    if options.json:
        record.write(Path(options.json), content)
    texts = [_text(one, review, options.level) for one in measured]
    if review.model:
        texts.insert(0, printable(f"Model: {review.model.name}, {review.model.kind}"))
    elif review.task == "classification":
        texts.insert(0, outputs_words(review))
    if doubts:
        texts.insert(0, "\n".join(f"Warning: {doubt}" for doubt in doubts))
    return "\n\n".join(texts)


def _measured(
    workspace: Workspace, review: Review, options: argparse.Namespace
) -> list[Measured] | list[MeasuredRegression]:
    sets = _sets(review)
    if review.task == "regression":
        return regression.measured(workspace, review, sets, options)
    bins = options.bins or _BINS
    return [
        measure(
            load_set(workspace, review.id, which),
            notes=_notes(workspace, review, which),
            n_bins=bins,
            level=options.level,
        )
        for which in sets
    ]


def _notes(workspace: Workspace, review: Review, which: Which) -> tuple[str, ...]:
    """Notes on what the rows cannot support; the doubts are printed above everything else."""
    flags = ReviewReader(workspace, review.id).fitness(which).flags
    others = (flag for flag in flags if flag not in review.sets[which].doubts)
    return (*others, *table_notes(review, which))


def _text(measured: Measured | MeasuredRegression, review: Review, level: float) -> str:
    source = review.tables[measured.scored.name].name
    if isinstance(measured, MeasuredRegression):
        return regression_report(measured, source, level)
    return report(measured, source, level)


def check_files(options: argparse.Namespace) -> None:
    """Refuse files that do not go together or do not exist, before any is read."""
    if options.data and not options.model:
        raise InputError("--data needs --model", fix="Or give --predictions alone.")
    if options.predictions and options.model:
        raise InputError("--predictions takes no --model", fix="Give --data with --model.")
    check_outputs(options)
    for path in (options.model, options.data, options.predictions, options.evaluation):
        if path and not Path(path).is_file():
            raise InputError("There is no such file", fix="Check its path.", file=path)


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse options on columns of predictions when a model makes the predictions."""
    for word, value in (("--outputs", options.outputs), ("--output-kind", options.output_kind)):
        if value and not options.predictions:
            raise InputError(f"{word} needs --predictions", fix="A model gives its outputs itself.")


def scored_review(workspace: Workspace, options: argparse.Namespace) -> Review:
    """A scored review of the files that the user named."""
    review = create_review(workspace)
    if options.task or options.outputs:
        set_task(workspace, review.id, options.task or "classification")
    if options.model:
        model = Path(options.model)
        review = add_model(workspace, review.id, model, model.name)
    table = Path(options.data or options.predictions)
    target = options.target
    review = add_table(workspace, review.id, "calibration", table, table.name, target=target)
    if review.task == "regression":
        roles = regression.roles(review, options)
    else:
        regression.refuse(options)
        wanted = _Wanted(
            *(options.target, options.weight, options.classes, options.outputs, options.output_kind)
        )
        roles = wanted.roles(review.tables["calibration"], review.model, review.roles or Roles())
    set_roles(workspace, review.id, roles, options.classes)
    if options.evaluation:
        further = Path(options.evaluation)
        add_table(workspace, review.id, "evaluation", further, further.name)
    return score(workspace, review.id)


@dataclass(frozen=True)
class _Wanted:
    """The roles that the user gave the columns; the others are guessed as in the app."""

    target: str
    weight: str | None
    classes: tuple[str, ...] | None
    outputs: Sequence[tuple[str, str]] | None
    output_kind: Literal["probability", "logit"] | None

    def roles(self, table: TableInfo, model: ModelInfo | None, guessed: Roles) -> Roles:
        """The role of each column.

        A weight or split column is used only if the user names it.
        """
        for column in filter(None, (self.target, self.weight)):
            need(table, column, "The table has no such column")
        plain = Roles(target=self.target, weight=self.weight)
        if model is None and self.outputs:
            outputs = self._said(table)
            kind = self.output_kind or output_kind_named([column for _, column in outputs])
            return replace(plain, outputs=outputs, output_kind=kind)
        if model is None:
            outputs = self._named(guessed.outputs)
            if not outputs:
                raise InputError(
                    "No column holds, by its name and values, the model's "
                    "probabilities of the target's classes",
                    fix="Name them: --outputs CLASS=COLUMN for each class, or for one of two; of "
                    "logits also --output-kind logit. Divide percentages by 100 first. Where the "
                    "target is a quantity, give --task regression.",
                    file=table.name,
                )
            kind, by = self.output_kind or guessed.output_kind, guessed.class_by
            return replace(plain, outputs=outputs, output_kind=kind, class_by=by)
        for column in model.feature_names or ():
            need(table, column, "The model needs a column that the table does not have")
        return replace(plain, features=model.feature_names or self._others(table, guessed))

    def _said(self, table: TableInfo) -> tuple[tuple[str, str], ...]:
        """The outputs that the user named, classes in their natural order."""
        names = [name for name, _ in self.outputs or ()]
        for name, column in self.outputs or ():
            need(table, column, "The table has no such column")
            if names.count(name) > 1:
                raise InputError(
                    f"--outputs names two columns for the class {name[:60]!r}",
                    fix="Each class has one column.",
                )
        column_of = dict(self.outputs or ())
        return tuple((name, column_of[name]) for name in classes_of(names))

    def _named(self, outputs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        if self.classes is None or len(self.classes) != len(outputs):
            return outputs  # a wrong number of names is reported where they are set
        columns = (column for _, column in outputs)
        return tuple(zip(self.classes, columns, strict=True))

    def _others(self, table: TableInfo, guessed: Roles) -> tuple[str, ...]:
        """For a model that names no columns: all columns without another role."""
        taken = {self.target, self.weight, guessed.split, guessed.predicted}
        taken |= {column for _, column in guessed.outputs}
        return tuple(name for name in table.column_names if name not in taken)


def _sets(review: Review) -> tuple[Which, ...]:
    return ("calibration", "evaluation") if review.has_evaluation else ("calibration",)


def _inputs(review: Review) -> dict[str, dict[str, Any] | None]:
    inputs: dict[str, dict[str, Any] | None] = {"model": None}
    if review.model:
        info = review.model
        inputs["model"] = {"name": info.name, "kind": info.kind, "sha256": info.digest}
    for which, table in review.tables.items():
        inputs[which] = {"name": table.name, "rows": table.n_rows, "sha256": table.digest}
    return inputs


def _settings(options: argparse.Namespace, review: Review) -> dict[str, Any]:
    settings = {name: getattr(options, name) for name in ("target", "weight", "level")}
    if review.task == "classification":
        return {**settings, "classes": options.classes, "bins": options.bins or _BINS}
    roles = review.roles or Roles()
    return {
        **settings,
        "bins": options.bins or regression.BINS,
        "by": options.by,
        "seed": options.seed,
        "family": roles.family,
        "parameters": dict(roles.parameters),
        "true_mean": roles.true_mean,
    }
