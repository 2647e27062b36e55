"""Creates the AMQP and stream listeners from the configuration."""

import errno
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from warren.framing.output_listener import OutputListener
from warren.node import limit_settings, settings
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.node.revocation_config import revocation_sources
from warren.node.setting_types import Family, HttpPortKeys, SocketKeys, TlsKeys
from warren.node.values import Address
from warren.session.base_connection import BaseConnection
from warren.session.peer import Peer
from warren.transport.listener import ConnectionSlots, Listener, ListenerSettings
from warren.transport.protocol import LoopContext
from warren.transport.sockets import SocketOptions
from warren.transport.tls import Tls, TlsSettings
from warren.transport.unix_sockets import is_unix

Value = TypeVar("Value")


ClientFactory: TypeAlias = Callable[[Peer, OutputListener], BaseConnection]


class ListenerDependencies(Struct, frozen=True):
    """The objects that all listeners share."""

    loop_context: LoopContext
    tls: Tls | None
    connection_slots: ConnectionSlots


def amqp_listeners(config: Config, shared: ListenerDependencies, connect: ClientFactory) -> list[Listener]:
    """Every `amqp_listeners.tcp` and `amqp_listeners.ssl`, not started yet."""
    return _new_listeners(config, (settings.TCP, settings.TLS), shared, connect, sockets=settings.SOCKETS)


def stream_listeners(config: Config, shared: ListenerDependencies, connect: ClientFactory) -> list[Listener]:
    """Every `stream.listeners.tcp` and `stream.listeners.ssl`, not started yet."""
    families = settings.STREAM_TCP, settings.STREAM_TLS
    most = config.get(limit_settings.STREAM_CONNECTIONS)
    if most is not None:
        shared = replace(shared, connection_slots=ConnectionSlots(most, shared.connection_slots))
    return _new_listeners(config, families, shared, connect, sockets=settings.STREAM_SOCKETS)


def connection_slots(config: Config, descriptors_share: int) -> ConnectionSlots:
    """The number of connections allowed: the configured maximum, limited by the file descriptors."""
    configured = config.get(settings.CONNECTIONS_MAX)
    return ConnectionSlots(descriptors_share if configured is None else min(configured, descriptors_share))


def _new_listeners(
    config: Config,
    families: tuple[Family[Address], Family[Address]],
    shared: ListenerDependencies,
    connect: ClientFactory,
    *,
    sockets: SocketKeys,
) -> list[Listener]:
    in_the_clear, with_tls = families
    return [
        Listener(
            _listener_settings(config, sockets, address),
            shared.loop_context,
            connect,
            tls,
            connection_slots=shared.connection_slots,
        )
        for family, tls in ((in_the_clear, None), (with_tls, shared.tls))
        for address in config.family(family).values()
    ]


def socket_options(config: Config) -> dict[str, object]:
    """The socket options of client listeners and of their connections."""
    return {
        "backlog": config.get(settings.SOCKETS.backlog),
        "nodelay": config.get(settings.SOCKETS.nodelay),
        "keepalive": config.get(settings.SOCKETS.keepalive),
    }


def _listener_settings(config: Config, keys: SocketKeys, address: Address) -> ListenerSettings:
    is_closing = config.get(keys.send_timeout_close)
    return ListenerSettings(
        host=address.host,
        port=address.port,
        backlog=config.get(keys.backlog),
        unix_mode=config.get(settings.UNIX_MODE),
        is_proxied=config.get(settings.PROXY_PROTOCOL),
        options=SocketOptions(
            is_nodelay=config.get(keys.nodelay),
            is_keepalive=config.get(keys.keepalive),
            send_size=config.get(keys.send_size),
            receive_size=config.get(keys.receive_size),
            service=config.get(keys.service),
            priority=config.get(keys.priority),
            # With a linger timeout, closing a socket would block the event loop.
            is_reset=config.get(keys.linger) and not config.get(keys.linger_s),
        ),
        send_timeout_ms=config.get(keys.send_timeout) if is_closing else None,
        handshake_ms=config.get(settings.HANDSHAKE),
        tls_handshake_ms=config.get(settings.TLS_HANDSHAKE),
    )


def tls(config: Config) -> Tls | None:
    """The TLS settings of the AMQP and stream listeners; None if there is no TLS listener.

    Raises TlsError if they cannot be followed.
    """
    if not config.family(settings.TLS) and not config.family(settings.STREAM_TLS):
        return None
    sources = revocation_sources(config)
    return Tls(
        replace(
            _tls_settings(config, settings.LISTENER_TLS),
            revocation_check=sources.check,
            revocation_directories=sources.directories,
            are_lists_fetched=bool(sources.servers),
            login_from=config.get(settings.LOGIN_FROM),
            login_san_type=config.get(settings.LOGIN_SAN_TYPE),
            login_san_index=config.get(settings.LOGIN_SAN_INDEX),
        )
    )


def http_tls(config: Config, port: HttpPortKeys, keys: TlsKeys) -> Tls | None:
    """The TLS settings of an HTTP port; None if none of its address, port and TLS keys is set."""
    if not any(map(config.is_set, (*port.all[:2], *keys.all))):
        return None
    return Tls(_tls_settings(config, keys))


def _tls_settings(config: Config, keys: TlsKeys) -> TlsSettings:
    return TlsSettings(
        prefix=keys.prefix,
        certificate_file=config.get(keys.certificate_file),
        key_file=config.get(keys.key_file),
        authority_file=config.get(keys.authority_file),
        password=config.get(keys.password),
        is_peer_verified=config.get(keys.is_peer_verified),
        is_certificate_required=config.get(keys.is_certificate_required),
        versions=numbered_values(config.family(keys.versions)),
        ciphers=numbered_values(config.family(keys.ciphers)),
        is_own_cipher_order=config.get(keys.is_own_cipher_order),
    )


async def listen(starting: Awaitable[None], host: str, port: int) -> None:
    """Await `starting`; raises BootRefused if the address cannot be listened on."""
    try:
        await starting
    except OSError as error:
        reason = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        if is_unix(host):
            raise BootRefused(
                f"cannot listen on the Unix socket {host}: {error.strerror or error}"
            ) from error
        raise BootRefused(f"cannot listen on {host or 'every interface'}, port {port}: {reason}") from error


def numbered_values(family: dict[str, Value]) -> tuple[Value, ...]:
    """Return the values whose names are 1, 2, 3, …, in that order."""
    names = sorted(family, key=lambda name: (len(name), name) if name.isdigit() else (99, name))
    return tuple(family[name] for name in names)
