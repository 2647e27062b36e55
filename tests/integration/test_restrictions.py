"""A broker whose configuration restricts its clients, with RabbitMQ's keys."""

import http.client
import json
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.integration.broker_process import BrokerProcess, broker

CONFIG = """
management.restrictions.operator_policy_changes.disabled = true
prometheus.authentication.enabled = true
prometheus.tcp.max_connections = 2
stream.max_connections = 1
management.hide_password_hashes = true
default_users.plain.password = plain-secret
default_policies.operator.short.max_length = 7
"""


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    config = tmp_path_factory.mktemp("config") / "rabbitmq.conf"
    config.write_text(CONFIG)
    with broker(config=config) as started:
        yield started


def ask(
    node: BrokerProcess, protocol: str, method: str, path: str, *, user: str = "", body: object = None
) -> tuple[int, str]:
    """The status and the text of a response."""
    headers = {"authorization": "Basic " + b64encode(user.encode()).decode()} if user else {}
    with closing(http.client.HTTPConnection("127.0.0.1", node.ports[protocol])) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_operator_policies_are_read_and_not_changed(restricted: BrokerProcess) -> None:
    path, admin = "/api/operator-policies/%2F/short", "guest:guest"
    status, text = ask(restricted, "http", "GET", path, user=admin)
    assert (status, json.loads(text)["definition"]) == (200, {"max-length": 7})
    policy = {"pattern": "", "definition": {"max-length": 1}}
    for method in ("PUT", "DELETE"):
        status, text = ask(restricted, "http", method, path, user=admin, body=policy)
        assert (status, json.loads(text)) == (
            405,
            {
                "error": "method_not_allowed",
                "reason": "Broker settings disallow editing of operator policies.",
            },
        )
    assert ask(restricted, "http", "PUT", "/api/policies/%2F/short", user=admin, body=policy)[0] == 201


def test_hashes_of_passwords_are_hidden_and_kept_when_a_user_is_changed(restricted: BrokerProcess) -> None:
    admin, path = "guest:guest", "/api/users/plain"
    for where in (path, "/api/users", "/api/users/without-permissions"):
        text = ask(restricted, "http", "GET", where, user=admin)[1]
        assert '"password_hash"' not in text
        assert "has_password" in text or text == "[]"
    exported = json.loads(ask(restricted, "http", "GET", "/api/definitions", user=admin)[1])
    assert all(user["password_hash"] for user in exported["users"])
    # The web interface changes tags without the password.
    assert ask(restricted, "http", "PUT", path, user=admin, body={"tags": "management"})[0] == 204
    assert ask(restricted, "http", "GET", "/api/whoami", user="plain:plain-secret")[0] == 200
    assert json.loads(ask(restricted, "http", "GET", path, user=admin)[1])["has_password"] is True
    cleared = {"tags": "", "password_hash": ""}
    assert ask(restricted, "http", "PUT", path, user=admin, body=cleared)[0] == 204
    assert json.loads(ask(restricted, "http", "GET", path, user=admin)[1])["has_password"] is False
    restored = {"tags": "", "password": "plain-secret"}
    assert ask(restricted, "http", "PUT", path, user=admin, body=restored)[0] == 204


def test_metrics_are_for_users_who_may_monitor(restricted: BrokerProcess) -> None:
    for user, status in (("", 401), ("guest:wrong", 401), ("plain:plain-secret", 401), ("guest:guest", 200)):
        for path in ("/metrics", "/metrics/per-object", "/metrics/detailed"):
            assert (user, ask(restricted, "http/prometheus", "GET", path, user=user)[0]) == (user, status)


def test_a_new_connection_replaces_an_idle_one_beyond_the_maximum(restricted: BrokerProcess) -> None:
    port = restricted.ports["http/prometheus"]
    idle = [http.client.HTTPConnection("127.0.0.1", port, timeout=10) for _ in range(3)]
    for connection in idle:
        connection.request("GET", "/nowhere")
        assert connection.getresponse().read() is not None
    assert idle[0].sock is not None
    assert idle[0].sock.recv(1) == b""
    for connection in idle:
        connection.close()


def test_stream_connections_beyond_their_maximum_are_dropped(restricted: BrokerProcess) -> None:
    streams, amqp = ("127.0.0.1", restricted.ports["stream"]), ("127.0.0.1", restricted.port)
    with socket.create_connection(streams), socket.create_connection(streams, timeout=10) as second:
        assert second.recv(1) == b""
        with socket.create_connection(amqp, timeout=10) as other:
            other.sendall(b"GET / HT")
            assert other.recv(4) == b"AMQP"
