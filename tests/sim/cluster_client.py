"""A client of a cluster of simulated brokers: it speaks octets with any node, and tells the history."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from itertools import takewhile

from tests.sim.cluster_history import BrokenPromise, ClusterHistory, KnownQueue, SentMessage

from warren.simulation.method_reader import MethodReader, ReceivedMethod, method_frame, publish_frames
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.properties import BasicProperties
from warren.wire.table import Table

_HEADER = b"AMQP\x00\x00\x09\x01"
_CAPABILITIES = {"consumer_cancel_notify": True, "publisher_confirms": True}
PUBLISHING, DECLARING, CONSUMING, GETTING = 1, 2, 3, 4
# For what a node closes channels and connections here: what is not there or away, exclusive queues of others,
# changes on which no majority agrees in time; clients that are shut out.
_CHANNEL_CODES = (404, 405, 541)
_CONNECTION_CODES = (320, 541)
# A delivery was held for too long, by a clock that was set forward.
_TIMED_OUT = "delivery acknowledgement on channel"
# What comes without a question.
_UNASKED = (
    methods.BasicDeliver, methods.BasicAck, methods.BasicNack, methods.BasicReturn, methods.BasicCancel,
)  # fmt: skip


class ClusterChannel:
    """One channel, from channel.open to its end."""

    def __init__(self, client: "ClusterClient", number: int, publisher: str) -> None:
        self.number = number
        self.publisher = publisher
        self._client = client
        self.is_closing = False
        self._sequence = 0
        # By sequence: what was not answered. By tag: what was not settled, of which queue.
        self.unconfirmed: dict[int, SentMessage] = {}
        self.unacked: dict[int, SentMessage] = {}
        self.consumers: dict[str, KnownQueue] = {}
        self._consumer_count = 0
        self._gets: deque[KnownQueue] = deque()
        self._answers: deque[tuple[tuple[type[Method], ...], Callable[[Method], None]]] = deque()
        # What happens if the channel ends before an answer comes.
        self._unanswered: deque[Callable[[], None]] = deque()

    @property
    def is_waiting(self) -> bool:
        """True if an answer is under way."""
        return bool(self._answers)

    def waits_for(self, lost: Collection[str]) -> list[str]:
        """What was not answered yet.

        Nobody confirms a publish to a queue that is `lost`, and acknowledgements of a channel are in order.
        """
        awaited = [types[0].__name__ for types, _ in self._answers]
        ahead = takewhile(lambda message: message.queue.name not in lost, self.unconfirmed.values())
        return awaited + [f"confirm of {message.id}" for message in ahead]

    # --- what the client does -------------------------------------------------------------------------

    def call(
        self,
        method: Method,
        *answers: type[Method],
        then: Callable[[Method], None] = lambda _: None,
        otherwise: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a method whose answer is one of `answers`; `otherwise` is called if none comes."""
        self._answers.append((answers, then))
        self._unanswered.append(otherwise)
        self._client.send(method_frame(self.number, method))

    def publish(self, queue: KnownQueue, size: int, *, is_persistent: bool, is_mandatory: bool) -> None:
        """Publish a message to a queue."""
        if not self._sequence:
            self.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
        message = self._client.history.sent(
            queue,
            self.publisher,
            is_persistent=is_persistent,
            is_mandatory=is_mandatory,
            is_known=self._client.knows(queue),
        )
        self._sequence += 1
        self.unconfirmed[self._sequence] = message
        publish = methods.BasicPublish(routing_key=queue.name, mandatory=is_mandatory)
        properties = BasicProperties(delivery_mode=2 if is_persistent else 1)
        body = (b"%d " % message.id).ljust(size, b".")
        self._client.send(publish_frames(self.number, publish, properties, body))

    def consume(self, queue: KnownQueue, prefetch: int) -> None:
        """Start a consumer."""
        self._consumer_count += 1
        tag = f"c{self._consumer_count}"
        self.consumers[tag] = queue
        self.call(methods.BasicQos(prefetch_count=prefetch), methods.BasicQosOk)
        self.call(methods.BasicConsume(queue=queue.name, consumer_tag=tag), methods.BasicConsumeOk)

    def cancel(self, tag: str) -> None:
        """Cancel a consumer."""
        self.call(methods.BasicCancel(consumer_tag=tag), methods.BasicCancelOk)

    def get(self, queue: KnownQueue) -> None:
        """Ask for one message."""
        self._gets.append(queue)
        self.call(methods.BasicGet(queue=queue.name), methods.BasicGetOk, methods.BasicGetEmpty)

    def settle(self, tag: int, *, is_multiple: bool = False, is_requeued: bool = False) -> None:
        """Acknowledge a delivery, or all up to it, or return them."""
        tags = [one for one in self.unacked if one == tag or (is_multiple and one < tag)]
        for one in tags:
            message = self.unacked.pop(one)
            message.is_settled = message.is_settled or not is_requeued
        self._client.history.counts["requeued" if is_requeued else "settled"] += len(tags)
        method: Method = methods.BasicAck(delivery_tag=tag, multiple=is_multiple)
        if is_requeued:
            method = methods.BasicNack(delivery_tag=tag, multiple=is_multiple, requeue=True)
        self._client.send(method_frame(self.number, method))

    def reject(self, tag: int) -> None:
        """Reject a delivery, which then dies."""
        self.unacked.pop(tag)
        self._client.history.counts["rejected"] += 1
        self._client.send(method_frame(self.number, methods.BasicReject(delivery_tag=tag, requeue=False)))

    def close(self) -> None:
        """Close the channel in order; another one with its number is opened when it is closed."""
        if not self.is_closing:
            self.is_closing = True
            self.call(
                methods.ChannelClose(reply_code=200, reply_text="done"),
                methods.ChannelCloseOk,
                then=lambda _: self._client.forget(self),
            )

    def remove(self, queue: KnownQueue, method: Method, answer: type[Method]) -> None:
        """Delete or purge a queue: what was sent to it until that is answered may be gone."""
        queue.removals += 1
        queue.end()

        def removed(_: Method) -> None:
            queue.removals -= 1
            queue.end()

        def not_answered() -> None:
            queue.removals -= 1
            queue.is_uncertain = True

        self.call(method, answer, then=removed, otherwise=not_answered)

    # --- what arrives ---------------------------------------------------------------------------------

    def receive(self, received: ReceivedMethod) -> None:
        """Handle a method."""
        method = received.method
        history = self._client.history
        match method:
            case methods.BasicDeliver(consumer_tag=tag, delivery_tag=number):
                self._take(received, self.consumers[str(tag)], (self, tag), number)
            case methods.BasicGetOk(delivery_tag=number):
                self._take(received, self._gets.popleft(), None, number)
            case methods.BasicGetEmpty():
                self._gets.popleft()
            case methods.BasicAck(delivery_tag=number, multiple=multiple):
                self._answer(number, multiple, is_ack=True)
            case methods.BasicNack(delivery_tag=number, multiple=multiple):
                self._answer(number, multiple, is_ack=False)
            case methods.BasicReturn(reply_code=code):
                history.returned(message_id(received), code)
            case methods.BasicCancel(consumer_tag=tag):
                queue = self.consumers.get(tag)
                is_deleted = queue is not None and (queue.generation or queue.removals or queue.is_uncertain)
                is_allowed = is_deleted or history.has_consumer_timeouts
                if queue is not None and queue.is_quorum and not is_allowed:
                    raise BrokenPromise(f"{self.publisher}: {tag} of {queue.name!r} is cancelled")
                history.counts["cancelled"] += 1
                history.note(f"{self.publisher}: {tag} is cancelled")
            case methods.ChannelClose(reply_code=code, reply_text=text):
                history.counts[str(code)] += 1
                history.note(f"{self.publisher}: {code} {text}")
                if code not in _CHANNEL_CODES and _TIMED_OUT not in str(text):
                    raise BrokenPromise(f"channel of {self.publisher} is closed: {code} {text}")
                self._client.send(method_frame(self.number, methods.ChannelCloseOk()))
                if self.is_closing:
                    # Both have closed it at the same time: the node may answer, before it opens the next.
                    self._client.crossed.add(self.number)
                self._client.forget(self)
                return
            case methods.ChannelCloseOk() if not self.is_closing and self.number in self._client.crossed:
                self._client.crossed.remove(self.number)
                return
        if self._answers and isinstance(method, self._answers[0][0]):
            self._unanswered.popleft()
            self._answers.popleft()[1](method)
        elif not isinstance(method, _UNASKED):
            raise BrokenPromise(f"a {method.name} that {self.publisher} has not asked for")

    def _take(self, received: ReceivedMethod, queue: KnownQueue, consumer: object, tag: int) -> None:
        assert isinstance(received.method, methods.BasicDeliver | methods.BasicGetOk)
        id, is_again = message_id(received), received.method.redelivered
        self._client.history.note(f"{self.publisher}: message {id} of {queue.name}, again: {is_again}")
        self.unacked[tag] = self._client.history.delivered(id, queue, consumer, is_again=is_again)

    def _answer(self, sequence: int, multiple: bool, *, is_ack: bool) -> None:
        named = [one for one in self.unconfirmed if one == sequence or (multiple and one < sequence)]
        if sequence not in named:
            raise BrokenPromise(f"publish {sequence} of {self.publisher} is answered twice, or was not sent")
        for one in named:
            self._client.history.answered(self.unconfirmed.pop(one), is_ack=is_ack)

    def ended(self) -> None:
        """The channel is gone."""
        self._answers.clear()
        for queue in self._gets:
            queue.withdrawn_gets += 1
        unanswered, self._unanswered = self._unanswered, deque()
        for action in unanswered:
            action()


