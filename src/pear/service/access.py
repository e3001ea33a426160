"""Who may do what: secrets that cannot be guessed, forms that cannot be forged, keys, and pace."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets as randomness
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from pear.errors import PearError

REPLAY_MISMATCH = "this Idempotency-Key was used for another request; send a new key with it"


class ReplayMismatch(PearError):
    """An idempotency key came again with another request; nothing was changed."""


TOKEN_LENGTH = 43
"""Characters of a conversation's token: 32 random bytes."""

KEY_PREFIX = "pear_"


def new_token() -> str:
    """An unguessable token (256 random bits) for a link or a sign-in."""
    return randomness.token_urlsafe(32)


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

    A token belongs to what the form is about (a conversation's link or a sign-in), and carries
    what its page showed: the conversation's version and, where one was asked, the question.

    >>> tokens = FormTokens(b"secret")
    >>> tokens.shown(tokens.token("link", "3.ab"), "link")
    '3.ab'
    >>> tokens.shown(tokens.token("link"), "other") is None
    True
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, subject: str, shown: str = "") -> str:
        """The token for forms about a subject, on a page that showed this."""
        content = f"form:{subject}:{shown}".encode("utf-8", "surrogatepass")
        return f"{shown}~{hmac.new(self._secret, content, hashlib.sha256).hexdigest()}"

    def shown(self, token: str, subject: str) -> str | None:
        """What the page of a form showed; None where the token is not for its subject."""
        shown = token.rpartition("~")[0]
        expected = self.token(subject, shown).encode("utf-8", "surrogatepass")
        fits = hmac.compare_digest(expected, token.encode("utf-8", "surrogatepass"))
        return shown if fits else None

    def derived(self, *parts: str) -> str:
        """A secret that only this service can make, the same each time for the same parts."""
        content = "\0".join(("derived", *parts)).encode("utf-8", "surrogatepass")
        digest = hmac.new(self._secret, content, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


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


# PINs

PIN_TRIES, PIN_WAIT_SECONDS = 5, 15 * 60
"""Wrong PINs in a row after which the right one is not taken either, and for how long."""


def pin_hash(pin: str) -> str:
    """What is stored in place of a PIN, which can be guessed: slow to compute, with a salt."""
    salt = randomness.token_hex(8)
    return f"{salt}:{_slow(pin, salt)}"


def pin_fits(pin: str, stored: str) -> bool:
    """Whether a PIN is the one stored.

    >>> pin_fits("4711", pin_hash("4711")), pin_fits("4712", pin_hash("4711"))
    (True, False)
    """
    salt, _, expected = stored.partition(":")
    return hmac.compare_digest(_slow(pin, salt), expected)


def _slow(pin: str, salt: str) -> str:
    text = pin.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(text, salt=salt.encode(), n=2**14, r=8, p=1).hex()
