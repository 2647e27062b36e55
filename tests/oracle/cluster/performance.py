"""Plays a scenario on a cluster, section by section, or records its answers."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance.client import Client, TranscriptContext
from tests.conformance.peer import Mismatch
from tests.conformance.transcript import Step, expect, record_block
from tests.oracle.cluster.cluster_brokers import PASSWORD, USER, ClusterBrokers
from tests.oracle.cluster.node_actions import ACTIONS, AGAIN_S, VHOST
from tests.oracle.cluster.scenario import Action, Section, agrees, lines_of, read_answer

ANSWER_S = 20.0
# Before counts are recorded.
SETTLED_S = 0.5
REPEATED = ("GET", "FIELDS", "METRICS")


class Performance:
    """One scenario played on one cluster, section by section."""

    def __init__(self, brokers: ClusterBrokers) -> None:
        self._brokers = brokers
        self._client = ClusterClient(brokers)
        self._answer: Callable[[], tuple[int, Any]] = lambda: (0, None)
        self._is_repeated = False
        self._last = Action("", 0, "")

    def play(self, section: Section) -> None:
        """Perform the steps of a section; raises Mismatch, with the step, for another answer."""
        for step in section.steps:
            try:
                self._perform(step)
            except (Mismatch, ValueError, KeyError, OSError, RuntimeError) as error:
                raise Mismatch(f"{section.title}\n    {step.who}> {step.text}\n    {error}") from error

    def record(self, section: Section) -> None:
        """Perform the steps of a section, and fill in the answers that it does not have."""
        steps: list[Action] = []
        for block in _blocks(section.steps):
            if block[0].who == "S" and any(step.text.startswith("?") or not step.text for step in block):
                spoken = [Step(0, "S", step.connection, step.text) for step in block]
                recorded = map(Action.parse, record_block(spoken, self._client))
                steps += [step for step in recorded if step is not None]
                continue
            for step in block:
                if step.who == "A" and not step.text:
                    status, found = self._answer()
                    step.text, step.rest = str(status), lines_of(found)
                else:
                    if "passive=true" in step.text:
                        time.sleep(SETTLED_S)
                    self._perform(step)
                steps.append(step)
        section.steps = steps

    def finish(self) -> None:
        """Check that nothing has come that no section has expected."""
        self._client.finish()

    def leave(self) -> None:
        """Close every socket."""
        self._client.leave()

    def _perform(self, step: Action) -> None:
        match step.who:
            case "C":
                self._client.perform(step.connection, step.text)
                self._last = step
            case "S":
                self._expect_event(step)
            case "N":
                action, *nodes = step.text.split()
                ACTIONS[action](self._brokers, *nodes)
            case "H":
                self._ask(step.text)
            case "$":
                node, *command = step.text.split()
                self._run(node, command)
            case _:
                self._expect_answer(step)

    def _ask(self, text: str) -> None:
        node, method, place, *body = text.split(maxsplit=3)
        self._is_repeated = method in REPEATED
        if method == "METRICS":
            self._answer = lambda: (200, _metrics(self._brokers, node, place))
        elif method == "FIELDS":
            self._answer = lambda: _fields(self._brokers.ask(node, "GET", place))
        else:
            document = json.loads(body[0]) if body else None
            self._answer = lambda: self._brokers.ask(node, method, place, document)

    def _run(self, node: str, command: list[str]) -> None:
        def answer() -> tuple[int, Any]:
            done = self._brokers.control(node, *command)
            lines = [line.rstrip() for line in done.lines if line]
            if "json" in command:
                return done.status, json.loads("".join(lines))
            is_list = command[0].startswith("list_") and done.status == 0
            return done.status, sorted(lines) if is_list else lines

        self._is_repeated = False
        self._answer = answer

    def _expect_event(self, step: Action) -> None:
        """Receive what a line says; counts are asked for again, since a queue counts what has reached it."""
        deadline = time.monotonic() + ANSWER_S
        peer = self._client.peers[step.connection]
        while True:
            try:
                expect(step.text, peer, self._client.context, self._client.kept)
                if peer.is_closed:
                    self._client.closed.add(step.connection)
                return
            except Mismatch:
                is_count = "queue.declare-ok" in step.text and "passive=true" in self._last.text
                if not is_count or time.monotonic() > deadline:
                    raise
            time.sleep(AGAIN_S)
            self._client.perform(self._last.connection, self._last.text)

    def _expect_answer(self, step: Action) -> None:
        deadline = time.monotonic() + ANSWER_S
        while True:
            status, found = self._answer()
            expected = read_answer(step.rest, found)
            if str(status) == step.text and agrees(expected, found):
                return
            if not self._is_repeated or time.monotonic() > deadline:
                raise Mismatch("got " + "\n".join([str(status), *lines_of(found)]))
            time.sleep(AGAIN_S)


class ClusterContext(TranscriptContext):
    """The default vhost: its name is too short to be replaced in texts."""

    def plain(self, value: Any) -> Any:
        """The value itself."""
        return value


class ClusterClient(Client):
    """The connections of one scenario, each to the node that it names."""

    def __init__(self, brokers: ClusterBrokers) -> None:
        host, port = brokers.amqp_address("a")
        super().__init__(ClusterContext(host, port, VHOST, is_rabbitmq=brokers.is_rabbitmq))
        self._brokers = brokers

    def _open(self, number: int, verb: str, options: dict[str, Any]) -> None:
        self.context.host, self.context.port = self._brokers.amqp_address(options.pop("node"))
        if verb == "connect":
            options = {"user": USER, "password": PASSWORD, **options}
        super()._open(number, verb, options)

    def leave(self) -> None:
        """Close every socket."""
        for peer in self.peers.values():
            peer.disconnect()


def _blocks(steps: list[Action]) -> Iterator[list[Action]]:
    """Runs of steps of which all or none are answers to clients."""
    block: list[Action] = []
    for step in steps:
        if block and (block[0].who == "S") != (step.who == "S"):
            yield block
            block = []
        block.append(step)
    if block:
        yield block


def _fields(answer: tuple[int, Any]) -> tuple[int, Any]:
    status, found = answer
    return status, sorted(found) if isinstance(found, dict) else found


def _metrics(brokers: ClusterBrokers, node: str, prefix: str) -> list[str]:
    host, port = brokers.prometheus_address(node)
    with urllib.request.urlopen(f"http://{host}:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sorted({line.rpartition(" ")[0] for line in lines if line.startswith(prefix)})
