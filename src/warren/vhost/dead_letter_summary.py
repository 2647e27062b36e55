"""Dead letters: the queues that they may be in, and those of one queue by what they died of, and where."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from warren.errors import NotFound
from warren.limits import CAUSE_KEYS_MAX, DEAD_LETTER_CAUSES_MAX, NAME_SIZE_MAX, REACHED_PER_TURN
from warren.model.message import BODY_END, NO_PROPERTIES, Message, encode_address
from warren.queues.local import LocalQueue
from warren.queues.redrive_headers import FirstDeath, origin_of
from warren.routing.exchange import BY_KEY, Exchange
from warren.vhost.queue_scan import QueueScan
from warren.vhost.vhost import VirtualHost

# What is routed to find out where dead letters go.
_NOTHING = Message(b"\0\0", NO_PROPERTIES, BODY_END, 0)


@dataclass(slots=True)
class DeadLetterGroup:
    """Dead letters that died first in the same queue, of the same reason, and came by the same exchange."""

    first_death: FirstDeath
    count: int = 0
    # When they came to where they are (ms).
    oldest: int = 0
    newest: int = 0
    octets: int = 0
    # Some of the keys that they had been published with.
    routing_keys: list[str] = field(default_factory=list)
    # The place of the first.
    place: int = 0


@dataclass(slots=True)
class DeadLetterSummary:
    """Those of one queue, as far as it was looked at."""

    causes: dict[FirstDeath, DeadLetterGroup] = field(default_factory=dict)
    # Of causes beyond the bound, and messages that are no dead letters.
    other_count: int = 0
    non_dead_letter_count: int = 0
    examined: int = 0
    # Where to go on; None when all were seen.
    place: int | None = 0

    @property
    def count(self) -> int:
        """How many dead letters were seen."""
        return self.other_count + sum(cause.count for cause in self.causes.values())

    def add(self, message: Message, place: int) -> None:
        """Count `message`, at `place`."""
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
        cause.octets += message.body_size
        cause.oldest = min(cause.oldest, message.published_at)
        cause.newest = max(cause.newest, message.published_at)
        if len(cause.routing_keys) < CAUSE_KEYS_MAX and origin.routing_key not in cause.routing_keys:
            cause.routing_keys.append(origin.routing_key)


def scan_dead_letters(
    queue: LocalQueue, found: DeadLetterSummary, examined_max: int, per_turn: int
) -> Iterator[None]:
    """Add the dead letters of `queue` to `found`, from its place on, in pieces; `examined_max` are seen."""
    queue_scan = QueueScan(queue, found.place or 0)
    while not queue_scan.is_over and queue_scan.examined < examined_max:
        for peeked in queue_scan.next_messages(min(per_turn, examined_max - queue_scan.examined)):
            found.add(peeked.message, peeked.place)
        found.examined = queue_scan.examined
        found.place = None if queue_scan.is_over else queue_scan.place
        yield


def reachable(vhost: VirtualHost) -> Iterator[dict[LocalQueue, None]]:
    """The queues that a dead letter of `vhost` can come to, in pieces, some of them more than once.

    An exchange that looks at more than the routing key may send one to anything that is bound to it.
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
    """Where `key` leads, if it alone says so, and is known."""
    if key is None or not (_is_name(exchange) and _is_name(key)):
        return None
    try:
        route = vhost.router.find(encode_address(exchange, key), _NOTHING)
    except NotFound:
        return []
    if route.decides != BY_KEY:
        return None
    return [queue for queue in route.destinations if isinstance(queue, LocalQueue)]


def _walk(vhost: VirtualHost, name: str, walked: set[str]) -> Iterator[dict[LocalQueue, None]]:
    """Every queue behind the exchange `name`, and behind those that it is bound to."""
    waiting = [name]
    while waiting:
        name = waiting.pop()
        exchange = vhost.router.exchanges.get(name)
        # To the default exchange every queue is bound, and a letter keeps its key: it may be any.
        if exchange is None or name in walked or not name:
            continue
        walked.add(name)
        if exchange.alternate is not None:
            waiting.append(exchange.alternate)
        found: dict[LocalQueue, None] = {}
        for number, binding in enumerate(list(exchange.each_binding())):
            if isinstance(binding.destination, LocalQueue):
                found[binding.destination] = None
            elif isinstance(binding.destination, Exchange):
                waiting.append(binding.destination.name)
            if not number % REACHED_PER_TURN:
                yield found
                found = {}
        yield found


def _is_name(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
