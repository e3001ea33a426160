"""What is written down about each request? One JSON object a line, and no one's data.

A line names the route, never the address: the address of a conversation is its secret.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

LOGGER = logging.getLogger("pear.service")


class JsonLines(logging.Formatter):
    """Each record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["where"] = _where(record)
        return json.dumps(line, ensure_ascii=False)


def _where(record: logging.LogRecord) -> list[str]:
    """Files and lines of an error, without its message: that may hold someone's data."""
    import traceback

    assert record.exc_info is not None
    frames = traceback.extract_tb(record.exc_info[2])
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[-6:]]


def set_up(level: str = "info") -> None:
    """Send our lines to standard error, once."""
    if not any(isinstance(handler.formatter, JsonLines) for handler in LOGGER.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        LOGGER.addHandler(handler)
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False


def note(event: str, *, level: int = logging.INFO, exc_info: Any = None, **facts: Any) -> None:
    """Write one line; the facts must hold no feature value and no token."""
    LOGGER.log(level, event, extra={"facts": facts}, exc_info=exc_info)
