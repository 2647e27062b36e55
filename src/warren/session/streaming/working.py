"""What an open stream connection does with each command: every one that is asked gets its answer."""

from collections.abc import Awaitable, Callable
from typing import Any

from warren import limits
from warren.access.grants import Bearer
from warren.errors import AmqpError
from warren.model.names import QueueName
from warren.queues.stream import StreamQueue
from warren.session.domain import Domain
from warren.session.outbox import Outbox
from warren.session.streaming.greeting import Greeting
from warren.session.streaming.hall import Hall
from warren.session.streaming.managing import Managing, Refused, code_of
from warren.session.streaming.publishers import Publishers
from warren.session.streaming.subscriptions import Subscriptions, filter_values
from warren.vhost.requester import Requester
from warren.wire.streams import commands
from warren.wire.streams.codes import Code, Key, Malformed
from warren.wire.streams.commands import Command, encode_answer
from warren.wire.streams.fields import Broker, Placement, Version

_SINGLE_ACTIVE = "single-active-consumer"
_SUPER_STREAM = "super-stream"
# With a filter value; with the chunk that was committed last.
_SECOND = (Key.PUBLISH, Key.DELIVER)
_VERSIONS = tuple(Version(key, 1, 2 if key in _SECOND else 1) for key in Key)


class Working:
    """One open connection."""

    __slots__ = (
        "_authorizer", "_gone", "_greeting", "_hall", "_is_answering", "_managing", "_outbox", "_place",
        "_watched", "domain", "expires_at", "owner", "publishers", "subscriptions", "user",
    )  # fmt: skip

    def __init__(
        self,
        hall: Hall,
        domain: Domain,
        greeting: Greeting,
        outbox: Outbox,
        *,
        resume: Callable[[], None],
        has_asked: Callable[[], None],
    ) -> None:
        """`resume` is called when its publishers may be read again, `has_asked` when the client was asked.

        See `Publishers` and `Subscriptions`.
        """
        account = greeting.account
        assert account is not None
        self._hall = hall
        self._outbox = outbox
        self.domain = domain
        self.user = account.name
        # When the token ends with which the client came (ms).
        self.expires_at = account.expires_at if isinstance(account, Bearer) else None
        self._authorizer = domain.authorizer(account)
        # Tells it from all others: its place among connections of any protocol.
        self.owner = hall.server.next_owner()
        self._managing = Managing(domain, Requester(self._authorizer, self.owner))
        self._greeting = greeting
        self._place = hall.settings.place(greeting.peer)
        self.publishers = Publishers(domain.vhost, outbox, hall.counts, resume)
        self.subscriptions = Subscriptions(hall, outbox, self.owner.serial, has_asked)
        # The streams that it publishes to or subscribes to: it hears of it when one is gone.
        self._watched: dict[StreamQueue, None] = {}
        # Names of those that are gone, of which it has not heard: who deletes one has its answer first.
        self._gone: set[str] = set()
        self._is_answering = False

    def obey_at_once(self, command: Command, correlation: int) -> bool:
        """Obey a command that never waits; False if `command` is none of these."""
        match command:
            case commands.Credit():
                code = self.subscriptions.credit(command.subscription, command.credit)
                if code is not Code.OK:
                    self._hall.counts.failures[code] += 1
                    self._outbox.raw(commands.CreditAnswer(code, command.subscription).encode())
            case commands.ConsumerUpdateAnswer():
                self.subscriptions.updated(correlation, command.offset)
            case commands.Heartbeat():
                pass
            case _:
                return False
        return True

    async def obey(self, command: Command, correlation: int) -> None:
        """Obey `command` and answer it; Malformed if a client may not send it now."""
        handler = _HANDLERS.get(type(command))
        if handler is None:
            raise Malformed(f"unexpected {type(command).__name__}")
        self._is_answering = True
        try:
            answer = await handler(self, command)
        except Refused as refusal:
            answer = self._refused(command, refusal.code)
        except AmqpError as error:
            answer = self._refused(command, code_of(error))
        else:
            if isinstance(answer, Code) and answer is not Code.OK:
                self._hall.counts.failures[answer] += 1
        if isinstance(answer, Command):
            self._outbox.raw(answer.encode(correlation))
        elif answer is not None:
            self._outbox.raw(encode_answer(command.key, correlation, answer))
        if isinstance(command, commands.Subscribe) and answer is Code.OK:
            # Its answer comes before its first message.
            self._begin(command)
        elif isinstance(command, commands.Unsubscribe):
            # And before another one of the client's hears that it is the active one now.
            self.subscriptions.unsubscribe(command.subscription)
        self._is_answering = False
        self._tell_gone()

    def close(self) -> None:
        """The connection is gone."""
        self.publishers.close()
        self.subscriptions.close()
        for stream in self._watched:
            stream.unwatch(self._look)
        self._watched.clear()

    async def _renew(self, command: commands.SaslAuthenticate) -> Code:
        """Another token for the one with which the client came: what it does not grant ends at once."""
        greeting = self._greeting
        if command.mechanism != greeting.mechanism:
            return Code.SASL_CANNOT_CHANGE_MECHANISM
        code = await greeting.prove(command)
        account = greeting.proved
        if code is not Code.OK or account is None:
            return code
        if account.name != self.user:
            return Code.SASL_CANNOT_CHANGE_USERNAME
        if isinstance(account, Bearer) and isinstance(greeting.account, Bearer):
            # The authorizer holds the grants of the first token.
            greeting.account.grants.renew(account.grants)
            self.domain.vhost.permission_generation += 1
            self.expires_at = account.expires_at
            self._gone |= self.publishers.forget(
                lambda stream: not self._may(self._authorizer.check_write, stream)
            )
            self._gone |= self.subscriptions.forget(
                lambda stream: not self._may(self._authorizer.check_read, stream)
            )
        return Code.OK

    def _may(self, check: Callable[[QueueName], None], stream: StreamQueue) -> bool:
        try:
            check(self._name(stream.name))
        except AmqpError:
            return False
        return True

    # --- publishing -----------------------------------------------------------------------------

    async def _declare_publisher(self, command: commands.DeclarePublisher) -> Code:
        self._authorizer.check_write(self._name(command.stream))
        if self._hall.server.blocked_reason:
            return Code.PRECONDITION_FAILED
        stream = self._managing.find(command.stream)
        code = self.publishers.declare(command.publisher, command.reference, stream)
        if code is Code.OK:
            self._watch(stream)
        return code

    async def _delete_publisher(self, command: commands.DeletePublisher) -> Code:
        return self.publishers.delete(command.publisher)

    async def _query_sequence(
        self, command: commands.QueryPublisherSequence
    ) -> commands.QueryPublisherSequenceAnswer:
        stream = self._readable(command.stream)
        sequence = stream.producer_sequence(command.reference)
        return commands.QueryPublisherSequenceAnswer(Code.OK, sequence or 0)

    # --- subscribing ------------------------------------------------------------------------------

    async def _subscribe(self, command: commands.Subscribe) -> Code:
        stream = self._readable(command.stream)
        if self.subscriptions.has(command.subscription):
            return Code.SUBSCRIPTION_ID_ALREADY_EXISTS
        name = command.properties.get("name", "")
        is_too_long = len(name.encode("utf-8", "surrogateescape")) > limits.STREAM_REFERENCE_SIZE_MAX
        if is_too_long or (command.properties.get(_SINGLE_ACTIVE) == "true" and not name):
            return Code.PRECONDITION_FAILED
        if len(filter_values(command.properties)) > limits.STREAM_FILTERS_MAX:
            return Code.PRECONDITION_FAILED
        if stream.consumer_count >= limits.QUEUE_CONSUMERS_MAX:
            return Code.PRECONDITION_FAILED
        self._watch(stream)
        self.subscriptions.subscribe(command, stream)
        return Code.OK

    def _begin(self, command: commands.Subscribe) -> None:
        """Let the subscription of `command`, which was answered, have messages."""
        subscription = self.subscriptions.of(command.subscription)
        properties = command.properties
        if properties.get(_SINGLE_ACTIVE) != "true":
            self.subscriptions.begin(subscription, None, -1)
            return
        partition = -1
        if _SUPER_STREAM in properties:
            try:
                partition = self._managing.partitions(properties[_SUPER_STREAM]).index(command.stream)
            except (Refused, ValueError):
                # It is no partition of that: a stream like others.
                partition = -1
        key = (self.domain.vhost.name, command.stream, properties["name"])
        self.subscriptions.begin(subscription, key, partition)

    async def _unsubscribe(self, command: commands.Unsubscribe) -> Code:
        is_known = self.subscriptions.has(command.subscription)
        return Code.OK if is_known else Code.SUBSCRIPTION_ID_DOES_NOT_EXIST

    async def _store_offset(self, command: commands.StoreOffset) -> None:
        """Nobody is told whether it could be done."""
        size = len(command.reference.encode("utf-8", "surrogateescape"))
        try:
            stream = self._readable(command.stream)
        except (AmqpError, Refused):
            return
        if 0 < size <= limits.STREAM_REFERENCE_SIZE_MAX:
            stream.store_offset(command.reference, command.offset)

    async def _query_offset(self, command: commands.QueryOffset) -> commands.QueryOffsetAnswer:
        offset = self._readable(command.stream).stored_offset(command.reference)
        if offset is None:
            return commands.QueryOffsetAnswer(Code.NO_OFFSET, 0)
        return commands.QueryOffsetAnswer(Code.OK, offset)

    # --- streams --------------------------------------------------------------------------------

    async def _create(self, command: commands.Create) -> Code:
        await self._managing.create(command.stream, command.arguments)
        return Code.OK

    async def _delete(self, command: commands.Delete) -> Code:
        await self._managing.delete(command.stream)
        return Code.OK

    async def _metadata(self, command: commands.Metadata) -> commands.MetadataAnswer:
        if len(command.streams) > limits.STREAM_NAMES_MAX:
            raise Malformed("too many streams")
        placements = []
        for name in dict.fromkeys(command.streams):
            try:
                self._managing.find(name)
                placements.append(Placement(name, Code.OK, 0, ()))
            except Refused as refusal:
                placements.append(Placement(name, refusal.code, -1, ()))
        is_any = any(placement.code == Code.OK for placement in placements)
        brokers = (Broker(0, *self._place),) if is_any else ()
        return commands.MetadataAnswer(brokers, tuple(placements))

    async def _route(self, command: commands.Route) -> commands.StreamsAnswer:
        return commands.StreamsAnswer(
            Code.OK, self._managing.route(command.routing_key, command.super_stream)
        )

    async def _partitions(self, command: commands.Partitions) -> commands.PartitionsAnswer:
        return commands.PartitionsAnswer(Code.OK, self._managing.partitions(command.super_stream))

    async def _stats(self, command: commands.StreamStats) -> commands.StreamStatsAnswer:
        log = self._readable(command.stream).log
        last = log.last_chunk()
        counters = (
            ("first_chunk_id", -1 if last < 0 else log.first),
            ("last_chunk_id", last),
            ("committed_chunk_id", last),
            ("committed_offset", -1 if last < 0 else log.committed - 1),
        )
        return commands.StreamStatsAnswer(Code.OK, counters)

    async def _create_super(self, command: commands.CreateSuperStream) -> Code:
        await self._managing.create_super(
            command.name, command.partitions, command.binding_keys, command.arguments
        )
        return Code.OK

    async def _delete_super(self, command: commands.DeleteSuperStream) -> Code:
        await self._managing.delete_super(command.name)
        return Code.OK

    async def _exchange_versions(
        self, command: commands.ExchangeCommandVersions
    ) -> commands.ExchangeCommandVersionsAnswer:
        known = {version.key: version.last for version in command.versions}
        self.subscriptions.tells_committed = known.get(Key.DELIVER, 1) > 1
        return commands.ExchangeCommandVersionsAnswer(Code.OK, _VERSIONS)

    # --- private ----------------------------------------------------------------------------------

    def _refused(self, command: Command, code: Code) -> "Answer":
        self._hall.counts.failures[code] += 1
        return _refusal(command, code)

    def _name(self, stream: str) -> QueueName:
        return QueueName(self.domain.vhost.name, stream)

    def _readable(self, name: str) -> StreamQueue:
        """The stream `name`, which the user may read."""
        self._authorizer.check_read(self._name(name))
        return self._managing.find(name)

    def _watch(self, stream: StreamQueue) -> None:
        if stream not in self._watched:
            self._watched[stream] = None
            stream.watch(self._look)

    def _look(self) -> None:
        """Something happened to a stream: the client hears of those that are gone."""
        gone = [stream for stream in self._watched if stream.is_deleted]
        if not gone:
            return
        for stream in gone:
            del self._watched[stream]
        self._gone |= self.publishers.forget(_is_deleted) | self.subscriptions.forget(_is_deleted)
        if not self._is_answering:
            self._tell_gone()

    def _tell_gone(self) -> None:
        for name in sorted(self._gone):
            self._outbox.raw(commands.MetadataUpdate(Code.STREAM_NOT_AVAILABLE, name).encode())
        self._gone.clear()


