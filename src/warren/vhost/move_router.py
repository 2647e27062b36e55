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
from warren.queues.redrive_headers import (
    DeadLetterOrigin,
    RedriveHeader,
    mark_redriven,
    origin_of,
    redrive_number,
    undo_redrive,
)
from warren.routing.copies import addresses_of
from warren.vhost.message_edit import MessageEdit
from warren.vhost.undo_log import UndoLog
from warren.vhost.vhost import VirtualHost

NO_ORIGIN = "it is no dead letter: nothing says where it came from"
UNROUTABLE = "no queue is bound for it"
FULL = "queue '{}' is full and refuses it"
TOO_LONG = "the name of an exchange or the routing key is too long"

# Raises unless the user may publish to the address, as a channel would.
PublishCheck = Callable[[bytes], object]


class CannotMove(Exception):
    """The message cannot go anywhere; the text says why."""


@dataclass(frozen=True, slots=True)
class MoveRoute:
    """Where one message goes, and as what."""

    message: Message
    # None of them: it is not needed any more.
    destinations: tuple[object, ...]
    # True if an exchange was asked, and counts it.
    is_routed: bool = False


class MoveRouter(Protocol):
    """Says for each message where it goes."""

    def route(self, message: Message, number: int) -> MoveRoute:
        """Where `message` goes, as the `number`-th of those that are moved. Stays, or an AmqpError."""


@dataclass(frozen=True, slots=True)
class QueueMoveRouter:
    """All go to one queue, as they are."""

    vhost: VirtualHost
    name: str
    admit: PublishCheck

    def route(self, message: Message, number: int) -> MoveRoute:
        """Where `message` goes."""
        queue = queue_named(self.vhost, self.name, self.admit)
        return queue_route(queue, message.anew(self.vhost.now))


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveRouter:
    """Dead letters go back to where they came from, or to where they should, and begin a new life."""

    vhost: VirtualHost
    # The id of the redrive, and the queue that the dead letters are in.
    id: str
    source: str
    admit: PublishCheck
    edit: MessageEdit
    # The queue that all go to; None: each to the one that it died in first.
    queue: str | None = None
    # True: an exchange routes them again; one that is named, or each by its own.
    is_routed: bool = False
    exchange: str | None = None
    routing_key: str | None = None

    def route(self, message: Message, number: int) -> MoveRoute:
        """Where `message` goes."""
        origin = origin_of(message)
        address = self._address(message, origin)
        properties = message.properties()
        self.edit.apply(properties)
        mark_redriven(
            properties, message, origin, RedriveHeader(self.id, number, self.source, self.vhost.now)
        )
        sent = Message.compose(address, properties, self.edit.content(message), now=self.vhost.now)
        if not self.is_routed:
            name = self.queue
            if name is None:
                name = _known(origin).first_death.queue
            return queue_route(queue_named(self.vhost, name, self.admit), sent)
        for each in addresses_of(sent):
            self.admit(each)
        destinations = self.vhost.router.route(address, sent)
        if not destinations:
            raise CannotMove(UNROUTABLE)
        for queue in destinations:
            _check_room(queue, sent)
        return MoveRoute(sent, destinations, is_routed=True)

    def _address(self, message: Message, origin: DeadLetterOrigin | None) -> bytes:
        exchange, key = self.exchange, self.routing_key
        if origin is None and self.is_routed and (exchange is None or key is None):
            raise CannotMove(NO_ORIGIN)
        if exchange is None:
            exchange = message.exchange if origin is None else origin.first_death.exchange
        if key is None:
            key = message.routing_key if origin is None else origin.routing_key
        if not (_is_name(exchange) and _is_name(key)):
            raise CannotMove(TOO_LONG)
        return encode_address(exchange, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRouter:
    """Messages of a redrive go back to the queue that they were in as dead letters, each once."""

    vhost: VirtualHost
    redrive: str
    queue: str
    admit: PublishCheck
    # Of what an exchange had put into several queues, one comes back, and the others just go.
    undo_log: UndoLog

    def route(self, message: Message, number: int) -> MoveRoute:
        """Where `message`, one of the redrive, goes."""
        which = redrive_number(message, self.redrive) or 0
        if self.undo_log.back.has(which):
            return MoveRoute(message, ())
        queue = queue_named(self.vhost, self.queue, self.admit)
        route = queue_route(queue, undo_redrive(message, self.vhost.now))
        self.undo_log.mark_undone(which)
        return route


def queue_named(vhost: VirtualHost, name: str, admit: PublishCheck) -> LocalQueue:
    """The queue `name`, to which somebody may publish."""
    if not _is_name(name):
        raise CannotMove(TOO_LONG)
    admit(encode_address("", name))
    queue = vhost.queues.get(name)
    if queue is None:
        raise NotFound(f"no queue '{name}' in vhost '{vhost.name}'")
    return queue


def queue_route(queue: LocalQueue, message: Message) -> MoveRoute:
    """`message` goes to `queue`, unless that refuses it."""
    _check_room(queue, message)
    return MoveRoute(message, (queue,))


def _check_room(queue: object, message: Message) -> None:
    if isinstance(queue, LocalQueue) and queue.refuses(message):
        raise CannotMove(FULL.format(queue.name))


def _known(origin: DeadLetterOrigin | None) -> DeadLetterOrigin:
    if origin is None:
        raise CannotMove(NO_ORIGIN)
    return origin


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
