"""The handshake of a connection: protocol header, start, tune, open (0-9-1 §2.2.4).

Without I/O: methods take what arrived and return what is to be sent; `refuse` decides how to treat a
client that failed. A client that fails before it has authenticated, or while it negotiates, is sent
nothing and dropped after three seconds, which slows down guessing. It is sent connection.close if only
`open` is missing, or if its login fails and it has the capability `authentication_failure_close`. All
phases together have one time limit. All as measured on RabbitMQ 3.10.8.
"""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from warren import limits
from warren.errors import AmqpError, ChannelNumberError, CommandInvalid, LoginRefused, NotAllowed
from warren.framing.driven_connection import LINK_CAPABILITY
from warren.metadata.users import User
from warren.session.admission_control import AdmissionControl
from warren.session.login import Login
from warren.session.peer import Peer
from warren.wire.method import Method
from warren.wire.methods import (
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
)

# Sent for any other header, before the socket is closed (0-9-1 §4.2.2).
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
PROTOCOL_HEADER_SIZE = 8

# Protocol header -> the version that connection.start names; older headers are accepted as in RabbitMQ.
VERSIONS = {
    PROTOCOL_HEADER: (0, 9),
    b"AMQP\x01\x01\x00\x09": (0, 9),
    b"AMQP\x01\x01\x08\x00": (8, 0),
    b"AMQP\x01\x01\x09\x01": (8, 0),
}

AUTHENTICATION_FAILURE_CLOSE = "authentication_failure_close"

_NOBODY = User(name="", password_hash=b"", hashing_algorithm="", tags=(), limits={})
_OPEN_OK = ConnectionOpenOk().encode()


class HandshakePhase(StrEnum):
    """The awaited step; the values are RabbitMQ's names of the states, which its texts use."""

    AWAIT_HEADER = "pre_init"
    AWAIT_START_OK = "starting"
    AWAIT_TUNE_OK = "tuning"
    AWAIT_OPEN = "opening"
    RUNNING = "running"
    REFUSED = "closed"


TRANSITIONS = {
    (HandshakePhase.AWAIT_START_OK, ConnectionStartOk): HandshakePhase.AWAIT_TUNE_OK,
    (HandshakePhase.AWAIT_TUNE_OK, ConnectionTuneOk): HandshakePhase.AWAIT_OPEN,
    (HandshakePhase.AWAIT_OPEN, ConnectionOpen): HandshakePhase.RUNNING,
}


class HandshakeSettings(Struct, frozen=True, kw_only=True):
    """The limits proposed to clients, and the timeouts of the handshake."""

    server_properties: dict[str, object]
    channels_max: int = limits.CHANNELS_MAX
    frame_size_max: int = limits.FRAME_SIZE_MAX
    frame_size_handshake: int = limits.FRAME_SIZE_HANDSHAKE
    heartbeat_s: int = limits.HEARTBEAT_S
    timeout_ms: int = limits.HANDSHAKE_MS
    refusal_delay_ms: int = limits.REFUSAL_DELAY_MS


