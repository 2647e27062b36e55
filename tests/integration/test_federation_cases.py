"""What RabbitMQ's own tests of federated exchanges expect, of Warren, and of RabbitMQ 3.10.8 and 4.3.6."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pika
import pytest
from tests.integration.api import quoted
from tests.integration.broker_process import broker
from tests.integration.either_broker import (
    RABBITMQ,
    WARREN,
    Site,
    becomes,
    bound_queue,
    consumed,
    is_empty,
    site,
)
from tests.rabbitmq import is_installed
from tests.warren_process import free_port

needs_rabbitmq = (pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here"))
pytestmark = pytest.mark.slow
GONE = "amqp://guest:guest@127.0.0.1:1"


@pytest.fixture(scope="module", params=[WARREN, pytest.param(RABBITMQ, marks=needs_rabbitmq)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(request.param, tmp_path_factory.mktemp("broker")) as started:
        yield started


def member(name: str) -> dict[str, str]:
    """The exchange and the queue `name` of the upstream `localhost`, as a member of a set."""
    return {"upstream": "localhost", "exchange": name, "queue": name}


@pytest.fixture
def here(either: Site) -> Iterator[Site]:
    """A virtual host with the upstreams, sets and policies of RabbitMQ's tests, they name the host itself."""
    vhost = either.in_vhost("cases")
    vhost.upstream("localhost", vhost.uri, consumer_tag="fed.tag")
    vhost.upstream("local5673", GONE)
    for name in ("upstream", "upstream2", "one", "two"):
        vhost.set("federation-upstream-set", name, [member(name)])
    both = [member(name) for name in ("upstream", "upstream2")]
    vhost.set("federation-upstream-set", "upstream12", both)
    vhost.set("federation-upstream-set", "localhost", [{"upstream": "localhost"}])
    for name, pattern, upstreams in (
        ("fed", r"^fed\.", "upstream"),
        ("fed12", r"^fed12\.", "upstream12"),
        ("one", "^two$", "one"),
        ("two", "^one$", "two"),
        ("all", r"^all\.", "all"),
        ("new", r"^new\.", "new-set"),
    ):
        vhost.policy(name, pattern, federation_upstream_set=upstreams)
    yield vhost
    vhost.remove()


def test_a_federated_exchange_has_its_link_as_soon_as_it_is_declared(here: Site) -> None:
    with here.channel() as channel:
        channel.exchange_declare("fed.downstream", "topic", durable=True)
        ((name, upstream),) = here.linked()
        assert (name, upstream) == ("fed.downstream", "localhost")
        becomes(lambda: here.links()[0]["status"], "running")
        link = here.links()[0]
        assert (link["type"], link["upstream_exchange"], link["vhost"]) == ("exchange", "upstream", "cases")
        assert link["uri"] == here.shown_uri
        channel.exchange_delete("fed.downstream")
        assert here.links() == []


def test_a_link_that_cannot_connect_has_the_address_that_it_tried(here: Site) -> None:
    with here.channel() as channel:
        channel.exchange_declare("all.fed1", "topic", durable=True)
        assert here.linked() == [("all.fed1", "local5673"), ("all.fed1", "localhost")]
        becomes(lambda: {link["upstream"]: link["status"] == "running" for link in here.links()},
                {"localhost": True, "local5673": False})  # fmt: skip
        becomes(lambda: [link["uri"] for link in here.links() if link["status"] == "error"],
                [GONE.replace("guest:guest@", "")])  # fmt: skip


@pytest.mark.parametrize("federated", ["fed.downstream", "fed12.downstream", "pattern.downstream"])
def test_messages_of_each_upstream_arrive(here: Site, federated: str) -> None:
    sources = ["upstream"] if federated.startswith("fed.") else ["upstream", "upstream2"]
    here.upstream("pick453x", here.uri, exchange="upstream", queue="upstream")
    here.upstream("pick3214x", here.uri, exchange="upstream2", queue="upstream2")
    here.policy("pattern", r"^pattern\.", federation_upstream_pattern=r"pick\d+x")
    with here.channel() as channel:
        for name in ("upstream", "upstream2", federated):
            channel.exchange_declare(name, "topic", durable=True)
        queue = bound_queue(channel, federated, "key")
        for source in sources:
            becomes(lambda source=source: here.keys_from(source), ["key"])
            channel.basic_publish(source, "key", source.encode())
        assert consumed(channel, queue, len(sources)) == [source.encode() for source in sources]


