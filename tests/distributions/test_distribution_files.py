"""Families by name, spreads, and distributions kept in files."""

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kdcal_core.distributions import (
    FAMILIES,
    Empirical,
    Gamma,
    LogNormal,
    Mapped,
    Normal,
    Quantiles,
    StudentT,
    Weighted,
    cross_fitted_spread,
    distribution_of,
    from_arrays,
    load_distribution,
    save_distribution,
    spread_of,
)
from kdcal_core.errors import InputError

KEPT = [
    Normal([0.0, 1.0], 2.0),
    LogNormal([0.0, 1.0], 2.0),
    Gamma(100.0, [1.0, 2.0]),
    StudentT([0.0, 1.0], 1.0, 5.0),
    Empirical([[2.0, 1.0, 3.0], [1.0, 1.0, 1.0]]),
    Weighted([[2.0, 1.0, 3.0], [1.0, 1.0, 1.0]], [[1, 2, 3], [1, 0, 0]]),
    Quantiles([0.1, 0.9], [[0.0, 1.0], [5.0, 6.0]]),
    Mapped(Normal([0.0, 1.0], 2.0), [0, 0.5, 1], [0, 0.2, 1]),
    Mapped(Mapped(Empirical([[1.0, 2.0], [3.0, 4.0]]), [0, 1], [0, 1]), [0, 1], [0, 1]),
]


@pytest.mark.parametrize("kept", KEPT, ids=repr)
def test_distributions_come_back_from_arrays_and_files(kept, tmp_path):
    save_distribution(kept, tmp_path)
    for back in (from_arrays(kept.family, kept.arrays()), load_distribution(tmp_path, n_rows=2)):
        assert type(back) is type(kept)
        for ask in ("cdf", "crps", "log_density"):
            assert_allclose(getattr(back, ask)(0.7), getattr(kept, ask)(0.7), rtol=1e-14)
        assert_allclose(back.ppf(0.3), kept.ppf(0.3), rtol=1e-14)


def test_many_samples_from_files_stay_in_their_files(tmp_path):
    save_distribution(Empirical(np.tile(KEPT[4].samples, (40_000, 1))), tmp_path)
    samples = load_distribution(tmp_path).samples
    while not isinstance(samples, np.memmap):
        assert samples.base is not None
        samples = samples.base
    assert not samples.flags.writeable


@pytest.mark.parametrize(
    "harm",
    [
        lambda f: (f / "samples.npy").unlink(),
        lambda f: (f / "samples.npy").write_bytes(b"\x80\x04 no array"),
        lambda f: np.save(f / "samples.npy", np.array([[1.0], [np.nan]])),
        lambda f: np.save(f / "samples.npy", np.zeros((9, 9))),
        lambda f: np.save(f / "samples.npy", np.array([[{}]], dtype=object), allow_pickle=True),
        lambda f: (f / "distribution.json").write_text("[]"),
        lambda f: (f / "distribution.json").write_text("{"),
        lambda f: (f / "distribution.json").write_text("[" * 100_000),
        lambda f: (f / "distribution.json").write_text(
            json.dumps({"family": "samples", "shapes": {"../samples": [2, 3]}})
        ),
        lambda f: (f / "distribution.json").write_text(
            json.dumps({"family": ["samples"], "shapes": {}})
        ),
        lambda f: (f / "distribution.json").write_text(
            json.dumps({"family": "mapped", "shapes": {"knots": [2], "values": [2]}})
        ),
        lambda f: (f / "distribution.json").write_text(
            json.dumps({"family": "mapped", "shapes": {"mapped." * 1000 + "normal.mean": [2]}})
        ),
    ],
)
def test_damaged_files_are_refused(harm, tmp_path):
    save_distribution(KEPT[4], tmp_path)
    harm(tmp_path)
    with pytest.raises(InputError, match="no longer kept"):
        load_distribution(tmp_path)


def test_another_number_of_rows_is_refused(tmp_path):
    save_distribution(KEPT[0], tmp_path)
    with pytest.raises(InputError, match="no longer kept"):
        load_distribution(tmp_path, n_rows=3)


