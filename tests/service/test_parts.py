"""The small parts: limits, records, settings, metrics, words, reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service.helpers import PERSON, PROBLEM, Talk, running

from pear.elicitation.says import check_record
from pear.elicitation.words import catalogue, points
from pear.errors import InvalidSetting
from pear.service.forms import from_form, plain_number
from pear.service.operation import Metrics, Traces
from pear.service.service import day, reference_of
from pear.service.settings import Settings


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(list(PERSON)), st.text(max_size=12)))
def test_whatever_is_typed_becomes_a_record_or_a_message(form):
    clean, wrong = check_record(PROBLEM, from_form(PROBLEM, form))
    assert set(clean) | {name for name, _ in wrong} == set(PERSON)
    assert all(message for _, message in wrong)


@pytest.mark.parametrize(
    ("text", "language", "unit", "number"),
    [
        ("1850", "en", "", 1850),
        ("1,850", "en", "", 1850),
        ("1 850,5", "en", "", 1850.5),
        ("1'000", "en", "", 1000),
        ("-3", "en", "", -3),
        ("€1,900", "en", "€", 1900),
        ("1.900,00 €", "de", "€", 1900),
        ("1.900", "it", "€", 1900),
        ("1.90", "en", "€", 1.9),
        ("1900.50", "es", "€", 1900.5),
        ("40%", "en", "%", 40),
        ("40 %", "de", "%", 40),
        ("36 months", "en", "months", 36),
        ("36 Monate", "de", "Monate", 36),
        ("0,125", "de", "", 0.125),
    ],
)
def test_numbers_as_people_write_them(text, language, unit, number):
    assert plain_number(text, language, unit) == number


@pytest.mark.parametrize(
    ("text", "language", "unit"),
    [("€1,900", "de", "€"), ("1.900", "en", "€"), ("40%", "en", "€"), ("€40", "en", "%")],
)
def test_money_that_may_be_a_thousand_times_more_and_other_units_are_refused(text, language, unit):
    assert plain_number(text, language, unit) == text


@pytest.mark.parametrize("text", ["", "abc", "1,85,0", "12 dogs", "1e5", "٣", "NaN", "--1", "€"])
def test_what_is_no_number_stays_a_text(text):
    assert plain_number(text) == text


@given(
    st.floats(-1e6, 1e6) | st.integers(0, 10**6).map(lambda thousandths: thousandths / 1000),
    st.sampled_from(["en", "de", "it", "es"]),
    st.sampled_from(["", "€", "%"]),
)
def test_what_nobody_touched_comes_back_as_it_was(value, language, unit):
    from pear.service.forms import _shown

    kept = plain_number(_shown(value, language), language, unit)
    assert kept == pytest.approx(value, abs=1e-11)


@given(st.floats(0, 1), st.floats(0, 0.99))
def test_points_are_on_the_same_side_of_the_bar_as_the_score(score, bar):
    assert (points(score, bar) > points(bar)) == (score > bar and points(score, bar) > points(bar))
    if score > bar:
        assert points(score, bar) > points(bar)
    else:
        assert points(score, bar) <= points(bar)


def test_metrics_count_by_route_and_add_up():
    metrics = Metrics()
    for seconds in (0.001, 0.3, 99.0):
        metrics.observe("GET", "/a", 200, seconds)
    metrics.now(waiting=0, restarts=0, ready=True)
    text = metrics.text().decode()
    assert 'pear_request_seconds_bucket{le="0.5",route="/a"} 2.0' in text
    assert 'pear_request_seconds_bucket{le="+Inf",route="/a"} 3.0' in text
    assert 'pear_requests_total{method="GET",route="/a",status="200"} 3.0' in text
    assert "pear_ready 1.0" in text


def test_the_probes_answer(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert "pear_ready" in client.get("/metrics").text


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
        ({"choices": 5}, "less than or equal to 4"),
        ({"choices": 1}, "'choices'"),
        ({"search_seconds": 0}, "greater than 0"),
        ({"human_link": "javascript:alert(1)"}, "https://"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_remedy(changes, remedy):
    with pytest.raises(InvalidSetting, match=remedy):
        Settings(**{"demo": True, **changes})


def test_settings_travel_to_the_web_processes(monkeypatch):
    settings = Settings(demo=True, choices=3, human_link="tel:1", sweep_seconds=7.5)
    for name, value in settings.to_environment().items():
        monkeypatch.setenv(name, value)
    assert Settings.read() == settings


def test_settings_come_from_the_command_line_the_environment_a_file_and_secrets(
    monkeypatch, tmp_path
):
    file, secrets = tmp_path / "pear.env", tmp_path / "secrets"
    secrets.mkdir()
    file.write_text("PEAR_CHOICES=3\nPEAR_MAX_QUESTIONS=7\nPEAR_EXPIRY_DAYS=3\nPEAR_DEMO=1\n")
    (secrets / "pear_database").write_text("sqlite:///secret.db\n")
    monkeypatch.setenv("PEAR_SETTINGS", str(file))
    monkeypatch.setenv("PEAR_SECRETS", str(secrets))
    monkeypatch.setenv("PEAR_MAX_QUESTIONS", "8")
    monkeypatch.setenv("PEAR_EXPIRY_DAYS", "4")
    found = Settings.read(expiry_days=5)
    assert (found.choices, found.max_questions, found.expiry_days) == (3, 8, 5)
    assert found.database == "sqlite:///secret.db"
    monkeypatch.setenv("PEAR_SETTINGS", str(tmp_path / "none.env"))
    with pytest.raises(InvalidSetting, match=r"none\.env"):
        Settings.read()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "3 March 2026"),
        ("de", "3. März 2026"),
        ("it", "3 marzo 2026"),
        ("es", "3 de marzo de 2026"),
    ],
)
def test_dates_people_can_read(language, words):
    assert day(1_772_496_000, catalogue(language, "pear.service")) == words


def test_a_reference_can_be_read_out():
    assert reference_of("2a99ed63c0ffee") == "2a99\N{NO-BREAK SPACE}ed63"


# Traces


def test_a_trace_goes_on_and_names_routes_but_no_link(settings):
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    spans, above = memory.InMemorySpanExporter(), "ab" * 16
    with running(settings) as client:
        vars(client.service.traces).update(vars(Traces(exporter=spans)))  # all share this one
        talk = Talk(client)
        client.get(talk.path, headers={"traceparent": f"00-{above}-00f067aa0ba902b7-01"})
        client.get("/c/nothing")
    found = spans.get_finished_spans()
    mine = [span for span in found if f"{span.context.trace_id:032x}" == above]
    names = {span.name for span in mine}
    assert {"GET /api/v1/links/{token}", "search look", "database by_token"} <= names
    [request] = [span for span in mine if span.kind.name == "SERVER"]
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["pear.conversation"] == talk.id
    assert all(span.parent is not None for span in mine)
    everything = "".join(span.to_json() for span in found)
    assert talk.token not in everything
    assert str(PERSON["income"]) not in everything


def test_without_a_collector_nothing_is_traced_and_nothing_needed(monkeypatch):
    monkeypatch.setattr("pear.service.operation.require", None)
    with Traces().span("request", {}) as span:
        span.tell("other", failed=True, number=1)
