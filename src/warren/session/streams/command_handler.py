"""Executes the commands of an open stream connection, and answers each request."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from warren import limits
from warren.access.grants import TokenUser
from warren.errors import AccessRefused, AmqpError, ChannelException, NotFound, PreconditionFailed, Undecided
from warren.model.decided import decided
from warren.model.names import ExchangeName, QueueName
from warren.queues.stream import StreamQueue
from warren.session.any_connection import AnyConnection
from warren.session.secret_update import renewed_login
from warren.session.streams.handshake import StreamHandshake
from warren.session.streams.publishers import StreamPublishers
from warren.session.streams.stream_admin import CommandRefused, StreamAdmin, code_of
from warren.session.streams.stream_questions import QuestionKind, StreamQuestion, answer_of
from warren.session.streams.stream_server import StreamServer
from warren.session.streams.subscriptions import StreamSubscriptions, filter_values
from warren.vhost.requester import Requester
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, MalformedFrame, ResponseCode
from warren.wire.streams.commands import StreamCommand, encode_response
from warren.wire.streams.fields import BrokerReference, Placement, Version

_SINGLE_ACTIVE = "single-active-consumer"
_SUPER_STREAM = "super-stream"
# Version 2 of Publish has filter values, and of Deliver the last committed chunk.
_SECOND = (CommandKey.PUBLISH, CommandKey.DELIVER)
_VERSIONS = tuple(Version(key, 1, 2 if key in _SECOND else 1) for key in CommandKey)


class StreamCommandHandler:
    """The command handler of one open connection."""

    __slots__ = (
        "_admin", "_advertised_address", "_authorizer", "_connection", "_deleted", "_handshake",
        "_is_answering", "_outbox", "_stream_server", "_watched", "publishers", "services", "subscriptions",
    )  # fmt: skip

    def __init__(
        self,
        stream_server: StreamServer,
        connection: AnyConnection,
        handshake: StreamHandshake,
        *,
        resume: Callable[[], None],
        has_asked: Callable[[], None],
    ) -> None:
        """`resume` is called when publishers may be read again, `has_asked` when a request was sent.

        See `StreamPublishers` and `StreamSubscriptions`.
        """
        login, services = connection.login, connection.services
        assert login is not None
        assert services is not None
        outbox = connection.outbox
        self._stream_server = stream_server
        self._connection = connection
        self._outbox = outbox
        self.services = services
        self._authorizer = services.authorizer(login.account)
        self._admin = StreamAdmin(
            services,
            Requester(self._authorizer, connection.owner),
            partitions_max=stream_server.settings.super_stream_partitions_max,
        )
        self._handshake = handshake
        self._advertised_address = stream_server.settings.advertised_address(handshake.peer)
        self.publishers = StreamPublishers(services.vhost, outbox, stream_server.counts, resume)
        stream_settings = stream_server.settings
        self.publishers.limit(stream_settings.unconfirmed_max, stream_settings.unblocking_min)
        self.subscriptions = StreamSubscriptions(stream_server, outbox, connection.owner.serial, has_asked)
        # The streams it publishes to or subscribes to: the client is notified when one is deleted.
        self._watched: dict[StreamQueue, None] = {}
        # Names of deleted streams that are not notified yet: the answer to Delete comes first.
        self._deleted: set[str] = set()
        self._is_answering = False

    def handle_at_once(self, command: StreamCommand, correlation: int) -> bool:
        """Execute a command that never waits; False if `command` is none of these."""
        match command:
            case commands.Credit():
                code = self.subscriptions.credit(command.subscription, command.credit)
                if code is not ResponseCode.OK:
                    self._stream_server.counts.failures[code] += 1
                    self._outbox.raw(commands.CreditResponse(code, command.subscription).encode())
            case commands.ConsumerUpdateResponse():
                self.subscriptions.updated(correlation, command.offset)
            case commands.Heartbeat():
                pass
            case _:
                return False
        return True

    async def handle(self, command: StreamCommand, correlation: int) -> None:
        """Execute and answer `command`; MalformedFrame if a client may not send it now."""
        handler = _HANDLERS.get(type(command))
        if handler is None:
            raise MalformedFrame(f"unexpected {type(command).__name__}")
        self._is_answering = True
        try:
            answer = await self._answer(handler, command)
        except CommandRefused as refusal:
            answer = self._refused(command, refusal.code)
        except AmqpError as error:
            answer = self._refused(command, code_of(error))
        else:
            if isinstance(answer, ResponseCode) and answer is not ResponseCode.OK:
                self._stream_server.counts.failures[answer] += 1
        if isinstance(answer, StreamCommand):
            self._outbox.raw(answer.encode(correlation))
        elif answer is not None:
            self._outbox.raw(encode_response(command.key, correlation, answer))
        if isinstance(command, commands.Subscribe) and answer is ResponseCode.OK:
            # The answer must precede the first message.
            self._begin(command)
        elif isinstance(command, commands.Unsubscribe):
            # The answer must precede the activation of another subscription of the same client.
            self.subscriptions.unsubscribe(command.subscription)
        self._is_answering = False
        self._notify_deleted()

    async def _answer(
        self,
        handler: Callable[["StreamCommandHandler", Any], Awaitable["Response"]],
        command: StreamCommand,
    ) -> "Response":
        """Execute `command`, again if it was refused because the metadata of this node are out of date."""
        refusal_check = self.services.refusal_check
        index = refusal_check.index
        try:
            return await decided(lambda: handler(self, command))
        except (CommandRefused, ChannelException) as refusal:
            if not await refusal_check.is_refuted(_as_error(refusal), index):
                raise
        return await decided(lambda: handler(self, command))

    def close(self) -> None:
        """Release the resources of the connection."""
        self.publishers.close()
        self.subscriptions.close()
        for stream in self._watched:
            stream.unwatch(self._on_stream_changed)
        self._watched.clear()

    async def _renew(self, command: commands.SaslAuthenticate) -> ResponseCode:
        """Replace the client's token; permissions that the new one does not grant end immediately."""
        handshake = self._handshake
        login = self._connection.login
        assert login is not None
        if command.mechanism != login.mechanism:
            return ResponseCode.SASL_CANNOT_CHANGE_MECHANISM
        code = await handshake.check_credentials(command)
        account = handshake.last_authenticated
        if code is not ResponseCode.OK or account is None:
            return code
        if account.identity != login.identity:
            return ResponseCode.SASL_CANNOT_CHANGE_USERNAME
        if isinstance(account, TokenUser) and isinstance(login.account, TokenUser):
            self._connection.renew(renewed_login(login, account, self.services.vhost))
            self._deleted |= self.publishers.forget(
                lambda stream: not self._may(self._authorizer.check_write, stream)
            )
            self._deleted |= self.subscriptions.forget(
                lambda stream: not self._may(self._authorizer.check_read, stream)
            )
        return ResponseCode.OK

    def _may(self, check: Callable[[QueueName], None], stream: StreamQueue) -> bool:
        try:
            check(self._name(stream.name))
        except AmqpError:
            return False
        return True

    # --- publishing -----------------------------------------------------------------------------

    async def _declare_publisher(self, command: commands.DeclarePublisher) -> ResponseCode:
        self._authorizer.check_write(self._name(command.stream))
        if self._stream_server.server.blocked_reason:
            return ResponseCode.PRECONDITION_FAILED
        stream = self._admin.find(command.stream)
        code = self.publishers.declare(command.publisher, command.reference, stream)
        if code is ResponseCode.OK:
            self._watch(stream)
        return code

    async def _delete_publisher(self, command: commands.DeletePublisher) -> ResponseCode:
        return self.publishers.delete(command.publisher)

    async def _query_sequence(
        self, command: commands.QueryPublisherSequence
    ) -> commands.QueryPublisherSequenceResponse:
        (sequence,) = await self._asked(QuestionKind.SEQUENCE, command.stream, command.reference)
        return commands.QueryPublisherSequenceResponse(ResponseCode.OK, sequence)

    # --- subscribing ------------------------------------------------------------------------------

    async def _subscribe(self, command: commands.Subscribe) -> ResponseCode:
        stream = self._readable(command.stream)
        if self.subscriptions.has(command.subscription):
            return ResponseCode.SUBSCRIPTION_ID_ALREADY_EXISTS
        name = command.properties.get("name", "")
        is_too_long = len(name.encode("utf-8", "surrogateescape")) > limits.STREAM_REFERENCE_SIZE_MAX
        if is_too_long or (command.properties.get(_SINGLE_ACTIVE) == "true" and not name):
            return ResponseCode.PRECONDITION_FAILED
        if len(filter_values(command.properties)) > limits.STREAM_FILTERS_MAX:
            return ResponseCode.PRECONDITION_FAILED
        if stream.consumer_count >= limits.QUEUE_CONSUMERS_MAX:
            return ResponseCode.PRECONDITION_FAILED
        self._watch(stream)
        self.subscriptions.subscribe(command, stream)
        return ResponseCode.OK

    def _begin(self, command: commands.Subscribe) -> None:
        """Start deliveries to the subscription of `command`, after its answer."""
        subscription = self.subscriptions.of(command.subscription)
        properties = command.properties
        if properties.get(_SINGLE_ACTIVE) != "true":
            self.subscriptions.begin(subscription, None, -1)
            return
        partition = -1
        if _SUPER_STREAM in properties:
            try:
                partition = self._admin.partitions(properties[_SUPER_STREAM]).index(command.stream)
            except (CommandRefused, ValueError):
                # The stream is no partition of that super stream, and is treated as a single stream.
                partition = -1
        key = (self.services.vhost.name, command.stream, properties["name"])
        self.subscriptions.begin(subscription, key, partition)

    async def _unsubscribe(self, command: commands.Unsubscribe) -> ResponseCode:
        is_known = self.subscriptions.has(command.subscription)
        return ResponseCode.OK if is_known else ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST

    async def _store_offset(self, command: commands.StoreOffset) -> None:
        """Store an offset; the protocol has no answer to it."""
        size = len(command.reference.encode("utf-8", "surrogateescape"))
        if 0 < size <= limits.STREAM_REFERENCE_SIZE_MAX:
            with suppress(AmqpError, CommandRefused):
                await self._asked(
                    QuestionKind.STORE_OFFSET, command.stream, command.reference, command.offset
                )

    async def _query_offset(self, command: commands.QueryOffset) -> commands.QueryOffsetResponse:
        stored = await self._asked(QuestionKind.OFFSET, command.stream, command.reference)
        if not stored:
            return commands.QueryOffsetResponse(ResponseCode.NO_OFFSET, 0)
        return commands.QueryOffsetResponse(ResponseCode.OK, stored[0])

    # --- streams --------------------------------------------------------------------------------

    async def _create(self, command: commands.Create) -> ResponseCode:
        await self._admin.create(command.stream, command.arguments)
        return ResponseCode.OK

    async def _delete(self, command: commands.Delete) -> ResponseCode:
        await self._admin.delete(command.stream)
        return ResponseCode.OK

    async def _metadata(self, command: commands.Metadata) -> commands.MetadataResponse:
        if len(command.streams) > limits.STREAM_NAMES_MAX:
            raise MalformedFrame("too many streams")
        answer = self._placed(command.streams)
        if not self._is_certain(answer):
            refusal_check = self.services.refusal_check
            if await refusal_check.is_outdated(refusal_check.index):
                answer = self._placed(command.streams)
        return answer

    def _is_certain(self, answer: commands.MetadataResponse) -> bool:
        """False unless all are on this node: others may know of a declaration, or of a deletion, first.

        The node that has deleted a stream tells its clients at once, and some of them then ask another node
        whether it is still there.
        """
        return all(placement.code == ResponseCode.OK for placement in answer.placements) and all(
            (broker.host, broker.port) == self._advertised_address for broker in answer.brokers
        )

    def _placed(self, streams: Iterable[str]) -> commands.MetadataResponse:
        """Where each of `streams` is, or why it cannot be used."""
        placements = []
        # By address: its reference.
        brokers: dict[tuple[str, int], BrokerReference] = {}
        for name in dict.fromkeys(streams):
            try:
                address = self._address_of(name)
            except Undecided:
                raise
            except AccessRefused:
                placements.append(Placement(name, ResponseCode.ACCESS_REFUSED, -1, ()))
                continue
            except CommandRefused as refusal:
                placements.append(Placement(name, refusal.code, -1, ()))
                continue
            broker = brokers.setdefault(address, BrokerReference(len(brokers), *address))
            placements.append(Placement(name, ResponseCode.OK, broker.number, ()))
        return commands.MetadataResponse(tuple(brokers.values()), tuple(placements))

    def _address_of(self, stream: str) -> tuple[str, int]:
        """Where the node that has `stream` listens to this client; CommandRefused if it does not.

        AccessRefused if the user may neither read nor write it (RabbitMQ 4).
        """
        self._authorizer.check_read_or_write(self._name(stream))
        home = self._admin.home_of(stream)
        if home is None:
            return self._advertised_address
        address = self._stream_server.address_of(home, self._handshake.peer.is_tls)
        if address is None:
            raise CommandRefused(ResponseCode.STREAM_NOT_AVAILABLE)
        return address

    async def _route(self, command: commands.Route) -> commands.RouteResponse:
        check = self._authorizer.check_write
        check(ExchangeName(self.services.vhost.name, command.super_stream))
        streams = self._admin.route(command.routing_key, command.super_stream)
        for stream in streams:
            check(self._name(stream))
        return commands.RouteResponse(ResponseCode.OK, streams)

    async def _partitions(self, command: commands.Partitions) -> commands.PartitionsResponse:
        check = self._authorizer.check_read_or_write
        check(ExchangeName(self.services.vhost.name, command.super_stream))
        streams = self._admin.partitions(command.super_stream)
        for stream in dict.fromkeys(streams):
            check(self._name(stream))
        return commands.PartitionsResponse(ResponseCode.OK, streams)

    async def _stats(self, command: commands.StreamStats) -> commands.StreamStatsResponse:
        known = await self._asked(QuestionKind.STATISTICS, command.stream)
        first, last, committed = known or (-1, -1, -1)
        counters = (
            ("first_chunk_id", first),
            ("last_chunk_id", last),
            ("committed_chunk_id", last),
            ("committed_offset", committed),
        )
        return commands.StreamStatsResponse(ResponseCode.OK, counters)

    async def _create_super(self, command: commands.CreateSuperStream) -> ResponseCode:
        await self._admin.create_super(
            command.name, command.partitions, command.binding_keys, command.arguments
        )
        return ResponseCode.OK

    async def _delete_super(self, command: commands.DeleteSuperStream) -> ResponseCode:
        await self._admin.delete_super(command.name)
        return ResponseCode.OK

    async def _exchange_versions(
        self, command: commands.ExchangeCommandVersions
    ) -> commands.ExchangeCommandVersionsResponse:
        known = {version.key: version.last for version in command.versions}
        self.subscriptions.sends_committed_chunk = known.get(CommandKey.DELIVER, 1) > 1
        return commands.ExchangeCommandVersionsResponse(ResponseCode.OK, _VERSIONS)

    # --- private ----------------------------------------------------------------------------------

    def _refused(self, command: StreamCommand, code: ResponseCode) -> "Response":
        self._stream_server.counts.failures[code] += 1
        return _refused_response(command, code)

    def _name(self, stream: str) -> QueueName:
        return QueueName(self.services.vhost.name, stream)

    async def _asked(
        self, kind: QuestionKind, stream: str, reference: str = "", offset: int = 0
    ) -> tuple[int, ...]:
        """What the home of `stream` answers, here or on another node; raises if the user may not read it."""
        self._authorizer.check_read(self._name(stream))
        question = StreamQuestion(
            kind=kind, vhost=self.services.vhost.name, stream=stream, reference=reference, offset=offset
        )
        home = self._admin.home_of(stream)
        if home is None:
            answer = answer_of(self._admin.find(stream), question)
        else:
            found = await self._stream_server.ask_home(home, question)
            if found is None:
                raise CommandRefused(ResponseCode.STREAM_NOT_AVAILABLE)
            answer = found
        if answer.code != ResponseCode.OK:
            raise CommandRefused(answer.code)
        return answer.numbers

    def _readable(self, name: str) -> StreamQueue:
        """Return the stream `name`; raises if the user may not read it."""
        self._authorizer.check_read(self._name(name))
        return self._admin.find(name)

    def _watch(self, stream: StreamQueue) -> None:
        if stream not in self._watched:
            self._watched[stream] = None
            stream.watch(self._on_stream_changed)

    def _on_stream_changed(self) -> None:
        """Notify the client of deleted streams."""
        gone = [stream for stream in self._watched if stream.is_deleted]
        if not gone:
            return
        for stream in gone:
            del self._watched[stream]
        self._deleted |= self.publishers.forget(_is_deleted) | self.subscriptions.forget(_is_deleted)
        if not self._is_answering:
            self._notify_deleted()

    def _notify_deleted(self) -> None:
        for name in sorted(self._deleted):
            self._outbox.raw(commands.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, name).encode())
        self._deleted.clear()


