"""Files are whole or not there, and a place that takes none is told before the work."""

import json

import pytest
from typer.testing import CliRunner

from pear.cli.main import app
from pear.datasets import loan_book_people, loan_book_problem
from pear.errors import InvalidSetting
from pear.problem.files import write_problem
from pear.writing import check_writable, replacing, write_text


def test_what_fails_leaves_the_old_content_and_nothing_beside_it(tmp_path):
    path = tmp_path / "plan.json"
    write_text("old", path)
    with pytest.raises(FileNotFoundError), replacing(path) as part:
        part.with_name("nowhere").joinpath("half").write_text("half")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_is_looked_at_and_left_as_it_is(tmp_path):
    check_writable(tmp_path / "new.json", None)
    assert list(tmp_path.iterdir()) == []
    for place in (tmp_path, tmp_path / "nowhere" / "new.json"):
        with pytest.raises(InvalidSetting, match="cannot be written"):
            check_writable(place)


@pytest.mark.parametrize(
    "command",
    [
        ["audit", "none.toml", "none.csv", "-o", "nowhere/report.html"],
        ["audit", "none.toml", "none.csv", "-o", "report.html", "--json", "nowhere/report.json"],
        ["fit-prior", "none.jsonl", "--problem", "none.toml", "-o", "nowhere/prior.json"],
        ["train", "none.toml", "--data", "none.csv", "-o", "nowhere/policy.safetensors"],
        ["ask", "problem.toml", "person.json", "--model", "http://x", "-o", "nowhere/plan.json"],
        [
            "ask",
            "problem.toml",
            "person.json",
            "--model",
            "http://x",
            "--conversation",
            "nowhere/c",
        ],
    ],
)
def test_long_work_is_not_begun_for_a_place_that_takes_no_file(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_problem(loan_book_problem(), tmp_path / "problem.toml")
    (tmp_path / "person.json").write_text(json.dumps(loan_book_people()["Ben"]))
    error = CliRunner().invoke(app, command).exception
    assert isinstance(error, InvalidSetting)
    assert "nowhere" in str(error)
