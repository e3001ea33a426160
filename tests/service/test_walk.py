"""The walk of an answer through the service is the one that the architecture page tells."""

from tests.service.helpers import KEY, PROBLEM, Talk, running
from tests.service.test_pages import Visitor
from tests.walks import CLOSED, Walk, hold_to_the_page

from pear.elicitation import Session
from pear.problem.files import write_problem
from pear.service.settings import Settings

VALUES = ("problem/", "preferences/answers.py")
"""What is handed on: the nouns that the page tells before its first walk."""


def test_an_answer_passes_the_files_the_architecture_page_tells(tmp_path):
    write_problem(PROBLEM, tmp_path / "problem.toml")
    settings = Settings(
        problem=str(tmp_path / "problem.toml"),
        model="model.onnx",
        database=f"sqlite:///{tmp_path / 'pear.db'}",
        searchers=0,
        demo_key=KEY,
        log_level="error",
        trusted_hosts=("testserver",),
    )
    inside = (Session.say, Session.standing)
    with Walk((*CLOSED, *inside)) as walk, running(settings) as client:
        visitor = Visitor(client, Talk(client).token).see("/now").send("answer", choice="0")
        walk.watches = True
        visitor.send("answer", choice="0")
        walk.watches = False
    assert visitor.status == 200
    entered = [name for name in walk.entered if not name.startswith(VALUES)]
    hold_to_the_page("answer", entered, most=10)
