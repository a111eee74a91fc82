"""From columns to coordinates: numbers, categories, what is missing or new."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kdcal_core.calibration.graph.gaussians import fit_gaussians
from kdcal_core.errors import InputError
from kdcal_core.models.coordinates import fit_coordinates


def fit(X, *, names=None, scale=False):
    return fit_coordinates(X, n_features=np.shape(X)[1], feature_names=names, scale=scale)


def test_an_array_of_numbers_stays_as_it_is():
    X = np.random.default_rng(0).standard_normal((20, 3))
    np.testing.assert_array_equal(fit(X).transform(X), X)
    assert np.linalg.norm(fit(X, scale=True).transform(X), axis=1).max() == pytest.approx(1.0)


@settings(deadline=None)
@given(arrays(np.float64, (4, 2), elements=st.floats(-1e300, 1e300, allow_subnormal=False)))
def test_the_largest_norm_becomes_one_without_overflow(X):
    norms = np.linalg.norm(fit(X, scale=True).transform(X), axis=1)
    assert np.isfinite(norms).all()
    assert norms.max() == pytest.approx(1.0 if X.any() else 0.0, abs=1e-9)


@settings(deadline=None)
@given(arrays(np.float64, (4, 2), elements=st.floats(-1e300, 1e300, allow_subnormal=False)))
def test_standard_coordinates_are_finite_for_any_numbers(X):
    norms = np.linalg.norm(fit(X, scale="standard").transform(X), axis=1)
    assert np.isfinite(norms).all()
    assert norms.max() <= 1.0 + 1e-9


def test_standard_coordinates_are_those_of_their_definition():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * [1e-4, 1.0, 1e5] + [1.0, 0.0, -3e5]
    X = np.column_stack([X, np.full(50, 7.0)])
    spread = np.where(X.std(axis=0) > 1e-9, X.std(axis=0), 1.0)
    expected = (X - X.mean(axis=0)) / spread
    expected /= np.linalg.norm(expected, axis=1).max()
    fitted = fit(X, scale="standard")
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-12)
    missing = X[:1].copy()
    missing[0, 0] = np.nan
    assert np.abs(fitted.transform(missing)).max() > 1.0


def test_a_missing_number_becomes_the_median_with_a_mark():
    X = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0], [5.0, 8.0]])
    fitted = fit(X)
    assert fitted.n_dimensions == 3
    np.testing.assert_array_equal(fitted.transform(X)[1], [3.0, 6.0, 1.0])
    # Missing where no row of the fit misses a value: beyond all of them.
    strange = fitted.transform(np.array([[1.0, np.nan]]))[0]
    assert strange[1] >= 8.0 + np.linalg.norm(X[3])
    assert strange[2] == 0.0


def test_categories_are_one_hot_and_a_new_one_has_zeros():
    X = pd.DataFrame({"n": [1.0, 2.0, 3.0], "c": ["b", "a", None]})
    fitted = fit(X)
    np.testing.assert_array_equal(fitted.transform(X), [[1, 0, 1, 0], [2, 1, 0, 0], [3, 0, 0, 1]])
    new = pd.DataFrame({"n": [4], "c": ["z"]})
    np.testing.assert_array_equal(fitted.transform(new), [[4, 0, 0, 0]])
    as_array = X.to_numpy(dtype=object)
    np.testing.assert_array_equal(fit(as_array).transform(as_array), fitted.transform(X))


def test_columns_are_taken_by_name_and_many_categories_are_cut():
    n = 600
    X = pd.DataFrame({"text": [f"t{i}" for i in range(n)], "n": np.arange(n), "unused": "x"})
    fitted = fit_coordinates(X, n_features=2, feature_names=("n", "text"), scale=False)
    assert fitted.n_dimensions == 1 + 256
    np.testing.assert_array_equal(fitted.transform(X[["unused", "text", "n"]])[:, 0], np.arange(n))


@pytest.mark.parametrize("dtype", ["category", "string", object])
def test_any_kind_of_text_column_is_a_category(dtype):
    X = pd.DataFrame({"c": pd.Series(["a", "b", "a"], dtype=dtype)})
    np.testing.assert_array_equal(fit(X).transform(X), [[1, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", bool, "float32", object])
def test_any_kind_of_number_column_is_a_number(dtype):
    X = pd.DataFrame({"c": pd.Series([1, 0, 1], dtype=dtype)})
    np.testing.assert_array_equal(fit(X).transform(X), [[1], [0], [1]])


def test_dates_and_infinity_are_refused_by_name():
    with pytest.raises(InputError, match="dates"):
        fit(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(InputError, match="infinite"):
        fit(np.array([[1.0], [np.inf]]))


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_gaussians_are_the_mean_and_variance_of_their_rows(seed):
    rng = np.random.default_rng(seed)
    x, index = (
        1e6 + rng.standard_normal((30, 3)),
        np.concatenate([[0, 1, 2], rng.integers(0, 3, 27)]),
    )
    centres, variances = fit_gaussians(x, index, 3)
    for r in range(3):
        np.testing.assert_allclose(centres[r], x[index == r].mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(variances[r], x[index == r].var(axis=0), atol=1e-8)
