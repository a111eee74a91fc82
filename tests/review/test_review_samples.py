"""The shipped samples, each opened by one call."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    check_scored,
    read_review,
    samples,
    start_sample,
)

NAMES = [
    "digits",
    "breast_cancer",
    "adult",
    "adult_network",
    "digits_predictions",
    "mnist_network",
    "xor_forest",
    "xor_network",
]
MODULE = import_module("kdcal_core.review.samples")  # the package has a function of this name
pytestmark = pytest.mark.usefixtures("work_here", "opened_anew")


def test_the_cards():
    found = [sample for sample in samples() if sample.task == "classification"]
    assert [sample.name for sample in found] == NAMES
    for sample in found:
        assert (sample.model is None) == (sample.name == "digits_predictions")
        assert len(sample.class_names) == sample.n_classes


@pytest.mark.parametrize("name", NAMES)
def test_one_call_opens_a_sample_scored_as_its_card_says(tmp_path, name):
    workspace = Workspace(tmp_path)
    sample = next(one for one in samples() if one.name == name)
    review = start_sample(workspace, name)
    assert review == read_review(workspace, review.id)
    assert review.ready
    assert review.sample == name
    assert review.roles.target == sample.target
    assert (review.model is None) == (sample.model is None)
    assert review.accuracy["evaluation"] == pytest.approx(sample.accuracy, abs=1e-4)
    for which in ("calibration", "evaluation"):
        scored = ReviewReader(workspace, review.id).scored(which)
        assert scored.n_rows == sample.rows[which]
        assert scored.classes == sample.class_names


def test_an_unknown_sample_leaves_nothing(tmp_path):
    workspace = Workspace(tmp_path)
    with pytest.raises(InputError, match="no sample"):
        start_sample(workspace, "../digits")
    assert list(workspace.root.glob("[!.]*")) == []  # but the lock of a sample


@pytest.mark.usefixtures("real_workers")
def test_a_broken_sample_leaves_nothing(tmp_path):
    root = tmp_path / "samples"
    source = next(one for one in samples() if one.name == "digits_predictions")
    folder = root / source.name
    folder.mkdir(parents=True)
    from kdcal_core.review.samples import samples_root

    for path in (samples_root() / source.name).iterdir():
        content = path.read_bytes()
        (folder / path.name).write_bytes(content if path.suffix == ".json" else content[:100])
    workspace = Workspace(tmp_path / "home")
    with pytest.raises(InputError) as caught:
        start_sample(workspace, source.name, root=root)
    assert caught.value.file == "calibration.parquet"
    assert list(workspace.root.glob("[!.]*")) == []  # but the lock of a sample


def test_a_sample_needs_a_worker_once(tmp_path, monkeypatch):
    started = []

    def counted(*arguments, **settings):
        started.append(arguments[0])
        return run(*arguments, **settings)

    run = MODULE.run_limited
    monkeypatch.setattr(MODULE, "run_limited", counted)
    workspace = Workspace(tmp_path)
    with ThreadPoolExecutor(4) as visitors:
        opened = list(visitors.map(lambda _: start_sample(workspace, "xor_forest"), range(4)))
    assert len(started) == 1
    first, *others = opened
    for review in others:
        assert len({first.id, review.id}) == 2
        assert review.sets == first.sets
        assert review.model == first.model
        for which in ("calibration", "evaluation"):
            mine, its = (ReviewReader(workspace, one.id).scored(which) for one in (first, review))
            np.testing.assert_array_equal(mine.proba, its.proba)
    # files of a review are its own
    path = workspace.folder(first.id) / "set-calibration" / "y.npy"
    np.save(path, np.load(path)[::-1])
    assert check_scored(workspace, others[0]) is None
    with pytest.raises(InputError, match="damaged"):
        check_scored(workspace, first)


def test_a_kept_sample_that_was_damaged_or_is_of_other_code_is_opened_again(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    review = start_sample(workspace, "digits_predictions")
    (kept,) = tmp_path.glob("samples/*/files/set-calibration/y.npy")
    np.save(kept, np.load(kept)[::-1])
    again = start_sample(workspace, "digits_predictions")
    assert again.sets == review.sets
    check_scored(workspace, again)
    monkeypatch.setattr(MODULE, "_code", lambda: "another state of the code")
    start_sample(workspace, "digits_predictions")
    assert len(list(tmp_path.glob("samples/*/result.json"))) == 2
