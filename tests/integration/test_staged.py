"""Staged publish over HTTP: executors stage rows, the driver commits once, and either may fail in
between.
"""

import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.own_vhost import channel_in_vhost
from tests.integration.staging import ARROW_STREAM, StagedQuery, bodies, stream
from tests.integration.test_rows import read
from tests.integration.test_serve import connect

# Enough stages for the broker to take a moment to examine them at its start.
EARLIER = 3_000
SCHEMA = pa.schema(
    [("body", pa.binary()), ("routing_key", pa.string()), ("headers", pa.map_(pa.string(), pa.string()))]
)


@pytest.fixture(params=["classic", "quorum"])
def queue_type(request: pytest.FixtureRequest) -> str:
    """The type of the queues that rows are published to."""
    return str(request.param)


@pytest.fixture
def channel(node: BrokerProcess, client: HttpClient, queue_type: str) -> Iterator[Any]:
    with channel_in_vhost(node, client, "staged") as channel:
        channel.queue_declare("q", durable=True, arguments={"x-queue-type": queue_type})
        yield channel


def job(client: HttpClient, exchange: str = "amq.default", query: str = "query") -> StagedQuery:
    return StagedQuery(client, query, exchange, "staged")


def texts(count: int, prefix: str = "") -> list[bytes]:
    return [f"{prefix}{number}".encode() for number in range(count)]


def taken(channel: Any, queue: str = "q") -> list[bytes]:
    found = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append(body)


def headers_of(properties: Any) -> dict[str, Any]:
    """The headers without the one that quorum queues add to the answer of basic.get."""
    return {key: value for key, value in (properties.headers or {}).items() if key != "x-delivery-count"}


def count(channel: Any, queue: str = "q") -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def may_write_keys(client: HttpClient, pattern: str) -> None:
    permission = {"exchange": "amq.topic", "write": pattern, "read": ""}
    assert client.status("PUT /topic-permissions/staged/writer", permission) in (201, 204)


def test_staged_rows_are_published_by_the_commit_and_not_before(client: HttpClient, channel: Any) -> None:
    staged = job(client)
    answer = staged.stage(0, 0, bodies(texts(600, "a"), "q"))
    byte_count = sum(map(len, texts(600, "a")))
    assert (answer.status, answer.value) == (200, {"rows": 600, "bytes": byte_count, "octets": byte_count})
    staged.stage(0, 1, bodies(texts(5, "b"), "q"))
    assert count(channel) == 0
    [batch] = client.get("/warren/staged")
    assert (batch["vhost"], batch["query"], batch["batch"], batch["state"]) == (
        "staged",
        "query",
        0,
        "staged",
    )
    assert (batch["stages"], batch["rows"], batch["user"]) == (2, 605, "guest")
    answer = staged.commit(0, 1, 0)
    assert (answer.status, answer.value) == (200, {"state": "committed", "rows": 605, "unroutable": 0})
    assert taken(channel) == [*texts(5, "b"), *texts(600, "a")]
    assert client.get("/warren/staged") == []


def test_repeating_a_commit_publishes_nothing(client: HttpClient, channel: Any) -> None:
    staged = job(client, query="again")
    staged.stage(3, 0, bodies(texts(10), "q"))
    assert staged.commit(3, 0).value["state"] == "committed"
    again = staged.commit(3, 0)
    assert (again.status, again.value) == (200, {"state": "already committed", "rows": 10, "unroutable": 0})
    # And an earlier one, whose number of rows is not known any more.
    assert staged.commit(2, 0).value["state"] == "already committed"
    # A task that is repeated is accepted, however much it sends.
    late = staged.stage(3, 0, bodies([bytes(1_000)] * 5_000, "q"))
    assert (late.status, late.value) == (
        200,
        {"rows": 0, "bytes": 0, "octets": 0, "state": "already committed"},
    )
    assert count(channel) == 10