def test_arrays_of_no_family_are_refused():
    with pytest.raises(InputError, match="no distribution"):
        from_arrays("normal", {"mean": np.zeros(2)})
    with pytest.raises(InputError, match="no distribution"):
        from_arrays("cauchy", {})


def test_every_family_builds_its_distribution():
    columns = {
        "mean": [1.0, 2.0],
        "log_mean": [0.1, 0.2],
        "std": [1.0, 2.0],
        "log_std": [1, 2],
        "shape": [3, 4],
        "scale": [1, 1],
        "df": [5, 6],
    }
    for family, spec in FAMILIES.items():
        given = {name: columns[name] for name in spec.parameters}
        given = given or {"0.1": [1.0, 2.0], "0.9": [2.0, 4.0]}
        ours = distribution_of(family, given, spread=0.5)
        assert len(ours) == 2
        assert (ours.cdf_left(0.0) == 0).all() or not spec.positive
    assert_allclose(distribution_of("gamma", columns).mean(), [1, 2])
    assert_allclose(distribution_of("gamma", columns).std(), [1 / np.sqrt(3), 1])
    assert_allclose(distribution_of("lognormal", columns).ppf(0.5), np.exp([0.1, 0.2]))
    samples = distribution_of("dropout", {"2": [1.0], "10": [4.0], "1": [2.0]})
    assert_allclose(samples.mean(), 7 / 3)


def test_errors_name_the_file():
    with pytest.raises(InputError, match=r"std is 0 .*file 'a.csv', row 2"):
        distribution_of("normal", {"mean": [0, 0], "std": [1, 0]}, file="a.csv")
    with pytest.raises(InputError, match="std is missing"):
        distribution_of("normal", {"mean": [0, 0]})
    with pytest.raises(InputError, match="spread"):
        distribution_of("point", {"mean": [0, 0]})
    with pytest.raises(InputError, match="not the level"):
        distribution_of("quantiles", {"low": [0], "0.9": [1]})


def test_the_spread_is_the_root_mean_squared_residual():
    rng = np.random.default_rng(0)
    mean, y = rng.normal(size=50), rng.normal(size=50)
    assert_allclose(spread_of("point", {"mean": mean}, y), np.sqrt(np.mean((y - mean) ** 2)))
    positive = np.exp(y)
    found = spread_of("log_point", {"log_mean": mean}, positive)
    assert_allclose(found, np.sqrt(np.mean((y - mean) ** 2)))
    for columns, outcomes, words in (
        ({"mean": [1.0]}, [1.0], "no spread"),
        ({"mean": [1.0, 2.0]}, [1.0], "2 predictions and 1 outcomes"),
    ):
        with pytest.raises(InputError, match=words):
            spread_of("point", columns, outcomes)
    with pytest.raises(InputError, match=r"row 2"):
        spread_of("log_point", {"log_mean": [1.0, 1.0]}, [1.0, 0.0])
    with pytest.raises(InputError, match="own spread"):
        spread_of("normal", {"mean": [1.0]}, [1.0])


def test_nothing_warns_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kept in KEPT:
            for y in (-5.0, 0.0, 1.0, 1e300):
                kept.cdf(y), kept.log_density(y), kept.crps(y), kept.ppf(0.0), kept.ppf(1.0)
            kept.mean(), kept.std()


def test_the_spread_of_a_row_is_that_of_the_other_folds():
    rng = np.random.default_rng(0)
    mean, y = rng.normal(size=(2, 203))
    spread = cross_fitted_spread("point", {"mean": mean}, y)
    for one in np.unique(spread):
        held = spread == one
        assert_allclose(one, np.sqrt(np.mean((y - mean)[~held] ** 2)))
    logs = cross_fitted_spread("log_point", {"log_mean": mean}, np.exp(y))
    assert_allclose(logs, spread)
    assert cross_fitted_spread("point", {"mean": [1.0]}, [3.0]).tolist() == [2.0]
    assert cross_fitted_spread("point", {"mean": [0.0, 0.0]}, [0.0, 2.0])[1] > 0
