"""``kdcal completion``: what Tab offers, asked of real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.cli import main
from kdcal_core.cli.arguments import SHELLS, parser
from kdcal_core.cli.completion import calibrator_keys, with_values
from kdcal_core.tasks.repair_file import repair_keys

BASH = shutil.which("bash")
ASKED = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_shtab_kdcal
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Path]:
    made = {}
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        made[shell] = tmp_path / f"kdcal.{shell}"
        made[shell].write_text(said.out)
    return made


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_completes_commands_options_values_and_files(
    scripts: dict[str, Path], tmp_path: Path
) -> None:
    here = tmp_path / "here"
    (here / "tables").mkdir(parents=True)
    for name in ("table.csv", "other.csv"):
        (here / name).touch()

    def offered(*words: str) -> set[str]:
        done = subprocess.run(
            [BASH or "", "-c", ASKED, "bash", str(scripts["bash"]), "kdcal", *words],
            capture_output=True,
            cwd=here,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return set(done.stdout.split())

    assert {"diagnose", "audit", "completion"} < offered("")
    assert offered("audit", "ap") == {"approve"}
    assert offered("diagnose", "--mod") == {"--model"}
    assert offered("audit", "run", "--ju") == {"--junit"}
    assert offered("diagnose", "--task", "") == {"classification", "regression"}
    assert offered("diagnose", "--task", "regression", "--pred") == {"--predictions"}
    assert offered("completion", "") == set(SHELLS)
    assert offered("calibrate", "--calibrator", "kde_m") == {"kde_mon", "kde_mon2", "kde_mon4"}
    assert offered("calibrate", "--calibrator", "poo") == {"pooled"}
    assert offered("score", "--calibrator", "tab") == {"table.csv", "tables"}
    assert offered("diagnose", "--data", "tab") == {"table.csv", "tables"}
    assert offered("audit", "run", "--out", "tab") == {"tables"}  # a folder, no file
    assert offered("convert", "oth") == {"other.csv"}
    assert offered("diagnoze", "--mod") == set()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_script(scripts: dict[str, Path], shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n", str(scripts[shell])], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(scripts: dict[str, Path], shell: str) -> None:
    script = scripts[shell].read_text()
    top = parser()
    (commands,) = (one for one in top._actions if one.dest == "command")
    (actions,) = (one for one in commands.choices["audit"]._actions if one.dest == "action")
    every = {**commands.choices, **actions.choices}
    assert len(every) > 20
    for name, command in every.items():
        assert name in script
        for option in command._option_string_actions:
            # fish writes an option as "-l name"
            words = option if shell != "fish" else f"{option.lstrip('-')}"
            assert words in script, (name, option)


def test_the_keys_are_those_of_every_calibrator() -> None:
    known = [*CALIBRATORS, *repair_keys()]
    assert sorted(calibrator_keys()) == sorted(set(known))


def test_every_argument_that_takes_a_path_says_so() -> None:
    (commands,) = (one for one in with_values(parser())._actions if one.dest == "command")
    diagnose = commands.choices["diagnose"]._option_string_actions
    for option in ("--data", "--predictions", "--model", "--json", "--evaluation"):
        assert hasattr(diagnose[option], "complete"), option
    for option in ("--target", "--bins", "--force"):
        assert not hasattr(diagnose[option], "complete"), option


def test_another_shell_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1


def test_the_script_is_written_without_heavy_libraries() -> None:
    program = (
        "import sys, kdcal_core.cli as c\n"
        "assert c.main(['completion', 'bash']) == 0\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'torch', 'streamlit'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env={**os.environ}, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
