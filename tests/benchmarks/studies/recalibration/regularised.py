"""Networks that are trained to be calibrated, which Torres et al. name in section 1.

A network states a normal distribution for each row. Its loss is the negative log likelihood, alone
or with a penalty on the PIT values of each batch: quantile regularisation (Utpala and Rai 2020)
raises their entropy, estimated from spacings, and a density regulariser (Dheur and Ben Taieb 2023,
PCE-KDE) brings their smoothed distribution function to the diagonal. The strength is the one of
three whose CRPS is lowest on rows that were held out of the training. Each network is judged as it
is, with all spreads scaled by one factor, and recalibrated.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from kdcal_core.data import FloatArray
from kdcal_core.distributions import Normal
from kdcal_core.evaluation import row_scores
from kdcal_core.regression import GlobalRecalibration, LocalRecalibration
from tests.benchmarks.studies.recalibration import measured, real, real_tables

WIDTHS, RATE, BATCH = (64, 32), 1e-3, 128
MOST_EPOCHS, PATIENCE, HELD = 150, 15, 0.2
STRENGTHS = (0.1, 1.0, 10.0)
SPACINGS = 8  # rows of a batch between which a spacing is taken
LEVELS = torch.linspace(0.025, 0.975, 39)
SHARPNESS = 100.0  # of the logistic steps that smooth the distribution function
SEEDS = 3
SHOWN = ("crps", "log_score", "pit", "coverage95", "smis95")


def spacings_penalty(pit: Any) -> Any:
    """Minus the entropy of the PIT values (n,), by Vasicek's estimate; 0 of evenly spaced ones."""
    ends = pit.new_tensor([0.0, 1.0])
    padded = torch.cat([ends[:1], torch.sort(pit).values, ends[1:]])
    m = min(SPACINGS, len(padded) - 1)
    gaps = (padded[m:] - padded[:-m]).clamp_min(1e-6)
    return -torch.log(gaps * (len(padded) - 1) / m).mean()


def density_penalty(pit: Any) -> Any:
    """Mean distance of the smoothed distribution function of the PIT values from the diagonal."""
    below = torch.sigmoid(SHARPNESS * (LEVELS[:, None] - pit[None, :])).mean(dim=1)
    return (below - LEVELS).abs().mean()


PENALTIES = {
    "likelihood alone": None,
    "quantile regularisation": spacings_penalty,
    "density regulariser": density_penalty,
}


def tasks(quick: bool, folder: Path | None = None) -> list[measured.Row]:
    """One task a table, seed and loss; without a folder the shipped tables alone."""
    names = [name for name in real.SIZES if folder or name not in real_tables.IN_FOLDER]
    return [
        {"table": name, "n": real.SIZES[name][-1], "training": training, "seed": seed}
        | {"folder": folder and str(folder)}
        for seed in range(1 if quick else SEEDS)
        for name in names
        for training in PENALTIES
    ]


def run(task: measured.Row) -> list[measured.Row]:
    """One loss on one draw: the network as it is, and by every recalibration."""
    folder, seed = task.pop("folder"), task["seed"]
    warnings.simplefilter("ignore")  # few rows for k
    X, y = real_tables.load(task["table"], folder)
    if task["table"] in real_tables.LOGARITHMIC:
        y = np.log(y)
    fit, held, test = real.split(len(y), task["n"], seed)
    strengths = (0.0,) if PENALTIES[task["training"]] is None else STRENGTHS
    networks = [
        NormalNetwork(task["training"], strength, seed).fit(X[fit], y[fit])
        for strength in strengths
    ]
    network = min(networks, key=lambda one: one.crps_)
    before, after = network.predict(X[held]), network.predict(X[test])
    factor = float(np.sqrt(np.mean(((y[held] - before.mean()) / before.std()) ** 2)))
    answers = {
        "as it is": after,
        "one factor": Normal(after.mean(), factor * after.std()),
        "global": GlobalRecalibration().fit(before, y[held]).predict(after),
        "local": LocalRecalibration().fit(before, y[held], X[held]).predict(after, X[test]),
    }
    rows: list[measured.Row] = []
    scale = measured.scale_of(y[held])
    for name, stated in answers.items():
        common = {**task, "method": name}
        rows += measured.entries(common, stated, y[test], scale)
        pit = np.sort(stated.cdf(y[test]))
        even = (np.arange(len(pit)) + 0.5) / len(pit)
        rows.append({**common, "measure": "pit", "value": float(np.abs(pit - even).mean())})
    return [*rows, {**task, "method": "", "measure": "strength", "value": network.strength}]


