"""Event exchange: publishes events as messages to `amq.rabbitmq.event` in one virtual host.

Routing keys and headers are those of RabbitMQ's event exchange. Callers first check `is_heard`: while the
exchange has no bindings, an event costs only this check.
"""

from collections.abc import Callable, Mapping
from ipaddress import ip_address

from warren.model.coroutine_driver import Later
from warren.model.erlang_terms import printed_entry
from warren.model.message import BODY_END, Message
from warren.queues.vhost_queue import VhostQueue
from warren.session.events.connection_facts import ConnectionFacts
from warren.session.login import Login
from warren.session.peer import Peer
from warren.vhost.internal_publisher import InternalPublisher
from warren.vhost.vhost import VirtualHost
from warren.wire.properties import BasicProperties
from warren.wire.table import Table, Value

EXCHANGE = "amq.rabbitmq.event"

_PERSISTENT = 2
# The protocols with login events, and RabbitMQ's names of them in events.
AMQP = "amqp091"
# AMQP without a socket.
DIRECT = "direct"
STREAM = "stream"
PROTOCOLS = {AMQP: "{0,9,1}", DIRECT: "{'Direct',{0,9,1}}", STREAM: "stream"}
_TYPES = {AMQP: "network", DIRECT: "direct"}


class EventPublisher:
    """Publishes events if the event exchange has bindings."""

    __slots__ = ("_feed", "_run", "node_name")

    def __init__(
        self, find: Callable[[], VirtualHost | None], later: Later, *, node_name: str, run: int = 0
    ) -> None:
        """`find` returns the virtual host of the event exchange; None if it is not running.

        `run` distinguishes the pids of this run of the node from those of others: its incarnation.
        """
        self._feed = InternalPublisher(EXCHANGE, find, later)
        self.node_name = node_name
        self._run = run

    def is_heard(self) -> bool:
        """True if the event exchange has bindings."""
        return self._feed.is_heard()

    def publish(self, key: str, user: str | None, facts: Mapping[str, Value]) -> None:
        """Publish the event `key` with the headers `facts`, performed by `user`; None if by no user."""
        whose = {} if user is None else {"user_who_performed_action": user}

        def make(now: int) -> Message:
            headers: Table = {**whose, **facts, "timestamp_in_ms": now}
            properties = BasicProperties(delivery_mode=_PERSISTENT, timestamp=now // 1000, headers=headers)
            return self._feed.composed(key, properties, BODY_END, now)

        self._feed.add(make)

    def pid(self, connection: int, channel: int = 0) -> str:
        """The pid of a connection, or of one of its channels, in the form of an Erlang process id."""
        return f"<{self.node_name}.{self._run}.{connection}.{channel}>"

    def opened(self, connection: ConnectionFacts) -> None:
        """`connection.created`: the handshake of `connection` is complete."""
        login = connection.login
        if login is None or not self.is_heard():
            return
        facts: Table = {
            "connected_at": connection.connected_at,
            "channel_max": login.channels_max,
            "frame_max": connection.frame_size_max,
            "timeout": login.heartbeat_s,
            "vhost": connection.vhost_name,
            "user": login.user,
            "auth_mechanism": login.mechanism,
        }
        if connection.protocol in _TYPES:
            facts["type"] = _TYPES[connection.protocol]
        self._created(connection.peer, connection.protocol, {**facts, **self._client(connection, login)})

    def closed(self, connection: ConnectionFacts) -> None:
        """`connection.closed`: `connection` was open and has ended."""
        if connection.login is not None and self.is_heard():
            self.publish("connection.closed", None, self._client(connection, connection.login))

    def unsubscribed(self, serial: int, stream: VhostQueue, number: int) -> None:
        """The subscription `number` of the stream connection with `serial` has ended.

        As in RabbitMQ, there is no event when a subscription begins.
        """
        if self.is_heard():
            facts: Table = {
                "queue": stream.name,
                "vhost": stream.vhost_name,
                "channel": self.pid(serial),
                "consumer_tag": f"stream.subid-{number}",
            }
            self.publish("consumer.deleted", None, facts)

    def _client(self, connection: ConnectionFacts, login: Login) -> Table:
        """The facts that identify one connection."""
        facts: Table = {
            "client_properties": printed(login.client_properties),
            "node": self.node_name,
            "pid": self.pid(connection.owner.serial),
            "name": connection.peer.name,
        }
        return {**facts, **_given_name(login.client_properties)}

    def _created(self, peer: Peer, protocol: str, facts: Table) -> None:
        more: Table = {
            "protocol": PROTOCOLS[protocol],
            "ssl_hash": "",
            "ssl_cipher": peer.tls_cipher,
            "ssl_key_exchange": "",
            "ssl_protocol": peer.tls_protocol,
            "peer_cert_validity": "",
            "peer_cert_issuer": "",
            "peer_cert_subject": "",
            "ssl": peer.is_tls,
            "peer_host": printed_host(peer.host),
            "host": printed_host(peer.server_host),
            "peer_port": peer.port,
            "port": peer.server_port,
        }
        self.publish("connection.created", str(facts["user"]), {**facts, **more})

    def authenticated(
        self, user: str, mechanism: str, peer: Peer, *, protocol: str = AMQP, error: str = ""
    ) -> None:
        """Publish a login of `user`: successful, or failed with `error`."""
        if not self.is_heard():
            return
        facts: Table = {
            "ssl": peer.is_tls,
            "auth_mechanism": mechanism,
            "protocol": PROTOCOLS[protocol],
            "peer_port": peer.port,
            "peer_host": printed_host(peer.host),
            "connection_name": peer.name,
            "host": printed_host(peer.server_host),
            "name": user,
            "connection_type": "network",
        }
        if error:
            # An Erlang string: a list of its characters.
            self.publish("user.authentication.failure", None, {"error": [ord(c) for c in error], **facts})
        else:
            self.publish("user.authentication.success", None, facts)

    def alarm(self, source: str, *, is_set: bool) -> None:
        """The alarm of `source` was set or cleared."""
        if self.is_heard():
            key = "alarm.set" if is_set else "alarm.cleared"
            self.publish(key, None, {"node": self.node_name, "source": source})


def printed(table: Mapping[str, Value]) -> list[str]:
    """The entries of a table as RabbitMQ's events have them, printed as Erlang terms."""
    return [printed_entry(key, value) for key, value in table.items()]


def printed_host(host: str) -> str:
    """An address as an Erlang tuple: {127,0,0,1}."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return "{" + host.replace(".", ",") + "}"
    return "{" + ",".join(str(int(part, 16)) for part in address.exploded.split(":")) + "}"


def _given_name(client: Mapping[str, object]) -> Table:
    name = client.get("connection_name")
    return {"user_provided_name": name} if isinstance(name, str) else {}
