"""RabbitMQ and Warren for the tests of quorum queues, with equal users, vhosts and policies."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import rabbitmq
from tests.conformance import definitions
from tests.conformance.client import PASSWORD, USER, TranscriptContext
from tests.conformance.peer import Peer
from tests.warren_process import free_port, running_warren

BROKERS = (
    pytest.param(
        "rabbitmq",
        marks=(
            pytest.mark.rabbitmq,
            pytest.mark.skipif(not rabbitmq.is_installed(), reason="rabbitmq-server is not installed"),
        ),
    ),
    "warren",
)
VHOSTS = definitions.VHOSTS
AUTHORIZATION = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
# name -> pattern, definition: what the policies of the conformance tests do not set.
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "limited": ("^limited", {"delivery-limit": 1}),
    "kept": (
        "^kept",
        {
            "dead-letter-exchange": "",
            "dead-letter-routing-key": "buried",
            "dead-letter-strategy": "at-least-once",
            "overflow": "reject-publish",
        },
    ),
}


@dataclass(frozen=True)
class QuorumBroker:
    """A broker: its ports, and whether it accepts quorum queues."""

    name: str
    port: int
    http_port: int
    accepts_quorum_queues: bool
    # True for RabbitMQ 4, whose answers are recorded beside those of 3.10.8 where they differ.
    is_rabbitmq_4: bool = False

    @property
    def answers(self) -> str:
        """The key of its answers in tables of what each broker answers: `rabbitmq 4` has some of its own."""
        return "rabbitmq 4" if self.is_rabbitmq_4 else self.name

    def context(self, vhost: str) -> TranscriptContext:
        """The broker and a vhost of it, for a recorded script."""
        is_rabbitmq = self.name == "rabbitmq"
        return TranscriptContext(
            "127.0.0.1", self.port, vhost, is_rabbitmq=is_rabbitmq, is_rabbitmq_4=self.is_rabbitmq_4
        )

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of an answer of the HTTP API; None for one without a body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)
        headers = {"authorization": AUTHORIZATION, "content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else None


class QuorumBrokers:
    """Both brokers, each started when it is first asked for, with its files in a new directory."""

    def __init__(self, stack: ExitStack, new_folder: Callable[[str], Path]) -> None:
        """`stack` stops them; `new_folder` returns a new directory with a name."""
        self._stack = stack
        self._new_folder = new_folder
        self._running: dict[str, QuorumBroker] = {}

    def __getitem__(self, name: str) -> QuorumBroker:
        if name not in self._running:
            folder = self._new_folder(name)
            document = folder / "definitions.json"
            document.write_text(json.dumps(_definitions()))
            start = self._start_rabbitmq if name == "rabbitmq" else self._start_warren
            self._running[name] = start(folder, document)
        return self._running[name]

    def _start_rabbitmq(self, folder: Path, document: Path) -> QuorumBroker:
        http_port = free_port()
        server = rabbitmq.RabbitMQ(
            folder,
            listen="127.0.0.1",
            settings=f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {http_port}\n",
            plugins=("rabbitmq_management",),
        )
        self._stack.callback(server.remove)
        self._stack.callback(server.stop)
        server.start()
        server.control("import_definitions", str(document))
        accepts = accepts_quorum_queues(server.port)
        is_4 = server.version() >= (4,)
        return QuorumBroker(
            "rabbitmq", server.port, http_port, accepts_quorum_queues=accepts, is_rabbitmq_4=is_4
        )

    def _start_warren(self, folder: Path, document: Path) -> QuorumBroker:
        http_port = free_port()
        arguments = ("--management-port", str(http_port), "--data-dir", str(folder / "data"))
        settings = {"load_definitions": str(document)}
        running = self._stack.enter_context(running_warren(folder, settings, arguments=arguments))
        accepts = accepts_quorum_queues(running.port)
        return QuorumBroker("warren", running.port, http_port, accepts_quorum_queues=accepts)


def accepts_quorum_queues(
    port: int, user: str = USER, password: str = PASSWORD, vhost: str = VHOSTS[0]
) -> bool:
    """Whether the broker declares a quorum queue: the one switch for what is tested with Warren."""
    peer = Peer("127.0.0.1", port)
    peer.handshake(user, password, vhost)
    peer.send_method(1, "channel.open")
    peer.expect_method(1, "channel.open-ok")
    arguments = {"x-queue-type": "quorum"}
    peer.send_method(1, "queue.declare", queue="accepted", durable=True, arguments=arguments)
    answer = peer.next_event(None, 10)
    if answer is not None and answer.name == "queue.declare-ok":
        peer.send_method(1, "queue.delete", queue="accepted")
        peer.expect_method(1, "queue.delete-ok")
    peer.disconnect()
    return answer is not None and answer.name == "queue.declare-ok"


def _definitions() -> dict[str, Any]:
    document = definitions.definitions()
    document["policies"] += [
        {
            "name": name,
            "vhost": vhost,
            "pattern": pattern,
            "apply-to": "queues",
            "definition": definition,
            "priority": 0,
        }
        for name, (pattern, definition) in POLICIES.items()
        for vhost in VHOSTS
    ]
    return document
