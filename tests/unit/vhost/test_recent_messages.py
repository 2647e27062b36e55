"""The messages that a new binding of an `x-recent-history` exchange is given."""

from collections.abc import Iterable

from tests.unit.session.client import Broker, Client, ReceivedMethod, publication

from warren.wire import methods


def keeping(*bodies: bytes) -> tuple[Broker, Client]:
    """A client of a broker whose exchange `x` has kept `bodies`, and whose queue `q` is empty."""
    broker = Broker()
    client = broker.client()
    client.ask(
        methods.ExchangeDeclare(exchange="x", type="x-recent-history"), methods.QueueDeclare(queue="q")
    )
    client.send(*(publication("k", body, exchange="x") for body in bodies))
    return broker, client


def got(client: Client, queue: str = "q") -> list[tuple[bytes, str, bool]]:
    """Body, routing key and `redelivered` of all messages of the queue, in order."""

    def fetched() -> Iterable[ReceivedMethod]:
        while True:
            (answer,) = client.ask(methods.BasicGet(queue=queue, no_ack=True))
            if not isinstance(answer.method, methods.BasicGetOk):
                return
            yield answer

    return [(one.body, one.method.routing_key, one.method.redelivered) for one in fetched()]


def test_a_new_binding_gets_what_was_kept_oldest_first_and_each_binding_once() -> None:
    _, client = keeping(b"a", b"b")
    bind = methods.QueueBind(queue="q", exchange="x", routing_key="")
    client.ask(bind)
    assert got(client) == [(b"a", "k", False), (b"b", "k", False)]
    client.ask(bind)
    assert got(client) == []
    client.ask(methods.QueueBind(queue="q", exchange="x", routing_key="other"))
    client.send(publication("l", b"c", exchange="x"))
    assert got(client) == [(b"a", "k", False), (b"b", "k", False), (b"c", "l", False)]


def test_a_mandatory_message_without_a_queue_is_returned_and_kept() -> None:
    _, client = keeping()
    client.send(publication("k", b"a", exchange="x", mandatory=True))
    assert client.names() == ["basic.return"]
    client.ask(methods.QueueBind(queue="q", exchange="x"))
    assert got(client) == [(b"a", "k", False)]


def test_behind_another_exchange_it_is_routed_by_that_one() -> None:
    _, client = keeping(b"a")
    client.ask(
        methods.ExchangeDeclare(exchange="y", type="direct"),
        methods.QueueBind(queue="q", exchange="y", routing_key="k"),
        methods.ExchangeBind(destination="y", source="x"),
    )
    assert got(client) == [(b"a", "k", False)]


def test_only_what_a_transaction_commits_is_kept() -> None:
    _, client = keeping()
    client.ask(methods.TxSelect())
    client.send(publication("k", b"a", exchange="x"))
    client.ask(methods.TxRollback())
    client.send(publication("k", b"b", exchange="x"))
    client.ask(methods.TxCommit(), methods.QueueBind(queue="q", exchange="x"))
    assert got(client) == [(b"b", "k", False)]


def test_an_exchange_that_is_declared_anew_has_forgotten() -> None:
    _, client = keeping(b"a")
    client.ask(
        methods.ExchangeDelete(exchange="x"),
        methods.ExchangeDeclare(exchange="x", type="x-recent-history"),
        methods.QueueBind(queue="q", exchange="x"),
    )
    assert got(client) == []
