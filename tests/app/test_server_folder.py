"""The Load page reads a folder of the server, where a setting allows it, as one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from app_pages import plain, settle, words

from app.load import server_folder
from kdcal_core.data.parquet_folder import ROOTS

pytestmark = pytest.mark.usefixtures("work_here", "stay_on_load")


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder with the parts of a table of predictions."""
    folder = tmp_path / "shared" / "scores"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    p = rng.random(600)
    table = pa.table({"proba_sick": p, "diagnosis": np.where(rng.random(600) < p, "sick", "well")})
    pq.write_table(table.slice(0, 400), folder / "a.parquet")
    pq.write_table(table.slice(400), folder / "b.parquet")
    monkeypatch.setenv(ROOTS, str(tmp_path / "shared"))
    return folder.resolve()


def _open(app):
    app.session_state["server_folder"] = True
    return app.run()


def _box(app):
    return next(one for one in app.selectbox if one.label == "Folder of Parquet files")


def _read(app):
    next(button for button in app.button if button.label == "Read the folder").click()
    return settle(app.run())


def test_a_folder_becomes_the_calibration_set(scores, app):
    _open(app)
    assert not app.exception
    _box(app).select(scores)
    app.run()
    _read(app)
    assert not app.exception
    assert "**scores.parquet**: 600 rows, 2 columns" in words(app)
    assert app.session_state["server_folder"] is False  # it would cover what was read


def test_rows_can_be_drawn(scores, app, monkeypatch):
    monkeypatch.setattr(server_folder, "DRAWN", 200)
    _open(app)
    _box(app).select(scores)
    next(one for one in app.checkbox if one.label == "Draw 200 rows").check()
    app.run()
    _read(app)
    assert not app.exception
    assert "**scores, 200 rows drawn.parquet**: 200 rows, 2 columns" in words(app)


def test_columns_of_some_files_only_are_a_doubt(scores, app):
    part = pq.read_table(scores / "b.parquet")
    ages = pa.array(np.arange(len(part)))
    pq.write_table(part.append_column("age", ages), scores / "b.parquet")
    _open(app)
    _box(app).select(scores)
    app.run()
    _read(app)
    assert not app.exception
    assert any("column 'age' (not in 'a.parquet')" in plain(one.value) for one in app.warning)
    next(one for one in app.button if one.label == "Go on without these columns").click()
    settle(app.run())
    assert not any("'age'" in plain(one.value) for one in app.warning)


def test_a_damaged_file_is_an_error_in_words(scores, app):
    _open(app)
    _box(app).select(scores)
    app.run()
    (scores / "b.parquet").write_bytes(b"PAR1 no table PAR1")
    _read(app)
    assert not app.exception
    assert any("b.parquet" in plain(one.value) for one in app.error)


def test_without_the_setting_no_folder_is_offered(monkeypatch, app):
    monkeypatch.delenv(ROOTS, raising=False)
    _open(app)
    assert not app.exception
    assert not [one for one in app.selectbox if one.label == "Folder of Parquet files"]
