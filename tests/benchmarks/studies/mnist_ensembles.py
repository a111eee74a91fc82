"""Salamon et al., Appendix and Figs. 16 to 19: calibrators of ensembles that read MNIST.

Networks are trained on 50,000 of the 60,000 training images; the other 10,000 are test set 1, on
which calibrators are fitted, and the official 10,000 are test set 2. An ensemble is ten of the
networks. Its score is the mean of their probabilities, as a tenth of PhANNs' sum, or the softmax of
their summed log probabilities, which is much sharper. Losses are those of the predicted class.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import softmax

from kdcal_core.calibration import Calibrator
from kdcal_core.calibration.calibrators import calibrator_entry
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import calibration_error
from kdcal_core.statistics import top_label_log_losses
from tests.benchmarks.studies import measures
from tests.benchmarks.studies.summary import markdown, summarised

WIDTHS = (300, 100)
BATCH, RATE, CLASSES, MEMBERS = 1000, 1e-3, 10, 10
STEPS = {"under-trained": 400, "fully trained": 10_000}
QUICK_STEPS = {"under-trained": 400, "fully trained": 2000}  # the last is 40 times all images
N_TEST_1 = 10_000
N_NETWORKS, N_ENSEMBLES = 100, 100  # the paper has 1,000 of each
BINS = 15
METHODS = ("uncalibrated", "histogram", "kde_mon", "kde_mon2", "sts", "csts", "tswa", "cwoc")
SURE = 0.99

Combination = Literal["sum", "product"]
Task = dict[str, Any]
Row = dict[str, Any]
Labelled = tuple[FloatArray, IntArray]


def tasks(quick: bool, data: Path) -> list[Task]:
    """One task a length of training; quick: a fifth of the longer one, 12 networks, 8 ensembles."""
    sizes = {"networks": 12, "ensembles": 8} if quick else {}
    lengths = QUICK_STEPS if quick else STEPS
    usual = {"networks": N_NETWORKS, "ensembles": N_ENSEMBLES}
    return [
        {"training": name, "steps": steps, **usual, **sizes, "data": str(data)}
        for name, steps in lengths.items()
    ]


def run(task: Task) -> list[Row]:
    """Losses of every calibrator for every ensemble, on both test sets."""
    began = time.perf_counter()
    train, first, second = split(Path(task.pop("data")))
    said = [
        [logs(network, rows[0]) for rows in (first, second)]
        for network in (
            trained(*train, steps=task["steps"], seed=seed) for seed in range(task["networks"])
        )
    ]
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for ensemble in range(task["ensembles"]):
        members = rng.choice(task["networks"], MEMBERS, replace=False)
        for how in ("sum", "product"):
            both = [combined([said[at][place] for at in members], how) for place in (0, 1)]
            note = partial(measures.entry, {**task, "repetition": ensemble, "score": how})
            rows += _judged(note, (both[0], first[1]), (both[1], second[1]))
    rows.append(
        measures.entry(
            {**task, "repetition": 0, "score": ""}, "", "seconds", time.perf_counter() - began
        )
    )
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """A line a score and method, a column a measure: the median over the ensembles."""
    keys = ["training", "score", "method", "measure"]
    table = summarised(rows, keys)
    table.to_csv(out / "mnist_ensembles.csv", index=False, float_format="%.5g")
    shown = table[table["measure"] != "seconds"]
    wide = shown.pivot_table(index=keys[:-1], columns="measure", values="median", sort=False)
    lines = "; ".join(
        f"{one['training']}: {one['networks']:,} networks of {one['steps']:,} steps, "
        f"{one['ensembles']:,} ensembles of {MEMBERS}"
        for one in rows.drop_duplicates("training").to_dict("records")
    )
    words = (
        f"# Ensembles on MNIST\n\n{lines}. Medians over the ensembles; calibrators are fitted on "
        "test set 1.\n\n"
    )
    (out / "mnist_ensembles.md").write_text(
        words + markdown(wide.reset_index()) + "\n", encoding="utf-8"
    )


def split(data: Path) -> tuple[Labelled, Labelled, Labelled]:
    """Training rows, test set 1 and test set 2: images (rows, 784) in [0, 1] and their digits."""
    with np.load(data / "mnist.npz") as arrays:
        parts = [
            (
                arrays[f"X_{name}"].reshape(len(arrays[f"y_{name}"]), -1) / 255.0,
                arrays[f"y_{name}"].astype(np.int64),
            )
            for name in ("train", "test")
        ]
    (X, y), second = parts
    held = np.random.default_rng(0).permutation(len(y)) < N_TEST_1
    return (X[~held], y[~held]), (X[held], y[held]), second


def trained(X: FloatArray, y: IntArray, *, steps: int, seed: int) -> Any:
    """784, 300, 100 and 10 units, Adam on batches that are drawn with replacement."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    module = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], WIDTHS[0]),
        torch.nn.ReLU(),
        torch.nn.Linear(WIDTHS[0], WIDTHS[1]),
        torch.nn.ReLU(),
        torch.nn.Linear(WIDTHS[1], CLASSES),
    )
    rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    optimiser = torch.optim.Adam(module.parameters(), lr=RATE)
    for _ in range(steps):
        batch = torch.randint(len(labels), (BATCH,))
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(rows[batch]), labels[batch]).backward()
        optimiser.step()
    return module.eval()


