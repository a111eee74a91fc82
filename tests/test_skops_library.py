"""skops without the libraries that it does not need."""

from __future__ import annotations

import subprocess
import sys

LEAN = """
import sys
from kdcal_core.skops_library import skops
assert not {"torch", "dask"} & sys.modules.keys()
import torch  # still to be had
print(*sorted(skops.io._trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES))
"""
PLAIN = """
import skops.io
print(*sorted(skops.io._trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES))
"""


def printed(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100
    )
    return done.stdout


def test_skops_knows_the_same_estimators_without_torch_and_dask() -> None:
    assert printed(LEAN) == printed(PLAIN) != "\n"
