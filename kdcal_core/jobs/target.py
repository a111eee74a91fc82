"""The function that a job is about: found by its name, run, and its end put into words."""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs.cancel import Cancelled
from kdcal_core.progress import Progress

PACKAGE = "kdcal_core."


def find_target(target: str) -> Callable[..., Any]:
    """The function named ``module:function``, which must be defined in the core.

    Raises
    ------
    ValueError
        Where the name leads outside ``kdcal_core`` or to something that is no function.

    Examples
    --------
    >>> find_target("kdcal_core.jobs._probes:echo").__name__
    'echo'
    >>> find_target("os:system")
    Traceback (most recent call last):
    ValueError: 'os:system' is not a function of kdcal_core
    """
    module, _, name = target.partition(":")
    refusal = ValueError(f"{target!r} is not a function of kdcal_core")
    if not module.startswith(PACKAGE):
        raise refusal
    function = getattr(import_module(module), name, None)
    if not inspect.isfunction(function) or not function.__module__.startswith(PACKAGE):
        raise refusal
    return function


def answer(
    target: str,
    kwargs: Mapping[str, Any],
    folder: str | None,
    progress: Progress,
) -> str:
    """Run the function and say in one line of JSON how it ended.

    Parameters
    ----------
    target, kwargs
        See `find_target`; the arguments.
    folder, progress
        Handed to the function where it has parameters of these names.

    Returns
    -------
    str
        An object with exactly one of the keys ``result``, ``input_error``, ``cancelled`` or
        ``error``; see `kdcal_core.jobs.channel.parse`.

    Examples
    --------
    >>> answer("kdcal_core.jobs._probes:add", {"a": 1, "b": 2}, None, lambda share, note: None)
    '{"result": 3}'
    """
    try:
        function = find_target(target)
        extras = (
            {"progress": progress} if folder is None else {"progress": progress, "folder": folder}
        )
        wanted = extras.keys() & inspect.signature(function).parameters.keys()
        given = {**kwargs, **{name: extras[name] for name in wanted}}
        return json.dumps({"result": function(**given)}, allow_nan=False)
    except Cancelled:
        return json.dumps({"cancelled": True})
    except InputError as error:
        return refusal(error)
    except Exception as error:  # also of json.dumps: a result that JSON cannot carry
        traceback.print_exc()
        first = (str(error).strip().splitlines() or [""])[0]  # libraries add stack traces
        return json.dumps({"error": f"{type(error).__name__}: {first}"[:500]})


def refusal(error: InputError) -> str:
    """An error of input as such a line.

    Examples
    --------
    >>> refusal(InputError("Wrong", fix="Correct it."))[:50]
    '{"input_error": {"what": "Wrong", "fix": "Correct '
    """
    place = {"file": error.file, "column": error.column, "row": error.row}
    return json.dumps({"input_error": {"what": error.what, "fix": error.fix, **place}})
