"""The small parts: limits, records, settings, metrics, words, reasons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service.helpers import PERSON, PROBLEM, small_engine

from pear.errors import InvalidSetting
from pear.problem import Step
from pear.service.catalogue import catalogue
from pear.service.limits import MOST_LIMITS, add_limit, as_limits, check_limit, refusals
from pear.service.metrics import Metrics
from pear.service.present import points
from pear.service.records import check_record, from_form, plain_number
from pear.service.rendering import day, picture
from pear.service.settings import ENVIRONMENT, Settings
from pear.service.views import differences


def step(feature, before, after):
    return Step("a", after, feature, before, after, 1.0, 0.1, 0.2, "words")


def test_refusing_a_step_offers_the_narrow_limit_first():
    assert [limit["kind"] for limit in refusals(PROBLEM, step("income", 1500.0, 1900.0))] == [
        "beyond",
        "feature",
    ]
    assert refusals(PROBLEM, step("income", 1500.0, 1900.0))[0]["direction"] == "up"
    assert refusals(PROBLEM, step("job", "none", "part"))[0]["value"] == "part"
    assert [limit["kind"] for limit in refusals(PROBLEM, step("course", False, True))] == [
        "feature"
    ]


def test_every_refusal_of_every_step_is_a_limit_that_forbids_the_step():
    state = PROBLEM.state(PERSON)
    for move in np.flatnonzero(PROBLEM.actions.changes_legally(state[None])[0]):
        column = PROBLEM.actions.feature_of[move]
        feature = PROBLEM.space.features[column]
        after = PROBLEM.actions.results(state[None])[0, move]
        taken = step(feature.name, feature.value(state[column]), feature.value(after))
        for limit in refusals(PROBLEM, taken):
            limits = as_limits(PROBLEM, state, [check_limit(PROBLEM, limit)])
            assert not PROBLEM.actions.allowed(state[None], limits)[0, move]


def test_beyond_leaves_what_is_nearer():
    state = PROBLEM.state(PERSON)
    limit = {"kind": "beyond", "feature": "income", "value": 2100.0, "direction": "up"}
    limits = as_limits(PROBLEM, state, [limit])
    allowed = PROBLEM.actions.allowed(state[None], limits)[0]
    income = PROBLEM.actions.feature_of == PROBLEM.space.index("income")
    left = PROBLEM.actions.results(state[None])[0, allowed & income]
    assert left.tolist() == [1700.0, 1900.0]


def test_the_same_limit_twice_is_one_and_there_is_an_end_to_them():
    limit = {"kind": "feature", "feature": "job"}
    once = add_limit([], limit)
    assert add_limit(once, limit) == once == [{"id": "1", **limit}]
    many = [{"id": str(i), "kind": "action", "action": str(i)} for i in range(MOST_LIMITS)]
    with pytest.raises(InvalidSetting, match="at most"):
        add_limit(many, limit)


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(list(PERSON)), st.text(max_size=12)))
def test_whatever_is_typed_becomes_a_record_or_a_message(form):
    clean, wrong = check_record(PROBLEM, from_form(PROBLEM, form))
    assert set(clean) | {name for name, _ in wrong} == set(PERSON)
    assert all(message for _, message in wrong)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1850", 1850), ("1,850", 1850), ("1 850,5", 1850.5), ("1'000", 1000), ("-3", -3)],
)
def test_numbers_as_people_write_them(text, number):
    assert plain_number(text) == number


@pytest.mark.parametrize("text", ["", "abc", "1,85,0", "12 €", "1e5", "٣", "NaN", "--1"])
def test_what_is_no_number_stays_a_text(text):
    assert plain_number(text) == text


@given(st.floats(0, 1), st.floats(0, 0.99))
def test_points_are_on_the_same_side_of_the_bar_as_the_score(score, bar):
    assert (points(score, bar) > points(bar)) == (score > bar and points(score, bar) > points(bar))
    if score > bar:
        assert points(score, bar) > points(bar)
    else:
        assert points(score, bar) <= points(bar)


def test_differences_name_what_only_one_plan_changes_and_what_it_spares():
    class P:
        def __init__(self, *steps):
            self.steps = steps

    first, second = differences(
        [
            P(step("income", 1500.0, 1900.0), step("job", "none", "part")),
            P(step("income", 1500.0, 1700.0), step("savings", 200.0, 700.0)),
        ]
    )
    assert (first["only"], first["spared"]) == (["job"], ["savings"])
    assert (second["only"], second["spared"]) == (["savings"], ["job"])
    assert first["values"] == [{"feature": "income", "value": 1900.0, "others": [[1, 1700.0]]}]


def test_the_picture_shows_every_step_and_says_the_same_in_words():
    steps = [
        {"score_before": 0.1, "score_after": 0.4},
        {"score_before": 0.4, "score_after": 0.62},
    ]
    drawn = picture(catalogue("en"), steps, 0.5)
    assert [bar["points"] for bar in drawn["bars"]] == [10, 40, 62]
    assert [bar["enough"] for bar in drawn["bars"]] == [False, False, True]
    assert "After step 2: 62." in drawn["words"]


def test_reasons_are_measured():
    engine = small_engine(Settings(demo=True))
    snapshot = {
        "id": "a", "version": 0, "stage": "new", "seed": 1, "record": PERSON, "questions": 0,
        "limits": [{"id": "1", "kind": "feature", "feature": "income"}], "session": None,
        "view": None, "outcome": None, "problem_fingerprint": "", "model_fingerprint": "",
    }  # fmt: skip
    columns = engine.act(snapshot, "accept", {})["columns"]
    steps = columns["view"]["result"]["plan"]["steps"]
    by_feature = {item["feature"]: item for item in steps}
    number = 1 + [item["feature"] for item in steps].index("job")
    assert by_feature["course"]["why"]["opens"] == number, "a job needs the course first"
    assert by_feature["savings"]["why"]["without"] <= 0.5, "every step is needed"


def test_metrics_count_by_route_and_add_up():
    metrics = Metrics()
    for seconds in (0.001, 0.3, 99.0):
        metrics.observe("GET", "/a", 200, seconds)
    text = metrics.text({"pear_ready": {(): 1.0}})
    assert 'pear_request_seconds_bucket{route="/a",le="0.5"} 2' in text
    assert 'pear_request_seconds_bucket{route="/a",le="+Inf"} 3' in text
    assert 'pear_requests_total{method="GET",route="/a",status="200"} 3' in text
    assert "pear_ready 1" in text


def test_the_probes_answer(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    text = client.get("/metrics").text
    assert "# TYPE pear_conversations gauge" in text or "pear_ready 1" in text


def test_not_ready_without_a_database(client, monkeypatch):
    def fail():
        raise OSError

    monkeypatch.setattr(client.service.database, "ping", fail)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"demo": False}, "--demo"),
        ({"problem": "p.toml"}, "--model"),
        ({"choices": 5}, "2, 3 or 4"),
        ({"choices": 1}, "at least 2"),
        ({"search_seconds": 0}, "positive"),
        ({"human_link": "javascript:alert(1)"}, "https://"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_remedy(changes, remedy):
    with pytest.raises(InvalidSetting, match=remedy):
        Settings(**{"demo": True, **changes})


def test_settings_travel_to_the_web_processes(monkeypatch):
    settings = Settings(demo=True, choices=3)
    monkeypatch.setenv(ENVIRONMENT, settings.to_json())
    assert Settings.from_environment() == settings
    monkeypatch.setenv(ENVIRONMENT, '{"demo": true, "colour": "red"}')
    with pytest.raises(InvalidSetting, match="no setting 'colour'"):
        Settings.from_environment()
    monkeypatch.delenv(ENVIRONMENT)
    with pytest.raises(InvalidSetting, match="pear serve"):
        Settings.from_environment()


def test_dates_people_can_read():
    assert day(1_772_496_000) == "3 March 2026"
