"""Opens connections to other brokers: names, sockets and TLS, then the AMQP handshake.

A connection is opened within a time, or fails with one sentence that says in which phase, without secrets.
Once its socket is connected it is driven by `protocol`, as the connections of clients are.
"""

import asyncio
import os
import socket
import ssl
import stat

from msgspec.structs import replace

from warren.blocking.tls import TlsNames, client_context, refusal_hint
from warren.client.connection import ClientConnection, ClientPhase, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import CAPABILITIES, PLAIN, ClientLogin
from warren.client.uri import ClientTls, Target
from warren.framing.driven_connection import LINK_CAPABILITY
from warren.limits_relay import (
    CLIENT_HANDSHAKE_MS,
    CLIENT_HANDSHAKE_MS_MAX,
    CLIENT_TLS_FILE_SIZE_MAX,
    LINK_HEARTBEAT_S,
)
from warren.model.coroutine_driver import drive
from warren.session.peer import Peer
from warren.transport.host_socket import (
    Address,
    HostUnreachable,
    addresses_of,
    connect_to_one,
    failure_reason,
)
from warren.transport.protocol import AmqpProtocol, ConnectionRegistry, LoopContext

_NAMES = TlsNames(
    ca_file="cacertfile", cert_file="certfile", key_file="keyfile", key_password="password"
)  # fmt: skip


class OutgoingConnections:
    """Opens the connections of one node to other brokers, and knows those that are open."""

    def __init__(self, loop_context: LoopContext) -> None:
        self.loop_context = loop_context
        self.protocols: set[AmqpProtocol] = set()
        # The largest number of sockets; None is no limit. The number of attempts that may have one already.
        self.maximum: int | None = None
        self._attempts = 0

    async def open(self, target: Target, name: str, listener: ConnectionListener) -> ClientConnection:
        """Return an open connection to `target`, which the broker shows under `name`.

        Raises BrokerRefused; if it fails or is cancelled, its socket is closed.
        """
        login = _login(target, name)
        if not login.mechanisms:
            raise BrokerRefused("its URI has no user and password, and a link has no default ones")
        timeout_ms = min(target.timeout_ms or CLIENT_HANDSHAKE_MS, CLIENT_HANDSHAKE_MS_MAX)
        if self.maximum is not None and len(self.protocols) + self._attempts >= self.maximum:
            raise BrokerRefused(
                f"this node has no more than {self.maximum} connections to other brokers: "
                "raise its limit on file descriptors"
            )
        attempt = _Attempt(self, target, replace(login, handshake_ms=timeout_ms), listener)
        self._attempts += 1
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await attempt.open()
        except TimeoutError:
            raise BrokerRefused(f"{attempt.phase()}: no answer within {timeout_ms} ms") from None
        finally:
            self._attempts -= 1

    def abort(self) -> None:
        """Drop all connections at once."""
        for protocol in list(self.protocols):
            protocol.abort()


