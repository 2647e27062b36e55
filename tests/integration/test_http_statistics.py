"""Statistics over HTTP: operations of clients are counted exactly and shown at once."""

import http.client
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ConnectionClosedByBroker, NackError, UnroutableError
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient

TIMEOUT_S = patient(30)
# Samples are taken every five seconds.
SAMPLED_S_MAX = patient(15)
# The operations of the test below.
PUBLISHED = {"publish": 24, "confirm": 23, "return_unroutable": 1, "drop_unroutable": 1}
CONSUMED = {
    "deliver": 16,
    "deliver_get": 21,
    "get": 4,
    "get_no_ack": 1,
    "get_empty": 1,
    "redeliver": 1,
    "ack": 13,
}
PERSISTENT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path)) as node:
        yield node


def ask(
    node: BrokerProcess,
    path: str,
    method: str = "GET",
    *,
    body: object = None,
    user: str = "guest:guest",
    **headers: str,
) -> tuple[int, object]:
    """Status and body of an answer."""
    authorization = "Basic " + b64encode(user.encode()).decode()
    with closing(
        http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
    ) as connection:
        sent = None if body is None else json.dumps(body)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, f"/api{path}", sent, {"authorization": authorization, **more})
        response = connection.getresponse()
        answer = response.read()
        return response.status, json.loads(answer) if answer else None


def facts(node: BrokerProcess, path: str) -> dict[str, object]:
    status, body = ask(node, path)
    assert status == 200
    assert isinstance(body, dict)
    return body


def rows(node: BrokerProcess, path: str, user: str = "guest:guest") -> list[dict[str, object]]:
    status, body = ask(node, path, user=user)
    assert status == 200
    assert isinstance(body, list)
    return body


def stats(shown: dict[str, object]) -> dict[str, int]:
    """The counters that are not 0."""
    counters = shown.get("message_stats", {})
    assert isinstance(counters, dict)
    return {name: count for name, count in counters.items() if isinstance(count, int) and count}


def opened(node: BrokerProcess, user: str = "guest", password: str = "guest") -> BlockingChannel:
    credentials = pika.PlainCredentials(user, password)
    parameters = pika.ConnectionParameters("127.0.0.1", node.port, credentials=credentials)
    return pika.BlockingConnection(parameters).channel()


def close(channel: BlockingChannel) -> None:
    channel.connection.close()


def until(node: BrokerProcess, channel: BlockingChannel, is_so: Callable[[], bool]) -> None:
    """Process events of a connection until a condition holds that the next samples bring about."""
    for _ in range(int(SAMPLED_S_MAX * 10)):
        if is_so():
            return
        channel.connection.process_data_events(0.1)
    raise AssertionError(facts(node, "/overview"))


def deliver(channel: BlockingChannel, queue: str, count: int, *, auto_ack: bool) -> list[int]:
    """The delivery tags of the `count` messages that a consumer of `queue` receives."""
    tags: list[int] = []
    tag = channel.basic_consume(queue, lambda _, method, *rest: tags.append(method.delivery_tag), auto_ack)
    while len(tags) < count:
        channel.connection.process_data_events(1)
    assert len(tags) == count
    # Cancelled later, so that unacknowledged messages stay with the channel.
    assert tag
    return tags


def test_every_message_operation_is_counted(node: BrokerProcess) -> None:
    publishing, consuming = opened(node), opened(node)
    publishing.queue_declare("q", durable=True)
    publishing.queue_declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    publishing.confirm_delivery()
    for _ in range(20):
        publishing.basic_publish("", "q", b"x" * 10, PERSISTENT)
    publishing.basic_publish("", "nobody", b"dropped")
    with pytest.raises(UnroutableError):
        publishing.basic_publish("", "nobody", b"returned", mandatory=True)
    publishing.basic_publish("", "full", b"")
    with pytest.raises(NackError):
        publishing.basic_publish("", "full", b"")

    for _ in range(3):
        consuming.basic_ack(consuming.basic_get("q")[0].delivery_tag)
    assert consuming.basic_get("q", auto_ack=True)[0]
    consuming.basic_nack(consuming.basic_get("q")[0].delivery_tag, requeue=True)
    tags = deliver(consuming, "q", 16, auto_ack=False)
    consuming.basic_ack(tags[9], multiple=True)
    consuming.basic_reject(tags[10], requeue=False)
    assert consuming.basic_get("q") == (None, None, None)

    queue = facts(node, "/queues/%2F/q")
    assert stats(queue) == {"publish": 20} | CONSUMED
    assert (queue["messages"], queue["messages_ready"], queue["messages_unacknowledged"]) == (5, 0, 5)
    assert (queue["message_bytes"], queue["message_bytes_persistent"], queue["messages_persistent"]) == (
        50,
        50,
        5,
    )
    assert len(queue["consumer_details"]) == queue["consumers"] == 1  # type: ignore[arg-type]
    channels = sorted((stats(shown) for shown in rows(node, "/channels")), key=len)
    assert channels == [PUBLISHED, CONSUMED]
    exchange = facts(node, "/exchanges/%2F/amq.default")
    assert stats(exchange) == {"publish_in": 24, "publish_out": 22}
    vhost = facts(node, "/vhosts/%2F")
    assert stats(vhost) == PUBLISHED | CONSUMED
    assert (vhost["messages_ready"], vhost["messages_unacknowledged"]) == (1, 5)

    close(publishing)
    close(consuming)
    # Totals include deleted objects.
    overview = facts(node, "/overview")
    assert stats(overview) == PUBLISHED | CONSUMED | {"disk_writes": 20}
    assert overview["object_totals"] == {
        "channels": 0, "connections": 0, "consumers": 0, "exchanges": 8, "queues": 2,
    }  # fmt: skip
    churn = overview["churn_rates"]
    assert isinstance(churn, dict)
    assert [churn[name] for name in ("connection_created", "connection_closed", "channel_closed")] == [
        2,
        2,
        2,
    ]
    assert [churn[name] for name in ("queue_declared", "queue_created", "queue_deleted")] == [2, 2, 0]


