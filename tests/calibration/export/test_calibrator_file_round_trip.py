"""What is saved comes back to the last bit: every calibrator of the registry."""

from __future__ import annotations

import dataclasses
import json
import zipfile

import numpy as np
import pytest
from calibrator_file_cases import card, fitted, heterogeneous, scored, table

from kdcal_core.calibration import CALIBRATORS, TopLabelConfidence, UncalibratedConfidence
from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.export import (
    CardEstimate,
    ModelMark,
    load_calibrator,
    save_calibrator,
)
from kdcal_core.calibration.export.calibrator_file import Decoder, Encoder
from kdcal_core.calibration.fitting import calibrated
from kdcal_core.calibration.regions import MAPS, PARTITIONS
from kdcal_core.errors import InputError
from kdcal_core.store import is_storable, storable_class

CASES = [
    (key, n_classes)
    for key, entry in CALIBRATORS.items()
    for n_classes in ((2,) if entry.binary_only else (2, 3))
]


@pytest.mark.parametrize(("key", "n_classes"), CASES)
def test_every_calibrator_comes_back_to_the_last_bit(key, n_classes, tmp_path):
    calibrator, rows, X, model = fitted(key, n_classes)
    stated = card(key, calibrator, rows, X)
    save_calibrator(calibrator, tmp_path / "a.kdcal", stated)
    loaded = load_calibrator(tmp_path / "a.kdcal", model=model)
    assert loaded.card == stated
    if model is None:
        rows, X = scored(n_classes, seed=7), table(seed=7)
    ours, theirs = loaded.calibrated(rows.proba, X), calibrated(calibrator, rows.proba, X)
    for name in ("proba", "predicted", "confidence"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(loaded.predict_proba(rows.proba, X), theirs.proba)
    np.testing.assert_array_equal(loaded.predict_confidence(rows.proba, X), theirs.confidence)
    save_calibrator(loaded.calibrator, tmp_path / "b.kdcal", loaded.card)
    assert (tmp_path / "a.kdcal").read_bytes() == (tmp_path / "b.kdcal").read_bytes()


# Partitions and maps are kept apart from one another: every partition with one map, and every map
# in one layer of regions and in several, of two classes and of three.
REGIONAL = [
    *((partition, "temperature", n_classes) for partition in PARTITIONS for n_classes in (2, 3)),
    *(
        (partition, inside, n_classes)
        for inside in MAPS
        if inside != "temperature"
        for partition, n_classes in (("boosted", 2), ("groups", 3))
    ),
]


@pytest.mark.parametrize(("partition", "inside", "n_classes"), REGIONAL)
def test_every_partition_and_map_comes_back(partition, inside, n_classes, tmp_path):
    column = {"column": "colour"} if partition == "column" else {}
    calibrator, rows = heterogeneous(
        n_classes, partition=partition, calibrator=inside, n_trees=3, max_depth=2, **column
    )
    path = tmp_path / "a.kdcal"
    save_calibrator(calibrator, path, card("", calibrator, rows, table()))
    loaded = load_calibrator(path)
    new, X = scored(n_classes, seed=7), table(seed=7)
    np.testing.assert_array_equal(
        loaded.predict_proba(new.proba, X), calibrator.predict_proba(new.proba, X)
    )
    assert [one.words for one in loaded.calibrator.regions_] == [
        one.words for one in calibrator.regions_
    ]


def test_columns_are_taken_by_name_and_a_missing_one_is_reported(tmp_path):
    calibrator, rows = heterogeneous()
    save_calibrator(calibrator, tmp_path / "a.kdcal", card("", calibrator, rows, table()))
    loaded = load_calibrator(tmp_path / "a.kdcal")
    new = scored(2, seed=7).proba
    more = table(seed=7)[["=cmd", "old", "size", "colour"]].assign(unused=1)
    np.testing.assert_array_equal(
        loaded.predict_proba(new, more), loaded.predict_proba(new, table(seed=7))
    )
    with pytest.raises(InputError, match="lacks a column") as error:
        loaded.predict_proba(new, more.drop(columns="colour"))
    assert error.value.column == "colour"


REGIONS = "kdcal_core.calibration.regions"
CALIBRATORS_IN_FILES = (
    *("UncalibratedConfidence", "TopLabelConfidence", "TopLabelHistogram", "TopLabelKDE"),
    *("TemperatureScaling", "CumulativeConfidence", "IsotonicConfidence", "SigmoidConfidence"),
    *("PlattScaling", "BetaCalibration", "ClasswiseHistogram", "VectorScaling", "VennAbers"),
    *("DirichletScaling", "HeterogeneousCalibrator", "KernelDensityCalibrator"),
    *("StructuredVectorScaling", "StructuredMatrixScaling", "QuadraticScaling"),
    *("SplineCalibration", "CentredIsotonic", "EnsembleTemperature", "RecommendedCalibrator"),
)
RECORDS_IN_FILES = (
    *("Curve", "InputColumn", "PartitionTree", "ColumnPartition", "Layer", "RegionFit"),
    *("LinearMaps", "IsotonicMaps", "HistogramMaps", "TemperatureMaps", "DensityMaps", "Damped"),
    "SplineCurve",
)


def test_every_class_that_files_have_named_is_still_known():
    for name in CALIBRATORS_IN_FILES:
        assert issubclass(storable_class(name, Calibrator, REGIONS), Calibrator)
    for name in RECORDS_IN_FILES:
        assert dataclasses.is_dataclass(storable_class(name, object, REGIONS))
        with pytest.raises(InputError, match="does not know"):
            storable_class(name, Calibrator, REGIONS)
    for entry in CALIBRATORS.values():
        assert is_storable(type(entry.factory()))


@pytest.mark.parametrize("name", ["Calibrator", "object", "os.system", "CalibratorCard", 3, None])
def test_a_file_cannot_name_any_other_class(name):
    with pytest.raises(InputError, match="does not know"):
        storable_class(name, object, REGIONS)


def test_a_card_comes_back_whole(tmp_path):
    calibrator, rows, X, _ = fitted("confidence")
    full = dataclasses.replace(
        card("confidence", calibrator, rows, X),
        model=ModelMark("net.onnx", "ReLU network", "ab" * 32),
        estimates=(CardEstimate("Log loss", "Log loss", 0.5, 0.4, 0.3, 0.5, 400, "cross-fitted"),),
        parameters={"a": [1, None, "x"], "b": 0.1},
        notes=("one",),
    )
    save_calibrator(calibrator, tmp_path / "c.kdcal", full)
    loaded = load_calibrator(tmp_path / "c.kdcal")
    assert loaded.card == full
    loaded.check_model("ab" * 32)
    with pytest.raises(InputError, match=r"belongs to the model 'net\.onnx'"):
        loaded.check_model("cd" * 32)


def test_a_file_holds_no_pickle_and_its_description_is_json(tmp_path):
    calibrator, rows, X, _ = fitted("sts")
    save_calibrator(calibrator, tmp_path / "c.kdcal", card("sts", calibrator, rows, X))
    with zipfile.ZipFile(tmp_path / "c.kdcal") as archive:
        about = json.loads(archive.read("about.json"))
        assert about["kind"] == "calibrator"
        assert about["version"] == 3  # of the default, which has shrinkage
        assert {name.partition(".")[2] for name in archive.namelist()} == {"json", "npy"}


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        -(10**30),
        0.1,
        float("inf"),
        float("-inf"),
        "text",
        (),
        (1, (2.5, "x"), {"a": None}),
        {"deep": {"er": (True,)}},
    ],
)
def test_plain_values_come_back_as_they_were(value):
    encoder = Encoder()
    text = json.loads(json.dumps(encoder.value(value), allow_nan=False))
    back = Decoder(encoder.arrays, encoder.records).value(text)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.float64(3.5),
        np.array(3),
        np.zeros((0, 4)),
        np.array([np.nan, -0.0, np.inf]),
        np.arange(6, dtype=np.uint8).reshape(2, 3).T,
        np.array([True, False]),
        np.arange(3, dtype=np.float32),
    ],
)
def test_arrays_come_back_bit_for_bit(array):
    encoder = Encoder()
    back = Decoder(encoder.arrays, []).value(encoder.value(array))
    assert np.asarray(back).tobytes() == np.asarray(array).tobytes()
    assert np.shape(back) == np.shape(array)


