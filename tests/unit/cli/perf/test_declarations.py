"""Declarations of the load generator, and their progress report."""

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.declarations import declare, delete, names_for
from warren.cli.perf.load import Load
from warren.client.uri import DEFAULT_URI, parse_uri
from warren.wire.method import Method
from warren.wire.methods import ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare, QueueDelete

TARGET = parse_uri(DEFAULT_URI)


class Collecting(BlockingConnection):
    """A connection that records every method it is asked to call."""

    def __init__(self) -> None:
        self.called: list[Method] = []

    def call(self, channel: int, method: Method, answer: type[Method]) -> None:  # type: ignore[override]
        """Record one call."""
        self.called.append(method)

    def call_many(
        self, channel: int, methods: list[Method], answer: type[Method], *, window: int = 64
    ) -> None:
        """Record several calls."""
        self.called += methods


def test_queues_exchange_and_bindings_are_declared_and_deleted() -> None:
    connection = Collecting()
    load = Load(target=TARGET, queues=2, exchange_type="topic", bindings=3)
    names = names_for(load)
    declare(connection, load, names)
    delete(connection, load, names)
    kinds = [type(method) for method in connection.called]
    assert kinds == [
        *[QueueDeclare] * 2,
        ExchangeDeclare,
        *[QueueBind] * 3,
        ExchangeDelete,
        *[QueueDelete] * 2,
    ]


def test_few_declarations_report_no_progress() -> None:
    said: list[str] = []
    load = Load(target=TARGET, queues=1_000)
    declare(Collecting(), load, names_for(load), said.append)
    assert said == []


def test_many_declarations_report_progress() -> None:
    said: list[str] = []
    load = Load(target=TARGET, queues=25_000)
    names = names_for(load)
    connection = Collecting()
    declare(connection, load, names, said.append)
    delete(connection, load, names, said.append)
    assert len(connection.called) == 50_000
    assert said == [
        "queues declared: 10,000 of 25,000",
        "queues declared: 20,000 of 25,000",
        "queues declared: 25,000 of 25,000",
        "queues deleted: 10,000 of 25,000",
        "queues deleted: 20,000 of 25,000",
        "queues deleted: 25,000 of 25,000",
    ]
