"""Rebuild the shipped samples: ``python sample_data/build.py [--only NAME ...] [--out DIR]``.

The same versions of the packages give the same bytes; each card records the versions. The images
of ``mnist_network`` come from a folder with ``mnist.npz`` and ``fashion_mnist.npz``, which
``--data DIR`` names; without it this sample is left as it is.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module, metadata
from pathlib import Path

import pyarrow.parquet as pq
from recipes.files import write_json
from threadpoolctl import threadpool_limits

# Name of the sample, and the packages that its bytes depend on.
SAMPLES = {
    "digits": ("numpy", "pyarrow", "scikit-learn", "onnx"),
    "breast_cancer": ("numpy", "pyarrow", "scikit-learn", "skops"),
    "adult": ("numpy", "pandas", "pyarrow", "xgboost-cpu"),
    "adult_network": ("numpy", "pandas", "pyarrow", "torch", "onnx"),
    "digits_predictions": ("numpy", "pyarrow", "scikit-learn"),
    "xor_forest": ("numpy", "pyarrow", "scikit-learn", "skops"),
    "xor_network": ("numpy", "pyarrow", "scikit-learn", "onnx"),
    "heteroscedastic": ("numpy", "pyarrow", "onnx"),
    "diamonds": ("numpy", "pyarrow", "torch", "onnx"),
    "diamonds_quantiles": ("numpy", "pyarrow", "scikit-learn"),
    "mnist_network": ("numpy", "pyarrow", "torch", "onnx"),
}
FROM_DATA = ("mnist_network",)


def build(name: str, out: Path, data: Path | None = None) -> Path:
    """Write one sample to ``out / name`` and return that folder."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    given = (data,) if name in FROM_DATA else ()
    card = import_module(f"recipes.{name}").build(folder, *given)
    tables = {"calibration": "calibration.parquet", "evaluation": "evaluation.parquet"}
    info = sys.version_info
    versions = {package: metadata.version(package) for package in SAMPLES[name]}
    card = {
        "name": name,
        **card,
        **tables,
        **({"n_classes": len(card["class_names"])} if "class_names" in card else {}),
        "rows": {
            **{role: n_rows(folder / file) for role, file in tables.items()},
            **{file.stem: n_rows(file) for file in besides(folder)},
        },
        "built_with": {"python": f"{info.major}.{info.minor}", **versions},
    }
    write_json(folder / "card.json", card)
    return folder


def besides(folder: Path) -> list[Path]:
    """The training rows and the foreign ones, where the sample has any."""
    return [*folder.glob("training.parquet"), *sorted(folder.glob("foreign*.parquet"))]


def n_rows(table: Path) -> int:
    rows: int = pq.read_metadata(table).num_rows
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SAMPLES, help="build these samples alone")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to fill")
    parser.add_argument("--data", type=Path, help="folder with the images of mnist_network")
    options = parser.parse_args()
    for name in options.only or SAMPLES:
        if name in FROM_DATA and options.data is None:
            print(f"{name}: left as it is, because --data names no folder")
            continue
        # One thread: sums in another order end in other last bits.
        with threadpool_limits(limits=1):
            folder = build(name, options.out, options.data)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{folder}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
