"""What is measured, not tested: ``python -m tests.benchmarks``."""
