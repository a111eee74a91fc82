"""The sentences of the Out of distribution page, on results whose finding is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.calibration import Selection
from kdcal_core.charts import foreign as words
from kdcal_core.diagnostics import (
    DistanceCurve,
    Surest,
    log_densities,
    mean_max_confidence,
    unknown_share,
)

RADII = np.array([0.0, 1.0, 2.0, 10.0])


def curve(*mean: float, band: tuple[float, ...] = (0.0,)) -> DistanceCurve:
    middle, half = np.array(mean), np.array(band)
    return DistanceCurve(RADII, middle, middle - half, middle + half, (10, 90), 50, 0)


def test_the_finding_holds_the_far_confidences_and_where_the_prior_begins() -> None:
    sentence = words.distance_finding(curve(0.7, 0.9, 0.95, 0.97), curve(0.7, 0.9, 0.515, 0.5), 0.5)
    assert sentence == (
        "Far away (radius 10) the model still says 0.97; the kernel density version falls to 0.50, "
        "the prior, from radius 2 on."
    )


def test_a_dip_to_the_prior_that_does_not_last_does_not_count() -> None:
    assert words.reaches_prior(curve(0.5, 0.9, 0.5, 0.6), 0.5) is None
    assert words.reaches_prior(curve(0.5, 0.9, 0.5, 0.5), 0.5) == 2.0
    sentence = words.distance_finding(curve(0.7, 0.9, 0.95, 0.97), curve(0.7, 0.9, 0.5, 0.6), 0.5)
    assert sentence.endswith(
        "the kernel density version 0.60, which has not reached the prior, 0.50."
    )


@pytest.mark.parametrize(
    ("mean", "said"),
    [
        ((0.5, 0.5, 0.5, 0.51), "stays at the prior, 0.50, at every distance."),
        ((0.3, 0.4, 0.49, 0.5), "rises to 0.50, the prior, from radius 2 on."),
        ((0.7, 0.6, 0.51, 0.51), "falls to 0.51, about the prior of 0.50, from radius 2 on."),
        ((0.7, 0.9, 0.8, 0.5), "falls to 0.50, the prior, only there."),
    ],
)
def test_the_finding_says_how_the_prior_is_come_to(mean: tuple[float, ...], said: str) -> None:
    sentence = words.distance_finding(curve(0.7, 0.6, 0.5, 0.51), curve(*mean), 0.5)
    assert sentence.startswith("Far away (radius 10) the model says 0.51;")
    assert sentence.endswith(said)


def test_a_mean_that_passes_through_the_prior_while_rows_do_not_have_it_does_not_count() -> None:
    """A band from 54% to 78% at the radius where the mean crossed the prior of 64%."""
    found = curve(0.8, 0.64, 0.64, 0.64, band=(0.1, 0.1, 0.01, 0.0))
    assert words.reaches_prior(found, 0.64) == 2.0
    sentence = words.distance_finding(
        curve(0.7, 0.6, 0.6, 0.59), found, 0.64, np.array([0.0, 0.3, 0.97, 1.0])
    )
    assert "falls to 0.64, the prior, from radius 2 on." in sentence
    assert sentence.endswith("at least 95% of the rows as unknown from radius 2 on.")
    flat = curve(0.64, 0.64, 0.64, 0.64, band=(0.1, 0.0, 0.0, 0.0))
    sentence = words.distance_finding(curve(0.7, 0.6, 0.6, 0.59), flat, 0.64)
    assert sentence.endswith("comes to 0.64, the prior, from radius 1 on.")


def test_without_a_version_the_finding_names_the_prior() -> None:
    assert words.distance_finding(curve(0.7, 0.9, 0.9, 0.97), None, 0.5) == (
        "Far away (radius 10) the model still says 0.97, where the prior is 0.50."
    )


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        ((0.0, 0.97, 1.0, 1.0), "counts at least 95% of the rows as unknown from radius 1 on."),
        ((0.0, 0.5, 1.0, 1.0), "counts all rows as unknown from radius 2 on."),
        ((1.0, 1.0, 1.0, 1.0), "counts all rows as unknown at every distance."),
        ((0.0, 1.0, 1.0, 0.4), "counts 40% of the rows there as unknown."),
    ],
)
def test_the_density_says_from_where_on_rows_are_unknown(
    unknown: tuple[float, ...], said: str
) -> None:
    """Where one class has 90% of the rows, confidence is about the prior everywhere."""
    near_prior = curve(0.9, 0.9, 0.9, 0.9)
    sentence = words.distance_finding(
        curve(0.9, 0.95, 0.95, 0.97), near_prior, 0.9, np.array(unknown)
    )
    assert "stays at the prior" in sentence
    assert sentence.endswith(f"By its density it {said}")


def test_what_made_rows_are_is_said() -> None:
    sphere = words.made_words("sphere", ("age", -260.0, 17.0))
    assert "points on a sphere in standardised units" in sphere
    assert "'age' goes down to -260 here, and never below 17 in the data" in sphere
    assert words.made_words("shifted", None) == ""


def test_a_set_of_foreign_rows_is_told_with_its_counts() -> None:
    said = mean_max_confidence([[0.9, 0.1], [0.8, 0.2]])
    version = mean_max_confidence([[0.5, 0.5], [0.6, 0.4]])
    sentence = words.set_finding("Ring", said, version, 0.5, 1)
    assert "the model says 0.85 on average, the kernel density version 0.55" in sentence
    assert sentence.endswith("1 of 2 rows count as unknown.")
    assert words.set_finding("Ring", said, None, 0.5, None).endswith("the prior is 0.50 (2 rows).")


def test_the_floor_is_told_for_both_kinds_of_rows() -> None:
    share = unknown_share(np.arange(1000) < 12)
    assert words.density_words(share, "Ring", 3, 4, 0.01) == (
        "With alpha at 1% the floor leaves 1.2% of 1,000 ordinary rows below it, and 3 of 4 rows "
        "(75%) of “Ring”."
    )


def test_the_selection_names_the_exponent_in_force_and_what_others_cost() -> None:
    exponents, loss = np.array([0.5, 1.0, 2.0]), np.array([0.4, 0.3, 0.6])
    chosen = Selection(exponents, exponents / 7, loss, loss / 9, 80, 1)
    assert words.selection_words(chosen) == (
        "The exponent in force is 1: held-out log loss 0.300 on 80 rows, the least of 3; the "
        "largest is 0.600, at exponent 2."
    )
    assert words.selection_words(replace(chosen, chosen=2)) == (
        "The exponent in force is 2: held-out log loss 0.600 on 80 rows. The least is "
        "0.300, at exponent 1."
    )
    nothing = replace(chosen, log_loss=np.full(3, np.nan), n=0, chosen=2)
    assert words.selection_words(nothing) == (
        "No rows are held out, so the exponent, 2, could not be chosen from them."
    )


def test_the_offer_counts_the_rows_and_says_how_long() -> None:
    with_training = words.fit_offer(20_000, 6_000)
    assert "from 20,000 rows of the training set" in with_training
    assert "on the 6,000 rows of the calibration set" in with_training
    assert "less than a minute" in with_training
    alone = words.fit_offer(None, 1_000)
    assert "from 700 rows of the calibration set" in alone
    assert "on the other 300 rows" in alone
    assert "a few seconds" in alone
    assert "several minutes or more" in words.fit_offer(10**6, 10)


def test_the_surest_row_is_named_with_what_the_version_says_of_it() -> None:
    said, version = np.array([0.95, 0.99, 0.6]), np.array([0.91, 0.5, 0.5])
    predicted = np.array([1, 0, 1])
    surest = Surest.of(said, predicted, version)
    assert surest.predicted == 0
    assert words.surest_words("Ring", surest, "a") == (
        "The model answers 2 of 3 rows of “Ring” with more than 90% confidence; the surest is row "
        "2, with 99.0% for class a. The kernel density version is that sure of 1 of them, and "
        "says 50.0% for that row."
    )
    assert words.surest_words("Ring", Surest.of(said, predicted), "a").endswith("for class a.")


def test_the_blend_is_told_with_its_weights() -> None:
    sentence = words.blend_words(0.619, 0.4)
    assert "the model's own, with weight 0.62" in sentence
    assert "class shares of the row's region, with weight 0.40" in sentence


def test_ties_are_told_where_there_are_any() -> None:
    assert words.ties_words(0, 0) == ""
    assert "for 1 ordinary row and 2,000 foreign rows" in words.ties_words(1, 2000)


def test_alternative_texts_hold_the_numbers() -> None:
    alt = words.distance_alt({"Model": curve(0.7, 0.9, 0.95, 0.97)}, 0.5)
    assert "Model 0.70 at 0, 0.90 at 1, 0.97 at 10" in alt
    ordinary, foreign = np.array([-1.0, -2.0, -3.0]), np.array([-np.inf, -50.0, -40.0])
    alt = words.density_alt(log_densities(ordinary, {"Ring": foreign}, -10.0))
    assert "median -2" in alt
    assert "Ring: median -50" in alt
    assert "Floor: -10" in alt
