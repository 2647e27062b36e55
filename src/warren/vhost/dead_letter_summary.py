"""Dead letters: the queues that can contain them, and the dead letters of one queue by cause."""

from collections.abc import Iterator

from msgspec import Struct, field

from warren.errors import NotFound
from warren.limits import CAUSE_KEYS_MAX, DEAD_LETTER_CAUSES_MAX, NAME_SIZE_MAX, REACHED_PER_TURN
from warren.model.message import BODY_END, NO_PROPERTIES, Message, encode_address
from warren.queues.capabilities import local_queue
from warren.queues.local import LocalQueue
from warren.queues.redrive_headers import FirstDeath, origin_of
from warren.routing.exchange import BY_KEY, Exchange
from warren.vhost.queue_scan import QueueScan
from warren.vhost.vhost import VirtualHost

# An empty message, routed to find the queues that dead letters can reach.
_NOTHING = Message(b"\0\0", NO_PROPERTIES, BODY_END, 0)


class DeadLetterGroup(Struct):
    """Dead letters with the same first death: the same queue, reason and exchange."""

    first_death: FirstDeath
    count: int = 0
    # When they arrived in their present queue (ms).
    oldest: int = 0
    newest: int = 0
    byte_count: int = 0
    # Some of the routing keys with which they were published.
    routing_keys: list[str] = field(default_factory=list)
    # The place of the first one.
    place: int = 0


class DeadLetterSummary(Struct):
    """The dead letters of one queue by cause, as far as the queue was examined."""

    causes: dict[FirstDeath, DeadLetterGroup] = field(default_factory=dict)
    # Messages of causes beyond the bound, and messages that are not dead letters.
    other_count: int = 0
    non_dead_letter_count: int = 0
    examined: int = 0
    # The place to continue at; None when all messages were examined.
    place: int | None = 0

    @property
    def count(self) -> int:
        """The number of dead letters found."""
        return self.other_count + sum(cause.count for cause in self.causes.values())

    def add(self, message: Message, place: int) -> None:
        """Count `message`, which is at `place`."""
        origin = origin_of(message)
        if origin is None:
            self.non_dead_letter_count += 1
            return
        cause = self.causes.get(origin.first_death)
        if cause is None:
            if len(self.causes) >= DEAD_LETTER_CAUSES_MAX:
                self.other_count += 1
                return
            when = message.published_at
            cause = self.causes[origin.first_death] = DeadLetterGroup(
                origin.first_death, oldest=when, newest=when, place=place
            )
        cause.count += 1
        cause.byte_count += message.body_size
        cause.oldest = min(cause.oldest, message.published_at)
        cause.newest = max(cause.newest, message.published_at)
        if len(cause.routing_keys) < CAUSE_KEYS_MAX and origin.routing_key not in cause.routing_keys:
            cause.routing_keys.append(origin.routing_key)


def scan_dead_letters(
    queue: LocalQueue, found: DeadLetterSummary, examined_max: int, per_turn: int
) -> Iterator[None]:
    """Add the dead letters of `queue` to `found`, in pieces, from its place on.

    Examines `examined_max` at most.
    """
    queue_scan = QueueScan(queue, found.place or 0)
    while not queue_scan.is_over and queue_scan.examined < examined_max:
        for peeked in queue_scan.next_messages(min(per_turn, examined_max - queue_scan.examined)):
            found.add(peeked.message, peeked.place)
        found.examined = queue_scan.examined
        found.place = None if queue_scan.is_over else queue_scan.place
        yield


def reachable(vhost: VirtualHost) -> Iterator[dict[LocalQueue, None]]:
    """The queues that a dead letter of `vhost` can reach, in pieces, some of them repeatedly.

    If an exchange on the way routes by more than the routing key, all its bindings count.
    """
    ends: dict[tuple[str, str | None], None] = {}
    for number, queue in enumerate(list(vhost.queues.values())):
        exchange = queue.settings.dead_letter_exchange
        if exchange is not None:
            ends[exchange, queue.settings.dead_letter_routing_key] = None
        if not number % REACHED_PER_TURN:
            yield {}
    walked: set[str] = set()
    for exchange, key in ends:
        route = _routed(vhost, exchange, key)
        if route is not None:
            yield dict.fromkeys(route)
        else:
            yield from _walk(vhost, exchange, walked)


def _routed(vhost: VirtualHost, exchange: str, key: str | None) -> list[LocalQueue] | None:
    """The queues that `key` leads to, if the destination depends on the key alone; else None."""
    if key is None or not (_is_name(exchange) and _is_name(key)):
        return None
    try:
        route = vhost.router.find(encode_address(exchange, key), _NOTHING)
    except NotFound:
        return []
    if route.decides != BY_KEY:
        return None
    return [*filter(None, map(local_queue, route.destinations))]


def _walk(vhost: VirtualHost, name: str, walked: set[str]) -> Iterator[dict[LocalQueue, None]]:
    """All queues behind the exchange `name`, and behind the exchanges bound to it."""
    waiting = [name]
    while waiting:
        name = waiting.pop()
        exchange = vhost.router.exchanges.get(name)
        # Every queue is bound to the default exchange, and a dead letter keeps its key, so it could reach any
        # queue.
        if exchange is None or name in walked or not name:
            continue
        walked.add(name)
        if exchange.alternate is not None:
            waiting.append(exchange.alternate)
        found: dict[LocalQueue, None] = {}
        for number, binding in enumerate(list(exchange.each_binding())):
            queue = local_queue(binding.destination)
            if queue is not None:
                found[queue] = None
            elif isinstance(binding.destination, Exchange):
                waiting.append(binding.destination.name)
            if not number % REACHED_PER_TURN:
                yield found
                found = {}
        yield found


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
