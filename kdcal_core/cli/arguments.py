"""The arguments of ``kdcal``."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, NoReturn

from kdcal_core import __version__
from kdcal_core.text import printable

# The same as in kdcal_core.data.schema, whose import would make --help slow.
TASKS = ("classification", "regression")
FAMILIES = (
    *("point", "log_point", "normal", "lognormal", "gamma", "student_t"),
    *("quantiles", "samples", "dropout"),
)
_NEGATIVE = re.compile(r"-[\d.]")  # no option begins like this
_ROWS = "rows for --model (CSV, Parquet); - is standard input"


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read "-1=p" after an option as its value, because a class may be called -1."""
        words = list(sys.argv[1:] if args is None else args)
        at = 0
        while at + 1 < len(words):
            option = self._option_string_actions.get(words[at])
            if words[at] == "--":
                break
            if option is not None and option.nargs is None and _NEGATIVE.match(words[at + 1]):
                words[at : at + 2] = [f"{words[at]}={words[at + 1]}"]
            at += 1
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        print(f"kdcal: {printable(message)}. See '{self.prog} --help'.", file=sys.stderr)
        raise SystemExit(2)


def parser() -> Parser:
    """The parser of ``kdcal``; ``command`` in its result names the module that runs."""
    top = Parser(
        prog="kdcal", description="How far can a model's confidence be trusted?", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"kdcal {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _diagnose(commands)
    _calibrate(commands)
    _score(commands)
    _convert(commands)
    return top


def _diagnose(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "diagnose",
        help="measure how well a model's stated confidence holds on held-out rows",
        description="Measure how well a model's stated confidence holds on held-out rows: the "
        "probabilities of a classification, or the predictive distributions of a regression.",
        epilog="Exit code 0; 2 where the input cannot be used, with one line that says why.",
        allow_abbrev=False,
    )
    table = command.add_mutually_exclusive_group(required=True)
    table.add_argument("--data", metavar="TABLE", help=_ROWS)
    table.add_argument(
        "--predictions",
        metavar="TABLE",
        help="rows with the predictions in columns, such as one probability a class; no model; "
        "- is standard input",
    )
    command.add_argument("--model", metavar="FILE", help="the model (.onnx, .skops, .json, ...)")
    command.add_argument("--evaluation", metavar="TABLE", help="further held-out rows, if any")
    command.add_argument(
        "--target", metavar="COLUMN", required=True, help="the true class or outcome"
    )
    command.add_argument(
        "--task", choices=TASKS, help="what the model does; by default the files decide"
    )
    command.add_argument("--weight", metavar="COLUMN", help="row weights")
    command.add_argument(
        "--classes",
        metavar="A,B,...",
        type=names,
        help="class names in the order of the model's outputs, where it does not know them",
    )
    command.add_argument(
        "--event",
        metavar="CLASS",
        help="the class whose probability is judged, as on the pages; by default the confidence in "
        "the predicted class",
    )
    command.add_argument(
        "--bins",
        metavar="N",
        type=count,
        help="bins of binned errors (default 15), or of the PIT histogram (default 20)",
    )
    command.add_argument(
        "--level",
        metavar="P",
        type=level,
        default=0.95,
        help="level of the intervals (default 0.95)",
    )
    _outputs(command)
    _regression(command)
    command.add_argument(
        "--json",
        metavar="FILE",
        help="also write all results to this JSON file; - prints the JSON instead of the report",
    )
    _force(command)


def _outputs(command: Parser) -> None:
    command.add_argument(
        "--outputs",
        metavar="CLASS=COLUMN,...",
        type=outputs,
        action="extend",
        help="which column of --predictions holds the probability (or the logit) of which class, "
        "or of one of two classes; may be given several times. Without it kdcal finds columns "
        "named by a prefix and the class (prob_no, prob_yes; also proba_, p_, score_, logit_), and "
        "for two classes the one column from 0 to 1 whose name begins or ends with p, pd, prob, "
        "proba, probability, risk or score (p_default)",
    )
    command.add_argument(
        "--output-kind",
        choices=("probability", "percent", "logit"),
        help="what these columns hold, if their names do not show it",
    )


def _force(command: Parser) -> None:
    command.add_argument("--force", action="store_true", help="overwrite an existing file")


def _regression(command: Parser) -> None:
    only = command.add_argument_group("for a regression")
    only.add_argument(
        "--family",
        metavar="NAME",
        choices=FAMILIES,
        help=f"what the predictions are: {', '.join(FAMILIES)}",
    )
    only.add_argument(
        "--parameters",
        metavar="NAME=COLUMN,...",
        type=parameters,
        help="which column holds which parameter: mean=mu,std=sigma, or 0.05=q05,0.95=q95",
    )
    only.add_argument("--true-mean", metavar="COLUMN", help="a simulation's true mean")
    only.add_argument(
        "--by",
        metavar="COLUMN,...",
        type=names,
        default=(),
        help="judge regions of these columns; by default regions of the prediction",
    )
    only.add_argument(
        "--seed", metavar="N", type=whole, default=0, help="seed of random draws (default 0)"
    )


def _calibrate(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "calibrate",
        help="fit a calibrator on held-out rows and write it to a file",
        description="Fit a calibrator on held-out rows of a classification, report its gain, "
        "and write it to a file for 'kdcal score' and kdcal_core.load_calibrator.",
        epilog="Exit code 0; 2 where the input cannot be used, with one line that says why.",
        allow_abbrev=False,
    )
    command.add_argument(
        "--list",
        action="store_true",
        help="list the calibrators, or with --calibrator the settings of one, and exit",
    )
    command.add_argument("--calibrator", metavar="KEY", help="which one to fit (see --list)")
    command.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=setting,
        action="append",
        default=[],
        help="a setting of the calibrator; may be given several times (see --list)",
    )
    command.add_argument(
        "--layer",
        metavar="NAME",
        help="build the regions on this hidden layer of --model instead of on the columns",
    )
    command.add_argument("--data", metavar="TABLE", help=_ROWS)
    command.add_argument(
        "--predictions",
        metavar="TABLE",
        help="rows with the model's probabilities in columns, instead of --data; - is standard "
        "input",
    )
    _outputs(command)
    command.add_argument("--model", metavar="FILE", help="the model (.onnx, .skops, .json, ...)")
    command.add_argument("--target", metavar="COLUMN", help="the true class")
    command.add_argument(
        "--training",
        metavar="TABLE",
        help="the model's training rows, on which a partition of the inputs is grown",
    )
    command.add_argument(
        "--evaluation",
        metavar="TABLE",
        help="further held-out rows to judge on; without them the judgement is cross-fitted",
    )
    command.add_argument("--weight", metavar="COLUMN", help="row weights")
    command.add_argument(
        "--classes",
        metavar="A,B,...",
        type=names,
        help="class names in the order of the model's outputs, where it does not know them",
    )
    command.add_argument(
        "--seed", metavar="N", type=whole, default=0, help="seed of random draws (default 0)"
    )
    command.add_argument("--out", metavar="FILE", help="the calibrator file to write (.kdcal)")
    _force(command)
    # further arguments of `kdcal diagnose` that a classification does not use
    command.set_defaults(task="classification", family=None, parameters=None, true_mean=None, by=())


