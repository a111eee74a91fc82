"""README and guides: their Python and their commands run, and their links lead somewhere."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pdoc
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

import kdcal_core
from kdcal_core import HeterogeneousCalibrator, diagnostics, reliability
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.cli import main
from kdcal_core.cli.arguments import parser

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FOLDER = ROOT / "app" / "guides"
GUIDES = sorted(FOLDER.glob("*.md"))
PAGES = (README, *GUIDES)
pytestmark = [
    pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning"),
    pytest.mark.usefixtures("work_here"),
]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """The words of every `kdcal` command, up to what only a shell understands."""
    lines = "".join(blocks(page, "bash")).replace("\\\n", " ").splitlines()
    return [
        shlex.split(re.split(r"[|<]", line)[0], comments=True)[1:]
        for line in lines
        if line.strip()[:6] == "kdcal "
    ]


EXAMPLES = [(page, code) for page in PAGES for code in blocks(page, "python")]
COMMANDS = [(page, words) for page in PAGES for words in commands(page)]


def example(word: str, page: str = "python.md") -> str:
    (code,) = (code for path, code in EXAMPLES if path.name == page and word in code)
    return code


def rows(seed: int, n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(np.float32)
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))).astype(int)


@pytest.fixture
def names() -> dict[str, Any]:
    """What the examples take as there."""
    (X_train, y_train), (X, y), (X_new, y_new) = map(rows, range(3))
    model = LogisticRegression().fit(X_train, y_train)
    return {
        **{"X_train": X_train, "y_train": y_train, "X_heldout": X, "y_heldout": y},
        **{"X_new": X_new, "y_new": y_new, "y_calibration": y},
        "proba_calibration": model.predict_proba(X),
        "proba_heldout": model.predict_proba(X),
        "proba_new": model.predict_proba(X_new),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples, in which the guide's commands have run one after the other."""
    here = tmp_path_factory.mktemp("repository")
    (here / "sample_data").symlink_to(ROOT / "sample_data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for page, words in COMMANDS:
            if page.name == "command_line.md" and not set(words) & {"convert", "-"}:
                assert main(words) == 0, words
    return here


@pytest.mark.parametrize("page", ["README.md", "python.md"])
def test_the_confidence_of_a_predicted_class(names: dict[str, Any], page: str) -> None:
    exec(example("TopLabelKDE()", page), names)
    assert names["confidence"].shape == (300,)


def test_a_forest_and_a_network_that_know_where_their_data_end(names: dict[str, Any]) -> None:
    torch.manual_seed(0)
    names["module"] = torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
    )
    exec(example("KernelDensityNetwork(module)"), names)
    for one in (names["graph"], names["network"]):
        assert one.is_unknown(1000 * names["X_new"]).all()
        assert one.is_unknown(names["X_new"]).mean() < 0.1


def test_a_classifier_and_its_pictures(names: dict[str, Any]) -> None:
    exec(example("CalibratedModel"), names)
    assert names["model"].predict_proba(names["X_new"]).shape == (300, 2)
    shown = names | {"graph": LogisticRegression().fit(*rows(0))}
    exec(example("MMCDisplay"), shown)
    far = shown["MMCDisplay"].from_estimator(
        shown["model"], *(shown[one] for one in ("X_train", "y_train")), graph=shown["graph"]
    )
    assert set(far.frame()["method"]) == {"Model", "graph"}


def test_regions(names: dict[str, Any]) -> None:
    frames = {k: pd.DataFrame(names[k], columns=["a", "b"]) for k in ("X_heldout", "X_new")}
    exec(example("find_regions"), names | frames)


def test_frames_of_other_libraries(names: dict[str, Any]) -> None:
    exec(example("polars"), names)
    expected = HeterogeneousCalibrator().fit(
        names["proba_heldout"],
        names["y_heldout"],
        pd.DataFrame(names["X_heldout"], columns=["age", "dose"]),
    )
    stated = names["regions"].predict_proba(names["proba_heldout"], names["X_heldout"])
    assert_array_equal(stated, expected.predict_proba(names["proba_heldout"], names["X_heldout"]))


def test_a_regression(names: dict[str, Any]) -> None:
    X, X_new = (np.random.default_rng(seed).normal(size=(n, 2)) for seed, n in ((0, 800), (1, 300)))
    names |= {"X_calibration": X, "X_new": X_new, "y_calibration": X[:, 0], "y_new": X_new[:, 0]}
    names |= {"mean_calibration": X[:, 0] + X[:, 1], "mean_new": X_new.sum(axis=1)}
    exec(
        example("LocalRecalibration"),
        names | {"std_calibration": np.ones(800), "std_new": np.ones(300)},
    )


