"""The upstreams of exchanges and queues, as policies name them."""

from collections.abc import Callable

import pytest

from warren.metadata.commands import DONE, INTERNAL_USER, MetadataCommand, Reply, SetParameter, SetPolicy
from warren.metadata.federation_definition import Upstream, parse_upstream
from warren.metadata.federation_upstreams import is_federated, upstreams_of_exchange, upstreams_of_queue
from warren.metadata.machine import Metadata
from warren.metadata.records import ExchangeRecord, QueueRecord
from warren.metadata.vhosts import VhostMetadata
from warren.wire.table import Value

Apply = Callable[[MetadataCommand], Reply]
URI = "amqp://h"


@pytest.fixture
def vhost(metadata: Metadata, apply: Apply) -> VhostMetadata:
    for name in ("b1", "a2", "a1"):
        put_upstream(apply, name)
    vhost = metadata.vhost("v")
    assert vhost is not None
    return vhost


def put_upstream(apply: Apply, name: str, **settings: object) -> None:
    value = {"uri": URI, **{key.replace("_", "-"): setting for key, setting in settings.items()}}
    assert apply(SetParameter(vhost="v", component="federation-upstream", name=name, value=value)) is DONE


def put_set(apply: Apply, name: str, *members: dict[str, object]) -> None:
    component = "federation-upstream-set"
    assert apply(SetParameter(vhost="v", component=component, name=name, value=list(members))) is DONE


def put_policy(apply: Apply, key: str, value: str, apply_to: str = "all") -> None:
    command = SetPolicy(vhost="v", name="p", pattern="", definition={key: value}, apply_to=apply_to)
    assert apply(command) is DONE


def exchange(name: str = "x", kind: str = "topic", *, internal: bool = False) -> ExchangeRecord:
    return ExchangeRecord(
        name=name, type=kind, durable=True, auto_delete=False, internal=internal, arguments={}, user="u"
    )


def queue(name: str = "q", **arguments: Value) -> QueueRecord:
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    return QueueRecord(
        name=name, durable=True, auto_delete=False, owner=None, arguments=arguments, user="u", number=1
    )


def names(upstreams: list[Upstream]) -> list[str]:
    return [upstream.name for upstream in upstreams]


def test_without_a_policy_there_are_no_upstreams(vhost: VhostMetadata) -> None:
    assert upstreams_of_exchange(vhost, exchange()) == []
    assert upstreams_of_queue(vhost, queue()) == []
    assert not is_federated(None)


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("federation-upstream", "a1", ["a1"]),
        ("federation-upstream", "nosuch", []),
        ("federation-upstream-set", "all", ["a1", "a2", "b1"]),
        ("federation-upstream-set", "some", ["b1", "a1"]),
        ("federation-upstream-set", "nosuch", []),
        ("federation-upstream-pattern", "^a", ["a1", "a2"]),
        ("federation-upstream-pattern", "1", ["a1", "b1"]),
        ("federation-upstream-pattern", "^nosuch", []),
    ],
)
def test_a_policy_names_upstreams(
    vhost: VhostMetadata, apply: Apply, key: str, value: str, found: list[str]
) -> None:
    put_set(apply, "some", {"upstream": "b1"}, {"upstream": "nosuch"}, {"upstream": "a1"})
    put_policy(apply, key, value)
    assert names(upstreams_of_exchange(vhost, exchange())) == found
    assert names(upstreams_of_queue(vhost, queue())) == found
    assert is_federated(vhost.policies.by_name["p"])


def test_a_policy_applies_to_exchanges_or_to_queues(vhost: VhostMetadata, apply: Apply) -> None:
    put_policy(apply, "federation-upstream", "a1", apply_to="exchanges")
    assert names(upstreams_of_exchange(vhost, exchange())) == ["a1"]
    assert upstreams_of_queue(vhost, queue()) == []
    put_policy(apply, "federation-upstream", "a1", apply_to="queues")
    assert upstreams_of_exchange(vhost, exchange()) == []
    assert names(upstreams_of_queue(vhost, queue())) == ["a1"]


