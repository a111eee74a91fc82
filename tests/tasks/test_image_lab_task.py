"""The image lab: one network, every method, and three shifts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_reviews import quiet

from kdcal_core.errors import InputError
from kdcal_core.simulation import IMAGE_SHIFTS, shapes
from kdcal_core.store import load
from kdcal_core.tasks import METHODS, ImageLabRun, ImageLabSettings, simulate_images
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.image_lab import N_SHIFTED, N_TEST
from kdcal_core.tasks.lab_networks import train_image_network

SMALL = ImageLabSettings(n=300, size=16, colour=True, seed=3)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    request = simulate_images.request(SMALL)
    carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    return load(folder, ImageLabRun)


def test_every_method_is_asked_about_every_image(found):
    assert (found.n_fit, found.n_holdout) == (210, 90)
    assert set(found.test) == set(METHODS)
    for proba in found.test.values():
        assert proba.shape == (N_TEST, 2)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
    for key, shift in IMAGE_SHIFTS.items():
        along = found.shifts[key]
        assert along.samples.shape == (len(shift.places), 16, 16)
        assert set(along.confidence) == set(METHODS)
        for said in along.confidence.values():
            assert said.shape == (len(shift.places), N_SHIFTED)
            assert ((said >= 0.5) & (said <= 1)).all()


def test_the_network_knows_the_shapes_and_bright_ones_are_foreign_to_the_graph(found):
    error = found.measured("model")["error"]
    wrong = found.test["model"].argmax(axis=1) != found.y
    assert error.value == pytest.approx(wrong.mean())
    assert error.value < 0.1
    assert found.measured("geodesic")["error"].value <= error.value + 0.02
    ordinary, bright = (found.unknown("intensity", place).value for place in (127.0, 254.0))
    assert ordinary <= 0.1 < bright
    sure = found.shifts["intensity"].confidence["geodesic"][-1]
    assert found.confidence("intensity", "geodesic", 254.0).value == pytest.approx(sure.mean())


def test_the_sample_is_one_image_that_changes(found):
    values = [np.unique(each) for each in found.shifts["intensity"].samples]
    assert [each[-1] for each in values] == [*IMAGE_SHIFTS["intensity"].places]
    first, *others = (each > 0 for each in found.shifts["intensity"].samples)
    assert all((each == first).all() for each in others)
    assert first.any()
    middle = np.argwhere(first).mean(axis=0)
    np.testing.assert_allclose(middle, 7.5, atol=2.5)


def test_equal_channels_give_the_same_picture_of_what_was_drawn(found):
    grey = IMAGE_SHIFTS["mixture"].draw(N_SHIFTED, 0.5, seed=1_000_036, size=16)
    at = IMAGE_SHIFTS["mixture"].places.index(0.5)
    sample = found.shifts["mixture"].samples[at].ravel()
    assert (sample == grey.X).all(axis=1).any()


@pytest.mark.parametrize("wrong", [{"n": 10}, {"size": 200}, {"seed": -1}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        simulate_images.request(ImageLabSettings(**wrong))


def test_a_network_that_cannot_learn_is_refused():
    drawn = shapes(60, seed=0, size=10)
    with pytest.raises(InputError, match="learnt nothing"):
        train_image_network(drawn.X * 0, drawn.y, channels=1, seed=0, progress=quiet)
