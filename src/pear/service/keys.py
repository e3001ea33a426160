"""Which lender's systems and people may come in? Keys, sign-ins and the service's own secret."""

from __future__ import annotations

import secrets as random_secrets
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pear.errors import InvalidSetting
from pear.service.database import Database
from pear.service.security import hashed, new_key, new_token
from pear.service.tables import keys, secrets, sign_ins

SIGN_IN_SECONDS = 8 * 3600


@dataclass(frozen=True)
class Key:
    """A lender's key; the key itself is shown once, when it is made, and never stored."""

    id: str
    name: str
    created_at: float
    revoked_at: float | None


class Keys:
    """The keys of a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(self, name: str, key: str | None = None) -> tuple[str, Key]:
        """A new key and its entry; this is the only time the key can be read."""
        name = name.strip()
        if not 1 <= len(name) <= 200:
            raise InvalidSetting(f"'name' of a key must have 1 to 200 characters (got {name!r})")
        key = key or new_key()
        entry = Key(uuid.uuid4().hex, name, time.time(), None)
        with self.database.writing() as connection:
            connection.execute(
                insert(keys).values(
                    id=entry.id, name=name, key_hash=hashed(key), created_at=entry.created_at
                )
            )
        return key, entry

    def ensure(self, name: str, key: str) -> None:
        """Add a given key unless it is there; several processes may do so at once."""
        if self.find(key) is None:
            with suppress(IntegrityError):
                self.add(name, key)

    def find(self, key: str) -> Key | None:
        """The entry of a key that is not revoked."""
        query = select(keys.c.id, keys.c.name, keys.c.created_at, keys.c.revoked_at).where(
            (keys.c.key_hash == hashed(key)) & keys.c.revoked_at.is_(None)
        )
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else Key(*row)

    def list(self) -> list[Key]:
        """Every key, revoked ones too, oldest first."""
        query = select(keys.c.id, keys.c.name, keys.c.created_at, keys.c.revoked_at)
        with self.database.reading() as connection:
            return [Key(*row) for row in connection.execute(query.order_by(keys.c.created_at))]

    def revoke(self, key_id: str) -> bool:
        """End a key and everyone signed in with it, at once."""
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.key_id == key_id))
            ended = connection.execute(
                update(keys)
                .where((keys.c.id == key_id) & keys.c.revoked_at.is_(None))
                .values(revoked_at=time.time())
            )
        return ended.rowcount == 1

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
            select(keys.c.id, keys.c.name, keys.c.created_at, keys.c.revoked_at)
            .join(sign_ins, sign_ins.c.key_id == keys.c.id)
            .where(
                (sign_ins.c.token_hash == hashed(token))
                & (sign_ins.c.expires_at > time.time())
                & keys.c.revoked_at.is_(None)
            )
        )
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else Key(*row)

    def sign_out(self, token: str) -> None:
        """End one sign-in."""
        with self.database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.token_hash == hashed(token)))

    def secret(self, name: str = "forms") -> bytes:
        """A secret of this database that all its processes share, made when first asked for."""
        query = select(secrets.c.value).where(secrets.c.name == name)
        with self.database.reading() as connection:
            value = connection.execute(query).scalar()
        if value is None:
            fresh = random_secrets.token_hex(32)
            # Another process may make it first; then that one is everyone's.
            with suppress(IntegrityError), self.database.writing() as connection:
                connection.execute(insert(secrets).values(name=name, value=fresh))
            with self.database.reading() as connection:
                value = connection.execute(query).scalar_one()
        return bytes.fromhex(value)
