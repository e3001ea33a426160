"""Every setting of the service can be given on the command line, and in the environment."""

import pytest
from tests.service.helpers import KEY, Talk, running
from typer.testing import CliRunner

from pear.cli import serve
from pear.cli.main import app
from pear.errors import InvalidSetting
from pear.service.settings import PREFIX, Settings

WORDS = {
    "apply_link": "https://apply.example",
    "base_url": "https://plans.example",
    "correct_data_link": "https://data.example",
    "human_link": "mailto:help@plans.example",
    "oidc_issuer": "https://login.example",
    "log_level": "debug",
    "agree": 0.5,
    "traces": "http://collector:4318/v1/traces",
}

NEEDED = {
    "oidc_issuer": {
        "PEAR_OIDC_CLIENT": "pear",
        "PEAR_OIDC_SECRET": "secret",
        "PEAR_OIDC_ROLES": "staff=read",
        "PEAR_BASE_URL": "https://plans.example",
    }
}
"""What a setting means nothing without."""


def another(name):
    """A value that is not the default."""
    default = Settings.model_fields[name].default
    if name in WORDS:
        return WORDS[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return default + 1
    return ("one.example", "two.example") if isinstance(default, tuple) else "x"


def written(value):
    return ",".join(value) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name != "problem"])
def test_every_setting_is_an_option_and_a_variable(name, monkeypatch):
    seen = []
    monkeypatch.setattr(serve, "run", lambda settings, **_: seen.append(settings))
    monkeypatch.setattr(serve, "_check", lambda _: None)  # That these work is not asked here.
    value, switch = another(name), name.replace("_", "-")
    options = [f"--{switch}", written(value)]
    if isinstance(value, bool):
        options = [f"--{'' if value else 'no-'}{switch}"]
    demo = [] if name == "demo" else ["--demo"]
    if name == "oidc_issuer":
        demo += ["--oidc-client", "pear", "--oidc-secret", "x", "--oidc-roles", "staff=read"]
        demo += ["--base-url", "https://plans.example"]
    for stated, environment in ((options, {}), ([], {PREFIX + name.upper(): written(value)})):
        environment |= NEEDED.get(name, {})
        answer = CliRunner().invoke(app, ["serve", *demo, *stated], env=environment)
        assert answer.exit_code == 0, answer.output or answer.exception
    assert [getattr(settings, name) for settings in seen] == [value, value]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of settings that the environment names."""
    file = tmp_path / "pear.env"
    file.write_text(f"PEAR_DEMO=1\nPEAR_CHOICES=3\nPEAR_DATABASE=sqlite:///{tmp_path / 'of.db'}\n")
    monkeypatch.setenv("PEAR_SETTINGS", str(file))
    return file


def test_keys_are_kept_in_the_database_that_a_file_states(file):
    made = CliRunner().invoke(app, ["serve", "--new-key", "Back office"])
    assert made.exit_code == 0, made.output
    assert file.with_name("of.db").is_file()
    assert "Back office" in CliRunner().invoke(app, ["serve", "--list-keys"]).output


def test_the_usual_value_on_the_command_line_goes_before_a_file(file, monkeypatch):
    seen = []
    monkeypatch.setattr(serve, "run", lambda settings, **_: seen.append(settings))
    answer = CliRunner().invoke(app, ["serve", "--choices", "2"])
    assert answer.exit_code == 0, answer.output
    for name, value in seen[0].to_environment().items():
        monkeypatch.setenv(name, value)
    found = Settings.read()
    assert (found.demo, found.choices) == (True, 2)
    assert found.database.endswith("of.db")
    assert found.demo_key == seen[0].demo_key != ""


@pytest.mark.parametrize("choices", [2, 3])
def test_the_first_page_says_how_many_plans_are_shown_at_a_time(choices, tmp_path):
    settings = Settings(
        problem=str(tmp_path / "problem.toml"),
        model="model.onnx",
        database=f"sqlite:///{tmp_path / 'pear.db'}",
        searchers=0,
        demo_key=KEY,
        log_level="error",
        trusted_hosts=("testserver",),
        choices=choices,
    )
    with running(settings) as client:
        talk = Talk(client)
        assert f"We show you {choices} plans at a time." in client.get(f"/c/{talk.token}").text
        assert len(talk.read()["question"]["plans"]) == choices


def test_traces_go_to_an_address_of_http():
    with pytest.raises(InvalidSetting, match="'traces' must start with http"):
        Settings(demo=True, traces="ftp://collector")
