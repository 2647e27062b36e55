"""A client of a simulated broker: it speaks octets, and tells the history what it sends."""

from collections import deque
from collections.abc import Callable, Iterable

from warren.simulation.history import Copy, History, Publisher, QueueHistory, Violation
from warren.simulation.method_reader import MethodReader, ReceivedMethod, method_frame, publish_frames
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.properties import BasicProperties

_HEADER = b"AMQP\x00\x00\x09\x01"
_CAPABILITIES = {"consumer_cancel_notify": True, "connection.blocked": True, "publisher_confirms": True}
_PERSISTENT, _TRANSIENT = 2, 1

Promised = list[tuple[QueueHistory, Copy]]


class SimulatedChannel:
    """One channel of a client, from channel.open to its end."""

    def __init__(self, client: "SimulatedClient", number: int, publisher: str) -> None:
        self.number = number
        self.publisher = Publisher(publisher)
        self._client = client
        self.is_confirming = False
        self.is_transactional = False
        # True once one end has sent channel.close.
        self.is_closing = False
        self._sequence = 0
        # What confirms are to promise, by sequence.
        self._unconfirmed: dict[int, Promised] = {}
        # What the commit under way, or the next one, is to promise and to settle.
        self._uncommitted: Promised = []
        # Deliveries that were not settled, by tag; the second once they have arrived.
        self.written: dict[int, Copy] = {}
        self.arrived: dict[int, Copy] = {}
        # The consumer that each of these went to.
        self._tags: dict[int, str] = {}
        # The queues of consumers, and those of basic.get calls that were not answered, in order.
        self.consumers: dict[str, QueueHistory] = {}
        self._gets: deque[QueueHistory] = deque()
        # What answers come next, and what happens then.
        self._answers: deque[tuple[tuple[type[Method], ...], Callable[[Method], None]]] = deque()

    @property
    def is_waiting(self) -> bool:
        """True if an answer is under way."""
        return bool(self._answers)

    # --- what the client does -------------------------------------------------------------------------

    def call(
        self,
        method: Method,
        *answers: type[Method],
        then: Callable[[Method], None] = lambda _: None,
    ) -> None:
        """Send a method whose answer is one of `answers`."""
        self._answers.append((answers, then))
        self._client.send(method_frame(self.number, method))

    def publish(
        self, queues: Iterable[QueueHistory], route: tuple[str, str], properties: BasicProperties, size: int
    ) -> None:
        """Publish a message of about `size` bytes to the exchange and key `route`, which has `queues`."""
        history = self._client.history
        id = history.next_id()
        copy = Copy(id, self.publisher, properties.delivery_mode == _PERSISTENT, properties.priority or 0)
        certain = history.published(id, queues, copy)
        if self.is_confirming:
            self._sequence += 1
            self._unconfirmed[self._sequence] = certain
        elif self.is_transactional:
            # A queue that refuses messages is left out: a refusal ends the channel, after a part was done.
            self._uncommitted += [one for one in certain if not one[0].specification.may_refuse]
        body = (b"%d " % id).ljust(size, b".")
        publish = methods.BasicPublish(exchange=route[0], routing_key=route[1])
        self._client.send(publish_frames(self.number, publish, properties, body))

    def commit(self) -> None:
        """Commit the transaction, which confirms its messages."""
        promised, self._uncommitted = self._uncommitted, []
        confirmed = self._client.history.confirmed
        self.call(methods.TxCommit(), methods.TxCommitOk, then=lambda _: confirmed(promised))

    def get(self, queue: QueueHistory) -> None:
        """Ask for one message."""
        self._gets.append(queue)
        self.call(methods.BasicGet(queue=queue.specification.name), methods.BasicGetOk, methods.BasicGetEmpty)

    def consume(self, queue: QueueHistory, tag: str) -> None:
        """Start a consumer."""
        self.consumers[tag] = queue
        self.call(
            methods.BasicConsume(queue=queue.specification.name, consumer_tag=tag), methods.BasicConsumeOk
        )

    def acknowledge(self, tag: int, *, is_multiple: bool) -> None:
        """Acknowledge a delivery, or all up to it."""
        for copy in self._settled(tag, is_multiple):
            self._client.history.settled(copy, self)
        self._client.send(method_frame(self.number, methods.BasicAck(delivery_tag=tag, multiple=is_multiple)))

    def reject(self, tag: int, *, is_multiple: bool, is_requeued: bool) -> None:
        """Reject a delivery, or all up to it."""
        for copy in self._settled(tag, is_multiple):
            if is_requeued:
                copy.holder = None
            else:
                self._client.history.settled(copy, self)
        nack = methods.BasicNack(delivery_tag=tag, multiple=is_multiple, requeue=is_requeued)
        self._client.send(method_frame(self.number, nack))

    def close(self) -> None:
        """Close the channel: what it holds returns."""
        self.is_closing = True
        for copy in self.written.values():
            copy.holder = None
        self.call(
            methods.ChannelClose(reply_code=200, reply_text="done"),
            methods.ChannelCloseOk,
            then=lambda _: self._client.forget(self),
        )

    def _settled(self, tag: int, is_multiple: bool) -> list[Copy]:
        # The broker may have written more up to this tag than has arrived, but not on one channel in order.
        tags = [one for one in self.arrived if one == tag or (is_multiple and one < tag)]
        for one in tags:
            self.written.pop(one, None)
        return [self.arrived.pop(one) for one in tags]

    # --- what the broker has written ------------------------------------------------------------------

    def written_by_broker(self, received: ReceivedMethod) -> None:
        """Note what the broker has written on this channel, whether or not it arrives."""
        method = received.method
        if isinstance(method, methods.BasicDeliver):
            tag = str(method.consumer_tag)
            self._tags[method.delivery_tag] = tag
            self._written(self.consumers[tag], (self, tag), method, received.body)
        elif isinstance(method, methods.BasicGetOk):
            queue = self._gets.popleft()
            self._written(queue, (self, queue), method, received.body)
        elif isinstance(method, methods.BasicGetEmpty):
            self._gets.popleft()
        elif isinstance(method, methods.BasicAck):
            self._confirmed(method.delivery_tag, method.multiple, is_acked=True)
        elif isinstance(method, methods.BasicNack):
            self._confirmed(method.delivery_tag, method.multiple, is_acked=False)
        elif isinstance(method, methods.BasicCancel):
            # Its queue is gone, or it has held a delivery for too long: what it held returns.
            for number, copy in self.written.items():
                if self._tags.get(number) == method.consumer_tag:
                    copy.holder = None
        elif isinstance(method, methods.ChannelClose):
            self.is_closing = True
            self._client.history.released(self)

    def _written(
        self,
        queue: QueueHistory,
        consumer: object,
        method: methods.BasicDeliver | methods.BasicGetOk,
        body: bytes,
    ) -> None:
        id = int(body.split(b" ", 1)[0])
        copy = self._client.history.delivered(queue, id, self, consumer, flag=method.redelivered)
        if self.is_closing:
            copy.holder = None
        self.written[method.delivery_tag] = copy

    def _confirmed(self, sequence: int, is_multiple: bool, *, is_acked: bool) -> None:
        named = [one for one in self._unconfirmed if one == sequence or (is_multiple and one < sequence)]
        if not named:
            raise Violation(f"publish {sequence} is confirmed twice, or was not published")
        for one in named:
            certain = self._unconfirmed.pop(one)
            if is_acked:
                self._client.history.confirmed(certain)

    # --- what arrives at the client ---------------------------------------------------------------------

    def receive(self, received: ReceivedMethod) -> None:
        """Handle a method that has arrived."""
        method = received.method
        if isinstance(method, methods.BasicDeliver | methods.BasicGetOk):
            copy = self.written.get(method.delivery_tag)
            if copy is not None:
                self.arrived[method.delivery_tag] = copy
            self._client.arrived(self, method.delivery_tag, received)
        if isinstance(method, methods.ChannelClose):
            self._client.closed_by_broker.append(f"{method.reply_code} {method.reply_text}")
            self._client.send(method_frame(self.number, methods.ChannelCloseOk()))
            self._client.forget(self)
        elif isinstance(method, methods.BasicCancel):
            self.consumers.pop(method.consumer_tag, None)
        elif self._answers and isinstance(method, self._answers[0][0]):
            self._answers.popleft()[1](method)
        elif not isinstance(
            method, methods.BasicDeliver | methods.BasicAck | methods.BasicNack | methods.BasicReturn
        ):
            raise Violation(f"the broker sent a {method.name} that nothing asked for")


