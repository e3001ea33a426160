"""What can be set about the service, and how does it reach every process of it?"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from typing import Any

from pear.errors import InvalidSetting

ENVIRONMENT = "PEAR_SERVICE"
"""The environment variable that carries the settings to the web processes, as JSON."""


@dataclass(frozen=True)
class Settings:
    """Everything an operator decides. Times are seconds unless the name says days.

    ``problem`` and ``model`` are a problem file and a model file or endpoint, ``prior`` a file
    of ``pear fit-prior``; with ``demo`` all may be empty and the loan book is opened.
    ``searchers`` is the number of search processes per web process; 0 searches in a thread,
    for tests.

    >>> Settings(demo=True).expiry_days
    30
    """

    problem: str = ""
    model: str = ""
    prior: str = ""
    demo: bool = False
    database: str = "sqlite:///pear.db"
    base_url: str = ""
    language: str = "en"
    searchers: int = 2
    search_seconds: float = 20.0
    waiting_per_searcher: int = 16
    cached_sessions: int = 256
    choices: int = 2
    max_questions: int = 10
    max_rows: int = 200_000
    question_rows: int = 22_000
    expiry_days: int = 30
    retention_days: int = 90
    sweep_seconds: float = 3600.0
    max_body: int = 65_536
    link_per_minute: int = 120
    key_per_minute: int = 600
    stranger_per_minute: int = 60
    correct_data_link: str = ""
    human_link: str = ""
    decision_name: str = ""
    log_level: str = "info"
    secure_cookies: bool = False
    demo_key: str = ""

    def __post_init__(self) -> None:
        if not self.demo and not self.problem:
            raise InvalidSetting(
                "'problem' is missing; name a problem file, or use --demo for the loan book"
            )
        if self.problem and not self.model:
            raise InvalidSetting(
                f"'model' is missing for the problem {self.problem!r}; name an .onnx or .skops "
                "file, or the address of a scoring endpoint, with --model"
            )
        lowest = {"searchers": 0, "waiting_per_searcher": 1, "choices": 2, "max_questions": 1}
        lowest |= {
            "expiry_days": 1,
            "retention_days": 1,
            "max_body": 1024,
            "max_rows": 1000,
            "question_rows": 1000,
        }
        lowest |= {"link_per_minute": 1, "key_per_minute": 1, "stranger_per_minute": 1}
        for name, least in lowest.items():
            if getattr(self, name) < least:
                raise InvalidSetting(
                    f"'{name}' must be at least {least} (got {getattr(self, name)!r})"
                )
        if self.choices > 4:
            raise InvalidSetting(f"'choices' must be 2, 3 or 4 (got {self.choices!r})")
        if not self.search_seconds > 0:
            raise InvalidSetting(
                f"'search_seconds' must be a positive number (got {self.search_seconds!r})"
            )
        for name in ("correct_data_link", "human_link", "base_url"):
            address = getattr(self, name)
            if address and not address.startswith(("https://", "http://", "mailto:", "tel:")):
                raise InvalidSetting(
                    f"'{name}' must start with https://, http://, mailto: or tel: (got {address!r})"
                )

    def to_json(self) -> str:
        """The settings as text for :data:`ENVIRONMENT`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings stored by :meth:`to_json`; a name that is no setting is refused."""
        data: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise InvalidSetting(
                f"there is no setting {unknown[0]!r}; the settings are {', '.join(sorted(known))}"
            )
        return cls(**data)

    @classmethod
    def from_environment(cls) -> Settings:
        """The settings the command line put into the environment."""
        text = os.environ.get(ENVIRONMENT)
        if not text:
            raise InvalidSetting(
                f"the environment variable {ENVIRONMENT} is not set; "
                "start the service with 'pear serve'"
            )
        return cls.from_json(text)
