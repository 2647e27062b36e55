"""A client of another node gets of a stream the same bytes as one of its home."""

from collections.abc import Callable

import pytest
from tests.unit.cluster.client_script import Script
from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.queues.samples import Reader
from tests.unit.session.client import publication
from tests.unit.session.streams.client import PasswordAdmission, StreamClient

from warren.cluster.payload_writer import PayloadWriter
from warren.cluster.remote_codec import NAME, TO_HOME, encode_head
from warren.errors import PreconditionFailed
from warren.limits_cluster import REMOTE_ARGUMENTS_SIZE_MAX
from warren.metadata.commands import DeleteQueue
from warren.model.coroutine_driver import drive
from warren.queues.capabilities import stream_queue
from warren.session.streams.handshake import StreamSettings
from warren.session.streams.stream_questions import (
    QuestionKind,
    StreamAnswer,
    StreamQuestion,
    answer_here,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
)
from warren.session.streams.stream_server import StreamServer
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, OffsetType, ResponseCode
from warren.wire.streams.fields import BrokerReference, Offset, Placement
from warren.wire.table import Timestamp, Value, encode_table

STREAM = "b.stream"
SUPER = "invoices"
PREFETCH = methods.BasicQos(prefetch_count=4)


def declared(name: str = STREAM, **arguments: object) -> Method:
    return methods.QueueDeclare(
        queue=name,
        durable=True,
        arguments={"x-queue-type": "stream", **arguments},  # type: ignore[arg-type]
    )


def published(first: int, count: int, **more: object) -> bytes:
    return b"".join(publication(STREAM, b"m%d" % (first + number), **more) for number in range(count))


def consume(start: object = "first", tag: str = "t", **more: object) -> Method:
    arguments = {"x-stream-offset": start, **more.pop("arguments", {})}  # type: ignore[dict-item]
    return methods.BasicConsume(queue=STREAM, consumer_tag=tag, arguments=arguments, **more)  # type: ignore[arg-type]


def publish(script: Script) -> None:
    script.send(0, declared(), methods.ConfirmSelect())
    script.send(0, published(0, 3), published(3, 2, delivery_mode=2, headers={"a": 1}))
    script.send(1, published(5, 1, priority=3, expiration="1000", message_id="x"))
    script.send(0, methods.QueueDeclare(queue=STREAM, passive=True), declared())
    script.send(0, PREFETCH, consume())
    script.send(0, methods.BasicAck(4, True))


def starts(script: Script) -> None:
    script.send(1, declared(), published(0, 4))
    script.send(1, published(4, 3))
    script.send(0, PREFETCH)
    for number, start in enumerate(("first", "last", "next", 5, Timestamp(0), Timestamp(10**9), "7D", None)):
        arguments = {} if start is None else {"x-stream-offset": start}
        consumer = methods.BasicConsume(queue=STREAM, consumer_tag=f"t{number}", arguments=arguments)  # type: ignore[arg-type]
        script.send(0, consumer)
    script.send(1, published(7, 2))
    script.send(0, methods.BasicAck(0, True))


def filters(script: Script) -> None:
    script.send(0, declared(), PREFETCH)
    for number in range(9):
        value = {} if number % 3 == 0 else {"x-stream-filter-value": f"v{number % 3}"}
        script.send(1, published(number, 1, headers=value))
    script.send(0, consume(tag="one", arguments={"x-stream-filter": "v1"}))
    script.send(0, consume(tag="both", arguments={"x-stream-filter": ["v1", "v2"]}))
    unfiltered = {"x-stream-filter": ["v2"], "x-stream-match-unfiltered": True}
    script.send(0, consume(tag="more", arguments=unfiltered))
    script.send(0, methods.BasicAck(0, True))


def prefetch(script: Script) -> None:
    script.send(1, declared(), published(0, 20))
    script.send(0, PREFETCH, consume())
    script.send(0, methods.BasicAck(1))
    script.send(0, methods.BasicAck(3, True), published(20, 1))
    script.send(0, methods.BasicAck(0, True))
    script.send(0, methods.BasicAck(99))


