"""What a message that died says of it: x-death, the first and the last death, and whether it goes in circles.

As RabbitMQ 3.10.8, measured, with 4.x's x-last-death headers: there is one entry for each pair of queue and
reason, and the newest comes first; a second death of the same pair counts up and comes to the front, with
its first time. Those behind it turn round at every death: [a], [b, a], [c, a, b], [d, b, a, c].

As RabbitMQ 4, what a client says of deaths is not believed: a flag of the message knows who wrote it.
"""

from dataclasses import dataclass
from itertools import takewhile

from warren.limits import DEATHS_MAX
from warren.model.blind_copies import BLIND_CARBON_COPY
from warren.model.message import DIED, Message, encode_address, has_died
from warren.wire.table import Table, Timestamp, Value

DEATHS = "x-death"
REJECTED = "rejected"
# What x-first-death-* and x-last-death-* say of a death.
FACTS = ("reason", "queue", "exchange")

_Pair = tuple[str, str] | tuple[str, str, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Where, why and when a message died, and where it goes from there."""

    queue: str
    reason: str
    exchange: str
    routing_key: str | None
    now: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message as it is published again, and the queues that it may not go to.

    It died there, and no client rejected it since: nobody but the broker would move it, for ever.
    """

    message: Message
    cycle_queues: frozenset[str]


def make_dead_letter(message: Message, death: Death) -> DeadLetter | None:
    """`message` after `death`: new address, death headers, no expiration. None after too many of them."""
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
    """Take out of `headers` what a client says of deaths."""
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
    """The deaths that `headers` tell of; what is no table is passed over: older stores believed clients."""
    deaths = headers.get(DEATHS)
    return [entry for entry in deaths if isinstance(entry, dict)] if isinstance(deaths, list) else []


def _counted(entry: Table, entries: list[Table]) -> list[Table]:
    """`entries` with one more death in front."""
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
    return [entry, *(_summed(group) for group in reversed(groups.values()))]


def _summed(group: list[Table]) -> Table:
    """The deaths of one pair in one entry; those of older brokers say the same without a count."""
    return group[0] if "count" in group[0] else {"count": len(group), **group[0]}


def _cycle_queues(deaths: list[Table]) -> frozenset[str]:
    """The queues of the deaths since the last rejection."""
    since = takewhile(lambda death: death.get("reason") != REJECTED, deaths)
    return frozenset(queue for death in since if isinstance(queue := death.get("queue"), str))


def _pair(entry: Table) -> _Pair:
    queue, reason = entry.get("queue"), entry.get("reason")
    if isinstance(queue, str) and isinstance(reason, str):
        return queue, reason
    # A client made it up, of values that may be tables, and an older store believed it.
    return repr(queue), repr(reason), None


def _say_where(headers: Table, which: str, entry: Table) -> None:
    for fact in FACTS:
        headers[f"x-{which}-death-{fact}"] = entry[fact]
