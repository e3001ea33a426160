"""The command line's frame: every command listed, errors in one line, Ctrl-C quiet."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pear.cli
from pear.cli import main as frame
from pear.errors import InvalidProblem

FOLDER = Path(pear.cli.__file__).parent


def files_with_a_command() -> set[str]:
    files = FOLDER.glob("[a-z]*.py")
    return {
        path.stem.replace("_", "-")
        for path in files
        if "\ndef command(" in path.read_text(encoding="utf-8")
    }


def test_every_command_has_its_file_and_every_file_its_command():
    assert files_with_a_command() == set(frame.COMMANDS)


def test_help_lists_the_commands():
    shown = CliRunner().invoke(frame.app, ["--help"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in files_with_a_command())


@pytest.mark.parametrize("name", sorted(files_with_a_command()))
def test_every_command_explains_itself(name):
    shown = CliRunner().invoke(frame.app, [name, "--help"])
    assert shown.exit_code == 0
    assert len(shown.output.strip()) > 100


def test_the_help_loads_none_of_the_libraries_the_work_needs():
    script = "import sys, pear.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pear.cli.check" in loaded
    assert {"numpy", "pandas", "scipy", "sklearn", "networkx"}.isdisjoint(loaded)


def test_the_version_is_the_one_installed():
    finished = subprocess.run(
        [sys.executable, "-m", "pear", "--version"], capture_output=True, text=True, check=True
    )
    assert finished.stdout == f"pear {version('pear-recourse')}\n"
    assert pear.__version__ == version("pear-recourse")


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (InvalidProblem("'age' has no bounds"), 2, "error: 'age' has no bounds\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_of_ours_are_one_line_and_a_status(monkeypatch, capsys, raised, status, said):
    def fail() -> None:
        raise raised

    monkeypatch.setattr(frame, "app", fail)
    with pytest.raises(SystemExit) as stop:
        frame.main()
    assert stop.value.code == status
    assert capsys.readouterr().err == said


def test_an_error_that_is_not_ours_is_not_hidden(monkeypatch):
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(frame, "app", fail)
    with pytest.raises(ZeroDivisionError):
        frame.main()
