"""The handshake of a stream connection: peer properties, SASL, tune, open (RabbitMQ 3.10.8, measured).

    AWAIT_PROPERTIES ─▶ AWAIT_SASL ─▶ AWAIT_TUNE ─▶ AWAIT_OPEN ─▶ OPEN

A refused client is sent a response code, and then the socket is closed. A client that sends malformed or
unexpected frames is sent nothing.
"""

import platform
from enum import Enum

from msgspec import Struct, field

from warren import __version__, limits
from warren.errors import AmqpError, LoginRefused
from warren.metadata.users import User
from warren.session.admission_control import AdmissionControl
from warren.session.events.event_publisher import STREAM
from warren.session.login import Login
from warren.session.peer import Peer
from warren.session.server_properties import PRODUCT
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, MalformedFrame, ResponseCode
from warren.wire.streams.commands import StreamCommand, encode_response

# Clients choose features by it: docs/decisions/0118-stream-port-version.md.
COMPATIBLE_VERSION = "3.13.7"


class StreamHandshakePhase(Enum):
    """The awaited step."""

    PROPERTIES = "properties"
    SASL = "sasl"
    TUNE = "tune"
    OPEN = "open"
    DONE = "done"
    REFUSED = "refused"


class StreamSettings(Struct, frozen=True, kw_only=True):
    """The limits proposed to clients, and the addresses advertised to them."""

    cluster_name: str
    frame_size_max: int = limits.STREAM_FRAME_SIZE_MAX
    # Before the connection is open.
    frame_size_handshake: int = limits.STREAM_FRAME_SIZE_HANDSHAKE
    super_stream_partitions_max: int = limits.STREAM_NAMES_MAX
    # Messages that a connection may have unconfirmed, and how many fewer it must have to be read again.
    unconfirmed_max: int = limits.STREAM_UNCONFIRMED_MAX
    unblocking_min: int = limits.STREAM_UNCONFIRMED_MAX // 4
    heartbeat_s: int = limits.HEARTBEAT_S
    timeout_ms: int = limits.HANDSHAKE_MS
    # Empty and 0 advertise the address to which the client has connected.
    advertised_host: str = ""
    advertised_port: int = 0
    # The address advertised to clients connected with TLS.
    advertised_tls_host: str = ""
    advertised_tls_port: int = 0

    def advertised_address(self, peer: Peer) -> tuple[str, int]:
        """The host and port advertised to `peer`."""
        host, port = self.advertised_host, self.advertised_port
        if peer.is_tls:
            host, port = self.advertised_tls_host, self.advertised_tls_port
        return host or peer.server_host, port or peer.server_port


