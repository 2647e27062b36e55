"""Validation of JSON web tokens: the claims that are read, and each reason to refuse a token."""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey
from tests.unit.access.dependencies import finished

from warren.access.grants import TokenUser
from warren.access.scopes import ScopeSyntax
from warren.access.token_claims import ClaimSettings, scopes_in
from warren.access.tokens import ResourceServer, TokenRefused, TokenSettings, TokenVerifier, is_like_token
from warren.limits import TOKEN_SIZE_MAX, TOKEN_SKEW_MS
from warren.model.patterns import matches

NOW = 1_000_000_000
RSA = RSAKey.generate_key(2048)
KEYS: Mapping[str, Key] = {
    "rsa": RSA,
    "ec": ECKey.generate_key("P-256"),
    "ed": OKPKey.generate_key("Ed25519"),
    "shared": OctKey.generate_key(256),
}
CLAIMS = {"sub": "alice", "aud": ["rabbitmq", "other"], "scope": "rabbitmq.read:v/q other.read:v/x"}


async def key_of(identifier: str | None) -> Key | None:
    return KEYS.get(identifier or "rsa")


async def no_key(identifier: str | None) -> Key | None:
    return None


def tokens(**settings: object) -> TokenVerifier:
    server = TokenSettings(resource_server_id="rabbitmq", **settings)
    return TokenVerifier([ResourceServer(server, key_of)], lambda: NOW)


def servers(*found: TokenSettings) -> TokenVerifier:
    return TokenVerifier([ResourceServer(server, key_of) for server in found], lambda: NOW)


def signed(claims: Mapping[str, object] = CLAIMS, *, algorithm: str = "RS256", key: str = "rsa") -> str:
    return jwt.encode({"alg": algorithm, "kid": key}, dict(claims), KEYS[key], algorithms=[algorithm])


def read(token: str, **settings: object) -> TokenUser:
    return finished(tokens(**settings).user_of(token, "claimed"))


def refusal(token: str, **settings: object) -> str:
    with pytest.raises(TokenRefused) as caught:
        read(token, **settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("algorithm", "key"), [("RS256", "rsa"), ("PS512", "rsa"), ("ES256", "ec"), ("Ed25519", "ed")]
)
def test_a_token_yields_user_and_scopes(algorithm: str, key: str) -> None:
    holder = read(signed(algorithm=algorithm, key=key))
    assert holder.name == "alice"
    assert holder.grants.permission("v") is not None


def test_only_scopes_with_the_resource_prefix_count() -> None:
    grants = read(signed()).grants
    permission = grants.permission("v")
    assert permission is not None
    assert "q" in permission.read
    assert "x" not in permission.read
    assert read(signed(), scope_prefix="other.").grants.permission("v") is not None
    assert read(signed(), scope_prefix="none.").grants.permission("v") is None


def with_payload(token: str, **claims: object) -> str:
    """`token` with another payload and its original signature."""
    header, _, signature = token.split(".")
    return f"{header}.{encoded({**CLAIMS, **claims})}.{signature}"


