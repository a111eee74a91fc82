"""What is computed for the golden files: each group is one file, made from the shipped samples.

Everything goes the way a user's request goes: the command line as it is called, and jobs by
what their pages submit, carried out here instead of in a worker process.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from golden.record import array, figures
from kdcal_core import load_calibrator
from kdcal_core.cli import main
from kdcal_core.errors import InputWarning
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_model,
    add_table,
    create_review,
    score,
    start_sample,
)
from kdcal_core.store import load
from kdcal_core.tasks import (
    ComparisonRun,
    ComparisonSettings,
    ExportRun,
    ExportSettings,
    GraphRun,
    RecalibrationRun,
    RecalibrationSettings,
    RegionSearchRun,
    RegionSearchSettings,
    RegionsRun,
    RegionsSettings,
    Request,
    calibrate_regions,
    compare_calibrators,
    export_calibrator,
    fit_graph,
    recalibrate,
    search_regions,
)

SAMPLES = Path(__file__).parents[2] / "sample_data"
Group = Callable[[Path], Any]


def groups() -> dict[str, Group]:
    """Every golden file by its name, and what computes it in a folder of its own."""
    samples = sorted(path.parent.name for path in SAMPLES.glob("*/card.json"))
    return {
        **{f"diagnose_{name}": partial(_diagnosed, name) for name in samples},
        "comparison": _comparison,
        "regions": _regions,
        "recalibration": _recalibration,
        "export": _export,
        "kernel_density": _kernel_density,
    }


def _called(*words: object) -> None:
    """Run ``kdcal`` with these words."""
    said, wrong = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(wrong):
        code = main([str(word) for word in words])
    if code:
        raise RuntimeError(f"kdcal ended with {code}: {wrong.getvalue()}")


def _carried_out(asked: Request, folder: Path) -> Path:
    """Do what a job would do; the folder with its result."""
    folder.mkdir()
    module, _, name = asked.target.partition(":")
    sent = json.loads(json.dumps(asked.kwargs, allow_nan=False))
    getattr(import_module(module), name)(**sent, folder=str(folder), progress=lambda *_: None)
    return folder


def _diagnosed(name: str, folder: Path) -> Any:
    source = SAMPLES / name
    card = json.loads((source / "card.json").read_text(encoding="utf-8"))
    table = source / card["calibration"]
    model = card.get("model")
    given = ("--model", source / model, "--data", table) if model else ("--predictions", table)
    further = ("--evaluation", source / card["evaluation"], "--target", card["target"])
    _called("diagnose", *given, *further, "--json", folder / "found.json")
    found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return {one["name"]: figures(one) for one in found["sets"]}


def _comparison(folder: Path) -> Any:
    workspace = Workspace(folder / "home")
    review = start_sample(workspace, "breast_cancer").id
    calibrators = ("kde_mon2", "sts", "tswa", "cum", "cwoc", "platt", "heterogeneous_tree")
    chosen = ComparisonSettings(calibrators, n_boot=100)
    asked = compare_calibrators.request(workspace, review, chosen)
    found = load(_carried_out(asked, folder / "job"), ComparisonRun).comparison
    collected = {one.key for one in found.measures if one.group == "speed"}
    return {
        "n": found.n,
        "folds": found.folds,
        "best": {key: one for key, one in found.best.items() if key not in collected},
        "methods": {
            one.key: {
                "scores": figures(
                    {key: score for key, score in one.scores.items() if key not in collected}
                ),
                "reliability": [
                    figures(getattr(one.reliability.curves[0], part))
                    for part in ("count", "confidence", "accuracy", "low", "high")
                ],
            }
            for one in found.methods
        },
        "paired": {
            f"{measure} / {against}": {one.key: figures(one) for one in pairs}
            for (measure, against), pairs in found.paired.items()
        },
    }


def _regions(folder: Path) -> Any:
    workspace = Workspace(folder / "home")
    review = start_sample(workspace, "adult").id
    settings = RegionSearchSettings(redraws=20, max_depth=2, seed=1)
    asked = search_regions.request(workspace, review, settings)
    search = load(_carried_out(asked, folder / "search"), RegionSearchRun).search
    review = start_sample(workspace, "xor_forest").id
    chosen = RegionsSettings(partitions=("tree", "boosted", "auc", "forest"), n_trees=5)
    asked = calibrate_regions.request(workspace, review, chosen)
    repaired = load(_carried_out(asked, folder / "repaired"), RegionsRun)
    return {
        "search": {
            "overall": figures(search.overall),
            "overall_p": search.overall_p,
            "regions": [_without(figures(one), "conditions") for one in search.regions],
            "leaf": array(search.leaf),
        },
        "repaired": {
            "record": {
                **_without(figures(repaired.record), "methods"),
                "has_training_scores": repaired.training is not None,
            },
            "methods": {one.key: figures(one) for one in repaired.record.methods},
            "scores": {key: array(repaired.scores[key].score) for key in repaired.keys},
        },
    }


def _recalibration(folder: Path) -> Any:
    source = SAMPLES / "heteroscedastic"
    workspace = Workspace(folder / "home")
    review = create_review(workspace).id
    add_model(workspace, review, source / "model.onnx", "model.onnx")
    for which, n in (("calibration", 400), ("evaluation", 200)):
        rows = pd.read_parquet(source / f"{which}.parquet").head(n)
        rows.to_parquet(folder / f"{which}.parquet")
        add_table(workspace, review, which, folder / f"{which}.parquet", which, target="y")
    score(workspace, review)
    settings = RecalibrationSettings(
        ("local", "where_needed", "global", "isotonic", "density"), k=100, choose=True
    )
    asked = recalibrate.request(workspace, review, settings)
    found = load(_carried_out(asked, folder / "job"), RecalibrationRun)
    return {
        "record": _without(figures(found.record), "methods"),
        "methods": {one.key: figures(one) for one in found.record.methods},
        "answers": {key: figures(found.answers[key]) for key in found.keys},
        "axes": array(found.axes),
    }


def _export(folder: Path) -> Any:
    workspace = Workspace(folder / "home")
    review = start_sample(workspace, "breast_cancer").id
    source = SAMPLES / "breast_cancer"
    model, table = source / "model.skops", source / "evaluation.parquet"
    collected = {}
    for key in ("sts", "heterogeneous_tree", "kernel_density"):
        asked = export_calibrator.request(workspace, review, ExportSettings(key))
        run = load(_carried_out(asked, folder / key), ExportRun)
        assert run.gain is not None
        out = folder / f"{key}.csv"
        given = ("--model", model, "--data", table, "--calibrator", run.calibrator_file)
        _called("score", *given, "--out", out)
        scored = pd.read_csv(out)
        calibrator = load_calibrator(run.calibrator_file, model=model)
        inputs = pd.read_parquet(table)
        proba = ReviewReader(workspace, review).scored("evaluation").proba
        collected[key] = {
            "record": figures(
                {
                    **vars(run.record),
                    **{one: getattr(run.map, one) for one in ("lines", "n_lines", "shape")},
                }
            ),
            "map": _without(figures(run.map), "lines"),
            "card": [figures(one) for one in run.card.estimates],
            "gain": {one: figures(pair) for one, pair in run.gain.pairs.items()},
            "scored": {
                name: array(scored[name])
                for name in scored.columns
                if pd.api.types.is_float_dtype(scored[name])
            },
            "python": array(calibrator.predict_proba(proba, inputs)),
        }
    return collected


def _kernel_density(folder: Path) -> Any:
    workspace = Workspace(folder / "home")
    collected = {}
    for name in ("xor_forest", "xor_network"):
        review = start_sample(workspace, name).id
        asked = fit_graph.request(workspace, review)
        run = load(_carried_out(asked, folder / name), GraphRun)
        graph, located = run.graph, run.rows.located
        assert located is not None
        collected[name] = {
            "record": _without(figures(run.record), "facts"),
            "gamma": figures(graph.gamma),
            "log_floor": figures(graph.effective_log_floor),
            "polytopes": graph.n_polytopes,
            "posterior": array(graph.posterior(located)),
            "log_density": array(graph.log_density(located)),
            "unknown": int(graph.unknown(located).sum()),
            "ties": int(np.sum(located.tied)),
        }
    return collected


def _without(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: one for name, one in found.items() if name not in names}


def computed(name: str, folder: Path) -> Any:
    """The figures of a group as JSON values."""
    place = folder / name
    place.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return json.loads(json.dumps(groups()[name](place), allow_nan=False))