def test_the_numbers_of_scikit_learn(names: dict[str, Any]) -> None:
    exec(example("half_brier", "coming_from.md"), names)
    y, p = names["y_new"], names["proba_new"][:, 1]
    frac_pos, mean_pred = calibration_curve(y, p, n_bins=10)
    np.testing.assert_allclose(names["frac_pos"], frac_pos)
    np.testing.assert_allclose(names["mean_pred"], mean_pred)
    assert ((names["low"] <= frac_pos) & (frac_pos <= names["high"])).all()
    assert names["half_brier"] == pytest.approx(brier_score_loss(y, p))
    assert 2 * names["half_brier"] == pytest.approx(brier_score_loss(y, p, scale_by_half=False))
    proba = names["proba_new"]
    assert diagnostics.log_loss(proba, y).value == pytest.approx(log_loss(y, proba))


def test_bins_are_closed_where_those_of_scikit_learn_are() -> None:
    p = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], 8)  # edges of four bins
    y = (np.random.default_rng(0).random(40) < p).astype(int)
    curve = reliability(np.column_stack([1 - p, p]), y, kind="class", label=1, n_bins=4).curves[0]
    frac_pos, mean_pred = calibration_curve(y, p, n_bins=4)
    np.testing.assert_allclose(curve.accuracy[curve.count > 0], frac_pos)
    np.testing.assert_allclose(curve.confidence[curve.count > 0], mean_pred)


def test_a_score_becomes_a_probability() -> None:
    rng = np.random.default_rng(0)
    score = np.round(600.0 + 60.0 * rng.normal(size=4000))
    defaulted = np.where(rng.random(4000) < expit((600.0 - score) / 60.0), 1, 0)
    rows = pd.DataFrame({"score": score, "defaulted": defaulted})
    names: dict[str, Any] = {"other": rows[:2000], "table": rows[2000:].copy()}
    exec(example("to_probability", "predictions.md"), names)
    found = diagnostics.calibration_slope(
        names["table"]["p_defaulted"], names["table"]["defaulted"]
    )
    assert found.low < 1.0 < found.high


def test_what_netcal_users_do(names: dict[str, Any]) -> None:
    """The ECE by its formula, over bins of equal width, of the predicted class."""
    exec(example("ClasswiseHistogram", "coming_from.md"), names)
    proba, y = names["scaled"].predict_proba(names["proba_new"]), names["y_new"]
    right, sure = proba.argmax(axis=1) == y, proba.max(axis=1)
    at = np.ceil(sure * 10)
    gaps = [abs(right[at == b].sum() - sure[at == b].sum()) for b in np.unique(at)]
    assert names["ece"].value == pytest.approx(sum(gaps) / len(y))
    assert names["binned"].predict_proba(proba).shape == proba.shape


def test_what_mapie_users_do(names: dict[str, Any]) -> None:
    mean, new = (np.random.default_rng(seed).normal(size=400) for seed in (0, 1))
    noise = 2 * np.random.default_rng(2).normal(size=(2, 400))
    names |= {"mean_calibration": mean, "mean_new": new, "y_calibration": mean + noise[0]}
    names |= {"std_calibration": np.ones(400), "std_new": np.ones(400), "y_new": new + noise[1]}
    exec(example("interval_coverage", "coming_from.md"), names)
    y, low, high = (names[name] for name in ("y_new", "low", "high"))
    assert names["held"].value == pytest.approx(((low <= y) & (y <= high)).mean())
    assert names["held"].low < 0.9 < names["held"].high


def test_a_name_of_kdcal_in_the_guide_for_others_exists() -> None:
    """After "here" in its lists, and the parameters that it is given."""
    lines = (FOLDER / "coming_from.md").read_text().splitlines()
    right = " ".join(line.split("; here ")[1] for line in lines if "; here " in line)
    rooms = [kdcal_core, diagnostics, import_module("kdcal_core.regression")]
    found = re.findall(r"`([A-Za-z]\w*)(?:\.(from_\w+))?(?:\(([^`)]*)\))?[`.]", right)
    assert len(found) > 15
    for name, method, given in found:
        if name in ("kdcal_core", "predict"):  # the package, and of what the row above fits
            continue
        (room, *_) = (room for room in rooms if hasattr(room, name))
        called = getattr(room, name)
        takes = inspect.signature(getattr(called, method) if method else called).parameters
        assert set(re.findall(r"(\w+)=", given)) <= set(takes), (name, given)


def test_the_guides_commands_and_the_file_they_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    shutil.copy("adult.kdcal", "my.kdcal")
    shutil.copy("sample_data/adult/model.json", "model.json")
    (said,) = blocks(FOLDER / "command_line.md", "text")
    report = json.loads(Path("report.json").read_text())
    assert said.splitlines() == report["sets"][0]["findings"]
    names: dict[str, Any] = {"X": pd.read_parquet("sample_data/adult/evaluation.parquet")}
    exec(example("load_calibrator"), names)
    written = pd.read_parquet("scored.parquet")
    np.testing.assert_allclose(names["scored"].confidence, written["confidence"], atol=1e-6)