def encoded(value: Mapping[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(algorithm: str) -> str:
    return f"{encoded({'alg': algorithm, 'kid': 'rsa'})}.{signed().split('.')[1]}."


@pytest.mark.parametrize(
    "token",
    [
        "",
        "ey.ey.ey",
        "not a token",
        "eyJ\udcff.a.b",
        with_payload(signed(), sub="root"),
        signed()[:-8] + "AAAAAAAA",
        unsigned("none"),
        unsigned("None"),
        unsigned("RS256"),
        f"{encoded({'alg': 'RS256', 'kid': 'rsa'})}.{urlsafe_b64encode(b'[' * 9_000).decode()}.AAAA",
    ],
)
def test_a_token_not_signed_by_a_known_key_is_refused(token: str) -> None:
    assert refusal(token)


def test_a_public_key_is_not_accepted_as_a_shared_secret() -> None:
    """The algorithm confusion attack: a token signed as HS256 with the public key as the secret."""
    header = encoded({"alg": "HS256", "kid": "rsa"})
    text = f"{header}.{encoded(CLAIMS)}"
    signature = hmac.digest(RSA.as_pem(private=False), text.encode(), "sha256")
    forged = f"{text}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    assert refusal(forged)
    assert refusal(forged, algorithms=("HS256", "RS256"))


def test_a_shared_secret_is_used_only_if_it_is_configured() -> None:
    token = signed(algorithm="HS256", key="shared")
    assert refusal(token)
    assert read(token, algorithms=("HS256",)).name == "alice"
    assert refusal(signed(), algorithms=("HS256",))


def test_an_unknown_key_id_is_logged() -> None:
    token = jwt.encode({"alg": "RS256", "kid": "stranger"}, dict(CLAIMS), RSA)
    assert refusal(token) == "there is no key 'stranger'"


@pytest.mark.parametrize("audience", [None, "other", "other rabbitmq", [], ["other"], ["other rabbitmq"], 5])
def test_a_token_for_another_audience_is_refused(audience: object) -> None:
    token = signed({**CLAIMS, "aud": audience})
    assert refusal(token) == "its audience does not include 'rabbitmq'"
    assert read(token, verifies_audience=False).name == "alice"


FIRST = TokenSettings(resource_server_id="first")
SECOND = TokenSettings(resource_server_id="second", name_claims=("email",))


def test_a_token_is_read_as_the_resource_server_in_its_audience_says() -> None:
    claims = {"sub": "alice", "email": "a@example.org", "scope": "first.tag:management second.tag:monitoring"}
    both = servers(FIRST, SECOND)
    read_by = {
        audience: finished(both.user_of(signed({**claims, "aud": ["x", audience]})))
        for audience in ("first", "second")
    }
    assert [(user.name, user.tags) for user in read_by.values()] == [
        ("alice", ("management",)),
        ("a@example.org", ("monitoring",)),
    ]


def test_a_token_is_verified_with_the_keys_of_the_provider_of_its_resource_server() -> None:
    both = TokenVerifier([ResourceServer(FIRST, key_of), ResourceServer(SECOND, no_key)], lambda: NOW)
    assert finished(both.user_of(signed({"sub": "a", "aud": "first"}))).name == "a"
    with pytest.raises(TokenRefused, match="there is no key"):
        finished(both.user_of(signed({"sub": "a", "aud": "second"})))


def test_a_token_for_several_resource_servers_of_the_broker_is_refused() -> None:
    with pytest.raises(TokenRefused, match="several resource servers of this broker"):
        finished(servers(FIRST, SECOND).user_of(signed({"sub": "a", "aud": ["first", "second"]})))


@pytest.mark.parametrize("audience", [None, "other"])
def test_a_token_without_a_known_audience_is_for_the_only_server_that_needs_none(audience: object) -> None:
    token = signed({"sub": "a", "aud": audience})
    unchecked = [
        TokenSettings(resource_server_id=name, verifies_audience=False, scope_prefix="") for name in "ab"
    ]
    assert finished(servers(FIRST, unchecked[0]).user_of(token)).name == "a"
    with pytest.raises(TokenRefused, match="does not say which of several resource servers"):
        finished(servers(FIRST, *unchecked).user_of(token))
    with pytest.raises(TokenRefused, match="does not include 'first' or 'second'"):
        finished(servers(FIRST, SECOND).user_of(token))


def test_a_token_without_an_expiry_is_refused_if_one_is_required() -> None:
    assert refusal(signed(), requires_expiry=True) == "it has no expiry"
    assert read(signed({**CLAIMS, "exp": NOW / 1000 + 1}), requires_expiry=True).name == "alice"


def test_scopes_may_be_regular_expressions_with_claims_in_them() -> None:
    scope = "rabbitmq.read:v[0-9]/{sub}-(?:in|out) rabbitmq.read:{vhost}/own"
    holder = read(signed({**CLAIMS, "scope": scope}), scope_syntax=ScopeSyntax.REGEX)
    permission = holder.grants.permission("v1")
    assert permission is not None
    names = ("alice-in", "alice-out", "alice-on", "own", "xalice-in")
    assert [name for name in names if matches(permission.read, name)] == ["alice-in", "alice-out", "own"]


DETAIL = {"type": "broker", "actions": ["read", "configure", "delete"], "locations": ["cluster:rabbit*"]}


@pytest.mark.parametrize(
    ("detail", "scopes"),
    [
        ({}, ["read:*/*/*", "configure:*/*/*"]),
        ({"type": "other"}, []),
        ({"actions": "write", "locations": "cluster:*/vhost:v%2F/queue:q"}, ["write:v%2F/q/*"]),
        ({"actions": ["read"], "locations": ["cluster:rabbitmq/exchange:x/routing-key:k"]}, ["read:*/x/k"]),
        ({"actions": ["read"], "locations": ["cluster:rabbitmq/exchange:x/queue:x"]}, ["read:*/x/*"]),
        ({"locations": ["cluster:rabbitmq/exchange:x/queue:q"]}, []),
        ({"locations": ["cluster:other", "vhost:v", "", "cluster"]}, []),
        ({"actions": ["administrator", "root"]}, ["tag:administrator"]),
        ({"actions": None, "locations": 5}, []),
        ({"locations": [5, None]}, []),
    ],
)
def test_details_of_authorization_are_scopes(detail: dict[str, object], scopes: list[str]) -> None:
    settings = ClaimSettings(resource_server_id="rabbitmq", resource_server_type="broker")
    assert scopes_in({"authorization_details": [7, {**DETAIL, **detail}]}, settings) == scopes


def test_details_of_authorization_are_read_only_for_the_configured_type() -> None:
    assert scopes_in({"authorization_details": [DETAIL]}, ClaimSettings(resource_server_id="rabbitmq")) == []


@pytest.mark.parametrize("ends", [NOW / 1000 + 60, NOW // 1000 + 60])
def test_a_token_expires_at_its_exp_claim(ends: float) -> None:
    assert read(signed({**CLAIMS, "exp": ends})).expires_at == NOW + 60_000


def test_a_token_without_an_expiry_lives_as_long_as_is_configured() -> None:
    assert read(signed(), lifetime_s=60).expires_at == NOW + 60_000
    assert read(signed({**CLAIMS, "iat": NOW / 1000 - 10}), lifetime_s=60).expires_at == NOW + 50_000
    assert refusal(signed({**CLAIMS, "iat": NOW / 1000 - 60}), lifetime_s=60) == "it has expired"
    assert read(signed(), lifetime_s=None).expires_at is None
    assert read(signed({**CLAIMS, "exp": NOW / 1000 + 90}), lifetime_s=60).expires_at == NOW + 90_000


@pytest.mark.parametrize("ends", [NOW / 1000, NOW / 1000 - 0.001, 0, -1])
def test_an_expired_token_is_refused(ends: float) -> None:
    assert refusal(signed({**CLAIMS, "exp": ends})) == "it has expired"


@pytest.mark.parametrize("time", ["soon", True, [], {}])
def test_a_malformed_time_claim_is_refused(time: object) -> None:
    assert refusal(signed({**CLAIMS, "exp": time})) == "claim 'exp' is not a number of seconds"


def test_a_small_clock_difference_is_tolerated() -> None:
    assert read(signed({**CLAIMS, "nbf": (NOW + TOKEN_SKEW_MS) / 1000}))
    assert refusal(signed({**CLAIMS, "nbf": (NOW + TOKEN_SKEW_MS + 1000) / 1000})) == "it is not valid yet"


def test_the_user_name_is_the_first_configured_claim_that_exists() -> None:
    claims = {**CLAIMS, "client_id": "client", "email": "a@example.org"}
    assert read(signed(claims), name_claims=("nickname", "email")).name == "a@example.org"
    assert read(signed(claims)).name == "alice"
    assert read(signed({**claims, "sub": ""})).name == "client"
    assert read(signed({**CLAIMS, "sub": 5})).name == "claimed"


def test_a_name_that_only_the_client_gives_is_another_identity() -> None:
    claimed, named = read(signed({**CLAIMS, "sub": 5})), read(signed({**CLAIMS, "sub": "claimed"}))
    assert claimed.name == named.name
    assert len({claimed.identity, named.identity, "claimed"}) == 3
    with pytest.raises(TokenRefused, match="it has no name"):
        finished(tokens().user_of(signed({**CLAIMS, "sub": 5}), None))


def test_scopes_may_be_a_list_and_may_be_in_other_claims() -> None:
    listed = signed({**CLAIMS, "scope": ["rabbitmq.tag:management"]})
    assert read(listed).tags == ("management",)
    aliased = signed({**CLAIMS, "scope": "boss"})
    assert read(aliased, scope_aliases={"boss": "rabbitmq.tag:administrator rabbitmq.read:*/*"}).tags == (
        "administrator",
    )
    elsewhere = signed({**CLAIMS, "roles": {"rabbitmq": ["tag:monitoring"], "other": ["tag:administrator"]}})
    assert read(elsewhere, additional_scopes_key="roles").tags == ("monitoring",)
    permissions = [{"rsid": "x", "scopes": ["rabbitmq.tag:management"]}, {"rsname": "y"}, 7]
    assert read(signed({**CLAIMS, "authorization": {"permissions": permissions}})).tags == ("management",)
    deep = signed({**CLAIMS, "realm": {"roles": ["rabbitmq.tag:policymaker"]}})
    assert read(deep, additional_scopes_key="none realm.roles").tags == ("policymaker",)


def test_a_token_that_is_too_long_is_refused() -> None:
    assert "longer than" in refusal("ey" + "a" * TOKEN_SIZE_MAX + "..")


def test_the_shape_of_a_token_is_recognised_without_decoding() -> None:
    assert is_like_token(signed())
    assert not is_like_token("guest")
    assert not is_like_token("eyes")
