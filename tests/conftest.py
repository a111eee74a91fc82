"""Fixtures for all tests."""

# ruff: noqa: E402

from __future__ import annotations

import os

# Tests run side by side: threads of BLAS would wait for each other longer than they compute.
# Set before numpy is imported, and handed on to the processes that tests start.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from collections.abc import Iterator

import pytest
from hypothesis import settings
from workerless import working_here

from kdcal_core.jobs import run_limited

# no modules of examples: several folders have a conftest.py, and modules of one name clash
collect_ignore_glob = ["*conftest.py"]

# an example that takes long on a loaded machine is no fault
settings.register_profile("kdcal", deadline=None)
settings.load_profile("kdcal")


@pytest.fixture(scope="module")
def work_here() -> Iterator[None]:
    """No worker processes in this file: see `workerless`."""
    with working_here():
        yield


@pytest.fixture
def real_workers(work_here: None) -> Iterator[None]:
    """Worker processes all the same, in one test of a file that has none."""
    with working_here(run_limited):
        yield
