"""An evaluator of MLflow: ``mlflow.models.evaluate(..., evaluators="kdcal")``.

MLflow finds it by an entry point once ``pip install 'kdcal[mlflow]'`` has been run. Nothing else in
kdcal imports MLflow. The rows and the model's answers become a table of predictions, which is
audited as a gate audits one.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.entities import Metric, RunTag
from mlflow.models.evaluation import EvaluationArtifact, EvaluationResult, ModelEvaluator
from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact, TextEvaluationArtifact

from kdcal_core.errors import InputError

if TYPE_CHECKING:
    from kdcal_core.audit import AuditConfig, Gate
    from kdcal_core.diagnostics import Estimate

FOLDER = "kdcal"
"""Of the run's artifacts, and the beginning of every metric's and tag's name."""
_TASKS = {"classifier": "classification", "regressor": "regression"}
_MOST_METRICS = 900  # MLflow takes 1,000 at once
_CALIBRATOR = "recommended"
_log = logging.getLogger(__name__)


class CalibratorArtifact(EvaluationArtifact):
    """A calibrator's or recalibrator's file; its content is the bytes."""

    def _load_content_from_file(self, local_artifact_path: str) -> bytes:
        self._content = Path(local_artifact_path).read_bytes()
        return self._content

    def _save(self, output_artifact_path: str) -> None:
        Path(output_artifact_path).write_bytes(self.content)


_ARTIFACTS = {
    "gate.json": JsonEvaluationArtifact,
    "audit.json": JsonEvaluationArtifact,
    "report.html": TextEvaluationArtifact,
    "report.md": TextEvaluationArtifact,
    "calibrator.kdcal": CalibratorArtifact,
}


class Evaluator(ModelEvaluator):
    """Audits a classifier's probabilities or a regressor's forecasts.

    ``evaluator_config`` holds the tables of a gate's configuration, ``"roles"``, ``"limits"``,
    ``"checks"``, ``"audit"``, ``"baseline"`` and ``"files"``, and ``"calibrator"``: the key of the
    calibrator to fit on these rows, or None for none.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any, **kwargs: Any) -> bool:
        """Whether the model is a classifier or a regressor."""
        return model_type in _TASKS

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None,
        model: Any = None,
        predictions: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Audit the rows, and log metrics, tags and artifacts to the run.

        Returns
        -------
        EvaluationResult or None
            None, with a warning, if the model gives only classes: they state no confidence.

        Raises
        ------
        InputError
            For rows or a configuration that cannot be used.
        """
        for ignored in ("extra_metrics", "custom_artifacts"):
            if kwargs.get(ignored):
                _log.warning("kdcal computes no %s: name another evaluator for them.", ignored)
        given = dict(evaluator_config or {})
        key = given.pop("calibrator", None if "calibrator" in given else _CALIBRATOR)
        task = _TASKS[model_type]
        roles = dict(given.get("roles", {}))
        found = _table(task, dataset, model, predictions, roles)
        if found is None:
            _log.warning(
                "kdcal judges probabilities, and these are classes: give a model with "
                "predict_proba, or a column of probabilities as predictions."
            )
            return None
        from kdcal_core.audit import config_of_tables, run_gate
        from kdcal_core.audit.gate import gate_folder
        from kdcal_core.data import table_from_frame

        with gate_folder() as folder:
            rows, out = folder / "rows.parquet", folder / FOLDER
            out.mkdir()
            table_from_frame(found, "the data").frame.to_parquet(rows)
            given["roles"] = roles
            given["files"] = {**given.get("files", {}), "predictions": str(rows)}
            given["audit"] = {"title": f"MLflow run {run_id}", **given.get("audit", {})}
            config = config_of_tables(given, Path.cwd())
            gate = run_gate(config)
            _write(gate, out)
            try:
                _write_calibrator(config, key, task, folder / "reviews", out / "calibrator.kdcal")
            except InputError as error:
                if "calibrator" in (evaluator_config or {}):
                    raise
                _log.warning("kdcal fitted no calibrator: %s", error)
            return _logged(gate, out, run_id, dataset, kwargs.get("model_id"))


