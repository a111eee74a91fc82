"""The five papers, cited by author and short title with a link."""

from __future__ import annotations

PAPERS = {
    "Dey et al.": "[Dey et al., Simple Calibration via Geodesic Kernels]"
    "(https://openreview.net/forum?id=dpcRp8ix5T)",
    "earlier version": "[Dey et al., Deep Discriminative to Kernel Density Graph]"
    "(https://arxiv.org/abs/2201.13001v8), the earlier version",
    "Salamon et al.": "[Salamon et al., Estimating Classification Confidence Using Kernel "
    "Densities](https://arxiv.org/abs/2207.06529)",
    "Torres et al.": "[Torres et al., Model-Free Local Recalibration of Neural Networks]"
    "(https://arxiv.org/abs/2403.05756)",
    "Durfee et al.": "[Durfee et al., Heterogeneous Calibration](https://arxiv.org/abs/2202.04837)",
}
"""Each paper as Markdown, by the words with which texts cite it."""


def cited_in(text: str) -> str:
    """The papers that a text cites, as one line of Markdown; may be empty.

    Examples
    --------
    >>> cited_in("Lower is better (Durfee et al., section 2).")
    '[Durfee et al., Heterogeneous Calibration](https://arxiv.org/abs/2202.04837).'
    >>> cited_in("Lower is better.")
    ''
    """
    words = " ".join(text.split())
    found = [paper for name, paper in PAPERS.items() if name in words]
    return "; ".join(found) + "." * bool(found)
