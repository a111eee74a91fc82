"""A review's kernel density version at a setting, for the measures that ask it.

Gamma, variance and floor act on the arrays that are there already, so no setting needs a fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration import KernelDensityGraph, Located
from kdcal_core.data import FloatArray
from kdcal_core.store import load
from kdcal_core.tasks.graph_results import GraphRun
from kdcal_core.tasks.set_measures import Sets


@dataclass(frozen=True)
class GraphSetting:
    """A fitted graph, with what can be changed without a fit.

    Attributes
    ----------
    folder : str
        Of the finished `GraphRun`.
    gamma : float
        One of the graph's gammas.
    variance_factor : float
        What the graph's own variance floor is multiplied with.
    alpha : float
        Share of ordinary rows that may count as unknown; sets the floor.
    """

    folder: str
    gamma: float
    variance_factor: float
    alpha: float


@dataclass(frozen=True, eq=False)
class Version:
    """The kernel density version at a setting; what it says is kept for whoever asks again."""

    sets: Sets
    setting: GraphSetting

    @classmethod
    def of(cls, sets: Sets, graph: dict[str, Any] | None) -> Version | None:
        """The version at a `GraphSetting` as JSON; None for None."""
        return None if graph is None else cls(sets, GraphSetting(**graph))

    @property
    def run(self) -> GraphRun:
        """The fit."""
        return opened_fit(self.sets, self.setting.folder)

    @property
    def graph(self) -> KernelDensityGraph:
        """The graph at the setting; it shares its arrays with the others of its fit."""
        chosen = self.setting

        def make() -> KernelDensityGraph:
            fitted = self.run.graph
            return fitted.with_settings(
                gamma=chosen.gamma,
                variance_floor=fitted.variance_floor * chosen.variance_factor,
                floor_quantile=chosen.alpha,
            )

        found: KernelDensityGraph = self.sets.keep(("graph", chosen), make)
        return found

    @property
    def floor(self) -> float:
        """Log density below which a row counts as unknown."""
        return self.graph.effective_log_floor

    def posterior(self, rows: str, located: Located | None) -> FloatArray:
        """Probabilities of rows, (m, K); ``rows`` distinguishes them from others."""
        assert located is not None  # a graph was fitted, so there is a partition
        found: FloatArray = self.sets.keep(
            ("posterior", self.setting, rows), lambda: self.graph.posterior(located)
        )
        return found

    def log_density(self, rows: str, located: Located | None) -> FloatArray:
        """Log marginal density of rows, (m,); it does not depend on alpha."""
        assert located is not None  # as for `posterior`
        chosen = self.setting
        key = ("log density", chosen.folder, chosen.gamma, chosen.variance_factor, rows)
        found: FloatArray = self.sets.keep(key, lambda: self.graph.log_marginal(located))
        return found

    def unknown(self, rows: str, located: Located | None) -> NDArray[np.bool_]:
        """Which rows count as unknown, (m,)."""
        below: NDArray[np.bool_] = self.log_density(rows, located) < self.floor
        return below


def opened_fit(sets: Sets, folder: str) -> GraphRun:
    """The finished fit in a folder, whose files are checked once for as long as it is kept."""
    found: GraphRun = sets.keep(("fit", folder), lambda: load(folder, GraphRun))
    return found