def test_a_link_uses_one_channel_if_it_shall(here: Site) -> None:
    here.upstream("localhost", here.uri, exchange="upstream", channel_use_mode="single")
    with here.channel() as channel:
        channel.exchange_declare("fed.downstream", "topic", durable=True)
        queue = bound_queue(channel, "fed.downstream", "key")
        becomes(lambda: here.keys_from("upstream"), ["key"])
        channel.basic_publish("upstream", "key", b"HELLO")
        assert consumed(channel, queue, 1) == [b"HELLO"]


@pytest.mark.parametrize("delay", [0, 1])
def test_each_address_of_an_upstream_is_used_when_connections_end(here: Site, delay: int) -> None:
    uris, shown = ([uri, uri.replace("127.0.0.1", "localhost")] for uri in (here.uri, here.shown_uri))
    here.upstream("localhost", uris, reconnect_delay=delay)
    with here.channel() as channel:
        channel.exchange_declare("fed.downstream", "topic", durable=True)

    def seen() -> bool:
        found.update(link["uri"] for link in here.links())
        for connection in here.api.get("/connections"):
            if connection.get("protocol") == "AMQP 0-9-1":
                here.api.ask(f"DELETE /connections/{quoted(connection['name'])}")
        return found >= set(shown)

    found: set[str] = set()
    becomes(seen, True, 60)
    assert len(here.links()) == 1


def test_two_exchanges_with_one_upstream_each_get_the_message(here: Site) -> None:
    with here.channel() as channel:
        for name in ("upstream", "upstream2", "fed.downstream", "fed12.downstream2"):
            channel.exchange_declare(name, "topic", durable=True)
        first = bound_queue(channel, "fed.downstream", "key")
        second = bound_queue(channel, "fed12.downstream2", "key")
        becomes(lambda: (here.keys_from("upstream"), here.keys_from("upstream2")), (["key", "key"], ["key"]))
        channel.basic_publish("upstream", "key", b"HELLO1")
        channel.basic_publish("upstream2", "key", b"HELLO2")
        assert consumed(channel, first, 1) == [b"HELLO1"]
        assert consumed(channel, second, 2) == [b"HELLO1", b"HELLO2"]


def test_a_binding_between_exchanges_is_propagated(here: Site) -> None:
    with here.channel() as channel:
        for name in ("upstream", "fed.downstream", "downstream2"):
            channel.exchange_declare(name, "topic", durable=True)
        channel.exchange_bind("downstream2", "fed.downstream", "key")
        becomes(lambda: here.keys_from("upstream"), ["key"])
        queue = bound_queue(channel, "downstream2", "key")
        channel.basic_publish("upstream", "key", b"HELLO1")
        assert consumed(channel, queue, 1) == [b"HELLO1"]


@pytest.mark.parametrize("how", ["unbind", "delete"])
def test_the_last_binding_with_a_key_that_goes_is_removed_at_the_upstream(here: Site, how: str) -> None:
    with here.channel() as channel:
        channel.exchange_declare("upstream", "topic", durable=True)
        channel.exchange_declare("fed.downstream", "topic", durable=True)
        queues = {
            key: [bound_queue(channel, "fed.downstream", key) for _ in "12"] for key in ("key1", "key2")
        }
        becomes(lambda: here.keys_from("upstream"), ["key1", "key2"])
        for key, queue in [("key1", queues["key1"][1]), *(("key2", queue) for queue in queues["key2"])]:
            if how == "unbind":
                channel.queue_unbind(queue, "fed.downstream", key)
            else:
                channel.queue_delete(queue)
        becomes(lambda: here.keys_from("upstream"), ["key1"])
        channel.basic_publish("upstream", "key1", b"YES")
        assert consumed(channel, queues["key1"][0], 1) == [b"YES"]
        assert is_empty(channel, queues["key1"][0])


