"""Words of the Compare page that depend on what matters and on what was compared."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from app.compare import compare_parts, compare_text
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.diagnostics import Estimate
from kdcal_core.evaluation import Note, PairedDifference

FAR, AUROC = (
    "Far away means 14 times the norm.",
    "AUROC is the mean of each class against the rest.",
)
SHARED = "1 row of the evaluation set is in the calibration set too (1 pair, chance gives 0)."
ALIKE = (
    "4 of 90 rows of the evaluation set equal one of the calibration set (4 pairs, chance gives 4)."
)
CHANGE = Estimate("Accuracy", "Accuracy, difference", 0.016, 0.01, 0.022, 900)


@pytest.mark.parametrize(
    ("group", "text"), [("inside", []), ("outside", [FAR]), ("ranking", [AUROC]), ("speed", [])]
)
def test_a_note_stands_where_its_measure_does(group, text):
    notes = (
        Note(FAR, "outside"),
        Note(AUROC, "ranking"),
        Note(SHARED, "copies"),
        Note(ALIKE),
        Note("Few rows judge."),
    )
    found = SimpleNamespace(notes=notes, overlap=1)
    assert compare_text.notes_for(found, group) == [*text, ALIKE, "Few rows judge."]


def test_a_difference_of_shares_is_read_in_percent_as_they_are():
    share = replace(CHANGE, value=0.85, percent=True)
    found = SimpleNamespace(
        reference="model", method=lambda key: SimpleNamespace(scores={"accuracy": share})
    )
    pair = PairedDifference("platt", CHANGE, 0.001, 0.002, "better")
    assert compare_parts._cell(compare_text.difference(found, "accuracy", pair)).startswith("1.6%")


def test_differences_that_nobody_acts_on_are_not_written_in_powers_of_ten(texts):
    tiny = replace(CHANGE, value=-7.7e-7, low=-5.4e-6, high=3.6e-6)
    texts(compare_parts._cell(tiny))
    assert "0.0001" in compare_parts._cell(tiny)
    assert compare_parts._cell(replace(tiny, low=0.0, value=0.0, high=0.0)).startswith("0")


def test_abbreviations_are_spelt_out_where_calibrators_are_chosen():
    entry = CALIBRATORS["tswa"]
    assert compare_text.pill("tswa") == f"{entry.name} ({entry.label})"
    assert [compare_text.pill(key) for key in ("kde_mon2", "platt")] == ["KDE (b_mon2)", "Platt"]
