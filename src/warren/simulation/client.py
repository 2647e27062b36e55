"""A client of a simulated broker: it speaks octets, and tells the history what it sends."""

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from warren.simulation.history import History, Promise, Route
from warren.simulation.message_copy import Copy, Publisher
from warren.simulation.method_reader import MethodReader, ReceivedMethod, method_frame, publish_frames
from warren.simulation.queue_history import QueueHistory
from warren.simulation.violation import Violation
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.properties import BasicProperties

_HEADER = b"AMQP\x00\x00\x09\x01"
_CAPABILITIES = {"consumer_cancel_notify": True, "connection.blocked": True, "publisher_confirms": True}
_PERSISTENT = 2
_NO_ROUTE = 312
_OFFSET_HEADER = "x-stream-offset"


class _Unconfirmed(Struct):
    """A publish that was not confirmed: its id, what its confirm is to promise, and where it went."""

    id: int
    promises: list[Promise]
    route: Route
    is_mandatory: bool


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
        self._unconfirmed: dict[int, _Unconfirmed] = {}
        # Mandatory messages, by id, that were neither returned nor confirmed; and those that were returned.
        self._mandatory: dict[int, Route] = {}
        self._returned: set[int] = set()
        # What the commit under way, or the next one, is to promise and to settle.
        self._uncommitted: list[Promise] = []
        # Deliveries that were not settled, by tag; the second once they have arrived.
        self.written: dict[int, Copy] = {}
        self.arrived: dict[int, Copy] = {}
        # Those that the client has settled.
        self._acknowledged: dict[int, Copy] = {}
        self._given_back: dict[int, Copy] = {}
        # The consumer that each of these went to, and the queue that they came from.
        self._tags: dict[int, str] = {}
        self._sources: dict[int, QueueHistory] = {}
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
        self,
        route: tuple[str, str],
        properties: BasicProperties,
        size: int,
        *,
        is_mandatory: bool = False,
    ) -> None:
        """Publish a message of about `size` bytes to the exchange and with the key `route`."""
        history = self._client.history
        id = history.next_id()
        copy = Copy(id, self.publisher, properties.delivery_mode == _PERSISTENT, properties.priority or 0)
        known = history.route(self._client.vhost, *route, properties.headers or {})
        if properties.expiration is not None:
            copy.ttl_ms = int(properties.expiration)
        promises = history.published(id, known, copy)
        if is_mandatory:
            self._mandatory[id] = known
        if self.is_confirming:
            self._sequence += 1
            self._unconfirmed[self._sequence] = _Unconfirmed(id, promises, known, is_mandatory)
        elif self.is_transactional:
            # A queue that refuses messages is left out: a refusal ends the channel, after a part was done.
            self._uncommitted += [one for one in promises if not one.queue.specification.may_refuse]
        body = (b"%d " % id).ljust(size, b".")
        publish = methods.BasicPublish(exchange=route[0], routing_key=route[1], mandatory=is_mandatory)
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

    def consume(self, queue: QueueHistory, tag: str, offset: int = 0) -> None:
        """Start a consumer; one of a stream begins at `offset`."""
        self.consumers[tag] = queue
        consume = methods.BasicConsume(queue=queue.specification.name, consumer_tag=tag)
        if queue.stream is not None:
            queue.stream.attached((self, tag), offset)
            consume.arguments = {_OFFSET_HEADER: offset}
        self.call(consume, methods.BasicConsumeOk)

    def acknowledge(self, tag: int, *, is_multiple: bool) -> None:
        """Acknowledge a delivery, or all up to it."""
        for copy in self._settled(tag, is_multiple).values():
            self._client.history.settled(copy, self)
        self._client.send(method_frame(self.number, methods.BasicAck(delivery_tag=tag, multiple=is_multiple)))

    def reject(self, tag: int, *, is_multiple: bool, is_requeued: bool) -> None:
        """Reject a delivery, or all up to it."""
        for one, copy in self._settled(tag, is_multiple).items():
            if is_requeued:
                self._client.history.returned(self._sources[one], copy)
                self._given_back[one] = copy
            else:
                self._client.history.rejected(self._sources[one], copy, self)
        self._client.history.disturbed()
        nack = methods.BasicNack(delivery_tag=tag, multiple=is_multiple, requeue=is_requeued)
        self._client.send(method_frame(self.number, nack))

    def close(self) -> None:
        """Close the channel: what it holds returns."""
        self.is_closing = True
        for copy in self.written.values():
            copy.holder = None
        self._client.history.disturbed()
        self.call(
            methods.ChannelClose(reply_code=200, reply_text="done"),
            methods.ChannelCloseOk,
            then=lambda _: self._client.forget(self),
        )

    def _settled(self, tag: int, is_multiple: bool) -> dict[int, Copy]:
        # The broker may have written more up to this tag than has arrived, but not on one channel in order.
        tags = [one for one in self.arrived if one == tag or (is_multiple and one < tag)]
        copies = {one: self.arrived.pop(one) for one in tags}
        held = {one: copy for one, copy in copies.items() if self.written.pop(one, None) is not None}
        self._acknowledged.update(held)
        return held

    # --- what the broker has written ------------------------------------------------------------------

    def written_by_broker(self, received: ReceivedMethod) -> None:
        """Note what the broker has written on this channel, whether or not it arrives."""
        method = received.method
        if isinstance(method, methods.BasicDeliver):
            tag = str(method.consumer_tag)
            self._tags[method.delivery_tag] = tag
            self._written(self.consumers[tag], (self, tag), received)
        elif isinstance(method, methods.BasicGetOk):
            queue = self._gets.popleft()
            self._written(queue, (self, queue), received)
        elif isinstance(method, methods.BasicGetEmpty):
            self._gets.popleft()
        elif isinstance(method, methods.BasicAck):
            self._confirmed(method.delivery_tag, method.multiple, is_acked=True)
        elif isinstance(method, methods.BasicNack):
            self._confirmed(method.delivery_tag, method.multiple, is_acked=False)
        elif isinstance(method, methods.BasicReturn):
            self._was_returned(received)
        elif isinstance(method, methods.BasicCancel):
            # Its queue is gone, or it has held a delivery for too long: what it held returns.
            self._cancelled(str(method.consumer_tag))
        elif isinstance(method, methods.ChannelClose):
            self.is_closing = True
            self._client.history.released(self)

    def _written(self, queue: QueueHistory, consumer: object, received: ReceivedMethod) -> None:
        method, history = received.method, self._client.history
        assert isinstance(method, methods.BasicDeliver | methods.BasicGetOk)
        id = _message_id(received)
        if queue.stream is not None:
            headers = received.properties.headers if received.properties is not None else None
            offset = (headers or {}).get(_OFFSET_HEADER)
            if not isinstance(offset, int):
                raise Violation(f"message {id} of a stream has no offset: {headers}")
            copy = history.read(queue, id, consumer, offset)
        else:
            copy = history.delivered(queue, id, self, consumer, flag=method.redelivered)
        if self.is_closing:
            copy.holder = None
        self.written[method.delivery_tag] = copy
        self._sources[method.delivery_tag] = queue

    def _confirmed(self, sequence: int, is_multiple: bool, *, is_acked: bool) -> None:
        named = [one for one in self._unconfirmed if one == sequence or (is_multiple and one < sequence)]
        if not named:
            raise Violation(f"publish {sequence} is confirmed twice, or was not published")
        for one in named:
            unconfirmed = self._unconfirmed.pop(one)
            if not is_acked:
                continue
            is_returned = unconfirmed.id in self._returned
            if unconfirmed.is_mandatory and not is_returned and unconfirmed.route.must_be_returned:
                raise Violation(f"mandatory message {unconfirmed.id} reached no queue and was not returned")
            if not is_returned:
                self._client.history.confirmed(unconfirmed.promises)

    def _cancelled(self, consumer: str) -> None:
        """What a consumer held returns; acknowledgements of it that are under way, or come now, are void."""
        for number in [one for one in self._tags if self._tags[one] == consumer]:
            copy = self.written.pop(number, None)
            if copy is not None:
                copy.holder = None
            returned = self._given_back.pop(number, None)
            if returned is not None:
                # It was there already.
                returned.ready_at = 0
            settled = self._acknowledged.pop(number, None)
            if settled is not None and settled.settled_on is self:
                settled.settled_on = None
        self._client.history.disturbed()

    def _was_returned(self, received: ReceivedMethod) -> None:
        """A message came back: it must have been mandatory, and must have reached no queue."""
        method, id = received.method, _message_id(received)
        assert isinstance(method, methods.BasicReturn)
        route = self._mandatory.get(id)
        if route is None or id in self._returned or method.reply_code != _NO_ROUTE:
            raise Violation(f"message {id} is returned, with {method.reply_code}, and nothing asked for that")
        if route.must_not_be_returned:
            raise Violation(f"mandatory message {id} is returned, and a queue should have got it")
        self._returned.add(id)
        self._client.history.tally.returned += 1

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
        self.history.ending(self.name)
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
        self.history.disturbed()
        self.history.ending(self.name)
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
                self.history.ending(self.name)
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


def _message_id(received: ReceivedMethod) -> int:
    """The id of a message, with which its body begins."""
    return int(received.body.split(b" ", 1)[0])
