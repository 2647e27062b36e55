"""One test for Warren and for RabbitMQ: a broker with its HTTP API, and a virtual host for each test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import broker
from tests.patience import patient
from tests.rabbitmq import RabbitMQ
from tests.warren_process import free_port

WARREN, RABBITMQ = "warren", "rabbitmq"
# RabbitMQ's own cases poll for up to 30 s; what a link of Warren does here takes well under one.
SETTLED_S_MAX = patient(30)
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
_PLUGINS = ("rabbitmq_management", "rabbitmq_shovel_management", "rabbitmq_federation_management")


@dataclass
class Site:
    """A running broker, or one virtual host of it."""

    kind: str
    ports: dict[str, int]
    vhost: str = "/"
    # True for RabbitMQ 4, whose answers are not always those of 3.10.8.
    is_rabbitmq_4: bool = False
    api: HttpClient = field(init=False)

    def __post_init__(self) -> None:
        self.api = HttpClient(self)

    @property
    def answers(self) -> str:
        """The key of its answers in `link_differences`: `rabbitmq 4` has some of its own."""
        return "rabbitmq 4" if self.is_rabbitmq_4 else self.kind

    @property
    def port(self) -> int:
        """The port of AMQP without TLS."""
        return self.ports["amqp"]

    @property
    def uri(self) -> str:
        """The address of the virtual host, with the login of `guest`: a link of Warren has no default one."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/{quoted(self.vhost)}"

    @property
    def shown_uri(self) -> str:
        """`uri` as links show it, without credentials."""
        return self.uri.replace("guest:guest@", "")

    @property
    def at(self) -> str:
        """The virtual host as a segment of a path."""
        return quoted(self.vhost)

    def in_vhost(self, name: str) -> Site:
        """The virtual host `name`, which is made if there is none."""
        assert self.api.status(f"PUT /vhosts/{quoted(name)}") in (201, 204)
        assert self.api.status(f"PUT /permissions/{quoted(name)}/guest", ALL) in (201, 204)
        return Site(self.kind, self.ports, name, self.is_rabbitmq_4)

    def remove(self) -> None:
        """Delete the virtual host."""
        assert self.api.status(f"DELETE /vhosts/{self.at}") == 204
        self.api.close()

    @contextmanager
    def channel(self, user: str = "guest") -> Iterator[BlockingChannel]:
        """A channel, with confirms, of a user whose password is the name."""
        credentials = pika.PlainCredentials(user, user)
        parameters = pika.ConnectionParameters("127.0.0.1", self.port, self.vhost, credentials)
        connection = pika.BlockingConnection(parameters)
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel
        with suppress(AMQPError):
            connection.close()

    # --- parameters and policies ----------------------------------------------------------------------

    def set(self, component: str, name: str, value: object) -> None:
        """Set a parameter."""
        path = f"/parameters/{component}/{self.at}/{name}"
        answer = self.api.ask(f"PUT {path}", {"value": value})
        assert answer.status in (201, 204), answer

    def clear(self, component: str, name: str) -> None:
        """Clear a parameter."""
        assert self.api.status(f"DELETE /parameters/{component}/{self.at}/{name}") == 204

    def upstream(self, name: str, uri: object, **settings: object) -> None:
        """Set an upstream; `_` in the names of settings stands for `-`."""
        value = {key.replace("_", "-"): item for key, item in settings.items()}
        self.set("federation-upstream", name, {"uri": uri, **value})

    def policy(self, name: str, pattern: str, apply_to: str = "all", **definition: object) -> None:
        """Set a policy; `_` in the names of its keys stands for `-`."""
        keys = {key.replace("_", "-"): item for key, item in definition.items()}
        body = {"pattern": pattern, "apply-to": apply_to, "definition": keys}
        assert self.api.status(f"PUT /policies/{self.at}/{name}", body) in (201, 204)

    def clear_policy(self, name: str) -> None:
        """Delete a policy."""
        assert self.api.status(f"DELETE /policies/{self.at}/{name}") == 204

    # --- what is seen ---------------------------------------------------------------------------------

    def links(self) -> list[dict[str, Any]]:
        """The federation links of the virtual host."""
        return list(self.api.get(f"/federation-links/{self.at}"))

    def linked(self) -> list[tuple[str, str]]:
        """The exchange or queue of each link, and its upstream."""
        return sorted((link[link["type"]], link["upstream"]) for link in self.links())

    def keys_from(self, exchange: str) -> list[str]:
        """The routing keys of the bindings of an exchange, which need not exist."""
        found = self.api.ask(f"GET /exchanges/{self.at}/{quoted(exchange)}/bindings/source")
        return [] if found.status == 404 else sorted(entry["routing_key"] for entry in found.value)

    def internals(self) -> list[str]:
        """The queues and exchanges that links have declared here."""
        found = [
            *self.api.get(f"/queues/{self.at}?columns=name"),
            *self.api.get(f"/exchanges/{self.at}?columns=name"),
        ]
        return sorted(one["name"] for one in found if one["name"].startswith("federation: "))


@contextmanager
def site(kind: str, folder: Path, plugins: tuple[str, ...] = _PLUGINS) -> Iterator[Site]:
    """A started broker; `folder` must be empty. A RabbitMQ has `plugins`."""
    if kind == WARREN:
        with broker() as started:
            yield Site(kind, started.ports)
        return
    http = free_port()
    settings = f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {http}\n"
    rabbitmq = RabbitMQ(folder, listen="127.0.0.1", settings=settings, plugins=plugins)
    rabbitmq.start()
    try:
        ports = {"amqp": rabbitmq.port, "http": http}
        yield Site(kind, ports, is_rabbitmq_4=rabbitmq.version() >= (4,))
    finally:
        rabbitmq.stop()


def becomes(found: Callable[[], object], expected: object, within_s: float = SETTLED_S_MAX) -> None:
    """Wait until `found` returns what is expected."""
    deadline = time.monotonic() + within_s
    while (last := found()) != expected:
        assert time.monotonic() < deadline, f"{last!r} is not {expected!r}"
        time.sleep(0.02)


def bound_queue(channel: BlockingChannel, exchange: str, key: str) -> str:
    """A new exclusive queue, bound to `exchange`."""
    queue = str(channel.queue_declare("", exclusive=True).method.queue)
    channel.queue_bind(queue, exchange, key)
    return queue


def consumed(channel: BlockingChannel, queue: str, count: int) -> list[bytes]:
    """The next `count` messages of `queue`, sorted; the others that the consumer was given are returned."""
    bodies: list[bytes] = []
    for method, _, body in channel.consume(queue, inactivity_timeout=SETTLED_S_MAX):
        assert body is not None, f"{len(bodies)} of {count} messages have arrived: {bodies[:10]}"
        channel.basic_ack(method.delivery_tag)
        bodies.append(body)
        if len(bodies) == count:
            break
    channel.cancel()
    return sorted(bodies)


def is_empty(channel: BlockingChannel, queue: str) -> bool:
    """True if basic.get finds nothing, asked twice."""
    return all(channel.basic_get(queue, auto_ack=True)[0] is None for _ in range(2))
