"""The sentences of the Out of distribution page, on results whose finding is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from texts.snapshot import Texts

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


def test_the_finding_holds_the_far_confidences_and_where_the_prior_begins(texts: Texts) -> None:
    found = curve(0.7, 0.9, 0.95, 0.97), curve(0.7, 0.9, 0.515, 0.5)
    texts(words.distance_finding(*found, 0.5))
    assert words.reaches_prior(found[1], 0.5) == 2.0


def test_a_dip_to_the_prior_that_does_not_last_does_not_count(texts: Texts) -> None:
    assert words.reaches_prior(curve(0.5, 0.9, 0.5, 0.6), 0.5) is None
    assert words.reaches_prior(curve(0.5, 0.9, 0.5, 0.5), 0.5) == 2.0
    texts(words.distance_finding(curve(0.7, 0.9, 0.95, 0.97), curve(0.7, 0.9, 0.5, 0.6), 0.5))


@pytest.mark.parametrize(
    "mean",
    [
        pytest.param((0.5, 0.5, 0.5, 0.51), id="stays"),
        pytest.param((0.3, 0.4, 0.49, 0.5), id="rises"),
        pytest.param((0.7, 0.6, 0.51, 0.51), id="falls about to it"),
        pytest.param((0.7, 0.9, 0.8, 0.5), id="only there"),
    ],
)
def test_the_finding_says_how_the_prior_is_reached(mean: tuple[float, ...], texts: Texts) -> None:
    texts(words.distance_finding(curve(0.7, 0.6, 0.5, 0.51), curve(*mean), 0.5))


def test_a_mean_that_passes_through_the_prior_while_rows_do_not_have_it_does_not_count(
    texts: Texts,
) -> None:
    """A band from 54% to 78% at the radius where the mean crossed the prior of 64%."""
    found = curve(0.8, 0.64, 0.64, 0.64, band=(0.1, 0.1, 0.01, 0.0))
    assert words.reaches_prior(found, 0.64) == 2.0
    sentence = words.distance_finding(
        curve(0.7, 0.6, 0.6, 0.59), found, 0.64, np.array([0.0, 0.3, 0.97, 1.0])
    )
    texts(sentence, "a wide band")
    flat = curve(0.64, 0.64, 0.64, 0.64, band=(0.1, 0.0, 0.0, 0.0))
    sentence = words.distance_finding(curve(0.7, 0.6, 0.6, 0.59), flat, 0.64)
    texts(sentence, "a narrow band")
    assert words.reaches_prior(flat, 0.64) == 1.0


def test_without_a_version_the_finding_names_the_prior(texts: Texts) -> None:
    texts(words.distance_finding(curve(0.7, 0.9, 0.9, 0.97), None, 0.5))


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param((0.0, 0.97, 1.0, 1.0), id="nearly all from radius 1"),
        pytest.param((0.0, 0.5, 1.0, 1.0), id="all from radius 2"),
        pytest.param((1.0, 1.0, 1.0, 1.0), id="all everywhere"),
        pytest.param((0.0, 1.0, 1.0, 0.4), id="some"),
    ],
)
def test_the_density_says_from_where_on_rows_are_unknown(
    unknown: tuple[float, ...], texts: Texts
) -> None:
    """Where one class has 90% of the rows, confidence is about the prior everywhere."""
    near_prior = curve(0.9, 0.9, 0.9, 0.9)
    sentence = words.distance_finding(
        curve(0.9, 0.95, 0.95, 0.97), near_prior, 0.9, np.array(unknown)
    )
    texts(sentence)


def test_what_made_rows_are_is_said(texts: Texts) -> None:
    texts(words.made_words("sphere", ("age", -260.0, 17.0)))
    assert words.made_words("shifted", None) == ""


def test_a_set_of_foreign_rows_is_described_with_its_counts(texts: Texts) -> None:
    said = mean_max_confidence([[0.9, 0.1], [0.8, 0.2]])
    version = mean_max_confidence([[0.5, 0.5], [0.6, 0.4]])
    texts(words.set_finding("Ring", said, version, 0.5, 1), "with a version")
    texts(words.set_finding("Ring", said, None, 0.5, None), "the model alone")


def test_the_floor_is_described_for_both_kinds_of_rows(texts: Texts) -> None:
    share = unknown_share(np.arange(1000) < 12)
    texts(words.density_words(share, "Ring", 3, 4, 0.01))


def test_the_selection_names_the_exponent_in_force_and_what_others_cost(texts: Texts) -> None:
    exponents, loss = np.array([0.5, 1.0, 2.0]), np.array([0.4, 0.3, 0.6])
    chosen = Selection(exponents, exponents / 7, loss, loss / 9, 80, 1)
    texts(words.selection_words(chosen), "the least")
    texts(words.selection_words(replace(chosen, chosen=2)), "another")
    nothing = replace(chosen, log_loss=np.full(3, np.nan), n=0, chosen=2)
    texts(words.selection_words(nothing), "no rows held out")


def test_the_offer_counts_the_rows_and_says_how_long(texts: Texts) -> None:
    texts(words.fit_offer(20_000, 6_000), "with training rows")
    texts(words.fit_offer(None, 1_000), "without")
    texts(words.fit_offer(10**6, 10), "a million rows")


def test_the_surest_row_is_named_with_what_the_version_says_of_it(texts: Texts) -> None:
    said, version = np.array([0.95, 0.99, 0.6]), np.array([0.91, 0.5, 0.5])
    predicted = np.array([1, 0, 1])
    surest = Surest.of(said, predicted, version)
    assert surest.predicted == 0
    texts(words.surest_words("Ring", surest, "a"))
    assert words.surest_words("Ring", Surest.of(said, predicted), "a").endswith("for class a.")


def test_the_blend_is_described_with_its_weights(texts: Texts) -> None:
    texts(words.blend_words(0.619, 0.4))


def test_ties_are_counted_where_there_are_any(texts: Texts) -> None:
    assert words.ties_words(0, 0) == ""
    texts(words.ties_words(1, 2000))


def test_alternative_texts_hold_the_numbers(texts: Texts) -> None:
    alt = words.distance_alt({"Model": curve(0.7, 0.9, 0.95, 0.97)}, 0.5)
    texts(alt)
    ordinary, foreign = np.array([-1.0, -2.0, -3.0]), np.array([-np.inf, -50.0, -40.0])
    alt = words.density_alt(log_densities(ordinary, {"Ring": foreign}, -10.0))
    assert "median −2" in alt
    assert "Ring: median −50" in alt
    assert "Floor: −10" in alt