class StreamHandshake(Struct):
    """The handshake of one client; its fields are the result once `phase` is DONE."""

    admission_control: AdmissionControl
    peer: Peer
    settings: StreamSettings
    # When the client is dropped unless the handshake is complete (ms).
    deadline: int
    phase: StreamHandshakePhase = StreamHandshakePhase.PROPERTIES
    account: User | None = None
    # The user of the last successful authentication.
    last_authenticated: User | None = None
    mechanism: str = ""
    vhost: str = ""
    frame_size_max: int = 0
    heartbeat_s: int = 0
    client_properties: dict[str, str] = field(default_factory=dict)
    # The response code, once `phase` is REFUSED.
    refusal: ResponseCode = ResponseCode.OK

    def login(self) -> Login:
        """The login of a complete handshake."""
        assert self.account is not None
        return Login(
            account=self.account,
            mechanism=self.mechanism,
            heartbeat_s=self.heartbeat_s,
            client_properties=dict(self.client_properties),
        )

    async def handle(self, command: StreamCommand, correlation: int) -> bytes:
        """Return the answer to `command`; MalformedFrame if it is not the awaited one."""
        match command:
            case commands.PeerProperties() if self.phase is StreamHandshakePhase.PROPERTIES:
                self.client_properties = command.properties
                self.phase = StreamHandshakePhase.SASL
                properties = self._server_properties()
                return commands.PeerPropertiesResponse(ResponseCode.OK, properties).encode(correlation)
            case commands.SaslHandshake() if self.phase in (
                StreamHandshakePhase.PROPERTIES,
                StreamHandshakePhase.SASL,
            ):
                self.phase = StreamHandshakePhase.SASL
                mechanisms = self.admission_control.mechanisms(self.peer)
                return commands.SaslHandshakeResponse(ResponseCode.OK, mechanisms).encode(correlation)
            case commands.SaslAuthenticate() if self.phase is StreamHandshakePhase.SASL:
                return await self._authenticate(command, correlation)
            case commands.Tune() | commands.TuneResponse() if self.phase is StreamHandshakePhase.TUNE:
                return self._tune(command.frame_size_max, command.heartbeat_s)
            case commands.Open() if self.phase is StreamHandshakePhase.OPEN:
                return await self._open(command, correlation)
            case commands.Heartbeat():
                return b""
        raise MalformedFrame(f"{type(command).__name__} while {self.phase.value} is awaited")

    def _server_properties(self) -> dict[str, str]:
        return {
            "cluster_name": self.settings.cluster_name,
            "copyright": "Copyright (c) the Warren contributors",
            "information": "Licensed under the Apache License 2.0",
            "platform": f"Python {platform.python_version()}",
            "product": PRODUCT,
            "version": COMPATIBLE_VERSION,
            "warren": __version__,
        }

    async def check_credentials(self, command: commands.SaslAuthenticate) -> ResponseCode:
        """Authenticate by `command`; if that succeeds, `last_authenticated` is set."""
        if command.mechanism not in self.admission_control.mechanisms(self.peer):
            return ResponseCode.SASL_MECHANISM_NOT_SUPPORTED
        try:
            self.last_authenticated = await self.admission_control.authenticate(
                command.mechanism, command.response, self.peer, protocol=STREAM
            )
        except LoginRefused:
            return ResponseCode.AUTHENTICATION_FAILURE
        except AmqpError:
            return ResponseCode.SASL_ERROR
        return ResponseCode.OK

    async def _authenticate(self, command: commands.SaslAuthenticate, correlation: int) -> bytes:
        code = await self.check_credentials(command)
        answer = encode_response(CommandKey.SASL_AUTHENTICATE, correlation, code)
        if code is not ResponseCode.OK:
            self.phase = StreamHandshakePhase.REFUSED
            self.refusal = code
            return answer
        self.account = self.last_authenticated
        self.mechanism = command.mechanism
        self.phase = StreamHandshakePhase.TUNE
        return answer + commands.Tune(self.settings.frame_size_max, self.settings.heartbeat_s).encode()

    def _tune(self, frame_size_max: int, heartbeat_s: int) -> bytes:
        # 0 is no limit, so that the broker's limit applies.
        limit = self.settings.frame_size_max
        self.frame_size_max = (
            min(frame_size_max, limit) if frame_size_max and limit else frame_size_max or limit
        )
        self.heartbeat_s = heartbeat_s
        self.phase = StreamHandshakePhase.OPEN
        return b""

    async def _open(self, command: commands.Open, correlation: int) -> bytes:
        assert self.account is not None
        try:
            await self.admission_control.admit(self.account, command.vhost, self.peer)
        except AmqpError:
            self.phase = StreamHandshakePhase.REFUSED
            self.refusal = ResponseCode.VHOST_ACCESS_FAILURE
            return encode_response(CommandKey.OPEN, correlation, self.refusal)
        self.vhost = command.vhost
        self.phase = StreamHandshakePhase.DONE
        host, port = self.settings.advertised_address(self.peer)
        properties = {"advertised_host": host, "advertised_port": str(port)}
        return commands.OpenResponse(ResponseCode.OK, properties).encode(correlation)
