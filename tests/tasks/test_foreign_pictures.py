"""Foreign rows that are pictures: which columns are pixels, which rows are drawn, and how."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_reviews import quiet

from kdcal_core.charts import pictures_chart
from kdcal_core.data import pixel_places
from kdcal_core.review import ReviewReader, Workspace, start_sample
from kdcal_core.store import load
from kdcal_core.tasks import ForeignPictures, ForeignRun, ForeignSettings, score_foreign
from kdcal_core.tasks.decorators import Sets, carry_out
from kdcal_core.tasks.foreign_measures import foreign_pictures


def names(n_rows: int, n_columns: int) -> list[str]:
    return [f"p{row}x{column}" for row in range(n_rows) for column in range(n_columns)]


def test_pixels_are_found_in_any_order_and_counted_from_anywhere() -> None:
    order = np.random.default_rng(0).permutation(30)
    mixed = [names(5, 6)[at] for at in order]
    places = pixel_places(mixed)
    assert places is not None
    assert np.array(mixed)[places].tolist() == np.array(names(5, 6)).reshape(5, 6).tolist()
    later = [f"pixel {row} {column}" for row in range(3, 8) for column in range(1, 6)]
    assert pixel_places(later) is not None


@pytest.mark.parametrize(
    "other",
    [
        [],
        ["age", "income"],
        names(3, 9),
        names(5, 5)[:-1],
        [*names(5, 5)[:-1], "p0x0"],
        [*names(5, 5), "age"],
        [*names(5, 5)[:-1], "q4x4"],
        names(2, 70),
    ],
)
def test_other_columns_are_no_picture(other: list[str]) -> None:
    assert pixel_places(other) is None


@pytest.mark.usefixtures("work_here")
def test_the_surest_and_the_least_sure_rows_are_drawn(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "home")
    review = start_sample(workspace, "mnist_network")
    asked = score_foreign.request(workspace, review.id, ForeignSettings(radii=(), n=20))
    (tmp_path / "run").mkdir()
    given = json.loads(json.dumps(asked.kwargs))
    carry_out(**given, folder=str(tmp_path / "run"), progress=quiet)
    run = load(tmp_path / "run", ForeignRun)
    one = next(one for one in run.sets("uploaded") if one.name == "Clothes")
    reader = ReviewReader(workspace, review.id)
    where = {"run": str(tmp_path / "run"), "start": one.start, "stop": one.stop}
    found = foreign_pictures.function(Sets(reader, quiet), **where)
    assert isinstance(found, ForeignPictures)
    confidence = run.rows_of(one).proba.max(axis=1)
    assert found.confidence[:8].tolist() == sorted(confidence, reverse=True)[:8]
    assert found.confidence[8:].tolist() == sorted(confidence)[:8]
    row = int(confidence.argmax())
    frame = reader.foreign(one.name)
    assert found.pixels[0].ravel().tolist() == frame.iloc[row].tolist()
    chart = pictures_chart(
        found.pixels, found.predicted, found.confidence, found.confidence / 2, 8, dark=False
    )
    assert len(chart.figure.data) == len(chart.table()) == 16
    assert [len(panel.data) for panel in chart.panels.figures] == [8, 8]
    first = chart.figure.data[0]
    # the first pixel row is drawn at the top
    assert first.y0 == pytest.approx(-0.5 / 14)
    assert first.dy < 0
    np.testing.assert_allclose(first.z, found.pixels[0] / found.pixels.max(), atol=0.006)
    assert sum(trace.z.size for trace in chart.figure.data) <= 5000