def test_a_commit_names_missing_stages_and_publishes_nothing(client: HttpClient, channel: Any) -> None:
    staged = job(client, query="missing")
    staged.stage(0, 0, bodies(texts(10), "q"))
    answer = staged.commit(0, 0, 1, 2)
    assert answer.status == 409
    assert answer.value["error"] == "missing"
    assert answer.value["missing"] == [{"partition": 1, "attempt": 0}, {"partition": 2, "attempt": 0}]
    assert count(channel) == 0
    assert staged.discard(0).status == 204


def test_only_the_named_attempts_are_published(client: HttpClient, channel: Any) -> None:
    staged = job(client, query="attempts")
    staged.stage(0, 0, bodies([b"lost"], "q"), attempt=1)
    staged.stage(0, 0, bodies([b"first"], "q"), attempt=2)
    staged.stage(0, 0, bodies([b"again"], "q"), attempt=2)
    assert staged.commit(0, 0, attempt=2).value["rows"] == 1
    assert taken(channel) == [b"again"]
    assert client.get("/warren/staged") == []


def test_discarded_rows_are_gone(client: HttpClient, channel: Any) -> None:
    staged = job(client, query="discarded")
    staged.stage(0, 0, bodies(texts(10), "q"))
    assert staged.discard(0).status == 204
    assert staged.discard(0).status == 204
    assert staged.commit(0, 0).status == 409
    staged.stage(0, 0, bodies([b"anew"], "q"))
    assert staged.commit(0, 0).status == 200
    assert taken(channel) == [b"anew"]


def test_an_empty_batch_is_committed(client: HttpClient, channel: Any) -> None:
    staged = job(client, query="empty")
    assert staged.commit(0).value == {"state": "committed", "rows": 0, "unroutable": 0}
    assert staged.commit(0).value["state"] == "already committed"
    assert staged.stage(1, 0, bodies([], "q")).value == {"rows": 0, "bytes": 0, "octets": 0}
    assert staged.commit(1, 0).status == 200


def test_columns_become_properties(client: HttpClient, channel: Any) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    data = stream(
        {
            "body": ["text"], "routing_key": ["q"], "message_id": ["m"], "correlation_id": ["c"],
            "content_type": ["text/plain"], "content_encoding": ["utf-8"], "type": ["t"], "app_id": ["a"],
            "user_id": ["guest"], "reply_to": ["r"], "expiration": ["60000"],
            "priority": pa.array([3], pa.int32()), "delivery_mode": pa.array([1], pa.int32()),
            "timestamp": pa.array([now], pa.timestamp("us", "UTC")),
            "headers_json": ['{"n": {"$I": 5}, "t": {"x": true}}'],
            "offset": pa.array([7], pa.int64()), "queue": ["elsewhere"],
        }
    )  # fmt: skip
    staged = job(client, query="columns")
    assert staged.stage(0, 0, data).status == 200
    assert staged.commit(0, 0).status == 200
    _, found, body = channel.basic_get("q", auto_ack=True)
    assert body == b"text"
    assert (found.message_id, found.correlation_id, found.content_type) == ("m", "c", "text/plain")
    assert (found.content_encoding, found.type, found.app_id, found.user_id) == ("utf-8", "t", "a", "guest")
    assert (found.reply_to, found.expiration, found.priority, found.delivery_mode) == ("r", "60000", 3, 1)
    assert found.timestamp == int(now.timestamp())
    assert headers_of(found) == {"n": 5, "t": {"x": True}}


