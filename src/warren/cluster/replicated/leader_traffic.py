"""What a node has under way to the leader of one quorum queue on another node: the near side.

    connect:  NAME, ENQUEUER │ ATTACH_AT of each consumer │ CLAIM of what is held │ CLAIMED │ SETTLE_AT …
              │ START of each consumer │ PUBLISH of what is not answered

It stays the same when the leader changes: `connect` gives all of it to the next one.
"""

from collections.abc import Iterable
from functools import partial
from typing import Protocol

from warren.cluster.attachment import Attachment
from warren.cluster.home_node import HomeNode
from warren.cluster.home_request import HomeAnswer, HomeRequest
from warren.cluster.payload_reader import PayloadReader
from warren.cluster.queue_traffic import QueueTraffic
from warren.cluster.remote_codec import (
    ATTACH_AT,
    CLAIM,
    CLAIMED,
    ENQUEUER,
    GET,
    IS_ATTACHED_AGAIN,
    IS_EXCLUSIVE,
    LEADING,
    NO_ACK,
    NOT_LEADER,
    RESUME,
    RETURNED,
    SETTLED,
    MalformedPayload,
)
from warren.cluster.replicated.numbered_publishes import NumberedPublishes
from warren.cluster.replicated.unsettled_places import UnsettledPlaces
from warren.limits_cluster import REMOTE_PLACES_MAX
from warren.model.message import Message
from warren.queues.queue import ACCEPTED, CHANNEL_ENDED, Consumer, Delivery, Queue, new_delivery

_ACCEPTED = ACCEPTED
_RETURNED = RETURNED
_CHANNEL_ENDED = CHANNEL_ENDED
# A stamp is the time (ms) and the number of the node.
_STAMP_BITS = 16


class LeaderListener(Protocol):
    """Port: the queue whose leader this is."""

    def leader_came(self) -> None:
        """The other node may lead now."""

    def leader_went(self) -> None:
        """The session with the leader is lost, or it leads no more."""

    def answers_came(self) -> None:
        """Publishes were answered."""