def global_prefetch(script: Script) -> None:
    script.send(1, declared(), published(0, 12))
    script.send(0, PREFETCH, methods.BasicQos(prefetch_count=3, is_global=True), consume())
    script.send(0, methods.BasicAck(1))
    script.send(0, methods.BasicAck(3, True))
    script.send(0, methods.BasicAck(0, True))


def cancel(script: Script) -> None:
    script.send(0, declared(), published(0, 6), PREFETCH, consume())
    script.send(0, methods.BasicCancel("t"), methods.BasicAck(2, True), published(6, 1))
    script.send(0, methods.QueueDeclare(queue=STREAM, passive=True), consume(3, "u"))
    script.send(1, methods.QueueDeclare(queue=STREAM, passive=True))


def delete(script: Script) -> None:
    script.send(1, declared(), published(0, 6), PREFETCH, consume())
    script.send(0, PREFETCH, consume())
    script.send(0, methods.QueueDelete(queue=STREAM))
    script.send(0, methods.BasicAck(1), declared(), published(0, 1))
    script.send(0, methods.QueueDelete(queue=STREAM, if_empty=True))


def delete_unused(script: Script) -> None:
    script.send(1, declared(), published(0, 6), PREFETCH, consume())
    script.send(0, methods.QueueDelete(queue=STREAM, if_unused=True))


def no_acknowledgements(script: Script) -> None:
    script.send(0, declared(), consume(no_ack=True))


def no_prefetch(script: Script) -> None:
    script.send(0, declared(), consume())


def bad_start(script: Script) -> None:
    script.send(0, declared(), PREFETCH, consume("yesterday"))


def bad_filter(script: Script) -> None:
    script.send(0, declared(), PREFETCH, consume(arguments={"x-stream-filter": 5}))


def priority(script: Script) -> None:
    script.send(0, declared(), PREFETCH, consume(arguments={"x-priority": 1}))


def get(script: Script) -> None:
    script.send(0, declared(), published(0, 1), methods.BasicGet(queue=STREAM))


def purge(script: Script) -> None:
    script.send(0, declared(), published(0, 1), methods.QueuePurge(queue=STREAM))


def nack(script: Script) -> None:
    script.send(0, declared(), published(0, 2), PREFETCH, consume())
    script.send(0, methods.BasicNack(1, False, True))


def reject(script: Script) -> None:
    script.send(0, declared(), published(0, 2), PREFETCH, consume())
    script.send(0, methods.BasicReject(1, False))


def recover(script: Script) -> None:
    script.send(0, declared(), published(0, 2), PREFETCH, consume())
    script.send(0, methods.BasicRecover(requeue=True))


def positions(script: Script) -> None:
    script.send(0, declared(), PREFETCH, consume(arguments={"x-warren-positions": True}))


def other_declaration(script: Script) -> None:
    script.send(0, declared(), declared(**{"x-max-age": "1D"}))


def transaction(script: Script) -> None:
    script.send(0, declared(), methods.TxSelect(), PREFETCH)
    script.send(0, published(0, 3), methods.TxCommit())
    script.send(0, consume())
    script.send(0, methods.BasicAck(2, True), methods.TxRollback(), methods.TxCommit())


def exclusive(script: Script) -> None:
    script.send(0, declared(), published(0, 3), PREFETCH, consume(exclusive=True))
    script.send(1, PREFETCH, consume(exclusive=True))


def super_stream(script: Script) -> None:
    script.send(
        0, methods.ExchangeDeclare(exchange=SUPER, type="direct", durable=True),
        declared("b.0"), declared("b.1"),
        methods.QueueBind(queue="b.0", exchange=SUPER, routing_key="0"),
        methods.QueueBind(queue="b.1", exchange=SUPER, routing_key="1"), methods.ConfirmSelect(), PREFETCH,
    )  # fmt: skip
    for number in range(6):
        script.send(0, publication(str(number % 2), b"%d" % number, exchange=SUPER))
    for name in ("b.0", "b.1"):
        start = {"x-stream-offset": "first"}
        script.send(0, methods.BasicConsume(queue=name, consumer_tag=name, arguments=start))  # type: ignore[arg-type]


