"""How do the lender's people sign in with the account they have at work?

OpenID Connect with a code and PKCE, by Authlib. What somebody may do follows from a claim of their
account; what they do is in the log under their name, like what is done with a key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from pear.errors import PearError
from pear.optional import require
from pear.service.access import FormTokens, new_token
from pear.service.forms import set_cookie
from pear.service.lender_pages import SIGN_IN, sign_in_page
from pear.service.operation import note
from pear.service.schemas import ServiceError, retry_later
from pear.service.service import address_of, service_of
from pear.service.settings import Settings
from pear.service.words import page

router = APIRouter(prefix="/lender")

UNDER_WAY = "pear_signing_in"
"""Cookie of a browser that was sent to sign in; what it must bring back follows from it."""

SIGNED = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Ways to sign that need a key only the provider has."""

KEEP_SECONDS = 3600.0
"""How long what the provider says of itself is taken to hold."""

LEEWAY_SECONDS = 60


class NotSignedIn(PearError):
    """Somebody came back with something that proves nothing."""


class ProviderFailed(PearError):
    """The provider did not answer, or not as OpenID Connect asks it to."""


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


@router.get("/sign-in")
async def send_to_sign_in(request: Request) -> Response:
    """Send a browser to where staff sign in."""
    service = service_of(request)
    if service.sign_in is None:
        raise ServiceError(404, "This service has no such sign-in.")
    service.pace(service.per_stranger, address_of(request))
    token = new_token()
    try:
        address = await service.sign_in.address(service.forms, token)
    except ProviderFailed:
        raise retry_later(503, "The sign-in does not answer right now.", 10) from None
    response = RedirectResponse(address, 303)
    # Lax: the provider's page leads back here.
    set_cookie(service, response, UNDER_WAY, token, same_site="lax")
    return response


@router.get("/signed-in")
async def come_back(request: Request, state: str = "", code: str = "") -> Response:
    """Let in who comes back from there, if they may do anything here."""
    service = service_of(request)
    if service.sign_in is None:
        raise ServiceError(404, "This service has no such sign-in.")
    token = request.cookies.get(UNDER_WAY, "")
    key = None
    try:
        person = await service.sign_in.person(service.forms, token, state, code)
        if person.roles:
            who = person.subject, person.name, person.roles
            key = await service.database.run(service.keys.staff, *who)
    except NotSignedIn as error:
        note("sign in refused", why=str(error))
    except ProviderFailed:
        raise retry_later(503, "The sign-in does not answer right now.", 10) from None
    if key is None:
        service.pace(service.per_stranger, address_of(request))
    await service.note(request, key, "sign in" if key else "sign in refused")
    if key is None:
        return sign_in_page(request, wrong=True)
    # A page, and no redirect: what comes next is asked for by us, and so brings our cookie along.
    response = page(request, "lender_signed_in.html", here="", name=key.name)
    response.headers["Refresh"] = "0; url=/lender"
    response.delete_cookie(UNDER_WAY)
    set_cookie(service, response, SIGN_IN, await service.database.run(service.keys.sign_in, key))
    return response
