"""``pear serve``: keys from the terminal, and errors in one line before anything starts."""

import inspect
import os
import re
import signal
import socket
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from tests.browser.conftest import free_port
from tests.service.helpers import PROBLEM
from typer.testing import CliRunner

from pear.cli import serve
from pear.cli.main import app
from pear.errors import InvalidSetting, ModelError
from pear.problem.files import write_problem
from pear.service.lender.staff import Keys
from pear.service.settings import Settings
from pear.service.store.database import Database

ROOT = Path(__file__).parents[2]


@pytest.fixture
def database(tmp_path):
    return f"sqlite:///{tmp_path / 'pear.db'}"


def run(*options):
    return CliRunner().invoke(app, ["serve", *options])


def test_keys_are_made_listed_and_revoked(database):
    made = run("--database", database, "--new-key", "Back office")
    key, number = re.search(r"(pear_\S+)\nThis is key (\w+)", made.output).groups()
    keys = Keys(Database(database))
    assert keys.find(key).name == "Back office"
    assert key not in run("--database", database, "--list-keys").output
    assert run("--database", database, "--revoke-key", number).exit_code == 0
    assert keys.find(key) is None
    assert "(revoked)" in run("--database", database, "--list-keys").output
    again = run("--database", database, "--revoke-key", number)
    assert isinstance(again.exception, InvalidSetting)
    assert "--list-keys" in str(again.exception)


def test_the_settings_reach_the_web_processes(database, monkeypatch):
    started, port = {}, free_port()
    monkeypatch.setattr(serve.os, "environ", dict(os.environ))
    monkeypatch.setattr(
        serve.require("uvicorn"), "run", lambda *names, **options: started.update(options)
    )
    answer = run(
        "--demo", "--database", database, "--port", str(port), "--workers", "3", "--choices", "3"
    )
    assert answer.exit_code == 0, answer.output
    assert (started["port"], started["workers"]) == (port, 3)
    assert started["access_log"] is False, "the server's own log would hold the tokens"
    settings = Settings.read()
    assert (settings.demo, settings.choices, settings.database) == (True, 3, database)
    assert settings.demo_key in answer.output


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--demo", "--workers", "0"], "workers"),
        (["no-such.toml", "--model", "m.onnx"], "no-such.toml"),
        ([], "--demo"),
        (["--demo", "--choices", "9"], "choices"),
        (["--demo", "--database", "oracle://x"], "PostgreSQL"),
    ],
)
def test_what_cannot_work_is_said_in_one_line_at_the_start(options, remedy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = run(*options).exception
    assert remedy in str(error)
    assert "\n" not in str(error)


def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = run("--demo", "--port", str(port))
    assert isinstance(answer.exception, InvalidSetting)
    assert f"port {port}" in str(answer.exception)
    assert answer.output == ""


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "there is no prior"), ("{", "cannot be read"), ('{"means": [[1]]}', "does not hold")],
)
def test_a_prior_that_cannot_be_used_is_told_at_the_start(tmp_path, monkeypatch, content, why):
    monkeypatch.chdir(tmp_path)
    write_problem(PROBLEM, tmp_path / "problem.toml")
    if content is not None:
        (tmp_path / "prior.json").write_text(content)
    error = run("problem.toml", "--model", "model.onnx", "--prior", "prior.json").exception
    assert isinstance(error, InvalidSetting)
    assert why in str(error)


def test_a_pickled_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_problem(PROBLEM, tmp_path / "problem.toml")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04N.")
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    answer = subprocess.run(
        [sys.executable, "-m", "pear", "serve", "problem.toml", "--model", "model.pkl"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env=own,
    )
    assert answer.returncode == 2
    assert answer.stderr.startswith("error: ")
    assert answer.stderr.count("\n") == 1


def test_a_model_that_is_not_loaded_in_time_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pear.service.engine.START_SECONDS", 0.01)
    write_problem(PROBLEM, tmp_path / "problem.toml")
    error = run("problem.toml", "--model", "model.onnx").exception
    assert isinstance(error, ModelError)
    assert str(error).startswith("the model 'model.onnx' was not loaded within 0 seconds")


def test_every_option_and_route_is_documented(database):
    text = (ROOT / "docs" / "service.md").read_text()
    for parameter in inspect.signature(serve.command).parameters.values():
        if parameter.name != "problem":
            assert f"--{parameter.name.replace('_', '-')}`" in text, parameter.name
    from pear.service.app import create_app

    schema = create_app(Settings(demo=True, database=database, searchers=0)).openapi()
    for path in schema["paths"]:
        assert path.removeprefix("/api/v1") in text, path


def test_everything_the_pages_need_travels_with_the_package():
    folder = resources.files("pear.service")
    for name in ("static/page.css", "static/comfort.js", "static/check.js", "texts/en.toml"):
        assert (folder / name).is_file()
    migrations = folder / "store" / "migrations"
    assert (migrations / "env.py").is_file()
    assert any(f.name.startswith("v0001") for f in (migrations / "versions").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_told_to_end_it_leaves_nothing_of_the_demonstration_behind(tmp_path, workers):
    command = [sys.executable, "-m", "pear", "serve", "--demo", "--port", str(free_port())]
    served = subprocess.Popen(
        [*command, "--workers", workers, "--searchers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    while "started" not in served.stderr.readline():
        assert served.poll() is None
    assert list(tmp_path.glob("pear-demo-*"))
    served.send_signal(signal.SIGTERM)
    served.communicate(timeout=60)
    assert served.returncode == 0
    assert not list(tmp_path.glob("pear-*"))
