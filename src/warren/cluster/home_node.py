"""The home of remote queues of one virtual host, as the node sees it that has their clients: the near side.

What a turn does to all queues of one home is collected and sent as one payload at its end. A session begins
and ends with that of the link to the other node, or when the virtual host ends there. What was under way is
lost then: publishes are refused, consumers are cancelled, what waits for an answer fails, and deliveries can
not be settled any more, since the home has them back.

While the home cannot take payloads, because the link is interrupted or slow, they are kept, and who has
published too much waits.
"""

from collections import deque
from functools import partial

from warren.cluster.attachment import Attachment
from warren.cluster.held_publishes import HeldPublishes
from warren.cluster.home_absence import HomeAbsence
from warren.cluster.home_dependencies import HomeDependencies
from warren.cluster.home_request import HomeAnswer, HomeRequest, fail, ignore
from warren.cluster.payload_reader import PayloadReader
from warren.cluster.payload_writer import PayloadWriter
from warren.cluster.queue_traffic import QueueTraffic
from warren.cluster.remote_codec import (
    ANSWER,
    ASK,
    ASK_REPLY,
    ATTACH,
    CANCELLED,
    CONFIRM,
    CREDIT,
    DELIVER,
    DELIVER_AT,
    DETACH,
    ECHO,
    FAILED,
    FORGET,
    FROM_LEADER,
    GET,
    GOT,
    HAS_DIED,
    IS_EXCLUSIVE,
    LOST,
    NAME,
    NO_ACK,
    REFUSE,
    RETURNED,
    SETTLED,
    START,
    TO_HOME,
    TOUCH,
    WANTS_CONFIRM,
    MalformedPayload,
    encode_head,
)
from warren.cluster.request_errors import error_of, unavailable
from warren.errors import NotFound, NotLeading
from warren.flow.credit import PublishCredit
from warren.limits_cluster import REMOTE_HELD_SIZE_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message, has_died
from warren.queues.queue import (
    ACCEPTED,
    CHANNEL_ENDED,
    REFUSED,
    UNAVAILABLE,
    Consumer,
    Delivery,
    new_delivery,
)
from warren.vhost.vhost import VirtualHost

_WANTS_CONFIRM = WANTS_CONFIRM
_HAS_DIED = HAS_DIED
_NO_ACK = NO_ACK
_RETURNED = RETURNED
_CHANNEL_ENDED = CHANNEL_ENDED
_ACCEPTED = ACCEPTED
_REFUSED_AS_AWAY = REFUSED | UNAVAILABLE
_CONFIRM = CONFIRM
_REFUSE = REFUSE
_DELIVER = DELIVER
_DELIVER_AT = DELIVER_AT
_HELD_SIZE_MAX = REMOTE_HELD_SIZE_MAX
# The position of a delivery: the generation, and its number in it.
_NUMBER_BITS = 40
_NUMBER_MASK = 0xFF_FFFF_FFFF
_GENERATION_MASK = 0xFF_FFFF


