"""What RabbitMQ's own tests of federated queues expect, of Warren, and of RabbitMQ 3.10.8 and 4.3.6."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.broker_process import broker
from tests.integration.either_broker import (
    RABBITMQ,
    WARREN,
    Site,
    becomes,
    consumed,
    is_empty,
    site,
)
from tests.rabbitmq import is_installed
from tests.warren_process import free_port

needs_rabbitmq = (pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here"))
pytestmark = pytest.mark.slow
PERSISTENT = pika.BasicProperties(delivery_mode=2)
CLASSIC = {"x-queue-type": "classic"}


@pytest.fixture(scope="module", params=[WARREN, pytest.param(RABBITMQ, marks=needs_rabbitmq)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(request.param, tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def here(either: Site) -> Iterator[Site]:
    """A virtual host whose queues are federated with others of its own."""
    vhost = either.in_vhost("cases")
    vhost.upstream("localhost", vhost.uri, consumer_tag="fed.tag")
    for name in ("upstream", "upstream2", "one", "two"):
        vhost.set("federation-upstream-set", name, [{"upstream": "localhost", "queue": name}])
    both = [{"upstream": "localhost", "queue": name} for name in ("upstream", "upstream2")]
    vhost.set("federation-upstream-set", "upstream12", both)
    for name, pattern, upstreams in (
        ("fed", r"^fed\.", "upstream"),
        ("fed12", r"^fed12\.", "upstream12"),
        ("one", "^two$", "one"),
        ("two", "^one$", "two"),
    ):
        vhost.policy(name, pattern, federation_upstream_set=upstreams)
    yield vhost
    vhost.remove()


def declare(channel: BlockingChannel, *queues: str) -> None:
    for queue in queues:
        channel.queue_declare(queue, durable=True, arguments=CLASSIC)


def arrives(channel: BlockingChannel, source: str, queue: str) -> bool:
    """Publish to `source`, and take it from `queue`."""
    channel.basic_publish("", source, b"HELLO")
    return consumed(channel, queue, 1) == [b"HELLO"]


def stays(channel: BlockingChannel, source: str, queue: str) -> bool:
    """Publish to `source`, and find it there and not in `queue`."""
    channel.basic_publish("", source, b"HELLO")
    return is_empty(channel, queue) and consumed(channel, source, 1) == [b"HELLO"]


def queues_of(here: Site) -> list[str]:
    """The queues in which a message can be expected one after the other.

    The link of a queue of RabbitMQ may take a message just after its last consumer has gone, and keeps it.
    """
    return ["fed.downstream", "fed.downstream2"][: 2 if here.kind == WARREN else 1]


def test_a_federated_queue_has_its_link_as_soon_as_it_is_declared(here: Site) -> None:
    with here.channel() as channel:
        declare(channel, "fed.downstream")
        becomes(here.linked, [("fed.downstream", "localhost")])
        becomes(lambda: here.links()[0]["status"], "running")
        link = here.links()[0]
        assert (link["type"], link["upstream_queue"], link["vhost"]) == ("queue", "upstream", "cases")
        assert (link["consumer_tag"], link["uri"]) == ("fed.tag", here.shown_uri)
        channel.queue_delete("fed.downstream")
        assert here.links() == []


@pytest.mark.parametrize("federated", ["fed.downstream", "fed12.downstream", "pattern.downstream"])
def test_messages_of_each_upstream_arrive(here: Site, federated: str) -> None:
    sources = ["upstream"] if federated.startswith("fed.") else ["upstream", "upstream2"]
    here.upstream("local453x", here.uri, queue="upstream")
    here.upstream("zzzzzZZzz", here.uri, queue="upstream-zzz")
    here.upstream("local3214x", here.uri, queue="upstream2")
    here.policy("pattern", r"^pattern\.", federation_upstream_pattern=r"local\d+x")
    with here.channel() as channel:
        declare(channel, *sources, federated)
        for source in sources:
            assert arrives(channel, source, federated)


def test_two_queues_with_one_upstream_each_get_messages_while_they_have_a_consumer(here: Site) -> None:
    with here.channel() as channel:
        declare(channel, "upstream", "fed.downstream", "fed.downstream2")
        for queue in queues_of(here):
            assert arrives(channel, "upstream", queue)


def test_queues_that_are_federated_with_each_other_give_all_messages_to_either_consumer(here: Site) -> None:
    with here.channel() as channel:
        declare(channel, "one", "two")
        for queue in ("one", "two"):
            assert arrives(channel, queue, queue)
        for queue in ("one", "two"):
            for _ in range(50):
                channel.basic_publish("", "one", b"bulk")
                channel.basic_publish("", "two", b"bulk")
            assert consumed(channel, queue, 100) == [b"bulk"] * 100
            assert is_empty(channel, "one")
            assert is_empty(channel, "two")


def test_two_sites_with_both_as_upstreams_give_all_messages_to_a_consumer_of_either(either: Site) -> None:
    sites = [either.in_vhost(name) for name in ("rabbit", "hare")]
    for one in sites:
        for other in sites:
            # One of them is the site itself, as a cluster is that has all nodes as upstreams.
            one.upstream(f"from-{other.vhost}", other.uri)
        one.policy("test", "^test$", federation_upstream_set="all")
    with sites[0].channel() as first, sites[1].channel() as second:
        channels = (first, second)
        for channel in channels:
            declare(channel, "test")
        for one in sites:
            becomes(lambda one=one: [link["status"] for link in one.links()], ["running"] * 2)
        for taker in channels:
            for number in range(50):
                first.basic_publish("", "test", b"%03d" % number)
                second.basic_publish("", "test", b"%03d" % (50 + number))
            assert consumed(taker, "test", 100) == [b"%03d" % number for number in range(100)]
            assert all(is_empty(channel, "test") for channel in channels)
    for one in sites:
        one.remove()


def test_a_link_follows_its_upstream_that_is_cleared_and_set_again(here: Site) -> None:
    with here.channel() as channel:
        declare(channel, "upstream", "fed.downstream")
        assert arrives(channel, "upstream", "fed.downstream")
        here.clear("federation-upstream", "localhost")
        assert here.links() == []
        assert stays(channel, "upstream", "fed.downstream")
        for uri in (here.uri, *[here.uri.replace("127.0.0.1", "localhost")] * 2):
            here.upstream("localhost", uri)
        assert arrives(channel, "upstream", "fed.downstream")


def test_links_follow_the_policy(here: Site) -> None:
    with here.channel() as channel:
        declare(channel, "upstream", "fed.downstream", "fed.downstream2")
        for queue in queues_of(here):
            assert arrives(channel, "upstream", queue)
        here.clear_policy("fed")
        assert here.links() == []
        for queue in ("fed.downstream", "fed.downstream2"):
            assert stays(channel, "upstream", queue)
        here.policy("fed", r"^fed\.", federation_upstream_set="upstream")
        assert len(here.links()) == 2
        assert arrives(channel, "upstream", "fed.downstream")


def test_a_policy_change_loses_no_message(here: Site) -> None:
    with here.channel() as channel:
        declare(channel, "upstream", "upstream2", "fed.downstream")
        for number in range(200):
            channel.basic_publish("", "upstream", b"%03d" % number)
            channel.basic_publish("", "upstream2", b"%03d" % (200 + number))
        assert len(consumed(channel, "fed.downstream", 50)) == 50
        for change in ("upstream12", "upstream2", "upstream12"):
            here.policy("fed", r"^fed\.", federation_upstream_set=change)
        assert len(consumed(channel, "fed.downstream", 350)) == 350


def test_exclusive_and_transient_queues_are_federated_as_in_rabbitmq(here: Site) -> None:
    with here.channel() as channel:
        channel.queue_declare("fed.exclusive", exclusive=True)
        channel.queue_declare("fed.auto", auto_delete=True)
        becomes(lambda: [name for name, _ in here.linked()], ["fed.auto", "fed.exclusive"])


def test_messages_stay_at_an_upstream_that_restarts_and_arrive_afterwards(tmp_path: Path) -> None:
    at = free_port()
    http = free_port()
    arguments = ("--data-dir", str(tmp_path), "--port", str(at), "--management-port", str(http))
    with site(WARREN, tmp_path) as here:
        here.upstream("hare", f"amqp://guest:guest@127.0.0.1:{at}", reconnect_delay=1)
        here.policy("test", "^test$", federation_upstream_set="all")
        with here.channel() as downstream:
            declare(downstream, "test")
            with broker(*arguments) as first:
                there = Site(WARREN, first.ports)
                with there.channel() as upstream:
                    declare(upstream, "test")
                    upstream.basic_qos(prefetch_count=1)
                    downstream.basic_qos(prefetch_count=1)
                    for _ in range(100):
                        upstream.basic_publish("", "test", b"bulk", PERSISTENT)
                    assert len(consumed(upstream, "test", 25)) == 25
                    assert len(consumed(downstream, "test", 25)) == 25
                first.stop()
            with broker(*arguments) as second:
                there = Site(WARREN, second.ports)
                with there.channel() as upstream:
                    upstream.basic_qos(prefetch_count=1)
                    assert len(consumed(upstream, "test", 25)) == 25
                    assert len(consumed(downstream, "test", 25)) == 25
                    assert is_empty(upstream, "test")
                    assert is_empty(downstream, "test")
