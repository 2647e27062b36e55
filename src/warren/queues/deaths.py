"""Dead-letter headers: x-death, the first and last death, and the detection of cycles.

As in RabbitMQ 4: there is one entry for each pair of queue and reason, newest first; another death of the
same pair increments its count and moves it to the front, keeping its first time. RabbitMQ 3.10.8 reverses
the other entries at every death, so that it cannot tell which deaths a rejection came after.

As in RabbitMQ 4, death headers set by clients are ignored: a flag of the message says who wrote them.
"""

from itertools import takewhile

from msgspec import Struct

from warren.limits import DEATHS_MAX
from warren.model.blind_copies import BLIND_CARBON_COPY
from warren.model.message import DIED, Message, encode_address, has_died
from warren.wire.table import Table, Timestamp, Value

DEATHS = "x-death"
REJECTED = "rejected"
# The properties of a death in the headers x-first-death-* and x-last-death-*.
FACTS = ("reason", "queue", "exchange")

_Pair = tuple[str, str] | tuple[str, str, None]


class Death(Struct, frozen=True, kw_only=True):
    """Where, why and when a message was dead-lettered, and the address that it is routed to."""

    queue: str
    reason: str
    exchange: str
    routing_key: str | None
    now: int


class DeadLetter(Struct, frozen=True):
    """A message to be republished after its death, and the queues excluded as a cycle.

    These are queues in which it died since a client last rejected it: without a client it would circulate for
    ever. None are if it was rejected now.
    """

    message: Message
    cycle_queues: frozenset[str]


def make_dead_letter(message: Message, death: Death) -> DeadLetter | None:
    """`message` after `death`: new address, death headers, no expiration; None if it died too often."""
    properties = message.properties()
    headers: Table = properties.headers or {}
    if not has_died(message):
        _forget(headers)
    entry = _entry(message, headers, death)
    if properties.expiration is not None:
        entry["original-expiration"] = properties.expiration
    if DEATHS not in headers:
        _say_where(headers, "first", entry)
    _say_where(headers, "last", entry)
    deaths = _counted(entry, _entries(headers))
    if len(deaths) > DEATHS_MAX:
        return None
    headers[DEATHS] = [*deaths]
    key = message.routing_key
    if death.routing_key is not None:
        headers.pop("CC", None)
        headers.pop(BLIND_CARBON_COPY, None)
        key = death.routing_key
    properties.headers = headers
    properties.expiration = None
    address = encode_address(death.exchange, key)
    dead_letter = Message.compose(address, properties, message.content, now=death.now)
    dead_letter.flags |= DIED
    return DeadLetter(dead_letter, _cycle_queues(deaths))


def _forget(headers: Table) -> None:
    """Remove death headers that a client has set from `headers`."""
    headers.pop(DEATHS, None)
    for which in ("first", "last"):
        for fact in FACTS:
            headers.pop(f"x-{which}-death-{fact}", None)


def _entry(message: Message, headers: Table, death: Death) -> Table:
    keys: list[Value] = [message.routing_key]
    copies = headers.get("CC")
    if isinstance(copies, list):
        keys += [copy for copy in copies if isinstance(copy, str)]
    return {
        "count": 1,
        "reason": death.reason,
        "queue": death.queue,
        "time": Timestamp(death.now // 1000),
        "exchange": message.exchange,
        "routing-keys": keys,
    }


def _entries(headers: Table) -> list[Table]:
    """The deaths in `headers`; entries that are not tables, which older stores may contain, are skipped."""
    deaths = headers.get(DEATHS)
    return [entry for entry in deaths if isinstance(entry, dict)] if isinstance(deaths, list) else []


def _counted(entry: Table, entries: list[Table]) -> list[Table]:
    """`entries` with another death, `entry`, in front."""
    groups: dict[_Pair, list[Table]] = {}
    for known in entries:
        groups.setdefault(_pair(known), []).append(known)
    same = groups.pop(_pair(entry), None)
    if same is not None:
        entry = _summed(same) if len(entries) > 1 else same[0]
        count = entry.get("count")
        entry["count"] = (count if isinstance(count, int) else 0) + 1
    if len(entries) < 2:
        return [entry, *(group[0] for group in groups.values())]
    return [entry, *map(_summed, groups.values())]


def _summed(group: list[Table]) -> Table:
    """The deaths of one pair merged into one entry; older brokers wrote several entries without a count."""
    return group[0] if "count" in group[0] else {"count": len(group), **group[0]}


def _cycle_queues(deaths: list[Table]) -> frozenset[str]:
    """The queues of the deaths since the last rejection."""
    since = takewhile(lambda death: death.get("reason") != REJECTED, deaths)
    return frozenset(queue for death in since if isinstance(queue := death.get("queue"), str))


def _pair(entry: Table) -> _Pair:
    queue, reason = entry.get("queue"), entry.get("reason")
    if isinstance(queue, str) and isinstance(reason, str):
        return queue, reason
    # Set by a client, with values that may be tables, and accepted by an older version.
    return repr(queue), repr(reason), None


def _say_where(headers: Table, which: str, entry: Table) -> None:
    for fact in FACTS:
        headers[f"x-{which}-death-{fact}"] = entry[fact]
