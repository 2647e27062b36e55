"""What the settings of revoked certificates mean."""

import pytest

from warren.node.client_listeners import tls
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.revocation_config import ListServer, RevocationSources, revocation_sources
from warren.transport.revocation import RevocationCheck
from warren.transport.tls import TlsError


def config(entries: dict[str, str]) -> Config:
    """A TLS listener with `entries` below `ssl_options`."""
    keys = {
        "listeners.ssl.default": "5671",
        **{f"ssl_options.{key}": value for key, value in entries.items()},
    }
    return Config([ConfigEntry(key, value, "here") for key, value in keys.items()])


@pytest.mark.parametrize(
    ("entries", "sources"),
    [
        ({}, RevocationSources()),
        ({"crl_check": "false", "crl_sources.1": "http"}, RevocationSources()),
        ({"crl_check": "best_effort"}, RevocationSources()),
        (
            {"crl_check": "peer", "crl_sources.1": "dir", "crl_sources.1.path": "x"},
            RevocationSources(check=RevocationCheck.PEER, directories=("x",)),
        ),
        (
            {"crl_check": "peer", "crl_sources.1.path": "x"},
            RevocationSources(check=RevocationCheck.PEER, directories=("x",)),
        ),
        (
            {"crl_check": "true", "crl_sources.1": "http"},
            RevocationSources(check=RevocationCheck.CHAIN, servers=(ListServer(5000),)),
        ),
        (
            {
                "crl_check": "true",
                "crl_sources.0": "http",
                "crl_sources.0.timeout": "200",
                "crl_sources.0.url": "http://a/list",
                "crl_sources.1": "dir",
                "crl_sources.1.path": "x",
                "crl_sources.2": "http",
            },
            RevocationSources(
                check=RevocationCheck.CHAIN,
                directories=("x",),
                servers=(ListServer(200, "http://a/list"), ListServer(5000)),
            ),
        ),
    ],
)
def test_sources_are_directories_and_servers(entries: dict[str, str], sources: RevocationSources) -> None:
    assert revocation_sources(config(entries)) == sources


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"crl_check": "peer"}, r"crl_check = peer needs ssl_options\.crl_sources\.1"),
        ({"crl_check": "best_effort", "crl_sources.1.path": "x"}, "best_effort is not supported"),
        ({"crl_check": "true", "crl_sources.1": "ldap"}, r"crl_sources\.1 must be dir or http, not 'ldap'"),
        ({"crl_check": "true", "crl_sources.1": "dir"}, r"crl_sources\.1 = dir needs .*crl_sources\.1\.path"),
        (
            {"crl_check": "true", "crl_sources.1": "dir", "crl_sources.1.timeout": "5"},
            r"crl_sources\.1\.timeout: a source dir has \.path only",
        ),
        (
            {"crl_check": "true", "crl_sources.1": "http", "crl_sources.1.path": "x"},
            r"crl_sources\.1\.path: a source http has \.timeout or \.url only",
        ),
        ({"crl_check": "true", "crl_sources.1.colour": "red"}, r"crl_sources\.1 must be dir or http, not ''"),
        (
            {"crl_check": "true", "crl_sources.1": "http", "crl_sources.1.timeout": "0"},
            r"crl_sources\.1\.timeout must be a number of 1 to 60000, not '0'",
        ),
        (
            {"crl_check": "true", "crl_sources.1": "http", "crl_sources.1.timeout": "soon"},
            r"crl_sources\.1\.timeout must be a number",
        ),
        (
            {"crl_check": "true", "crl_sources.1": "http", "crl_sources.1.url": "ftp://a/list"},
            r"crl_sources\.1\.url must be an http or https address, not 'ftp://a/list'",
        ),
    ],
)
def test_settings_that_cannot_be_followed_refuse_the_listener(entries: dict[str, str], text: str) -> None:
    with pytest.raises(TlsError, match=text):
        tls(config(entries))
