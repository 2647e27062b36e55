"""Builds the authenticator of a node from the configured authentication backends."""

import logging

from warren.access.authenticate import (
    AuthenticationDependencies,
    AuthenticationSettings,
    Authenticator,
    Backend,
    BackendKind,
)
from warren.access.directory import Directory
from warren.access.login_throttle import LoginThrottleSettings
from warren.metadata.machine import Metadata
from warren.metadata.refusal_check import RefusalCheck
from warren.node import ldap_config, settings
from warren.node.client_listeners import numbered_values
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.node.ldap_directory import LdapDirectory
from warren.node.oauth2_config import token_verifier
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_bytes
from warren.runtime.thread_pool import ThreadPool
from warren.runtime.timers import wait

logger = logging.getLogger("warren.login")


def is_backend_configured(config: Config, source: BackendKind) -> bool:
    """True if the configuration names `source` as an authentication backend."""
    return any(backend.authentication is source for backend in _backends(config))


def authenticator(
    config: Config,
    metadata: Metadata,
    clock: Clock,
    thread_pool: ThreadPool,
    *,
    ldap_directory: LdapDirectory | None = None,
    refusal_check: RefusalCheck | None = None,
) -> Authenticator:
    """Authenticate users of `metadata`, tokens and `ldap_directory`; raises BootRefused without keys.

    `refusal_check` finds out whether `metadata` are out of date.
    """
    users = config.family(settings.LOOPBACK_USERS)
    backends = _backends(config)
    return Authenticator(
        metadata,
        AuthenticationSettings(
            mechanisms=numbered_values(config.family(settings.MECHANISMS)),
            backends=backends,
            loopback_users=frozenset(user for user, is_local in users.items() if is_local),
            login_throttle=LoginThrottleSettings(
                failures_free=config.get(settings.LOGIN_FAILURES),
                delay_ms_max=config.get(settings.LOGIN_DELAY),
            ),
        ),
        AuthenticationDependencies(
            thread_pool=thread_pool.do,
            now=clock.now,
            random_bytes=random_bytes,
            wait=wait,
            report=logger.warning,
            tokens=token_verifier(config, clock)
            if is_backend_configured(config, BackendKind.OAUTH2)
            else None,
            directory=None
            if ldap_directory is None
            else Directory(ldap_directory.find, ldap_config.directory_rules(config), metadata),
            refusal_check=refusal_check,
        ),
    )


def _backends(config: Config) -> tuple[Backend, ...]:
    """Read `auth_backends.1`, or `auth_backends.1.authn` and `.authz`, and so on, in order."""
    by_number: dict[str, dict[str, BackendKind]] = {}
    for name, chosen in config.family(settings.BACKENDS).items():
        source = chosen or config.get(settings.CACHED_BACKEND)
        number, _, part = name.partition(".")
        if part not in ("", "authn", "authz"):
            raise BootRefused(f"auth_backends.{name}: must end with a number, authn or authz")
        by_number.setdefault(number, {})[part] = source
    found = []
    for number in sorted(by_number, key=lambda text: (len(text), text)):
        parts = by_number[number]
        who = parts.get("authn", parts.get(""))
        if who is None:
            raise BootRefused(f"auth_backends.{number}.authn is not set")
        what = parts.get("authz", parts.get("", who))
        if what not in (who, BackendKind.INTERNAL):
            raise BootRefused(f"auth_backends.{number}.authz: must be the backend of authn, or internal")
        found.append(Backend(who, what))
    return tuple(found)