class SimulatedClient:
    """One client, which connects again whenever it is told to."""

    def __init__(self, name: str, history: History, vhost: str) -> None:
        self.name = name
        self.history = history
        self.vhost = vhost
        self.is_open = False
        self.is_connected = False
        self.channels: dict[int, SimulatedChannel] = {}
        # Reasons of the broker for closing channels and connections.
        self.closed_by_broker: list[str] = []
        # Called with each delivery that arrives.
        self.on_arrival: Callable[[SimulatedChannel, int, ReceivedMethod], None] | None = None
        self._output = bytearray()
        self._in = MethodReader()
        self._written = MethodReader()
        self._channel_count = 0

    def connect(self) -> None:
        """Begin the handshake on a new connection."""
        self.is_connected, self.is_open = True, False
        self.channels = {}
        self._output = bytearray(_HEADER)
        self._in, self._written = MethodReader(), MethodReader()

    def lost(self) -> None:
        """The connection is gone; what its channels had is released by `released`."""
        self.is_connected = self.is_open = False
        self._output.clear()

    def released(self) -> None:
        """The broker knows, or will know, that the connection is gone."""
        for channel in list(self.channels.values()):
            self.history.released(channel)
        self.channels = {}

    def channel(self, number: int) -> SimulatedChannel:
        """The channel `number`, which is opened if it is not open."""
        found = self.channels.get(number)
        if found is None:
            self._channel_count += 1
            found = SimulatedChannel(self, number, f"{self.name} {self._channel_count}")
            self.channels[number] = found
            found.call(methods.ChannelOpen(), methods.ChannelOpenOk)
        return found

    def forget(self, channel: SimulatedChannel) -> None:
        """Both ends have closed `channel`."""
        if self.channels.get(channel.number) is channel:
            del self.channels[channel.number]

    def send(self, data: bytes) -> None:
        """Send octets."""
        self._output += data

    def take_output(self) -> bytes:
        """Return what is to be sent."""
        data = bytes(self._output)
        self._output.clear()
        return data

    def arrived(self, channel: SimulatedChannel, tag: int, received: ReceivedMethod) -> None:
        """A delivery has arrived."""
        if self.on_arrival is not None:
            self.on_arrival(channel, tag, received)

    def close(self) -> None:
        """Close the connection in order."""
        self.is_open = False
        for channel in self.channels.values():
            for copy in channel.written.values():
                copy.holder = None
            channel.is_closing = True
        self.send(method_frame(0, methods.ConnectionClose(reply_code=200, reply_text="Goodbye")))

    def note_written(self, data: bytes) -> int:
        """Note what the broker has written to this client, whether it arrives or not; returns how much."""
        count = 0
        for received in self._written.read(data):
            count += 1
            channel = self.channels.get(received.channel)
            if channel is not None:
                channel.written_by_broker(received)
            elif isinstance(received.method, methods.ConnectionClose):
                for each in self.channels.values():
                    self.history.released(each)
        return count

    def receive(self, data: bytes) -> None:
        """Handle octets that have arrived."""
        for received in self._in.read(data):
            if not received.channel:
                self._receive_on_connection(received.method)
                continue
            channel = self.channels.get(received.channel)
            if channel is not None:
                channel.receive(received)
            elif self.is_open:
                raise Violation(f"the broker sent {received.method.name} on a channel that is not open")

    def _receive_on_connection(self, method: Method) -> None:
        if isinstance(method, methods.ConnectionStart):
            start = methods.ConnectionStartOk(
                client_properties={"product": "simulation", "capabilities": dict(_CAPABILITIES)},
                mechanism="EXTERNAL",
                response="",
            )
            self.send(method_frame(0, start))
        elif isinstance(method, methods.ConnectionTune):
            tuned = methods.ConnectionTuneOk(
                channel_max=method.channel_max, frame_max=method.frame_max, heartbeat=0
            )
            self.send(method_frame(0, tuned))
            self.send(method_frame(0, methods.ConnectionOpen(virtual_host=self.vhost)))
        elif isinstance(method, methods.ConnectionOpenOk):
            self.is_open = True
        elif isinstance(method, methods.ConnectionClose):
            self.closed_by_broker.append(f"{method.reply_code} {method.reply_text}")
            self.is_open = False
            self.send(method_frame(0, methods.ConnectionCloseOk()))
