"""exchange.* and the binding of queues: texts and order of checks as measured with RabbitMQ 3.10.8."""

from typing import Any

import pytest
from tests.unit.vhost.conftest import LiveVhost, ran

from warren.errors import (
    AccessRefused,
    AmqpError,
    CommandInvalid,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from warren.metadata import bounds
from warren.metadata.commands import SetTopicPermissions
from warren.vhost.requester import Requester
from warren.wire.methods import (
    ExchangeBind,
    ExchangeDeclare,
    ExchangeDelete,
    ExchangeUnbind,
    QueueBind,
    QueueDeclare,
    QueueUnbind,
)

DEFAULT = "operation not permitted on the default exchange"


class ExchangeRequests:
    """Every method of exchanges and bindings, as one user sends it."""

    def __init__(self, live: LiveVhost, user: str = "guest", connection: str = "c1") -> None:
        self.live = live
        self.who: Requester = live.requester(user, connection)

    def declare(self, name: str, kind: str = "direct", **fields: Any) -> None:
        ran(
            self.live.exchange_service.declare_exchange(
                self.who, ExchangeDeclare(exchange=name, type=kind, **fields)
            )
        )

    def delete(self, name: str, *, if_unused: bool = False) -> None:
        ran(
            self.live.exchange_service.delete_exchange(
                self.who, ExchangeDelete(exchange=name, if_unused=if_unused)
            )
        )

    def queue(self, name: str, **fields: Any) -> None:
        ran(self.live.queue_service.declare_queue(self.who, QueueDeclare(queue=name, **fields)))

    def bind(self, queue: str, exchange: str, key: str = "", **fields: Any) -> None:
        method = QueueBind(queue=queue, exchange=exchange, routing_key=key, **fields)
        ran(self.live.exchange_service.bind_queue(self.who, method))

    def unbind(self, queue: str, exchange: str, key: str = "", **fields: Any) -> None:
        method = QueueUnbind(queue=queue, exchange=exchange, routing_key=key, **fields)
        ran(self.live.exchange_service.unbind_queue(self.who, method))

    def exchange_bind(self, destination: str, source: str, key: str = "") -> None:
        method = ExchangeBind(destination=destination, source=source, routing_key=key)
        ran(self.live.exchange_service.bind_exchange(self.who, method))

    def exchange_unbind(self, destination: str, source: str, key: str = "") -> None:
        method = ExchangeUnbind(destination=destination, source=source, routing_key=key)
        ran(self.live.exchange_service.unbind_exchange(self.who, method))


@pytest.fixture
def ask(live: LiveVhost) -> ExchangeRequests:
    return ExchangeRequests(live)


def error(kind: type[AmqpError], call: Any, *arguments: Any, **fields: Any) -> str:
    with pytest.raises(kind) as caught:
        call(*arguments, **fields)
    return caught.value.message


def bound(live: LiveVhost) -> list[tuple[str, str, str]]:
    vhost = live.metadata.vhost("v")
    assert vhost is not None
    return [(b.source, b.destination, b.routing_key) for b in vhost.topology.bindings()]


def test_an_exchange_is_created_once(ask: ExchangeRequests, live: LiveVhost) -> None:
    ask.declare("x", "topic", durable=True)
    ask.declare("x", "topic", durable=True)
    ask.declare("x", "fanout", passive=True)
    assert live.topology.router.exchanges["x"].type_name == "topic"
    ask.declare("amq.direct", "direct", durable=True)


def test_an_unknown_type_is_refused_first_of_all(ask: ExchangeRequests) -> None:
    assert error(CommandInvalid, ask.declare, "", "nonsense") == "unknown exchange type 'nonsense'"


def test_an_inequivalent_redeclaration_is_refused_property_by_property(ask: ExchangeRequests) -> None:
    ask.declare("x2", arguments={"alternate-exchange": "ae"})
    of = "for exchange 'x2' in vhost 'v': received"

    def text(kind: str = "direct", **fields: Any) -> str:
        return error(PreconditionFailed, ask.declare, "x2", kind, **fields).removeprefix("inequivalent arg ")

    assert text("fanout", durable=True) == f"'type' {of} 'fanout' but current is 'direct'"
    assert text("x-random") == f"'type' {of} ''x-random'' but current is 'direct'"
    assert text(durable=True) == f"'durable' {of} 'true' but current is 'false'"
    assert text(auto_delete=True) == f"'auto_delete' {of} 'true' but current is 'false'"
    assert text(internal=True) == f"'internal' {of} 'true' but current is 'false'"
    assert text() == (f"'alternate-exchange' {of} none but current is the value 'ae' of type 'longstr'")
    ask.declare("x2", arguments={"alternate-exchange": "ae", "x-other": 1})


def test_reserved_names_are_refused(ask: ExchangeRequests, live: LiveVhost) -> None:
    assert error(AccessRefused, ask.declare, "amq.foo") == (
        "exchange name 'amq.foo' contains reserved prefix 'amq.*'"
    )
    assert error(AccessRefused, ask.delete, "amq.direct") == (
        "deletion of system exchange 'amq.direct' in vhost 'v' not allowed"
    )
    live.user("low", "", "", "")
    low = ExchangeRequests(live, "low")
    assert error(AccessRefused, low.declare, "amq.foo").startswith("access to exchange 'amq.foo'")
    assert error(AccessRefused, low.delete, "amq.direct").startswith("deletion of system")


def test_the_default_exchange_cannot_be_changed(ask: ExchangeRequests) -> None:
    ask.queue("q")
    assert error(AccessRefused, ask.declare, "") == DEFAULT
    assert error(AccessRefused, ask.declare, "", passive=True) == DEFAULT
    assert error(AccessRefused, ask.delete, "") == DEFAULT
    assert error(AccessRefused, ask.bind, "q", "", "k") == DEFAULT
    assert error(AccessRefused, ask.bind, "noq", "", "k") == DEFAULT
    assert error(AccessRefused, ask.unbind, "q", "", "q") == DEFAULT
    assert error(AccessRefused, ask.exchange_bind, "", "amq.direct") == DEFAULT
    assert error(AccessRefused, ask.exchange_bind, "amq.direct", "") == DEFAULT


def test_a_passive_declaration_requires_any_permission(ask: ExchangeRequests, live: LiveVhost) -> None:
    assert error(NotFound, ask.declare, "nox", passive=True) == "no exchange 'nox' in vhost 'v'"
    live.user("low", "", "", "^amq.topic$")
    ExchangeRequests(live, "low").declare("amq.topic", passive=True)
    assert error(AccessRefused, ExchangeRequests(live, "low").declare, "amq.direct", passive=True) == (
        "access to exchange 'amq.direct' in vhost 'v' refused for user 'low'"
    )


def test_an_alternate_exchange_must_be_a_name_and_requires_write(
    ask: ExchangeRequests, live: LiveVhost
) -> None:
    assert error(PreconditionFailed, ask.declare, "x21", arguments={"alternate-exchange": 5}) == (
        "invalid type 'long' for arg 'alternate-exchange' in exchange 'x21' in vhost 'v'"
    )
    live.user("low", ".*", "", ".*")
    assert error(
        AccessRefused, ExchangeRequests(live, "low").declare, "x", arguments={"alternate-exchange": "ae"}
    ) == ("access to exchange 'ae' in vhost 'v' refused for user 'low'")
    live.user("low", ".*", ".*", "")
    assert error(
        AccessRefused, ExchangeRequests(live, "low").declare, "x", arguments={"alternate-exchange": "ae"}
    ) == ("access to exchange 'x' in vhost 'v' refused for user 'low'")


def test_arguments_are_checked_by_the_exchange_type(ask: ExchangeRequests, live: LiveVhost) -> None:
    assert (
        error(PreconditionFailed, ask.declare, "ch", "x-consistent-hash", arguments={"hash-property": "foo"})
        == "Unsupported property: foo"
    )
    assert "ch" not in live.topology.router.exchanges


def test_deleting_a_missing_exchange_is_no_error_and_a_used_one_is_kept(
    ask: ExchangeRequests, live: LiveVhost
) -> None:
    ask.delete("nox")
    ask.declare("x8")
    ask.queue("q")
    ask.bind("q", "x8", "k")
    text = error(PreconditionFailed, ask.delete, "x8", if_unused=True)
    assert text == "exchange 'x8' in vhost 'v' in use"
    ask.delete("x8")
    assert "x8" not in live.topology.router.exchanges
    assert bound(live) == []


def test_line_ends_are_stripped_from_names(ask: ExchangeRequests, live: LiveVhost) -> None:
    ask.declare("a\nb\r")
    ask.queue("q2")
    ask.bind("q\n2", "a\rb", "k\n")
    assert bound(live) == [("ab", "q2", "k\n")]
    ask.unbind("q\n2", "a\rb", "k\n")
    ask.delete("a\nb")
    assert "ab" not in live.topology.router.exchanges


def test_binding_requires_both_ends_and_checks_the_exchange_first(ask: ExchangeRequests) -> None:
    ask.queue("q")
    assert error(NotFound, ask.bind, "noq", "nox") == "no exchange 'nox' in vhost 'v'"
    assert error(NotFound, ask.bind, "noq", "amq.direct") == "no queue 'noq' in vhost 'v'"
    assert error(NotFound, ask.exchange_bind, "nod", "nos") == "no exchange 'nos' in vhost 'v'"
    assert error(NotFound, ask.exchange_bind, "nod", "amq.direct") == "no exchange 'nod' in vhost 'v'"


def test_unbinding_a_missing_binding_is_no_error(ask: ExchangeRequests) -> None:
    ask.unbind("noq", "amq.direct", "k")
    ask.unbind("noq", "nox", "k")
    ask.exchange_unbind("nod", "nos")
    ask.queue("q")
    ask.unbind("q", "amq.direct", "k")


def test_an_empty_queue_name_in_a_binding_means_the_last_declared_queue(
    ask: ExchangeRequests, live: LiveVhost
) -> None:
    assert error(NotFound, ask.bind, "", "amq.direct") == "no previously declared queue"
    ask.queue("last")
    ask.bind("", "amq.direct", "key")
    ask.bind("", "amq.direct", "")
    ask.queue("other")
    ask.bind("last", "amq.direct", "")
    assert bound(live) == [
        ("amq.direct", "last", "key"),
        ("amq.direct", "last", "last"),
        ("amq.direct", "last", ""),
    ]
    ask.unbind("", "amq.direct", "")
    assert len(bound(live)) == 3


def test_binding_requires_write_on_the_destination_then_read_on_the_source(live: LiveVhost) -> None:
    live.user("low", ".*", "", ".*")
    low = ExchangeRequests(live, "low")
    queue = "access to queue 'q' in vhost 'v' refused for user 'low'"
    for call in (low.bind, low.unbind):
        assert error(AccessRefused, call, "q", "") == queue
    for call in (low.exchange_bind, low.exchange_unbind):
        assert error(AccessRefused, call, "d1", "s1") == (
            "access to exchange 'd1' in vhost 'v' refused for user 'low'"
        )
        assert error(AccessRefused, call, "", "s1") == (
            "access to exchange 'amq.default' in vhost 'v' refused for user 'low'"
        )
    live.user("low", ".*", ".*", "")
    for call in (low.bind, low.unbind):
        assert error(AccessRefused, call, "q", "nox") == (
            "access to exchange 'nox' in vhost 'v' refused for user 'low'"
        )
        assert error(AccessRefused, call, "q", "") == DEFAULT


def test_binding_to_a_topic_exchange_requires_the_topic_permission(
    live: LiveVhost, ask: ExchangeRequests
) -> None:
    ask.queue("q")
    live.apply(SetTopicPermissions(user="guest", vhost="v", exchange="amq.topic", write="", read="^r"))
    for call in (ask.bind, ask.unbind):
        assert error(AccessRefused, call, "q", "amq.topic", "x") == (
            "access to topic 'x' in exchange 'amq.topic' in vhost 'v' refused for user 'guest'"
        )
    ask.bind("q", "amq.topic", "r.x")
    ask.bind("q", "amq.direct", "x")


def test_exclusive_queues_can_be_bound_only_by_their_connection(
    live: LiveVhost, ask: ExchangeRequests
) -> None:
    ask.queue("excl", exclusive=True)
    other = ExchangeRequests(live, connection="c2")
    assert error(ResourceLocked, other.bind, "excl", "amq.direct", "a").startswith("cannot obtain exclusive")
    assert error(NotFound, other.bind, "excl", "nox", "a") == "no exchange 'nox' in vhost 'v'"
    other.unbind("excl", "amq.direct", "a")
    ask.bind("excl", "amq.direct", "a")
    assert error(ResourceLocked, other.unbind, "excl", "amq.direct", "a").startswith("cannot obtain")
    ask.unbind("excl", "amq.direct", "a")
    assert bound(live) == []


def test_a_binding_that_the_exchange_refuses_is_an_error(live: LiveVhost, ask: ExchangeRequests) -> None:
    ask.declare("ch", "x-consistent-hash")
    ask.queue("q")
    assert error(PreconditionFailed, ask.bind, "q", "ch", "abc") == (
        'The binding key must be an integer: <<"abc">>'
    )
    assert bound(live) == []


def test_a_local_random_exchange_takes_classic_queues_without_a_key(
    live: LiveVhost, ask: ExchangeRequests
) -> None:
    ask.declare("near", "x-local-random")
    for kind in ("classic", "quorum"):
        ask.queue(kind, durable=True, arguments={"x-queue-type": kind})
    assert error(PreconditionFailed, ask.bind, "quorum", "near") == (
        "Queue type rabbit_quorum_queue not valid for this exchange type"
    )
    assert error(PreconditionFailed, ask.bind, "classic", "near", "a") == (
        "Non empty binding 'a' key not permitted"
    )
    assert error(PreconditionFailed, ask.exchange_bind, "amq.fanout", "near") == "Destination not found"
    assert bound(live) == []
    ask.bind("classic", "near")
    assert len(bound(live)) == 1


def test_bindings_are_distinguished_by_their_arguments(live: LiveVhost, ask: ExchangeRequests) -> None:
    ask.queue("q")
    ask.bind("q", "amq.headers", arguments={"a": 1})
    ask.bind("q", "amq.headers", arguments={"a": 1})
    ask.bind("q", "amq.headers", arguments={"a": 2})
    assert live.topology.router.exchanges["amq.headers"].bindings == 2
    ask.unbind("q", "amq.headers", arguments={"a": 1})
    assert live.topology.router.exchanges["amq.headers"].bindings == 1


def test_auto_delete_exchanges_are_deleted_with_their_last_binding(
    live: LiveVhost, ask: ExchangeRequests
) -> None:
    ask.declare("a", auto_delete=True)
    ask.declare("b", auto_delete=True)
    ask.queue("q")
    ask.exchange_bind("b", "a")
    ask.bind("q", "b", "k")
    ask.unbind("q", "b", "k")
    assert live.topology.router.exchanges.keys().isdisjoint("ab")


def test_beyond_a_bound_new_objects_are_refused_and_existing_ones_found(
    live: LiveVhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = ExchangeRequests(live)
    guest.declare("x")
    guest.queue("q")
    guest.bind("q", "x", "a")
    for bound, most in (("EXCHANGES_MAX", 8), ("QUEUES_MAX", 1), ("BINDINGS_MAX", 1)):
        monkeypatch.setattr(bounds, bound, most)
    guest.declare("x")
    guest.queue("q")
    guest.bind("q", "x", "a")
    with pytest.raises(
        PreconditionFailed, match="cannot declare exchange 'y' in vhost 'v': the limit of 8 exch"
    ):
        guest.declare("y")
    with pytest.raises(PreconditionFailed, match="declare queue 'p' in vhost 'v': the limit of 1 queues"):
        guest.queue("p")
    with pytest.raises(PreconditionFailed, match="cannot bind queue 'q' in vhost 'v': the limit of 1 bind"):
        guest.bind("q", "x", "b")
