"""Who works on the lender's side, and what may they do?

Machines hold a key, which has roles, an owner and an end. People sign in with the account they have
at work, where the service is told of a provider: OpenID Connect with a code and PKCE, by Authlib;
what somebody may do follows from a claim of their account. What either does is written to a log
that the database itself lets nobody change or delete.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pear.errors import InvalidSetting, PearError
from pear.optional import require
from pear.service.settings import ROLES, Settings
from pear.service.store.database import (
    Database,
    ReplayMismatch,
    hashed,
    new_token,
)
from pear.service.store.tables import audit, keys, sign_ins
from pear.service.store.tables import secrets as stored_secrets

if TYPE_CHECKING:
    from pear.service.service import FormTokens

# Keys


KEY_PREFIX = "pear_"


def new_key() -> str:
    """An unguessable key for a lender's system."""
    return KEY_PREFIX + new_token()


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
        """Whether the key is valid now."""
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
            raise ReplayMismatch
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
        query = select(stored_secrets.c.value).where(stored_secrets.c.name == name)
        with self.database.reading() as connection:
            value = connection.execute(query).scalar()
        if value is None:
            fresh = secrets.token_hex(32)
            # Another process may make it first; then that one is everyone's.
            with suppress(IntegrityError), self.database.writing() as connection:
                connection.execute(insert(stored_secrets).values(name=name, value=fresh))
            with self.database.reading() as connection:
                value = connection.execute(query).scalar_one()
        return bytes.fromhex(value)


def _key(row: Row[Any] | None) -> Key | None:
    if row is None:
        return None
    content = dict(row._mapping)
    return Key(**{**content, "roles": tuple(content["roles"].split(","))})


# People who sign in elsewhere


SIGNED = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Ways to sign that need a key only the provider has."""

KEEP_SECONDS = 3600.0
"""How long what the provider says of itself is taken to hold."""

LEEWAY_SECONDS = 60


class NotSignedIn(PearError):
    """The provider's answer does not prove who signed in."""


class ProviderFailed(PearError):
    """The provider did not answer, or not as OpenID Connect requires."""


@dataclass(frozen=True)
class Person:
    """Somebody who signed in: who they are there, and what they may do here."""

    subject: str
    name: str
    roles: tuple[str, ...]


@dataclass
class SignIn:
    """The provider that staff sign in at. ``transport`` replaces the network in tests."""

    settings: Settings
    transport: Any = None
    _facts: dict[str, Any] = field(default_factory=dict)
    _asked: float = -KEEP_SECONDS

    def _client(self) -> Any:
        oauth = require("authlib.integrations.httpx_client")
        return oauth.AsyncOAuth2Client(
            self.settings.oidc_client,
            self.settings.oidc_secret,
            scope="openid profile email",
            redirect_uri=self.settings.base_url.rstrip("/") + "/lender/signed-in",
            code_challenge_method="S256",
            transport=self.transport,
            timeout=10.0,
        )

    async def _provider(self) -> dict[str, Any]:
        """What the provider says of itself, and the keys it signs with."""
        if time.monotonic() < self._asked + KEEP_SECONDS:
            return self._facts
        issuer = self.settings.oidc_issuer.rstrip("/")
        httpx = require("httpx2")
        try:
            async with httpx.AsyncClient(transport=self.transport, timeout=10.0) as client:
                answer = await client.get(f"{issuer}/.well-known/openid-configuration")
                facts = answer.raise_for_status().json()
                keys = await client.get(facts["jwks_uri"])
                facts["keys"] = keys.raise_for_status().json()
                known = [facts["authorization_endpoint"], facts["token_endpoint"]]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise ProviderFailed(f"'{issuer}' does not answer ({type(error).__name__})") from None
        if str(facts.get("issuer", "")).rstrip("/") != issuer or not all(known):
            raise ProviderFailed(f"'{issuer}' says it is {facts.get('issuer')!r}")
        self._facts, self._asked = facts, time.monotonic()
        return self._facts

    async def address(self, forms: FormTokens, token: str) -> str:
        """Where to send a browser; what it brings back must fit its ``token``."""
        provider = await self._provider()
        async with self._client() as client:
            address, _ = client.create_authorization_url(
                provider["authorization_endpoint"],
                state=forms.derived("state", token),
                nonce=forms.derived("nonce", token),
                code_verifier=forms.derived("verifier", token),
            )
        return str(address)

    async def person(self, forms: FormTokens, token: str, state: str, code: str) -> Person:
        """Who came back, by the provider's signed word."""
        if not token or not code or forms.derived("state", token) != state:
            raise NotSignedIn("this is not the browser that was sent to sign in")
        provider = await self._provider()
        httpx, oauth = require("httpx2"), require("authlib.common.errors")
        try:
            async with self._client() as client:
                given = await client.fetch_token(
                    provider["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=forms.derived("verifier", token),
                )
        except oauth.AuthlibBaseError as error:
            raise NotSignedIn(f"the provider does not know this code ({error.error})") from None
        except (httpx.HTTPError, ValueError) as error:
            raise ProviderFailed(f"no token ({type(error).__name__})") from None
        claims = self._claims(provider, given, forms.derived("nonce", token))
        return self._person(claims)

    def _claims(
        self, provider: Mapping[str, Any], given: Mapping[str, Any], nonce: str
    ) -> Mapping[str, Any]:
        """The claims of a token, once its signature, issuer, audience, end and nonce hold."""
        core, errors = require("authlib.oidc.core"), require("joserfc.errors")
        stated = provider.get("id_token_signing_alg_values_supported") or ["RS256"]
        try:
            decoded = require("joserfc.jwt").decode(
                given["id_token"],
                key=require("joserfc.jwk").KeySet.import_key_set(provider["keys"]),
                registry=require("joserfc.jws").JWSRegistry(
                    algorithms=[name for name in stated if name in SIGNED],
                    strict_check_header=False,
                ),
            )
            claims = core.CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": provider["issuer"]},
                    "aud": {"essential": True, "value": self.settings.oidc_client},
                },
                {"nonce": nonce, "client_id": self.settings.oidc_client, **given},
            )
            claims.validate(leeway=LEEWAY_SECONDS)
        except (errors.JoseError, KeyError, ValueError, TypeError) as error:
            self._asked = -KEEP_SECONDS  # perhaps it signs with new keys by now
            raise NotSignedIn(f"the token does not hold ({type(error).__name__})") from None
        return dict(claims)

    def _person(self, claims: Mapping[str, Any]) -> Person:
        values = claims.get(self.settings.oidc_claim, ())
        values = (values,) if isinstance(values, str) else values
        may: list[str] = []
        for stated in self.settings.oidc_roles:
            value, _, roles = stated.rpartition("=")
            if isinstance(values, (list, tuple)) and value in values:
                may += roles.split("+")
        name = claims.get("email") or claims.get("preferred_username") or claims["sub"]
        subject = f"{claims['iss']}\0{claims['sub']}"
        return Person(subject, str(name)[:200], tuple(dict.fromkeys(may)))
