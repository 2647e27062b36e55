"""Where a message goes that is moved: to one queue, to the queue or exchange that it came from, or to any.

Whoever moves it has the rights of a client who publishes: `admit` raises what a channel would be closed with.
A queue is reached by its name, as with the default exchange, and the message keeps the exchange and the
routing key that it has, or had before it died. An exchange routes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from warren.errors import NotFound
from warren.limits import NAME_SIZE_MAX
from warren.model.message import Message, encode_address
from warren.queues.local import LocalQueue
from warren.queues.redriven import Mark, Origin, begin_anew, number_in, origin_of, taken_back
from warren.routing.copies import addresses_of
from warren.vhost.edit import Edit
from warren.vhost.trail import Trail
from warren.vhost.vhost import VirtualHost

NO_ORIGIN = "it is no dead letter: nothing says where it came from"
UNROUTABLE = "no queue is bound for it"
FULL = "queue '{}' is full and refuses it"
TOO_LONG = "the name of an exchange or the routing key is too long"

# Raises unless the user may publish to the address, as a channel would.
Admit = Callable[[bytes], object]


class Stays(Exception):
    """The message cannot go anywhere; the text says why."""


@dataclass(frozen=True, slots=True)
class Way:
    """Where one message goes, and as what."""

    message: Message
    # None of them: it is not needed any more.
    destinations: tuple[object, ...]
    # True if an exchange was asked, and counts it.
    is_routed: bool = False


class Ways(Protocol):
    """Says for each message where it goes."""

    def way(self, message: Message, number: int) -> Way:
        """Where `message` goes, as the `number`-th of those that are moved. Stays, or an AmqpError."""


@dataclass(frozen=True, slots=True)
class ToQueue:
    """All go to one queue, as they are."""

    vhost: VirtualHost
    name: str
    admit: Admit

    def way(self, message: Message, number: int) -> Way:
        """Where `message` goes."""
        queue = queue_named(self.vhost, self.name, self.admit)
        return to_queue(queue, message.anew(self.vhost.now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriving:
    """Dead letters go back to where they came from, or to where they should, and begin a new life."""

    vhost: VirtualHost
    # The id of the redrive, and the queue that the dead letters are in.
    id: str
    source: str
    admit: Admit
    edit: Edit
    # The queue that all go to; None: each to the one that it died in first.
    queue: str | None = None
    # True: an exchange routes them again; one that is named, or each by its own.
    is_routed: bool = False
    exchange: str | None = None
    routing_key: str | None = None

    def way(self, message: Message, number: int) -> Way:
        """Where `message` goes."""
        origin = origin_of(message)
        address = self._address(message, origin)
        properties = message.properties()
        self.edit.apply(properties)
        begin_anew(properties, message, origin, Mark(self.id, number, self.source, self.vhost.now))
        sent = Message.compose(address, properties, self.edit.content(message), now=self.vhost.now)
        if not self.is_routed:
            name = self.queue
            if name is None:
                name = _known(origin).grave.queue
            return to_queue(queue_named(self.vhost, name, self.admit), sent)
        for each in addresses_of(sent):
            self.admit(each)
        destinations = self.vhost.router.route(address, sent)
        if not destinations:
            raise Stays(UNROUTABLE)
        for queue in destinations:
            _check_room(queue, sent)
        return Way(sent, destinations, is_routed=True)

    def _address(self, message: Message, origin: Origin | None) -> bytes:
        exchange, key = self.exchange, self.routing_key
        if origin is None and self.is_routed and (exchange is None or key is None):
            raise Stays(NO_ORIGIN)
        if exchange is None:
            exchange = message.exchange if origin is None else origin.grave.exchange
        if key is None:
            key = message.routing_key if origin is None else origin.routing_key
        if not (_is_name(exchange) and _is_name(key)):
            raise Stays(TOO_LONG)
        return encode_address(exchange, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakingBack:
    """Messages of a redrive go back to the queue that they were in as dead letters, each once."""

    vhost: VirtualHost
    redrive: str
    queue: str
    admit: Admit
    # Of what an exchange had put into several queues, one comes back, and the others just go.
    trail: Trail

    def way(self, message: Message, number: int) -> Way:
        """Where `message`, one of the redrive, goes."""
        which = number_in(message, self.redrive) or 0
        if self.trail.back.has(which):
            return Way(message, ())
        queue = queue_named(self.vhost, self.queue, self.admit)
        way = to_queue(queue, taken_back(message, self.vhost.now))
        self.trail.took_back(which)
        return way


def queue_named(vhost: VirtualHost, name: str, admit: Admit) -> LocalQueue:
    """The queue `name`, to which somebody may publish."""
    if not _is_name(name):
        raise Stays(TOO_LONG)
    admit(encode_address("", name))
    queue = vhost.queues.get(name)
    if queue is None:
        raise NotFound(f"no queue '{name}' in vhost '{vhost.name}'")
    return queue


def to_queue(queue: LocalQueue, message: Message) -> Way:
    """`message` goes to `queue`, unless that refuses it."""
    _check_room(queue, message)
    return Way(message, (queue,))


def _check_room(queue: object, message: Message) -> None:
    if isinstance(queue, LocalQueue) and queue.refuses(message):
        raise Stays(FULL.format(queue.name))


def _known(origin: Origin | None) -> Origin:
    if origin is None:
        raise Stays(NO_ORIGIN)
    return origin


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
