"""The evaluator of MLflow, against a store of its own in a temporary folder."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.svm import SVC

from kdcal_core import InputError, load_calibrator, load_recalibrator

mlflow = pytest.importorskip(
    "mlflow", reason="MLflow is not installed: pip install 'kdcal[mlflow]'"
)
from mlflow.models import EvaluationResult, MetricThreshold, evaluate  # noqa: E402
from mlflow.models.evaluation.validation import ModelValidationFailedException  # noqa: E402

from kdcal_core.mlflow_evaluator import _probabilities  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        "kdcal" not in {one.name for one in entry_points(group="mlflow.model_evaluator")},
        reason="kdcal was installed before it had an evaluator: install it again",
    ),
]
FEW = {"checks": {"only": ["KC001", "KC004", "KC101"]}, "calibrator": None}


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.create_experiment("kdcal", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("kdcal")
    yield
    mlflow.set_tracking_uri(None)


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["age", "dose"])
    chance = 1 / (1 + np.exp(-2 * X["age"] - X["dose"]))
    return X.assign(outcome=np.where(rng.random(n) < chance, "sick", "healthy"))


TRAIN, NEW = rows(2000, 0), rows(1500, 1)
MODEL = LogisticRegression().fit(TRAIN[["age", "dose"]], TRAIN["outcome"])


def judged(data: pd.DataFrame, model: Any = None, config: Any = FEW, **more: Any) -> Any:
    more = {"targets": "outcome", "model_type": "classifier", **more}
    with mlflow.start_run() as run:
        if model is not None and not callable(model):
            model = mlflow.sklearn.log_model(
                model, name="model", serialization_format="cloudpickle"
            ).model_uri
        found = evaluate(model, data, evaluators="kdcal", evaluator_config=config, **more)
    return found, mlflow.get_run(run.info.run_id)


@pytest.fixture(scope="module")
def classifier() -> Any:
    return judged(NEW, MODEL, {"roles": {"event": "sick"}, "checks": {"skip": ["KC007", "KC103"]}})


def test_estimates_are_metrics_with_their_intervals(classifier: Any) -> None:
    result, run = classifier
    assert result.metrics.items() <= run.data.metrics.items()
    metrics = run.data.metrics
    assert metrics["kdcal/passes"] == 1
    slope = "kdcal/checks/KC004_Calibration_slope"
    assert metrics[f"{slope}_low"] < metrics[slope] < metrics[f"{slope}_high"]
    loss = -np.log(MODEL.predict_proba(NEW[["age", "dose"]]))[
        np.arange(len(NEW)), (NEW["outcome"] == "sick").astype(int)
    ].mean()
    name = "kdcal/estimates/Log_loss_of_the_full_vector_probabilities_clipped_at_1e_12"
    assert metrics[name] == pytest.approx(loss)


def test_verdicts_are_tags(classifier: Any) -> None:
    _, run = classifier
    assert run.data.tags["kdcal.verdict"] == "pass"
    assert run.data.tags["kdcal.KC004"] == "pass"
    assert run.data.tags["kdcal.KC010"] == "no answer"
    assert "1,500 rows" in run.data.tags["kdcal.headline"]


def test_report_record_and_calibrator_are_artifacts(classifier: Any, tmp_path: Path) -> None:
    result, run = classifier
    names = {"gate.json", "audit.json", "report.html", "report.md", "calibrator.kdcal"}
    assert {f"kdcal/{one}" for one in names} == set(result.artifacts)
    folder = mlflow.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="kdcal", dst_path=str(tmp_path)
    )
    assert {one.name for one in Path(folder).iterdir()} == names
    assert result.artifacts["kdcal/gate.json"].content["verdict"] == "pass"
    assert "<html" in result.artifacts["kdcal/report.html"].content
    loaded = load_calibrator(Path(folder) / "calibrator.kdcal")
    proba = MODEL.predict_proba(NEW[["age", "dose"]])
    assert loaded.predict_proba(proba).shape == proba.shape


def test_a_result_is_stored_and_read(classifier: Any, tmp_path: Path) -> None:
    result, _ = classifier
    result.save(str(tmp_path))
    read = EvaluationResult.load(str(tmp_path))
    assert read.metrics == result.metrics
    for name, artifact in result.artifacts.items():
        assert read.artifacts[name].content == artifact.content


def test_mlflow_holds_a_candidate_to_the_verdict(classifier: Any) -> None:
    result, _ = classifier
    passes = {"kdcal/passes": MetricThreshold(threshold=1, greater_is_better=True)}
    mlflow.validate_evaluation_results(
        candidate_result=result, baseline_result=None, validation_thresholds=passes
    )


def test_the_guides_example() -> None:
    guide = (Path(__file__).parents[1] / "app" / "guides" / "gates.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (code,) = (one for one in blocks if "mlflow" in one)
    names: dict[str, Any] = {"model": MODEL, "held_out": NEW}
    with pytest.raises(ModelValidationFailedException, match="kdcal/passes"):
        exec(code, names)  # regions need more rows
    assert names["result"].metrics["kdcal/passes"] == 0
    assert "kdcal/calibrator.kdcal" in names["result"].artifacts


def test_an_over_confident_model_fails() -> None:
    result, run = judged(over_confident(), None, FEW, predictions="p")
    assert result.metrics["kdcal/passes"] == 0
    assert run.data.tags["kdcal.verdict"] == run.data.tags["kdcal.KC004"] == "fail"
    assert "kdcal/calibrator.kdcal" not in result.artifacts


def over_confident() -> pd.DataFrame:
    """A column of probabilities of "sick", which are too extreme."""
    odds = MODEL.decision_function(NEW[["age", "dose"]])
    return NEW.assign(p=1 / (1 + np.exp(-3 * odds)))


def test_columns_of_probabilities_are_named_by_roles() -> None:
    proba = MODEL.predict_proba(NEW[["age", "dose"]])
    data = NEW.assign(a=proba[:, 0], b=proba[:, 1])
    named = {**FEW, "roles": {"outputs": {"healthy": "a", "sick": "b"}}}
    static, _ = judged(data, None, named)
    own, _ = judged(NEW, MODEL)
    name = "kdcal/checks/KC101_Discrimination"
    assert static.metrics[name] == own.metrics[name]


def test_a_function_may_give_probabilities() -> None:
    answers = [
        lambda X: MODEL.predict_proba(X),
        lambda X: MODEL.predict_proba(X)[:, 1],
        lambda X: pd.DataFrame(MODEL.predict_proba(X)[:, ::-1], columns=["sick", "healthy"]),
    ]
    found = [judged(NEW, one)[0].metrics["kdcal/checks/KC101_Discrimination"] for one in answers]
    assert found[0] == found[1] == found[2] > 0.8


def test_a_model_that_is_always_certain_is_judged() -> None:
    certain = np.array([[1, 0], [0, 1]])
    columns = _probabilities(certain, np.array(["b", "a"]), {})
    assert columns is not None
    assert columns.to_dict("list") == {"a": [1, 0], "b": [0, 1]}
    assert _probabilities(certain[:, 1], np.array([1, 0]), {}) is None


def test_columns_without_a_class_are_a_clear_error() -> None:
    with pytest.raises(InputError, match="3 columns of probabilities"):
        _probabilities(np.eye(3), np.array([0, 1, 1]), {})
    named = _probabilities(np.eye(3), np.array([0, 1, 1]), {"classes": ["0", "1", "2"]})
    assert list(named) == ["0", "1", "2"]


def test_arrays_of_more_classes() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 3)) + 2 * np.eye(3)[y]
    model = LogisticRegression().fit(X[:200], y[:200])
    result, _ = judged(X[200:], model, targets=y[200:])
    assert "kdcal/checks/KC001_Overall_calibration" in result.metrics


def test_a_regressor_and_its_recalibrator(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(-2, 2, 900)})
    data = X.assign(outcome=X["x"] + rng.normal(size=900))
    model = BayesianRidge().fit(data[["x"]][:300], data["outcome"][:300])
    settings = {"calibrator": "isotonic"}
    result, run = judged(data[300:], model, settings, model_type="regressor")
    assert run.data.tags["kdcal.verdict"] in ("pass", "fail", "not enough evidence")
    assert result.metrics["kdcal/estimates/Continuous_ranked_probability_score"] > 0
    path = tmp_path / "mine.kdcal"
    path.write_bytes(result.artifacts["kdcal/calibrator.kdcal"].content)
    assert load_recalibrator(path).card.key == "isotonic"


def test_a_stored_calibrator_is_judged_in_place_of_the_model(tmp_path: Path) -> None:
    data = over_confident()
    fitted, _ = judged(data[:700], None, {**FEW, "calibrator": "platt"}, predictions="p")
    path = tmp_path / "mine.kdcal"
    path.write_bytes(fitted.artifacts["kdcal/calibrator.kdcal"].content)
    config = {**FEW, "files": {"calibrator": str(path)}}
    before, _ = judged(data[700:], None, FEW, predictions="p")
    after, _ = judged(data[700:], None, config, predictions="p")
    slope = "kdcal/checks/KC004_Calibration_slope"
    assert before.metrics[slope] < 0.5 < after.metrics[slope]
    assert after.artifacts["kdcal/calibrator.kdcal"].content == path.read_bytes()


def test_classes_alone_are_not_judged(caplog: pytest.LogCaptureFixture) -> None:
    model = SVC().fit(TRAIN[["age", "dose"]], TRAIN["outcome"])
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(mlflow.MlflowException, match="could not be evaluated"),
    ):
        judged(NEW, model)
    assert "kdcal judges probabilities" in caplog.text


def test_an_unknown_key_is_a_clear_error() -> None:
    with pytest.raises(InputError, match=r"'\[limit\]'.*Did you mean 'limits'"):
        judged(NEW, MODEL, {"limit": {}})


def test_kdcal_imports_no_mlflow() -> None:
    code = "import kdcal_core.cli, kdcal_core.audit, sys; print('mlflow' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