def test_exchanges_that_are_federated_with_each_other_do_not_loop(here: Site) -> None:
    with here.channel() as channel:
        for name in ("one", "two"):
            channel.exchange_declare(name, "topic", durable=True)
        first, second = (bound_queue(channel, name, "key") for name in ("one", "two"))
        becomes(lambda: (here.keys_from("one"), here.keys_from("two")), (["key", "key"], ["key", "key"]))
        channel.basic_publish("one", "key", b"from one")
        channel.basic_publish("two", "key", b"from two")
        for queue in (first, second):
            assert consumed(channel, queue, 2) == [b"from one", b"from two"]
            assert is_empty(channel, queue)


def test_an_exchange_that_is_federated_with_itself_has_each_message_twice(here: Site) -> None:
    here.policy("dyn", r"^dyn\.", federation_upstream_set="localhost")
    with here.channel() as channel:
        for name in ("dyn.exch1", "dyn.exch2"):
            channel.exchange_declare(name, "topic", durable=True)
            queue = bound_queue(channel, name, "key")
            becomes(lambda name=name: here.keys_from(name), ["key", "key"])
            channel.basic_publish(name, "key", b"HELLO")
            assert consumed(channel, queue, 2) == [b"HELLO", b"HELLO"]


def test_links_follow_upstreams_that_are_cleared_and_set_again(here: Site) -> None:
    with here.channel() as channel:
        for name in ("all.fed1", "all.fed2"):
            channel.exchange_declare(name, "topic", durable=True)
        both = [
            (name, upstream) for name in ("all.fed1", "all.fed2") for upstream in ("local5673", "localhost")
        ]
        assert here.linked() == both
        here.clear("federation-upstream", "localhost")
        here.clear("federation-upstream", "local5673")
        assert here.linked() == []
        for uri in (here.uri, *[here.uri.replace("127.0.0.1", "localhost")] * 2):
            here.upstream("localhost", uri)
        assert here.linked() == [("all.fed1", "localhost"), ("all.fed2", "localhost")]
        becomes(lambda: {link["status"] for link in here.links()}, {"running"})


def test_links_follow_a_set_that_is_made_and_changed(here: Site) -> None:
    with here.channel() as channel:
        for name in ("new.fed1", "new.fed2"):
            channel.exchange_declare(name, "topic", durable=True)
        assert here.linked() == []
        for members, upstreams in (
            (["localhost"], ["localhost"]),
            (["localhost", "does-not-exist"], ["localhost"]),
            (["local5673"], ["local5673"]),
        ):
            here.set("federation-upstream-set", "new-set", [{"upstream": member} for member in members])
            assert here.linked() == [(name, one) for name in ("new.fed1", "new.fed2") for one in upstreams]
        here.clear("federation-upstream-set", "new-set")
        assert here.linked() == []


def test_links_follow_a_policy_and_leave_nothing_at_the_upstream(here: Site) -> None:
    with here.channel() as channel:
        for name in ("dyn.exch1", "dyn.exch2"):
            channel.exchange_declare(name, "topic", durable=True)
        assert here.linked() == []
        here.policy("dyn", r"^dyn\.", federation_upstream_set="all")
        assert len(here.linked()) == 4
        here.policy("dyn", r"^dyn\.", federation_upstream_set="localhost")
        assert here.linked() == [("dyn.exch1", "localhost"), ("dyn.exch2", "localhost")]
        becomes(lambda: {link["status"] for link in here.links()}, {"running"})
        # A queue and an exchange for each link.
        becomes(lambda: len(here.internals()), 4)
        here.clear_policy("dyn")
        assert here.linked() == []
        becomes(here.internals, [], 5)


