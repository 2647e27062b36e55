"""Permissions that a web server decides: its requests, which RabbitMQ 3.10.8 sends too (measured), and the
refusals that follow.
"""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    ChannelClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)
from tests.integration.api import HttpClient
from tests.integration.auth_web_server import AuthWebServer, auth_web_server
from tests.integration.broker_process import BrokerProcess, broker

TIMEOUT_MS = 1_500


@pytest.fixture(scope="module")
def server() -> Iterator[AuthWebServer]:
    with auth_web_server() as started:
        yield started


@pytest.fixture(scope="module")
def node(server: AuthWebServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    yield from node_of(
        server,
        tmp_path_factory.mktemp("node"),
        "auth_backends.1 = http",
        "auth_backends.2 = internal",
        "auth_cache.cache_ttl = 0",
        f"auth_http.request_timeout = {TIMEOUT_MS}",
    )


def node_of(server: AuthWebServer, folder: Path, *lines: str) -> Iterator[BrokerProcess]:
    config = folder / "warren.conf"
    config.write_text(server.settings("login_failures.allowed = infinity", *lines))
    server.answers["username=guest"] = "deny"
    with broker(config=config) as started:
        yield started


@pytest.fixture(autouse=True)
def answers(server: AuthWebServer) -> Iterator[None]:
    yield
    server.answers = {"username=guest": "deny"}
    server.held = ""
    server.take()


def connected(
    node: BrokerProcess, name: str = "alice", password: str = "a b&é", vhost: str = "/"
) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(name, password)
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", node.port, vhost, credentials=credentials, heartbeat=0)
    )


def refusal(use: Callable[[BlockingChannel], object], connection: pika.BlockingConnection) -> str:
    with pytest.raises(ChannelClosedByBroker) as caught:
        use(connection.channel())
    assert caught.value.reply_code == 403
    return str(caught.value.reply_text)


def test_the_requests_are_those_of_rabbitmq(node: BrokerProcess, server: AuthWebServer) -> None:
    server.answers["/auth/user"] = "allow administrator management"
    connection = connected(node)
    tags = "tags=administrator+management"
    assert server.take() == [
        "GET /auth/user?username=alice&password=a+b%26%C3%A9",
        f"GET /auth/vhost?username=alice&vhost=%2F&ip=127.0.0.1&{tags}",
    ]
    channel = connection.channel()

    def asked(use: Callable[[], object]) -> list[str]:
        use()
        channel.queue_declare("a fence", exclusive=True)
        server.requests = [one for one in server.requests if "a+fence" not in one]
        return [
            one.removeprefix("GET /auth/").replace("?username=alice&vhost=%2F&", " ") for one in server.take()
        ]

    names = "variable_map.username=alice&variable_map.vhost=%2F"
    assert asked(lambda: channel.queue_declare("q ü+&")) == [
        f"resource resource=queue&name=q+%C3%BC%2B%26&permission=configure&{tags}"
    ]
    assert asked(lambda: channel.queue_declare("q ü+&")) == []
    arguments = {"x-dead-letter-exchange": "amq.fanout"}
    assert asked(lambda: channel.queue_declare("dead", arguments=arguments)) == [
        f"resource resource=queue&name=dead&permission=configure&{tags}",
        f"resource resource=queue&name=dead&permission=read&{tags}",
        f"resource resource=exchange&name=amq.fanout&permission=write&{tags}",
    ]
    assert asked(lambda: channel.exchange_declare("t x", "topic")) == [
        f"resource resource=exchange&name=t+x&permission=configure&{tags}"
    ]
    assert asked(lambda: channel.queue_bind("q ü+&", "t x", "a.*.b")) == [
        f"resource resource=queue&name=q+%C3%BC%2B%26&permission=write&{tags}",
        f"resource resource=exchange&name=t+x&permission=read&{tags}",
        f"topic resource=topic&name=t+x&permission=read&{tags}&routing_key=a.%2A.b&{names}",
    ]
    assert asked(lambda: channel.basic_publish("t x", "a.b c.ü", b"1")) == [
        f"resource resource=exchange&name=t+x&permission=write&{tags}",
        f"topic resource=topic&name=t+x&permission=write&{tags}&routing_key=a.b+c.%C3%BC&{names}",
    ]
    assert asked(lambda: channel.basic_publish("t x", "a.b c.ü", b"2")) == []
    assert asked(lambda: channel.basic_publish("", "q ü+&", b"3")) == [
        f"resource resource=exchange&name=amq.default&permission=write&{tags}"
    ]
    assert asked(lambda: channel.basic_get("q ü+&", auto_ack=True)) == [
        f"resource resource=queue&name=q+%C3%BC%2B%26&permission=read&{tags}"
    ]
    assert asked(lambda: channel.queue_delete("q ü+&")) == []
    connection.close()


