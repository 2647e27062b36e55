"""Creating, deleting and describing streams, with the response codes of RabbitMQ 3.10.8."""

import pytest
from tests.unit.session.streams.client import Node, StreamClient, data

from warren.metadata.commands import Bind, DeclareExchange, DeclareQueue, SetPermissions
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, ResponseCode
from warren.wire.streams.fields import BrokerReference, Placement


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def client(node: Node) -> StreamClient:
    return node.stream()


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("s", {}, ResponseCode.STREAM_ALREADY_EXISTS),
        ("s", {"max-length-bytes": "1000"}, ResponseCode.PRECONDITION_FAILED),
        ("n", {"unknown": "x"}, ResponseCode.OK),
        (
            "n",
            {"max-age": "1h", "max-length-bytes": "1000", "stream-max-segment-size-bytes": "1000"},
            ResponseCode.OK,
        ),
        ("n", {"initial-cluster-size": "1", "queue-leader-locator": "client-local"}, ResponseCode.OK),
        ("n", {"stream-initial-offset": "1000"}, ResponseCode.OK),
        ("n", {"stream-initial-offset": "-1"}, ResponseCode.PRECONDITION_FAILED),
        ("n", {"max-length-bytes": "abc"}, ResponseCode.PRECONDITION_FAILED),
        ("n", {"max-age": "abc"}, ResponseCode.PRECONDITION_FAILED),
        ("", {}, ResponseCode.PRECONDITION_FAILED),
        ("x" * 256, {}, ResponseCode.PRECONDITION_FAILED),
        ("amq.x", {}, ResponseCode.PRECONDITION_FAILED),
        ("n\n", {}, ResponseCode.OK),
    ],
)
def test_a_stream_is_created(
    client: StreamClient, name: str, arguments: dict[str, str], code: ResponseCode
) -> None:
    assert client.ask(commands.Create(name, arguments)) == [(CommandKey.CREATE, code)]
    assert client.connection.is_open


def test_a_stream_has_the_arguments_of_its_creation(node: Node, client: StreamClient) -> None:
    client.ask(commands.Create("n", {"max-length-bytes": "1000", "max-age": "1h"}))
    client.ask(commands.Create("m", {"stream-initial-offset": "1000"}))
    assert node.services.vhost.queues["m"].log.next == 1_000
    retention = node.services.vhost.queues["n"].log.retention
    assert (retention.bytes_max, retention.age_ms_max) == (1_000, 3_600_000)


def test_other_queues_are_not_streams(node: Node, client: StreamClient) -> None:
    node.proposals.apply(DeclareQueue(vhost="/", name="q", durable=True))
    assert client.ask(commands.Delete("q")) == [(CommandKey.DELETE, ResponseCode.STREAM_DOES_NOT_EXIST)]
    assert client.ask(commands.Create("q", {})) == [(CommandKey.CREATE, ResponseCode.PRECONDITION_FAILED)]
    refused = [(CommandKey.DECLARE_PUBLISHER, ResponseCode.STREAM_DOES_NOT_EXIST)]
    assert client.ask(commands.DeclarePublisher(1, "", "q")) == refused


def test_a_stream_is_deleted(node: Node, client: StreamClient) -> None:
    assert client.ask(commands.Delete("s")) == [(CommandKey.DELETE, ResponseCode.OK)]
    assert client.ask(commands.Delete("s")) == [(CommandKey.DELETE, ResponseCode.STREAM_DOES_NOT_EXIST)]
    assert "s" not in node.services.vhost.queues


def test_creating_and_deleting_require_configure_permission(node: Node, client: StreamClient) -> None:
    node.proposals.apply(SetPermissions(user="guest", vhost="/", configure="^$", write=".*", read=".*"))
    assert client.ask(commands.Create("n", {})) == [(CommandKey.CREATE, ResponseCode.ACCESS_REFUSED)]
    assert client.ask(commands.Delete("s")) == [(CommandKey.DELETE, ResponseCode.ACCESS_REFUSED)]
    refused = [(CommandKey.CREATE_SUPER_STREAM, ResponseCode.ACCESS_REFUSED)]
    assert client.ask(commands.CreateSuperStream("n", ("p",), ("k",), {})) == refused


def test_metadata_contain_the_leader_of_each_stream(client: StreamClient) -> None:
    placements = (
        Placement("s", ResponseCode.OK, 0, ()),
        Placement("none", ResponseCode.STREAM_DOES_NOT_EXIST, -1, ()),
    )
    expected = commands.MetadataResponse((BrokerReference(0, "127.0.0.1", 5552),), placements)
    assert client.ask(commands.Metadata(("s", "none", "s"))) == [expected]
    assert client.ask(commands.Metadata(())) == [commands.MetadataResponse((), ())]


