"""The walk of an answer through the service is the one that the architecture page tells."""

from tests.service.helpers import KEY, PROBLEM, Talk, running
from tests.service.test_pages import Visitor
from tests.walks import CLOSED, Walk, hold_to_the_page

from pear.elicitation import Session
from pear.problem.files import write_problem
from pear.service.settings import Settings

BESIDES = (
    "service/access.py", "service/database.py", "service/forms.py", "service/operation.py",
    "service/service.py",
    "elicitation/told.py", "elicitation/words.py", "preferences/answers.py",
    "problem/actions.py", "problem/checks.py", "problem/costs.py", "problem/feature.py",
    "problem/feature_space.py", "problem/limits.py", "problem/plan.py", "problem/problem.py",
    "problem/words.py",
)  # fmt: skip
"""What the page tells in other places: the door of every request, and the values handed on."""


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
    hold_to_the_page("answer", walk.entered, 10, BESIDES)
