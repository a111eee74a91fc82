"""The networks of Torres et al., sections 4.2 and 4.3, trained in torch on one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from kdcal_core.data import FloatArray

_BLOCK = 20_000


class Network:
    """A ReLU network with one linear output, its inputs and outcomes standardised.

    Parameters
    ----------
    widths : sequence of int
        Hidden layers.
    dropout : float
        Above 0: batch normalisation and dropout between the hidden layers.
    """

    def __init__(self, widths: Sequence[int], seed: int, dropout: float = 0.0) -> None:
        torch.set_num_threads(1)
        self._widths, self._seed, self._dropout = tuple(widths), seed, dropout
        self.epochs_ = 0

    def fit(
        self,
        X: FloatArray,
        y: FloatArray,
        X_held: FloatArray,
        y_held: FloatArray,
        *,
        epochs: int,
        batch: int,
        rate: float,
        patience: int | None = None,
    ) -> Network:
        """Adam on the mean squared error; with ``patience``, back to the best held-out epoch."""
        self._centre, self._spread = X.mean(axis=0), X.std(axis=0)
        self._mean, self._std = float(y.mean()), float(y.std())
        with torch.random.fork_rng():
            torch.manual_seed(self._seed)
            self._net = self._built(X.shape[1])
            inputs, outcomes = self._tensor(X), self._outcome(y)
            inputs_held, outcomes_held = self._tensor(X_held), self._outcome(y_held)
            optimizer = torch.optim.Adam(self._net.parameters(), lr=rate)
            best, waited, kept = float("inf"), 0, self._state()
            for _ in range(epochs):
                self._epoch(inputs, outcomes, optimizer, batch)
                self.epochs_ += 1
                self._net.eval()
                with torch.no_grad():
                    loss = float(nn.functional.mse_loss(self._net(inputs_held), outcomes_held))
                if loss < best:
                    best, waited, kept = loss, 0, self._state()
                else:
                    waited += 1
                if patience is not None and waited >= patience:
                    break
            if patience is not None:
                self._net.load_state_dict(kept)
        self.loss_ = best * self._std**2
        self._net.eval()
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return self.layers(X)[-1][:, 0]

    def layers(self, X: FloatArray) -> list[FloatArray]:
        """Outputs of every hidden layer and, last, the prediction (n, 1)."""
        found: list[list[Any]] = []
        with torch.no_grad():
            for start in range(0, len(X), _BLOCK):
                values, parts = self._tensor(X[start : start + _BLOCK]), []
                for one in self._net:
                    values = one(values)
                    if isinstance(one, nn.ReLU):
                        parts.append(values.double().numpy())
                parts.append(values.double().numpy() * self._std + self._mean)
                found.append(parts)
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def sample(self, X: FloatArray, passes: int, seed: int) -> FloatArray:
        """Predictions with the dropout at work, (n, passes); batch normalisation stays frozen."""
        for one in self._net:
            one.train(isinstance(one, nn.Dropout))
        inputs = self._tensor(X)
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(seed)
            drawn = np.column_stack([self._net(inputs).double().numpy() for _ in range(passes)])
        self._net.eval()
        return drawn * self._std + self._mean

    def _built(self, n_features: int) -> nn.Sequential:
        parts: list[nn.Module] = []
        for at, (wide, narrow) in enumerate(
            zip((n_features, *self._widths), self._widths, strict=False)
        ):
            parts += [nn.Linear(wide, narrow), nn.ReLU()]
            if self._dropout and at < len(self._widths) - 1:
                parts += [nn.BatchNorm1d(narrow), nn.Dropout(self._dropout)]
        return nn.Sequential(*parts, nn.Linear(self._widths[-1], 1))

    def _epoch(self, inputs: Any, outcomes: Any, optimizer: Any, batch: int) -> None:
        self._net.train()
        for rows in torch.randperm(len(inputs)).split(batch):
            if len(rows) == 1:  # batch normalisation needs two
                continue
            optimizer.zero_grad(set_to_none=True)
            nn.functional.mse_loss(self._net(inputs[rows]), outcomes[rows]).backward()
            optimizer.step()

    def _state(self) -> dict[str, Any]:
        return {name: value.clone() for name, value in self._net.state_dict().items()}

    def _tensor(self, X: FloatArray) -> Any:
        return torch.from_numpy(((X - self._centre) / self._spread).astype(np.float32))

    def _outcome(self, y: FloatArray) -> Any:
        return torch.from_numpy(((y - self._mean) / self._std).astype(np.float32))[:, None]
