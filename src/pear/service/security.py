"""Who may do what: secrets that cannot be guessed, forms that cannot be forged, and pace."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

TOKEN_LENGTH = 43
"""Characters of a conversation's token: 32 random bytes."""

KEY_PREFIX = "pear_"


def new_token() -> str:
    """An unguessable token (256 random bits) for a link or a sign-in."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()


def new_key() -> str:
    """An unguessable key for a lender's system."""
    return KEY_PREFIX + new_token()


def hashed(secret: str) -> str:
    """What is stored in place of a secret. It has 256 random bits: no salt is needed.

    >>> hashed("a") == hashed("a"), len(hashed("a"))
    (True, 64)
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class FormTokens:
    """Tokens in forms that a foreign page cannot know.

    A token belongs to what the form is about: a conversation's link or a sign-in.

    >>> tokens = FormTokens(b"secret")
    >>> tokens.fits(tokens.token("link"), "link"), tokens.fits(tokens.token("link"), "other")
    (True, False)
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, subject: str) -> str:
        """The token for forms about a subject."""
        return hmac.new(self._secret, f"form:{subject}".encode(), hashlib.sha256).hexdigest()

    def fits(self, token: str, subject: str) -> bool:
        """Whether a form's token is the one for its subject."""
        expected = self.token(subject).encode()
        return hmac.compare_digest(expected, token.encode("utf-8", "surrogatepass"))


class RateLimit:
    """So many requests per minute for each name, with a full minute's worth at once.

    Kept in the memory of one process: several web processes allow that many times more.

    >>> limit = RateLimit(60, clock=lambda: 0.0)
    >>> [limit.wait("link") for _ in range(60)] == [0.0] * 60, limit.wait("link")
    (True, 1.0)
    """

    def __init__(
        self,
        per_minute: int,
        *,
        most_names: int = 20_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._names = most_names
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, name: str) -> float:
        """0 when the request may go on, else the seconds until the next one may."""
        now = self._clock()
        with self._lock:
            left, since = self._left.pop(name, (self._most, now))
            left = min(self._most, left + (now - since) * self._per_second)
            allowed = left >= 1
            self._left[name] = (left - 1 if allowed else left, now)
            while len(self._left) > self._names:
                self._left.popitem(last=False)
        return 0.0 if allowed else max(1.0, math.ceil((1 - left) / self._per_second))
