"""Signing in with the account people have at work: who gets in, and what proves nothing."""

import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.service.helpers import KEY, Talk, running

from pear.errors import InvalidSetting
from pear.service.lender.staff import SignIn
from pear.service.settings import Settings

httpx = pytest.importorskip("httpx2")
pytest.importorskip("authlib")

ISSUER = "https://login.bank.example"


class Provider:
    """An OpenID provider that signs whatever claims a test wants."""

    def __init__(self):
        from joserfc.jwk import RSAKey

        self.key = RSAKey.generate_key(2048, {"kid": "one", "alg": "RS256", "use": "sig"})
        self.other = RSAKey.generate_key(2048, {"kid": "one", "alg": "RS256", "use": "sig"})
        self.claims, self.signed_by, self.header = {}, self.key, {"alg": "RS256", "kid": "one"}
        self.asked, self.down, self.facts = {}, False, {}

    def __call__(self, request):
        from joserfc import jwt

        if self.down:
            raise httpx.ConnectError("down")
        place = request.url.path
        if place == "/.well-known/openid-configuration":
            ends = {name: f"{ISSUER}/{name}" for name in ("authorization", "token")}
            facts = {f"{name}_endpoint": end for name, end in ends.items()}
            algorithms = {"id_token_signing_alg_values_supported": ["RS256", "none", "HS256"]}
            return httpx.Response(
                200,
                json={
                    "issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys", **facts, **algorithms,
                    **self.facts,
                },
            )  # fmt: skip
        if place == "/keys":
            return httpx.Response(200, json={"keys": [self.key.as_dict(private=False)]})
        self.asked = {name: value[0] for name, value in parse_qs(request.content.decode()).items()}
        if self.asked["code"] != "good":
            return httpx.Response(400, json={"error": "invalid_grant"})
        token = jwt.encode(self.header, self.claims, self.signed_by, algorithms=["RS256", "none"])
        return httpx.Response(
            200, json={"id_token": token, "access_token": "a", "token_type": "Bearer"}
        )


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def bank(settings, provider):
    stated = {
        "oidc_issuer": ISSUER,
        "oidc_client": "pear",
        "oidc_secret": "a secret",
        "oidc_roles": ("staff=create+read", "heads=administer"),
        "base_url": "https://testserver",
    }
    with running(settings, **stated) as client:
        client.base_url = "https://testserver"
        client.service.sign_in = SignIn(client.service.settings, httpx.MockTransport(provider))
        yield client


def sent(client, provider, **claims):
    """Follow the link to the provider; the state to come back with."""
    answer = client.get("/lender/sign-in")
    assert answer.status_code == 303, answer.text
    address = urlsplit(answer.headers["location"])
    asked = {name: value[0] for name, value in parse_qs(address.query).items()}
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{ISSUER}/authorization"
    assert asked["redirect_uri"] == "https://testserver/lender/signed-in"
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    now = int(time.time())
    provider.claims = {
        "iss": ISSUER, "aud": "pear", "sub": "4711", "iat": now, "exp": now + 300,
        "nonce": asked["nonce"], "email": "ann@bank.example", "groups": ["staff", "tennis"],
        **claims,
    }  # fmt: skip
    return asked["state"]


def back(client, state, code="good"):
    return client.get("/lender/signed-in", params={"state": state, "code": code})


def test_somebody_signs_in_and_does_what_their_group_may(bank, provider):
    page = bank.get("/lender").text
    assert "account you have at work" in page
    assert 'name="key"' not in page
    answer = back(bank, sent(bank, provider))
    assert answer.status_code == 200, answer.text
    assert answer.headers["refresh"] == "0; url=/lender"
    assert "secure" in answer.headers["set-cookie"].lower()
    assert len(provider.asked["code_verifier"]) >= 43
    assert "ann@bank.example" in answer.text
    assert bank.get("/lender/new").status_code == 200
    csrf = re.search(r'name="csrf" value="([^"]+)"', bank.get("/lender").text)[1]
    path = f"/lender/cases/{Talk(bank).id}/delete"
    assert bank.post(path, data={"csrf": csrf}).status_code == 403, "staff may not delete"
    log = bank.service.keys.log()
    assert ("ann@bank.example", "sign in") in [(e["key_name"], e["action"]) for e in log]


