"""A PyTorch computation as the adapter runs it: rows in, scores or values on the way out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.jobs.outcome import lack_of_memory
from kdcal_core.models.torch_record import Recording, Tap, record, run_with_taps

#: Rows of the run by which a network is known. A prime, so that it is not mistaken for a width.
TRIAL_ROWS = 61


@dataclass(frozen=True, eq=False)
class Network:
    """Something that turns a batch of rows into scores, and what it wants the rows to be."""

    run: Callable[[Any], Any]
    row_shape: tuple[int, ...]
    batch: int | None
    dtype: Any
    device: Any

    def tensor(self, matrix: FloatArray) -> Any:
        """Rows as a fresh tensor, filled up to the batch that the network insists on."""
        import torch

        lacking = (self.batch or len(matrix)) - len(matrix)
        if lacking:
            matrix = np.concatenate([matrix, np.zeros((lacking, matrix.shape[1]))])
        rows = torch.tensor(matrix, device=self.device).to(self.dtype)
        if not self.dtype.is_floating_point and not bool((rows == torch.tensor(matrix)).all()):
            raise InputError(
                "The features hold numbers that are not whole, and the model takes whole ones",
                fix="Prepare the columns as it was done before training.",
            )
        return rows.reshape(len(matrix), *self.row_shape)

    def trial(self) -> Any:
        noise = np.random.default_rng(0).standard_normal(
            (self.batch or TRIAL_ROWS, prod(self.row_shape))
        )
        return self.tensor(noise if self.dtype.is_floating_point else (noise > 0).astype(float))

    def output(self, rows: Any) -> Any:
        with guarded():
            return self.run(rows)

    def record(self) -> Recording:
        with guarded():
            return record(self.run, self.trial())

    def taps(
        self,
        rows: Any,
        recording: Recording,
        wanted: Collection[Tap],
        keep: Callable[[Any], NDArray[Any]],
    ) -> list[NDArray[Any]]:
        with guarded():
            return run_with_taps(self.run, rows, recording, wanted, keep)


@contextmanager
def guarded() -> Iterator[None]:
    """Without gradients, and with errors of the backend told as errors of the input."""
    import torch

    try:
        with torch.no_grad():
            yield
    except InputError:
        raise
    except Exception as error:  # a module may raise anything, the backend's share no base
        if lack_of_memory(str(error)):
            raise MemoryError("PyTorch ran out of memory") from error
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"PyTorch cannot run the model: {lines[0][:300]}",
            fix="Check the number and the shape of the features it takes.",
        ) from error


def to_numpy(tensor: Any) -> NDArray[Any]:
    """A tensor as float64."""
    import torch

    # A copy, for a later operation may write into the layer's own memory.
    return np.asarray(tensor.detach().to("cpu", torch.float64, copy=True).numpy())
