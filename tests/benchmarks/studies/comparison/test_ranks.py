"""The ranks of calibrators over data sets: drawn, put into words, and read from the kept table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from texts.snapshot import Texts

from kdcal_core.charts.comparison import MODEL_NAME
from kdcal_core.evaluation import critical_difference
from tests.benchmarks.studies.comparison.figure import critical_difference_figure, ranks_words
from tests.benchmarks.studies.comparison.report import ranked
from tests.benchmarks.studies.comparison.scores import read_study, save_study

HOSTILE = "<b>bold</b>"


def test_ranks_are_drawn_with_bars_for_what_cannot_be_told_apart(texts: Texts) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(np.array([0.0, 0.1, 3.0]), size=(20, 3))
    found = critical_difference(scores, ("a", MODEL_NAME, HOSTILE))
    figure = critical_difference_figure(found, dark=False, model=MODEL_NAME)
    dots, bar, ruler = figure.data
    np.testing.assert_allclose(dots.x, np.sort(found.mean_rank))
    assert list(bar.y) == [-0.25, 1.25]
    assert ruler.x[1] - ruler.x[0] == pytest.approx(found.critical_difference)
    assert "<b>bold" not in figure.to_json().replace("\\u003c", "<")
    text = ranks_words(found)
    assert "ranks first" in text
    texts(text)


def test_ranks_of_alike_methods_claim_nothing(texts: Texts) -> None:
    scores = np.random.default_rng(1).normal(size=(8, 4))
    found = critical_difference(scores)
    assert found.friedman_p > 0.05
    texts(ranks_words(found))


def test_the_kept_table_is_whole_and_comes_back_as_it_was_written(tmp_path: Path) -> None:
    study = read_study()
    assert len(study.data_sets) >= 10
    assert study.measures[0] == "log_loss"
    for measure in study.measures:
        values, methods = study.scores(measure)
        assert values.shape == (len(study.data_sets), len(methods))
        assert np.isfinite(values).all()
        assert {"uncalibrated", "isotonic", "platt"} <= set(methods)
    save_study(study, tmp_path / "again.csv")
    again = (tmp_path / "again.csv").read_text(encoding="utf-8")
    assert (
        again.splitlines()[1:] == study.table.to_csv(index=False, float_format="%.6g").splitlines()
    )


def test_the_kept_ranks_are_those_of_the_kept_table() -> None:
    study = read_study()
    text = (Path(__file__).parents[1] / "results" / "comparison" / "ranks.md").read_text("utf-8")
    for at, measure in enumerate(study.measures):
        found = ranked(study, measure)
        assert ranks_words(found) in text
        for name, rank in zip(found.methods, found.mean_rank, strict=True):
            (line,) = (one for one in text.splitlines() if one.startswith(f"| {name} |"))
            assert line.split(" | ")[1 + at].rstrip(" |") == f"{rank:.2f}"
