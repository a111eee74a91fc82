"""The simulation over training sizes: each run is the lab's own, and quartiles are reported."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.tasks import LabSettings, lab_sizes
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.lab import simulate
from kdcal_core.tasks.lab_measures import (
    LAB_MEASURES,
    METHODS,
    GraphChoice,
    all_answers,
    measured,
)
from kdcal_core.tasks.lab_sizes import REPEATED, SizesSettings, repeat

LAB = LabSettings(n_trees=10, n_sphere=30, n_test=200, resolution=11)
SMALL = SizesSettings(LAB, (40, 80), 3)


@pytest.fixture(scope="module")
def text():
    return []


@pytest.fixture(scope="module")
def done(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("sizes")
    kwargs = json.loads(json.dumps(repeat.request(SMALL).kwargs))
    carry_out(**kwargs, folder=str(folder), progress=lambda *news: text.append(news))
    return repeat.read(folder)


def test_each_value_is_that_of_the_lab_itself(done):
    assert done.values.shape == (2, 3, len(METHODS), len(LAB_MEASURES))
    run = simulate(replace(LAB, n=80, radii=(2.0,), seed=7919), lambda share, note: None)
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


def test_values_of_a_measure_and_table(done):
    np.testing.assert_array_equal(done.of("ece"), done.values[..., LAB_MEASURES.index("ece")])
    table = done.table()
    assert len(table) == 2 * 3 * len(METHODS)
    row = table.query("rows == 80 and repetition == 2 and method == 'model'").iloc[0]
    assert row["error"] == done.values[1, 1, 0, 0]


def test_a_result_of_other_measures_is_not_taken(monkeypatch):
    now = repeat.request(SMALL).key
    fewer = replace(REPEATED[LabSettings], measures=LAB_MEASURES[1:])
    monkeypatch.setitem(lab_sizes.REPEATED, LabSettings, fewer)
    assert repeat.request(SMALL).key != now


def test_the_number_of_rows_of_the_lab_does_not_count():
    other = replace(SMALL, lab=replace(LAB, n=5000, radii=(1.0,)))
    assert repeat.request(other).key == repeat.request(SMALL).key
    assert repeat.request(replace(SMALL, repetitions=4)).key != repeat.request(SMALL).key


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
        repeat.request(replace(SMALL, **wrong))
