"""The log of a started broker: its destinations, its contents, and secrets that are never in it."""

import json
import re
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import pika
import pika.exceptions
import pytest
from tests import rabbitmq
from tests.conformance.peer import Peer
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.patience import patient

MARKER = "s3cret-marker"
RECEIVE_S = patient(10)


def connect(node: BrokerProcess, password: str = "guest") -> pika.BlockingConnection:
    credentials = pika.PlainCredentials("guest", password)
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port, credentials=credentials))


def test_an_unread_standard_error_blocks_neither_clients_nor_the_log_file(tmp_path: Path) -> None:
    log = tmp_path / "warren.log"
    config = tmp_path / "warren.conf"
    config.write_text(f"log.file = {log}\n")
    with broker(config=config) as node:
        # Standard error is not read: the pipe is full after 64 KiB, and all these requests write a line.
        for _ in range(1500):
            socket.create_connection(("127.0.0.1", node.port), timeout=10).close()
        assert HttpClient(node).status("PUT /users/carol", {"password": MARKER, "tags": ""}) == 201
        connect(node).close()
        until = time.monotonic() + RECEIVE_S
        while "carol" not in log.read_text():
            assert time.monotonic() < until


def test_json_lines_have_the_fields_of_rabbitmq_and_structured_data(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    config.write_text(
        f"log.file = warren.log\nlog.dir = {tmp_path}\nlog.file.formatter = json\nlog.file.level = debug\n"
    )
    with broker(config=config) as node:
        connect(node).close()
        assert HttpClient(node).status("PUT /users/carol", {"password": MARKER, "tags": ""}) == 201
        assert node.stop() == 0
    found = [json.loads(line) for line in (tmp_path / "warren.log").read_text().splitlines()]
    assert all({"time", "level", "domain", "msg"} <= set(entry) for entry in found)
    accepted, opened, left = [entry for entry in found if entry["domain"] == "warren.connection"]
    assert accepted["peer_host"] == "127.0.0.1"
    assert accepted["connection"].startswith("127.0.0.1:")
    assert (opened["user"], opened["vhost"]) == ("guest", "/")
    assert accepted["pid"] == opened["pid"] == left["pid"]
    [created] = [entry for entry in found if entry.get("event") == "user.created"]
    assert (created["user"], created["result"], created["facts"]) == ("guest", "done", {"name": "carol"})
    # The file has a lower level than standard error, whose level is unchanged.
    assert "<warren.audit>" in "".join(node.lines)


def test_a_renamed_log_file_is_reopened(tmp_path: Path) -> None:
    log = tmp_path / "warren.log"
    config = tmp_path / "warren.conf"
    config.write_text(f"log.file = {log}\n")
    with broker(config=config) as node:
        # A thread writes it, and may be behind.
        while "ready" not in log.read_text():
            connect(node).close()
        log.rename(tmp_path / "warren.log.1")
        node.process.send_signal(signal.SIGHUP)
        # The signal is handled before later requests.
        while not log.exists():
            connect(node).close()
        connect(node).close()
        assert node.stop() == 0
    assert "accepting AMQP connection" in log.read_text()
    assert "ready" in (tmp_path / "warren.log.1").read_text()


def _drop(port: int, data: bytes) -> None:
    """Send data, wait for an answer or the end, and disconnect without closing."""
    with socket.create_connection(("127.0.0.1", port), timeout=RECEIVE_S) as client:
        client.sendall(data)
        if len(data) >= 8:
            client.recv(1)


def _come_and_go(port: int) -> None:
    """Typical operations and errors of clients."""

    def connected(**more: object) -> pika.BlockingConnection:
        name = {"connection_name": "named"}
        return pika.BlockingConnection(
            pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, client_properties=name, **more)
        )

    connected().close()
    with connected() as connection:
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            connection.channel().queue_declare("missing", passive=True)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            connection.channel().queue_declare("amq.mine")
    for wrong in ({"credentials": pika.PlainCredentials("guest", MARKER)}, {"virtual_host": "nowhere"}):
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            connected(**wrong)
    peer = Peer("127.0.0.1", port)
    peer.handshake("guest", "guest", "/")
    peer.send_method(1, "channel.open")
    peer.send_method(1, "channel.open")
    peer.expect_method(0, "connection.close")
    peer.send_method(0, "connection.close-ok")
    assert peer.wait_closed(RECEIVE_S)
    peer.disconnect()
    _drop(port, b"AMQP\0\0\x09\x01")
    _drop(port, b"GET / HT")
    _drop(port, b"")


def _said(log: str) -> list[str]:
    """The lines about connections and channels, without parts that differ by nature."""
    whole = re.sub(r":\n[^\n]*?\[\w+\] <[^>]*> *", ": ", log)
    lines = []
    for line in whole.splitlines():
        found = re.match(r"\S+ \S+ \[(\w+)\] <[^>]*> (.*)", line)
        if found and re.search(r"(?i)connection <|login refused", found[2]):
            line = re.sub(r"connection <[^>]+>", "connection PID", f"{found[1]} {found[2]}")
            lines.append(re.sub(r"127\.0\.0\.1:\d+", "HOST", line))
    # Before the first client, the test only checked whether the port is open.
    return lines[next(at for at, line in enumerate(lines) if line.startswith("info")) :]


