"""Plays one script of AMQP steps against one broker, and reports after each step everything that can be
observed.

A script is a list of lines in the notation of the conformance transcripts: `C> 1 queue.declare queue="q0"`.
Two connections with two channels each are open from the beginning. After each step the counts of every queue
and an answer on every channel are requested, so that all effects of the step have happened before the next
one begins, without a clock. A channel or connection that the broker closes is opened again.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from tests.conformance.client import PASSWORD, USER, Client, TranscriptContext
from tests.conformance.peer import Event, Mismatch, Peer
from tests.conformance.transcript import describe
from tests.patience import patient

CONNECTIONS, CHANNELS = 2, 2
# The channel of each connection that requests the counts.
CONTROL = 99
# A request to a queue may overtake an operation that is not complete; it does not overtake it twice.
ROUNDS = 2
ANSWER_S = patient(20.0)
_STEP = re.compile(r"C(\d*)> (?:\d+ times )?(?:(\d+) )?(\S+)(.*)")
_QUEUE = re.compile(r'\bqueue="([^"]*)"')
_TAG = re.compile(r"tag\((\d)\)")
_CONSUMER = re.compile(r'\bconsumer_tag="([^"]*)"')
# The headers that RabbitMQ 4 has, and Warren.
_ADDED = ("x-last-death-", "x-acquired-count")
_VOLATILE = [
    (re.compile(r'"time": \d+T'), '"time": *'),
    (re.compile(r"amq\.(gen|ctag|rabbitmq\.reply-to)[-.][\w.=+/-]+"), r"amq.\1-*"),
]


@dataclass
class Player:
    """The connections of one script to one broker."""

    context: TranscriptContext
    client: Client = field(init=False)
    # By connection and channel, if it is open: the publish numbers that are confirmed or refused.
    settled: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    # What was confirmed or refused in this step, by connection and channel.
    confirmed: dict[str, set[int]] = field(default_factory=dict)
    _unsettled: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    # Whether the last operation on a channel was without acknowledgements, and which consumers are.
    _silent: dict[tuple[int, int], bool] = field(default_factory=dict)
    _no_ack: set[tuple[int, int, str]] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.client = Client(self.context)
        for number in range(1, CONNECTIONS + 1):
            self._connect(number)

    def play(self, script: list[str]) -> list[list[str]]:
        """The observations after each step of `script`; everything it declared is deleted at the end."""
        try:
            return [self._step(line) for line in script]
        finally:
            self.client.clean_up()

    def _step(self, line: str) -> list[str]:
        found = _STEP.fullmatch(line)
        if found is None:
            raise ValueError(f"{line!r} is no step")
        self._remember_queue(found[3], found[4])
        number = int(found[1] or 1)
        place = (number, int(found[2] or 0))
        text = self._with_tag(place, line.split("> ", 1)[1])
        if text is None:
            return ["nothing to settle"]
        self._silent[place] = "no_ack=true" in text
        tag = _CONSUMER.search(text)
        if tag is not None and found[3] == "basic.consume":
            (self._no_ack.add if self._silent[place] else self._no_ack.discard)((*place, tag[1]))
        self.client.perform(number, text)
        if found[3] == "disconnect":
            self._connect(number)
        seen: list[str] = []
        if found[3] in ("tx.commit", "tx.rollback", "channel.close"):
            # RabbitMQ does not always accept other methods on the channel meanwhile.
            self._await_channel(number, int(found[2]), f"{found[3]}-ok", seen)
        counts: list[str] = []
        for _ in range(ROUNDS):
            self._await_channels(seen)
            counts = self._count_queues(seen)
        self._open_again(seen)
        seen += [f"{what} {sorted(tags)}" for what, tags in sorted(self.confirmed.items())]
        self.confirmed.clear()
        # Events of different channels have no order.
        return sorted(seen, key=lambda line: line.split()[:2]) + counts

    def _with_tag(self, place: tuple[int, int], text: str) -> str | None:
        """`text` with the delivery tag that `tag(2)` stands for: the third unacknowledged one; None if there
        is none.
        """
        found = _TAG.search(text)
        if found is None:
            return text
        unsettled = self._unsettled.get(place)
        if not unsettled:
            return None
        tag = unsettled[int(found[1]) % len(unsettled)]
        is_multiple = "multiple=true" in text
        self._unsettled[place] = [
            other for other in unsettled if (other > tag if is_multiple else other != tag)
        ]
        return _TAG.sub(str(tag), text)

    def _remember_queue(self, verb: str, arguments: str) -> None:
        name = _QUEUE.search(arguments)
        if verb == "queue.declare" and name is not None and name[1]:
            self.queues.add(name[1])

    def _connect(self, number: int) -> None:
        peer = Peer(self.context.host, self.context.port)
        peer.handshake(USER, PASSWORD, self.context.vhost)
        self.client.peers[number] = peer
        self.client.closed.discard(number)
        for channel in [*range(1, CHANNELS + 1), CONTROL]:
            self._open_channel(number, channel)

    def _open_channel(self, number: int, channel: int) -> None:
        self.settled[number, channel] = set()
        self._unsettled[number, channel] = []
        peer = self.client.peers[number]
        peer.send_method(channel, "channel.open")
        peer.expect_method(channel, "channel.open-ok", ANSWER_S)

    # --- what can be seen -------------------------------------------------------------------------

    def _count_queues(self, seen: list[str]) -> list[str]:
        counts = []
        for name in sorted(self.queues):
            for number in self.client.peers:
                answer = self._ask(number, name, seen)
                if answer is None or answer.name == "queue.declare-ok":
                    break
                if "NOT_FOUND" in answer.values["reply_text"]:
                    self.queues.discard(name)
                    break
            if answer is None:
                continue
            if answer.name == "queue.declare-ok":
                ready, consumers = answer.values["message_count"], answer.values["consumer_count"]
                counts.append(f"{name}: {ready} ready, {consumers} consumers")
            else:
                counts.append(f"{name}: {answer.values['reply_code']}")
        return counts

    def _ask(self, number: int, name: str, seen: list[str]) -> Event | None:
        peer = self.client.peers[number]
        peer.send_method(CONTROL, "queue.declare", queue=name, passive=True)
        event = self._next(number, CONTROL, seen)
        if event is not None and event.name == "channel.close":
            peer.send_method(CONTROL, "channel.close-ok")
            self._open_channel(number, CONTROL)
        return event

    def _await_channels(self, seen: list[str]) -> None:
        for number, peer in self.client.peers.items():
            for channel in range(1, CHANNELS + 1):
                if (number, channel) in self.settled:
                    peer.send_method(channel, "channel.flow", active=True)
                    self._await_channel(number, channel, "channel.flow-ok", seen)

    def _await_channel(self, number: int, channel: int, last: str, seen: list[str]) -> None:
        """Observe the events of a channel up to the method `last`, or to its end."""
        while (event := self._next(number, channel, seen)) and event.name != "channel.flow-ok":
            self._see(number, event, seen)
            if event.name == "channel.close":
                # Only now RabbitMQ requeues the messages of the channel; Warren did so when it closed.
                self.client.peers[number].send_method(channel, "channel.close-ok")
            if event.name in ("channel.close", "channel.close-ok"):
                del self.settled[number, channel]
            if event.name in (last, "channel.close", "channel.close-ok"):
                break

    def _next(self, number: int, channel: int, seen: list[str]) -> Event | None:
        """The next event on `channel`; None if the connection closes instead, which is observed."""
        peer = self.client.peers[number]
        deadline = time.monotonic() + ANSWER_S
        while not peer.is_condemned and not peer.is_closed:
            event = peer.next_event(channel, 0.5)
            if event is not None:
                return event
            if time.monotonic() > deadline:
                raise Mismatch(f"no answer on channel {channel} of connection {number}")
        while (event := peer.next_event(0, 0)) is not None:
            seen.append(f"{number}: {self._plain(event)}")
        return None

    def _see(self, number: int, event: Event, seen: list[str]) -> None:
        what = {"basic.ack": "confirmed", "basic.nack": "refused"}.get(event.name)
        if event.name in ("basic.deliver", "basic.get-ok"):
            self._remember_delivery((number, event.channel), event)
        if what is None:
            seen.append(f"{number}: {self._plain(event)}")
            return
        settled = self.settled[number, event.channel]
        tag = event.values["delivery_tag"]
        tags = set(range(1, tag + 1)) - settled if event.values["multiple"] else {tag}
        settled |= tags
        self.confirmed.setdefault(f"{number}: {event.channel} {what}", set()).update(tags)

    def _remember_delivery(self, place: tuple[int, int], event: Event) -> None:
        if event.name == "basic.get-ok":
            is_settled = self._silent.get(place, False)
        else:
            is_settled = (*place, event.values["consumer_tag"]) in self._no_ack
        if not is_settled:
            self._unsettled[place].append(event.values["delivery_tag"])

    def _plain(self, event: Event) -> str:
        values = self.context.plain(event.values)
        if "headers" in values:
            values["headers"] = _in_order(values["headers"])
        text = describe(Event(event.channel, event.name, values))
        for pattern, replacement in _VOLATILE:
            text = pattern.sub(replacement, text)
        return text

    def _open_again(self, seen: list[str]) -> None:
        for number, peer in list(self.client.peers.items()):
            if peer.is_condemned or peer.is_closed:
                peer.send_method(0, "connection.close-ok")
                peer.disconnect()
                seen.append(f"{number}: closed")
                self._connect(number)
                continue
            for channel in range(1, CHANNELS + 1):
                if (number, channel) not in self.settled:
                    self._open_channel(number, channel)


def _in_order(value: object) -> object:
    """`value` with the fields of tables sorted, without the headers that only Warren adds.

    The deaths behind the newest are sorted as well: RabbitMQ 3.10.8 reverses them at each death.
    """
    if isinstance(value, dict):
        kept = sorted(key for key in value if not key.startswith(_ADDED))
        ordered = {key: _in_order(value[key]) for key in kept}
        deaths = ordered.get("x-death")
        if isinstance(deaths, list):
            ordered["x-death"] = [*deaths[:1], *sorted(deaths[1:], key=str)]
        return ordered
    return [_in_order(member) for member in value] if isinstance(value, list) else value
