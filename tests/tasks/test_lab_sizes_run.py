"""The simulation over training sizes: each run is the lab's own, and quartiles are told."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.store import save
from kdcal_core.tasks import LabSettings
from kdcal_core.tasks.lab import explore
from kdcal_core.tasks.lab_measures import MEASURES, METHODS, GraphChoice, all_answers, measured
from kdcal_core.tasks.lab_sizes import SizesRun, SizesSettings, repeat, sizes_request

LAB = LabSettings(n_trees=10, n_sphere=30, n_test=200, resolution=11)
SMALL = SizesSettings(LAB, (40, 80), 3)


@pytest.fixture(scope="module")
def text():
    return []


@pytest.fixture(scope="module")
def done(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("sizes")
    kwargs = json.loads(json.dumps(sizes_request(SMALL).kwargs))
    said = repeat(**kwargs, folder=str(folder), progress=lambda *news: text.append(news))
    json.dumps(said, allow_nan=False)
    return SizesRun.read(folder)


def test_each_value_is_that_of_the_lab_itself(done):
    assert done.values.shape == (2, 3, len(METHODS), len(MEASURES))
    run = explore(replace(LAB, n=80, radii=(2.0,), seed=7919), lambda share, note: None)
    answers = all_answers(run, GraphChoice())
    expected = [[e.value for e in measured(run, answers[m], n_boot=1).values()] for m in METHODS]
    np.testing.assert_array_equal(done.values[1, 1], expected)


def test_progress_rises_and_names_size_and_run(done, text):
    del done
    shares = [share for share, _ in text]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert text[0][1].startswith("40 rows, run 1: ")
    assert text[-1][1].startswith("80 rows, run 3: ")


def test_quartiles_and_table(done):
    low, middle, high = done.quartiles("geodesic", "error")
    at = done.values[:, :, list(METHODS).index("geodesic"), 0]
    np.testing.assert_array_equal(middle, np.median(at, axis=1))
    assert (low <= middle).all()
    assert (middle <= high).all()
    table = done.table()
    assert len(table) == 2 * 3 * len(METHODS)
    row = table.query("rows == 80 and repetition == 2 and method == 'model'").iloc[0]
    assert row["error"] == done.values[1, 1, 0, 0]


def test_a_result_of_other_measures_is_refused(done, tmp_path):
    save(tmp_path, SizesRun(done.settings, done.values[..., 1:]))
    with pytest.raises(InputError, match="another version"):
        SizesRun.read(tmp_path)


def test_the_number_of_rows_of_the_lab_does_not_count():
    other = replace(SMALL, lab=replace(LAB, n=5000))
    assert sizes_request(other).key == sizes_request(SMALL).key
    assert sizes_request(replace(SMALL, repetitions=4)).key != sizes_request(SMALL).key


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": ()},
        {"sizes": (80, 40)},
        {"sizes": (40, 40)},
        {"sizes": (5,)},
        {"repetitions": 0},
        {"lab": replace(LAB, n_trees=0)},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError):
        sizes_request(replace(SMALL, **wrong))