def _table(
    task: str, dataset: Any, model: Any, predictions: str | None, roles: dict[str, Any]
) -> pd.DataFrame | None:
    """Features, target and predictions of the rows; their columns are named in ``roles``."""
    X, y = dataset.features_data, dataset.labels_data
    frame = pd.DataFrame(X if isinstance(X, pd.DataFrame) else np.asarray(X))
    frame = frame.set_axis(list(map(str, dataset.feature_names)), axis=1).reset_index(drop=True)
    roles["target"] = _free(dataset.targets_name or "target", frame)
    roles["task"] = task
    frame[roles["target"]] = y
    answer = dataset.predictions_data if model is None else _answer(task, model, X)
    if isinstance(answer, pd.DataFrame) and predictions in answer:
        answer = answer[predictions]
    name = str(dataset.predictions_name or predictions or "prediction")
    known = "outputs" if task == "classification" else "parameters"
    if known in roles or answer is None:  # columns of the data, or of the model's answer
        columns = answer if isinstance(answer, pd.DataFrame) else None
        if answer is not None and columns is None:
            columns = pd.DataFrame({name: answer})
    elif task == "classification":
        columns = _probabilities(answer, y, roles)
        if columns is None:
            return None
        names = {one: _free(f"probability of {one}", frame) for one in columns}
        columns, roles["outputs"] = columns.rename(columns=names), names
    elif isinstance(answer, pd.DataFrame):
        columns = answer  # whose names say what they are
    else:
        columns = pd.DataFrame({_free(name, frame): np.asarray(answer).reshape(-1)})
        roles["parameters"] = {"mean": str(columns.columns[0])}
        roles.setdefault("family", "point")
    return frame if columns is None else frame.join(columns.reset_index(drop=True))


def _free(name: str, frame: pd.DataFrame) -> str:
    """The name, changed if a column has it."""
    while name in frame:
        name += "_"
    return name


def _answer(task: str, model: Any, X: Any) -> Any:
    """Probabilities, with the classes as columns, or whatever the model predicts."""
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError):  # a function, or a server
        raw = None
    if task == "classification" and hasattr(raw, "predict_proba"):
        classes = getattr(raw, "classes_", None)
        stated = raw.predict_proba(X)
        return stated if classes is None else pd.DataFrame(stated, columns=list(map(str, classes)))
    return model.predict(X)


def _probabilities(answer: Any, y: Any, roles: Mapping[str, Any]) -> pd.DataFrame | None:
    """A column for each class; None for a single column of classes or of other numbers.

    Columns without names are those of the sorted classes, as in MLflow. A single column is the
    event's, or else that of the last of two classes.
    """
    names = list(map(str, roles.get("classes") or np.unique(y[~pd.isna(y)])))
    if isinstance(answer, pd.DataFrame) and answer.shape[1] == 1:
        answer = answer.iloc[:, 0]
    values = np.asarray(answer)
    if values.ndim == 2:
        if isinstance(answer, pd.DataFrame):
            names = list(map(str, answer))
        if values.shape[1] != len(names):
            raise InputError(
                f"The model gives {values.shape[1]} columns of probabilities, and the rows have "
                f"{len(names)} classes",
                fix="Name all classes in the order of the columns: roles.classes.",
            )
        return pd.DataFrame(values, columns=names)
    if values.dtype.kind not in "fiu" or len(names) != 2 or set(np.unique(values)) <= {0, 1}:
        return None
    if values.min() < 0 or values.max() > 1:
        return None
    event = str(roles.get("event") or names[1])
    other = next(one for one in names if one != event)
    return pd.DataFrame({other: 1.0 - values, event: values})


def _write(gate: Gate, out: Path) -> None:
    from kdcal_core.audit import content_bytes, json_text
    from kdcal_core.audit.report import html_report, markdown_report

    (out / "gate.json").write_text(json_text(gate), "utf-8")
    (out / "audit.json").write_bytes(content_bytes(gate.content))
    (out / "report.html").write_bytes(html_report(gate.content))
    (out / "report.md").write_text(markdown_report(gate.content), "utf-8")


