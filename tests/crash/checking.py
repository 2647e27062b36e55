"""Compares the contents of a broker that was killed with what its clients were told."""

import itertools
import random
import time
from dataclasses import dataclass

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker
from tests.crash.load import QUEUES, ClientHistory, Name, connected, declare, name_of

# How many messages of each queue are left unacknowledged, half of them the oldest: the next kills then find
# messages that survived many others, with gaps between them, and the directory does not grow without bound.
BACKLOG = 40
# The probability that an old message is left once more.
LEFT_AGAIN = 0.9


@dataclass(frozen=True, slots=True)
class Taken:
    """One message that was found in a queue."""

    name: Name
    is_redelivered: bool
    tag: int


def check(port: int, history: ClientHistory, chance: random.Random) -> int:
    """Check messages and declarations; returns the number of messages.

    Messages beyond a backlog are acknowledged; the others are requeued when the connection ends.
    """
    channel = connected(port)
    declare(channel)
    found = {queue: taken(channel, queue) for queue in QUEUES}
    for queue, messages in found.items():
        check_queue(queue, messages, history)
    check_declared(channel, history)
    # From now on these messages are the expected ones, all of them delivered.
    now = time.monotonic()
    for queue, messages in found.items():
        names = {each.name for each in messages}
        history.sent[queue] = dict.fromkeys(names, 0.0)
        history.confirmed[queue] = set(names)
        history.delivered[queue] = {name: history.delivered[queue].get(name, now) for name in names}
        surplus = beyond_backlog(messages, chance)
        history.acknowledged[queue] = {each.name for each in surplus}
        history.gone[queue] = {}
        for each in surplus:
            channel.basic_ack(each.tag)
    # The answer follows the acknowledgements, so the broker has processed them.
    channel.queue_declare(QUEUES[0], passive=True)
    now = time.monotonic()
    for queue in QUEUES:
        history.gone[queue] = dict.fromkeys(history.acknowledged[queue], now)
    channel.connection.close()
    return sum(map(len, found.values()))


def taken(channel: BlockingChannel, queue: str) -> list[Taken]:
    """All messages in `queue`."""
    found = []
    while True:
        method, _, body = channel.basic_get(queue)
        if method is None:
            return found
        found.append(Taken(name_of(body), method.redelivered, method.delivery_tag))


def beyond_backlog(messages: list[Taken], chance: random.Random) -> list[Taken]:
    """Those of `messages`, in order, that are acknowledged: a few old ones, and most of the others."""
    half = BACKLOG // 2
    newer = messages[half:]
    chance.shuffle(newer)
    return [each for each in messages[:half] if chance.random() > LEFT_AGAIN] + newer[half:]


def check_queue(queue: str, messages: list[Taken], history: ClientHistory) -> None:
    """Check that no message is missing, added, duplicated, out of order, or wrongly marked as new."""
    names = [each.name for each in messages]
    assert len(names) == len(set(names)), f"{queue}: a message is duplicated"
    missing = history.confirmed[queue] - history.acknowledged[queue] - set(names)
    assert not missing, f"{queue}: confirmed, unacknowledged and missing: {sorted(missing)[:5]}"
    strange = set(names) - history.sent[queue].keys()
    assert not strange, f"{queue}: never sent: {sorted(strange)[:5]}"
    gone = {name for name, at in history.gone[queue].items() if at < history.synced}
    assert not gone & set(names), (
        f"{queue}: certainly acknowledged, but present: {sorted(gone & set(names))[:5]}"
    )
    for who, group in itertools.groupby(
        sorted(range(len(names)), key=lambda at: (names[at][0], at)), lambda at: names[at][0]
    ):
        numbers = [names[at][1] for at in group]
        assert numbers == sorted(numbers), f"{queue}: messages of {who} are not in order"
    certain = {name for name, at in history.delivered[queue].items() if at < history.synced}
    fresh = {each.name for each in messages if not each.is_redelivered} & certain
    assert not fresh, f"{queue}: delivered before, but not marked as redelivered: {sorted(fresh)[:5]}"


def check_declared(channel: BlockingChannel, history: ClientHistory) -> None:
    """Check that declared queues exist as they were declared, and deleted ones do not."""
    for name in sorted(history.declared - history.deleting):
        channel.queue_declare(name, passive=True)
        channel.queue_declare(
            name, durable=True, arguments={"x-max-length": int(name.rpartition(" ")[2]) + 1}
        )
    for name in sorted(history.deleted):
        assert not is_there(channel.connection.channel(), name), f"{name!r} was deleted, but exists"
    history.deleted.clear()


def is_there(channel: BlockingChannel, name: str) -> bool:
    """Whether a queue with this name exists."""
    try:
        channel.queue_declare(name, passive=True)
    except ChannelClosedByBroker as closed:
        if closed.reply_code == 404:
            return False
        raise
    return True
