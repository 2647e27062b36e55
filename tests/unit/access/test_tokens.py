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
from warren.access.tokens import TokenRefused, TokenSettings, TokenVerifier, is_like_token
from warren.limits import TOKEN_SIZE_MAX, TOKEN_SKEW_MS

NOW = 1_000_000_000
RSA = RSAKey.generate_key(2048)
KEYS: Mapping[str, Key] = {
    "rsa": RSA,
    "ec": ECKey.generate_key("P-256"),
    "ed": OKPKey.generate_key("Ed25519"),
    "shared": OctKey.generate_key(256),
}
CLAIMS = {"sub": "alice", "aud": ["rabbitmq", "other"], "scope": "rabbitmq.read:v/q other.read:v/x"}


def tokens(**settings: object) -> TokenVerifier:
    async def key(identifier: str | None) -> Key | None:
        return KEYS.get(identifier or "rsa")

    return TokenVerifier(TokenSettings(resource_server_id="rabbitmq", **settings), key, lambda: NOW)


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