def logs(module: Any, X: FloatArray) -> FloatArray:
    """Log probabilities (n, 10)."""
    import torch

    with torch.no_grad():
        out = module(torch.tensor(X, dtype=torch.float32)).double()
        return np.asarray(torch.log_softmax(out, dim=1))


def combined(members: list[FloatArray], how: Combination) -> FloatArray:
    """Probabilities (n, 10) of an ensemble from the log probabilities of its members.

    Examples
    --------
    >>> two = [np.log([[0.8, 0.2]]), np.log([[0.8, 0.2]])]
    >>> combined(two, "sum").round(3).tolist(), combined(two, "product").round(3).tolist()
    ([[0.8, 0.2]], [[0.941, 0.059]])
    """
    if how == "sum":
        return np.asarray(np.mean(np.exp(members), axis=0))
    return np.asarray(softmax(np.sum(members, axis=0), axis=1))


def _judged(note: Any, first: Labelled, second: Labelled) -> list[Row]:
    """The measures of every calibrator fitted on the first set, on both."""
    rows = []
    for method in METHODS:
        fitted = _in_the_paper(method).fit(*first)
        for place, (proba, y) in enumerate((first, second), start=1):
            said = fitted.predict_confidence(proba)
            right = (proba.argmax(axis=1) == y).astype(np.float64)
            loss = float(top_label_log_losses(said, right).mean())
            rows += [
                note(method, f"NLL {place}", loss),
                note(method, f"ECE {place}", _error(said, right)),
            ]
    proba, y = first
    zero = proba.argmax(axis=1) == 0
    unsure = zero & (y == 0) & (proba[:, 0] < SURE)
    return [
        *rows,
        note("uncalibrated", "accuracy 1", float((proba.argmax(axis=1) == y).mean())),
        note("uncalibrated", "right zeros below .99", float(unsure.sum())),
        note("uncalibrated", "wrong zeros", float((zero & (y != 0)).sum())),
    ]


def _in_the_paper(method: str) -> Calibrator:
    """The calibrator without the shrinkage that kdcal adds."""
    made = calibrator_entry(method).factory()
    settings = {"shrinkage": None} if "shrinkage" in made.get_params() else {}
    return made.set_params(**settings)


def _error(said: FloatArray, right: FloatArray) -> float:
    """ECE of the confidence; bins of both sides are mirror images, so they say the same."""
    both = np.column_stack([1.0 - said, said])
    found = calibration_error(both, right.astype(np.int64), kind="class", n_bins=BINS, n_boot=1)
    return float(found.value)
