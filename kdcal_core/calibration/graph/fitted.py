"""What a fitted kernel density estimator reports about itself."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration.graph.blend import Blend
from kdcal_core.calibration.graph.graph import KernelDensityGraph
from kdcal_core.calibration.graph.selection import Selection
from kdcal_core.data import FloatArray


class FittedGraph:
    """Fitted attributes, read from the graph so that each number is stored once."""

    graph_: KernelDensityGraph

    def _fitted_graph(self) -> KernelDensityGraph:
        check_is_fitted(self, "graph_")
        return self.graph_

    @property
    def gamma_(self) -> float:
        """Gamma of Eq. 18 that was chosen or given."""
        return self._fitted_graph().gamma

    @property
    def log_floor_(self) -> float:
        """log b of Eq. 8 that follows from the data or was given."""
        return self._fitted_graph().log_floor

    @property
    def blend_(self) -> Blend | None:
        """Weights of the model and of the class ratio inside the data; None for the ratio."""
        return self._fitted_graph().blend

    @property
    def centres_(self) -> FloatArray:
        """Centres of the polytopes in scaled coordinates, (p, d)."""
        return self._fitted_graph().centres

    @property
    def variances_(self) -> FloatArray:
        """Variances of the polytopes without the floor, (p, d)."""
        return self._fitted_graph().variances

    @property
    def class_masses_(self) -> FloatArray:
        """Smoothed class counts n~_ry at the chosen gamma, (p, K) (Eq. 16)."""
        return self._fitted_graph().chosen_masses

    @property
    def prior_(self) -> FloatArray:
        """Prior of the classes, (K,)."""
        return self._fitted_graph().prior

    @property
    def n_polytopes_(self) -> int:
        """Polytopes that rows of the fit fall into."""
        return self._fitted_graph().n_polytopes

    @property
    def n_ties_(self) -> int:
        """Held-out rows that the kernel alone could not place (decision D7)."""
        held = self._fitted_graph().holdout
        return 0 if held is None else int(held.tied.sum())

    @property
    def selection_(self) -> Selection:
        """Held-out log loss over the grid of exponents."""
        return self._fitted_graph().selection()