def test_a_user_id_arrives_from_a_trusted_upstream_only(either: Site, here: Site) -> None:
    other = either.in_vhost("trust")
    either.api.ask("PUT /users/hare", {"password": "hare", "tags": ""})
    either.api.ask("PUT /permissions/trust/hare", {"configure": ".*", "write": ".*", "read": ".*"})
    here.upstream("localhost", other.uri, exchange="test")
    here.set("federation-upstream-set", "upstream", [{"upstream": "localhost"}])
    with other.channel("hare") as there, here.channel() as channel:
        there.exchange_declare("test", "topic", durable=True)
        channel.exchange_declare("fed.test", "topic", durable=True)
        queue = bound_queue(channel, "fed.test", "key")
        for is_trusted, user_id in ((False, None), (True, "hare")):
            here.upstream("localhost", other.uri, exchange="test", trust_user_id=is_trusted)
            becomes(lambda: (other.keys_from("test"), here.links()[0]["status"]), (["key"], "running"))
            there.basic_publish("test", "key", b"HELLO", pika.BasicProperties(user_id="hare"))
            _, properties, body = next(iter(channel.consume(queue, auto_ack=True, inactivity_timeout=30)))
            channel.cancel()
            assert (body, properties.user_id) == (b"HELLO", user_id)
            assert [entry["uri"] for entry in properties.headers["x-received-from"]] == [other.shown_uri]
    other.remove()


def test_messages_pass_two_links_and_do_not_come_back(either: Site) -> None:
    sites = [either.in_vhost(f"cycles.{name}") for name in "abc"]
    for up, down in pairwise(sites):
        down.upstream("up", up.uri, max_hops=5)
        down.policy("federate.x", "^federated", "exchanges", federation_upstream="up")
    with sites[0].channel() as first, sites[1].channel() as middle, sites[2].channel() as last:
        for channel in (last, middle, first):
            channel.exchange_declare("federated.x", "fanout", durable=True)
        for one in sites[1:]:
            becomes(lambda one=one: [link["status"] for link in one.links()], ["running"])
            (link,) = one.links()
            assert (link["upstream_exchange"], link["type"], link["vhost"]) == (
                "federated.x", "exchange", one.vhost,
            )  # fmt: skip
        assert [one.links()[0]["uri"] for one in sites[1:]] == [one.shown_uri for one in sites[:2]]
        queue = bound_queue(last, "federated.x", "any")
        becomes(
            lambda: (sites[0].keys_from("federated.x"), sites[1].keys_from("federated.x")), (["any"],) * 2
        )
        first.basic_publish("federated.x", "any", b"1")
        first.basic_publish("federated.x", "any", b"2")
        assert consumed(last, queue, 2) == [b"1", b"2"]
        assert is_empty(last, queue)
    for one in sites:
        one.remove()


def test_two_sites_that_federate_each_other_with_many_hops_have_each_message_once(either: Site) -> None:
    sites = [either.in_vhost(f"cycle{number}") for number in "12"]
    for down, up in (sites, reversed(sites)):
        down.upstream("up", up.uri, max_hops=10)
        down.policy("cycle", "^cycle$", federation_upstream_set="all")
    with sites[0].channel() as first, sites[1].channel() as second:
        channels = (first, second)
        for channel in channels:
            channel.exchange_declare("cycle", "topic", durable=True)
        queues = [bound_queue(channel, "cycle", "key") for channel in channels]
        for one in sites:
            becomes(lambda one=one: one.keys_from("cycle"), ["key", "key"])
        first.basic_publish("cycle", "key", b"HELLO1")
        second.basic_publish("cycle", "key", b"HELLO2")
        for channel, queue in zip(channels, queues, strict=True):
            assert consumed(channel, queue, 2) == [b"HELLO1", b"HELLO2"]
            assert is_empty(channel, queue)
    for one in sites:
        one.remove()


