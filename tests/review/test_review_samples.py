"""The shipped samples, each opened by one call."""

import pytest

from kdcal_core.errors import InputError
from kdcal_core.review import Workspace, load_set, read_review, samples, start_sample

NAMES = [
    "digits",
    "breast_cancer",
    "adult",
    "adult_network",
    "digits_predictions",
    "xor_forest",
    "xor_network",
]
pytestmark = pytest.mark.usefixtures("work_here")


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
    assert (review.parent is None) == (sample.model is None)
    assert review.accuracy["evaluation"] == pytest.approx(sample.accuracy, abs=1e-4)
    for which in ("calibration", "evaluation"):
        scored = load_set(workspace, review.id, which)
        assert scored.n_rows == sample.rows[which]
        assert scored.classes == sample.class_names


def test_an_unknown_sample_leaves_nothing(tmp_path):
    workspace = Workspace(tmp_path)
    with pytest.raises(InputError, match="no sample"):
        start_sample(workspace, "../digits")
    assert list(workspace.root.iterdir()) == []


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
    assert list(workspace.root.iterdir()) == []
