"""A small problem of every kind of feature, and a scikit-learn pipeline that decides it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from pear.decision.blackbox import probe_states
from pear.decision.encoding import unit_inputs
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem

SPACE = FeatureSpace(
    (
        Feature("income", "numeric", 0, 5_000, (0, 5_000)),
        Feature("cards", "integer", 0, 8, (0, 8)),
        Feature("owner", "boolean", scale=(0, 1)),
        Feature("job", "categorical", categories=("none", "part", "full")),
        Feature("city", "categorical", categories=("Rome", "Trento")),
    )
)


UNIT = unit_inputs(SPACE).columns
"""Numbers on [0, 1] and one-hot categories, declared."""


def make_problem(
    goal: Goal | None = None, space: FeatureSpace = SPACE, action: Action | None = None, **settings
) -> Problem:
    actions = ActionSpace(space, (action or Action("earn", "income", "add", (100,)),))
    return Problem(space, actions, CostGraph(space), goal or Goal(), **settings)


@pytest.fixture
def problem() -> Problem:
    return make_problem()


@pytest.fixture(scope="session")
def states() -> np.ndarray:
    return probe_states(SPACE, 200, np.random.default_rng(1))


@pytest.fixture(scope="session")
def labels(states) -> np.ndarray:
    wish = states[:, 0] / 5_000 + 0.3 * (states[:, 3] - 1) + 0.2 * states[:, 2]
    return (wish + np.random.default_rng(2).normal(0, 0.2, len(states)) > 0.5).astype(int)


def make_pipeline_for(final):
    """The encoding of FeatureSpace.one_hot as scikit-learn steps, and a classifier."""
    steps = [
        ("numbers", MinMaxScaler().set_output(transform="default"), ["income", "cards", "owner"]),
        (
            "texts",
            OneHotEncoder(
                categories=[list(SPACE["job"].categories), list(SPACE["city"].categories)],
                sparse_output=False,
            ),
            ["job", "city"],
        ),
    ]
    return make_pipeline(ColumnTransformer(steps), final)


@pytest.fixture(scope="session")
def pipeline(states, labels):
    return make_pipeline_for(LogisticRegression(max_iter=500)).fit(SPACE.frame(states), labels)


@pytest.fixture
def serve():
    """A function that serves ``reply(path, body, number) -> (status, headers, bytes)``."""
    running = []

    def start(reply):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.asked.append((dict(self.headers), json.loads(body)))
                status, headers, content = reply(json.loads(body), len(server.asked))
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.asked = []
        server.url = f"http://127.0.0.1:{server.server_port}/score"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()