def _score(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "score",
        help="score a table of any length with a model and its calibrator",
        description="Score a table with a model and its calibrator, block by block: calibrated "
        "probabilities of each class, the predicted class and its confidence.",
        epilog="Exit code 0; 2 where the input cannot be used, with one line that says why; "
        "then nothing is written.",
        allow_abbrev=False,
    )
    command.add_argument(
        "--calibrator", metavar="FILE", required=True, help="a file of 'kdcal calibrate'"
    )
    command.add_argument("--model", metavar="FILE", help="the model that was calibrated")
    table = command.add_mutually_exclusive_group(required=True)
    table.add_argument("--data", metavar="TABLE", help=_ROWS)
    table.add_argument(
        "--predictions",
        metavar="TABLE",
        help="rows with the model's probabilities in columns; - is standard input",
    )
    _outputs(command)
    command.add_argument(
        "--keep",
        metavar="COLUMN,...",
        type=names,
        default=(),
        help="columns of the table that are written too, as text: a number of the case, say",
    )
    command.add_argument(
        "--out", metavar="FILE", required=True, help="the table to write (.csv or .parquet)"
    )
    _force(command)
    command.add_argument(
        "--any-model",
        action="store_true",
        help="score even where --model is not the model that was calibrated",
    )


def _convert(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "convert",
        help="turn a pickled model into a file that kdcal reads",
        description="Turn a pickled model into a file that kdcal reads. Opening a pickle runs "
        "whatever code is in it: convert only files that you trust.",
        allow_abbrev=False,
    )
    command.add_argument("source", metavar="SOURCE", help="a .pkl, .joblib, .pt or .pth file")
    command.add_argument("--out", metavar="FILE", required=True, help="the file to write")
    _force(command)
    command.add_argument(
        "--example-width", metavar="N", type=count, help="input columns of a PyTorch model"
    )


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names, all different and not empty."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different names")
    return found


def parameters(text: str) -> tuple[tuple[str, str], ...]:
    """Parameters and their columns, "mean=mu,std=sigma".

    Examples
    --------
    >>> parameters("mean=mu, 0.5=the median")
    (('mean', 'mu'), ('0.5', 'the median'))
    """
    pairs = [part.partition("=") for part in text.split(",")]
    found = tuple((name.strip(), column.strip()) for name, _, column in pairs)
    if not all(name and column for name, column in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list like mean=mu,std=sigma")
    return found


def setting(text: str) -> tuple[str, str]:
    """A setting's name and its value.

    Examples
    --------
    >>> setting("max_depth=2"), setting("column=a=b")
    (('max_depth', '2'), ('column', 'a=b'))
    """
    name, sign, value = text.partition("=")
    if not name.strip() or not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not like max_depth=2")
    return name.strip(), value.strip()


def outputs(text: str) -> tuple[tuple[str, str], ...]:
    """Classes and their columns, "no=p_0,yes=p_1"; the last of several = signs separates them.

    Examples
    --------
    >>> outputs("<=50K=p_low, >50K=p_high")
    (('<=50K', 'p_low'), ('>50K', 'p_high'))
    """
    pairs = [part.rpartition("=") for part in text.split(",")]
    found = tuple((name.strip(), column.strip()) for name, _, column in pairs)
    if not all(name and column for name, column in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list like 0=p_no,1=p_yes")
    return found


def whole(text: str) -> int:
    """A whole number from 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def level(text: str) -> float:
    """A number between 0 and 1, both excluded."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value
