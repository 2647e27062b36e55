"""The exchange from which a broker that federates an exchange reads; texts of RabbitMQ 3.10.8, measured."""

import pytest
from tests.unit.routing.samples import PLAIN, bound, made, routed, sent

from warren.errors import PreconditionFailed
from warren.model.message import Message
from warren.routing.exchange import Exchange
from warren.routing.federation_upstream import FederationUpstreamExchange
from warren.wire.table import Int32


def upstream(**arguments: object) -> Exchange:
    """An exchange with one queue, for the vhost v of the cluster c, whose messages pass at most two links."""
    defaults: dict[str, object] = {"x_max_hops": 2, "x_downstream_name": "c", "x_downstream_vhost": "v"}
    exchange = made(FederationUpstreamExchange, **(defaults | arguments))
    bound(exchange, "", "q")
    return exchange


def passed(*brokers: object) -> Message:
    """A message whose header has entries of `brokers`, each `cluster/vhost` or the entry itself."""
    entries: list[object] = []
    for broker in brokers:
        if isinstance(broker, str):
            cluster, _, vhost = broker.partition("/")
            broker = {"uri": "amqp://h", "cluster-name": cluster, "vhost": vhost}
        entries.append(broker)
    return sent({"x-received-from": entries})


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(PLAIN, id="no headers"),
        pytest.param(sent({"other": "x-received-from"}), id="other headers"),
        pytest.param(sent({"x-received-from": "c/v"}), id="not an array"),
        pytest.param(passed(), id="an empty array"),
        pytest.param(passed("a/v"), id="another cluster"),
        pytest.param(passed("c/w"), id="another vhost of the downstream"),
        pytest.param(passed({"cluster-name": "c"}), id="an entry without a vhost"),
        pytest.param(passed(b"c/v"), id="an entry that is no table"),
    ],
)
def test_a_message_is_forwarded(message: Message) -> None:
    exchange = upstream()
    assert routed(exchange, "any key", message) == ["q"]
    (binding,) = exchange.each_binding()
    assert exchange.explain(binding, "", message).is_match


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (passed("a/v", "b/v"), "the message has passed 2 links, of at most 2"),
        (passed("c/v"), "the message comes from 'c', virtual host 'v'"),
    ],
)
def test_a_message_that_has_passed_too_many_links_or_the_downstream_is_not(
    message: Message, reason: str
) -> None:
    exchange = upstream()
    assert routed(exchange, "", message) == []
    (binding,) = exchange.each_binding()
    verdict = exchange.explain(binding, "", message)
    assert (verdict.is_match, verdict.reason) == (False, reason)


@pytest.mark.parametrize("name", ["x_downstream_name", "x_downstream_vhost"])
@pytest.mark.parametrize("value", [5, None, b"c"])
def test_a_downstream_named_with_another_type_is_not_recognised(name: str, value: object) -> None:
    assert routed(upstream(**{name: value}), "", passed("c/v")) == ["q"]


@pytest.mark.parametrize("max_hops", [0, -(1 << 40)])
def test_without_any_hop_only_messages_without_the_header_are_forwarded(max_hops: int) -> None:
    exchange = upstream(x_max_hops=max_hops)
    assert routed(exchange, "", passed()) == []
    assert routed(exchange, "", PLAIN) == ["q"]


@pytest.mark.parametrize("max_hops", [1, 1 << 40, -1])
def test_any_64_bit_number_of_hops_is_valid(max_hops: int) -> None:
    FederationUpstreamExchange.validate_arguments({"x-max-hops": max_hops, "x-downstream-name": 5})


def test_the_number_of_hops_is_required() -> None:
    with pytest.raises(PreconditionFailed) as caught:
        FederationUpstreamExchange.validate_arguments({"x-downstream-name": "c"})
    assert caught.value.message == "Argument x-max-hops missing"


@pytest.mark.parametrize("max_hops", [Int32(1), "1", True, 1.0, None])
def test_any_other_type_of_the_number_of_hops_is_refused(max_hops: object) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        FederationUpstreamExchange.validate_arguments({"x-max-hops": max_hops})
    assert caught.value.message == "Argument x-max-hops must be of type long"