def test_rows_are_persistent_and_headers_are_strings_by_default(client: HttpClient, channel: Any) -> None:
    data = stream({"body": [b"1", b"2"], "routing_key": ["q", "q"], "headers": [[("a", "b")], None]}, SCHEMA)
    staged = job(client, query="headers")
    assert staged.stage(0, 0, data).status == 200
    assert staged.commit(0, 0).status == 200
    found = [channel.basic_get("q", auto_ack=True)[1] for _ in range(2)]
    assert [(each.delivery_mode, headers_of(each)) for each in found] == [(2, {"a": "b"}), (2, {})]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"body": [b"", None]}, "row 1, column 'body': it is null"),
        ({"body": [b""], "routing_key": ["x" * 256]},
         "row 0, column 'routing_key': it is longer than 255 bytes"),
        ({"body": [b""], "message_id": ["ü" * 128]},
         "row 0, column 'message_id': it is longer than 255 bytes"),
        ({"body": [b"", b""], "priority": [5, 256]},
         "row 1, column 'priority': 256 is not between 0 and 255"),
        ({"body": [b""], "delivery_mode": [3]}, "row 0, column 'delivery_mode': 3 is not between 1 and 2"),
        ({"body": [b""], "user_id": ["somebody"]},
         "row 0, column 'user_id': 'somebody' is not the user 'guest' who stages it"),
        ({"body": [b""], "expiration": ["soon"]},
         "row 0, column 'expiration': invalid expiration 'soon': no_integer"),
        ({"body": [b""], "reply_to": ["amq.rabbitmq.reply-to"]},
         "row 0, column 'reply_to': direct reply-to is not supported in staged rows"),
        ({"body": [b""], "headers_json": ["[1]"]},
         "row 0, column 'headers_json': headers are not a JSON object"),
        ({"body": [b""], "colour": ["red"]}, "there is no property 'colour': remove this column"),
        ({"body": [1]}, "column 'body' cannot be int64"),
        ({"routing_key": ["q"]}, "there is no column 'body'"),
    ],
)  # fmt: skip
def test_an_invalid_row_is_refused_with_its_number_and_column(
    client: HttpClient, channel: Any, columns: dict[str, Any], reason: str
) -> None:
    answer = job(client, query="refused").stage(0, 0, stream(columns))
    assert (answer.status, answer.reason) == (400, reason)
    assert client.get("/warren/staged") == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the stream is incomplete"),
        (b"no stream at all", "this is not an Arrow IPC stream"),
        (bodies([b"1"], "q")[:-8], "the stream is incomplete"),
        (b"\xff\xff\xff\xff\x10\0\0\0" + b"\xff" * 16, "the metadata of a message are invalid"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", "metadata of 2147483647 bytes: the maximum is 1048576"),
        (b"\xff\xff\xff\xff\0\0\0\0", "the stream has no schema"),
        (stream({"body": pa.array([b"a"]).dictionary_encode()}), "column 'body' cannot be dictionary"),
    ],
)
def test_a_body_that_is_not_an_arrow_stream_is_refused(
    client: HttpClient, channel: Any, data: bytes, reason: str
) -> None:
    answer = job(client, query="octets").stage(0, 0, data)
    assert answer.status == 400
    assert str(answer.reason).startswith(reason)


def test_a_batch_that_would_be_too_large_in_memory_is_refused(client: HttpClient, channel: Any) -> None:
    table = pa.table({"body": pa.array([bytes(40_000_000)] * 2, pa.binary())})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    assert len(data) < 100_000
    answer = job(client, query="bomb").stage(0, 0, data)
    assert answer.status == 400
    assert "uncompressed: the maximum is" in str(answer.reason)


def test_compressed_rows_are_published(client: HttpClient, channel: Any) -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"body": texts(1_000), "routing_key": ["q"] * 1_000})
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    staged = job(client, query="compressed")
    assert staged.stage(0, 0, sink.getvalue().to_pybytes()).value["rows"] == 1_000
    assert staged.commit(0, 0).status == 200
    assert taken(channel) == texts(1_000)


