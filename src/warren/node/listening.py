"""Listeners as the configuration wants them."""

import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from warren.node import settings
from warren.node.config import Config
from warren.node.refusal import BootRefused
from warren.node.values import Address
from warren.session.peer import Peer
from warren.session.wake import Wake
from warren.transport.listener import Listener, ListenerSettings, Places
from warren.transport.protocol import Client, Turn
from warren.transport.sockets import SocketOptions
from warren.transport.tls import Tls, TlsSettings

Value = TypeVar("Value")


Connect: TypeAlias = Callable[[Peer, Wake, int], Client]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all listeners have in common."""

    turn: Turn
    tls: Tls | None
    places: Places


def listeners(config: Config, shared: Shared, connect: Connect) -> list[Listener]:
    """Every `listeners.tcp` and `listeners.ssl`, not started yet."""
    return _made(config, (settings.TCP, settings.TLS), shared, connect, sockets=settings.SOCKETS)


def stream_listeners(config: Config, shared: Shared, connect: Connect) -> list[Listener]:
    """Every `stream.listeners.tcp` and `stream.listeners.ssl`, not started yet."""
    families = settings.STREAM_TCP, settings.STREAM_TLS
    return _made(config, families, shared, connect, sockets=settings.STREAM_SOCKETS)


def places(config: Config, descriptors_share: int) -> Places:
    """The connections there may be: what is configured, and not more than there are descriptors for."""
    configured = config.get(settings.CONNECTIONS_MAX)
    return Places(descriptors_share if configured is None else min(configured, descriptors_share))


def _made(
    config: Config,
    families: tuple[settings.Family[Address], settings.Family[Address]],
    shared: Shared,
    connect: Connect,
    *,
    sockets: settings.SocketKeys,
) -> list[Listener]:
    in_the_clear, with_tls = families
    return [
        Listener(_chosen(config, sockets, address), shared.turn, connect, tls, places=shared.places)
        for family, tls in ((in_the_clear, None), (with_tls, shared.tls))
        for address in config.family(family).values()
    ]


def socket_options(config: Config) -> dict[str, object]:
    """What listeners of clients and their connections are given."""
    return {
        "backlog": config.get(settings.SOCKETS.backlog),
        "nodelay": config.get(settings.SOCKETS.nodelay),
        "keepalive": config.get(settings.SOCKETS.keepalive),
    }


def _chosen(config: Config, keys: settings.SocketKeys, address: Address) -> ListenerSettings:
    is_closing = config.get(keys.send_timeout_close)
    return ListenerSettings(
        host=address.host,
        port=address.port,
        backlog=config.get(keys.backlog),
        is_proxied=config.get(settings.PROXY_PROTOCOL),
        options=SocketOptions(
            is_nodelay=config.get(keys.nodelay),
            is_keepalive=config.get(keys.keepalive),
            send_size=config.get(keys.send_size),
            receive_size=config.get(keys.receive_size),
            service=config.get(keys.service),
            priority=config.get(keys.priority),
            # With a timeout, the kernel would hold up the loop when a socket is closed.
            is_reset=config.get(keys.linger) and not config.get(keys.linger_s),
        ),
        send_timeout_ms=config.get(keys.send_timeout) if is_closing else None,
        handshake_ms=config.get(settings.HANDSHAKE),
        tls_handshake_ms=config.get(settings.TLS_HANDSHAKE),
    )


def tls(config: Config) -> Tls | None:
    """What TLS listeners share; None without any."""
    if not config.family(settings.TLS) and not config.family(settings.STREAM_TLS):
        return None
    return Tls(
        replace(
            _tls_settings(config, settings.LISTENER_TLS),
            login_from=config.get(settings.LOGIN_FROM),
            login_san_type=config.get(settings.LOGIN_SAN_TYPE),
            login_san_index=config.get(settings.LOGIN_SAN_INDEX),
        )
    )


def http_tls(config: Config, port: settings.HttpPortKeys, keys: settings.TlsKeys) -> Tls | None:
    """What a port of HTTP with TLS has; None if neither a place nor anything of its TLS is set."""
    if not any(map(config.is_set, (*port.all[:2], *keys.all))):
        return None
    return Tls(_tls_settings(config, keys))


def _tls_settings(config: Config, keys: settings.TlsKeys) -> TlsSettings:
    return TlsSettings(
        prefix=keys.prefix,
        certificate_file=config.get(keys.certificate_file),
        key_file=config.get(keys.key_file),
        authority_file=config.get(keys.authority_file),
        password=config.get(keys.password),
        is_peer_verified=config.get(keys.is_peer_verified),
        is_certificate_required=config.get(keys.is_certificate_required),
        versions=in_order(config.family(keys.versions)),
        ciphers=in_order(config.family(keys.ciphers)),
        is_own_cipher_order=config.get(keys.is_own_cipher_order),
    )


async def listen(starting: Awaitable[None], host: str, port: int) -> None:
    """Await `starting`; BootRefused says why nobody can listen there."""
    try:
        await starting
    except OSError as error:
        reason = "the port is taken" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise BootRefused(f"cannot listen on {host or 'every interface'}, port {port}: {reason}") from error


def in_order(family: dict[str, Value]) -> tuple[Value, ...]:
    """Values whose names are 1, 2, 3, …, in that order."""
    names = sorted(family, key=lambda name: (len(name), name) if name.isdigit() else (99, name))
    return tuple(family[name] for name in names)