def test_a_refusal_has_the_text_of_rabbitmq_and_is_asked_again(
    node: BrokerProcess, server: AuthWebServer
) -> None:
    connection = connected(node)
    server.answers |= {"name=no": "deny", "name=why": "DENY it is closed", "routing_key=no": "deny"}
    server.answers |= {"name=lost": "500", "name=odd": "perhaps"}
    assert refusal(lambda channel: channel.queue_declare("no"), connection) == (
        "ACCESS_REFUSED - access to queue 'no' in vhost '/' refused for user 'alice'"
    )
    assert refusal(lambda channel: channel.queue_declare("why"), connection).endswith("for user 'alice'")
    assert refusal(lambda channel: channel.queue_declare("lost"), connection) == (
        "ACCESS_REFUSED - access to queue 'lost' in vhost '/' refused for user 'alice', backend "
        "rabbit_auth_backend_http returned an error: {500}"
    )
    assert refusal(lambda channel: channel.queue_declare("odd"), connection).endswith(": bad_response")
    assert "to queue 'no'" in refusal(lambda channel: channel.basic_consume("no", print), connection)
    assert "to queue 'no'" in refusal(lambda channel: channel.queue_declare("no", passive=True), connection)

    def publish(channel: BlockingChannel, exchange: str, key: str) -> None:
        channel.confirm_delivery()
        channel.basic_publish(exchange, key, b"1")

    assert refusal(lambda channel: publish(channel, "no", "key"), connection) == (
        "ACCESS_REFUSED - access to exchange 'no' in vhost '/' refused for user 'alice'"
    )
    assert refusal(lambda channel: publish(channel, "amq.topic", "no"), connection) == (
        "ACCESS_REFUSED - access to topic 'no' in exchange 'amq.topic' in vhost '/' refused for user 'alice'"
    )
    del server.answers["name=no"]
    connection.channel().queue_declare("no", auto_delete=True)
    connection.close()


def test_what_follows_a_first_publish_keeps_its_order(node: BrokerProcess, server: AuthWebServer) -> None:
    connection = connected(node)
    channel = connection.channel()
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(name, "amq.topic", "#")
    channel.confirm_delivery()
    server.take()
    for number in range(30):
        channel.basic_publish("amq.topic", f"key.{number % 3}", str(number).encode())
    assert len(server.take()) == 4
    bodies = [channel.basic_get(name, auto_ack=True)[2] for _ in range(30)]
    assert bodies == [str(number).encode() for number in range(30)]
    connection.close()


def test_a_virtual_host_is_refused(node: BrokerProcess, server: AuthWebServer) -> None:
    server.answers["/auth/vhost"] = "deny"
    with pytest.raises(ProbableAccessDeniedError, match="access to vhost '/' refused for user 'alice'"):
        connected(node)
    server.answers["/auth/vhost"] = "500"
    with pytest.raises(ProbableAccessDeniedError, match="rabbit_auth_backend_http returned an error"):
        connected(node)


def test_a_refused_login_is_one_of_the_next_backend(node: BrokerProcess, server: AuthWebServer) -> None:
    server.answers["username=eve"] = "deny she has left"
    with pytest.raises(ProbableAuthenticationError):
        connected(node, "eve")
    server.take()
    guest = connected(node, "guest", "guest")
    guest.channel().queue_declare("", exclusive=True)
    assert [one.partition("?")[0] for one in server.take()] == ["GET /auth/user"]
    guest.close()


