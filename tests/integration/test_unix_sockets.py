"""Clients that connect over a Unix socket."""

import socket
import stat
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import broker, refusal

from warren.blocking.connection import BlockingConnection, ConnectOptions
from warren.client.uri import parse_uri
from warren.wire.methods import QueueDeclare, QueueDeclareOk


def listening_at(path: Path, *more: str) -> list[str]:
    return ["--listeners-tcp", f"local=unix:{path}:0", *more]


def uri_of(path: Path) -> str:
    return f"amqp://guest:guest@{str(path).replace('/', '%2F')}"


def connected(path: Path) -> BlockingConnection:
    connection = BlockingConnection(parse_uri(uri_of(path)), ConnectOptions(product="test"))
    connection.open_channel()
    return connection


def test_a_client_connects_over_a_unix_socket_and_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "amqp.sock"
    with broker(*listening_at(path)) as node:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        first, second = connected(path), connected(path)
        assert first.call(1, QueueDeclare(queue="q"), QueueDeclareOk).queue == "q"
        client = HttpClient(node)
        names = sorted(one["name"] for one in client.get("/connections"))
        assert names == [f"{path}:1 -> {path}:0", f"{path}:2 -> {path}:0"]
        shown = next(one for one in client.get("/overview")["listeners"] if one["ip_address"] == str(path))
        assert (shown["protocol"], shown["port"]) == ("amqp", 0)
        assert f"amqp {path}" in node.lines[-1]
        first.close()
        second.close()
        assert node.stop() == 0
    assert not path.exists()


def test_the_permissions_of_the_file_are_those_of_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "amqp.sock"
    with broker(*listening_at(path, "--unix-listen-options-mode", "600")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_of_a_broker_that_was_killed_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "amqp.sock"
    with broker(*listening_at(path)) as killed:
        assert killed.process.poll() is None
    # `broker` kills it at the end of the block.
    assert path.exists()
    with broker(*listening_at(path)):
        connected(path).close()


@pytest.mark.parametrize("is_socket", [True, False])
def test_a_socket_that_somebody_listens_on_and_another_file_stop_the_start(
    tmp_path: Path, is_socket: bool
) -> None:
    path = tmp_path / "amqp.sock"
    with socket.socket(socket.AF_UNIX) as other:
        if is_socket:
            other.bind(str(path))
            other.listen()
        else:
            path.write_text("precious")
        before = path.stat().st_ino
        status, errors = refusal(*listening_at(path))
        reason = "somebody listens on the socket" if is_socket else "the file exists and is no socket"
        assert (status, f"cannot listen on the Unix socket {path}: {reason}" in errors) == (1, True)
        assert path.stat().st_ino == before
