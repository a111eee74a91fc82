"""The network of Torres et al., section 4.4: ReLU layers, a Gamma mean, one shape for all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from kdcal_core.data import FloatArray
from kdcal_core.distributions import Gamma

EPOCHS, BATCH, RATE = 60, 256, 0.004


class GammaNetwork:
    """Least negative Gamma log likelihood by Adam, inputs standardised, a fixed number of steps."""

    def __init__(self, widths: tuple[int, ...] = (100, 5, 5), seed: int = 0) -> None:
        self._widths, self._seed = widths, seed

    def fit(self, X: FloatArray, y: FloatArray, epochs: int = EPOCHS) -> GammaNetwork:
        torch.set_num_threads(1)
        self._centre, self._spread = X.mean(axis=0), X.std(axis=0)
        inputs, outcomes = self._tensor(X), torch.from_numpy(y.astype(np.float32))
        with torch.random.fork_rng():
            torch.manual_seed(self._seed)
            parts: list[nn.Module] = []
            for wide, narrow in zip((X.shape[1], *self._widths), self._widths, strict=False):
                parts += [nn.Linear(wide, narrow), nn.ReLU()]
            self._hidden, self._head = nn.Sequential(*parts), nn.Linear(self._widths[-1], 1)
            nn.init.constant_(self._head.bias, float(np.log(y.mean())))
            self._log_shape = nn.Parameter(torch.tensor(0.0))
            weights = [*self._hidden.parameters(), *self._head.parameters(), self._log_shape]
            optimizer = torch.optim.Adam(weights, lr=RATE)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
            for _ in range(epochs):
                for rows in torch.randperm(len(inputs)).split(BATCH):
                    optimizer.zero_grad(set_to_none=True)
                    self._loss(inputs[rows], outcomes[rows]).backward()
                    optimizer.step()
                schedule.step()
        return self

    def predict(self, X: FloatArray) -> Gamma:
        with torch.no_grad():
            log_mean = self._head(self._hidden(self._tensor(X)))[:, 0].double().numpy()
        return Gamma(self._log_shape.exp().item(), np.exp(log_mean))

    def last_layer(self, X: FloatArray) -> FloatArray:
        """Outputs of the last hidden layer."""
        with torch.no_grad():
            found: FloatArray = self._hidden(self._tensor(X)).double().numpy()
        return found

    def _loss(self, X: Any, y: Any) -> Any:
        log_mean, shape = self._head(self._hidden(X))[:, 0], self._log_shape.exp()
        scaled = log_mean - self._log_shape + y * (-log_mean).exp()
        return shape * (scaled - y.log()).mean() + shape.lgamma()

    def _tensor(self, X: FloatArray) -> Any:
        return torch.from_numpy(((X - self._centre) / self._spread).astype(np.float32))