def test_the_names_at_the_upstream_are_those_here_unless_they_are_given(
    vhost: VhostMetadata, apply: Apply
) -> None:
    put_upstream(apply, "a2", exchange="their-x", queue="their-q", consumer_tag="tag")
    put_policy(apply, "federation-upstream-pattern", "^a")
    first, second = upstreams_of_exchange(vhost, exchange("x"))
    assert (first.exchange, first.queue, first.consumer_tag) == ("x", "x", "federation-link-a1")
    assert (second.exchange, second.queue, second.consumer_tag) == ("their-x", "their-q", "tag")
    assert [upstream.queue for upstream in upstreams_of_queue(vhost, queue("q"))] == ["q", "their-q"]


def test_a_member_of_a_set_overrides_its_upstream(vhost: VhostMetadata, apply: Apply) -> None:
    put_upstream(apply, "a1", max_hops=2, expires=10, ack_mode="no-ack")
    put_set(apply, "some", {"upstream": "a1", "max-hops": 3, "exchange": "e"}, {"upstream": "a1"})
    put_policy(apply, "federation-upstream-set", "some")
    first, second = upstreams_of_exchange(vhost, exchange())
    assert (first.max_hops, first.expires, first.ack_mode, first.exchange) == (3, 10, "no-ack", "e")
    assert (second.max_hops, second.exchange) == (2, "x")


def test_an_upstream_that_is_wrong_says_why(vhost: VhostMetadata, apply: Apply) -> None:
    put_upstream(apply, "a1", uri=[])
    put_policy(apply, "federation-upstream", "a1")
    (found,) = upstreams_of_exchange(vhost, exchange())
    assert found.error == "uri has no address"


def test_an_upstream_has_the_user_who_set_it_last(vhost: VhostMetadata, apply: Apply) -> None:
    put_policy(apply, "federation-upstream", "a1")
    assert [found.user for found in upstreams_of_exchange(vhost, exchange())] == [INTERNAL_USER]
    component, value = "federation-upstream", {"uri": URI}
    apply(SetParameter(vhost="v", component=component, name="a1", value=value, user="u"))
    assert [found.user for found in upstreams_of_exchange(vhost, exchange())] == ["u"]
    assert vhost.parameters.user_of(component, "a1") == "u"
    put_upstream(apply, "a1")
    assert vhost.parameters.user_of(component, "a1") == INTERNAL_USER


@pytest.mark.parametrize(
    "record", [exchange(""), exchange(internal=True), exchange(kind="x-federation-upstream")]
)
def test_the_default_and_internal_exchanges_have_no_upstreams(
    vhost: VhostMetadata, apply: Apply, record: ExchangeRecord
) -> None:
    put_policy(apply, "federation-upstream", "a1")
    assert upstreams_of_exchange(vhost, record) == []


def test_the_queues_of_links_have_no_upstreams(vhost: VhostMetadata, apply: Apply) -> None:
    put_policy(apply, "federation-upstream", "a1")
    assert upstreams_of_queue(vhost, queue(x_internal_purpose="federation")) == []


def test_a_name_at_the_upstream_that_is_empty_is_the_name_here(vhost: VhostMetadata, apply: Apply) -> None:
    put_upstream(apply, "a1", exchange="", queue="")
    put_policy(apply, "federation-upstream", "a1")
    assert [upstream.exchange for upstream in upstreams_of_exchange(vhost, exchange())] == ["x"]
    assert [upstream.queue for upstream in upstreams_of_queue(vhost, queue())] == ["q"]


def test_an_empty_consumer_tag_is_the_default_one() -> None:
    upstream = parse_upstream("u", {"uri": "amqp://a", "consumer-tag": ""}, federated="q")
    assert upstream.consumer_tag == "federation-link-u"