def test_in_a_triangle_a_message_takes_both_ways_to_each_site_and_no_other(either: Site) -> None:
    sites = [either.in_vhost(f"vh-fed.{number}") for number in "123"]
    queues = [f"fed.q.{number}" for number in "123"]
    for one in sites:
        for other in sites:
            if other is not one:
                one.upstream(f"upstream-to-{other.vhost}", other.uri, reconnect_delay=1, max_hops=2)
        with one.channel() as channel:
            channel.exchange_declare("fed.x", "fanout", durable=True)
            for queue in queues:
                channel.queue_declare(queue, durable=True)
                channel.queue_bind(queue, "fed.x", "")
        one.policy("federate-exchanges", r"^fed\.", "exchanges", federation_upstream_set="all")
    for one in sites:
        becomes(lambda one=one: [link["status"] for link in one.links()], ["running"] * 2)
        # Of the three queues, and of each of the other sites: its own, and what it has of the third.
        becomes(lambda one=one: len(one.keys_from("fed.x")), 3 + 2 + 2)
    for one in sites:
        with one.channel() as channel:
            for number in range(20):
                channel.basic_publish("fed.x", "", b"%d" % number)

    def counts() -> set[int]:
        found = set()
        for one in sites:
            with one.channel() as channel:
                found |= {channel.queue_declare(q, passive=True).method.message_count for q in queues}
        return found

    # From its own site once, from each of the others directly and by way of the third.
    becomes(counts, {20 * (1 + 2 + 2)})
    for one in sites:
        one.remove()


def test_bindings_pass_as_many_links_as_each_of_them_permits(either: Site) -> None:
    dylan, bugs, jessica = (either.in_vhost(name) for name in ("dylan", "bugs", "jessica"))
    for down, up, hops in ((dylan, jessica, 1), (bugs, dylan, 1), (jessica, dylan, 1), (jessica, bugs, 2)):
        down.upstream(f"from-{up.vhost}", up.uri, max_hops=hops)
    sites = (dylan, bugs, jessica)
    for one in sites:
        one.policy("x", "^x$", federation_upstream_set="all")
    with dylan.channel() as first, bugs.channel() as second, jessica.channel() as third:
        channels = (first, second, third)
        for channel in channels:
            channel.exchange_declare("x", "topic", durable=True)
        queues = [bound_queue(channel, "x", one.vhost) for channel, one in zip(channels, sites, strict=True)]
        becomes(lambda: dylan.keys_from("x"), ["bugs", "dylan", "jessica", "jessica"])
        becomes(lambda: bugs.keys_from("x"), ["bugs", "jessica"])
        becomes(lambda: jessica.keys_from("x"), ["dylan", "jessica"])
        for channel, queue in zip(channels, queues, strict=True):
            channel.queue_delete(queue)
        for one in sites:
            becomes(lambda one=one: one.keys_from("x"), [])
    for one in sites:
        one.remove()


def test_clearing_an_upstream_ends_the_links_of_its_own_virtual_host_alone(either: Site) -> None:
    sites = [either.in_vhost(f"federation-downstream{number}") for number in "12"]
    for one in sites:
        with one.channel() as channel:
            channel.exchange_declare("federated.topic", "topic", durable=True)
            channel.queue_declare("federated.queue", durable=True)
        one.policy("federation", r"^federated\.", federation_upstream_set="all")
    for down, up in (sites, reversed(sites)):
        down.upstream("upstream", up.uri)
    both = [("federated.queue", "upstream"), ("federated.topic", "upstream")]
    assert [one.linked() for one in sites] == [both, both]
    sites[1].clear("federation-upstream", "upstream")
    assert [one.linked() for one in sites] == [both, []]
    for one in sites:
        one.remove()
    assert either.api.get("/federation-links") == []


def test_the_links_of_a_virtual_host_that_is_made_again_run_soon(either: Site) -> None:
    for _ in range(3):
        again = either.in_vhost("again")
        again.upstream("up", again.uri, exchange="upstream")
        again.policy("fed", "^fed", federation_upstream="up")
        with again.channel() as channel:
            channel.exchange_declare("fed", "topic", durable=True)
            bound_queue(channel, "fed", "key")
            becomes(lambda again=again: [link["status"] for link in again.links()], ["running"], 4)
            becomes(lambda again=again: again.keys_from("upstream"), ["key"], 4)
            again.remove()


