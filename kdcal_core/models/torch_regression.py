"""PyTorch regression models once their network is known, and their passes with dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.base import Features, Regressor
from kdcal_core.models.regression_outputs import Outputs, check_outputs, resolve_outputs
from kdcal_core.models.torch_classifiers import TorchModel, WithLayers
from kdcal_core.models.torch_network import TRIAL_ROWS, Network, to_numpy
from kdcal_core.models.torch_record import Recording
from kdcal_core.progress import Progress

Run = Callable[[Any], Any]


def build_regressor(
    network: Network,
    *,
    said: Outputs,
    feature_names: Sequence[str] | None,
    dropout: Run | None,
) -> Regressor:
    """A regression model from a network whose run returns one row of numbers an example.

    Parameters
    ----------
    network : Network
    said : Outputs
        What the file or the caller says of the columns.
    feature_names : sequence of str or None
    dropout : callable or None
        The run with its dropout active.

    Raises
    ------
    InputError
        The output is no table, or does not fit what is said of it.
    """
    recording = network.record()
    output = recording.output
    n_rows = network.batch or TRIAL_ROWS
    if output.ndim not in (1, 2) or len(output) != n_rows or not output.numel():
        raise InputError(
            f"The model's output has the shape {tuple(output.shape)} for {n_rows} rows",
            fix="A regression model gives one row of numbers per example.",
        )
    if said.family == "dropout" and dropout is None:
        raise InputError(
            "The model has no dropout to sample with",
            fix="Use a model with nn.Dropout layers, or another family.",
        )
    build = TorchNetworkRegressor if recording.last_hidden else TorchRegressor
    return build(network, recording, feature_names, said, dropout)


def as_columns(result: Any) -> Any:
    """The outputs of a network, a tensor or several, as one row of numbers an example."""
    import torch

    if isinstance(result, torch.Tensor):
        return result
    parts = list(result.values()) if isinstance(result, dict) else list(result)
    return torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)


class TorchRegressor(TorchModel):
    """A PyTorch regression model.

    ``sample`` is there where it has one output and dropout
    (:class:`~kdcal_core.models.base.HasDropout`).
    """

    sample: Callable[..., FloatArray]

    def __init__(
        self,
        network: Network,
        recording: Recording,
        feature_names: Sequence[str] | None,
        said: Outputs,
        dropout: Run | None,
    ) -> None:
        super().__init__(network, recording, feature_names)
        n_outputs = recording.output.numel() // len(recording.output)
        self.outputs, self.family = resolve_outputs(n_outputs, said)
        self.kind = "PyTorch regression model"
        if dropout is not None and n_outputs == 1:
            self.sample = partial(self._sample, replace(network, run=dropout))

    def predict(self, X: Features) -> FloatArray:
        """Parameters of each row's distribution, (n, len(outputs)) float64."""
        parts: list[FloatArray] = []
        first_row = 0
        for raw in self._outputs(X):
            parts.append(check_outputs(raw, len(raw), len(self.outputs), first_row=first_row))
            first_row += len(raw)
        return np.concatenate(parts)

    def _sample(
        self, network: Network, X: Features, m: int, seed: int, progress: Progress | None = None
    ) -> FloatArray:
        """Predictions of ``m`` random passes, (n, m) float64 (paper 003 section 4.2).

        Each block of rows has a stream of its own, so that the first passes of a longer run are
        those of a shorter one.
        """
        if m < 1:
            raise InputError(f"{m} passes are none", fix="Ask for one or more.")
        found = np.empty((len(X), m))
        start = 0
        for number, (rows, n_block) in enumerate(self._blocks(X)):
            with _own_random_numbers(network.device, (seed, number)):
                for j in range(m):
                    raw: NDArray[Any] = to_numpy(network.output(rows))[:n_block]
                    found[start : start + n_block, j] = check_outputs(
                        raw, n_block, 1, first_row=start
                    )[:, 0]
                    if progress is not None:
                        share = (start + n_block * (j + 1) / m) / max(1, len(X))
                        progress(share, f"Pass {j + 1:,} of {m:,} with dropout")
            start += n_block
        return found


class TorchNetworkRegressor(TorchRegressor, WithLayers):
    """A PyTorch regression model with hidden layers."""

    def __init__(self, network: Network, recording: Recording, *rest: Any) -> None:
        super().__init__(network, recording, *rest)
        self._take(recording.last_hidden)


@contextmanager
def _own_random_numbers(device: Any, seed: tuple[int, ...]) -> Iterator[None]:
    """Seeded random numbers inside, and the caller's stream as it was afterwards."""
    import torch

    device = torch.device(device)
    graphics = [device] if device.type == "cuda" else []
    (number,) = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    with torch.random.fork_rng(devices=graphics):
        torch.default_generator.manual_seed(int(number) >> 1)
        for one in graphics:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(int(number) >> 1)
        yield
