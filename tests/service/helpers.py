"""What the tests of the service share: a small problem, a running service, a conversation."""

from __future__ import annotations

import time
from contextlib import contextmanager

import numpy as np
from starlette.testclient import TestClient

from pear.decision import BlackBox
from pear.problem import (
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
    Requirement,
)
from pear.problem.files import write_problem
from pear.service.app import create_app
from pear.service.engine import Engine
from pear.service.service import make_service
from pear.service.settings import Settings

KEY = "pear_a-key-for-tests"
PERSON = {"age": 41, "income": 1500.0, "savings": 200.0, "job": "none", "course": False}
"""Scores 0.03: refused."""

RICH = {"age": 30, "income": 3000.0, "savings": 5000.0, "job": "full", "course": True}
"""Favourable as they are."""


def small_problem() -> Problem:
    space = FeatureSpace(
        (
            Feature("age", "integer", 18, 99, (18, 99), immutable=True, protected=True),
            Feature("income", "numeric", 0, 5000, (0, 5000), unit="€"),
            Feature("savings", "numeric", 0, 9000, (0, 9000), unit="€"),
            Feature("job", "categorical", categories=("none", "part", "full"), ordered=True),
            Feature("course", "boolean", scale=(0, 1), label="training course"),
        )
    )
    actions = ActionSpace(
        space,
        (
            Action("earn", "income", "add", (200, 400, 600, 800, 1200, 1600), "increase"),
            Action("save", "savings", "add", (500, 1000, 2000, 3000, 4500, 6000), "increase"),
            Action(
                "work",
                "job",
                "set",
                ("part", "full"),
                "increase",
                (Requirement("course", (True,)),),
            ),
            Action("learn", "course", "set", (True,)),
        ),
    )
    costs = CostGraph(space, (("course", "job"), ("job", "income")), floor=1.0)
    return Problem(space, actions, costs, Goal(), 4, name="small", default_range=(20.0, 300.0))


class Score:
    """A logistic score; ``shift`` makes another version of the model."""

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def __call__(self, states):
        _age, income, savings, job, course = states.T[:5]
        total = income / 900 + savings / 2500 + job * 1.1 + course * 0.6 - 5.0 + self.shift
        return 1 / (1 + np.exp(-total))


PROBLEM = small_problem()


def small_engine(settings: Settings, shift: float = 0.0, problem: Problem = PROBLEM) -> Engine:
    return Engine(problem, BlackBox(Score(shift), problem.space, problem.goal), settings)


@contextmanager
def running(settings: Settings, shift: float = 0.0, problem: Problem = PROBLEM, **changes):
    """A client of a running service; its ``service`` is there to look behind the scenes."""
    settings = settings.model_copy(update=changes)
    write_problem(problem, settings.problem)
    service = make_service(settings, lambda: small_engine(settings, shift, problem))
    with TestClient(create_app(settings, service), follow_redirects=False) as client:
        client.service = service
        yield client


class Talk:
    """One person's conversation through the API."""

    def __init__(self, client, record=None, **content):
        self.client = client
        answer = client.post(
            "/api/v1/conversations",
            json={"record": record or PERSON, **content},
            headers={"Authorization": f"Bearer {KEY}"},
        )
        assert answer.status_code == 201, answer.text
        self.created = answer.json()
        self.token, self.id = self.created["token"], self.created["id"]
        self.path = f"/api/v1/links/{self.token}"

    def read(self):
        """What is shown now; on a busy machine, once the search for it has ended."""
        ended = time.monotonic() + 60
        while True:
            answer = self.client.get(self.path)
            assert answer.status_code == 200, answer.text
            if answer.json()["stage"] != "waiting" or time.monotonic() > ended:
                return answer.json()
            time.sleep(0.05)

    def post(self, what, body=None, key=None, shown=None):
        """Do something about what is shown now, or about what was ``shown`` before."""
        headers = {"Idempotency-Key": key} if key else {}
        body = {"shown": shown or self.read()["shown"], **(body or {})}
        return self.client.post(f"{self.path}/{what}", json=body, headers=headers)

    def answer(self, choice=0, shown=None, key=None):
        return self.post("answers", {"choice": choice}, key, shown)

    def lift(self, ids, shown=None):
        shown = shown or self.read()["shown"]
        return self.client.delete(f"{self.path}/limits/{ids}", params={"shown": shown})

    def correct(self, record, shown=None):
        body = {"shown": shown or self.read()["shown"], "record": record}
        return self.client.put(f"{self.path}/record", json=body)

    def finish(self, choice=0):
        view = self.read()
        while view["stage"] == "question":
            self.answer(choice, view["shown"])
            view = self.read()
        return view