def write(rows: pd.DataFrame, out: Path) -> None:
    """`regularised.csv`, means over seeds; `regularised.md`, means over tables and seeds."""
    by = ["table", "n", "training", "method"]
    measured.summarised(rows, by).to_csv(out / "regularised.csv", index=False, float_format="%.5g")
    case = ["table", "seed", "training", "method"]
    runs = rows.pivot_table(index=case, columns="measure", values="value", sort=False)
    plain = runs.xs("likelihood alone", level="training").xs("as it is", level="method")
    for name in ("crps", "smis95"):
        base = plain[name].reindex(runs.index.droplevel(["training", "method"])).to_numpy()
        runs[name] = 100 * (runs[name] / base - 1)
    runs = runs[runs.index.get_level_values("method") != ""]
    means = runs.groupby(["training", "method"], sort=False)[[*SHOWN]].mean()
    head = "| training | method | CRPS, % | log score | PIT distance | 95% held | sMIS, % |"
    lines = [head, "| --- | --- | --- | --- | --- | --- | --- |"]
    for (training, method), one in means.iterrows():
        lines.append(
            f"| {training} | {method} | {one['crps']:+.1f} | {one['log_score']:.3f} | "
            f"{one['pit']:.3f} | {one['coverage95']:.1f} | {one['smis95']:+.1f} |"
        )
    (out / "regularised.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


class NormalNetwork:
    """A ReLU network that states a mean and a spread for each row.

    Parameters
    ----------
    training : str
        A key of `PENALTIES`.
    strength : float
        Factor of the penalty.
    """

    def __init__(self, training: str, strength: float, seed: int) -> None:
        torch.set_num_threads(1)
        self._penalty, self.strength, self._seed = PENALTIES[training], strength, seed

    def fit(self, X: FloatArray, y: FloatArray) -> NormalNetwork:
        """Adam, back to the epoch with the lowest CRPS on a fifth of the rows."""
        self._centre, self._unit = X.mean(axis=0), X.std(axis=0) + 1e-9
        self._mean, self._std = float(y.mean()), float(y.std())
        order = np.random.default_rng(self._seed).permutation(len(y))
        held, fit = np.split(order, [round(HELD * len(y))])
        with torch.random.fork_rng():
            torch.manual_seed(self._seed)
            self._net = _built(X.shape[1])
            optimiser = torch.optim.Adam(self._net.parameters(), lr=RATE)
            inputs = self._inputs(X[fit])
            outcomes = torch.tensor((y[fit] - self._mean) / self._std, dtype=torch.float32)
            self.crps_, waited, kept = np.inf, 0, self._state()
            for _ in range(MOST_EPOCHS):
                for rows in torch.randperm(len(inputs)).split(BATCH):
                    optimiser.zero_grad()
                    self._loss(inputs[rows], outcomes[rows]).backward()
                    optimiser.step()
                crps = float(row_scores(self.predict(X[held]), y[held], scale=1.0)["crps"].mean())
                waited = 0 if crps < self.crps_ else waited + 1
                if not waited:
                    self.crps_, kept = crps, self._state()
                if waited >= PATIENCE:
                    break
            self._net.load_state_dict(kept)
        return self

    def predict(self, X: FloatArray) -> Normal:
        """The normal distribution of each row."""
        with torch.no_grad():
            mean, log_spread = self._net(self._inputs(X)).double().numpy().T
        return Normal(mean * self._std + self._mean, np.exp(log_spread) * self._std)

    def _loss(self, inputs: Any, outcomes: Any) -> Any:
        mean, log_spread = self._net(inputs).T
        z = (outcomes - mean) / torch.exp(log_spread)
        loss = (0.5 * z**2 + log_spread).mean()
        if self._penalty is None:
            return loss
        return loss + self.strength * self._penalty(0.5 * torch.erfc(-z / 2**0.5))

    def _inputs(self, X: FloatArray) -> Any:
        return torch.tensor((X - self._centre) / self._unit, dtype=torch.float32)

    def _state(self) -> dict[str, Any]:
        return {name: value.clone() for name, value in self._net.state_dict().items()}


def _built(n_features: int) -> nn.Sequential:
    first, second = WIDTHS
    return nn.Sequential(
        nn.Linear(n_features, first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, 2),
    )