def test_a_policy_for_everything_federates_the_exchanges_of_amqp_and_nothing_internal(either: Site) -> None:
    everything = either.in_vhost("everything")
    names = ["amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic"]
    everything.policy("fed", ".*", federation_upstream_set="all")
    path = "/federation-links/everything/state/down"
    everything.upstream(
        "broken", everything.uri.replace("guest:guest@", "late:late@"), reconnect_delay=600000
    )
    everything.upstream("bunny", "amqp:///everything", reconnect_delay=600000)
    expected = sorted(
        [(name, "broken", "error") for name in names] + [(name, "bunny", "running") for name in names]
    )
    becomes(
        lambda: sorted((one["exchange"], one["upstream"], one["status"]) for one in everything.links()),
        expected,
    )
    down = everything.api.get(path)
    assert sorted((one["exchange"], one["status"]) for one in down) == [(name, "error") for name in names]
    assert {one["uri"] for one in down} == {everything.shown_uri}
    assert everything.api.status("PUT /users/late", {"password": "late", "tags": ""}) == 201
    everything.api.ask("PUT /permissions/everything/late", {"configure": ".*", "write": ".*", "read": ".*"})
    for link in down:
        place = f"/federation-links/vhost/everything/{link['id']}/{link['node']}/restart"
        assert everything.api.status(f"DELETE {place}") == 204
    becomes(lambda: everything.api.get(path), [])
    assert everything.api.status("DELETE /users/late") == 204
    everything.remove()


@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here")
def test_an_upstream_needs_no_federation_of_its_own(tmp_path: Path) -> None:
    with site(WARREN, tmp_path) as down, site(RABBITMQ, tmp_path, ("rabbitmq_management",)) as up:
        down.upstream("hare", up.uri)
        down.policy("test", "^test$", federation_upstream_set="all")
        with down.channel() as here, up.channel() as there:
            for channel in (there, here):
                channel.exchange_declare("test", "topic", durable=True)
            queue = bound_queue(here, "test", "routing")
            becomes(lambda: up.keys_from("test"), ["routing"])
            there.basic_publish("test", "routing", b"HELLO")
            assert consumed(here, queue, 1) == [b"HELLO"]
            down.clear_policy("test")
            becomes(up.internals, [])


def test_bindings_follow_an_upstream_that_was_down(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    arguments = ("--data-dir", str(tmp_path), "--port", str(ports[0]), "--management-port", str(ports[1]))
    with site(WARREN, tmp_path) as down:
        down.upstream("hare", f"amqp://guest:guest@127.0.0.1:{ports[0]}")
        down.set("federation-upstream-set", "upstream", [{"upstream": "hare", "exchange": "upstream"}])
        down.policy("hare", r"^hare\.", federation_upstream_set="upstream")
        with down.channel() as here:
            here.exchange_declare("hare.downstream", "topic", durable=True)
            with broker(*arguments) as first:
                up = Site(WARREN, first.ports)
                queues = {key: bound_queue(here, "hare.downstream", key) for key in ("stays", "goes")}
                becomes(lambda: up.keys_from("upstream"), ["goes", "stays"])
                first.stop()
            queues["comes"] = bound_queue(here, "hare.downstream", "comes")
            here.queue_unbind(queues["goes"], "hare.downstream", "goes")
            with broker(*arguments) as second:
                up = Site(WARREN, second.ports)
                # RabbitMQ's test waits for 10 s, with the delay of 5 s that an upstream has by default.
                becomes(lambda: up.keys_from("upstream"), ["comes", "stays"], 10)
                with up.channel() as there:
                    for key in queues:
                        there.basic_publish("upstream", key, key.encode())
                for key in ("stays", "comes"):
                    assert consumed(here, queues[key], 1) == [key.encode()]
                assert is_empty(here, queues["goes"])
