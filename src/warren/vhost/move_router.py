"""Determines the destination of a moved message: a given queue, the queue it died in, or an exchange.

The user who moves messages needs the permissions of a publisher: `admit` raises the error that would close a
channel. A queue is addressed by its name, as through the default exchange, while the message keeps its
exchange and routing key, or those that it had before it died. An exchange routes the message.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from warren.errors import NotFound
from warren.limits import NAME_SIZE_MAX
from warren.model.message import Message, encode_address
from warren.queues.capabilities import refusing_queue
from warren.queues.redrive_headers import (
    DeadLetterOrigin,
    RedriveHeader,
    mark_redriven,
    origin_of,
    redrive_number,
    undo_redrive,
)
from warren.queues.vhost_queue import VhostQueue
from warren.routing.copies import addresses_of
from warren.vhost.message_edit import MessageEdit
from warren.vhost.undo_log import UndoLog
from warren.vhost.vhost import VirtualHost

NO_ORIGIN = "not a dead letter: its origin is unknown"
UNROUTABLE = "unroutable: no queue is bound with its routing key"
FULL = "queue '{}' is full and refuses it"
TOO_LONG = "the name of an exchange or the routing key is too long"

# Raises an AmqpError unless the user may publish to the address.
PublishCheck = Callable[[bytes], object]


class CannotMove(Exception):
    """The message cannot go anywhere; the text says why."""


class MoveRoute(Struct, frozen=True):
    """The destinations of one message, and the message as it is sent."""

    message: Message
    # Empty if the message is not needed any more.
    destinations: tuple[object, ...]
    # True if an exchange routed it, and counts it.
    is_routed: bool = False


class MoveRouter(Protocol):
    """Determines the destination of each message."""

    def route(self, message: Message, number: int) -> MoveRoute:
        """The route of `message`, number `number` of those moved. Raises CannotMove or an AmqpError."""


class QueueMoveRouter(Struct, frozen=True):
    """Moves all messages unchanged to one queue."""

    vhost: VirtualHost
    name: str
    admit: PublishCheck

    def route(self, message: Message, number: int) -> MoveRoute:
        """The route of `message` to the queue. Raises CannotMove or an AmqpError."""
        queue = queue_named(self.vhost, self.name, self.admit)
        return queue_route(queue, message.anew(self.vhost.turn.now()))


class RedriveRouter(Struct, frozen=True, kw_only=True):
    """Redrives dead letters to their origin or to a given destination, with a new life."""

    vhost: VirtualHost
    # The id of the redrive, and the queue with the dead letters.
    id: str
    source: str
    admit: PublishCheck
    edit: MessageEdit
    # The destination of all messages; None: the queue in which each message died first.
    queue: str | None = None
    # True if an exchange routes the messages: the given one, or the original one of each message.
    is_routed: bool = False
    exchange: str | None = None
    routing_key: str | None = None

    def route(self, message: Message, number: int) -> MoveRoute:
        """The route of `message` with its edits applied. Raises CannotMove or an AmqpError."""
        origin = origin_of(message)
        address = self._address(message, origin)
        properties = message.properties()
        self.edit.apply(properties)
        mark_redriven(
            properties, message, origin, RedriveHeader(self.id, number, self.source, self.vhost.turn.now())
        )
        sent = Message.compose(address, properties, self.edit.content(message), now=self.vhost.turn.now())
        if not self.is_routed:
            name = self.queue
            if name is None:
                name = _known(origin).first_death.queue
            return queue_route(queue_named(self.vhost, name, self.admit), sent)
        for each in addresses_of(sent):
            self.admit(each)
        destinations = self.vhost.router.rehearse(address, sent)
        if not destinations:
            raise CannotMove(UNROUTABLE)
        _check_room(destinations, sent)
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


class UndoRouter(Struct, frozen=True, kw_only=True):
    """Returns the messages of a redrive to the dead-letter queue, each once."""

    vhost: VirtualHost
    redrive: str
    queue: str
    admit: PublishCheck
    # If an exchange had put a message into several queues, one copy is returned and the others are dropped.
    undo_log: UndoLog

    def route(self, message: Message, number: int) -> MoveRoute:
        """The route of `message`, which is part of the redrive. Raises CannotMove or an AmqpError."""
        which = redrive_number(message, self.redrive) or 0
        if self.undo_log.back.has(which):
            return MoveRoute(message, ())
        queue = queue_named(self.vhost, self.queue, self.admit)
        route = queue_route(queue, undo_redrive(message, self.vhost.turn.now()))
        self.undo_log.mark_undone(which)
        return route


def queue_named(vhost: VirtualHost, name: str, admit: PublishCheck) -> VhostQueue:
    """The queue `name`; CannotMove, NotFound or AccessRefused if the user cannot publish to it."""
    if not _is_name(name):
        raise CannotMove(TOO_LONG)
    admit(encode_address("", name))
    queue = vhost.queues.get(name)
    if queue is None:
        raise NotFound(f"no queue '{name}' in vhost '{vhost.name}'")
    return queue


def queue_route(queue: VhostQueue, message: Message) -> MoveRoute:
    """The route of `message` to `queue`; CannotMove if the queue would refuse it."""
    _check_room((queue,), message)
    return MoveRoute(message, (queue,))


def _check_room(destinations: tuple[object, ...], message: Message) -> None:
    full = refusing_queue(destinations, message)
    if full is not None:
        raise CannotMove(FULL.format(full.name))


def _known(origin: DeadLetterOrigin | None) -> DeadLetterOrigin:
    if origin is None:
        raise CannotMove(NO_ORIGIN)
    return origin


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
