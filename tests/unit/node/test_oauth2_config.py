"""The settings of OAuth 2: resource servers, and which provider verifies their tokens."""

import asyncio
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from warren.access.grants import TokenUser
from warren.access.scopes import ScopeSyntax
from warren.access.tokens import TokenRefused
from warren.node import oauth2_settings
from warren.node.config import Config, load
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.effective_settings import effective_settings
from warren.node.errors import BootRefused
from warren.node.oauth2_config import resource_servers, token_verifier
from warren.runtime.clock import Clock

ONE, TWO = (RSAKey.generate_key(2048, {"kid": "k"}) for _ in range(2))


def config(**entries: str) -> Config:
    return Config(
        [
            ConfigEntry(f"auth_oauth2.{key.replace('__', '.')}", value, "here")
            for key, value in entries.items()
        ]
    )


def test_a_resource_server_has_its_own_settings_and_else_those_without_a_name() -> None:
    found = resource_servers(
        config(
            resource_server_id="root",
            preferred_username_claims__1="email",
            scope_aliases__boss="root.tag:administrator",
            resource_servers__a__scope_prefix="a-",
            resource_servers__a__verify_aud="false",
            resource_servers__b__id="another",
            resource_servers__b__scope_pattern_syntax="regex",
            resource_servers__b__preferred_username_claims__2="sub",
            resource_servers__b__preferred_username_claims__1="name",
            resource_servers__b__scope_aliases__1__alias="api.admin",
            resource_servers__b__scope_aliases__1__scope="another.tag:administrator",
            resource_servers__b__require_exp="true",
            resource_servers__b__oauth_provider_id="p",
        )
    )
    by_name = {server.resource_server_id: (provider, server) for provider, server in found}
    assert list(by_name) == ["root", "a", "another"]
    (root_provider, root), (_, first), (provider, second) = by_name.values()
    assert (root_provider, provider) == ("", "p")
    assert (root.prefix, first.prefix, second.prefix) == ("root.", "a-", "another.")
    assert (root.verifies_audience, first.verifies_audience) == (True, False)
    assert (root.name_claims, first.name_claims, second.name_claims) == (
        ("email",),
        ("email",),
        ("name", "sub"),
    )
    assert first.scope_aliases == {"boss": "root.tag:administrator"}
    assert second.scope_aliases == {"api.admin": "another.tag:administrator"}
    assert (first.scope_syntax, second.scope_syntax) == (ScopeSyntax.WILDCARD, ScopeSyntax.REGEX)
    assert (root.requires_expiry, second.requires_expiry) == (False, True)


def test_without_an_id_of_its_own_the_broker_is_only_the_named_resource_servers() -> None:
    assert [
        server.resource_server_id for _, server in resource_servers(config(resource_servers__a__id="b"))
    ] == ["b"]


def test_the_keys_of_a_provider_verify_the_tokens_of_its_resource_servers(tmp_path: Path) -> None:
    for name, key in (("one", ONE), ("two", TWO)):
        (tmp_path / name).write_bytes(key.as_pem(private=False))
    verifier = token_verifier(
        config(
            resource_server_id="root",
            default_oauth_provider="one",
            oauth_providers__one__signing_keys__k=str(tmp_path / "one"),
            oauth_providers__two__signing_keys__k=str(tmp_path / "two"),
            oauth_providers__two__algorithms__1="PS256",
            resource_servers__a__oauth_provider_id="two",
        ),
        Clock(),
    )

    def read(key: RSAKey, audience: str, algorithm: str = "RS256") -> TokenUser:
        header = {"alg": algorithm, "kid": "k"}
        token = jwt.encode(header, {"sub": "x", "aud": audience}, key, algorithms=[algorithm])
        return asyncio.run(verifier.user_of(token))

    assert read(ONE, "root").name == "x"
    assert read(TWO, "a", "PS256").name == "x"
    for key, audience, algorithm in ((TWO, "root", "RS256"), (ONE, "a", "PS256"), (TWO, "a", "RS256")):
        with pytest.raises(TokenRefused):
            read(key, audience, algorithm)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"default_oauth_provider": "x"}, r"auth_oauth2\.oauth_providers\.x is not set"),
        ({"resource_servers__a__id": "r", "resource_server_id": "r"}, "two resource servers have the id 'r'"),
        ({"issuer": "http://id.example.org"}, r"auth_oauth2\.issuer must be an https address"),
    ],
)
def test_contradicting_settings_are_refused(entries: dict[str, str], text: str) -> None:
    with pytest.raises(BootRefused, match=text):
        token_verifier(config(**entries), Clock())


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("resource_servers__a__colour", "red", "unknown key .*: it ends with none of "),
        ("resource_servers__a", "red", "unknown key "),
        ("resource_servers__a__verify_aud", "perhaps", "must be true or false"),
        ("oauth_providers__a__algorithms__1", "none", "must be one of "),
        ("nothing", "x", "unknown key"),
    ],
)
def test_an_unknown_attribute_of_a_resource_server_or_provider_is_refused(
    key: str, value: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=f"here: .*{text}"):
        config(**{key: value})


def test_an_attribute_without_effect_is_named_in_a_warning() -> None:
    found = config(oauth_providers__a__https__depth="2", oauth_providers__a__issuer="https://id")
    assert found.warnings == [
        "here: auth_oauth2.oauth_providers.a.https.depth has no effect: OpenSSL limits the length of a chain "
        "of certificates"
    ]
    assert [bool(reason) for _, reason in found.effects()] == [True, False]
    assert found.groups(oauth2_settings.PROVIDERS) == {"a": {"issuer": "https://id"}}


def test_environment_variables_set_attributes() -> None:
    found = load("", {"WARREN_AUTH_OAUTH2_RESOURCE_SERVERS_A_B_SCOPE_PREFIX": "x."})
    assert found.groups(oauth2_settings.RESOURCE_SERVERS) == {"a_b": {"scope_prefix": "x."}}
    rows = {row.key: row for row in effective_settings(found)}
    row = rows["auth_oauth2.resource_servers.a_b.scope_prefix"]
    assert (row.value, row.origin) == ("x.", "WARREN_AUTH_OAUTH2_RESOURCE_SERVERS_A_B_SCOPE_PREFIX")


def test_rabbitmq_4s_name_of_the_verification_of_a_provider_is_read() -> None:
    assert config(https__verify="verify_none").get(oauth2_settings.VERIFY) is False