class ClusterClient:
    """One client; `SimulatedNetwork` of a node calls it."""

    def __init__(self, name: str, history: ClusterHistory) -> None:
        self.name = name
        self.history = history
        self.is_connected = self.is_open = False
        # True once its connection was closed in order, so that it closes the socket.
        self.is_done = False
        self.channels: dict[int, ClusterChannel] = {}
        # Queues that its node certainly has, since it was told so on this connection.
        self._known: dict[KnownQueue, int] = {}
        self._output = bytearray()
        self._reader = MethodReader()
        self._channel_count = 0
        # Numbers of channels that both ends have closed at the same time.
        self.crossed: set[int] = set()

    # --- the port of the network ----------------------------------------------------------------------

    def connect(self) -> None:
        """Begin the handshake on a new connection."""
        self.is_connected, self.is_open, self.is_done = True, False, False
        self._output = bytearray(_HEADER)
        self._reader = MethodReader()
        self.crossed.clear()

    def lost(self) -> None:
        """The connection is gone."""
        self.is_connected = self.is_open = False
        self._output.clear()

    def released(self) -> None:
        """The connection is gone, with its channels."""
        channels, self.channels = self.channels, {}
        self._known.clear()
        for channel in channels.values():
            channel.ended()

    def take_output(self) -> bytes:
        """Return what is to be sent."""
        data = bytes(self._output)
        self._output.clear()
        return data

    def note_written(self, data: bytes) -> int:
        """Only what arrives counts."""
        return 0

    def receive(self, data: bytes) -> None:
        """Handle octets that have arrived."""
        for received in self._reader.read(data):
            if not received.channel:
                self._receive_on_connection(received.method)
                continue
            channel = self.channels.get(received.channel)
            if channel is not None:
                channel.receive(received)
            elif self.is_open and received.channel not in self.crossed:
                raise BrokenPromise(f"{received.method.name} on a channel that is not open")

    # --- what the client does -------------------------------------------------------------------------

    def channel(self, number: int) -> ClusterChannel:
        """The channel `number`, which is opened if it is not open."""
        found = self.channels.get(number)
        if found is None:
            self._channel_count += 1
            found = self.channels[number] = ClusterChannel(self, number, f"{self.name} {self._channel_count}")
            found.call(methods.ChannelOpen(), methods.ChannelOpenOk)
        return found

    def all_unacked(self) -> Iterable[tuple[ClusterChannel, int]]:
        """Deliveries that are not settled, by channel and tag."""
        return [(channel, tag) for channel in self.channels.values() for tag in channel.unacked]

    def declare(self, queue: KnownQueue, number: int = DECLARING) -> None:
        """Declare a queue, unless its node certainly has it."""
        if self.knows(queue):
            return
        generation = queue.generation
        declare = methods.QueueDeclare(
            queue=queue.name,
            durable=queue.is_durable,
            exclusive=bool(queue.owner),
            arguments=_arguments(queue),
        )
        self.channel(number).call(
            declare,
            methods.QueueDeclareOk,
            then=lambda _: self._known.__setitem__(queue, generation),
        )

    @property
    def is_waiting(self) -> bool:
        """True if an answer to anything is under way."""
        return any(channel.is_waiting for channel in self.channels.values())

    def knows(self, queue: KnownQueue) -> bool:
        """True if its node certainly has a queue, which was not deleted meanwhile."""
        return self._known.get(queue) == queue.generation

    def forget(self, channel: ClusterChannel) -> None:
        """A channel is closed."""
        if self.channels.get(channel.number) is channel:
            del self.channels[channel.number]
        channel.ended()

    def close(self) -> None:
        """Close the connection in order."""
        self.is_open = False
        self.send(method_frame(0, methods.ConnectionClose(reply_code=200, reply_text="Goodbye")))

    def send(self, data: bytes) -> None:
        """Send octets."""
        self._output += data

    def _receive_on_connection(self, method: Method) -> None:
        match method:
            case methods.ConnectionStart():
                properties = {"product": "simulation", "capabilities": dict(_CAPABILITIES)}
                start = methods.ConnectionStartOk(
                    client_properties=properties, mechanism="EXTERNAL", response=""
                )
                self.send(method_frame(0, start))
            case methods.ConnectionTune(channel_max=channel_max, frame_max=frame_max):
                tuned = methods.ConnectionTuneOk(channel_max=channel_max, frame_max=frame_max, heartbeat=0)
                self.send(method_frame(0, tuned))
                self.send(method_frame(0, methods.ConnectionOpen(virtual_host="/")))
            case methods.ConnectionOpenOk():
                self.is_open = True
            case methods.ConnectionClose(reply_code=code, reply_text=text):
                self.history.counts[str(code)] += 1
                self.history.note(f"{self.name}: {code} {text}")
                if code not in _CONNECTION_CODES:
                    raise BrokenPromise(f"connection of {self.name} is closed: {code} {text}")
                self.is_open = False
                self.send(method_frame(0, methods.ConnectionCloseOk()))
            case methods.ConnectionCloseOk():
                self.is_done = True


def _arguments(queue: KnownQueue) -> Table:
    if queue.is_quorum:
        return {"x-queue-type": "quorum"} | queue.arguments
    return {"x-queue-leader-locator": queue.locator} if queue.locator else {}


def message_id(received: ReceivedMethod) -> int:
    """The id of a message, with which its body begins."""
    return int(received.body.split(b" ", 1)[0])
