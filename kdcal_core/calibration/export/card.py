"""The card of a calibrator file: its method, its model, its data and its gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from kdcal_core import __version__
from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.calibrators import CALIBRATORS
from kdcal_core.data import OutputKind, Roles
from kdcal_core.models.file_marks import CardEstimate, DataMark, ModelMark
from kdcal_core.models.protocol import ModelInfo
from kdcal_core.store import decode


@dataclass(frozen=True)
class CalibratorCard:
    """Where a calibrator comes from and what it gained.

    Attributes
    ----------
    key : str
        Key in :data:`kdcal_core.calibration.CALIBRATORS`, or empty if it is not there.
    title : str
        Its full name.
    parameters : dict
        Its settings, as JSON values.
    kdcal_version : str
        Version of kdcal that fitted it.
    created : str
        Day of the fit in UTC, such as 2026-01-31.
    model : ModelMark or None
        None if only the model's predictions were known.
    data : dict of str to DataMark
        The tables under "calibration" and, where there were any, "evaluation" and "training".
    classes : tuple of K str
        Class names in the order of the probability columns. Untrusted text.
    features : tuple of str
        Columns that the model reads, and the calibrator if it reads more than probabilities, in
        their order at the fit. Untrusted text.
    estimates : tuple of CardEstimate
        Measures before and after calibration.
    notes : tuple of str
    seed : int or None
    layer : str or None
        Hidden layer of the model whose activations the calibrator reads; the model reads
        ``features``. Untrusted text.
    outputs : tuple of (str, str)
        Where the model's predictions came from a table, each class and its column, or only one of
        two classes. Untrusted text.
    output_kind : "probability", "percent" or "logit"
        The kind of those columns.
    """

    key: str
    title: str
    parameters: dict[str, Any]
    kdcal_version: str
    created: str
    model: ModelMark | None = field(metadata={"formerly": "parent"})
    data: dict[str, DataMark]
    classes: tuple[str, ...]
    features: tuple[str, ...] = ()
    estimates: tuple[CardEstimate, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int | None = None
    layer: str | None = None
    outputs: tuple[tuple[str, str], ...] = ()
    output_kind: OutputKind = "probability"


def make_card(
    key: str,
    calibrator: Calibrator,
    *,
    classes: Sequence[str],
    data: Mapping[str, DataMark],
    model: ModelInfo | None = None,
    features: Sequence[str] = (),
    estimates: Sequence[CardEstimate] = (),
    notes: Sequence[str] = (),
    seed: int | None = None,
    layer: str | None = None,
    predictions: Roles | None = None,
    title: str | None = None,
    created: str | None = None,
) -> CalibratorCard:
    """The card of a newly fitted calibrator.

    Parameters
    ----------
    key : str
        Its key in the registry, or "".
    model : ModelInfo, optional
        The model under review.
    features : sequence of str
        Columns of the rows' features, kept only if a model or the calibrator reads them.
    layer : str, optional
        Hidden layer whose activations it was fitted on.
    predictions : Roles, optional
        Which columns held the predictions, kept only if there is no model.
    title : str, optional
        Replaces its name in the registry.
    created : str, optional
        Day of the fit; by default today in UTC.

    Examples
    --------
    >>> from kdcal_core.calibration import TopLabelConfidence
    >>> fitted = TopLabelConfidence().fit([[0.9, 0.1], [0.1, 0.9]], [0, 1])
    >>> card = make_card("confidence", fitted, classes=("a", "b"), data={})
    >>> card.title, card.model
    ('Confidence given the class', None)
    """
    entry = CALIBRATORS.get(key)
    settings = {
        name: value for name, value in calibrator.get_params(deep=False).items() if _is_json(value)
    }
    roles = Roles() if predictions is None or model is not None else predictions
    return CalibratorCard(
        key=key,
        title=title or (entry.name if entry else type(calibrator).__name__),
        parameters=settings,
        kdcal_version=__version__,
        created=created or datetime.now(UTC).date().isoformat(),
        model=None if model is None else ModelMark(model.name, model.kind, model.digest),
        data=dict(data),
        classes=tuple(classes),
        features=tuple(features) if model or calibrator.needs_inputs else (),
        estimates=tuple(estimates),
        notes=(*calibrator.notes_, *notes),
        seed=seed,
        layer=layer,
        outputs=roles.outputs,
        output_kind=roles.output_kind,
    )


def key_of(calibrator: Calibrator) -> str:
    """The key of the registry's calibrator with these settings, or "".

    Examples
    --------
    >>> from kdcal_core.calibration import VennAbers
    >>> key_of(VennAbers())
    'venn_abers'
    """
    for key, entry in CALIBRATORS.items():
        like = entry.factory()
        if type(like) is type(calibrator) and like.get_params() == calibrator.get_params():
            return key
    return ""


def card_to_json(card: CalibratorCard) -> dict[str, Any]:
    """The card as JSON values; without a layer and outputs it has version 1."""
    # files of every version say "parent"
    content = {"parent" if name == "model" else name: part for name, part in asdict(card).items()}
    if card.layer is None:
        del content["layer"]
    if not card.outputs:
        del content["outputs"], content["output_kind"]
    return content


def card_from_json(content: Any) -> CalibratorCard:
    """The card that JSON values describe.

    Raises
    ------
    TypeError, ValueError
        If they do not describe a card.
    """
    return decode(CalibratorCard, content)


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    return value is None or isinstance(value, bool | int | float | str)