def test_every_python_example_is_tried_above() -> None:
    tried = ("TopLabelKDE()", "KernelDensityNetwork(module)", "find_regions", "load_calibrator")
    tried += ("LocalRecalibration", "CalibratedModel", "MMCDisplay", "polars")
    tried += ("half_brier", "ClasswiseHistogram", "interval_coverage")
    tried += ("to_probability",)
    tried += ("mlflow",)  # in test_mlflow_evaluator.py
    for page, code in EXAMPLES:
        assert sum(word in code for word in tried) == 1, (page, code)


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda one: str(one)[-60:])
def test_a_command_and_its_options_exist(page: Path, words: list[str]) -> None:
    parser().parse_args(words)
    for word in words:
        if word.startswith("sample_data"):
            assert (ROOT / word).exists(), word


def test_the_guide_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (FOLDER / "command_line.md").read_text()
    with pytest.raises(SystemExit):
        main(["--help"])
    found = re.findall(r"^    (\w+)\b", capsys.readouterr().out, re.MULTILINE)
    assert len(found) >= 4
    for command in found:
        assert f"`{command}`" in guide
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0


def test_what_only_python_offers_is_there() -> None:
    section = (FOLDER / "python.md").read_text().partition("## Only in Python\n")[2]
    lines = section.partition("\n## ")[0].strip().replace("\n  ", " ").splitlines()
    assert lines
    for line in lines:
        said = re.fullmatch(r"- ((?:`\w+`(?:, | and )?)+) of `([\w.]+)`: .+", line)
        assert said is not None, line
        module = said[2] if said[2].startswith("kdcal_core") else "kdcal_core"
        owner = import_module(module)
        owner = owner if module == said[2] else getattr(owner, said[2])
        for name in re.findall(r"`(\w+)`", said[1]):
            assert hasattr(owner, name), line
            assert module == "kdcal_core" or name in owner.__all__, line


def test_the_reference_opens_without_a_network(tmp_path: Path) -> None:
    (block,) = (one for one in blocks(FOLDER / "python.md", "bash") if "pdoc" in one)
    rooms = [
        name for group in re.findall(r"kdcal_core\.{([\w,]+)}", block) for name in group.split(",")
    ]
    assert len(rooms) > 10
    for room in rooms:
        assert (ROOT / "kdcal_core" / room).is_dir() or (ROOT / f"kdcal_core/{room}.py").is_file()
    options = block.split("pdoc ")[1].split(" -o ")[0].split()
    assert options == ["-d", "numpy", "--no-show-source"]
    pdoc.render.configure(docformat="numpy", show_source=False)
    pdoc.pdoc("kdcal_core.displays", output_directory=tmp_path)
    page = (tmp_path / "kdcal_core/displays.html").read_text()
    assert '<h6 id="parameters">Parameters</h6>' in page
    assert not re.search(r"(src|url)[=(]\"?https?:|<link[^>]+https?:", page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        assert target.startswith("https://") or (page.parent / target).resolve().exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_one_heading_of_the_first_level_opens_a_page(page: Path) -> None:
    assert re.findall(r"^# .*", prose(page), re.MULTILINE) == [page.read_text().split("\n")[0]]


def test_the_readme_links_to_every_guide_by_its_title() -> None:
    assert GUIDES
    for guide in GUIDES:
        title = guide.read_text().split("\n")[0].removeprefix("# ")
        assert f"[{title}](app/guides/{guide.name})" in README.read_text()


def test_the_readme_lists_the_rooms_from_the_ground_up() -> None:
    table = README.read_text().partition("## Find your way")[2].partition("\n## ")[0]
    named = re.findall(r"`kdcal_core/(\w+)(?:\.py)?`", table)
    rooms = [path for path in (ROOT / "kdcal_core").iterdir() if not path.name.startswith("_")]
    folders = [one.stem for one in rooms if one.suffix == ".py" or (one / "__init__.py").exists()]
    assert sorted(named) == sorted(folders)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"][::-1]
    floors = {name: floor for floor, layer in enumerate(layers) for name in layer.split(" | ")}
    assert [floors[name] for name in named] == sorted(floors[name] for name in named)


def test_calibrators_that_a_guide_recommends_exist() -> None:
    table = (FOLDER / "calibrators.md").read_text().partition("## In short")[2].partition("\n##")[0]
    keys = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|.*\|([^|]+)\|$", table, re.MULTILINE)))
    assert len(keys) > 5
    assert set(keys) <= set(CALIBRATORS)
