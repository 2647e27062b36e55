"""The configuration of the LDAP directory."""

import logging

import pytest

from warren.access.directory import EVERYTHING, DirectoryRules, GroupGrant
from warren.metadata.permissions import Permission
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.errors import BootRefused
from warren.node.ldap_config import directory_rules, ldap_directory
from warren.runtime.clock import Clock


def config(**entries: str) -> Config:
    return Config(
        ConfigEntry(f"auth_ldap.{name.replace('__', '.')}", value, "test") for name, value in entries.items()
    )


def test_groups_have_tags_and_grants() -> None:
    chosen = config(
        tags__administrator="cn=a", tags__monitoring__1="cn=b", tags__monitoring__2="everybody",
        grants__1__group="everybody", grants__2__group="cn=c", grants__2__vhost="v",
        grants__2__read=".*",
    )  # fmt: skip
    assert directory_rules(chosen) == DirectoryRules(
        tags=(("administrator", "cn=a"), ("monitoring", "cn=b"), ("monitoring", "")),
        grants=(
            GroupGrant(permission=EVERYTHING),
            GroupGrant(group="cn=c", vhost="v", permission=Permission("", "", ".*")),
        ),
    )


def test_environment_variables_use_underscores() -> None:
    chosen = Config([ConfigEntry("auth_ldap.grants.1_group", "cn=a", "WARREN_AUTH_LDAP_GRANTS_1_GROUP")])
    assert directory_rules(chosen) == DirectoryRules(grants=(GroupGrant(group="cn=a"),))


SERVER = {"servers__1": "localhost"}


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({}, r"auth_ldap\.servers\.1 is not set"),
        ({**SERVER, "dn_lookup_attribute": "uid"}, "dn_lookup_base is not set"),
        ({**SERVER, "dn_lookup_bind__user_dn": "cn=a"}, r"dn_lookup_bind\.password is not set"),
        ({**SERVER, "other_bind__user_dn": "cn=a"}, r"other_bind\.password is not set"),
        ({**SERVER, "tags__administrator": "cn=a"}, "group_lookup_base is not set"),
        ({**SERVER, "grants__1__group": "cn=a"}, "group_lookup_base is not set"),
        ({**SERVER, "grants__1__vhost": "v"}, r"grants\.1\.group is not set"),
        ({**SERVER, "grants__1__group": ""}, "a group has no name"),
        ({**SERVER, "grants__1__who": "a"}, r"grants\.1\.who: must be"),
        ({**SERVER, "grants__1": "a"}, r"grants\.1: must be"),
        ({**SERVER, "grants__1__group": "everybody", "grants__1__read": "("}, r"grants\.1\.read: missing \)"),
        ({**SERVER, "use_ssl": "true", "use_starttls": "true"}, "both set: choose one"),
        ({**SERVER, "use_ssl": "true", "ssl_options__cacertfile": "nothing.pem"}, r"ssl_options: .*No such"),
        ({**SERVER, "use_ssl": "true", "ssl_options__certfile": "nothing.pem"}, r"ssl_options: .*No such"),
    ],
)
def test_an_inconsistent_configuration_is_refused(entries: dict[str, str], text: str) -> None:
    with pytest.raises(BootRefused, match=text):
        ldap_directory(config(**entries), Clock())


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"servers__1": "ldap.example.org"}, "in clear text"),
        ({**SERVER, "use_ssl": "true", "ssl_options__verify": "verify_none"}, "is not verified"),
        (SERVER, "no permissions in any virtual host"),
    ],
)
def test_an_insecure_or_useless_configuration_is_warned_about(
    entries: dict[str, str], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "warren.ldap"):
        ldap_directory(config(**entries), Clock())
    assert text in caplog.text


def test_a_secure_configuration_has_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    chosen = config(servers__1="ldap.example.org", use_starttls="true", grants__1__group="everybody")
    with caplog.at_level(logging.WARNING, "warren.ldap"):
        ldap_directory(chosen, Clock())
    assert not caplog.text