Response = StreamCommand | ResponseCode | None


def _as_error(refusal: CommandRefused | ChannelException) -> ChannelException:
    """`refusal` as the error that closes a channel of AMQP."""
    if isinstance(refusal, ChannelException):
        return refusal
    is_absent = refusal.code is ResponseCode.STREAM_DOES_NOT_EXIST
    return NotFound("no such stream") if is_absent else PreconditionFailed()


def _is_deleted(stream: StreamQueue) -> bool:
    return stream.is_deleted


def _refused_response(command: StreamCommand, code: ResponseCode) -> Response:
    """The answer to a refused `command`; some answers have more fields than the code."""
    match command:
        case commands.QueryPublisherSequence():
            return commands.QueryPublisherSequenceResponse(code, 0)
        case commands.QueryOffset():
            return commands.QueryOffsetResponse(code, 0)
        case commands.Route():
            return commands.RouteResponse(code, ())
        case commands.Partitions():
            return commands.PartitionsResponse(code, ())
        case commands.StreamStats():
            return commands.StreamStatsResponse(code, ())
    return code


_HANDLERS: dict[type[StreamCommand], Callable[[StreamCommandHandler, Any], Awaitable[Response]]] = {
    commands.SaslAuthenticate: StreamCommandHandler._renew,
    commands.DeclarePublisher: StreamCommandHandler._declare_publisher,
    commands.DeletePublisher: StreamCommandHandler._delete_publisher,
    commands.QueryPublisherSequence: StreamCommandHandler._query_sequence,
    commands.Subscribe: StreamCommandHandler._subscribe,
    commands.Unsubscribe: StreamCommandHandler._unsubscribe,
    commands.StoreOffset: StreamCommandHandler._store_offset,
    commands.QueryOffset: StreamCommandHandler._query_offset,
    commands.Create: StreamCommandHandler._create,
    commands.Delete: StreamCommandHandler._delete,
    commands.Metadata: StreamCommandHandler._metadata,
    commands.Route: StreamCommandHandler._route,
    commands.Partitions: StreamCommandHandler._partitions,
    commands.StreamStats: StreamCommandHandler._stats,
    commands.CreateSuperStream: StreamCommandHandler._create_super,
    commands.DeleteSuperStream: StreamCommandHandler._delete_super,
    commands.ExchangeCommandVersions: StreamCommandHandler._exchange_versions,
}