def test_rows_are_routed_like_published_messages(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("other", durable=True)
    for queue in ("q", "other"):
        channel.queue_bind(queue, "amq.topic", f"{queue}.#")
    channel.queue_bind("other", "amq.topic", "q.x")
    staged = job(client, "amq.topic", "routed")
    data = stream({"body": [b"1", b"2", b"3"], "routing_key": ["q.x", "other", "nowhere"]})
    assert staged.stage(0, 0, data).status == 200
    assert staged.commit(0, 0).value == {"state": "committed", "rows": 3, "unroutable": 1}
    assert (taken(channel), taken(channel, "other")) == ([b"1"], [b"1", b"2"])


def test_unroutable_mandatory_rows_are_not_staged(client: HttpClient, channel: Any) -> None:
    staged = job(client, query="mandatory")
    answer = staged.stage(0, 0, bodies([b"1"], "nowhere"), mandatory="true")
    assert (answer.status, answer.reason) == (400, "no queue 'nowhere' in vhost 'staged'")
    channel.queue_bind("q", "amq.topic", "q.#")
    staged = job(client, "amq.topic", "mandatory")
    data = stream({"body": [b"1", b"2"], "routing_key": ["q.x", "nowhere"]})
    answer = staged.stage(0, 0, data, mandatory="true")
    reason = "unroutable: no queue is bound to exchange 'amq.topic' for the routing key 'nowhere'"
    assert (answer.status, answer.reason) == (400, reason)
    assert client.get("/warren/staged") == []
    assert staged.stage(0, 0, bodies([b"1"] * 2, "q.x"), mandatory="true").status == 200
    # One copy that is routed is enough, and headers exchanges are evaluated.
    copied = stream({"body": [b"1"], "routing_key": ["nowhere"], "headers_json": ['{"CC": ["q"]}']})
    assert job(client, query="copied").stage(0, 0, copied, mandatory="true").status == 200
    channel.queue_bind("q", "amq.headers", "", {"x-match": "all", "kind": "a"})
    for kind, status in (("a", 200), ("b", 400)):
        rows = stream({"body": [b"1", b"2"], "headers_json": [f'{{"kind": "{kind}"}}', '{"kind": "a"}']})
        assert job(client, "amq.headers", kind).stage(0, 0, rows, mandatory="true").status == status


def test_a_full_queue_pauses_the_commit_which_resumes_where_it_was(client: HttpClient, channel: Any) -> None:
    limit = {"x-max-length": 100, "x-overflow": "reject-publish"}
    channel.queue_declare("limited", durable=True, arguments=limit)
    staged = job(client, query="full")
    staged.stage(0, 0, bodies(texts(250), "limited"))
    found: list[bytes] = []
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(staged.commit(0, 0)))
    asking.start()
    while len(found) < 250:
        found += taken(channel, "limited")
    asking.join()
    assert answers[0].value["state"] == "committed"
    assert found == texts(250)


def test_a_waiting_commit_can_be_discarded_and_published_rows_stay(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    limit = {"x-max-length": 3, "x-overflow": "reject-publish"}
    channel.queue_declare("tiny", durable=True, arguments=limit)
    staged = job(client, query="stuck")
    staged.stage(0, 0, bodies(texts(5), "tiny"))
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(staged.commit(0, 0)))
    asking.start()
    other = job(HttpClient(node), query="stuck")
    while not any(each["published"] == 3 for each in HttpClient(node).get("/warren/staged")):
        pass
    assert other.discard(0).status == 409
    assert other.stage(0, 1, bodies([b"late"], "tiny")).value["state"] == "committing"
    assert other.commit(1, 0).status == 409
    assert other.discard(0, force="true").status == 204
    asking.join()
    assert (answers[0].status, answers[0].value["error"]) == (409, "given_up")
    assert staged.commit(0, 0).status == 409
    assert taken(channel, "tiny") == texts(3)
    # The next batch is not affected.
    staged.stage(1, 0, bodies([b"next"], "tiny"))
    assert staged.commit(1, 0).status == 200


