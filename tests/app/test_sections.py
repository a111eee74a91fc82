"""Sections of a page: the open one alone is computed and drawn."""

from __future__ import annotations

import pytest
from app_pages import healthy, launch, specs
from streamlit.testing.v1 import AppTest

from kdcal_core.review import Workspace, start_sample

pytestmark = [pytest.mark.usefixtures("work_here", "workspace"), pytest.mark.one_section]
KEY = "reliability_sections"


@pytest.fixture(scope="module")
def digits(workspace: Workspace) -> str:
    return start_sample(workspace, "digits_predictions").id


def names(at: AppTest) -> list[str]:
    return [tab.label for tab in at.tabs]


def test_only_the_open_section_is_drawn(digits: str) -> None:
    at = healthy(launch("reliability", digits))
    sections = ("Class by class", "Right and wrong predictions", "Without bins", "Every estimate")
    assert tuple(names(at)) == sections
    # the main picture, and of the first section ten classes and their legend
    assert len(specs(at)) == 1 + 10 + 1
    assert len(at.dataframe) == 1  # the bins of the main picture


def test_another_section_takes_its_place(digits: str) -> None:
    at = launch("reliability", digits)
    at.session_state[KEY] = "Every estimate"
    healthy(at.run())
    assert len(specs(at)) == 1
    assert len(at.dataframe) == 2


def test_a_folded_part_is_drawn_once_it_is_unfolded(digits: str) -> None:
    at = healthy(launch("load", digits))
    before = len(at.dataframe)
    at.session_state[f"first_rows_{digits}"] = True
    healthy(at.run())
    assert names(at) == ["calibration.parquet", "evaluation.parquet"]
    assert len(at.dataframe) == before + 1  # of the first table, whose tab is open