class HomeNode:
    """One node that is the home of queues of one virtual host, and all traffic with it."""

    __slots__ = (
        "_attachments", "_channel", "_delivered", "_generation", "_held", "_host",
        "_is_flush_due", "_is_held", "_later", "_left", "_mark", "_metadata", "_next_generation",
        "_publishing", "_renewing", "_request_id", "_requests", "_turn", "_vhost", "_waiting", "absence",
        "followers", "is_up", "node_name", "writer",
    )  # fmt: skip

    def __init__(self, vhost: VirtualHost, dependencies: HomeDependencies) -> None:
        """The home of queues of `vhost`."""
        self.node_name = dependencies.name
        # True while there is a session.
        self.is_up = False
        # Those that wait for the next session.
        self.absence = HomeAbsence(dependencies.later, dependencies.after)
        self._host = vhost
        self._vhost = vhost.name
        self._channel = dependencies.channel
        self._metadata = dependencies.metadata
        self._later = dependencies.later
        self._turn = dependencies.turn
        self._next_generation = dependencies.next_generation
        self._generation = 0
        # The part of positions that says the generation, and the number of the latest delivery.
        self._mark = 0
        self._delivered = 0
        self.writer = PayloadWriter()
        self._is_flush_due = False
        # Payloads that the channel does not take yet.
        self._waiting: deque[bytes] = deque()
        # True while the channel does not take what is collected; and what waits for that.
        self._is_held = False
        self._held = HeldPublishes(dependencies.later)
        # By number: the queues that were named in this session.
        self._publishing: dict[int, QueueTraffic] = {}
        # The numbers of those that another node leads since.
        self._left: set[int] = set()
        self._request_id = 0
        self._requests: dict[int, HomeRequest] = {}
        self._attachments: dict[int, Attachment] = {}
        # The quorum queues that it leads, as far as is known here, which are told of its sessions.
        self.followers: dict[QueueTraffic, None] = {}
        self._renewing: dict[Attachment, None] = {}

    @property
    def credit(self) -> PublishCredit:
        """What publishers wait for that have published too much."""
        return self._held.credit

    # --- what remote queues call: for each message ----------------------------------------------------

    def publish(
        self, traffic: QueueTraffic, message: Message, confirmation: ConfirmListener | None, sequence: int
    ) -> int:
        """Publish `message` to the queue of `traffic`: ACCEPTED, perhaps with BEHIND.

        REFUSED with UNAVAILABLE while there is no session.
        """
        if not self.is_up:
            return _REFUSED_AS_AWAY
        if not traffic.is_named:
            self.name(traffic)
        if confirmation is None:
            return self._send(traffic, message, 0)
        traffic.unconfirmed.add(confirmation, sequence)
        return self._send(traffic, message, _WANTS_CONFIRM)

    def send(self, traffic: QueueTraffic, message: Message) -> int:
        """Publish `message` to the leader of a quorum queue: ACCEPTED, perhaps with BEHIND."""
        return self._send(traffic, message, _WANTS_CONFIRM)

    def _send(self, traffic: QueueTraffic, message: Message, flags: int) -> int:
        if has_died(message):
            flags |= _HAS_DIED
        writer = self.writer
        writer.publish(message, traffic.number, flags)
        if not self._is_flush_due:
            self._flush_later()
        if writer.is_full():
            self.flush()
        if self._is_held:
            return self._held.hold(traffic, len(message.content), self._host)
        return _ACCEPTED

    def settle(self, delivery: Delivery, how: int) -> None:
        """Settle `delivery`, unless its session has ended."""
        position = delivery.position
        if position >> _NUMBER_BITS != self._mark or not self.is_up:
            return
        self.writer.settle(how, position & _NUMBER_MASK)
        if not self._is_flush_due:
            self._flush_later()

    def reply(self, message: Message) -> None:
        """Send a direct reply to its requester; it is dropped without a session, and while too many wait."""
        if not self.is_up or self._held.reply_size >= _HELD_SIZE_MAX:
            return
        writer = self.writer
        writer.reply(message)
        if not self._is_flush_due:
            self._flush_later()
        if writer.is_full():
            self.flush()
        if self._is_held:
            self._held.reply_size += len(message.address) + len(message.property_list) + len(message.content)

    # --- for each method ------------------------------------------------------------------------------

    def ask_reply(self, name: str) -> HomeRequest:
        """Ask whether there is a requester of direct replies `name`: the first number is 1 or 0."""
        request = self._new_request(ASK_REPLY, None)
        self.writer.add_named(ASK_REPLY, name, request.id)
        self._flush_later()
        return request

    def check_up(self, traffic: QueueTraffic) -> None:
        """HomeDown while there is no session; NotFound if the queue ends with its home."""
        if not self.is_up:
            raise unavailable(traffic, self.node_name, self._vhost)

    def request(self, kind: int, traffic: QueueTraffic, *numbers: int) -> HomeRequest:
        """Ask the home about the queue of `traffic`."""
        self.check_up(traffic)
        request = self._new_request(kind, traffic)
        if not traffic.is_named:
            self.name(traffic)
        self._add(kind, request.id, traffic.number, *numbers)
        return request

    def tell_touched(self, traffic: QueueTraffic) -> None:
        """Tell the home that the queue was declared again."""
        if self.is_up:
            if not traffic.is_named:
                self.name(traffic)
            self._add(TOUCH, traffic.number)

    def attach(self, traffic: QueueTraffic, consumer: Consumer, arguments: bytes) -> HomeRequest:
        """Ask the home to admit `consumer`, with its `arguments` as an encoded table, and deliver to it."""
        self.check_up(traffic)
        request, attachment = self.new_attachment(traffic, consumer)
        flags = (IS_EXCLUSIVE if consumer.is_exclusive else 0) | (NO_ACK if consumer.no_ack else 0)
        self.writer.attach(consumer.tag, arguments, request.id, traffic.number, flags, consumer.priority)
        self.start(attachment)
        return request

    def new_attachment(self, traffic: QueueTraffic, consumer: Consumer) -> tuple[HomeRequest, Attachment]:
        """A request to attach `consumer`, and the attachment that it becomes."""
        request = self._new_request(ATTACH, traffic)
        self.name(traffic)
        attachment = Attachment(request.id, consumer, traffic.queue, traffic.number)
        attachment.siblings = traffic.attachments
        self._attachments[request.id] = traffic.attachments[consumer] = attachment
        attachment.is_kept = traffic.is_kept
        return request, attachment

    def start(self, attachment: Attachment) -> None:
        """Let the consumer get messages once it is admitted."""
        attachment.grant()
        limit = attachment.consumer.prefetch_limit()
        self._add(START, attachment.id, limit, attachment.messages_to, attachment.bytes_to)

    def admitted(self, attachment: Attachment) -> None:
        """The home has admitted the consumer; it is granted more if it can take more meanwhile."""
        attachment.is_started = True
        self.renew(attachment)

    def renew(self, attachment: Attachment) -> None:
        """Grant the consumer more at the end of the turn, if it can take more."""
        self._renewing[attachment] = None
        if not self._is_flush_due:
            self._flush_later()

    def detach(self, attachment: Attachment) -> None:
        """Remove the consumer; what is on its way to it returns to its place."""
        if self.drop(attachment):
            self._add(DETACH, 0, attachment.id)

    def drop(self, attachment: Attachment) -> bool:
        """Forget the consumer, which the home has removed; False if it was forgotten before."""
        attachment.siblings.pop(attachment.consumer, None)
        self._renewing.pop(attachment, None)
        return self._attachments.pop(attachment.id, None) is not None

    def end_deliveries(self, traffic: QueueTraffic, attachment: Attachment) -> HomeRequest:
        """Remove the consumer of `traffic` when all that is on its way to it has arrived."""
        attachment.is_ending = True
        request = self._new_request(DETACH, traffic)
        self._add(DETACH, request.id, attachment.id)
        return request

    def forget(self, traffic: QueueTraffic) -> None:
        """Forget the queue of `traffic`, which was deleted; what waits for an answer about it fails soon."""
        traffic.is_forgotten = True
        self.absence.gone(traffic)
        if traffic.is_named and self.is_up:
            self._add(FORGET, traffic.number)
            self._end_if_answered(traffic)
        missing = NotFound(f"no queue '{traffic.name}' in vhost '{self._vhost}'")
        for request in [one for one in self._requests.values() if one.traffic is traffic]:
            self.withdraw(request)
            self._later(partial(fail, request, missing))

    def leave(self, traffic: QueueTraffic) -> None:
        """Have the node end what it has of the queue of `traffic`, which another one leads."""
        if self._publishing.pop(traffic.number, None) is not None:
            traffic.is_named = False
            # Answers may be on their way.
            self._left.add(traffic.number)
            self._add(FORGET, traffic.number)

    def drop_all(self, traffic: QueueTraffic) -> None:
        """Forget the consumers of `traffic`, and have nobody wait for this node."""
        for attachment in list(traffic.attachments.values()):
            self.drop(attachment)
        for request in [one for one in self._requests.values() if one.traffic is traffic]:
            if request.undo is None:
                # What comes for it from now on does not count.
                request.undo, request.kind = ignore, ECHO
                self._later(partial(fail, request, NotLeading(f"node '{self.node_name}' does not lead")))

    def withdraw(self, request: HomeRequest) -> None:
        """Undo what `request` asked for when it is answered, since nobody waits for it any more."""
        if request.undo is None:
            request.undo = self._undo

    # --- what the other node does -------------------------------------------------------------------

    def begin(self) -> None:
        """A session has begun, after the end of the one before."""
        self._begin_generation()
        self.is_up = True
        self.absence.over()
        for traffic in list(self.followers):
            traffic.session_began()

    def vhost_began(self) -> None:
        """The virtual host runs again at the home."""
        for traffic in list(self.followers):
            traffic.vhost_began()

    def end(self) -> None:
        """The session is lost, or the virtual host ends here."""
        self.is_up = False
        self._end_session()

    def writable(self) -> None:
        """The channel takes payloads again."""
        self.flush()
        if not self._is_held:
            self._held.release()

    def received(self, reader: PayloadReader) -> None:
        """Handle a payload of the home. MalformedPayload if it is not what a home sends."""
        if reader.generation != self._generation or not self.is_up:
            return
        kind = reader.next()
        while kind:
            if kind == _DELIVER:
                self._deliver(reader)
            elif kind == _DELIVER_AT:
                self._deliver_at(reader)
            elif kind == _CONFIRM:
                self._answer_publishes(reader, False)
            elif kind == _REFUSE:
                self._answer_publishes(reader, True)
            elif kind == LOST:
                self._lost_vhost()
                return
            else:
                self._handle(kind, reader)
            kind = reader.next()

    def flush(self) -> None:
        """Send what was collected, as far as the channel takes it."""
        if not self.is_up:
            return
        if self._renewing:
            self._grant_all()
        channel, waiting, writer = self._channel, self._waiting, self.writer
        while waiting and channel.is_writable:
            channel.send(TO_HOME, waiting.popleft())
        if not writer.is_empty():
            if not waiting and channel.is_writable:
                channel.send(TO_HOME, self._taken())
            elif writer.is_full():
                # So that the home handles it in several turns.
                waiting.append(self._taken())
        self._is_held = bool(waiting) or not writer.is_empty()

    def _taken(self) -> bytes:
        """The payload of what was collected."""
        return self.writer.take(encode_head(self._generation, self._metadata.index, self._vhost))

    # --- private --------------------------------------------------------------------------------------

    def _add(self, kind: int, *numbers: int) -> None:
        self.writer.add(kind, *numbers)
        if not self._is_flush_due:
            self._flush_later()

    def flush_soon(self) -> None:
        """Send at the end of the turn what was written, or now if it is much."""
        self._flush_later()
        if self.writer.is_full():
            self.flush()

    def _flush_later(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._later(self._flush)

    def _flush(self, now: int) -> None:
        self._is_flush_due = False
        self.flush()

    def name(self, traffic: QueueTraffic) -> None:
        """Tell the home which queue the number is, unless it knows."""
        if traffic.is_named:
            return
        traffic.is_named = True
        self._publishing[traffic.number] = traffic
        self.writer.add_named(NAME, traffic.name, traffic.number)

    def _new_request(self, kind: int, traffic: QueueTraffic | None) -> HomeRequest:
        self._request_id += 1
        request = HomeRequest(self._request_id, kind, traffic)
        self._requests[request.id] = request
        return request

    def _undo(self, answer: HomeAnswer) -> None:
        """Return the delivery that nobody waits for."""
        if isinstance(answer[0], Delivery):
            self.settle(answer[0], _RETURNED)

    def _grant_all(self) -> None:
        """Grant what consumers can take that have used up half of what they had, or were not ready."""
        renewing, self._renewing = self._renewing, {}
        for attachment in renewing:
            if attachment.is_started and attachment.grant():
                self.writer.add(CREDIT, attachment.id, attachment.messages_to, attachment.bytes_to)

    def _deliver(self, reader: PayloadReader) -> None:
        """Deliver a message, unless its consumer is gone or its channel must not get it."""
        attachment = self._attachments.get(reader.number(4))
        flags = reader.number(1)
        attempts = reader.number(4)
        message = reader.delivered(flags, reader.number(1), self._turn.now())
        position = 0
        if not flags & _NO_ACK:
            self._delivered += 1
            position = self._mark << _NUMBER_BITS | self._delivered
        if attachment is None:
            # As RabbitMQ, which finds it in the mailbox of the channel that has ended.
            self._return(position, _CHANNEL_ENDED)
            return
        attachment.count += 1
        attachment.byte_count += len(message.content)
        if attachment.is_due():
            self.renew(attachment)
        consumer = attachment.consumer
        if consumer.no_ack:
            consumer.deliver_message(message, attempts > 0)
            return
        if attachment.is_returning or consumer.shared_capacity() <= 0:
            self._return(position, _RETURNED)
            if not attachment.is_returning:
                # Other consumers of its channel were faster.
                self.withdraw_grant(attachment)
            return
        delivery = new_delivery(attachment.queue, message, position)
        delivery.attempts = attempts
        delivery.consumer = consumer
        consumer.deliver(delivery)

    def _deliver_at(self, reader: PayloadReader) -> None:
        """Deliver a message of a quorum queue, or keep it for a request."""
        id, flags = reader.number(4), reader.number(1)
        attempts, message_flags, place = reader.number(4), reader.number(1), reader.number(8)
        message = reader.delivered(flags, message_flags, self._turn.now())
        attachment, request = self._attachments.get(id), self._requests.get(id)
        if attachment is not None:
            traffic = self._publishing.get(attachment.number)
            if traffic is not None:
                traffic.deliver(attachment, message, place, attempts)
        elif request is not None and request.kind == GET and request.traffic is not None:
            request.traffic.got(request, message, place, attempts)

    def withdraw_grant(self, attachment: Attachment) -> None:
        """Withdraw what the consumer was granted, and grant it anew when nothing is on its way any more."""
        attachment.withdraw()
        self.writer.add(CREDIT, attachment.id, attachment.messages_to, attachment.bytes_to)
        traffic = self._publishing[attachment.number]
        request = self.request(ASK, traffic, ECHO)
        request.undo = partial(self._end_returns, attachment)

    def _end_returns(self, attachment: Attachment, answer: HomeAnswer) -> None:
        attachment.is_returning = False
        self.renew(attachment)

    def _return(self, position: int, how: int) -> None:
        """Return the delivery at `position` to its place, if it has one."""
        if position:
            self.writer.settle(how, position & _NUMBER_MASK)
            if not self._is_flush_due:
                self._flush_later()

    def _answer_publishes(self, reader: PayloadReader, is_refused: bool) -> None:
        number = reader.number(8)
        count = reader.number(4)
        traffic = self._publishing.get(number)
        if traffic is None and number in self._left:
            return
        if traffic is None or not traffic.answered(count, is_refused):
            raise MalformedPayload(f"{count} answers for queue {number}")
        if traffic.is_forgotten:
            self._end_if_answered(traffic)

    def _end_if_answered(self, traffic: QueueTraffic) -> None:
        """Forget `traffic` of a deleted queue when all its publishes are answered."""
        if traffic.is_answered:
            self._publishing.pop(traffic.number, None)

    def _handle(self, kind: int, reader: PayloadReader) -> None:
        """Handle an item that is no message and no answer to a publish."""
        if kind == CANCELLED:
            attachment = self._attachments.get(reader.number(4))
            if attachment is not None and not attachment.is_ending:
                self.drop(attachment)
                attachment.consumer.cancelled()
            return
        if kind in FROM_LEADER:
            traffic = self._publishing.get(reader.number(8))
            if traffic is not None:
                traffic.handle(kind, reader)
            elif kind == SETTLED:
                reader.number(4)
            return
        if kind not in (ANSWER, FAILED, GOT):
            raise MalformedPayload(f"an item of kind {kind}")
        id = reader.number(4)
        request = self._requests.pop(id, None)
        if request is None or (kind == GOT and request.kind != GET):
            raise MalformedPayload(f"an answer to request {id}")
        if kind == ANSWER:
            numbers, got = (reader.number(8), reader.number(8), reader.number(8)), request.delivery
            request.answer(numbers if got is None else (got, numbers[0]))
        elif kind == FAILED:
            code, text = reader.number(2), reader.long_text()
            if request.undo is None:
                request.fail(
                    error_of(code, text, request.traffic, node_name=self.node_name, vhost=self._vhost)
                )
        else:
            left = reader.number(4)
            request.answer((self._got(reader, request), left))

    def _got(self, reader: PayloadReader, request: HomeRequest) -> Delivery:
        flags = reader.number(1)
        attempts = reader.number(4)
        message = reader.delivered(flags, reader.number(1), self._turn.now())
        self._delivered += 1
        position = self._mark << _NUMBER_BITS | self._delivered
        assert request.traffic is not None
        delivery = new_delivery(request.traffic.queue, message, position)
        delivery.attempts = attempts
        return delivery

    def _lost_vhost(self) -> None:
        """The virtual host has ended at the home: what is asked from now on belongs to its next run."""
        self._end_session()
        self._begin_generation()

    def _begin_generation(self) -> None:
        self._generation = self._next_generation()
        self._mark = self._generation & _GENERATION_MASK
        self._delivered = 0

    def _end_session(self) -> None:
        """End all that was under way."""
        self.writer.clear()
        self._waiting.clear()
        self._generation = self._mark = 0
        self._is_held = False
        publishing, self._publishing = self._publishing, {}
        self._left.clear()
        attachments, self._attachments = self._attachments, {}
        requests, self._requests = self._requests, {}
        self._renewing.clear()
        self._held.release()
        for traffic in publishing.values():
            traffic.is_named = False
        for traffic in publishing.values():
            traffic.lost()
        for attachment in attachments.values():
            attachment.siblings.clear()
        for attachment in attachments.values():
            if attachment.is_started and not attachment.is_ending and not attachment.is_kept:
                attachment.consumer.cancelled()
        for request in requests.values():
            if request.undo is not None:
                continue
            if request.traffic is None:
                # Who asks for a requester asks whether it is there.
                request.answer((0, 0, 0))
            else:
                request.fail(unavailable(request.traffic, self.node_name, self._vhost))