def test_what_somebody_may_do_is_asked_anew_each_time(bank, provider):
    back(bank, sent(bank, provider))
    back(bank, sent(bank, provider, groups="heads"))
    [entry] = [key for key in bank.service.keys.all() if key.owner == "signs in"]
    assert entry.roles == ("administer",)


def test_somebody_revoked_here_does_not_get_in(bank, provider):
    back(bank, sent(bank, provider))
    [entry] = [key for key in bank.service.keys.all() if key.owner == "signs in"]
    assert bank.service.keys.revoke(entry.id)
    assert back(bank, sent(bank, provider)).status_code == 401
    assert bank.get("/lender/new", headers={"Accept": "a/b"}).status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"groups": ["tennis"]},
        {"groups": None},
        {"nonce": "another"},
        {"aud": "another"},
        {"aud": "another", "azp": "pear"},
        {"iss": "https://another.example"},
        {"exp": 1},
        {"sub": None},
    ],
)
def test_a_token_that_is_not_for_us_lets_nobody_in(bank, provider, claims):
    state = sent(bank, provider, **claims)
    provider.claims = {name: v for name, v in provider.claims.items() if v is not None}
    assert back(bank, state).status_code == 401
    assert bank.get("/lender/new", headers={"Accept": "a/b"}).status_code == 401


@pytest.mark.parametrize("how", ["another key", "unsigned"])
def test_a_token_that_somebody_else_signed_lets_nobody_in(bank, provider, how):
    state = sent(bank, provider)
    if how == "another key":
        provider.signed_by = provider.other
    else:
        provider.header = {"alg": "none"}
    assert back(bank, state).status_code == 401


def test_only_the_browser_that_was_sent_comes_back_and_only_with_a_code(bank, provider):
    state = sent(bank, provider)
    assert back(bank, "another").status_code == 401
    assert back(bank, state, "bad").status_code == 401
    assert back(bank, state, "").status_code == 401
    bank.cookies.clear()
    assert back(bank, state).status_code == 401


def test_a_provider_that_is_down_or_another_is_said_to_be(bank, provider):
    provider.down = True
    assert bank.get("/lender/sign-in").status_code == 503
    provider.down, provider.facts = False, {"issuer": "https://evil.example"}
    assert bank.get("/lender/sign-in").status_code == 503


def test_keys_are_for_machines_then(bank):
    assert bank.post("/lender/sign-in", data={"key": KEY}).status_code == 404
    key = {"Authorization": f"Bearer {KEY}"}
    assert bank.get("/api/v1/conversations", headers=key).status_code == 200


def test_without_a_provider_there_is_no_such_sign_in(client):
    assert client.get("/lender/sign-in").status_code == 404
    assert client.get("/lender/signed-in").status_code == 404


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"oidc_issuer": "http://login.example"}, "https://"),
        ({"oidc_secret": ""}, "oidc_secret"),
        ({"oidc_roles": "staff=rule"}, "staff=rule"),
        ({"oidc_roles": "create"}, "staff=create"),
        ({"base_url": ""}, "base_url"),
    ],
)
def test_a_sign_in_that_cannot_work_is_refused_with_a_remedy(changes, remedy):
    stated = {
        "oidc_issuer": ISSUER, "oidc_client": "pear", "oidc_secret": "s",
        "oidc_roles": "staff=read", "base_url": "https://pear.example", **changes,
    }  # fmt: skip
    with pytest.raises(InvalidSetting, match=remedy):
        Settings(demo=True, **stated)
