"""The arguments of ``kdcal``."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, NoReturn

from kdcal_core import __version__
from kdcal_core.cli.argument_types import (
    Listed,
    OneOrMany,
    count,
    level,
    names,
    outputs,
    parameters,
    setting,
    whole,
)
from kdcal_core.text import printable

# The same as in kdcal_core.data.schema, whose import would make --help slow.
TASKS = ("classification", "regression")
FAMILIES = (
    *("point", "log_point", "normal", "lognormal", "gamma", "student_t"),
    *("quantiles", "samples", "dropout"),
)
SHELLS = ("bash", "zsh", "fish")
_SHOWS = ("list", "show", "compare", "key")
"""Actions of `kdcal audit` whose output is what was asked for, which --quiet leaves."""
_NEGATIVE = re.compile(r"-[\d.]")  # no option begins like this
_ROWS = "rows for --model (CSV, Parquet); - is standard input"
_MANY = "several Parquet files, or a folder of them, may hold more rows than memory"


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
    _app(commands)
    _diagnose(commands)
    _calibrate(commands)
    _score(commands)
    _convert(commands)
    _audit(commands)
    _watch(commands)
    _limits(commands)
    _completion(commands)
    return top


def _app(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "app",
        help="open the app in the browser",
        description="Serve the app on this machine and open it in the browser. Ctrl-C ends it.",
        allow_abbrev=False,
    )
    command.add_argument("--port", metavar="N", type=count, help="port (default 8501)")
    command.add_argument("--no-browser", action="store_true", help="serve only, open nothing")
    _quiet(command)
    command.add_argument(
        "settings",
        nargs="*",
        metavar="-- SETTING",
        help="further settings of Streamlit, such as --server.address=0.0.0.0",
    )


def _diagnose(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "diagnose",
        help="measure how well a model's stated confidence holds on held-out rows",
        description="Measure how well a model's stated confidence holds on held-out rows: the "
        "probabilities of a classification, or the predictive distributions of a regression.",
        epilog="Exit code 0; 2 where the input cannot be used, with one line that says why.",
        allow_abbrev=False,
    )
    _rows(command, "the predictions in columns, such as one probability a class; no model")
    command.add_argument("--model", metavar="FILE", help="the model (.onnx, .skops, .json, ...)")
    command.add_argument(
        "--calibrator",
        metavar="FILE",
        help="a file of 'kdcal calibrate', whose output is judged in place of the model's; it must "
        "have been fitted on other rows",
    )
    _signature(command)
    command.add_argument("--evaluation", metavar="TABLE", help="further held-out rows, if any")
    command.add_argument(
        "--target", metavar="COLUMN", required=True, help="the true class or outcome"
    )
    command.add_argument(
        "--task", choices=TASKS, help="what the model does; by default the files decide"
    )
    _weight_and_classes(command)
    command.add_argument(
        "--event",
        metavar="CLASS",
        help="the class whose probability is judged, as on the pages; by default the confidence in "
        "the predicted class",
    )
    _groups(command)
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
        nargs="?",
        const="-",
        help="also write all results to this JSON file; without one, or with -, print the JSON "
        "instead of the report",
    )
    _force(command)
    _quiet(command)


def _audit(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "audit",
        help="gates for pipelines, and the record of audits",
        description="Audit a model without a browser, and work with the record of audits.",
        allow_abbrev=False,
    )
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, what: str, **more: Any) -> Parser:
        return actions.add_parser(
            name, help=what, description=f"{what.capitalize()}.", allow_abbrev=False, **more
        )

    one = action(
        "run",
        "audit what a configuration names, as a gate",
        epilog="Exit code 0 pass, 1 fail, 2 the input cannot be used, 3 not enough evidence (the "
        "configuration may count that as a pass or a fail). With --all it is the worst of all "
        "audits: 2, else 1, else 3, else 0.",
    )
    which = one.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", metavar="FILE", help="see 'kdcal audit init'")
    which.add_argument(
        "--all", metavar="FILE", help="TOML with configs = [FILE, ...], each a path or a pattern"
    )
    one.add_argument(
        "-o", "--out", metavar="DIR", help="write the report, audit.json and gate.json here"
    )
    one.add_argument("--junit", metavar="FILE", help="also write the checks as JUnit XML")

    one = action("init", "write a commented configuration of a review or of files")
    one.add_argument("--review", metavar="ID", help="a review of this machine, as in its address")
    one.add_argument("-o", "--out", metavar="FILE", default="audit.toml", help="default audit.toml")
    one.add_argument("--project", metavar="NAME", help="the project that keeps the audits")
    one.add_argument("--model", metavar="FILE", help="the model (.onnx, .skops, .json, ...)")
    _signature(one)
    table = one.add_mutually_exclusive_group()
    table.add_argument(
        "--data", metavar="FILE", nargs="+", action=OneOrMany,
        help="rows for --model; several Parquet files, or a folder of them, are one table",
    )  # fmt: skip
    table.add_argument(
        "--predictions", metavar="FILE", nargs="+", action=OneOrMany,
        help="rows with the predictions; several Parquet files, or a folder of them, are one table",
    )  # fmt: skip
    one.add_argument("--evaluation", metavar="TABLE", help="further held-out rows, if any")
    one.add_argument("--training", metavar="TABLE", help="the model's training rows")
    one.add_argument(
        "--foreign",
        metavar="TABLE",
        action="append",
        default=[],
        help="foreign rows, unlike the training rows; may be given several times",
    )
    one.add_argument("--target", metavar="COLUMN", default="", help="the true class or outcome")
    one.add_argument("--task", choices=TASKS, help="what the model does")
    _weight_and_classes(one)
    one.add_argument(
        "--event",
        metavar="CLASS",
        help="the class whose probability is judged; by default the one that the pages would ask "
        "about",
    )
    _groups(one)
    _outputs(one)
    _distributions(one)
    _force(one)

    one = action("list", "list the audits of the record")
    one.add_argument("--project", metavar="NAME", help="of one project alone")

    one = action("show", "show an audit, its history and its findings")
    one.add_argument("audit", metavar="AUDIT", help="the beginning of its id")

    one = action("report", "write the report of an audit")
    one.add_argument("audit", metavar="AUDIT", help="the beginning of its id")
    one.add_argument(
        "-o", "--out", metavar="FILE", required=True,
        help="the file to write: .html, .md, or where Chromium is installed .pdf, or .png of the "
        "first page",
    )  # fmt: skip
    _force(one)

    one = action("compare", "show what changed from one audit to another, or to several")
    named = "beginning of an id, or a file audit.json"
    one.add_argument("before", metavar="BASELINE", help=named)
    one.add_argument("after", metavar="AUDIT", nargs="+", help=f"{named}, held against it")

    one = action(
        "verify",
        "check the record against its signatures, its files and receipts",
        epilog="Exit code 0 where everything holds, 1 where something was altered, or where a "
        "newer version of kdcal wrote what this one cannot check.",
    )
    one.add_argument("--project", metavar="NAME", help="of one project alone")
    one.add_argument(
        "--receipt", metavar="FILE", action="append", default=[], help="a receipt that was kept"
    )
    one.add_argument(
        "--key", metavar="FILE", action="append", default=[],
        help="a public key that may have signed (see 'kdcal audit key'); by default those that "
        "the record names",
    )  # fmt: skip

    one = action("export", "write a project's record and files to one file")
    one.add_argument("--project", metavar="NAME", required=True)
    one.add_argument("-o", "--out", metavar="FILE", required=True, help="the file to write (.zip)")
    _force(one)

    one = action("import", "read a project's record and files from such a file")
    one.add_argument("file", metavar="FILE")

    one = action("backup", "write the whole record to one file")
    one.add_argument("file", metavar="FILE", help="the file to write (.zip)")
    one.add_argument(
        "--with-key",
        action="store_true",
        help="write the key that signs, too: keep the file as safe as the key",
    )
    _force(one)

    one = action("restore", "put the record of a backup in place, once it was verified")
    one.add_argument(
        "file",
        metavar="FILE",
        help="a file of 'kdcal audit backup', or a copy from before an upgrade",
    )
    one.add_argument(
        "--replace", action="store_true", help="move a record that is here aside before"
    )

    one = action("expire", "list the audits whose files are older than their project keeps them")
    one.add_argument("--project", metavar="NAME", help="of one project alone")
    one.add_argument(
        "--delete",
        action="store_true",
        help="delete these files, which cannot be restored; that is written into the record",
    )

    action("key", "print the public key that signs on this machine")

    one = action("admit", "let the key of another machine sign in a project")
    one.add_argument("--project", metavar="NAME", required=True)
    one.add_argument("--key", metavar="FILE", required=True, help="the output of 'kdcal audit key'")
    one.add_argument(
        "--role",
        choices=("reviewer", "administrator"),
        help="make the key itself a member of a project that has members: its gates record there",
    )
    one.add_argument("--name", metavar="TEXT", help="the name of this member")

    one = action(
        "notify",
        "send what is due",
        epilog="Exit code 0 where everything was sent, 1 where a message did not arrive; it is "
        "listed with the reason, and what was given up stays listed.",
    )
    how = one.add_mutually_exclusive_group()
    how.add_argument("--test", action="store_true", help="send a test message instead")
    how.add_argument(
        "--again", action="store_true", help="send now what waits or was given up, too"
    )

    for name, what in (
        ("submit", "submit a draft: it does not change any more"),
        ("approve", "approve a submitted audit, with the reason where its verdict is not pass"),
        ("reject", "reject a submitted audit, with the reason"),
        ("supersede", "let another approved audit take the place of an approved one"),
        ("comment", "write a comment on an audit"),
    ):
        one = action(name, what)
        one.add_argument("audit", metavar="AUDIT", help="the beginning of its id")
        if name == "supersede":
            one.add_argument("--by", metavar="NEWER", required=True, help="that of the other one")
        else:
            one.add_argument(
                "--words", metavar="TEXT", default="", help="the reason, or the comment"
            )
        one.add_argument("--receipt", metavar="FILE", help="write a receipt to this file")

    for name, one in actions.choices.items():
        _json(one)
        _quiet(one, shows=name in _SHOWS)


def _watch(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "watch",
        help="hold a new table, with or without labels, against the reference rows",
        description="Hold a new table against the reference rows: drift of the scores, or of a "
        "regression's forecasts, performance without labels, and a sequential test of labels that "
        "arrive late.",
        epilog="Exit code 0 nothing is beyond its limit, 1 something is, 2 the input cannot be "
        "used, 3 not enough evidence (the configuration may count that as 0 or 1).",
        allow_abbrev=False,
    )
    command.add_argument(
        "--config", metavar="FILE", required=True,
        help="the gate's (see 'kdcal audit init'); its table [watch] holds the limits",
    )  # fmt: skip
    command.add_argument(
        "--data", metavar="TABLE", required=True,
        help="new rows for the model, or its predictions in the columns of the reference table",
    )  # fmt: skip
    command.add_argument(
        "--state", metavar="FILE",
        help="watch.json of the table before: the same bins, and the test goes on",
    )  # fmt: skip
    command.add_argument(
        "--audit", metavar="AUDIT",
        help="the audit of the reference rows whose limits hold too: the beginning of its id, or "
        "its file audit.json",
    )  # fmt: skip
    command.add_argument(
        "-o", "--out", metavar="DIR", help="write watch.json (the state) and result.json here"
    )
    command.add_argument("--junit", metavar="FILE", help="also write the results as JUnit XML")
    command.add_argument(
        "--seed", metavar="N", type=whole, default=0, help="seed of random draws (default 0)"
    )
    _json(command)
    _quiet(command)


def _limits(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "limits",
        help="print the limits of size, number, time and memory",
        description="Print the limits of this kdcal, each with its value and the variable of the "
        "environment that sets it.",
        allow_abbrev=False,
    )
    _json(command)
    _quiet(command, shows=True)


def _completion(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script that completes these words in a shell",
        description="Print a script with which Tab completes commands, options and file names. "
        "It completes the command under its name kdcal alone.",
        epilog="For bash, add this line to ~/.bashrc: source <(kdcal completion bash). For zsh, "
        "write it to a file _kdcal in a folder of $fpath. For fish, write it to "
        "~/.config/fish/completions/kdcal.fish.",
        allow_abbrev=False,
    )
    command.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    _json(command)
    _quiet(command, shows=True)


def _rows(command: Parser, what: str) -> None:
    """Rows for the model or, instead, rows with ``what``; of one file or of many."""
    table = command.add_mutually_exclusive_group(required=True)
    table.add_argument(
        "--data", metavar="FILE", nargs="+", action=OneOrMany, help=f"{_ROWS}; {_MANY}"
    )
    table.add_argument(
        "--predictions",
        metavar="FILE",
        nargs="+",
        action=OneOrMany,
        help=f"rows with {what}; - is standard input; {_MANY}",
    )


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
        choices=(
            "probability",
            "percent",
            "permille",
            "logit",
            "log_probability",
            "right",
            "percent_right",
        ),
        metavar="KIND",
        help="what these columns hold, if their names do not show it: probability, percent, "
        "permille (thousandths), logit, log_probability; or, with --outputs right=COLUMN, the "
        "confidence that the predicted class is right: right (from 0 to 1), percent_right (from 0 "
        "to 100)",
    )


def _signature(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--signature", metavar="FILE", help="an OpenSSF signature of the model, which is verified"
    )
    command.add_argument(
        "--signature-key", metavar="FILE", help="its maker's public key (PEM, elliptic curve)"
    )


def _weight_and_classes(command: Parser) -> None:
    command.add_argument("--weight", metavar="COLUMN", help="row weights")
    command.add_argument(
        "--majority",
        action="store_true",
        help="the target holds shares, as of votes: a row is of class 1 where at least half say so",
    )
    command.add_argument(
        "--cluster",
        metavar="COLUMN",
        help="rows with the same value depend on one another (patients, centres); '': none do",
    )
    command.add_argument(
        "--time", metavar="COLUMN", help="order of the rows; near ones may be alike"
    )
    command.add_argument(
        "--classes",
        metavar="A,B,...",
        type=names,
        action=Listed,
        help="class names in the order of the model's outputs, where it does not know them",
    )


def _quiet(command: Parser, *, shows: bool = False) -> None:
    """``shows`` is for a command whose output is all that is asked of it."""
    left = "what is asked for" if shows else "JSON that is asked for"
    command.add_argument(
        "--quiet", action="store_true", help=f"print nothing but errors, and {left}"
    )


def _json(command: Parser) -> None:
    command.add_argument("--json", action="store_true", help="print the result as JSON")


def _force(command: Parser) -> None:
    command.add_argument("--force", action="store_true", help="overwrite an existing file")


def _groups(command: Parser) -> None:
    command.add_argument(
        "--groups", metavar="COLUMN,...", type=names, action=Listed, default=(),
        help="columns of declared groups",
    )  # fmt: skip


def _distributions(command: Parser) -> argparse._ArgumentGroup:
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
        action=Listed,
        help="which column holds which parameter: mean=mu,std=sigma, or 0.05=q05,0.95=q95",
    )
    only.add_argument("--true-mean", metavar="COLUMN", help="a simulation's true mean")
    return only


def _regression(command: Parser) -> None:
    only = _distributions(command)
    only.add_argument(
        "--by",
        metavar="COLUMN,...",
        type=names,
        action=Listed,
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
        description="Fit a calibrator on held-out rows of a classification, or a recalibrator on "
        "those of a regression, report its gain, and write it to a file for 'kdcal score'. In "
        "Python, kdcal_core.load_calibrator and kdcal_core.load_recalibrator read it.",
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
        help="build the regions, or search neighbours, on this hidden layer of --model instead of "
        "on the columns",
    )
    command.add_argument("--data", metavar="TABLE", help=_ROWS)
    command.add_argument(
        "--predictions",
        metavar="TABLE",
        help="rows with the model's predictions in columns, instead of --data; - is standard input",
    )
    _outputs(command)
    command.add_argument("--model", metavar="FILE", help="the model (.onnx, .skops, .json, ...)")
    _signature(command)
    command.add_argument("--target", metavar="COLUMN", help="the true class or outcome")
    command.add_argument(
        "--task", choices=TASKS, help="what the model does; by default the options decide"
    )
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
    _weight_and_classes(command)
    command.add_argument(
        "--seed", metavar="N", type=whole, default=0, help="seed of random draws (default 0)"
    )
    command.add_argument(
        "-o", "--out", metavar="FILE", help="the calibrator file to write (.kdcal)"
    )
    _force(command)
    _json(command)
    _quiet(command)
    _distributions(command)
    command.set_defaults(by=())  # an argument of `kdcal diagnose`


def _score(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "score",
        help="score a table of any length with a model and its calibrator",
        description="Score a table with a model and its calibrator, block by block: calibrated "
        "probabilities of each class, the predicted class and its confidence; of a regression "
        "mean, standard deviation and quantiles.",
        epilog="Exit code 0; 2 where the input cannot be used, with one line that says why; "
        "then nothing is written.",
        allow_abbrev=False,
    )
    command.add_argument(
        "--calibrator", metavar="FILE", required=True, help="a file of 'kdcal calibrate'"
    )
    command.add_argument("--model", metavar="FILE", help="the model that was calibrated")
    _rows(command, "the model's predictions in columns")
    _outputs(command)
    command.add_argument(
        "--parameters",
        metavar="NAME=COLUMN,...",
        type=parameters,
        action=Listed,
        help="of a regression: which column of --predictions holds which parameter, if not those "
        "of the fit",
    )
    command.add_argument(
        "--keep",
        metavar="COLUMN,...",
        type=names,
        action=Listed,
        default=(),
        help="columns of the table that are written too, as text: a number of the case, say",
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        required=True,
        help="the table to write (.csv or .parquet); of many files a new folder",
    )
    _force(command)
    command.add_argument(
        "--any-model",
        action="store_true",
        help="score even where --model is not the model that was calibrated",
    )
    _json(command)
    _quiet(command)


def _convert(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "convert",
        help="turn a pickled model into a file that kdcal reads",
        description="Turn a pickled model into a file that kdcal reads. Opening a pickle runs "
        "whatever code is in it: convert only files that you trust.",
        allow_abbrev=False,
    )
    command.add_argument("source", metavar="SOURCE", help="a .pkl, .joblib, .pt or .pth file")
    command.add_argument("-o", "--out", metavar="FILE", required=True, help="the file to write")
    _force(command)
    command.add_argument(
        "--example-width", metavar="N", type=count, help="input columns of a PyTorch model"
    )
    _json(command)
    _quiet(command)
