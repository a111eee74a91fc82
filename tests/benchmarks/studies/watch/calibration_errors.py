"""Calibration errors without labels on real tables: ``python -m ...calibration_errors FOLDER``.

New rows are drawn as in `study`. Their truth is the debiased ECE of all rows that could have been
drawn, weighted by their chance, because the ECE of 1,000 labels has more noise than what is judged.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kdcal_core.diagnostics import label_free
from kdcal_core.diagnostics.calibration_error import confidence_calibration_error
from tests.benchmarks.studies.watch import study

SEEDS, MOST, MOST_TRAINED = 2, 9_000, 4_000


def runs(name: str, data: Path) -> Iterator[tuple[str, float, list[float]]]:
    """Model, strength, and what was found: covered, both errors, and covered by the reference."""
    X, y = study._table(name, data)
    for kind, made in study.MODELS.items():
        for strength in study.STRENGTHS:
            for seed in range(SEEDS):
                rng = np.random.default_rng([seed, int(10 * strength), len(y)])
                order = rng.permutation(len(y))[:MOST]
                train, rest = np.split(order, [min(2 * len(order) // 5, MOST_TRAINED)])
                model = made()
                model.fit(X.iloc[train], y[train])
                n = min(study.REFERENCE, len(rest) // 2)
                old, others = rest[:n], rest[n:]
                chance = np.exp(strength * study._direction(X.iloc[others], rng))
                new = study._without_repeats(chance, min(study.NEW, len(others) // 2), rng)
                p, q = (model.predict_proba(X.iloc[rows])[:, 1] for rows in (old, others))
                found = label_free(p, y[old], q[new], n_draws=20, seed=seed)
                error, before = found.calibration_error, found.reference_error
                truth = confidence_calibration_error(
                    q, y[others], debiased=True, sample_weight=chance, n_boot=50
                ).value
                covers = [one.low <= truth <= one.high for one in (error, before)]
                errors = [abs(one.value - truth) for one in (error, before)]
                yield kind, strength, [covers[0], *errors, covers[1]]


def main(data: Path) -> None:
    every = defaultdict(list)
    for name in (*study.BUILT_IN, *study.TABLES):
        for kind, strength, found in runs(name, data):
            every[name].append(found)
            every[f"{kind}, strength {strength:g}"].append(found)
    print("| rows | runs | covered | error, ours | error, reference | reference covers |")
    print("|---|---|---|---|---|---|")
    for what, rows in every.items():
        covered, ours, theirs, before = np.mean(rows, axis=0)
        print(
            f"| {what} | {len(rows)} | {covered:.2f} | {ours:.3f} | {theirs:.3f} | {before:.2f} |"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
