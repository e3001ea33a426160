"""Which of the lender's systems and people may come in, what may each do, and who did what?

A key has roles, an owner and an end. What is done with it is written to a log that the database
itself lets nobody change or delete.
"""

from __future__ import annotations

import secrets as randomness
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pear.errors import InvalidSetting
from pear.service.access import REPLAY_MISMATCH, ReplayMismatch, hashed, new_key, new_token
from pear.service.database import Database
from pear.service.tables import audit, keys, secrets, sign_ins

SIGN_IN_SECONDS = 8 * 3600

ROLES = ("create", "read", "administer")
"""``create`` makes links, ``read`` sees how conversations went, ``administer`` deletes them,
confirms corrections, makes and revokes keys, and reads the log."""


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
        known = self._stored(key) if key else None
        if key and known is not None:
            if (known.name, known.roles, known.owner) != (name, tuple(roles), owner):
                raise ReplayMismatch(REPLAY_MISMATCH)
            return key, known
        key, now = key or new_key(), time.time()
        ends = None if days is None else now + 86400 * days
        entry = Key(uuid.uuid4().hex, name, now, None, tuple(roles), owner, ends)
        row = {**vars(entry), "roles": ",".join(roles), "key_hash": hashed(key)}
        with self.database.writing() as connection:
            connection.execute(insert(keys).values(**row))
        return key, entry

    def ensure(self, name: str, key: str) -> None:
        """Add a given key that may do everything, unless it is there."""
        if self.find(key) is None:
            with suppress(IntegrityError):  # another process may do so at once
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
