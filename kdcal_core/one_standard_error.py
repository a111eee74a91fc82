"""The one-standard-error rule: of several candidates the simplest that is as good as the best.

Breiman et al., Classification and regression trees, 1984. Calibrators and recalibrators are
recommended by it, each by its own loss, and both give the reason in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kdcal_core.statistics import Dependence
from kdcal_core.text import formatted, listed

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SimplestChoice:
    """The simplest of m candidates whose mean loss is as good as the smallest.

    Attributes
    ----------
    losses : (m,)
        Mean loss of each candidate, the simplest first.
    errors : (m,)
        Standard error of the difference of each from the best.
    equal : (m,)
        How much more than the smallest loss counts as equal to it.
    at : int
        Place of the chosen candidate.
    rows : float
        Number of judged rows, or their effective number if they have weights; of dependent rows
        the number of clusters, or of stretches of times.
    """

    losses: FloatArray
    errors: FloatArray
    equal: FloatArray
    at: int
    rows: float

    @classmethod
    def of(
        cls,
        losses: FloatArray,
        weight: FloatArray,
        *,
        dependence: Dependence | None = None,
        tolerance: float = 1.0,
        least: float = 0.0,
        most: float = np.inf,
    ) -> Self:
        """The choice among candidates by their losses of the same rows.

        A candidate is as good as the best if its loss is larger by no more than ``tolerance``
        standard errors of their difference. The first such candidate is chosen that also loses to
        none of the simpler ones.

        Parameters
        ----------
        losses : (n, m)
            Loss of every row by every candidate, the simplest first; finite.
        weight : (n,)
            Positive row weights.
        dependence : Dependence, optional
            Of the rows: clusters, or stretches of times that are as long as times depend on one
            another, are then what varies.
        tolerance : float
            0 takes the best.
        least, most : float
            Limits of the standard error, as sums over all rows.

        Examples
        --------
        >>> losses = np.array([[1.0, 0.9, 0.95], [2.0, 1.2, 1.1], [1.5, 1.0, 1.0]])
        >>> found = SimplestChoice.of(losses, np.ones(3))
        >>> found.at, found.losses.round(2).tolist()
        (1, [1.5, 1.03, 1.02])
        """
        losses, weight = _of_units(losses, weight, dependence)
        share = weight / weight.sum()
        rows = float(1.0 / (share @ share))
        means = share @ losses
        away = losses - losses[:, [int(means.argmin())]]
        errors = np.sqrt(np.square(share) @ np.square(away - share @ away))
        equal = float(tolerance) * np.clip(errors, least / rows, most / rows)
        near = means - means.min() <= equal
        better = means <= np.minimum.accumulate(means)  # than all simpler ones
        return cls(means, errors, equal, int((near & better).argmax()), rows)

    @property
    def best(self) -> int:
        """Place of the candidate with the smallest loss."""
        return int(self.losses.argmin())

    def words(
        self, names: Sequence[str], judged: str, *, loss: str, kind: str, form: str = ".4f"
    ) -> str:
        """Which candidate was chosen, and why, as sentences.

        Parameters
        ----------
        names : sequence of m str
            The candidates inside a sentence; the first is the model as it is.
        judged : str
            On which rows, such as "cross-fitted on 300 rows".
        loss : str
            Name of the loss inside a sentence.
        kind : str
            What the candidates other than the model are, such as "calibrator".
        form : str
            Format of a loss.

        Examples
        --------
        >>> losses = np.array([[1.0, 0.6], [2.0, 1.6], [1.5, 1.1]])
        >>> found = SimplestChoice.of(losses, np.ones(3))
        >>> names = ["the model as it is", "one map"]
        >>> print(found.words(names, "cross-fitted on 3 rows", loss="CRPS", kind="repair"))
        One map was chosen: its CRPS is 1.1000, cross-fitted on 3 rows, and the model's is 1.5000...
        """
        number = partial(formatted, form=form)
        at, best, name = self.at, self.best, names[self.at]
        first = (
            f"{name[:1].upper()}{name[1:]} was chosen: its {loss} is {number(self.losses[at])}, "
            f"{judged}"
        )
        if at != 0:
            first += f", and the model's is {number(self.losses[0])}"
        if at != best:
            return (
                f"{first}. The smallest is {number(self.losses[best])}, of {names[best]}; this one "
                f"is simpler, and up to {number(self.equal[at])} more counts as equal."
            )
        simpler = names[1:at]
        if not simpler:
            return f"{first}. No other {kind} among the candidates has a smaller one."
        are, lose = ("is", "loses") if len(simpler) == 1 else ("are", "lose")
        return (
            f"{first}. No other {kind} among the candidates has a smaller one; "
            f"{listed(simpler, len(simpler))} {are} simpler, but {lose} more than counts as equal."
        )


def _of_units(
    losses: FloatArray, weight: FloatArray, dependence: Dependence | None
) -> tuple[FloatArray, FloatArray]:
    """Mean losses (k, m) and weights (k,) of clusters or stretches of times, if there are any."""
    if dependence is None or dependence.alone:
        return losses, weight
    at = np.unique(dependence.unit // (dependence.lags + 1), return_inverse=True)[1].reshape(-1)
    mass = np.bincount(at, weights=weight)
    sums = [np.bincount(at, weights=weight * one) for one in losses.T]
    return np.stack(sums, axis=1) / mass[:, None], np.asarray(mass, dtype=np.float64)
