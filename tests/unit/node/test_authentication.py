"""The configuration of authentication backends and their order."""

import pytest

from warren.access.authenticate import Authenticator
from warren.metadata.machine import Metadata
from warren.node.authentication import authenticator
from warren.node.config import Config
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.errors import BootRefused
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
    ],
)
def test_valid_backends_of_rabbitmq_are_accepted(entries: dict[str, str]) -> None:
    assert isinstance(made(**entries), Authenticator)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"_1_authz": "internal"}, r"auth_backends\.1\.authn is not set"),
        ({"_1_authn": "internal", "_1_authz": "oauth2"}, "must be the backend of authn, or internal"),
        ({"_1_who": "internal"}, "must end with a number, authn or authz"),
    ],
)
def test_inconsistent_backends_are_refused(entries: dict[str, str], text: str) -> None:
    with pytest.raises(BootRefused, match=text):
        made(**entries)


def test_an_unsupported_backend_is_refused_instead_of_skipped() -> None:
    with pytest.raises(ConfigError, match="must be one of"):
        made(_1="http")