def test_a_server_that_hangs_delays_only_those_who_ask_it(node: BrokerProcess, server: AuthWebServer) -> None:
    waiting, guest = connected(node), connected(node, "guest", "guest")
    channel = guest.channel()
    server.held, server.released = "name=stuck", threading.Event()
    texts: list[str] = []
    stuck = threading.Thread(
        target=lambda: texts.append(refusal(lambda channel: channel.queue_declare("stuck"), waiting))
    )
    began = time.monotonic()
    stuck.start()
    while not any("name=stuck" in one for one in server.requests):
        channel.queue_declare("", exclusive=True)
    for _ in range(20):
        channel.queue_declare("", exclusive=True)
    assert time.monotonic() - began < TIMEOUT_MS / 1000
    assert not texts
    stuck.join()
    assert texts == [
        "ACCESS_REFUSED - access to queue 'stuck' in vhost '/' refused for user 'alice', backend "
        "rabbit_auth_backend_http returned an error: timeout"
    ]
    server.released.set()
    server.held = ""
    waiting.channel().queue_declare("stuck", auto_delete=True)
    waiting.close()
    guest.close()


def test_the_http_api_asks_as_well(node: BrokerProcess, server: AuthWebServer) -> None:
    server.answers["/auth/user"] = "allow management"
    client = HttpClient(node, "alice:secret")
    assert client.get("/whoami") == {"name": "alice", "tags": ["management"]}
    assert [vhost["name"] for vhost in client.get("/vhosts")] == ["/"]
    assert client.status("PUT /queues/%2F/over%20http", {"auto_delete": False}) == 201
    message = {"properties": {}, "routing_key": "over http", "payload": "1", "payload_encoding": "string"}
    assert client.ask("POST /exchanges/%2F/amq.default/publish", message).value == {"routed": True}
    body = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    assert client.ask("POST /queues/%2F/over%20http/get", body).value[0]["payload"] == "1"
    server.answers["name=over+http&permission=read"] = "deny"
    assert client.status("POST /queues/%2F/over%20http/get", body) == 401
    server.answers["name=other"] = "deny"
    assert client.status("PUT /queues/%2F/other", {}) == 401
    assert client.status("DELETE /queues/%2F/over%20http") == 204
    server.answers["/auth/vhost"] = "deny"
    assert client.get("/vhosts") == []
    assert client.status("GET /queues/%2F") == 401


def test_messages_are_moved_to_where_the_server_allows_it(node: BrokerProcess, server: AuthWebServer) -> None:
    server.answers["/auth/user"] = "allow administrator"
    client = HttpClient(node, "alice:secret")
    for name in ("from", "to"):
        assert client.status(f"PUT /queues/%2F/{name}", {}) == 201
    message = {"properties": {}, "routing_key": "from", "payload": "1", "payload_encoding": "string"}
    for _ in range(3):
        assert client.ask("POST /exchanges/%2F/amq.default/publish", message).value == {"routed": True}
    assert client.status("POST /warren/queues/%2F/from/move", {"destination": "to"}) == 201
    moved = {"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"}
    got: list[object] = []
    while len(got) < 3:
        got += client.ask("POST /queues/%2F/to/get", moved).value
    assert len(got) == 3
    for name in ("from", "to"):
        assert client.status(f"DELETE /queues/%2F/{name}") == 204


def test_another_backend_can_authenticate_the_users_of_the_server(
    server: AuthWebServer, tmp_path: Path
) -> None:
    nodes = node_of(
        server,
        tmp_path,
        "auth_backends.1.authn = internal",
        "auth_backends.1.authz = http",
        "auth_http.http_method = post",
        "auth_http.authorization_failure_disclosure = true",
    )
    node = next(nodes)
    server.answers = {"name=no": "deny it is closed", "/auth/user": "allow ignored"}
    guest = connected(node, "guest", "guest")
    assert server.take() == [
        "POST /auth/user?username=guest&password=guest",
        "POST /auth/vhost?username=guest&vhost=%2F&ip=127.0.0.1&tags=administrator",
    ]
    assert refusal(lambda channel: channel.queue_declare("no"), guest) == (
        "ACCESS_REFUSED - access to queue 'no' in vhost '/' refused for user 'guest' by backend "
        "rabbit_auth_backend_http: it is closed"
    )
    guest.close()
    server.answers = {"/auth/user": "deny"}
    with pytest.raises(ProbableAuthenticationError):
        connected(node, "guest", "guest2")
    server.take()
    nodes.close()
