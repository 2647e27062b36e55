"""Publishing messages to the queues of a virtual host."""

import pytest
from tests.clock import ManualClock

from warren.errors import NotFound
from warren.model.arguments import Overflow, QueueSettings
from warren.model.message import Message, encode_address
from warren.queues.classic import ClassicQueue
from warren.queues.queue import REFUSED
from warren.routing.exchange import Binding, ExchangeSettings
from warren.routing.router import Router
from warren.routing.types import EXCHANGE_TYPES
from warren.vhost.vhost import ROUTED, UNROUTED, VirtualHost
from warren.wire.properties import BasicProperties


def made(clock: ManualClock | None = None, **queues: QueueSettings) -> VirtualHost:
    """A virtual host with these queues behind a fanout exchange, each also reached by its name."""
    vhost = VirtualHost("v", Router("v"), (clock or ManualClock()).turn)
    for name, kind in (("", "direct"), ("all", "fanout")):
        vhost.router.add(EXCHANGE_TYPES[kind](name, ExchangeSettings(), bytes))
    for name, settings in queues.items():
        queue = vhost.queues[name] = ClassicQueue(name, "v", vhost, settings)
        for exchange in vhost.router.exchanges.values():
            vhost.router.bind(Binding(exchange, name, None, queue))
    return vhost


def sent(exchange: str, key: str, **properties: object) -> Message:
    return Message.compose(encode_address(exchange, key), BasicProperties(**properties), b"x\xce", now=0)


def test_every_queue_receives_the_message() -> None:
    vhost = made(a=QueueSettings(), b=QueueSettings())
    message = sent("all", "")
    assert vhost.publish(message, None, 0) == ROUTED
    assert [queue.get().message is message for queue in vhost.queues.values()] == [True, True]
    assert vhost.published == 1


def test_an_unroutable_message_is_reported_and_a_missing_exchange_is_an_error() -> None:
    vhost = made(a=QueueSettings())
    assert vhost.publish(sent("", "b"), None, 0) == UNROUTED
    assert vhost.published == 1
    with pytest.raises(NotFound, match="no exchange 'nope' in vhost 'v'"):
        vhost.publish(sent("nope", "b"), None, 0)


def test_a_refusal_by_one_queue_refuses_the_publish() -> None:
    vhost = made(a=QueueSettings(), b=QueueSettings(length_max=0, overflow=Overflow.REJECT_PUBLISH))
    assert vhost.publish(sent("all", ""), None, 0) == REFUSED
    assert vhost.queues["a"].message_count == 1


def test_a_message_is_routed_by_bcc_and_keeps_it_for_dead_lettering() -> None:
    vhost = made(a=QueueSettings(), b=QueueSettings())
    vhost.publish(sent("", "a", headers={"BCC": ["b"], "n": 1}), None, 0)
    assert [queue.get().message.headers() for queue in vhost.queues.values()] == [
        {"BCC": ["b"], "n": 1},
        {"BCC": ["b"], "n": 1},
    ]


def test_its_generation_changes_with_permissions_and_with_bindings() -> None:
    vhost = made(a=QueueSettings())
    first = vhost.generation()
    vhost.permission_generation += 1
    second = vhost.generation()
    vhost.router.add(EXCHANGE_TYPES["direct"]("x", ExchangeSettings(), bytes))
    assert len({first, second, vhost.generation()}) == 3


def test_queues_are_woken_unless_they_are_deleted() -> None:
    clock = ManualClock()
    vhost = made(clock, a=QueueSettings(message_ttl_ms=10), b=QueueSettings(message_ttl_ms=10))
    for key in "ab":
        vhost.publish(sent("", key), None, 0)
    vhost.queues["b"].delete()
    clock.now = 10
    vhost.expire()
    assert vhost.queues["a"].message_count == 0
    assert vhost.expiry.earliest() is None


def test_a_queue_that_waits_for_its_deletion_can_be_declared_again() -> None:
    clock = ManualClock()
    vhost = made(clock, a=QueueSettings(expires_ms=10))
    gone: list[ClassicQueue] = []
    vhost.queue_unused = gone.append
    clock.now = 10
    vhost.expire()
    assert gone == [vhost.queues["a"]]