class _Attempt(ConnectionRegistry):
    """One connection to `target`: the registry of its protocol."""

    def __init__(
        self,
        outgoing: OutgoingConnections,
        target: Target,
        login: ClientLogin,
        listener: ConnectionListener,
    ) -> None:
        self._outgoing = outgoing
        self._target = target
        self._login = login
        self._listener = listener
        # The phase before the AMQP handshake.
        self._phase = f"name resolution of '{target.host}'"
        self._connection: ClientConnection | None = None

    @property
    def _where(self) -> str:
        host = f"[{self._target.host}]" if ":" in self._target.host else self._target.host
        return f"{host}:{self._target.port}"

    def phase(self) -> str:
        """What the attempt is doing."""
        if self._connection is None:
            return self._phase
        return _handshake_phase(self._connection, self._login, self._where)

    async def open(self) -> ClientConnection:
        """Open the connection. Raises BrokerRefused."""
        connected = await self._connect(await self._addresses())
        loop_context = self._outgoing.loop_context
        protocol = AmqpProtocol(self, loop_context)
        try:
            await self._start(connected, protocol)
            assert self._connection is not None
            await perform_handshake(self._connection)
        except BrokerRefused as error:
            if self._connection is None:
                raise
            failure = described_failure(self._connection, self._login, self._where, error)
            raise BrokerRefused(f"{failure}{self._hint()}", error.code) from None
        finally:
            if self._connection is None or not self._connection.is_open:
                protocol.abort()
                connected.close()
        return self._connection

    async def _addresses(self) -> list[Address]:
        try:
            return await addresses_of(self._target.host, self._target.port)
        except HostUnreachable as error:
            raise self._failed(str(error)) from None

    async def _connect(self, addresses: list[Address]) -> socket.socket:
        self._phase = f"connection to {self._where}"
        try:
            return await connect_to_one(addresses, self._login.handshake_ms / 1000)
        except HostUnreachable as error:
            raise self._failed(str(error)) from None

    async def _start(self, connected: socket.socket, protocol: AmqpProtocol) -> None:
        """Perform the handshake of TLS, if any, and start `protocol`. Raises BrokerRefused."""
        loop = asyncio.get_running_loop()
        context, server_name = None, None
        if self._target.is_tls:
            self._phase = f"TLS with {self._where}"
            tls = self._target.tls
            try:
                context = await asyncio.to_thread(_context, tls)
            except ValueError as error:
                raise self._failed(str(error)) from None
            server_name = self._target.host if tls.server_name is None else tls.server_name
        try:
            await loop.create_connection(
                lambda: protocol, sock=connected, ssl=context, server_hostname=server_name
            )
        except ssl.SSLCertVerificationError as error:
            text = f"the certificate of the broker is not accepted: {error.verify_message}"
            raise self._failed(text + self._hint(error)) from None
        except (OSError, ValueError) as error:
            raise self._failed(failure_reason(error) + self._hint(error)) from None

    def _failed(self, reason: str) -> BrokerRefused:
        return BrokerRefused(f"{self.phase()}: {reason}")

    def _hint(self, error: BaseException | None = None) -> str:
        """Return advice for a TLS connection that has failed with `error`, or was lost in the handshake."""
        target = self._target
        if not target.is_tls or (error is None and self._connection is not None and self._is_answered()):
            return ""
        hint = refusal_hint(error or EOFError(), target.tls, _NAMES)
        return f"; {hint}" if hint else ""

    def _is_answered(self) -> bool:
        """True if the broker has answered in AMQP, so that TLS was not the problem."""
        return self._connection is not None and self._connection.phase is not ClientPhase.GREETING

    # --- ConnectionRegistry -----------------------------------------------------------------------

    def admit(self, protocol: AmqpProtocol, transport: asyncio.Transport) -> ClientConnection:
        """Create the connection of a connected socket."""
        here, there = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        here, there = here or ("", 0), there or (self._target.host, self._target.port)
        protocol.peer = Peer(host=here[0], port=here[1], server_host=there[0], server_port=there[1])
        self._outgoing.protocols.add(protocol)
        self._connection = ClientConnection(
            self._login, self._outgoing.loop_context.turn, protocol, self._listener
        )
        return self._connection

    def opened(self, protocol: AmqpProtocol) -> None:
        """Called when the handshake is complete."""

    def connection_closed(self, protocol: AmqpProtocol) -> None:
        """Forget a connection whose socket was closed."""
        self._outgoing.protocols.discard(protocol)


def _login(target: Target, name: str) -> ClientLogin:
    """Return how to log in; without a mechanism if the URI has nothing to log in with."""
    return ClientLogin(
        capabilities=(*CAPABILITIES, LINK_CAPABILITY),
        user=target.user,
        password=target.password,
        vhost=target.vhost,
        connection_name=name,
        mechanisms=tuple(one for one in target.mechanisms if one != PLAIN or target.user),
        heartbeat_s=LINK_HEARTBEAT_S if target.heartbeat_s is None else target.heartbeat_s,
        frame_size_max=target.frame_size_max,
        channels_max=target.channels_max,
    )


def described_failure(
    connection: ClientConnection, login: ClientLogin, where: str, error: BrokerRefused
) -> BrokerRefused:
    """Return the `error` of a handshake with `where`, with the phase in which it failed."""
    return BrokerRefused(f"{_handshake_phase(connection, login, where)}: {error}", error.code)


def _handshake_phase(connection: ClientConnection, login: ClientLogin, where: str) -> str:
    """Describe what `connection` does, or did last, in its handshake."""
    if connection.phase is ClientPhase.LOGIN:
        who = f"of user '{login.user}' " if PLAIN in login.mechanisms else ""
        return f"login {who}at {where}"
    if connection.phase is ClientPhase.VHOST:
        return f"virtual host '{login.vhost}' at {where}"
    return f"AMQP handshake with {where}"


async def perform_handshake(connection: ClientConnection) -> None:
    """Perform the AMQP handshake of `connection`. Raises BrokerRefused."""
    result: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def handshake() -> None:
        try:
            await connection.open()
        except BrokerRefused as error:
            if not result.done():
                result.set_exception(error)
        else:
            if not result.done():
                result.set_result(None)

    drive(handshake())
    await result


def _context(tls: ClientTls) -> ssl.SSLContext:
    """Return the context for the files of `tls`; call it in a thread. Raises ValueError."""
    for name, file in (("cacertfile", tls.ca_file), ("certfile", tls.cert_file), ("keyfile", tls.key_file)):
        if file:
            _check_file(name, file)
    context = client_context(tls, _NAMES)
    if tls.server_name == "":
        context.check_hostname = False
    return context


def _check_file(name: str, file: str) -> None:
    """Raise ValueError unless `file` can be read without waiting: a pipe could keep the thread for ever."""
    try:
        found = os.stat(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} {file}: {failure_reason(error)}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{name} {file}: not a file")
    if found.st_size > CLIENT_TLS_FILE_SIZE_MAX:
        raise ValueError(f"{name} {file}: larger than {CLIENT_TLS_FILE_SIZE_MAX} bytes")
