"""Whole computations that a job carries out in a process of its own.

Paths come in, JSON goes out and arrays stay in files: what a page starts with one click and
reads when it is done. Everything here is put together from the rooms below. For each run there
is a ``..._request`` that says what to submit, a function for the worker, and a class whose
``read(folder)`` gives the result as objects.
"""

from kdcal_core.runs.foreign_run import (
    RADII,
    ForeignRun,
    ForeignSet,
    ForeignSettings,
    foreign_request,
)
from kdcal_core.runs.graph_run import GraphRun, GraphSettings, graph_request
from kdcal_core.runs.grid_run import GridRun, GridSettings, grid_request
from kdcal_core.runs.inputs import Request
from kdcal_core.runs.lab_results import LabRows, LabRun, LabSettings
from kdcal_core.runs.lab_run import lab_request
from kdcal_core.runs.storage import Rows

__all__ = [
    "RADII",
    "ForeignRun",
    "ForeignSet",
    "ForeignSettings",
    "GraphRun",
    "GraphSettings",
    "GridRun",
    "GridSettings",
    "LabRows",
    "LabRun",
    "LabSettings",
    "Request",
    "Rows",
    "foreign_request",
    "graph_request",
    "grid_request",
    "lab_request",
]