Answer = Command | Code | None


def _is_deleted(stream: StreamQueue) -> bool:
    return stream.is_deleted


def _refusal(command: Command, code: Code) -> Answer:
    """What is answered to `command` that was refused: some answers have more than a code."""
    match command:
        case commands.QueryPublisherSequence():
            return commands.QueryPublisherSequenceAnswer(code, 0)
        case commands.QueryOffset():
            return commands.QueryOffsetAnswer(code, 0)
        case commands.Route():
            return commands.StreamsAnswer(code, ())
        case commands.Partitions():
            return commands.PartitionsAnswer(code, ())
        case commands.StreamStats():
            return commands.StreamStatsAnswer(code, ())
    return code


_HANDLERS: dict[type[Command], Callable[[Working, Any], Awaitable[Answer]]] = {
    commands.SaslAuthenticate: Working._renew,
    commands.DeclarePublisher: Working._declare_publisher,
    commands.DeletePublisher: Working._delete_publisher,
    commands.QueryPublisherSequence: Working._query_sequence,
    commands.Subscribe: Working._subscribe,
    commands.Unsubscribe: Working._unsubscribe,
    commands.StoreOffset: Working._store_offset,
    commands.QueryOffset: Working._query_offset,
    commands.Create: Working._create,
    commands.Delete: Working._delete,
    commands.Metadata: Working._metadata,
    commands.Route: Working._route,
    commands.Partitions: Working._partitions,
    commands.StreamStats: Working._stats,
    commands.CreateSuperStream: Working._create_super,
    commands.DeleteSuperStream: Working._delete_super,
    commands.ExchangeCommandVersions: Working._exchange_versions,
}
