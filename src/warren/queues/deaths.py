"""What a message that died says of it: x-death, the first and the last death, and whether it goes in circles.

As RabbitMQ 3.10.8, measured, with 4.x's x-last-death headers: there is one entry for each pair of queue and
reason, and the newest comes first; a second death of the same pair counts up and comes to the front, with
its first time. Those behind it turn round at every death: [a], [b, a], [c, a, b], [d, b, a, c].
"""

from dataclasses import dataclass

from warren.model.message import Message, encode_address
from warren.wire.properties import BasicProperties
from warren.wire.table import Table, Timestamp, Value

DEATHS = "x-death"
REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Where, why and when a message died, and where it goes from there."""

    queue: str
    reason: str
    exchange: str
    routing_key: str | None
    now: int


def resurrect(message: Message, death: Death) -> Message:
    """`message` as it is published again after `death`: new address, death headers, no expiration."""
    properties = message.properties()
    entry = _entry(message, properties, death)
    headers: Table = dict(properties.headers or {})
    entries = _entries(headers)
    if DEATHS not in headers:
        _say_where(headers, "first", entry)
    _say_where(headers, "last", entry)
    headers[DEATHS] = _counted(entry, entries)
    key = message.routing_key
    if death.routing_key is not None:
        headers.pop("CC", None)
        key = death.routing_key
    properties.headers = headers
    properties.expiration = None
    address = encode_address(death.exchange, key)
    return Message.compose(address, properties, message.content, now=death.now)


def goes_in_circles(message: Message, queue: str) -> bool:
    """True if `message`, routed to `queue`, died there before and was not rejected since.

    Nobody but the broker would move it then, for ever: such a message is dropped.
    """
    since: list[Table] = []
    for entry in _entries(message.headers()):
        since.append(entry)
        if entry.get("queue") == queue:
            return all(entry.get("reason") != REJECTED for entry in since)
    return False


def _entry(message: Message, properties: BasicProperties, death: Death) -> Table:
    headers = properties.headers or {}
    keys: list[Value] = [message.routing_key]
    for name in ("CC", "BCC"):
        copies = headers.get(name)
        if isinstance(copies, list):
            keys += [copy for copy in copies if isinstance(copy, str)]
    entry: Table = {
        "count": 1,
        "reason": death.reason,
        "queue": death.queue,
        "time": Timestamp(death.now // 1000),
        "exchange": message.exchange,
        "routing-keys": keys,
    }
    if properties.expiration is not None:
        entry["original-expiration"] = properties.expiration
    return entry


def _entries(headers: Table) -> list[Table]:
    """The deaths that `headers` tell of; what is no table is passed over, as it came from a client."""
    deaths = headers.get(DEATHS)
    return [entry for entry in deaths if isinstance(entry, dict)] if isinstance(deaths, list) else []


def _counted(entry: Table, entries: list[Table]) -> list[Value]:
    """`entries` with one more death in front."""
    others: list[Value] = []
    first = entry
    for known in _grouped(entries):
        if _pair(known) == _pair(entry):
            count = known.get("count")
            first = {**known, "count": (count if isinstance(count, int) else 0) + 1}
        else:
            others.append(known)
    return [first, *others]


def _grouped(entries: list[Table]) -> list[Table]:
    """`entries`, the last first, each pair once; those of a client may say the same without a count."""
    if len(entries) < 2:
        return entries
    groups: dict[tuple[str, str], list[Table]] = {}
    for entry in entries:
        groups.setdefault(_pair(entry), []).append(entry)
    return [{"count": len(group), **group[0]} for group in reversed(groups.values())]


def _pair(entry: Table) -> tuple[str, str]:
    return repr(entry.get("queue")), repr(entry.get("reason"))


def _say_where(headers: Table, which: str, entry: Table) -> None:
    for what in ("reason", "queue", "exchange"):
        headers[f"x-{which}-death-{what}"] = entry[what]
