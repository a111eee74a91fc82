"""skops without the libraries that it does not need."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from kdcal_core.skops_library import skops
names = skops.io._trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES
assert not {"torch", "dask"} & sys.modules.keys()
import torch  # still to be had
# skops itself, and the modules that it could not import
for name in [name for name in sys.modules if name.split(".")[0] == "skops"]:
    del sys.modules[name]
import skops.io
plain = skops.io._trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES
assert "dask" in sys.modules
assert plain is not names and set(plain) == set(names) != set()
"""


def test_skops_knows_the_same_estimators_without_torch_and_dask() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=100)