class Handshake:
    """The handshake of one client; its attributes are the result once `is_complete`.

    Methods that answer return the payload of the one method to send, or b"".
    """

    __slots__ = (
        "_admission_control",
        "_deadline",
        "_offer",
        "_peer",
        "_settings",
        "account",
        "capabilities",
        "channels_max",
        "client_properties",
        "frame_size_max",
        "heartbeat_s",
        "mechanism",
        "phase",
        "version",
        "vhost",
    )

    def __init__(self, admission_control: AdmissionControl, peer: Peer, offer: "Offer", now: int) -> None:
        settings = offer.settings
        self._admission_control = admission_control
        self._peer = peer
        self._offer = offer
        self._settings = settings
        self._deadline: int | None = now + settings.timeout_ms
        self.phase = HandshakePhase.AWAIT_HEADER
        self.version = (0, 9)
        self.mechanism = ""
        # The user, once authenticated.
        self.account = _NOBODY
        self.vhost = ""
        self.client_properties: dict[str, object] = {}
        self.capabilities: frozenset[str] = frozenset()
        self.channels_max = settings.channels_max
        self.frame_size_max = settings.frame_size_handshake
        self.heartbeat_s = 0

    @property
    def is_complete(self) -> bool:
        """True when the connection is open."""
        return self.phase is HandshakePhase.RUNNING

    def login(self) -> Login:
        """The negotiated login of a complete handshake."""
        return Login(
            account=self.account,
            mechanism=self.mechanism,
            heartbeat_s=self.heartbeat_s,
            client_properties=self.client_properties,
            channels_max=self.channels_max,
            capabilities=self.capabilities,
        )

    def deadline(self) -> int | None:
        """The time (ms) at which the client is dropped silently; None if there is no limit."""
        return self._deadline

    def is_expired(self, now: int) -> bool:
        """True if the deadline has passed, so that the client must be dropped."""
        return self._deadline is not None and now >= self._deadline

    def receive_header(self, data: bytes) -> bytes:
        """Return the answer to a protocol header; b"" means to send PROTOCOL_HEADER and close."""
        assert self.phase is HandshakePhase.AWAIT_HEADER
        version = VERSIONS.get(data)
        if version is None:
            self.phase = HandshakePhase.REFUSED
            return b""
        self.phase = HandshakePhase.AWAIT_START_OK
        self.version = version
        return self._offer.start(version, self._admission_control.mechanisms(self._peer))

    async def handle(self, method: Method) -> bytes:
        """Return the answer to `method`, received on channel 0; an exception must be passed to `refuse`."""
        phase = TRANSITIONS.get((self.phase, type(method)))
        try:
            if phase is None:
                raise ChannelNumberError(f"unexpected method in connection state {self.phase.value}")
            answer = await self._perform(method)
        except AmqpError as error:
            if error.method_index is None:
                error.method_index = method.index
            raise
        self.phase = phase
        if phase is HandshakePhase.RUNNING:
            self._deadline = None
        return answer

    def extend_deadline(self, pause_ms: int) -> None:
        """Extend the deadline by `pause_ms`, during which the client waited for the broker."""
        if self._deadline is not None:
            self._deadline += pause_ms

    def refuse(self, error: AmqpError, now: int) -> bool:
        """End the handshake; True if `error` is sent, False if the client is dropped silently later."""
        is_told = self.phase is HandshakePhase.AWAIT_OPEN or (
            isinstance(error, LoginRefused) and AUTHENTICATION_FAILURE_CLOSE in self.capabilities
        )
        self.phase = HandshakePhase.REFUSED
        self._deadline = None if is_told else now + self._settings.refusal_delay_ms
        return is_told

    async def _perform(self, method: Method) -> bytes:
        if isinstance(method, ConnectionStartOk):
            return await self._start(method)
        if isinstance(method, ConnectionTuneOk):
            return self._tune(method)
        assert isinstance(method, ConnectionOpen)
        await self._admission_control.admit(self.account, method.virtual_host, self._peer)
        self.vhost = method.virtual_host
        return _OPEN_OK

    async def _start(self, method: ConnectionStartOk) -> bytes:
        self.client_properties = method.client_properties
        self.capabilities = _capabilities(method.client_properties)
        self.mechanism = method.mechanism
        if method.mechanism not in self._admission_control.mechanisms(self._peer):
            raise CommandInvalid(f"unknown authentication mechanism '{method.mechanism}'")
        response = method.response.encode("utf-8", "surrogateescape")
        peer = self._peer
        if LINK_CAPABILITY in self.capabilities:
            peer = replace(peer, is_link=True)
        self.account = await self._admission_control.authenticate(method.mechanism, response, peer)
        return self._offer.tune

    def _tune(self, method: ConnectionTuneOk) -> bytes:
        settings = self._settings
        _check("frame_max", method.frame_max, limits.FRAME_SIZE_MIN, settings.frame_size_max)
        _check("channel_max", method.channel_max, 1, settings.channels_max)
        self.frame_size_max = method.frame_max or settings.frame_size_max
        self.channels_max = method.channel_max
        self.heartbeat_s = method.heartbeat
        return b""


class Offer:
    """The start and tune methods sent to all clients, encoded once."""

    __slots__ = ("_starts", "settings", "tune")

    def __init__(self, settings: HandshakeSettings) -> None:
        self.settings = settings
        tune = ConnectionTune(settings.channels_max, settings.frame_size_max, settings.heartbeat_s)
        self.tune = tune.encode()
        self._starts: dict[tuple[tuple[int, int], tuple[str, ...]], bytes] = {}

    def rename_cluster(self, name: str) -> None:
        """Tell clients that connect from here on that the cluster is called `name`."""
        self.settings.server_properties["cluster_name"] = name
        self._starts.clear()

    def start(self, version: tuple[int, int], mechanisms: tuple[str, ...]) -> bytes:
        """The encoded connection.start for a protocol version and SASL mechanisms in order of preference."""
        start = self._starts.get((version, mechanisms))
        if start is None:
            start = self._starts[version, mechanisms] = self._encoded_start(version, mechanisms)
        return start

    def _encoded_start(self, version: tuple[int, int], mechanisms: tuple[str, ...]) -> bytes:
        major, minor = version
        properties = self.settings.server_properties
        if major == 8:
            properties = {**properties, "capabilities": {}}
        return ConnectionStart(major, minor, properties, " ".join(mechanisms), "en_US").encode()


def _capabilities(client_properties: dict[str, object]) -> frozenset[str]:
    announced = client_properties.get("capabilities")
    if not isinstance(announced, dict):
        return frozenset()
    return frozenset(name for name, value in announced.items() if value is True)


def _check(field: str, value: int, minimum: int, maximum: int) -> None:
    """The client may lower a proposed limit, not raise it; 0 asks for no limit (0-9-1 §1.4.2.6)."""
    if value and value < minimum:
        raise NotAllowed(f"negotiated {field} = {value} is lower than the minimum allowed value ({minimum})")
    if maximum and (value == 0 or value > maximum):
        raise NotAllowed(f"negotiated {field} = {value} is higher than the maximum allowed value ({maximum})")
