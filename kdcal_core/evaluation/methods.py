"""The methods of a comparison: from the registry, or a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sklearn.utils.validation import has_fit_parameter

from kdcal_core.calibration import Calibrator, calibrator_entry
from kdcal_core.calibration.settings import configured
from kdcal_core.errors import InputError

REFERENCE = "uncalibrated"


@dataclass(frozen=True, eq=False)
class Method:
    """A calibrator that takes part, unfitted."""

    key: str
    name: str
    family: str
    calibrator: Calibrator
    binary_only: bool = False

    @property
    def asks_model(self) -> bool:
        """Whether its fit takes the open model, which cannot go to another process."""
        return bool(has_fit_parameter(self.calibrator, "model"))


def methods_of(
    calibrators: Sequence[str | tuple[str, Calibrator]], seed: int = 0
) -> tuple[Method, ...]:
    """The model's own scores first, then the methods asked for.

    Parameters
    ----------
    calibrators : sequence of str or (str, Calibrator)
    seed : int
        Of the draws of those named by their key, as where they are exported.

    Raises
    ------
    InputError
        For an unknown key, or one that occurs twice.

    Examples
    --------
    >>> [method.key for method in methods_of(["isotonic"])]
    ['uncalibrated', 'isotonic']
    """
    found = [_method(one, seed) for one in calibrators]
    if all(method.key != REFERENCE for method in found):
        found.insert(0, _method(REFERENCE, seed))
    found.sort(key=lambda method: method.key != REFERENCE)
    keys = [method.key for method in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InputError(
            f"The calibrator {twice!r} is named twice",
            fix="Give each calibrator a name of its own.",
        )
    return tuple(found)


def _method(one: str | tuple[str, Calibrator], seed: int) -> Method:
    if isinstance(one, str):
        entry, calibrator = calibrator_entry(one), configured(one, {}, seed=seed)
        return Method(one, entry.label, entry.family, calibrator, entry.binary_only)
    key, calibrator = one
    return Method(key, key, "own", calibrator)