def test_staging_and_committing_require_permission_to_publish(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    client.ask("PUT /users/writer", {"password": "w", "tags": "management"})
    client.ask("PUT /permissions/staged/writer", {"configure": "", "write": "^amq.topic$", "read": ""})
    client.ask(
        "PUT /topic-permissions/staged/writer", {"exchange": "amq.topic", "write": "^mine", "read": ""}
    )
    writer = HttpClient(node, "writer:w")
    staged = job(writer, "amq.topic", "writers")
    try:
        assert job(writer, "amq.fanout", "writers").stage(0, 0, bodies([b"1"], "q")).status in (401, 403, 400)
        assert staged.stage(0, 0, bodies([b"1", b"2"], "theirs")).status != 200
        assert staged.stage(0, 0, bodies([b"1"], "mine.x")).status == 200
        # Stages of one user are not accessible to another.
        other = job(client, "amq.topic", "writers")
        assert other.commit(0, 0).status == 403
        client.ask(
            "PUT /topic-permissions/staged/writer", {"exchange": "amq.topic", "write": "^no", "read": ""}
        )
        assert staged.commit(0, 0).status != 200
        assert client.get("/warren/staged")[0]["state"] == "staged"
        client.ask(
            "PUT /topic-permissions/staged/writer", {"exchange": "amq.topic", "write": "^m", "read": ""}
        )
        assert staged.commit(0, 0).status == 200
    finally:
        client.ask("DELETE /users/writer")


def test_a_missing_exchange_is_reported(client: HttpClient, channel: Any) -> None:
    answer = job(client, "nowhere", "lost").stage(0, 0, bodies([b"1"], "q"))
    assert answer.status in (400, 404)
    assert "no exchange 'nowhere'" in str(answer.reason)


@pytest.mark.parametrize("missing", ["query", "batch", "partition", "attempt"])
def test_the_list_of_stages_shows_their_destination(client: HttpClient, channel: Any, missing: str) -> None:
    given = {"query": "x", "batch": "0", "partition": "0", "attempt": "0"}
    query = "&".join(f"{name}={value}" for name, value in given.items() if name != missing)
    answer = client.ask(
        f"POST /warren/staged/staged/amq.default?{query}", bodies([b""], "q"), {"content-type": ARROW_STREAM}
    )
    assert answer.status == 400


def test_without_a_data_directory_nothing_can_be_staged() -> None:
    with broker() as node:
        answer = StagedQuery(HttpClient(node), "query").stage(0, 0, bodies([b""], "q"))
        assert (answer.status, answer.value["error"]) == (501, "not_implemented")


def test_stages_and_commits_survive_a_kill(tmp_path: Path, queue_type: str) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        connect(node.port).channel().queue_declare("q", durable=True, arguments={"x-queue-type": queue_type})
        staged = StagedQuery(HttpClient(node), "query")
        staged.stage(0, 0, bodies(texts(1_000), "q"))
        assert staged.commit(0, 0).status == 200
        staged.stage(1, 0, bodies([b"later"], "q"))
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
    with broker("--data-dir", str(tmp_path)) as node:
        channel = connect(node.port).channel()
        staged = StagedQuery(HttpClient(node), "query")
        assert staged.commit(0, 0).value["state"] == "already committed"
        assert staged.commit(1, 0).value["state"] == "committed"
        assert taken(channel) == [*texts(1_000), b"later"]
        assert not any("damaged" in line for line in node.lines)


def test_a_broker_lists_all_stages_after_its_start(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        assert StagedQuery(HttpClient(node), "query").stage(0, 0, bodies([b"1"], "q")).status == 200
        node.stop()
    # Attempts before the last one, all of which it examines before it is ready.
    (last,) = tmp_path.rglob("*.stage")
    last = last.rename(last.with_name(f"{EARLIER + 1:08x}.stage"))
    for number in range(1, EARLIER + 1):
        last.with_name(f"{number:08x}.stage").hardlink_to(last)
    with broker("--data-dir", str(tmp_path)) as node:
        assert [each["stages"] for each in HttpClient(node).get("/warren/staged")] == [1]
        assert list(tmp_path.rglob("*.stage")) == [last]


def test_stages_of_a_vhost_are_deleted_with_it(node: BrokerProcess, client: HttpClient) -> None:
    client.ask("PUT /vhosts/gone")
    client.ask("PUT /permissions/gone/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    staged = StagedQuery(client, "query", vhost="gone")
    assert staged.stage(0, 0, bodies([b"1"], "q")).status == 200
    assert client.status("DELETE /vhosts/gone") == 204
    assert client.get("/warren/staged") == []
    client.ask("PUT /vhosts/gone")
    assert client.get("/warren/staged") == []
    client.ask("DELETE /vhosts/gone")


def test_a_disconnected_driver_does_not_stop_a_commit(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    staged = job(HttpClient(node), query="impatient")
    staged.stage(0, 0, bodies(texts(20_000), "q"))
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port, "staged"))
    impatient = HttpClient(node)
    body = b'{"query": "impatient", "batch": 0, "partitions": [{"partition": 0, "attempt": 0}]}'
    impatient._connection.request("POST", "/api/warren/staged/staged/commit", body, impatient._headers)
    impatient.close()
    while client.get("/warren/staged"):
        pass
    assert count(connection.channel()) == 20_000
    assert staged.commit(0, 0).value == {"state": "already committed", "rows": 20_000, "unroutable": 0}
    connection.close()


def test_a_stream_receives_each_row_once_although_the_broker_is_killed(
    tmp_path: Path, queue_type: str
) -> None:
    sent = [texts(700, f"{batch} ") for batch in range(2)]
    with broker("--data-dir", str(tmp_path)) as node:
        channel = connect(node.port).channel()
        channel.queue_declare("q", durable=True, arguments={"x-queue-type": queue_type})
        channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
        for queue in ("q", "s"):
            channel.queue_bind(queue, "amq.fanout")
        staged = StagedQuery(HttpClient(node), "query", "amq.fanout")
        staged.stage(0, 0, bodies(sent[0], ""))
        assert staged.commit(0, 0).status == 200
        staged.stage(1, 0, bodies(sent[1], ""))
        # The driver gets no answer.
        impatient = HttpClient(node)
        body = b'{"query": "query", "batch": 1, "partitions": [{"partition": 0, "attempt": 0}]}'
        impatient._connection.request("POST", "/api/warren/staged/%2F/commit", body, impatient._headers)
        observer = HttpClient(node)
        while any(each["published"] == 0 for each in observer.get("/warren/staged")):
            pass
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
    with broker("--data-dir", str(tmp_path)) as node:
        staged = StagedQuery(HttpClient(node), "query", "amq.fanout")
        assert staged.commit(1, 0).status == 200
        channel = connect(node.port).channel()
        channel.basic_qos(prefetch_count=100)
        found: list[bytes] = []
        arguments = {"x-stream-offset": "first"}
        for method, _, text in channel.consume("s", arguments=arguments, inactivity_timeout=2):
            if method is None:
                break
            found.append(text)
            channel.basic_ack(method.delivery_tag)
        assert found == [*sent[0], *sent[1]]
        assert taken(connect(node.port).channel()) == [*sent[0], *sent[1]]


def test_streams_receive_each_row_once_alone_and_beside_queues(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    channel.exchange_declare("both", "fanout", durable=True)
    channel.exchange_declare("one", "fanout", durable=True)
    for name in ("alone", "beside"):
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_bind("alone", "one")
    channel.queue_bind("beside", "both")
    channel.queue_bind("q", "both")
    equal = texts(3_000)
    unlike = {"body": pa.array(texts(300, "u"), pa.binary()), "message_id": [f"{n}" for n in range(300)]}
    for exchange, query in (("one", "streamed"), ("both", "mixed")):
        staged = job(client, exchange, query)
        for batch, data in enumerate((bodies(equal, ""), stream(unlike), bodies([b"end"], ""))):
            assert staged.stage(batch, 0, data).status == 200
            for state in ("committed", "already committed"):
                assert staged.commit(batch, 0).value["state"] == state
    wanted = [*equal, *texts(300, "u"), b"end"]
    assert taken(channel) == wanted
    for name in ("alone", "beside"):
        table, _ = read(node, f"/streams/staged/{name}/rows")
        assert table["body"].to_pylist() == wanted
        assert table["message_id"].to_pylist()[2_999:3_301] == [None, *unlike["message_id"], None]


def test_randomly_routed_rows_reach_one_queue_or_stream_each(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    channel.exchange_declare("dice", "x-random", durable=True)
    for name in ("dice-1", "dice-2"):
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_bind(name, "dice")
    channel.queue_bind("q", "dice")
    sent = texts(1_200)
    staged = job(client, "dice", "dicing")
    staged.stage(0, 0, bodies(sent, ""))
    assert staged.commit(0, 0).value == {"state": "committed", "rows": 1_200, "unroutable": 0}
    found = {"q": taken(channel)}
    for name in ("dice-1", "dice-2"):
        found[name] = read(node, f"/streams/staged/{name}/rows")[0]["body"].to_pylist()
    assert all(found.values())
    everything = [text for one in found.values() for text in one]
    assert (len(everything), len(set(everything))) == (1_200, 1_200)
