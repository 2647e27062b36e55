"""The configuration of authentication backends and their order."""

import pytest

from warren.access.authenticate import Authenticator, BackendKind
from warren.metadata.machine import Metadata
from warren.node.authentication import authenticator, backends, http_backend
from warren.node.config import Config
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.errors import BootRefused
from warren.node.http_backend import HttpBackend
from warren.runtime.clock import Clock
from warren.runtime.thread_pool import ThreadPool


def made(**entries: str) -> Authenticator:
    named = [
        ConfigEntry(f"auth_backends.{key.strip('_').replace('_', '.')}", value, "test")
        for key, value in entries.items()
    ]
    thread_pool = ThreadPool(thread_count=1, waiting_max=1)
    return authenticator(Config(named), Metadata(), Clock(), thread_pool)


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"_1": "internal"},
        {"_1": "rabbit_auth_backend_internal", "_2": "oauth2"},
        {"_1_authn": "oauth2", "_1_authz": "internal"},
        {"_1_authn": "rabbit_auth_backend_http", "_1_authz": "internal", "_2": "internal"},
        {"_1": "http", "_2_authn": "ldap", "_2_authz": "rabbit_auth_backend_http"},
    ],
)
def test_valid_backends_of_rabbitmq_are_accepted(entries: dict[str, str]) -> None:
    assert isinstance(made(**entries), Authenticator)


@pytest.mark.parametrize(
    ("cached", "expected"),
    [
        ({}, (BackendKind.LDAP, BackendKind.LDAP)),
        ({"": "oauth2"}, (BackendKind.OAUTH2, BackendKind.OAUTH2)),
        ({".authn": "http", ".authz": "internal"}, (BackendKind.HTTP, BackendKind.INTERNAL)),
        ({"": "ldap", ".authz": "internal"}, (BackendKind.LDAP, BackendKind.INTERNAL)),
    ],
)
def test_a_cached_backend_is_the_one_that_is_named(
    cached: dict[str, str], expected: tuple[BackendKind, BackendKind]
) -> None:
    keys = {"auth_backends.1": "cache", **{f"auth_cache.cached_backend{key}": cached[key] for key in cached}}
    found = backends(Config([ConfigEntry(key, value, "test") for key, value in keys.items()]))
    assert [(one.authentication, one.authorization) for one in found] == [expected]


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"_1_authz": "internal"}, r"auth_backends\.1\.authn is not set"),
        ({"_1_authn": "internal", "_1_authz": "oauth2"}, "must be the backend of authn, internal or http"),
        ({"_1_authn": "oauth2", "_1_authz": "http"}, "cannot authorize the users of tokens"),
        ({"_1_who": "internal"}, "must end with a number, authn or authz"),
    ],
)
def test_inconsistent_backends_are_refused(entries: dict[str, str], text: str) -> None:
    with pytest.raises(BootRefused, match=text):
        made(**entries)


def test_an_unsupported_backend_is_refused_instead_of_skipped() -> None:
    with pytest.raises(ConfigError, match="must be one of"):
        made(_1="amqp")


def test_a_web_server_is_asked_only_if_a_backend_is_one(caplog: pytest.LogCaptureFixture) -> None:
    def login(**entries: str) -> HttpBackend | None:
        keys = {key.replace("__", "."): value for key, value in entries.items()}
        return http_backend(Config([ConfigEntry(key, value, "x") for key, value in keys.items()]), Clock())

    backends = {"auth_backends__1__authn": "http", "auth_backends__1__authz": "internal"}
    assert login(auth_backends__1="internal") is None
    assert login(**backends) is not None
    assert login(auth_backends__1__authn="internal", auth_backends__1__authz="http") is not None
    assert "in clear text" not in caplog.text
    assert login(**backends, auth_http__user_path="http://login.example.org/") is not None
    assert "passwords are sent to http://login.example.org/ in clear text" in caplog.text
    with pytest.raises(BootRefused, match=r"auth_http\.ssl_options\.ciphers: no cipher of NONE is known"):
        login(**backends, auth_http__ssl_options__ciphers__1="NONE")
    with pytest.raises(BootRefused, match=r"auth_http\.ssl_options: "):
        login(**backends, auth_http__ssl_options__certfile="/nowhere.pem")
