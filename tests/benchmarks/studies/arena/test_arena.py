"""The arithmetic of the arena on made-up gains."""

import numpy as np
import pandas as pd

from tests.benchmarks.studies.arena.report import _CELL, win_rates, write


def test_a_win_rate_is_the_share_of_others_beaten_with_ties_half():
    index = pd.MultiIndex.from_tuples([("a", "m", 300, 0), ("b", "m", 300, 0)], names=_CELL)
    gains = pd.DataFrame({"x": [0.2, 0.1], "y": [0.1, 0.1], "z": [0.0, np.nan]}, index=index)
    found = win_rates(gains)
    assert found["x"].tolist() == [1.0, 0.5]
    assert found["y"].tolist() == [0.5, 0.5]
    assert found["z"].iloc[0] == 0.0
    assert np.isnan(found["z"].iloc[1])


def test_the_report_names_methods_with_their_improvement(tmp_path):
    rows = pd.DataFrame(
        [
            {"table": t, "model": "m", "rows": 300, "seed": 0, "method": key, "n_classes": 2}
            | {"seconds": 0.1, "gain_log_loss": gain + shift, "gain_brier": gain}
            for t, shift in (("a", 0.0), ("b", 0.1))
            for key, gain in (("uncalibrated", 0.0), ("svs*", 0.1), ("recommended", 0.2))
        ]
    )
    write(rows, tmp_path)
    text = (tmp_path / "RESULTS_arena.md").read_text("utf-8")
    assert "| **Recommended** | +0.250 (+0.200 to +0.300) | +0.200" in text
    assert "| svs (probmetrics) | +0.1000 (+0.1000 to +0.1000) |" in text
    assert "2, 0 |" in text
