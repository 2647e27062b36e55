"""Listeners as the configuration wants them."""

import resource
from collections.abc import Callable
from typing import TypeVar

from warren.node import settings
from warren.node.config import Config
from warren.node.values import Address
from warren.session.peer import Peer
from warren.session.wake import Wake
from warren.transport.listener import Listener, ListenerSettings
from warren.transport.protocol import Client, Turn
from warren.transport.tls import Tls, TlsSettings

Value = TypeVar("Value")

# Kept for files, the HTTP API and logs when the number of connections follows from the limit of descriptors.
_DESCRIPTORS_RESERVED = 100


def listeners(
    config: Config, turn: Turn, tls: Tls | None, connect: Callable[[Peer, Wake, int], Client]
) -> list[Listener]:
    """Every `listeners.tcp` and `listeners.ssl`, not started yet."""
    chosen = _settings_of(config, settings.TCP, None) + _settings_of(config, settings.TLS, tls)
    return [Listener(where, turn, connect, with_tls) for where, with_tls in chosen]


def stream_listeners(
    config: Config, turn: Turn, tls: Tls | None, connect: Callable[[Peer, Wake, int], Client]
) -> list[Listener]:
    """Every `stream.listeners.tcp` and `stream.listeners.ssl`, not started yet."""
    chosen = _settings_of(config, settings.STREAM_TCP, None) + _settings_of(config, settings.STREAM_TLS, tls)
    return [Listener(where, turn, connect, with_tls) for where, with_tls in chosen]


def _settings_of(
    config: Config, family: settings.Family[Address], tls: Tls | None
) -> list[tuple[ListenerSettings, Tls | None]]:
    return [(_chosen(config, address), tls) for address in config.family(family).values()]


def _chosen(config: Config, address: Address) -> ListenerSettings:
    connections_max = config.get(settings.CONNECTIONS_MAX)
    if connections_max is None:
        connections_max = max(1, raise_descriptor_limit() - _DESCRIPTORS_RESERVED)
    return ListenerSettings(
        host=address.host,
        port=address.port,
        backlog=config.get(settings.BACKLOG),
        is_proxied=config.get(settings.PROXY_PROTOCOL),
        is_nodelay=config.get(settings.NODELAY),
        is_keepalive=config.get(settings.KEEPALIVE),
        connections_max=connections_max,
        handshake_ms=config.get(settings.HANDSHAKE),
        tls_handshake_ms=config.get(settings.TLS_HANDSHAKE),
    )


def tls(config: Config) -> Tls | None:
    """What TLS listeners share; None without any."""
    if not config.family(settings.TLS) and not config.family(settings.STREAM_TLS):
        return None
    return Tls(
        TlsSettings(
            certificate_file=config.get(settings.CERTIFICATE_FILE),
            key_file=config.get(settings.KEY_FILE),
            authority_file=config.get(settings.AUTHORITY_FILE),
            password=config.get(settings.KEY_PASSWORD),
            is_peer_verified=config.get(settings.VERIFY),
            is_certificate_required=config.get(settings.CERTIFICATE_REQUIRED),
            versions=in_order(config.family(settings.TLS_VERSIONS)),
            ciphers=in_order(config.family(settings.CIPHERS)),
            is_own_cipher_order=config.get(settings.OWN_CIPHER_ORDER),
            login_from=config.get(settings.LOGIN_FROM),
            login_san_type=config.get(settings.LOGIN_SAN_TYPE),
            login_san_index=config.get(settings.LOGIN_SAN_INDEX),
        )
    )


def in_order(family: dict[str, Value]) -> tuple[Value, ...]:
    """Values whose names are 1, 2, 3, …, in that order."""
    names = sorted(family, key=lambda name: (len(name), name) if name.isdigit() else (99, name))
    return tuple(family[name] for name in names)


def raise_descriptor_limit() -> int:
    """Take as many file descriptors as this process may have; returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard and hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    return soft
