"""The papers' experiments over many seeds: ``python -m tests.benchmarks.studies --help``."""
