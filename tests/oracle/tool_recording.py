"""Asks a RabbitMQ what its tools answer to the recorded commands, and keeps the answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import rabbitmq
from tests.oracle.tool_cases import Answer, Case, normalised, read, words_of, write
from tests.oracle.tool_programs import asked_of_rabbitmq
from tests.warren_process import free_port

PLUGINS = ("rabbitmq_management", "rabbitmq_stream", "rabbitmq_shovel", "rabbitmq_federation")


@contextmanager
def running_rabbitmq(folder: Path) -> Iterator[rabbitmq.RabbitMQ]:
    """A RabbitMQ with the plugins whose work Warren does."""
    settings = (
        f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {free_port()}\n"
        f"stream.listeners.tcp.default = 127.0.0.1:{free_port()}\n"
    )
    server = rabbitmq.RabbitMQ(folder, listen="127.0.0.1", settings=settings, plugins=PLUGINS)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def asked(server: rabbitmq.RabbitMQ, folder: Path, cases: Sequence[Case]) -> list[Answer]:
    """What the tools answer to `cases`, which are run one after the other."""
    node = server.environment["RABBITMQ_NODENAME"]
    commands: list[tuple[str, list[str]]] = []
    places = []
    for case in cases:
        commands += [("", words_of(line)) for line in case.before]
        places.append(len(commands))
        commands.append(("".join(f"{line}\n" for line in case.typed), words_of(case.command)))
        commands += [("", words_of(line)) for line in case.after]
    named = [(typed, [word.replace("NODE", node) for word in words]) for typed, words in commands]
    found = asked_of_rabbitmq(server, folder, named)
    return [normalised(*found[place], node) for place in places]


def record_with(server: rabbitmq.RabbitMQ, folder: Path, paths: Sequence[Path]) -> None:
    """Keep what `server` answers now to the cases of all files."""
    version = ".".join(map(str, server.version()))
    files = {path: read(path) for path in paths}
    cases = list(itertools.chain.from_iterable(cases for _, cases in files.values()))
    for case, answer in zip(cases, asked(server, folder, cases), strict=True):
        case.record(version, answer)
    for path, (head, found) in files.items():
        write(path, head, found)
