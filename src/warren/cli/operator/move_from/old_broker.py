"""The broker that is moved from: its addresses, its definitions, and what its queues have."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from warren.blocking.connection import BlockingConnection, ConnectOptions
from warren.blocking.http_target import HttpTarget
from warren.cli.operator.api_target import target_of
from warren.cli.operator.failures import UNREACHABLE, USAGE, Failure
from warren.cli.operator.management_client import ManagementClient, Row
from warren.cli.operator.options import secret
from warren.cli.operator.session import Arguments
from warren.cli.operator.tls import tls_context, tls_of
from warren.client.errors import BrokerRefused
from warren.client.rabbitmq_uri import parse_target, uri_without_credentials
from warren.wire import methods

# The ports of the management API that belong to the schemes of AMQP.
_MANAGEMENT = {"amqp": ("http", 15672), "amqps": ("https", 15671)}
_SHAPE = (
    "URI is amqp://USER:PASSWORD@HOST:PORT or amqps://… without a virtual host; "
    "--management-uri is the address of the management API"
)
_COLUMNS = (
    "vhost,name,type,durable,auto_delete,exclusive,owner_pid_details,arguments,consumers,messages,"
    "messages_unacknowledged"
)
_STREAM = "stream"
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class OldQueue:
    """A queue of the old broker that can be moved: not exclusive."""

    vhost: str
    name: str
    is_stream: bool
    # How Warren declares it, if it is not in the definitions.
    declaration: Mapping[str, Any]
    # Ready messages, counted now; of a stream as of the last statistics.
    messages: int
    # As of the last statistics, which RabbitMQ collects every 5 s.
    unacknowledged: int
    consumers: int


class OldBroker:
    """Asks the old broker; nothing is changed there."""

    def __init__(self, uri: str, management_uri: str | None, arguments: Arguments) -> None:
        """Parse the addresses; raises Failure. What they lack is in the environment, or asked for."""
        self._tls = tls_of(arguments)
        self._connections: dict[str, BlockingConnection] = {}
        parts = _parts(uri)
        user, password = _credentials(parts.username, parts.password)
        self._address = (parts.scheme, parts.netloc.rpartition("@")[2], parts.query)
        self._login = f"{quote(user, safe='')}:{quote(password, safe='')}"
        try:
            parse_target(self.uri("/"))
        except ValueError as error:
            raise Failure(str(error), USAGE) from None
        target = _management_target(parts, management_uri, user, password)
        self._api = ManagementClient(target, arguments["timeout"], self._tls)

    @property
    def name(self) -> str:
        """The address without credentials."""
        return uri_without_credentials(f"{self._address[0]}://{self._address[1]}")

    def uri(self, vhost: str) -> str:
        """The address of a virtual host, with credentials, for a link."""
        scheme, address, query = self._address
        uri = f"{scheme}://{self._login}@{address}/{quote(vhost, safe='')}"
        return f"{uri}?{query}" if query else uri

    def definitions(self) -> Row:
        """Return its definitions, with passwords as hashes. Raises Failure."""
        found: Row = self._api.get("/definitions")
        return found

    def is_answering(self) -> bool:
        """True if it takes AMQP connections, or refuses them."""
        try:
            self._connect("/").close()
        except BrokerRefused:
            return True
        except OSError:
            return False
        return True

    def queues(self) -> list[OldQueue]:
        """Return its queues except exclusive ones, with their messages as of now. Raises Failure."""
        rows = [
            row for row in self._api.rows("/queues", {"columns": _COLUMNS}, _no_progress) if _may_move(row)
        ]
        # A passive declaration counts no messages of a stream.
        counts = self.ready((row["vhost"], row["name"]) for row in rows if not _is_stream(row))
        counts |= {(row["vhost"], row["name"]): row.get("messages", 0) for row in rows if _is_stream(row)}
        return [
            _queue(row, count) for row in rows if (count := counts[row["vhost"], row["name"]]) is not None
        ]

    def ready(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int | None]:
        """Count ready messages over AMQP: the management API is behind by seconds. None: no such queue."""
        counts: dict[tuple[str, str], int | None] = {}
        by_vhost: dict[str, list[str]] = {}
        for vhost, name in names:
            by_vhost.setdefault(vhost, []).append(name)
        for vhost, queues in by_vhost.items():
            connection = self._connections.get(vhost) or self._open(vhost)
            counts |= {(vhost, queue): _count(connection, queue) for queue in queues}
        return counts

    def _open(self, vhost: str) -> BlockingConnection:
        """Open the connection that counts in a virtual host until the command ends. Raises Failure."""
        try:
            connection = self._connections[vhost] = self._connect(vhost)
            connection.open_channel()
        except (OSError, BrokerRefused) as error:
            raise Failure(f"{self.name}: cannot connect to vhost {vhost!r}: {error}", UNREACHABLE) from None
        return connection

    def close(self) -> None:
        """Close all connections to it."""
        self._api.close()
        for connection in self._connections.values():
            connection.close()

    def _connect(self, vhost: str) -> BlockingConnection:
        target = parse_target(self.uri(vhost))
        context = tls_context(self._tls) if target.is_tls else None
        return BlockingConnection(target, ConnectOptions(product="warren move-from", context=context))


def _parts(uri: str) -> Any:
    try:
        parts = urlsplit(uri)
        is_valid = (
            parts.scheme in _MANAGEMENT and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        is_valid = False
    if not is_valid or parts.path not in ("", "/") or parts.fragment:
        raise Failure(_SHAPE, USAGE)
    return parts


def _credentials(user: str | None, password: str | None) -> tuple[str, str]:
    """Return the decoded credentials; missing ones are in the environment, or the password is asked for."""
    name = unquote(user) if user is not None else os.environ.get("WARREN_OLD_USER", "guest")
    if password is not None:
        return name, unquote(password)
    known = os.environ.get("WARREN_OLD_PASSWORD")
    return name, secret(f"Password of {name} at the old broker") if known is None else known


def _management_target(parts: Any, given: str | None, user: str, password: str) -> HttpTarget:
    if given is None:
        scheme, port = _MANAGEMENT[parts.scheme]
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        given = f"{scheme}://{host}:{port}"
    return target_of(given, {"WARREN_USER": user, "WARREN_PASSWORD": password}, secret)


def _may_move(row: Row) -> bool:
    # A queue without statistics has no owner, and one of a statistic that is off has no `exclusive`.
    return not row.get("exclusive") and not row.get("owner_pid_details")


def _is_stream(row: Row) -> bool:
    # The name of a type is that of its module in RabbitMQ 3.
    return _STREAM in row.get("type", "") or row.get("arguments", {}).get("x-queue-type") == _STREAM


def _queue(row: Row, messages: int) -> OldQueue:
    return OldQueue(
        vhost=row["vhost"],
        name=row["name"],
        is_stream=_is_stream(row),
        declaration={key: row[key] for key in ("durable", "auto_delete", "arguments")},
        messages=messages,
        unacknowledged=row.get("messages_unacknowledged", 0),
        consumers=row.get("consumers", 0),
    )


def _count(connection: BlockingConnection, queue: str) -> int | None:
    passive = methods.QueueDeclare(queue=queue, passive=True)
    try:
        return connection.call(1, passive, methods.QueueDeclareOk).message_count
    except BrokerRefused as error:
        if error.code != _NOT_FOUND:
            raise Failure(f"queue {queue!r} of the old broker cannot be counted: {error}") from None
    # The refusal has closed the channel.
    connection.open_channel()
    return None


def _no_progress(count: int, total: int) -> None:
    """Ignore the progress of a list."""
