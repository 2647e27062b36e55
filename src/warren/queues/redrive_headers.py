"""The headers of redriven messages: how they record a dead letter's origin, and how a redrive is undone.

A redriven message starts a new life: `x-death` and the other death headers are removed, so that another death
is not taken for a cycle, and counting starts at one. What was removed is kept for information only:

    x-past-deaths | the entries of x-death of all earlier lives, newest first
    x-redrive     | id: of the redrive       number: of the message in it    count: of redrives so far
                  | queue, exchange, routing-key: where the dead letter was, and how it had come there
                  | deaths: the number of past deaths of its last life    first: its x-first-death-*

A redrive knows the places of its messages, and recognises them there by `x-redrive`.
"""

from collections.abc import Mapping

from msgspec import Struct

from warren.limits import PAST_DEATHS_MAX
from warren.model.message import DIED, Message, encode_address, has_died
from warren.queues.deaths import DEATHS
from warren.wire.properties import BasicProperties
from warren.wire.table import Table, Timestamp, Value

REDRIVE = "x-redrive"
PAST_DEATHS = "x-past-deaths"

_COPIES = "CC"
_FACTS = ("queue", "reason", "exchange")


class FirstDeath(Struct, frozen=True):
    """The first death of dead letters with the same cause: queue, reason, and how they came there."""

    queue: str
    reason: str
    exchange: str


class DeadLetterOrigin(Struct, frozen=True):
    """The address of a dead letter before its first death."""

    first_death: FirstDeath
    routing_key: str
    # Other routing keys (CC) by which it was routed.
    copies: tuple[str, ...]


class RedriveHeader(Struct, frozen=True):
    """Identifies a redriven message."""

    id: str
    # The number of the message in its redrive.
    number: int
    # The queue with the dead letters.
    queue: str
    now: int


def origin_of(message: Message) -> DeadLetterOrigin | None:
    """The origin of `message`; None if it is not a dead letter."""
    if not has_died(message):
        return None
    headers = message.headers()
    queue, reason, exchange = (headers.get(f"x-first-death-{fact}") for fact in _FACTS)
    if not (isinstance(queue, str) and isinstance(reason, str) and isinstance(exchange, str)):
        return None
    for entry in _tables(headers.get(DEATHS)):
        if entry.get("queue") == queue and entry.get("reason") == reason:
            keys = entry.get("routing-keys")
            named = [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []
            if named:
                return DeadLetterOrigin(FirstDeath(queue, reason, exchange), named[0], tuple(named[1:]))
    return None


def mark_redriven(
    properties: BasicProperties, message: Message, origin: DeadLetterOrigin | None, mark: RedriveHeader
) -> None:
    """Edit `properties` of `message` for a new life: past deaths, if it has an `origin`, and `mark`."""
    headers: Table = properties.headers or {}
    first, deaths = _take_deaths(headers) if has_died(message) else ({}, [])
    past: list[Value] = [*deaths, *_tables(headers.get(PAST_DEATHS))][:PAST_DEATHS_MAX]
    if past:
        headers[PAST_DEATHS] = past
    before = headers.get(REDRIVE)
    count = before.get("count") if isinstance(before, dict) else None
    note: Table = {
        "id": mark.id,
        "number": mark.number,
        "queue": mark.queue,
        "exchange": message.exchange,
        "routing-key": message.routing_key,
        "time": Timestamp(mark.now // 1000),
        "count": (count if isinstance(count, int) else 0) + 1,
        "deaths": min(len(deaths), PAST_DEATHS_MAX),
        "first": first,
    }
    if origin is not None and origin.copies and _COPIES not in headers:
        headers[_COPIES] = [*origin.copies]
        note["copies"] = True
    headers[REDRIVE] = note
    properties.headers = headers


def _take_deaths(headers: Table) -> tuple[Table, list[Table]]:
    """Remove the headers of the first death and of all deaths from `headers`, and return them."""
    first: Table = {}
    for fact in _FACTS:
        headers.pop(f"x-last-death-{fact}", None)
        known = headers.pop(f"x-first-death-{fact}", None)
        if known is not None:
            first[fact] = known
    return first, _tables(headers.pop(DEATHS, None))


def redrive_number(message: Message, redrive: str) -> int | None:
    """The number of `message` in the redrive with the id `redrive`; None if it is not part of it."""
    note = message.headers().get(REDRIVE)
    if not isinstance(note, dict) or note.get("id") != redrive:
        return None
    number = note.get("number")
    return number if isinstance(number, int) else None


def undo_redrive(message: Message, now: int) -> Message:
    """The dead letter that the redriven `message` was before; edits are kept."""
    properties = message.properties()
    headers: Table = properties.headers or {}
    note = headers.pop(REDRIVE, None)
    if not isinstance(note, dict):
        return message.anew(now)
    past = _tables(headers.pop(PAST_DEATHS, None))
    count = note.get("deaths")
    deaths = past[: count if isinstance(count, int) and count > 0 else 0]
    older: list[Value] = [*past[len(deaths) :]]
    if deaths:
        headers[DEATHS] = [*deaths]
        _say(headers, "last", deaths[0])
    if older:
        headers[PAST_DEATHS] = older
    first = note.get("first")
    if isinstance(first, dict):
        _say(headers, "first", first)
    if note.get("copies") is True:
        headers.pop(_COPIES, None)
    redrives = note.get("count")
    if isinstance(redrives, int) and redrives > 1:
        headers[REDRIVE] = {"count": redrives - 1}
    properties.headers = headers or None
    exchange, key = note.get("exchange"), note.get("routing-key")
    address = message.address
    if isinstance(exchange, str) and isinstance(key, str):
        address = encode_address(exchange, key)
    back = Message.compose(address, properties, message.content, now=now)
    if deaths:
        back.flags |= DIED
    return back


def _say(headers: Table, which: str, facts: Mapping[str, Value]) -> None:
    for fact in _FACTS:
        if fact in facts:
            headers[f"x-{which}-death-{fact}"] = facts[fact]


def _tables(value: Value | None) -> list[Table]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
