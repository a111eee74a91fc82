"""Sizes in the layout of a network's codes.

The compiled kernels hold these numbers, and their cache follows their own file only: whoever
changes one here touches `_network_kernels.py` as well.
"""

LANES = 32  # polytopes in a tile
WIDE = 8  # exponents in a vector
LEVELS = 4  # vectors that a chained grid fills, each the fourth power of the one before
SQUARINGS = 2
