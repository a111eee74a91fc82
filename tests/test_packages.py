"""What is installed: the ranges of versions and the lock file. `.ci/run` tries the wheel."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OF_MODELS = {"lightgbm", "onnx", "onnxruntime", "skops", "torch", "xgboost-cpu"}


def _lines(name: str) -> list[str]:
    return re.findall(r"^[^#\n].*$", (ROOT / name).read_text("utf-8"), re.MULTILINE)


def _asked() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"].values()
    every = [*PROJECT["dependencies"], *(one for extra in extras for one in extra)]
    return [one for one in map(Requirement, every) if one.name != "kdcal"]


def test_every_range_ends_somewhere():
    open_ended = [str(one) for one in _asked() if not re.search(r"<|==", str(one.specifier))]
    assert open_ended == []


def test_the_lock_file_holds_a_version_within_every_range():
    locked = dict(one.split("==") for one in _lines(".ci/lock.txt"))
    names = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in locked.items()}
    for one in _asked():
        if one.name == "torch":  # its build differs from machine to machine
            continue
        assert one.specifier.contains(names[re.sub(r"[-_.]+", "-", one.name).lower()]), one


def test_reviews_of_predictions_need_everything_but_model_formats():
    wanted = [one for one in PROJECT["dependencies"] if Requirement(one).name not in OF_MODELS]
    assert _lines("app/predictions_only.txt") == wanted
