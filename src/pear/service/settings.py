"""What can be set about the service, and how does it reach every process of it?

Every setting can be given on the command line of ``pear serve`` (``--max-rows 50000``), in the
environment (``PEAR_MAX_ROWS=50000``), in a ``.env`` style file named by ``PEAR_SETTINGS``, or as a
file of its name in the folder ``PEAR_SECRETS`` names, in this order.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from pear.errors import InvalidSetting

FILE, SECRETS = "PEAR_SETTINGS", "PEAR_SECRETS"
"""Environment variables that name a file of settings, and a folder with a file for each."""

PREFIX = "PEAR_"

ROLES = ("create", "read", "administer")
"""``create`` makes links, ``read`` sees how conversations went, ``administer`` deletes them,
confirms corrections, makes and revokes keys, and reads the log."""

SCHEMES = ("https://", "http://", "mailto:", "tel:")


def _words(value: Any) -> Any:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
"""Several names, separated by commas."""

AtLeastOne = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class Stated(BaseSettings):
    """What an operator stated, each value by itself; ``model_fields_set`` names what it was.

    Times are seconds unless the name says days.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True
    )

    problem: str = Field("", description="The problem file; may be left out with --demo.")
    model: str = Field(
        "", description="An .onnx or .skops file or an endpoint; else the problem's own."
    )
    agree: float = Field(
        1.0, gt=0, le=1, description="Share of several models (a folder) that must say yes."
    )
    versions: str = Field(
        "", description="A folder of models that may decide next; plans are tried with them."
    )
    honour_days: int = Field(
        0, ge=0, description="Days a plan is honoured whatever the model is then; 0: no promise."
    )
    prior: str = Field("", description="A file of 'pear fit-prior'; else the problem's own.")
    demo: bool = Field(False, description="Open the built-in loan book with invented people.")
    database: str = Field(
        "sqlite:///pear.db", description="sqlite:///FILE or postgresql+psycopg://user@host/name."
    )
    host: str = Field("127.0.0.1", description="The address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="The port to listen on.")
    workers: AtLeastOne = Field(1, description="Web processes; all share the database.")
    base_url: str = Field("", description="The address in links, if not this one.")
    language: str = Field("", description="The pages' language; else what a browser asks for.")
    human_link: str = Field("", description="Where to ask for a person (https:, mailto:, tel:).")
    apply_link: str = Field("", description="Where to apply again once all steps are done.")
    correct_data_link: str = Field("", description="Where to correct data; else on the page.")

    searchers: int = Field(
        2, ge=0, description="Search processes per web process; 0 searches in a thread, for tests."
    )
    search_seconds: Seconds = Field(20.0, description="The longest a search may take.")
    most_waiting: AtLeastOne = Field(
        200, description="Searches that may wait in one web process before people are sent away."
    )
    patience_seconds: Seconds = Field(
        8.0, description="How long a request waits for its search before it is told its place."
    )
    cached_sessions: AtLeastOne = Field(
        256, description="Conversations that each search process remembers."
    )
    choices: int = Field(2, ge=2, le=4, description="Plans per question: 2, 3 or 4.")
    max_questions: AtLeastOne = Field(10, description="Most questions to one person.")
    max_rows: int = Field(
        200_000, ge=1000, description="Rows asked of the model for a plan and its proof."
    )
    question_rows: int = Field(
        22_000,
        ge=1000,
        description="Rows asked of the model for a first question; later ones ask a tenth.",
    )

    expiry_days: AtLeastOne = Field(30, description="Days until a link ends that led to no plan.")
    plan_days: AtLeastOne = Field(
        365, description="Days that the link of a plan works on after each time it is used."
    )
    retention_days: AtLeastOne = Field(90, description="Days until an ended link is deleted.")
    sweep_seconds: Seconds = Field(3600.0, description="How often old conversations are deleted.")
    scrub_seconds: Seconds = Field(
        60.0,
        description="How often PostgreSQL's tables are written anew where some was deleted.",
    )

    max_body: int = Field(65_536, ge=1024, description="Bytes of the largest request.")
    link_per_minute: AtLeastOne = Field(120, description="Requests of one link in a minute.")
    key_per_minute: AtLeastOne = Field(600, description="Requests of one key in a minute.")
    stranger_per_minute: AtLeastOne = Field(
        60, description="Requests of one address without link or key in a minute."
    )
    header_seconds: Seconds = Field(10.0, description="The longest a request's head may take.")
    body_seconds: Seconds = Field(
        20.0, description="The longest a request's body, or a pause in taking its answer, may take."
    )
    most_connections: AtLeastOne = Field(
        1000, description="Connections at once of one web process."
    )
    trusted_hosts: Names = Field(
        (), description="Names this service is reached by; else its own and that of --base-url."
    )
    trusted_proxies: Names = Field(
        (), description="Addresses of proxies whose word on the client's address is taken."
    )
    accept_clock: bool = Field(
        False, description="Delete what is old although the clock is far ahead of the last time."
    )
    pin: bool = Field(
        False,
        description="Have the person choose a PIN; the link alone opens nothing then.",
    )
    confirm_corrections: bool = Field(
        True, description="Corrections to protected or immutable data wait for the lender."
    )
    oidc_issuer: str = Field(
        "", description="Where staff sign in (OpenID Connect); keys are for machines only then."
    )
    oidc_client: str = Field("", description="The name this service has there.")
    oidc_secret: str = Field("", description="The secret that goes with the name.")
    oidc_claim: str = Field("groups", description="The claim that says what somebody may do.")
    oidc_roles: Names = Field(
        (), description="What each value of the claim may do: staff=create+read,heads=administer."
    )
    traces: str = Field(
        "", description="Where OpenTelemetry traces go, as http://collector:4318/v1/traces."
    )
    secure_cookies: bool = Field(
        False, description="Send cookies over HTTPS only; so it is where --base-url is https."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="What is written to the log."
    )
    demo_key: str = Field("", description="A lender's key of the demonstration.")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InvalidSetting(_in_words(error)) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, file_secret_settings

    @classmethod
    def read(cls, **given: Any) -> Self:
        """The settings of the command line, the environment, and the files these name."""
        file, folder = os.environ.get(FILE), os.environ.get(SECRETS)
        if file and not os.path.isfile(file):
            raise InvalidSetting(f"{FILE} names the file {file!r}, which is not there")
        if folder and not os.path.isdir(folder):
            raise InvalidSetting(f"{SECRETS} names the folder {folder!r}, which is not there")
        return cls(_env_file=file, _secrets_dir=folder, **given)


class Settings(Stated):
    """Everything an operator decides, fit to serve with.

    >>> Settings(demo=True).expiry_days
    30
    """

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if not self.demo and not self.problem:
            raise InvalidSetting(
                "'problem' is missing; name a problem file, or use --demo for the loan book"
            )
        if self.problem and not self.model:
            raise InvalidSetting(
                f"'model' is missing for the problem {self.problem!r}; name an .onnx or .skops "
                "file, or the address of a scoring endpoint, with --model"
            )
        for name in ("correct_data_link", "human_link", "apply_link", "base_url"):
            address = getattr(self, name)
            if address and not address.startswith(SCHEMES):
                raise InvalidSetting(
                    f"'{name}' must start with https://, http://, mailto: or tel: (got {address!r})"
                )
        if self.traces and not self.traces.startswith(("http://", "https://")):
            raise InvalidSetting(
                f"'traces' must start with http:// or https:// (got {self.traces!r})"
            )
        if self.oidc_issuer:
            self._check_sign_in()

    def _check_sign_in(self) -> None:
        local = urlsplit(self.oidc_issuer).hostname in ("localhost", "127.0.0.1")
        if not self.oidc_issuer.startswith("https://") and not local:
            raise InvalidSetting(
                f"'oidc_issuer' must start with https:// (got {self.oidc_issuer!r})"
            )
        for name in ("oidc_client", "oidc_secret", "oidc_roles", "base_url"):
            if not getattr(self, name):
                raise InvalidSetting(f"'{name}' is missing; signing in at 'oidc_issuer' needs it")
        for stated in self.oidc_roles:
            value, _, roles = stated.rpartition("=")
            unknown = [role for role in roles.split("+") if role not in ROLES]
            if not value or unknown:
                raise InvalidSetting(
                    f"'oidc_roles' must be like staff=create+read, of the roles "
                    f"{', '.join(ROLES)} (got {stated!r})"
                )

    @property
    def cookies_are_secure(self) -> bool:
        """Whether cookies are sent over HTTPS only."""
        return self.secure_cookies or self.base_url.startswith("https://")

    def to_environment(self) -> dict[str, str]:
        """The settings as environment variables, for the web processes."""
        return {
            PREFIX + name.upper(): _text(value)
            for name, value in self.model_dump(exclude_unset=True).items()
        }


def _text(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _in_words(error: ValidationError) -> str:
    """The first thing that is wrong, in one line."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "a setting"
    return f"'{name}' cannot be set so: {first['msg'].lower()} (got {first['input']!r})"