def test_statistics_are_offsets(node: Node, client: StreamClient) -> None:
    names = ("first_chunk_id", "last_chunk_id", "committed_chunk_id", "committed_offset")
    empty = commands.StreamStatsResponse(ResponseCode.OK, tuple((name, -1) for name in names))
    assert client.ask(commands.StreamStats("s")) == [empty]
    client.ask(commands.DeclarePublisher(1, "", "s"))
    for _ in range(2):
        client.publish(1, (0, data(b"a")), (0, data(b"b")))
        node.write()
    client.hear()
    found = commands.StreamStatsResponse(ResponseCode.OK, tuple(zip(names, (0, 2, 2, 3), strict=True)))
    assert client.ask(commands.StreamStats("s")) == [found]


def test_command_versions_are_listed_in_order(client: StreamClient) -> None:
    [answer] = client.ask(commands.ExchangeCommandVersions(()))
    assert [version.key for version in answer.versions] == list(range(1, 31))
    assert [version.key for version in answer.versions if version.last == 2] == [
        CommandKey.PUBLISH,
        CommandKey.DELIVER,
    ]


def test_a_super_stream_has_at_most_the_configured_number_of_partitions() -> None:
    client = Node(super_stream_partitions_max=2).stream()

    def made(*partitions: str) -> list[object]:
        super_stream = commands.CreateSuperStream(f"of {len(partitions)}", partitions, partitions, {})
        return list(client.ask(super_stream))

    assert made("a", "b") == [(CommandKey.CREATE_SUPER_STREAM, ResponseCode.OK)]
    assert made("c", "d", "e") == [(CommandKey.CREATE_SUPER_STREAM, ResponseCode.PRECONDITION_FAILED)]


def test_a_super_stream_is_an_exchange_with_bound_partitions(node: Node, client: StreamClient) -> None:
    made = client.ask(commands.CreateSuperStream("super", ("b", "a"), ("k1", "k2"), {"max-age": "1h"}))
    assert made == [(CommandKey.CREATE_SUPER_STREAM, ResponseCode.OK)]
    assert client.ask(commands.Partitions("super")) == [
        commands.PartitionsResponse(ResponseCode.OK, ("b", "a"))
    ]
    assert client.ask(commands.Route("k2", "super")) == [commands.RouteResponse(ResponseCode.OK, ("a",))]
    assert client.ask(commands.Route("other", "super")) == [commands.RouteResponse(ResponseCode.OK, ())]
    again = client.ask(commands.CreateSuperStream("super", ("c",), ("k",), {}))
    assert again == [(CommandKey.CREATE_SUPER_STREAM, ResponseCode.STREAM_ALREADY_EXISTS)]
    assert client.ask(commands.DeleteSuperStream("super")) == [
        (CommandKey.DELETE_SUPER_STREAM, ResponseCode.OK)
    ]
    gone = [(CommandKey.DELETE_SUPER_STREAM, ResponseCode.STREAM_DOES_NOT_EXIST)]
    assert client.ask(commands.DeleteSuperStream("super")) == gone
    assert set(node.services.vhost.queues) == {"s"}


@pytest.mark.parametrize(
    ("bound", "partitions"),
    [
        ([("q2", "2", None), ("q1", "1", None), ("q0", "0", None)], "q0 q1 q2"),
        ([("a", "2", None), ("c", "1", None), ("b", "0", None)], "b c a"),
        ([("c", "k", None), ("a", "k", None), ("b", "k", None)], "a b c"),
        ([("n1", "0", None), ("o1", "5", 1), ("n0", "1", None), ("o0", "6", 0)], "o0 o1 n1 n0"),
        ([("t2", "0", "2"), ("t10", "1", "10"), ("t1", "2", 1)], "t1 t2 t10"),
        ([("z", "1", 1), ("y", "0", 1), ("x", "2", 0)], "x y z"),
        ([("u", "0", 2), ("u", "1", 0), ("v", "2", 1)], "u v u"),
        ([("g1", "0", -1), ("g0", "1", 0), ("g2", "2", -3)], "g2 g1 g0"),
        ([("w1", "0", "one"), ("w2", "1", True), ("w3", "2", 0.5), ("w0", "3", 0)], "w0 w1 w2 w3"),
    ],
    ids=[
        "keys",
        "keys before names",
        "names",
        "with before without",
        "texts",
        "ties",
        "twice",
        "negative",
        "odd",
    ],
)
def test_partitions_are_ordered_as_by_rabbitmq(
    node: Node, client: StreamClient, bound: list[tuple[str, str, object]], partitions: str
) -> None:
    node.proposals.apply(DeclareExchange(vhost="/", name="super", type="direct", durable=True))
    for name, key, order in bound:
        client.ask(commands.Create(name, {}))
        arguments = {} if order is None else {"x-stream-partition-order": order}
        node.proposals.apply(
            Bind(vhost="/", source="super", destination=name, routing_key=key, arguments=arguments)
        )
    answer = commands.PartitionsResponse(ResponseCode.OK, tuple(partitions.split()))
    assert client.ask(commands.Partitions("super")) == [answer]
    assert client.ask(commands.DeleteSuperStream("super")) == [
        (CommandKey.DELETE_SUPER_STREAM, ResponseCode.OK)
    ]
    assert set(node.services.vhost.queues) == {"s"}


