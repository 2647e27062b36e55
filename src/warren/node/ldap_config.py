"""Builds the LDAP directory and its authorization rules from the configuration."""

import logging
import re
import ssl
from ipaddress import ip_address

from warren.access.directory import DirectoryRules, GroupGrant
from warren.metadata.permissions import Permission
from warren.model.patterns import ANYTHING, pattern_error
from warren.node import settings
from warren.node.client_listeners import numbered_values
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.node.ldap_connection import LdapServer
from warren.node.ldap_directory import LdapAccount, LdapDirectory, LdapSettings
from warren.node.setting_types import Setting
from warren.runtime.clock import Clock

logger = logging.getLogger("warren.ldap")

_PORT, _TLS_PORT = 389, 636
_NOBODY = LdapAccount()
# The name of a group that includes all users.
_EVERYBODY = "everybody"
_ACCESSES = ("configure", "write", "read")
# Environment variables contain `_` where files contain a dot.
_SEPARATORS = re.compile(r"[._]")


def ldap_directory(config: Config, clock: Clock) -> LdapDirectory:
    """Create the client of the LDAP servers; raises BootRefused if the settings contradict each other."""
    servers = _servers(config)
    lookup_attribute = config.get(settings.LDAP_LOOKUP_ATTRIBUTE)
    lookup_base = config.get(settings.LDAP_LOOKUP_BASE)
    if lookup_attribute and not lookup_base:
        raise BootRefused("auth_ldap.dn_lookup_base is not set, but auth_ldap.dn_lookup_attribute is")
    groups_base = config.get(settings.LDAP_GROUPS_BASE) or lookup_base
    chosen = directory_rules(config)
    groups = [group for _, group in chosen.tags] + [grant.group for grant in chosen.grants]
    if any(groups) and not groups_base:
        raise BootRefused("auth_ldap.group_lookup_base is not set, but tags or grants name groups")
    found = LdapSettings(
        servers=servers,
        user_pattern=config.get(settings.LDAP_USER_PATTERN),
        bind_pattern=config.get(settings.LDAP_BIND_PATTERN),
        lookup_attribute=lookup_attribute,
        lookup_base=lookup_base,
        lookup_account=_account(
            config, settings.LDAP_LOOKUP_BIND, settings.LDAP_LOOKUP_USER, settings.LDAP_LOOKUP_PASSWORD
        ),
        groups_base=groups_base,
        group_attribute=config.get(settings.LDAP_GROUP_ATTRIBUTE),
        groups_account=_account(
            config, settings.LDAP_OTHER_BIND, settings.LDAP_OTHER_USER, settings.LDAP_OTHER_PASSWORD
        ),
        needs_groups=any(groups),
        timeout_ms=config.get(settings.LDAP_TIMEOUT),
        connections_max=config.get(settings.LDAP_POOL_SIZE),
        idle_ms=config.get(settings.LDAP_IDLE),
        cache_ttl_ms=config.get(settings.AUTH_CACHE_TTL),
    )
    _warn(servers, chosen)
    return LdapDirectory(found, clock)


def directory_rules(config: Config) -> DirectoryRules:
    """Return the rules by group; raises BootRefused for an invalid one."""
    tags = tuple(
        (_SEPARATORS.split(name)[0], _group(group))
        for name, group in config.family(settings.LDAP_TAGS).items()
    )
    by_number: dict[str, dict[str, str]] = {}
    for name, value in config.family(settings.LDAP_GRANTS).items():
        number, *rest = _SEPARATORS.split(name)
        if len(rest) != 1 or rest[0] not in ("group", "vhost", *_ACCESSES):
            raise BootRefused(
                f"auth_ldap.grants.{name}: must be a number and .group, .vhost, .configure, .write or .read"
            )
        by_number.setdefault(number, {})[rest[0]] = value
    return DirectoryRules(tags=tags, grants=tuple(_grant(*pair) for pair in by_number.items()))


def _grant(number: str, parts: dict[str, str]) -> GroupGrant:
    if "group" not in parts:
        raise BootRefused(f"auth_ldap.grants.{number}.group is not set: a group, or {_EVERYBODY}")
    for access in _ACCESSES:
        # Text in braces is a placeholder, and not part of a pattern.
        error = pattern_error(re.sub(r"\$\{[a-z_]+\}", "x", parts.get(access, "")))
        if error is not None:
            raise BootRefused(f"auth_ldap.grants.{number}.{access}: {error[0]}")
    # A rule without a pattern applies to everything.
    default = "" if any(access in parts for access in _ACCESSES) else ANYTHING
    permission = Permission(*(parts.get(access, default) for access in _ACCESSES))
    return GroupGrant(group=_group(parts["group"]), vhost=parts.get("vhost", "*"), permission=permission)


def _group(written: str) -> str:
    if not written:
        raise BootRefused(
            f"auth_ldap: a group has no name; {_EVERYBODY} is the group of all users who can log in"
        )
    return "" if written == _EVERYBODY else written


def _account(
    config: Config, how: Setting[str], user: Setting[str], password: Setting[str]
) -> LdapAccount | None:
    """Return the account used for searches; None for the user who logs in."""
    name = config.get(user)
    if not name:
        return _NOBODY if config.get(how) == "anon" else None
    if not config.get(password):
        raise BootRefused(f"{password.key} is not set")
    return LdapAccount(name, config.get(password))


def _servers(config: Config) -> tuple[LdapServer, ...]:
    hosts = numbered_values(config.family(settings.LDAP_SERVERS))
    if not hosts:
        raise BootRefused("auth_ldap.servers.1 is not set")
    is_tls, is_asked_for = config.get(settings.LDAP_TLS), config.get(settings.LDAP_START_TLS)
    if is_tls and is_asked_for:
        raise BootRefused("auth_ldap.use_ssl and auth_ldap.use_starttls are both set: choose one")
    port = config.get(settings.LDAP_PORT) or (_TLS_PORT if is_tls else _PORT)
    context = _context(config) if is_tls or is_asked_for else None
    return tuple(LdapServer(host=host, port=port, tls=context, uses_start_tls=is_asked_for) for host in hosts)


def _context(config: Config) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=config.get(settings.LDAP_AUTHORITY_FILE) or None)
        certificate = config.get(settings.LDAP_CERTIFICATE_FILE)
        if certificate:
            context.load_cert_chain(
                certificate,
                config.get(settings.LDAP_KEY_FILE) or None,
                config.get(settings.LDAP_KEY_PASSWORD) or None,
            )
    except OSError as error:
        raise BootRefused(f"auth_ldap.ssl_options: {error}") from error
    if not config.get(settings.LDAP_VERIFY):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _warn(servers: tuple[LdapServer, ...], chosen: DirectoryRules) -> None:
    for server in servers:
        if server.tls is None and not _is_here(server.host):
            logger.warning(
                "passwords are sent to %s in clear text: set use_ssl or use_starttls",
                server,
            )
        elif server.tls is not None and server.tls.verify_mode is ssl.CERT_NONE:
            logger.warning("the certificate of %s is not verified: it can be impersonated", server)
    if not chosen.grants:
        logger.warning("auth_ldap.grants is not set: LDAP users have no permissions in any virtual host")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