def large(script: Script) -> None:
    script.send(0, declared(), PREFETCH, publication(STREAM, b"x" * 3_000), publication(STREAM, b""))
    script.send(0, consume())


def beside_a_queue(script: Script) -> None:
    script.send(0, declared(), methods.QueueDeclare(queue="b.queue"), methods.ConfirmSelect(), PREFETCH)
    for name in (STREAM, "b.queue"):
        script.send(0, methods.QueueBind(queue=name, exchange="amq.fanout"))
    script.send(0, *(publication("k", b"%d" % number, exchange="amq.fanout") for number in range(3)))
    script.send(0, consume())
    script.send(0, methods.BasicConsume(queue="b.queue", consumer_tag="q"))
    script.send(0, methods.BasicAck(0, True))


SCRIPTS = (
    publish, starts, filters, prefetch, global_prefetch, cancel, delete, delete_unused, no_acknowledgements,
    no_prefetch, bad_start, bad_filter, priority, get, purge, nack, reject, recover, positions,
    other_declaration, transaction, exclusive, super_stream, large, beside_a_queue,
)  # fmt: skip


@pytest.mark.parametrize("play", SCRIPTS, ids=lambda play: play.__name__)
@pytest.mark.parametrize("nodes", ["aa", "ab", "ba"])
def test_a_client_of_another_node_gets_the_bytes_that_one_of_the_home_gets(
    play: Callable[[Script], None], nodes: str
) -> None:
    home, remote = Script("bb"), Script(nodes)
    play(home)
    play(remote)
    assert remote.received == home.received
    assert any(home.received), "nothing was compared"
    assert not remote.cluster.a.channel.ended + remote.cluster.b.channel.ended


def test_a_start_is_found_before_the_client_hears_that_it_consumes() -> None:
    script = Script("ab")
    script.send(0, declared(), PREFETCH)
    one, other = script.clients
    assert [type(each.method) for each in one.ask(consume("next"))] == []
    while not (answers := one.hear()):
        cluster = script.cluster
        for node in cluster.nodes:
            node.turn()
            cluster.pass_one(node)
    assert [type(each.method) for each in answers] == [methods.BasicConsumeOk]
    other.send(publication(STREAM, b"behind"))
    script.cluster.run()
    assert [each.body for each in one.hear()] == [b"behind"]


