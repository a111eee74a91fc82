"""Losses of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CLIP = 1e-12
"""How far probabilities are kept from 0, and from 1, before a logarithm.

An outcome that was called impossible costs 27.6 nats, not infinity.
"""


def surprisal(probability: Any) -> NDArray[np.float64]:
    """-log of the probability that was given to what happened, in nats, clipped at ``CLIP``.

    Examples
    --------
    >>> surprisal([1.0, 0.5, 0.0]).round(3).tolist()
    [-0.0, 0.693, 27.631]
    """
    return np.asarray(-np.log(np.clip(probability, CLIP, 1.0)))


def log_losses(proba: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log loss of each row's vector, (n,).

    Parameters
    ----------
    proba : (n, K) array
        Rows sum to one.
    y : (n,) int array
        True classes, 0 to K - 1.

    Examples
    --------
    >>> log_losses(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1])).round(2).tolist()
    [0.69, 27.63]
    """
    return surprisal(proba[np.arange(len(y)), y])


def brier_losses(proba: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Squared distance of each row's vector from the true class's indicator, (n,), 0 to 2.

    Parameters as in :func:`log_losses`.

    Examples
    --------
    >>> brier_losses(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1])).tolist()
    [0.5, 2.0]
    """
    true = proba[np.arange(len(y)), y]
    return np.asarray(np.maximum(np.square(proba).sum(axis=1) - 2.0 * true + 1.0, 0.0))


def top_label_log_losses(
    confidence: NDArray[np.float64], correct: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Log loss of "the predicted class is right", (n,): Salamon et al., Eq. 14, of each row.

    Parameters
    ----------
    confidence : (n,) array
        Stated probability that the predicted class is right.
    correct : (n,) array
        1 where it is, else 0.

    Examples
    --------
    >>> top_label_log_losses(np.array([0.75, 1.0]), np.array([1.0, 0.0])).round(3).tolist()
    [0.288, 27.631]
    """
    return surprisal(np.where(correct > 0, confidence, 1.0 - confidence))


def top_label_brier_losses(
    confidence: NDArray[np.float64], correct: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Squared distance of confidence and outcome, (n,): Salamon et al., Eq. 15, of each row.

    Parameters as in :func:`top_label_log_losses`.

    Examples
    --------
    >>> top_label_brier_losses(np.array([0.75, 1.0]), np.array([1.0, 0.0])).tolist()
    [0.0625, 1.0]
    """
    return np.asarray(np.square(correct - confidence))
