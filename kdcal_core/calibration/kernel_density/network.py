"""Kernel density network."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import StrOptions

from kdcal_core.calibration.kernel_density.base import KernelDensityEstimator
from kdcal_core.calibration.kernel_density.views import OutputLayer, activation_codes
from kdcal_core.parents import Features, Parent
from kdcal_core.partition import ActivationCodes


class KernelDensityNetwork(KernelDensityEstimator):
    """Kernel density graph on the activation patterns of a ReLU network (papers 000, 001: KDN).

    Of an encoder with a dense ReLU head the Gaussians live in what goes into the head, and the
    kernel counts the head's layers (paper 000 section 3.2).

    Parameters
    ----------
    parent : Parent, torch.nn.Module or fitted MLPClassifier
        Anything with ReLU layers that :func:`kdcal_core.parents.wrap_parent` takes.
    output_layer : {"probability", "logit", "exclude"}, default="probability"
        Whether the output belongs to the activation path (decision D4): as bits of probabilities
        above 1/K, as bits of logits above zero, or not at all.
    distance, gamma, variance_floor, log_floor, floor_quantile, prior, scale, holdout_share, \
random_state
        As for :class:`KernelDensityForest`; the kernel is the share of activation paths on which
        two rows agree (Eq. 12).

    Attributes
    ----------
    As for :class:`KernelDensityForest`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neural_network import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> net = MLPClassifier((20, 20), random_state=0, max_iter=1000).fit(X[::2], y[::2])
    >>> calibrated = KernelDensityNetwork(net).fit(X[1::2], y[1::2])
    >>> calibrated.predict_proba(1000 + X[:1]).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelDensityEstimator._parameter_constraints,
        "output_layer": [StrOptions({"probability", "logit", "exclude"})],
    }

    def __init__(
        self,
        parent: Any,
        *,
        output_layer: OutputLayer = "probability",
        distance: Literal["geodesic", "euclidean"] = "geodesic",
        gamma: Any = "auto",
        variance_floor: float = 1e-6,
        log_floor: Any = "quantile",
        floor_quantile: float = 0.01,
        prior: Any = None,
        scale: bool = True,
        holdout_share: float = 0.3,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            parent,
            distance=distance,
            gamma=gamma,
            variance_floor=variance_floor,
            log_floor=log_floor,
            floor_quantile=floor_quantile,
            prior=prior,
            scale=scale,
            holdout_share=holdout_share,
            random_state=random_state,
        )
        self.output_layer = output_layer

    def _codes(self, parent: Parent, X: Features) -> ActivationCodes:
        return activation_codes(parent, X, self.output_layer)
