"""What does a scoring service say, asked over HTTP?

The wire format: we POST ``{"records": [{feature: value, …}, …]}`` with the values in
people's own words; the service answers ``{"scores": [0.31, …]}``, or
``{"probabilities": [[…], …], "classes": […]}``. Status 429 and 5xx, time-outs and broken
connections are tried again, waiting twice as long each time (or as the service's
Retry-After says); anything else ends at once.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

import numpy as np

from pear.arrays import Floats
from pear.decision.blackbox import BlackBox, favourable_columns
from pear.errors import EndpointFailed, InvalidSetting, ModelOutput
from pear.problem import Goal, Problem
from pear.problem.features import FeatureSpace, States
from pear.problem.values import is_number, kind_of

LARGEST_ANSWER = 16 << 20
"""Bytes of the largest answer to one batch."""

LONGEST_WAIT = 30.0
"""Seconds we wait at most between two tries, whatever the service asks for."""


def from_endpoint(
    url: str,
    problem: Problem,
    *,
    timeout: float = 10.0,
    retries: int = 3,
    backoff: float = 0.5,
    batch_size: int = 1_000,
    headers: Mapping[str, str] | None = None,
    name: str = "",
    sleep: Callable[[float], None] = time.sleep,
) -> BlackBox:
    """A scoring service as a black box; it is asked once here, for its fingerprint.

    ``timeout`` and ``backoff`` are seconds; ``retries`` counts the tries after the first. A
    user and password in the address are sent as basic authentication.
    """
    try:
        known = urllib.parse.urlsplit(url).scheme in ("http", "https")
    except ValueError:  # Such as a bracket that is left open.
        known = False
    if not known:
        raise InvalidSetting(
            f"'url' must start with http:// or https:// and name a server (got {url!r})"
        )
    for setting, value, least in (("timeout", timeout, 0.001), ("retries", retries, 0)):
        if not is_number(value) or not value >= least:
            raise InvalidSetting(f"'{setting}' must be at least {least} (got {value!r})")
    if batch_size < 1:
        raise InvalidSetting(f"'batch_size' must be at least 1 (got {batch_size!r})")
    address, authorization = split_credentials(url)
    function = EndpointScores(
        address,
        problem.space,
        problem.goal,
        timeout,
        retries,
        backoff,
        batch_size,
        {**authorization, **(headers or {})},
        sleep,
    )
    return BlackBox(function, problem.space, problem.goal, name=name or shown_url(url)).checked()


@dataclass
class EndpointScores:
    """The score function of a service."""

    url: str
    space: FeatureSpace
    goal: Goal
    timeout: float = 10.0
    retries: int = 3
    backoff: float = 0.5
    batch_size: int = 1_000
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, states: States) -> Floats:
        parts = [
            self._scores(states[first : first + self.batch_size])
            for first in range(0, len(states), self.batch_size)
        ]
        return np.concatenate(parts)

    def _scores(self, states: States) -> Floats:
        answer = self._ask({"records": self.space.decode(states)})
        values = answer.get("scores", answer.get("probabilities"))
        where = f"the endpoint {shown_url(self.url)}"
        if values is None:
            raise ModelOutput(
                f"{where} answered without 'scores' or 'probabilities' "
                f"(got the keys {', '.join(map(repr, answer)) or 'none'})"
            )
        try:
            scores = np.array(values, float)
        except (TypeError, ValueError):
            raise ModelOutput(
                f"{where} answered with scores that are not a list of numbers"
            ) from None
        if scores.ndim not in (1, 2) or len(scores) != len(states):
            raise ModelOutput(
                f"{where} answered {len(states)} records with scores of shape {scores.shape}"
            )
        if scores.ndim == 2 and isinstance(answer.get("classes"), list):
            columns = favourable_columns(
                self.goal, tuple(answer["classes"]), scores.shape[1], shown_url(self.url)
            )
            scores = scores[:, columns].sum(axis=1)
        return scores

    def _ask(self, content: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(content).encode()
        failure: Exception | None = None
        for attempt in range(self.retries + 1):
            if attempt:
                self.sleep(_wait(failure, self.backoff * 2 ** (attempt - 1)))
            try:
                return self._post(body)
            except urllib.error.HTTPError as error:
                failure = error
                if error.code != 429 and error.code < 500:
                    break
            except (OSError, HTTPException) as error:
                failure = error
        tries = f"{attempt + 1} tr{'y' if attempt == 0 else 'ies'}"
        raise EndpointFailed(
            f"the endpoint {shown_url(self.url)} did not answer after {tries}: {_why(failure)}"
        ) from failure

    def _read(self, response: Any, until: float) -> bytes:
        """The body of an answer, limited in size and time."""
        text = bytearray()
        while part := response.read1(1 << 16):
            text += part
            if len(text) > LARGEST_ANSWER:
                raise ModelOutput(
                    f"the endpoint {shown_url(self.url)} answered with more than "
                    f"{LARGEST_ANSWER:,} bytes"
                )
            if time.monotonic() > until:
                raise TimeoutError("the answer was not complete in time")
        return bytes(text)

    def _post(self, body: bytes) -> dict[str, Any]:
        request = urllib.request.Request(
            self.url,
            data=body,
            headers={"Content-Type": "application/json", **self.headers},
            method="POST",
        )
        until = time.monotonic() + self.timeout
        with _OPENER.open(request, timeout=self.timeout) as response:
            text = self._read(response, until)
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            raise ModelOutput(
                f"the endpoint {shown_url(self.url)} did not answer in JSON (got {text[:60]!r})"
            ) from None
        if not isinstance(answer, dict):
            raise ModelOutput(
                f"the endpoint {shown_url(self.url)} must answer with a JSON object "
                f"(got {kind_of(answer)})"
            )
        return answer


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the records, and our headers, to an address nobody chose."""

    def redirect_request(self, *args: Any, **settings: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def split_credentials(url: str) -> tuple[str, dict[str, str]]:
    """The address without user and password, and the header that stands for them.

    >>> split_credentials("https://me:secret@bank.example/score")
    ('https://bank.example/score', {'Authorization': 'Basic bWU6c2VjcmV0'})
    """
    parts = urllib.parse.urlsplit(url)
    if parts.username is None:
        return url, {}
    pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    header = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.split("@")[-1])), header


def shown_url(url: str) -> str:
    """The address without user, password and query, which may be secret.

    >>> shown_url("https://me:secret@bank.example/score?key=1")
    'https://bank.example/score'
    """
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.split("@")[-1], parts.path, "", ""))


def _wait(failure: Exception | None, planned: float) -> float:
    """Seconds until the next try: as planned, or as long as the service asks."""
    if isinstance(failure, urllib.error.HTTPError):
        asked = failure.headers.get("Retry-After", "")
        if asked.isdigit():
            planned = max(planned, float(asked))
    return min(planned, LONGEST_WAIT)


def _why(failure: Exception | None) -> str:
    if isinstance(failure, urllib.error.HTTPError):
        text = failure.read(200).decode(errors="replace").strip()
        return f"status {failure.code} {failure.reason}" + (f": {text}" if text else "")
    reason = getattr(failure, "reason", failure)
    return f"{type(reason).__name__}: {reason}"
