from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Prepared:
    x: object
    centres: object


def prepare_nearest(x, centres):
    return Prepared(x, centres)


def nearest_block(p, start, stop):
    d = np.zeros((stop - start, len(p.centres)))
    for j in range(p.x.shape[1]):
        d += (p.x[start:stop, j, None] - p.centres[:, j]) ** 2
    best = d.min(axis=1)
    return d.argmin(axis=1), np.full(stop - start, np.nan), (d == best[:, None]).sum(axis=1) > 1
