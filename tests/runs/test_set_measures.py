"""Measures of a scored set: the same from a worker as in the process, and small."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError
from kdcal_core.review import Workspace, load_set
from kdcal_core.review.codec import encode
from kdcal_core.runs import (
    Sets,
    class_curves,
    class_halves,
    class_histograms,
    class_method,
    is_large,
    method_losses,
    predicted_class,
    read_measure,
    set_estimates,
    set_fitness,
    set_overview,
    set_reliability,
    set_request,
)
from kdcal_core.runs.set_run import measure_set

SET = {"which": "calibration"}
LABELS = {**SET, "labels": [0, 1]}
ASKED = (
    (set_fitness, SET),
    (set_overview, SET),
    (set_reliability, {**SET, "kind": "class", "n_bins": 10, "strategy": "quantile", "label": 1}),
    (set_reliability, {**SET, "kind": "top-label", "n_bins": 5, "strategy": "uniform"}),
    (set_estimates, SET),
    (predicted_class, {**SET, "label": 1}),
    (class_histograms, {**LABELS, "n_bins": 10}),
    (class_halves, {**LABELS, "seed": 3}),
    (class_curves, {**LABELS, "bandwidth": "mon2"}),
    (class_curves, {**LABELS, "bandwidth": 0.1}),
    (class_method, {**LABELS, "key": "isotonic"}),
    (class_method, {**LABELS, "key": "sts"}),
    (method_losses, {"methods": ["uncalibrated", "sts"], "with_evaluation": True}),
)


def quiet(share, note):
    assert 0 <= share <= 1


@pytest.mark.parametrize(("measure", "settings"), ASKED)
def test_a_worker_leaves_what_the_process_computes(forest, tmp_path, measure, settings) -> None:
    asked = set_request(forest.workspace, forest.review, measure, settings)
    sent = json.loads(json.dumps(asked.kwargs, allow_nan=False))
    measure_set(**sent, folder=str(tmp_path), progress=quiet)
    at = forest.workspace, forest.review.id
    here = measure(Sets(*at, lambda which: load_set(*at, which), quiet), **settings)
    assert encode(read_measure(measure, tmp_path)) == encode(here)


def test_settings_and_rows_name_the_result(forest, linear) -> None:
    def key(made, **settings):
        return set_request(made.workspace, made.review, set_estimates, settings).key

    assert key(forest, which="calibration") == key(forest, which="calibration")
    others = {key(forest, which="evaluation"), key(linear, which="calibration")}
    assert key(forest, which="calibration") not in others


def test_a_changed_file_is_not_believed(forest, tmp_path) -> None:
    asked = set_request(forest.workspace, forest.review, class_histograms, {**LABELS, "n_bins": 5})
    measure_set(**asked.kwargs, folder=str(tmp_path), progress=quiet)
    path = tmp_path / "record.json"
    whole = path.read_text()
    for old, new in (("<f8", "|O"), ("<f8", "<U2"), ('"shape": [5]', '"shape": [-1]'), ("=", "")):
        assert old in whole
        path.write_text(whole.replace(old, new))
        with pytest.raises(InputError, match="no longer kept"):
            read_measure(class_histograms, tmp_path)


def test_a_job_can_only_ask_for_a_measure(forest, tmp_path) -> None:
    asked = set_request(forest.workspace, forest.review, set_overview, SET).kwargs
    for name in ("fitted", "load_set", "__builtins__", "np"):
        with pytest.raises(ValueError, match="not a measure"):
            measure_set(**{**asked, "measure": name}, folder=str(tmp_path), progress=quiet)


@pytest.mark.parametrize("n", [2_000, 40_000])
def test_results_do_not_grow_with_the_rows(n: int, tmp_path) -> None:
    """A kept result of any measure holds no rows, whatever the method keeps of them."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), n)
    label = (proba.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    scored = ScoredSet(proba, label, ("a", "b", "c"), "digest", "calibration")
    sets = Sets(Workspace(tmp_path), "a" * 16, lambda which: scored, quiet)
    for measure, settings in ASKED:
        if measure not in (method_losses, set_fitness):
            size = len(json.dumps(encode(measure(sets, **settings))))
            assert size < 300_000, measure.__name__


def test_few_rows_stay_in_the_process(forest) -> None:
    assert not is_large(forest.review)
    info = dataclasses.replace(forest.review.sets["calibration"], n_rows=10_000_000)
    assert is_large(dataclasses.replace(forest.review, sets={"calibration": info}))