class LeaderTraffic(QueueTraffic):
    """The publishes, consumers and deliveries of one queue that another node leads, or none."""

    __slots__ = (
        "_has_begun", "_home", "_last_stamp", "_listener", "_run", "is_connected", "publishes", "stamps",
        "unsettled",
    )  # fmt: skip

    def __init__(self, queue: Queue, listener: LeaderListener, *, name: str, number: int, run: int) -> None:
        """`run` is that of this node and its virtual host, which numbers what is published."""
        super().__init__(queue, name, number, is_durable=True)
        self.is_kept = True
        self._listener = listener
        self._run = run
        # The node to which it is connected, or which it waits for.
        self._home: HomeNode | None = None
        # True from `connect` until the leader is lost; and from when the leader has begun: what comes before
        # answers what it was told earlier.
        self.is_connected = False
        self._has_begun = False
        self.publishes = NumberedPublishes()
        self.unsettled = UnsettledPlaces()
        # The admitted consumers of this node, with what orders them.
        self.stamps: dict[Consumer, int] = {}
        self._last_stamp = 0

    def new_stamp(self, now: int, node: int) -> int:
        """What orders a new consumer of this `node` among all, at time `now` (ms): it grows."""
        stamp = now << _STAMP_BITS | node
        step = 1 << _STAMP_BITS
        self._last_stamp = stamp if stamp > self._last_stamp else self._last_stamp + step
        return self._last_stamp

    # --- the leader -----------------------------------------------------------------------------------

    def follow(self, home: HomeNode | None) -> None:
        """Wait for sessions with `home`, which may lead, instead of another node."""
        before = self._home
        if before is home:
            return
        if before is not None:
            self._disconnect()
            before.leave(self)
            before.followers.pop(self, None)
        self._home = home
        if home is not None:
            home.followers[self] = None

    def follows(self, home: HomeNode) -> bool:
        """True if it waits for sessions with `home`."""
        return self._home is home

    @property
    def is_reachable(self) -> bool:
        """True if there is a session with the node that is followed."""
        return self._home is not None and self._home.is_up

    def connect(self) -> None:
        """Tell the leader everything: only while it is reachable."""
        home = self._home
        assert home is not None
        self._disconnect()
        publishes, writer = self.publishes, home.writer
        # Whoever is told may publish: to be sent with what is not answered.
        publishes.forget_refused()
        self.is_connected = True
        home.name(self)
        writer.add(ENQUEUER, self.number, self._run, publishes.first)
        attachments = [
            self._attach(consumer, stamp, IS_ATTACHED_AGAIN)[1]
            for consumer, stamp in sorted(self.stamps.items(), key=lambda each: each[1])
        ]
        self._claim()
        writer.add(CLAIMED, self.number)
        for how, place in self.unsettled.take_under_way():
            self.settle(how, place)
        for attachment in attachments:
            home.start(attachment)
        for publish in publishes.numbered():
            home.send(self, publish.message)
        home.flush_soon()

    def lost(self) -> None:
        """The session is lost: everything is told again to the next leader."""
        self._went()

    def session_began(self) -> None:
        """A session with the node has begun that is followed."""
        self._listener.leader_came()

    def vhost_began(self) -> None:
        """The virtual host runs again at the node that is followed."""
        if not self.is_connected:
            self._listener.leader_came()

    # --- for each message -----------------------------------------------------------------------------

    def send(self, message: Message) -> int:
        """Send `message`, which has the next number, if there is a leader: ACCEPTED, perhaps with BEHIND."""
        home = self._home
        if not self.is_connected or home is None:
            return _ACCEPTED
        return home.send(self, message)

    def settle(self, how: int, place: int) -> None:
        """Tell the leader that the message at `place` is settled, or the next one if there is none."""
        home = self._home
        if self.is_connected and home is not None:
            is_new = home.writer.settle_at(self.number, how, place)
            home.flush_soon()
        else:
            is_new = True
        self.unsettled.settle(how, place, is_new=is_new)

    def deliver(self, attachment: Attachment, message: Message, place: int, attempts: int) -> None:
        """Deliver `message`, unless its consumer is gone or its channel must not get it."""
        attachment.count += 1
        attachment.byte_count += len(message.content)
        home, consumer = self._home, attachment.consumer
        assert home is not None
        delivery = new_delivery(self.queue, message, place)
        self.unsettled.deliver(place, delivery)
        if attachment.is_detached:
            self._give_back(_CHANNEL_ENDED, place)
            return
        if attachment.is_due():
            home.renew(attachment)
        if attachment.is_returning or consumer.shared_capacity() <= 0:
            self._give_back(_RETURNED, place)
            if not attachment.is_returning:
                # Other consumers of its channel were faster.
                home.withdraw_grant(attachment)
            return
        delivery.attempts = attempts
        delivery.consumer = consumer
        consumer.deliver(delivery)

    def got(self, request: object, message: Message, place: int, attempts: int) -> None:
        """Keep what `request` has fetched until its answer."""
        delivery = new_delivery(self.queue, message, place)
        delivery.attempts = attempts
        assert isinstance(request, HomeRequest)
        request.delivery = delivery
        self.unsettled.deliver(place, delivery)

    def answered(self, count: int, is_refused: bool) -> bool:
        """The leader has answered the next `count` publishes; False if there are not so many."""
        if not self._has_begun:
            # It was published before, and is published again.
            return True
        is_right = self._refuse(count) if is_refused else self.publishes.confirm(count)
        self._listener.answers_came()
        return is_right

    @property
    def is_answered(self) -> bool:
        """True if nothing that was published waits for an answer."""
        return not self.publishes.count

    # --- for each method ------------------------------------------------------------------------------

    def request(self, kind: int, *numbers: int) -> HomeRequest:
        """Ask the leader. HomeDown without a session."""
        assert self._home is not None
        return self._home.request(kind, self, *numbers)

    def fetch(self, no_ack: bool) -> HomeRequest:
        """Ask the leader for the first message."""
        return self.request(GET, NO_ACK if no_ack else 0)

    def attach(self, consumer: Consumer, stamp: int) -> HomeRequest:
        """Ask the leader to admit `consumer`, which is ordered by its `stamp`."""
        assert self._home is not None
        self._home.check_up(self)
        request, _ = self._attach(consumer, stamp, 0)
        return request

    def start(self, consumer: Consumer) -> None:
        """Let the admitted `consumer` get messages; without a leader, the next one does that."""
        attachment = self.attachments.get(consumer)
        if attachment is not None and self._home is not None:
            attachment.is_started = True
            self._home.start(attachment)

    def detach(self, consumer: Consumer) -> HomeRequest | None:
        """Remove `consumer`: what is on its way to it returns to its place; None without a leader."""
        self.stamps.pop(consumer, None)
        attachment = self.attachments.pop(consumer, None)
        if attachment is None or self._home is None:
            return None
        attachment.is_detached = True
        request = self._home.end_deliveries(self, attachment)
        request.undo = partial(_detached, self._home, attachment)
        return request

    def end_deliveries(self, consumer: Consumer) -> HomeRequest | None:
        """Have `consumer` removed, which gets what is on its way; None without a leader."""
        attachment = self.attachments.get(consumer)
        if attachment is None or self._home is None:
            return None
        return self._home.end_deliveries(self, attachment)

    def drop(self, consumer: Consumer) -> None:
        """Forget `consumer`, which the leader has removed."""
        self.stamps.pop(consumer, None)
        attachment = self.attachments.get(consumer)
        if attachment is not None and self._home is not None:
            self._home.drop(attachment)

    def withdraw(self, request: HomeRequest) -> None:
        """Undo what `request` asks for when it is answered, since nobody waits for it any more."""
        if request.undo is None:
            request.undo = self._undo

    def unpark(self, consumer: Consumer) -> None:
        """The leader may deliver more to `consumer`, if it has little left."""
        attachment = self.attachments.get(consumer)
        if attachment is not None and self._home is not None:
            self._home.renew(attachment)

    def tell_touched(self) -> None:
        """Tell the leader that the queue was declared again."""
        if self._home is not None:
            self._home.tell_touched(self)

    def end(self) -> None:
        """Forget the leader, since the queue was deleted or its virtual host ends here."""
        if self._home is not None:
            home = self._home
            self.follow(None)
            home.forget(self)

    def handle(self, kind: int, reader: PayloadReader) -> None:
        """Handle an item of the leader about the queue, whose number was read."""
        if kind == SETTLED:
            count = reader.number(4)
            if self._has_begun and not self.unsettled.settled(count):
                raise MalformedPayload(f"{count} settlements of queue {self.number} are answered")
        elif kind == NOT_LEADER:
            self._went()
        elif kind == LEADING and not self.is_connected:
            self._listener.leader_came()
        elif kind == LEADING:
            self._has_begun = True

    # --- private --------------------------------------------------------------------------------------

    def _refuse(self, count: int) -> bool:
        """The leader has refused the next `count` publishes; False if there are not so many.

        It is told to resume each time that it has begun to refuse, perhaps more than once among these.
        """
        publishes, home = self.publishes, self._home
        assert home is not None
        while 0 < count <= publishes.count:
            if not publishes.is_refused:
                publishes.refuse_sent()
                home.writer.add(RESUME, self.number)
                home.flush_soon()
            count -= publishes.refuse(count)
        return not count

    def _attach(self, consumer: Consumer, stamp: int, flags: int) -> tuple[HomeRequest, Attachment]:
        home = self._home
        assert home is not None
        flags |= (IS_EXCLUSIVE if consumer.is_exclusive else 0) | (NO_ACK if consumer.no_ack else 0)
        request, attachment = home.new_attachment(self, consumer)
        numbers = (self.number, request.id, flags, consumer.priority, stamp)
        home.writer.add_named(ATTACH_AT, consumer.tag, *numbers)
        if flags & IS_ATTACHED_AGAIN:
            attachment.is_started = True
            request.undo = _ignore
        home.flush_soon()
        return request, attachment

    def _claim(self) -> None:
        """Tell the leader what this node holds: of each consumer, of none, and what is settled meanwhile."""
        places: dict[int, list[int]] = {}
        for place, delivery in self.unsettled.held.items():
            attachment = None if delivery.consumer is None else self.attachments.get(delivery.consumer)
            places.setdefault(0 if attachment is None else attachment.id, []).append(place)
        under_way = self.unsettled.take_under_way()
        places.setdefault(0, []).extend(place for _, place in under_way)
        for how, place in under_way:
            # As they were, to be sent behind the claims.
            self.unsettled.settle(how, place, is_new=True)
        assert self._home is not None
        for consumer, claimed in places.items():
            for first, count in _runs(sorted(claimed)):
                self._home.writer.add(CLAIM, self.number, consumer, first, count)

    def _give_back(self, how: int, place: int) -> None:
        """Return what nobody has got."""
        del self.unsettled.held[place]
        self.settle(how, place)

    def _undo(self, answer: HomeAnswer) -> None:
        """Return the delivery that nobody waits for."""
        if isinstance(answer[0], Delivery):
            place = answer[0].position
            if self.unsettled.held.get(place) is answer[0]:
                self._give_back(_RETURNED, place)

    def _disconnect(self) -> None:
        """Forget what belongs to the leader that is lost."""
        self.is_connected = self._has_begun = False
        if self._home is not None:
            self._home.drop_all(self)

    def _went(self) -> None:
        if self.is_connected:
            self._disconnect()
            self.publishes.forget_refused()
            self._listener.leader_went()


def _detached(home: HomeNode, attachment: Attachment, answer: HomeAnswer) -> None:
    """The node of `home` has removed the consumer, whichever node leads now."""
    home.drop(attachment)


def _ignore(answer: HomeAnswer) -> None:
    """A consumer that was attached again is there already."""


def _runs(places: Iterable[int]) -> list[tuple[int, int]]:
    """The increasing `places` as runs: the first one, and how many follow one another."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and place == runs[-1][0] + runs[-1][1] and runs[-1][1] < REMOTE_PLACES_MAX:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((place, 1))
    return runs
