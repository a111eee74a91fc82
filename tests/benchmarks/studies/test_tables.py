"""What the study of real tables makes of its runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.studies import drawings, measures, summary

GAINS = {"geodesic": 0.5, "isotonic": 0.25}


@pytest.fixture
def rows() -> pd.DataFrame:
    """Six tables at two sizes: errors that methods lower by a known share, a little less each time.

    At the smaller size none does, so that it must not count.
    """
    lines = []
    for at, table in enumerate("abcdef"):
        for n in (100, 300):
            for repetition in range(2):
                for method, gain in {"model": 0.0, **GAINS}.items():
                    value = 0.2 * (1 - (gain - 0.01 * at) * (gain > 0) * (n == 300))
                    common = {"study": "table", "simulation": table, "kind": "forest", "n": n}
                    common |= {"d": 0, "repetition": repetition, "method": method}
                    common |= {"radius": np.nan}
                    lines += [
                        {**common, "measure": measure, "value": value}
                        for measure in ("error", "ECE", "MCE")
                    ]
                    lines += [
                        {**common, "measure": measure, "value": value, "radius": radius}
                        for measure in ("OCE", "MMC")
                        for radius in (1.0, 2.0)
                    ]
                lines.append({**common, "method": "prior", "measure": "MMC", "value": 0.5})
    return pd.DataFrame(lines)


def test_improvement_is_relative_to_the_model(rows: pd.DataFrame) -> None:
    found = summary.improvements(rows, "OCE", 2.0).set_index(["simulation", "n", "method"])["value"]
    assert found["a", 300, "geodesic"] == pytest.approx(0.5)
    assert found["f", 300, "isotonic"] == pytest.approx(0.2)
    assert found["a", 100, "geodesic"] == pytest.approx(0)


def test_p_values_are_those_of_the_largest_size(rows: pd.DataFrame) -> None:
    found = summary.improvement_tests(rows).set_index("measure")
    assert found["tables"].tolist() == [6, 6, 6, 6]
    # six of six above all of six others: 1 in 924 orders; six of six pairs: 1 in 64
    assert found.loc["MCE", "rank-sum p"] == pytest.approx(1 / 924)
    assert found.loc["MCE", "signed-rank p"] == pytest.approx(1 / 64)


def test_every_table_has_a_page(rows: pd.DataFrame) -> None:
    pages = drawings.pages_of_tables(summary.summarised(rows), "forest")
    assert list(pages) == list("abcdef")
    titles = [figure.layout.title.text for figure in pages["a"]]
    assert titles == [
        "a, forest: error",
        "a, forest: ECE",
        "a, forest: MCE",
        "a, forest, n = 300",
    ]
    assert len(drawings.table_figures(rows, "forest")) == len(summary.IMPROVED)


def test_mce_is_the_largest_gap_of_a_bin() -> None:
    proba = np.array([[0.92, 0.08], [0.92, 0.08], [0.55, 0.45], [0.55, 0.45]])
    y = np.array([0, 0, 0, 1])
    assert measures.mce(proba, y) == pytest.approx(0.08)
    assert measures.ece(proba, y) == pytest.approx((0.08 + 0.05) / 2)