def _write_calibrator(
    config: AuditConfig, key: str | None, task: str, home: Path, path: Path
) -> None:
    """The calibrator that was judged, or else one that is fitted on these rows."""
    if config.calibrator is not None:
        shutil.copyfile(config.calibrator, path)
        return
    if key is None:
        return
    from kdcal_core.progress import silent
    from kdcal_core.review import ReviewReader, Workspace, scored_review

    workspace = Workspace(home)
    review = scored_review(workspace, config.files)
    if task == "classification":
        from kdcal_core.calibration.export import save_calibrator
        from kdcal_core.calibration.settings import configured
        from kdcal_core.tasks.export_fit import READS, Wanted, fit_and_judge

        wanted = Wanted(key, configured(key, {}))
        made = fit_and_judge(ReviewReader(workspace, review.id, READS), wanted, silent)
        save_calibrator(made.calibrator, path, made.card)
        return
    from kdcal_core.regression import save_recalibrator
    from kdcal_core.tasks.repair_file import RepairSettings, fit_and_judge_repair, settled
    from kdcal_core.tasks.spaces import SPACE_READS

    reader = ReviewReader(workspace, review.id, SPACE_READS)
    fitted = fit_and_judge_repair(reader, settled(review, RepairSettings(key)))
    save_recalibrator(fitted.recalibrator, path, fitted.card, fitted.encoding)


def _logged(gate: Gate, out: Path, run_id: str, dataset: Any, model_id: str | None) -> Any:
    """The result, once its metrics, tags and artifacts are in the run."""
    metrics = dict(_metrics(gate))
    if len(metrics) > _MOST_METRICS:
        _log.warning("Only the first %d metrics are logged; audit.json has all.", _MOST_METRICS)
        metrics = dict(list(metrics.items())[:_MOST_METRICS])
    about = {"timestamp": int(time.time() * 1000), "step": 0, "run_id": run_id}
    about |= {"model_id": model_id, "dataset_name": dataset.name, "dataset_digest": dataset.digest}
    client = mlflow.MlflowClient()
    client.log_batch(
        run_id,
        metrics=[Metric(key=name, value=value, **about) for name, value in metrics.items()],
        tags=[RunTag(name, value) for name, value in _tags(gate).items()],
    )
    client.log_artifacts(run_id, str(out), FOLDER)
    artifacts = {}
    for name, kind in _ARTIFACTS.items():
        if (out / name).exists():
            artifact = kind(uri=mlflow.get_artifact_uri(f"{FOLDER}/{name}"))
            artifact._load(str(out / name))
            artifacts[f"{FOLDER}/{name}"] = artifact
    return EvaluationResult(metrics=metrics, artifacts=artifacts, run_id=run_id)


def _metrics(gate: Gate) -> Iterator[tuple[str, float]]:
    yield f"{FOLDER}/passes", float(gate.exit_code == 0)
    for one in gate.content.checked.results:
        if one.parts:
            yield from _numbers(f"checks/{one.code}_{one.check.title}", one.worst.estimate)
    for estimate in gate.content.estimates:
        yield from _numbers(f"estimates/{estimate.name}", estimate)


def _numbers(name: str, estimate: Estimate) -> Iterator[tuple[str, float]]:
    room, _, said = name.partition("/")
    plain = f"{FOLDER}/{room}/" + re.sub(r"\W+", "_", said).strip("_")[:200]
    ends = (("", estimate.value), ("_low", estimate.low), ("_high", estimate.high))
    for end, value in ends:
        if math.isfinite(value):
            yield f"{plain}{end}", float(value)


def _tags(gate: Gate) -> dict[str, str]:
    found = {"verdict": gate.verdict, "headline": gate.content.headline}
    found |= {one.code: one.verdict or "no answer" for one in gate.content.checked.results}
    return {f"{FOLDER}.{name}": str(value)[:5000] for name, value in found.items()}