def restricted(node: Node, *, write: str, read: str) -> None:
    """Let the client's user write and read only what matches."""
    node.proposals.apply(SetPermissions(user="guest", vhost="/", configure="^$", write=write, read=read))


@pytest.mark.parametrize(("write", "read"), [("^mine$", "^$"), ("^$", "^mine$")])
def test_metadata_require_read_or_write_permission_on_each_stream(
    node: Node, client: StreamClient, write: str, read: str
) -> None:
    client.ask(commands.Create("mine", {}))
    restricted(node, write=write, read=read)
    [answer] = client.ask(commands.Metadata(("s", "mine", "none")))
    assert [(one.stream, one.code) for one in answer.placements] == [
        ("s", ResponseCode.ACCESS_REFUSED),
        ("mine", ResponseCode.OK),
        ("none", ResponseCode.ACCESS_REFUSED),
    ]


@pytest.mark.parametrize(
    ("write", "read", "routed", "listed"),
    [
        ("^(super|a|b)$", "^$", True, True),
        ("^$", "^(super|a|b)$", False, True),
        ("^super$", "^(a|b)$", False, True),
        ("^(a|b)$", "^$", False, False),
        ("^(super|a)$", "^$", False, False),
        ("^super$", "^a$", False, False),
        ("^$", "^$", False, False),
    ],
)
def test_routing_requires_write_permission_and_partitions_any_on_exchange_and_streams(
    node: Node, client: StreamClient, write: str, read: str, routed: bool, listed: bool
) -> None:
    client.ask(commands.CreateSuperStream("super", ("a", "b"), ("k1", "k2"), {}))
    restricted(node, write=write, read=read)
    [route], [partitions] = (
        client.ask(commands.Route("k2", "super")),
        client.ask(commands.Partitions("super")),
    )
    refused = ResponseCode.ACCESS_REFUSED
    assert (route.code, route.streams) == ((ResponseCode.OK, ("b",)) if routed else (refused, ()))
    assert (partitions.code, partitions.streams) == (
        (ResponseCode.OK, ("a", "b")) if listed else (refused, ())
    )


def test_storing_an_offset_requires_read_permission(node: Node, client: StreamClient) -> None:
    restricted(node, write=".*", read="^$")
    assert client.ask(commands.StoreOffset("reader", "s", 7)) == []
    restricted(node, write="^$", read=".*")
    assert client.ask(commands.QueryOffset("reader", "s")) == [
        commands.QueryOffsetResponse(ResponseCode.NO_OFFSET, 0)
    ]
    assert client.ask(commands.StoreOffset("reader", "s", 7)) == []
    assert client.ask(commands.QueryOffset("reader", "s")) == [
        commands.QueryOffsetResponse(ResponseCode.OK, 7)
    ]


@pytest.mark.parametrize("name", ["none", ""])
def test_an_unknown_super_stream_has_no_partitions(client: StreamClient, name: str) -> None:
    code = ResponseCode.STREAM_DOES_NOT_EXIST
    assert client.ask(commands.Partitions(name)) == [commands.PartitionsResponse(code, ())]
    assert client.ask(commands.Route("k", name)) == [commands.RouteResponse(code, ())]


@pytest.mark.parametrize(
    ("partitions", "keys", "code"),
    [
        ((), (), ResponseCode.PRECONDITION_FAILED),
        (("a",), (), ResponseCode.PRECONDITION_FAILED),
        (("a", "a"), ("1", "2"), ResponseCode.PRECONDITION_FAILED),
        (("s", "a"), ("1", "2"), ResponseCode.STREAM_ALREADY_EXISTS),
        (("a", "amq.b"), ("1", "2"), ResponseCode.PRECONDITION_FAILED),
    ],
)
def test_a_super_stream_that_cannot_be_created_leaves_nothing_behind(
    node: Node, client: StreamClient, partitions: tuple[str, ...], keys: tuple[str, ...], code: ResponseCode
) -> None:
    refused = client.ask(commands.CreateSuperStream("super", partitions, keys, {}))
    assert refused == [(CommandKey.CREATE_SUPER_STREAM, code)]
    assert set(node.services.vhost.queues) == {"s"}
    assert "super" not in node.services.vhost.router.exchanges
