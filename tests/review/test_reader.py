"""The one reader of a review, and the identity that covers exactly what it may read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from workerless import run_here

from kdcal_core.errors import InputError
from kdcal_core.review import (
    PARTS,
    Part,
    Review,
    ReviewReader,
    Workspace,
    add_foreign,
    add_table,
    create_review,
    identity,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.review.samples import samples_root
from kdcal_core.tasks import (
    ComparisonSettings,
    ExportSettings,
    ForeignSettings,
    GridSettings,
    RecalibrationSettings,
    RegionSearchSettings,
    RegionsSettings,
    Request,
    calibrate_regions,
    compare_calibrators,
    equal_sets,
    export_calibrator,
    fit_graph,
    keep_space,
    pit_places,
    posterior_grid,
    recalibrate,
    score_foreign,
    search_regions,
    set_overview,
    try_calibrator,
)
from kdcal_core.tasks.export import CALIBRATOR_FILE

pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def review_id(workspace: Workspace) -> str:
    return start_sample(workspace, "xor_network").id


def uses(reader: ReviewReader) -> dict:
    """Every way to each part."""
    return {
        "model": [reader.model, reader.layers, lambda: reader.has("model")],
        "calibration": [
            lambda: reader.scored("calibration"),
            lambda: reader.distributions("calibration"),
            lambda: reader.frame("calibration"),
            lambda: reader.features("calibration"),
            lambda: reader.labelled("calibration"),
            lambda: reader.name("calibration"),
        ],
        "evaluation": [
            lambda: reader.scored("evaluation"),
            lambda: reader.frame("evaluation"),
            lambda: reader.judged,
        ],
        "training": [
            lambda: reader.frame("training"),
            lambda: reader.labelled("training"),
            lambda: reader.reference,
        ],
        "foreign": [lambda: reader.foreign("far.csv"), lambda: reader.has("foreign")],
    }


@pytest.mark.parametrize("part", PARTS)
def test_what_was_not_declared_cannot_be_read(
    workspace: Workspace, review_id: str, part: str
) -> None:
    reader = ReviewReader(workspace, review_id, [one for one in PARTS if one != part])
    for read in uses(reader)[part]:
        with pytest.raises(RuntimeError, match=f"'{part}' is read, but only"):
            read()


def test_the_identity_covers_what_is_declared_and_nothing_else(
    workspace: Workspace, review_id: str
) -> None:
    review = workspace.read(review_id)
    table = review.tables["calibration"]
    changes = {
        "model": replace(review, model=replace(review.model, digest="other")),
        "calibration": replace(
            review, tables={**review.tables, "calibration": replace(table, digest="other")}
        ),
        "evaluation": replace(
            review,
            sets={**review.sets, "evaluation": replace(review.sets["evaluation"], digest="other")},
        ),
        "training": replace(review, training=replace(table, digest="other")),
        "foreign": replace(review, foreign={"far.csv": table}),
    }
    for part, changed in changes.items():
        for reads in ([part], PARTS, [one for one in PARTS if one != part]):
            same = identity(review, reads) == identity(changed, reads)
            assert same == (part not in reads), (part, reads)
    for changed in (
        replace(review, classes=("u", "v")),
        replace(review, roles=replace(review.roles, weight="x1")),
    ):
        assert identity(changed, ()) != identity(review, ())


def test_the_reader_gives_what_is_there(workspace: Workspace, review_id: str) -> None:
    far = pd.DataFrame({"x2": [9.0, 8.0], "x1": [7.0, 6.0]})
    add_foreign(workspace, review_id, io.BytesIO(far.to_csv(index=False).encode()), "far.csv")
    reader = ReviewReader(workspace, review_id)
    frame = pd.read_parquet(samples_root() / "xor_network" / "evaluation.parquet")
    pd.testing.assert_frame_equal(reader.frame("evaluation"), frame, check_dtype=False)
    assert reader.scored("evaluation") is reader.scored("evaluation")
    names = [reader.review.classes[k] for k in reader.scored("evaluation").y]
    assert names == frame[reader.roles.target].astype(str).tolist()
    features, labels = reader.labelled("evaluation")
    assert list(features.columns) == list(reader.roles.features)
    assert (labels == reader.scored("evaluation").y).all()
    assert list(reader.foreign("far.csv").columns) == list(reader.roles.features)
    assert reader.model() is reader.model()
    assert reader.judged == "evaluation"


def test_what_a_review_does_not_have_is_said(workspace: Workspace) -> None:
    reader = ReviewReader(workspace, start_sample(workspace, "digits_predictions").id)
    with pytest.raises(InputError, match="has predictions without their model"):
        reader.model()
    with pytest.raises(InputError, match="has no training table"):
        reader.frame("training")
    with pytest.raises(InputError, match="is of a classification"):
        reader.distributions("calibration")


def test_a_job_refuses_a_review_that_has_changed_since(
    workspace: Workspace, review_id: str
) -> None:
    reads: tuple[Part, ...] = ("calibration",)
    sent = json.loads(json.dumps(ReviewReader(workspace, review_id, reads).identity))

    def opened(*reads: Part) -> ReviewReader:
        return ReviewReader(workspace, review_id, reads, expected=sent)

    assert opened(*reads).identity
    with pytest.raises(InputError, match="has changed since"):
        opened("calibration", "foreign")
    workspace.update(review_id, lambda review: replace(review, title="Another"))
    assert opened(*reads).review.title == "Another"
    workspace.update(review_id, lambda review: replace(review, classes=("u", "v")))
    with pytest.raises(InputError, match="has changed since"):
        opened(*reads)


def classification_jobs(workspace: Workspace, folder: Path) -> list[Request]:
    """Every job that reads a review of classes."""
    review = start_sample(workspace, "xor_forest")
    export = export_calibrator.request(workspace, review.id, ExportSettings("sts"))
    made = folder / "made"
    made.mkdir()
    run_here(export.target, export.kwargs, folder=made)
    return [
        fit_graph.request(workspace, review.id),
        posterior_grid.request(workspace, review.id, GridSettings(resolution=5)),
        score_foreign.request(workspace, review.id, ForeignSettings(n=20)),
        set_overview.request(workspace, review, which="calibration"),
        equal_sets.request(workspace, review),
        search_regions.request(workspace, review.id, RegionSearchSettings(redraws=20)),
        calibrate_regions.request(workspace, review.id, RegionsSettings(("tree",))),
        compare_calibrators.request(workspace, review.id, ComparisonSettings(("sts",), n_boot=100)),
        export,
        try_calibrator.request(
            workspace, review.id, path=made / CALIBRATOR_FILE, name="a.kdcal", digest="a"
        ),
    ]


def regression_jobs(workspace: Workspace, folder: Path) -> list[Request]:
    """Every job that reads a review of numbers, and of measures one that reads much."""
    x = np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame({"x": x, "mean": x, "std": 1.0, "y": x[::-1]})
    review = create_review(workspace)
    source = io.BytesIO(frame.to_csv(index=False).encode())
    review = add_table(workspace, review.id, "calibration", source, "rows.csv")
    set_roles(workspace, review.id, replace(review.roles, features=("x",)))
    review = score(workspace, review.id)
    places = {"which": "calibration", "space": "inputs", "k": 10, "across": "x", "up": "x"}
    return [
        recalibrate.request(workspace, review.id, RecalibrationSettings(("global",))),
        keep_space.request(workspace, review.id, name="inputs"),
        pit_places.request(workspace, review, **places),
    ]


@pytest.mark.parametrize("jobs_of", [classification_jobs, regression_jobs])
def test_a_run_reads_the_review_once_and_refuses_one_that_changed(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jobs_of: Callable[[Workspace, Path], list[Request]],
) -> None:
    jobs = jobs_of(workspace, tmp_path)
    review_id = jobs[0].kwargs["given"]["read"]["review"]
    read, whole = [], Workspace.read

    def counted(self: Workspace, review_id: str) -> Review:
        read.append(review_id)
        return whole(self, review_id)

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "read", counted)
        for at, job in enumerate(jobs):
            read.clear()
            folder = tmp_path / str(at)
            folder.mkdir()
            run_here(job.target, job.kwargs, folder=folder)
            assert read == [review_id], job.kwargs["task"]
    workspace.update(review_id, lambda review: replace(review, roles=None))
    for job in jobs:
        with pytest.raises(InputError, match="has changed since"):
            run_here(job.target, job.kwargs, folder=tmp_path / "0")
