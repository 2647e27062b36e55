"""Who is asked who somebody is, as the configuration wants it."""

import logging

from warren.access.authenticate import (
    AuthenticationSettings,
    AuthenticationWorld,
    Authenticator,
    Backend,
    Source,
)
from warren.access.directory import Directory
from warren.access.penalties import PenaltySettings
from warren.access.tokens import ALGORITHMS, Tokens, TokenSettings
from warren.metadata.machine import Metadata
from warren.node import directory, settings
from warren.node.config import Config
from warren.node.keyring import Keyring, KeyringSettings
from warren.node.ldap_people import People
from warren.node.listening import in_order
from warren.node.refusal import BootRefused
from warren.runtime.clock import Clock
from warren.runtime.labour import Labour
from warren.runtime.randomness import random_octets
from warren.runtime.timers import wait

logger = logging.getLogger("warren.login")


def has(config: Config, source: Source) -> bool:
    """True if `source` is asked who somebody is."""
    return any(backend.authentication is source for backend in _backends(config))


def authenticator(
    config: Config, metadata: Metadata, clock: Clock, labour: Labour, *, people: People | None = None
) -> Authenticator:
    """For the users of `metadata`, those of whom tokens tell, and `people`; BootRefused without keys."""
    users = config.family(settings.LOOPBACK_USERS)
    backends = _backends(config)
    return Authenticator(
        metadata,
        AuthenticationSettings(
            mechanisms=in_order(config.family(settings.MECHANISMS)),
            backends=backends,
            loopback_users=frozenset(user for user, is_local in users.items() if is_local),
            penalties=PenaltySettings(
                failures_free=config.get(settings.LOGIN_FAILURES),
                delay_ms_max=config.get(settings.LOGIN_DELAY),
            ),
        ),
        AuthenticationWorld(
            labour=labour.do,
            now=clock.now,
            random_octets=random_octets,
            wait=wait,
            report=logger.warning,
            tokens=_tokens(config, clock) if has(config, Source.OAUTH2) else None,
            directory=None if people is None else Directory(people.find, directory.rules(config), metadata),
        ),
    )


def _backends(config: Config) -> tuple[Backend, ...]:
    """`auth_backends.1`, or `auth_backends.1.authn` and `.authz`, and so on, in order."""
    by_number: dict[str, dict[str, Source]] = {}
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
        if what not in (who, Source.INTERNAL):
            raise BootRefused(f"auth_backends.{number}.authz: can be that of authn, or internal")
        found.append(Backend(who, what))
    return tuple(found)


def _tokens(config: Config, clock: Clock) -> Tokens:
    keyring = Keyring(
        KeyringSettings(
            files=config.family(settings.OAUTH2_KEYS),
            default=config.get(settings.OAUTH2_DEFAULT_KEY),
            url=config.get(settings.OAUTH2_JWKS_URI) or config.get(settings.OAUTH2_JWKS_URL),
            authority_file=config.get(settings.OAUTH2_AUTHORITY_FILE),
            verifies_server=config.get(settings.OAUTH2_VERIFY),
        ),
        clock,
    )
    prefix = config.get(settings.OAUTH2_SCOPE_PREFIX) if config.is_set(settings.OAUTH2_SCOPE_PREFIX) else None
    return Tokens(
        TokenSettings(
            resource_server_id=config.get(settings.OAUTH2_RESOURCE_SERVER),
            scope_prefix=prefix,
            verifies_audience=config.get(settings.OAUTH2_VERIFY_AUDIENCE),
            name_claims=in_order(config.family(settings.OAUTH2_NAME_CLAIMS)),
            additional_scopes_key=config.get(settings.OAUTH2_ADDITIONAL_SCOPES),
            scope_aliases=config.family(settings.OAUTH2_SCOPE_ALIASES),
            algorithms=in_order(config.family(settings.OAUTH2_ALGORITHMS)) or ALGORITHMS,
        ),
        keyring.key,
        clock.now,
    )
