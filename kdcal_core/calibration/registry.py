"""The one list of calibrators: pages, reports and the command line read methods from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from kdcal_core.calibration.base import Calibrator, TopLabelCalibrator
from kdcal_core.calibration.class_confidence import TopLabelConfidence
from kdcal_core.calibration.classwise_histogram import ClasswiseHistogram
from kdcal_core.calibration.cumulative import CumulativeConfidence
from kdcal_core.calibration.histogram import TopLabelHistogram
from kdcal_core.calibration.kde import TopLabelKDE
from kdcal_core.calibration.log_odds_maps import BetaCalibration, PlattScaling
from kdcal_core.calibration.one_vs_rest import IsotonicConfidence, SigmoidConfidence
from kdcal_core.calibration.softmax_maps import DirichletScaling, VectorScaling
from kdcal_core.calibration.temperature import TemperatureScaling
from kdcal_core.calibration.uncalibrated import UncalibratedConfidence
from kdcal_core.calibration.venn_abers import VennAbers
from kdcal_core.errors import InputError

Family = Literal["model", "top-label", "temperature", "standard", "partition", "kernel density"]
Need = Literal["inputs", "model"]


@dataclass(frozen=True)
class CalibratorEntry:
    """A calibrator as it is offered to people.

    Attributes
    ----------
    key : str
        Stable identifier for records and the command line.
    name : str
        Full name.
    label : str
        Short label, as in the paper.
    factory : callable
        Makes a fresh, unfitted calibrator with its default settings.
    reference : str
        Where it is described.
    description : str
        What it does, in one plain sentence.
    family : str
        "model" (no calibrator), "top-label" (paper 002), "temperature", "standard" (known
        outside the papers), "partition" (paper 004) or "kernel density" (papers 000 and 001).
    compared : bool
        Whether the page Confidence by class compares it by default: the methods of paper 002
        Figs. 17 to 19 that fit quickly, and scikit-learn's baselines.
    offered : bool
        Whether a comparison of all families takes it in where nothing else is asked for.
    needs : tuple of str
        What it reads besides probabilities and classes: "inputs", "model".
    binary_only : bool
        Whether it calibrates two classes only.
    """

    key: str
    name: str
    label: str
    factory: Callable[[], Calibrator]
    reference: str
    description: str
    family: Family
    compared: bool = True
    offered: bool = False
    needs: tuple[Need, ...] = ()
    binary_only: bool = False

    def lacks(self, *, n_classes: int, n_inputs: int, has_codes: bool) -> str | None:
        """Why a review of this kind cannot have it, in words; None where it can.

        Parameters
        ----------
        n_classes : int
        n_inputs : int
            Feature columns that the rows have.
        has_codes : bool
            Whether there is a model, and it is read as a partition of its inputs.

        Examples
        --------
        >>> CALIBRATORS["kernel_density"].lacks(n_classes=2, n_inputs=3, has_codes=False)
        'There is no model that divides its inputs into polytopes.'
        """
        if self.binary_only and n_classes != 2:
            return f"It is for two classes, and there are {n_classes:,}."
        if "inputs" in self.needs and not n_inputs:
            return "The rows have no features."
        if "model" in self.needs and not has_codes:
            return "There is no model that divides its inputs into polytopes."
        return None


def _by_regions(partition: str) -> Calibrator:
    from kdcal_core.calibration.regions import HeterogeneousCalibrator

    return HeterogeneousCalibrator(partition)


def _kernel_density() -> Calibrator:
    from kdcal_core.calibration.graph.as_calibrator import KernelDensityCalibrator

    return KernelDensityCalibrator()


_ENTRIES = (
    CalibratorEntry(
        "uncalibrated",
        "Uncalibrated score",
        "Uncalibrated",
        UncalibratedConfidence,
        "paper 002 section XIV",
        "The model's own probability of the predicted class, as it is.",
        "model",
        offered=True,
    ),
    CalibratorEntry(
        "confidence",
        "Confidence given the class",
        "Conf1",
        TopLabelConfidence,
        "paper 002 Eq. 1",
        "How often predictions of this class are right, whatever the score.",
        "top-label",
    ),
    CalibratorEntry(
        "histogram",
        "Histogram, 10 bins of equal width",
        "Histogram binning",
        TopLabelHistogram,
        "paper 002 Eqs. 5 and 6",
        "How often predictions of this class are right in the score's bin.",
        "top-label",
        offered=True,
    ),
    CalibratorEntry(
        "kde_mon",
        "Kernel densities, monotone bandwidth",
        "KDE (b_mon)",
        partial(TopLabelKDE, "mon"),
        "paper 002 Eqs. 9 and 19",
        "The share of right predictions among similar scores, smoothed until it has no dip.",
        "top-label",
    ),
    CalibratorEntry(
        "kde_mon2",
        "Kernel densities, at most one local minimum",
        "KDE (b_mon2)",
        partial(TopLabelKDE, "mon2"),
        "paper 002 Eqs. 9 and 20",
        "The share of right predictions among similar scores, smoothed until it has at most one "
        "dip: the paper's recommendation.",
        "top-label",
        offered=True,
    ),
    CalibratorEntry(
        "kde_mon4",
        "Kernel densities, at most two local minima",
        "KDE (b_mon4)",
        partial(TopLabelKDE, "mon4"),
        "paper 002 Eq. 9 and appendix",
        "As the recommended one, but with room for two dips, which are often noise.",
        "top-label",
    ),
    CalibratorEntry(
        "kde_loo",
        "Kernel densities, leave-one-out bandwidth",
        "KDE (b_opt)",
        partial(TopLabelKDE, "loo"),
        "paper 002 Eq. 9 and section XII",
        "As the recommended one, with the bandwidth that best predicts each row from the others; "
        "often wiggly.",
        "top-label",
        compared=False,
    ),
    CalibratorEntry(
        "sts",
        "Shared temperature scaling",
        "STS",
        TemperatureScaling,
        "paper 002 Eqs. 16 and 17",
        "One temperature softens or sharpens the probabilities of all classes alike.",
        "temperature",
        offered=True,
    ),
    CalibratorEntry(
        "csts",
        "Class-specific temperature scaling",
        "CSTS",
        partial(TemperatureScaling, "class"),
        "paper 002 section X",
        "Each predicted class has a temperature of its own.",
        "temperature",
    ),
    CalibratorEntry(
        "tswa",
        "Temperature scaling with awards",
        "TSwA",
        partial(TemperatureScaling, "shared", awards=True),
        "paper 002 Eq. 18",
        "One temperature for all, and an award for each class that counts when it is predicted.",
        "temperature",
        offered=True,
    ),
    CalibratorEntry(
        "cstswa",
        "Class-specific temperature scaling with awards",
        "CSTSwA",
        partial(TemperatureScaling, "class", awards=True),
        "paper 002 section XI and appendix",
        "Each predicted class has a temperature and an award of its own.",
        "temperature",
    ),
    CalibratorEntry(
        "cum",
        "Cumulative confidence",
        "Cum",
        CumulativeConfidence,
        "paper 002 Eq. 11",
        "How often predictions of this class are right at this score or better; too high at "
        "low scores.",
        "top-label",
    ),
    CalibratorEntry(
        "cum_median",
        "Cumulative confidence with median cutoff",
        "Cum+",
        partial(CumulativeConfidence, "median"),
        "paper 002 Eq. 12",
        "Cumulative confidence above the class's median score, one bin below it.",
        "top-label",
    ),
    CalibratorEntry(
        "cwoc",
        "Cumulative confidence with optimal cutoff",
        "CwOC",
        partial(CumulativeConfidence, "optimal"),
        "paper 002 Eq. 13",
        "Cumulative confidence above the cutoff that fits best, one bin below it.",
        "top-label",
    ),
    CalibratorEntry(
        "isotonic",
        "Isotonic regression, one class against the rest",
        "Isotonic",
        IsotonicConfidence,
        "scikit-learn, CalibratedClassifierCV",
        "A rising step function for each class's probability, whichever class was predicted.",
        "standard",
        offered=True,
    ),
    CalibratorEntry(
        "sigmoid",
        "Sigmoid, one class against the rest",
        "Sigmoid",
        SigmoidConfidence,
        "scikit-learn, CalibratedClassifierCV",
        "Platt's sigmoid of each class's probability, whichever class was predicted; unlike Platt "
        "scaling on the log odds it bends even a model that is right already.",
        "standard",
    ),
    CalibratorEntry(
        "platt",
        "Platt scaling of the log odds, one class against the rest",
        "Platt",
        PlattScaling,
        "Platt 1999; paper 004 section 2.1",
        "A sigmoid of each class's log odds, which can leave the model as it is; the one called "
        "Sigmoid is of the probability and cannot.",
        "standard",
        compared=False,
        offered=True,
    ),
    CalibratorEntry(
        "beta",
        "Beta calibration, one class against the rest",
        "Beta",
        BetaCalibration,
        "Kull, Silva Filho and Flach 2017",
        "As Platt's, with a slope of its own for each end of the scale; it never falls.",
        "standard",
        compared=False,
        offered=True,
    ),
    CalibratorEntry(
        "histogram_classes",
        "Histogram of each class's probability, 15 bins of equal mass",
        "Histogram by class",
        ClasswiseHistogram,
        "Zadrozny and Elkan 2001",
        "The share of each class among rows with a probability like this row's, whichever class "
        "was predicted.",
        "standard",
        compared=False,
    ),
    CalibratorEntry(
        "vector",
        "Vector scaling",
        "Vector",
        VectorScaling,
        "Guo, Pleiss, Sun and Weinberger 2017",
        "A temperature and an offset for each class.",
        "standard",
        compared=False,
    ),
    CalibratorEntry(
        "dirichlet",
        "Dirichlet calibration, off-diagonal and intercept regularised",
        "Dirichlet",
        DirichletScaling,
        "Kull et al. 2019",
        "Each class's new log probability is a weighted sum of all the old ones; weights between "
        "classes are held small.",
        "standard",
        compared=False,
        offered=True,
    ),
    CalibratorEntry(
        "venn_abers",
        "Inductive Venn-Abers prediction, one class against the rest",
        "Venn-Abers",
        VennAbers,
        "Vovk, Petej and Fedorova 2015",
        "Isotonic regression with the row itself among the data, once as a no and once as a yes, "
        "and the number between the two answers that log loss asks for.",
        "standard",
        compared=False,
        offered=True,
    ),
    CalibratorEntry(
        "heterogeneous_tree",
        "Platt scaling in each region of a shallow tree",
        "Tree regions",
        partial(_by_regions, "tree"),
        "paper 004 Algorithm 1",
        "A shallow tree cuts the inputs into regions, and each has a Platt scaling of its own.",
        "partition",
        compared=False,
        offered=True,
        needs=("inputs",),
    ),
    CalibratorEntry(
        "heterogeneous_forest",
        "Platt scaling in the regions of 100 shallow trees, averaged",
        "Forest regions",
        partial(_by_regions, "forest"),
        "paper 004 section 5",
        "As the single tree, averaged over 100 trees grown on resampled rows.",
        "partition",
        compared=False,
        offered=True,
        needs=("inputs",),
    ),
    CalibratorEntry(
        "heterogeneous_boosted",
        "Platt scaling by regions in sequence, each on the last one's answer",
        "Boosted regions",
        partial(_by_regions, "boosted"),
        "paper 004 section 5; its section 13 is lost",
        "Trees grown one after the other on what the calibration so far gets wrong.",
        "partition",
        compared=False,
        needs=("inputs",),
    ),
    CalibratorEntry(
        "heterogeneous_auc",
        "Platt scaling in regions that are split for AUROC",
        "AUROC regions",
        partial(_by_regions, "auc"),
        "paper 004 section 5; its section 12 is lost",
        "A shallow tree whose every split raises the AUROC most; Platt scaling in each region.",
        "partition",
        compared=False,
        needs=("inputs",),
    ),
    CalibratorEntry(
        "kernel_density",
        "Kernel density graph, blended with the model",
        "Kernel density",
        _kernel_density,
        "papers 000 and 001",
        "Inside the data the model's probabilities blended with the class ratio of the row's "
        "polytope; outside the prior.",
        "kernel density",
        compared=False,
        offered=True,
        needs=("inputs", "model"),
    ),
)

CALIBRATORS: dict[str, CalibratorEntry] = {entry.key: entry for entry in _ENTRIES}
"""Every calibrator by key, in the order in which it is shown."""

BY_CLASS: tuple[str, ...] = tuple(
    entry.key
    for entry in _ENTRIES
    if entry.family in ("model", "top-label", "temperature") or entry.key in ("isotonic", "sigmoid")
)
"""The methods that are held against each other by predicted class (paper 002 Fig. 17)."""


def calibrator_entry(key: str) -> CalibratorEntry:
    """The entry of a key.

    Raises
    ------
    InputError
        There is no such calibrator.

    Examples
    --------
    >>> calibrator_entry("sts").name
    'Shared temperature scaling'
    """
    if key not in CALIBRATORS:
        raise InputError(
            f"There is no method {key!r}", fix=f"Methods are {', '.join(CALIBRATORS)}."
        )
    return CALIBRATORS[key]


def score_calibrator(key: str) -> TopLabelCalibrator:
    """A fresh calibrator that reads nothing but probabilities.

    Raises
    ------
    InputError
        There is no such calibrator, or it reads more than probabilities.
    """
    calibrator = calibrator_entry(key).factory()
    if not isinstance(calibrator, TopLabelCalibrator):
        raise InputError(
            f"The method {key!r} reads more than probabilities",
            fix=f"Methods that do not are {', '.join(BY_CLASS)}.",
        )
    return calibrator
