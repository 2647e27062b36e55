"""The clients of a site in a simulation: they publish with confirms, declare, and consume.

They are connected without a network, and lose their connection when the site crashes.
"""

from collections.abc import Callable

from tests.sim.relay_site import Node, Site
from tests.unit.session.client import Client, ReceivedMethod, call, publication

from warren.wire import methods
from warren.wire.method import Method
from warren.wire.table import Table


class Publication:
    """A message that was published, and what became of it."""

    def __init__(self, site: str, number: int, key: str) -> None:
        self.site = site
        self.number = number
        self.key = key
        self.is_confirmed = False

    @property
    def body(self) -> bytes:
        """The body, which identifies it."""
        return f"{self.site} {self.number} {self.key}".encode()

    def __repr__(self) -> str:
        return self.body.decode()


class Publisher:
    """Publishes persistent messages with confirms, numbered over all runs of the site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._node: Node | None = None
        self._client: Client | None = None
        self._sequence = 0
        self._unconfirmed: dict[int, Publication] = {}
        self.sent: list[Publication] = []

    def publish(self, exchange: str, key: str) -> Publication:
        """Publish the next message."""
        client = self._connected()
        publication_ = Publication(self._site.node_name, len(self.sent), key)
        self.sent.append(publication_)
        self._sequence += 1
        self._unconfirmed[self._sequence] = publication_
        client.send(publication(key, publication_.body, exchange=exchange, delivery_mode=2))
        return publication_

    def poll(self) -> None:
        """Receive confirms."""
        if self._client is None or self._node is None or self._node.is_over:
            return
        for received in self._client.hear():
            assert isinstance(received.method, methods.BasicAck), received
            last = received.method.delivery_tag
            first = min(self._unconfirmed) if received.method.multiple else last
            for sequence in range(first, last + 1):
                self._unconfirmed.pop(sequence).is_confirmed = True

    def _connected(self) -> Client:
        node = self._site.node
        if self._client is None or self._node is not node:
            self._node, self._client = node, node.client()
            self._client.ask(methods.ConfirmSelect())
            self._sequence = 0
            self._unconfirmed = {}
        return self._client


class Operator:
    """Declares and binds, one command at a time; `answered` is called when a command was answered."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._node: Node | None = None
        self._client: Client | None = None
        self._waiting: list[Callable[[bool], None]] = []

    @property
    def is_waiting(self) -> bool:
        """True if a command was not answered."""
        return bool(self._waiting)

    def ask(self, method: Method, answered: Callable[[bool], None] = lambda _: None) -> None:
        """Send `method`; `answered` is called with False if the site crashes before the answer."""
        node = self._site.node
        if self._client is None or self._node is not node:
            self._node, self._client = node, node.client()
        self._waiting.append(answered)
        self._client.send(call(method))

    def poll(self) -> None:
        """Receive answers."""
        if self._client is None or self._node is None:
            return
        if self._node.is_over:
            waiting, self._waiting = self._waiting, []
            for answered in waiting:
                answered(False)
            self._client = None
            return
        for received in self._client.hear():
            assert not isinstance(received.method, methods.ChannelClose | methods.ConnectionClose), received
            self._waiting.pop(0)(True)


class Consumer:
    """Consumes from a queue with acknowledgements; what it has acknowledged is what it has received."""

    def __init__(self, site: Site, queue: str, prefetch: int, arguments: Table | None = None) -> None:
        self.node = site.node
        self._client = self.node.client()
        self._client.ask(methods.BasicQos(prefetch_count=prefetch))
        consume = methods.BasicConsume(queue=queue, consumer_tag="c", arguments=arguments or {})
        self._held: list[ReceivedMethod] = []
        self._client.send(call(consume))

    @property
    def held_count(self) -> int:
        """The number of messages that are not acknowledged."""
        return len(self._held)

    def poll(self) -> None:
        """Receive deliveries."""
        if not self.node.is_over:
            answers = self._client.hear()
            self._held += [one for one in answers if isinstance(one.method, methods.BasicDeliver)]

    def acknowledge(self, count: int) -> list[ReceivedMethod]:
        """Acknowledge the oldest `count` messages, and return them."""
        done, self._held = self._held[:count], self._held[count:]
        if done and not self.node.is_over:
            last = done[-1].method
            assert isinstance(last, methods.BasicDeliver)
            self._client.send(call(methods.BasicAck(delivery_tag=last.delivery_tag, multiple=True)))
        return [] if self.node.is_over else done

    def close(self) -> None:
        """Close the connection: what is not acknowledged returns to the queue."""
        self._held = []
        if not self.node.is_over:
            self._client.connection.lost()


def take_all(node: Node, queue: str) -> list[ReceivedMethod]:
    """Take all ready messages of a queue."""
    client = node.client()
    found = []
    while True:
        (answer,) = client.ask(methods.BasicGet(queue=queue, no_ack=True))
        if isinstance(answer.method, methods.BasicGetEmpty):
            client.connection.lost()
            return found
        found.append(answer)
