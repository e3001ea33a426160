"""Who may do what: secrets that cannot be guessed, forms that cannot be forged, pace, and keys.

A lender's key has roles, an owner and an end. What is done with it is written to a log that the
database itself lets nobody change or delete.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets as randomness
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pear.errors import InvalidSetting, PearError
from pear.service.database import Database, audit, keys, secrets, sign_ins
from pear.service.settings import ROLES

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


def number_of(token: str) -> str:
    """The number of the conversation behind a token: the lender may know it, and it opens nothing.

    >>> len(number_of("a")), number_of("a") == hashed("a")[:32]
    (32, False)
    """
    return hashed(f"number:{token}")[:32]


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


# The lender's keys


SIGN_IN_SECONDS = 8 * 3600

STAFF = "signs in"
"""The owner of entries of people, who sign in; keys of machines have none or another."""


@dataclass(frozen=True)
class Key:
    """A lender's key; the key itself is shown once, when it is made, and never stored."""

    id: str
    name: str
    created_at: float
    revoked_at: float | None = None
    roles: tuple[str, ...] = ("create", "read")
    owner: str = ""
    expires_at: float | None = None

    @property
    def valid(self) -> bool:
        """Whether it opens anything now."""
        return self.revoked_at is None and (self.expires_at or 1e300) > time.time()


COLUMNS = [
    keys.c[name]
    for name in ("id", "name", "created_at", "revoked_at", "roles", "owner", "expires_at")
]


class Keys:
    """The keys of a database, and the log of what was done with them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(
        self,
        name: str,
        key: str | None = None,
        *,
        roles: Sequence[str] = ("create", "read"),
        owner: str = "",
        days: int | None = None,
    ) -> tuple[str, Key]:
        """A new key and its entry; this is the only time the key can be read."""
        name, owner = name.strip(), owner.strip()
        if not 1 <= len(name) <= 200 or len(owner) > 200:
            raise InvalidSetting(f"'name' of a key must have 1 to 200 characters (got {name!r})")
        unknown = [role for role in roles if role not in ROLES]
        if unknown or not roles:
            raise InvalidSetting(
                f"'roles' of a key must be some of {', '.join(ROLES)} (got {', '.join(roles)!r})"
            )
        key, now = key or new_key(), time.time()
        ends = None if days is None else now + 86400 * days
        entry = Key(uuid.uuid4().hex, name, now, None, tuple(roles), owner, ends)
        row = {**vars(entry), "roles": ",".join(roles), "key_hash": hashed(key)}
        known = self._stored(key)
        if known is None:
            try:
                with self.database.writing() as connection:
                    connection.execute(insert(keys).values(**row))
                return key, entry
            except IntegrityError:  # the same request, sent twice at once
                known = self._stored(key)
        if known is None or (known.name, known.roles, known.owner) != (name, tuple(roles), owner):
            raise ReplayMismatch(REPLAY_MISMATCH)
        return key, known

    def staff(self, subject: str, name: str, roles: Sequence[str]) -> Key | None:
        """The entry of somebody who signed in elsewhere, until that ends; None if it was revoked.

        No key opens it: what is stored in its place is the hash of one that nobody has.
        """
        number, now = hashed(f"staff:{subject}")[:32], time.time()
        mine = keys.c.id == number
        given = {"name": name, "roles": ",".join(roles), "expires_at": now + SIGN_IN_SECONDS}
        row = {"id": number, "created_at": now, "key_hash": hashed(new_key()), "owner": STAFF}
        with suppress(IntegrityError), self.database.writing() as connection:
            connection.execute(insert(keys).values(**row, **given))
        with self.database.writing() as connection:
            connection.execute(update(keys).where(mine).values(**given))
            entry = _key(connection.execute(select(*COLUMNS).where(mine)).first())
        return entry if entry is not None and entry.valid else None

    def ensure(self, name: str, key: str) -> None:
        """Add a given key that may do everything, unless it is there."""
        if self.find(key) is None:
            self.add(name, key, roles=ROLES)

    def find(self, key: str) -> Key | None:
        """The entry of a key that is valid now."""
        entry = self._stored(key)
        return entry if entry is not None and entry.valid else None

    def _stored(self, key: str) -> Key | None:
        with self.database.reading() as connection:
            query = select(*COLUMNS).where(keys.c.key_hash == hashed(key))
            return _key(connection.execute(query).first())

    def all(self) -> list[Key]:
        """Every key, revoked ones too, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(select(*COLUMNS).order_by(keys.c.created_at))
            return [entry for row in rows if (entry := _key(row)) is not None]

    def revoke(self, key_id: str) -> bool:
        """End a key and everyone signed in with it, at once."""
        if not key_id.isalnum():
            return False
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.key_id == key_id))
            ended = connection.execute(
                update(keys)
                .where((keys.c.id == key_id) & keys.c.revoked_at.is_(None))
                .values(revoked_at=time.time())
            )
        return ended.rowcount == 1

    # Sign-ins

    def sign_in(self, key: Key) -> str:
        """A token for a browser signed in with a key."""
        token = new_token()
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.expires_at < time.time()))
            connection.execute(
                insert(sign_ins).values(
                    token_hash=hashed(token),
                    key_id=key.id,
                    expires_at=time.time() + SIGN_IN_SECONDS,
                )
            )
        return token

    def signed_in(self, token: str) -> Key | None:
        """Whose browser this is, while its key holds."""
        query = (
            select(*COLUMNS)
            .join(sign_ins, sign_ins.c.key_id == keys.c.id)
            .where((sign_ins.c.token_hash == hashed(token)) & (sign_ins.c.expires_at > time.time()))
        )
        with self.database.reading() as connection:
            entry = _key(connection.execute(query).first())
        return entry if entry is not None and entry.valid else None

    def sign_out(self, token: str) -> None:
        """End one sign-in."""
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.token_hash == hashed(token)))

    # The log

    def note(self, key: Key | None, address: str, action: str, target: str = "") -> None:
        """Write down what was done, with which key, from which address."""
        entry = {
            "at": time.time(),
            "key_id": key.id if key else "",
            "key_name": key.name if key else "",
            "address": address,
            "action": action,
            "target": target,
        }
        with self.database.writing() as connection:
            connection.execute(insert(audit).values(**entry))

    def log(self, *, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """What was done, newest first."""
        query = select(audit).order_by(audit.c.number.desc()).limit(limit).offset(offset)
        with self.database.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def secret(self, name: str = "forms") -> bytes:
        """A secret of this database that all its processes share, made when first asked for."""
        query = select(secrets.c.value).where(secrets.c.name == name)
        with self.database.reading() as connection:
            value = connection.execute(query).scalar()
        if value is None:
            fresh = randomness.token_hex(32)
            # Another process may make it first; then that one is everyone's.
            with suppress(IntegrityError), self.database.writing() as connection:
                connection.execute(insert(secrets).values(name=name, value=fresh))
            with self.database.reading() as connection:
                value = connection.execute(query).scalar_one()
        return bytes.fromhex(value)


def _key(row: Row[Any] | None) -> Key | None:
    if row is None:
        return None
    content = dict(row._mapping)
    return Key(**{**content, "roles": tuple(content["roles"].split(","))})