# Lines in which RabbitMQ has an Erlang term, and the corresponding text of Warren.
_PLAIN = {
    '{bad_header,<<"GET / HT">>}': "the client speaks HTTP, not AMQP: it began with b'GET / HT'",
    "connection_closed_with_no_data_received": "the client closed it before it sent any data",
}


def _plainly(line: str) -> str:
    for term, words in _PLAIN.items():
        line = line.replace(term, words)
    return line


@pytest.mark.rabbitmq
@pytest.mark.skipif(not rabbitmq.is_installed(), reason="rabbitmq-server is not installed")
def test_the_lines_about_clients_equal_those_of_rabbitmq(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    config.write_text("log.default.level = debug\n")
    with broker(config=config) as node:
        _come_and_go(node.port)
        node.stop()
        ours = _said("".join(node.lines))
    (tmp_path / "theirs").mkdir()
    theirs = rabbitmq.RabbitMQ(
        tmp_path / "theirs", listen="127.0.0.1", settings="log.file.level = debug\n", plugins=()
    )
    try:
        theirs.start()
        _come_and_go(theirs.port)
        theirs.stop()
        log = max((tmp_path / "theirs" / "log").glob("*.log"), key=lambda path: path.stat().st_size)
        expected = [_plainly(line) for line in _said(log.read_text())]
    finally:
        theirs.stop()
        theirs.remove()
    assert ours == expected


def test_lines_are_published_by_level_and_none_about_their_own_publishing(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    config.write_text("log.exchange = true\n")
    with broker(config=config) as node:
        listener = connect(node)
        channel = listener.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "amq.rabbitmq.log", "info")
        connect(node).close()
        while True:
            method, properties, body = next(channel.consume(queue, inactivity_timeout=RECEIVE_S))
            assert method is not None
            if b"accepting AMQP connection" in body:
                break
        assert (method.exchange, method.routing_key) == ("amq.rabbitmq.log", "info")
        assert properties.content_type == "text/plain"
        assert list(properties.headers) == ["node"]
        assert body.endswith(b"\n")
        channel.cancel()
        listener.close()
        exchange = HttpClient(node).get("/exchanges/%2F/amq.rabbitmq.log")
        assert (exchange["type"], exchange["internal"], exchange["durable"]) == ("topic", True, True)


def test_no_secret_is_ever_logged(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    # Credentials, some of them in places where they do not belong.
    config.write_text(
        "log.default.level = debug\nlog.console.level = debug\nlog.exchange = true\n"
        f"default_pass = {MARKER}\nssl_options.password = {MARKER}\n"
    )
    with broker(config=config) as node:
        for password in (MARKER + "x", MARKER):
            with suppress(pika.exceptions.AMQPError):
                connect(node, password).close()
        _speak(node, b"\0" + MARKER.encode())
        _speak(node, MARKER.encode() + b"\0\0\0\0")
        client = HttpClient(node, f"guest:{MARKER}")
        assert HttpClient(node, f"guest:{MARKER}x").status("GET /whoami") == 401
        assert client.status("PUT /users/carol", {"password": MARKER, "tags": "", "nonsense": MARKER}) == 201
        assert client.status("PUT /users/dave", {"password_hash": MARKER, "tags": ""}) == 400
        value = {"value": {"uri": f"amqp://user:{MARKER}@host"}}
        assert client.status("PUT /global-parameters/upstream", value) == 201
        wrong = {"users": [{"name": "eve", "password_hash": MARKER, "tags": ""}]}
        assert client.status("POST /definitions", wrong) == 400
        assert client.status("POST /definitions", f'{{"users": "{MARKER}'.encode()) == 400
        assert node.stop() == 0
    printed = "".join(node.lines)
    assert "login refused" in printed
    assert MARKER not in printed


def _speak(node: BrokerProcess, response: bytes) -> None:
    """Log in with a malformed response."""
    with suppress(pika.exceptions.AMQPError):
        credentials = pika.PlainCredentials("guest", "x")
        credentials.response_for = lambda start: ("PLAIN", response)  # type: ignore[method-assign]
        pika.BlockingConnection(
            pika.ConnectionParameters("127.0.0.1", node.port, credentials=credentials)
        ).close()


@pytest.mark.parametrize(
    "line",
    [
        f"default_pass_word = {MARKER}",
        f"default_pass {MARKER}",
        f"password = {MARKER}",
    ],
)
def test_a_refused_configuration_does_not_show_the_values_of_unknown_keys(tmp_path: Path, line: str) -> None:
    config = tmp_path / "warren.conf"
    config.write_text(line + "\n")
    status, printed = refusal("--config", str(config))
    assert status == 1
    assert f"{config}:1" in printed
    assert MARKER not in printed
