"""Clients of a queue that may be on another node, and what was promised to them."""

import random
from collections import Counter

from tests.unit.cluster.two_nodes import ClusterNode, TwoNodes
from tests.unit.session.client import ReceivedMethod, call, publication

from warren.wire import methods

QUEUE = "b.queue"


class Promises:
    """All messages, what became of them as their clients know, and what was found wrong."""

    def __init__(self) -> None:
        # True if messages come in the order of their publisher, unless they are marked.
        self.is_ordered = True
        # Bodies of messages that were confirmed and that were refused.
        self.confirmed: set[bytes] = set()
        self.refused: set[bytes] = set()
        # Those that were published as mandatory, and those of them that were returned.
        self.mandatory: set[bytes] = set()
        self.returned: set[bytes] = set()
        # Those that need not survive a loss of power.
        self.transient: set[bytes] = set()
        # Bodies that clients have received without a mark, and that they settled for good.
        self.delivered: set[bytes] = set()
        self.settled: Counter[bytes] = Counter()
        # Those of them whose connection was lost after that.
        self.unsure: set[bytes] = set()
        # Bodies of messages that were sent without acknowledgement.
        self.sent_no_ack: Counter[bytes] = Counter()
        # How often each thing happened, so that a test can see that it did.
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []


class RemoteClient:
    """One client with one channel in confirm mode; it connects again when its channel is closed."""

    def __init__(self, name: str, cluster: TwoNodes, node: ClusterNode, promises: Promises) -> None:
        self.name = name
        self.cluster = cluster
        self.node = node
        self.promises = promises
        self.serial = 0
        self.waiting_answers = 0
        self.connect()

    def connect(self) -> None:
        """Open a connection with a channel in confirm mode."""
        self.client = self.cluster.client(self.node)
        self.client.ask(methods.ConfirmSelect())
        # By sequence: bodies that are not answered. By tag: bodies that are not settled.
        self.unconfirmed: dict[int, bytes] = {}
        self.sequence = 0
        self.unacked: dict[int, bytes] = {}
        self.settled: set[bytes] = set()
        # Consumers by tag: whether they need acknowledgements.
        self.consumers: dict[str, bool] = {}
        self.consumer_count = 0
        # By publisher: the number of the last message that came for the first time.
        self.latest: dict[tuple[str, bytes], int] = {}
        self.is_waiting = False

    # --- what it does ---------------------------------------------------------------------------------

    def publish(self, count: int, *, is_persistent: bool, is_mandatory: bool) -> None:
        """Publish `count` messages."""
        data = []
        for _ in range(count):
            self.serial += 1
            self.sequence += 1
            body = b"%s %d" % (self.name.encode(), self.serial)
            self.unconfirmed[self.sequence] = body
            if not is_persistent:
                self.promises.transient.add(body)
            if is_mandatory:
                self.promises.mandatory.add(body)
            properties = {"delivery_mode": 2} if is_persistent else {}
            data.append(publication(QUEUE, body, mandatory=is_mandatory, **properties))
        self.client.send(*data)

    def consume(self, *, no_ack: bool, prefetch: int, is_global: bool) -> None:
        """Start a consumer."""
        self.consumer_count += 1
        tag = f"c{self.consumer_count}"
        self.consumers[tag] = not no_ack
        self.client.send(
            call(methods.BasicQos(prefetch_count=prefetch, is_global=is_global)),
            call(methods.BasicConsume(queue=QUEUE, consumer_tag=tag, no_ack=no_ack)),
        )

    def cancel(self, tag: str) -> None:
        """Cancel a consumer."""
        self.client.send(call(methods.BasicCancel(tag)))

    def get(self, *, no_ack: bool) -> None:
        """Take a message."""
        self.is_waiting = True
        self._getting_no_ack = no_ack
        self.client.send(call(methods.BasicGet(queue=QUEUE, no_ack=no_ack)))

    def settle(self, chance: random.Random) -> None:
        """Settle one delivery, or all up to it."""
        tag = chance.choice(sorted(self.unacked))
        multiple = chance.random() < 0.3
        bodies = [body for known, body in self.unacked.items() if known == tag or (multiple and known < tag)]
        self.unacked = {
            known: body
            for known, body in self.unacked.items()
            if not (known == tag or (multiple and known < tag))
        }
        if chance.random() < 0.6:
            self.promises.settled.update(bodies)
            self.settled.update(bodies)
            self.client.send(call(methods.BasicAck(tag, multiple)))
        else:
            self.promises.counts["requeued"] += len(bodies)
            self.client.send(call(methods.BasicNack(tag, multiple, True)))

    def acknowledge_all(self) -> None:
        """Acknowledge all deliveries."""
        if self.unacked:
            self.promises.settled.update(self.unacked.values())
            self.unacked.clear()
            self.client.send(call(methods.BasicAck(0, True)))

    def leave(self) -> None:
        """Close the connection without a word, and open another one."""
        # Its last acknowledgements may wait behind a method that waits.
        self.promises.unsure |= self.settled
        self.client.connection.lost()
        self.connect()

    # --- what it hears --------------------------------------------------------------------------------

    def hear(self) -> None:
        """Take notice of everything that was sent."""
        for received in self.client.hear():
            self._note(received)

    def _note(self, received: ReceivedMethod) -> None:
        promises = self.promises
        match received.method:
            case methods.BasicDeliver(consumer_tag=tag, delivery_tag=number, redelivered=redelivered):
                self._note_message(received.body, tag, is_again=redelivered)
                if self.consumers.get(tag, True):
                    self.unacked[number] = received.body
                else:
                    promises.sent_no_ack[received.body] += 1
            case methods.BasicGetOk(delivery_tag=number, redelivered=redelivered):
                self.is_waiting = False
                promises.counts["got"] += 1
                self._note_message(received.body, "", is_again=redelivered)
                if self._getting_no_ack:
                    promises.sent_no_ack[received.body] += 1
                else:
                    self.unacked[number] = received.body
            case methods.BasicGetEmpty():
                self.is_waiting = False
            case methods.BasicAck(delivery_tag=number, multiple=multiple):
                promises.confirmed.update(self._answered(number, multiple))
            case methods.BasicNack(delivery_tag=number, multiple=multiple):
                promises.refused.update(self._answered(number, multiple))
            case methods.BasicReturn(reply_code=code):
                self._note_return(received.body, code)
            case methods.BasicCancel(consumer_tag=tag) | methods.BasicCancelOk(consumer_tag=tag):
                promises.counts["cancelled"] += isinstance(received.method, methods.BasicCancel)
                self.consumers.pop(tag, None)
            case methods.ChannelClose(reply_code=code):
                promises.counts[str(code)] += 1
                self.leave()
            case methods.ConnectionClose(reply_text=text):
                promises.wrong.append(f"{self.name}: {text}")

    def _note_return(self, body: bytes, code: int) -> None:
        """A message was returned, before it is refused."""
        promises = self.promises
        promises.counts["returned"] += 1
        promises.returned.add(body)
        if code != 312 or body not in promises.mandatory or body not in self.unconfirmed.values():
            promises.wrong.append(f"{self.name}: {body!r} is returned with {code}")

    def _note_message(self, body: bytes, tag: str, *, is_again: bool) -> None:
        promises = self.promises
        # One that was marked may be ahead of the first one, which is on its way in a session that is lost.
        if not is_again:
            if body in promises.delivered:
                promises.wrong.append(f"{body!r} was delivered before, and is not marked as redelivered")
            promises.delivered.add(body)
        promises.counts["again"] += is_again
        publisher, serial = body.split()
        if not is_again:
            latest = self.latest.get((tag, publisher), 0)
            if int(serial) < latest and promises.is_ordered:
                promises.wrong.append(f"{body!r} came after number {latest} of its publisher")
            self.latest[tag, publisher] = int(serial)

    def _answered(self, number: int, multiple: bool) -> list[bytes]:
        known = [one for one in self.unconfirmed if one == number or (multiple and one < number)]
        if number not in known:
            self.promises.wrong.append(f"{self.name}: publish {number} is answered again")
        return [self.unconfirmed.pop(one) for one in known]
