from dataclasses import dataclass

import numpy as np

from kdcal_core.partition.codes import LeafCodes


def kernel_block(a, b):
    if isinstance(a, LeafCodes):
        same = np.zeros((len(a), len(b)))
        for tree in range(a.leaves.shape[1]):
            same += a.leaves[:, tree, None] == b.leaves[None, :, tree]
        return same / a.leaves.shape[1]
    kernel = np.ones((len(a), len(b)))
    for part, width in zip(a.layer_slices(), a.layer_widths, strict=True):
        differ = np.zeros((len(a), len(b)), dtype=np.int64)
        for word in range(part.start, part.stop):
            differ += np.bitwise_count(a.words[:, word, None] ^ b.words[None, :, word])
        kernel *= (width - differ) / width
    return kernel


def _rows(codes, start, stop):
    if isinstance(codes, LeafCodes):
        return LeafCodes(codes.leaves[start:stop])
    from kdcal_core.partition.codes import ActivationCodes

    return ActivationCodes(codes.words[start:stop], codes.layer_widths)


@dataclass
class Masses:
    codes: object
    counts: object
    exponents: object


def prepare_masses(codes, counts, exponents):
    return Masses(codes, counts, exponents)


def masses_block(p, start, stop):
    k = kernel_block(_rows(p.codes, start, stop), p.codes)
    counts = p.counts.astype(float)
    return np.array([np.einsum("rs,sy->ry", k**e, counts) for e in p.exponents])


@dataclass
class Nearest:
    queries: object
    codes: object
    x: object
    centres: object


def prepare_nearest(queries, codes, x, centres):
    return Nearest(queries, codes, x, centres)


def nearest_block(p, start, stop):
    k = kernel_block(_rows(p.queries, start, stop), p.codes)
    best = k.max(axis=1)
    at = k == best[:, None]
    index = np.empty(stop - start, dtype=np.int64)
    for i in range(stop - start):
        d = ((p.centres - p.x[start + i]) ** 2).sum(axis=1)
        index[i] = np.where(at[i], d, np.inf).argmin()
    return index, best, at.sum(axis=1) > 1