class GreedyReader(Reader):
    """A consumer with a filter of many values."""

    def read_arguments(self) -> dict[str, Value]:
        return {"x-stream-filter": ["v" * 100] * (REMOTE_ARGUMENTS_SIZE_MAX // 105 + 1)}


def test_what_a_reader_asks_for_is_bounded() -> None:
    script = Script("ab")
    script.send(0, declared())
    stream = script.cluster.a.services.vhost.queues[STREAM]
    text = "the filter of a consumer of stream 'b.stream' in vhost '/' has 131166 bytes, more than 131072"
    with pytest.raises(PreconditionFailed, match=f"^{text}"):
        stream.admit(GreedyReader()).send(None)
    script.cluster.run()
    assert not script.cluster.b.queue(STREAM).consumer_count


@pytest.mark.parametrize(
    "table", [bytes(4) + b"x", (REMOTE_ARGUMENTS_SIZE_MAX + 1).to_bytes(4, "big"), b"\0\0\0\2\1x"]
)
def test_a_malformed_table_of_arguments_ends_the_session(table: bytes) -> None:
    cluster = Script("ab").cluster
    writer = PayloadWriter()
    writer.add_named(NAME, STREAM, 1)
    writer.attach("t", table, 2, 1, 0, 0)
    cluster.b.traffic.received(TO_HOME, writer.take(encode_head(1, 0, "/")))
    assert len(cluster.b.channel.ended) == 1


def test_an_impossible_start_ends_the_session() -> None:
    cluster = Script("ab").cluster
    writer = PayloadWriter()
    writer.add_named(NAME, STREAM, 1)
    writer.attach("t", encode_table({"x-stream-offset": "yesterday"}), 2, 1, 0, 0)
    cluster.b.traffic.received(TO_HOME, writer.take(encode_head(1, 0, "/")))
    assert "'x-stream-offset' is first, last, next" in cluster.b.channel.ended[0]


class StreamNode:
    """What a client of the stream protocol needs of the node a."""

    def __init__(self, cluster: TwoNodes) -> None:
        server = cluster.a.server
        server.admission_control = PasswordAdmission()  # type: ignore[assignment]
        settings = StreamSettings(cluster_name="c", advertised_host="a.example", advertised_port=1)
        self.clock = cluster.a.clock
        self.stream_server = StreamServer(server, settings)
        self.stream_server.address_of = self.address_of
        self.stream_server.ask_home = self.ask_home
        self.home = cluster.b.server
        # The members that are heard, with their addresses.
        self.heard = {1: ("b.example", 2)}

    def address_of(self, node: int, is_tls: bool) -> tuple[str, int] | None:
        assert not is_tls
        return self.heard.get(node)

    async def ask_home(self, node: int, question: StreamQuestion) -> StreamAnswer | None:
        if node not in self.heard:
            return None
        answer = await answer_here(self.home, decode_question(encode_question(question)))
        return decode_answer(encode_answer(answer))


def asked(client: StreamClient, cluster: TwoNodes, command: commands.StreamCommand) -> list[object]:
    """What `client` is answered when everything has happened."""
    answers = client.ask(command)
    cluster.run()
    return [*answers, *client.hear()]


NOT_THERE = ResponseCode.STREAM_NOT_AVAILABLE


def test_the_stream_protocol_says_which_node_has_a_stream() -> None:
    script = Script("ab")
    script.send(0, declared(), declared("a.stream"), methods.QueueDeclare(queue="b.queue"))
    node = StreamNode(script.cluster)
    client = StreamClient(node)  # type: ignore[arg-type]
    client.open()
    names = ("b.stream", "a.stream", "b.queue", "nothing")
    [answer] = asked(client, script.cluster, commands.Metadata(names))
    assert isinstance(answer, commands.MetadataResponse)
    assert answer.brokers == (BrokerReference(0, "b.example", 2), BrokerReference(1, "a.example", 1))
    missing = ResponseCode.STREAM_DOES_NOT_EXIST
    assert answer.placements == (
        Placement("b.stream", ResponseCode.OK, 0, ()),
        Placement("a.stream", ResponseCode.OK, 1, ()),
        Placement("b.queue", missing, -1, ()),
        Placement("nothing", missing, -1, ()),
    )
    node.heard.clear()
    [answer] = asked(client, script.cluster, commands.Metadata(("b.stream",)))
    assert answer == commands.MetadataResponse((), (Placement("b.stream", NOT_THERE, -1, ()),))


def test_the_stream_protocol_does_not_name_the_node_of_a_stream_that_it_has_deleted_already() -> None:
    """Clients ask as soon as that node tells them; some unsubscribe if the stream is still there."""
    script = Script("ab")
    script.send(0, declared())
    cluster = script.cluster
    client = StreamClient(StreamNode(cluster))  # type: ignore[arg-type]
    client.open()
    cluster.is_prompt = False
    cluster.apply(DeleteQueue(vhost="/", name=STREAM), "guest", cluster.b)
    cluster.has_majority = False
    [cut_off] = asked(client, cluster, commands.Metadata((STREAM,)))
    assert isinstance(cut_off, commands.MetadataResponse)
    assert [placement.code for placement in cut_off.placements] == [ResponseCode.OK]
    cluster.has_majority = True
    deleted = Placement(STREAM, ResponseCode.STREAM_DOES_NOT_EXIST, -1, ())
    assert asked(client, cluster, commands.Metadata((STREAM,))) == [commands.MetadataResponse((), (deleted,))]


def test_the_stream_protocol_asks_the_home_for_offsets_sequences_and_statistics() -> None:
    script = Script("ab")
    script.send(0, declared())
    home = stream_queue(script.cluster.b.queue(STREAM))
    assert home is not None
    client = StreamClient(StreamNode(script.cluster))  # type: ignore[arg-type]
    client.open()

    def ask(command: commands.StreamCommand) -> list[object]:
        return asked(client, script.cluster, command)

    ok, nothing = ResponseCode.OK, ResponseCode.NO_OFFSET
    assert ask(commands.QueryOffset("r", STREAM)) == [commands.QueryOffsetResponse(nothing, 0)]
    assert ask(commands.StoreOffset("r", STREAM, (1 << 64) - 1)) == []
    assert home.stored_offset("r") == (1 << 64) - 1
    assert ask(commands.QueryOffset("r", STREAM)) == [commands.QueryOffsetResponse(ok, (1 << 64) - 1)]
    assert ask(commands.QueryPublisherSequence("p", STREAM)) == [
        commands.QueryPublisherSequenceResponse(ok, 0)
    ]
    [empty] = ask(commands.StreamStats(STREAM))
    script.send(0, published(0, 3))
    [full] = ask(commands.StreamStats(STREAM))
    assert isinstance(empty, commands.StreamStatsResponse)
    assert isinstance(full, commands.StreamStatsResponse)
    assert (dict(empty.counters)["committed_offset"], dict(full.counters)["committed_offset"]) == (-1, 2)


def test_the_home_of_a_stream_that_is_gone_says_so() -> None:
    script = Script("ab")
    script.send(0, declared())
    server = script.cluster.b.server
    for vhost, stream, code in (
        ("/", STREAM, ResponseCode.OK),
        ("/", "nothing", ResponseCode.STREAM_DOES_NOT_EXIST),
        ("nowhere", STREAM, ResponseCode.STREAM_NOT_AVAILABLE),
    ):
        question = StreamQuestion(kind=QuestionKind.SEQUENCE, vhost=vhost, stream=stream)
        found: list[ResponseCode] = []

        async def ask(question: StreamQuestion = question, found: list[ResponseCode] = found) -> None:
            found.append((await answer_here(server, question)).code)

        drive(ask())
        script.cluster.run()
        assert found == [code]


def test_the_stream_protocol_uses_a_stream_at_its_home_only() -> None:
    script = Script("ab")
    script.send(0, declared(), methods.QueueBind(queue=STREAM, exchange="amq.direct", routing_key="k"))
    node = StreamNode(script.cluster)
    node.heard.clear()
    client = StreamClient(node)  # type: ignore[arg-type]
    client.open()
    for command in (
        commands.DeclarePublisher(1, "", STREAM),
        commands.Subscribe(1, STREAM, Offset(OffsetType.FIRST, 0), 1, {}),
        commands.Create(STREAM, {}),
    ):
        code = ResponseCode.STREAM_ALREADY_EXISTS if isinstance(command, commands.Create) else NOT_THERE
        assert asked(client, script.cluster, command) == [(CommandKey(command.key), code)]
    assert asked(client, script.cluster, commands.QueryOffset("r", STREAM)) == [
        commands.QueryOffsetResponse(NOT_THERE, 0)
    ]
    assert asked(client, script.cluster, commands.QueryPublisherSequence("r", STREAM)) == [
        commands.QueryPublisherSequenceResponse(NOT_THERE, 0)
    ]
    assert asked(client, script.cluster, commands.StreamStats(STREAM)) == [
        commands.StreamStatsResponse(NOT_THERE, ())
    ]
    assert asked(client, script.cluster, commands.StoreOffset("r", STREAM, 5)) == []
    assert asked(client, script.cluster, commands.Route("k", "amq.direct")) == [
        commands.RouteResponse(ResponseCode.OK, (STREAM,))
    ]
    assert asked(client, script.cluster, commands.Delete(STREAM)) == [(CommandKey.DELETE, ResponseCode.OK)]
    assert STREAM not in script.cluster.b.services.vhost.queues
