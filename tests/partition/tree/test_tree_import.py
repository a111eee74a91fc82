"""The compiler waits until a table is coded."""

import subprocess
import sys


def test_importing_the_trees_compiles_nothing():
    code = "import kdcal_core.partition.tree\nimport sys\nprint(' '.join(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert set(answer.stdout.split()).isdisjoint({"numba", "llvmlite", "torch", "sklearn"})