def test_nan_comes_back():
    assert np.isnan(Decoder({}, []).value(Encoder().value(float("nan"))))


def test_what_stands_in_two_places_is_kept_once():
    array = np.arange(1000.0)
    encoder = Encoder()
    assert encoder.value((array, array.copy())) == {"tuple": [{"array": 0}, {"array": 0}]}
    assert len(encoder.arrays) == 1


@pytest.mark.parametrize(
    "value", [{1: 2}, [1], {1, 2}, b"x", object(), np.array(["a"]), np.array([None])]
)
def test_what_the_rule_forbids_is_not_saved(value):
    with pytest.raises(TypeError):
        Encoder().value(value)


def test_a_stranger_under_a_known_name_is_not_saved():
    stranger = type("UncalibratedConfidence", (UncalibratedConfidence,), {})
    with pytest.raises(TypeError, match="cannot hold the calibrator"):
        Encoder().estimator(stranger().fit([[0.6, 0.4], [0.3, 0.7]], [0, 1]))


def test_only_a_fitted_calibrator_is_saved(tmp_path):
    calibrator, rows, X, _ = fitted("confidence")
    stated = card("confidence", calibrator, rows, X)
    with pytest.raises(InputError):
        save_calibrator(TopLabelConfidence(), tmp_path / "c.kdcal", stated)
    with pytest.raises(InputError, match="names 2 classes"):
        save_calibrator(
            calibrator, tmp_path / "c.kdcal", dataclasses.replace(stated, classes=("a", "b"))
        )
    with pytest.raises(InputError, match="folder"):
        save_calibrator(calibrator, tmp_path / "none" / "c.kdcal", stated)
    assert list(tmp_path.iterdir()) == []
