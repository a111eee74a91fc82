"""Importing the partition room compiles nothing and loads no compiler."""

import subprocess
import sys

import pytest


def loaded_after(code):
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(answer.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import kdcal_core.partition",
        "import numpy as np\n"
        "from kdcal_core.partition import LeafCodes, find_polytopes\n"
        "find_polytopes(LeafCodes(np.ones((2, 2), dtype=np.int32)))",
    ],
)
def test_numba_and_torch_wait_until_a_kernel_is_asked_for(code):
    assert loaded_after(code).isdisjoint({"numba", "llvmlite", "torch", "scipy", "sklearn"})


def test_a_kernel_loads_the_compiler_but_not_torch():
    loaded = loaded_after(
        "import numpy as np\n"
        "from kdcal_core.partition import LeafCodes, class_masses\n"
        "codes = LeafCodes(np.ones((1, 2), dtype=np.int32))\n"
        "class_masses(codes, np.ones((1, 1), dtype=int), np.ones(1))"
    )
    assert "numba" in loaded
    assert "torch" not in loaded