def test_rates_and_samples_appear_at_the_next_interval(node: BrokerProcess) -> None:
    channel = opened(node)
    channel.queue_declare("q")
    for _ in range(50):
        channel.basic_publish("", "q", b"x")

    def is_sampled() -> bool:
        shown = facts(node, "/queues/%2F/q").get("message_stats", {})
        assert isinstance(shown, dict)
        return bool(shown and shown["publish_details"]["rate"])

    until(node, channel, is_sampled)
    path = "/queues/%2F/q?msg_rates_age=60&msg_rates_incr=5&lengths_age=60&lengths_incr=5"
    queue = facts(node, path)
    details = queue["message_stats"]["publish_details"]  # type: ignore[index]
    assert details["rate"] == 10.0
    assert [len(details["samples"]), details["samples"][0]["sample"], details["samples"][-1]["sample"]] == [
        13,
        50,
        0,
    ]
    assert details["avg_rate"] == 50 / 60
    assert queue["messages_details"]["samples"][0]["sample"] == 50  # type: ignore[index]
    overview = facts(node, "/overview")
    assert overview["queue_totals"]["messages_details"]["rate"] == 10.0  # type: ignore[index]
    (connection,) = rows(node, "/connections")
    assert connection["recv_oct_details"]["rate"] > 0  # type: ignore[index]
    status, refusal = ask(node, "/overview?msg_rates_age=60000&msg_rates_incr=1")
    assert (status, refusal["error"]) == (400, "invalid_range_parameters")  # type: ignore[index]
    close(channel)


def test_a_connection_is_closed_with_the_given_reason(node: BrokerProcess) -> None:
    channel = opened(node)
    (connection,) = rows(node, "/connections")
    path = f"/connections/{quote(str(connection['name']), safe='')}"
    assert facts(node, path)["channels"] == 1
    assert len(rows(node, f"{path}/channels")) == 1
    status, _ = ask(node, path, "DELETE", x_reason="go home")
    assert status == 204
    with pytest.raises(ConnectionClosedByBroker) as closed:
        channel.connection.process_data_events(TIMEOUT_S)
    assert (closed.value.reply_code, closed.value.reply_text) == (320, "CONNECTION_FORCED - go home")
    assert rows(node, "/connections") == []
    assert ask(node, path)[0] == 404
    assert ask(node, path, "DELETE")[0] == 404


def test_users_see_their_own_connections_and_monitoring_sees_all(node: BrokerProcess) -> None:
    for name, tags in (("watcher", "monitoring"), ("worker", "management")):
        assert ask(node, f"/users/{name}", "PUT", body={"password": name, "tags": tags})[0] == 201
    assert ask(node, "/vhosts/other", "PUT", body={})[0] == 201
    permission = {"configure": ".*", "write": ".*", "read": ".*"}
    assert ask(node, "/permissions/%2F/worker", "PUT", body=permission)[0] == 201
    guest, worker = opened(node), opened(node, "worker", "worker")
    worker.queue_declare("w", exclusive=True)
    worker.basic_consume("w", lambda *_: None, arguments={"x-priority": 2})
    of = {str(row["user"]): quote(str(row["name"]), safe="") for row in rows(node, "/connections")}
    own = rows(node, "/connections", "worker:worker")
    assert [row["user"] for row in own] == ["worker"]
    assert len(rows(node, "/connections", "watcher:watcher")) == 2
    assert len(rows(node, "/channels", "worker:worker")) == 1
    assert len(rows(node, "/connections/username/worker")) == 1
    (consumer,) = rows(node, "/consumers", "worker:worker")
    assert (consumer["arguments"], consumer["queue"]) == ({"x-priority": 2}, {"name": "w", "vhost": "/"})
    assert ask(node, f"/connections/{of['guest']}", user="worker:worker")[0] == 401
    assert ask(node, f"/connections/{of['guest']}", user="watcher:watcher")[0] == 200
    assert ask(node, f"/connections/{of['guest']}", "DELETE", user="watcher:watcher")[0] == 401
    assert ask(node, "/nodes", user="worker:worker")[0] == 401
    assert [row["name"] for row in rows(node, "/queues", "worker:worker")] == ["w"]
    assert rows(node, "/queues", "watcher:watcher") == []
    assert ask(node, "/queues/other", user="worker:worker")[0] == 401
    status, overview = ask(node, "/overview", user="worker:worker")
    assert (status, overview["object_totals"]["connections"]) == (200, 1)  # type: ignore[index]
    assert "listeners" not in overview  # type: ignore[operator]
    owner = facts(node, "/queues/%2F/w")["owner_pid_details"]
    assert owner["name"] == own[0]["name"]  # type: ignore[index]
    assert ask(node, f"/connections/{of['worker']}", "DELETE", user="worker:worker")[0] == 204
    close(guest)
