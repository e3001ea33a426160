"""The OpenAPI description: complete, with examples, and true whatever is sent."""

import html
import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.service.helpers import KEY, Talk

from pear.service.schemas import MEDIA_TYPE

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
BOUNDED = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_route_describes_its_errors_in_the_one_shape(client):
    description = client.get("/api/v1/openapi.json").json()
    for path, operations in description["paths"].items():
        for operation in operations.values():
            assert operation["summary"]
            assert operation["description"]
            if not path.startswith("/api/"):
                continue
            errors = {s: r for s, r in operation["responses"].items() if s.startswith(("4", "5"))}
            assert {"404", "405", "413", "422", "429", "500"} <= set(errors)
            for answer in errors.values():
                assert list(answer["content"]) == [MEDIA_TYPE]


def test_every_request_body_has_an_example_that_fits(client):
    description = client.get("/api/v1/openapi.json").json()
    for operations in description["paths"].values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content["schema"]["$ref"].rpartition("/")[2]
                parts = description["components"]["schemas"][name]["properties"].values()
                assert any("examples" in part for part in parts), name


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.slow
def test_whatever_is_sent_the_answer_is_as_described(client, mode):
    description = schemathesis.openapi.from_dict(client.get("/api/v1/openapi.json").json())
    tried = set()
    for found in description.get_all_operations():
        operation = found.ok()
        strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))

        @BOUNDED
        @given(strategy)
        def send(case):
            client.service.keys.ensure("tests", KEY)
            if "token" in (case.path_parameters or {}):
                case.path_parameters["token"] = Talk(client).token
            case.headers = {**(case.headers or {}), "Authorization": f"Bearer {KEY}"}
            request = case.as_transport_kwargs(base_url="http://testserver")
            request.pop("cookies", None)
            case.validate_response(client.request(**request), checks=CHECKS)

        try:
            send()
        except Unsatisfiable:
            continue  # nothing of this route can be made wrong
        tried.add(operation.label)
    assert len(tried) >= 12


def test_the_first_request_of_the_page_runs_as_it_stands(client):
    page = html.unescape(client.get("/api").text)
    sent = json.loads(page.partition("<<'END'\n")[2].partition("\nEND")[0])
    headers = {"Authorization": f"Bearer {KEY}"}
    made = client.post("/api/v1/conversations", json=sent, headers=headers)
    assert made.status_code == 201
    token = made.json()["token"]
    assert client.get(f"/api/v1/links/{token}").status_code == 200
    assert "export BASE=http://testserver/api/v1\nexport KEY=" in page
    assert "<code>``" not in page
