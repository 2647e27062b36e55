"""Shovels of the metadata between two brokers without sockets: what they declare, move, and leave behind."""

from collections.abc import Mapping

import pytest
from tests.unit.relay.network import Network
from tests.unit.session.client import Broker, publication

from warren.metadata.commands import (
    INTERNAL_USER,
    OPERATOR,
    ClearParameter,
    Json,
    PutUser,
    PutVhost,
    RemoveUser,
    RemoveVhost,
    Reply,
    SetParameter,
)
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.shovel_definition import ShovelDefinition, ShovelDestination, ShovelSource
from warren.model.coroutine_driver import drive
from warren.model.message_position import POSITIONS_CAPABILITY
from warren.relay.delivery_guarantee import Guarantee
from warren.relay.links import Links
from warren.relay.status import LinkKey, LinkKind, LinkState, LinkStatus
from warren.shovel.shovel_links import ShovelDependencies, ShovelLinks
from warren.shovel.shovel_settings import STATIC_VHOST, ShovelSettings
from warren.wire import methods
from warren.wire.properties import BasicProperties

VHOST = "/"
NAME = "s"
STATIC = LinkKey(LinkKind.SHOVEL, STATIC_VHOST, NAME)


class Site:
    """Two brokers, and a node whose metadata has shovels between them."""

    def __init__(self, *static: ShovelSettings, defaults: Mapping[str, Json] = {}) -> None:
        self.network = Network(source=Broker(), destination=Broker())
        self.metadata = Metadata()
        self.local = LocalProposals(self.metadata, lambda: self.network.clock.now)
        self.local.apply(PutVhost(name=VHOST))
        self.links = Links("node")
        dependencies = ShovelDependencies(
            metadata=self.metadata,
            proposals=self.local,
            links=self.links,
            link_dependencies=self.network.dependencies,
            later=lambda action: action(self.network.clock.now),
            cluster_name=lambda: "cluster",
            defaults=defaults,
        )
        self.shovels = ShovelLinks(dependencies, static)
        self.client = self.network.brokers["source"].client()
        self.reader = self.network.brokers["destination"].client()

    def shovel(self, name: str = NAME, user: str = INTERNAL_USER, **definition: object) -> Reply:
        """Set the parameter of a shovel from the host `source` to the host `destination`."""
        ends = {"src-uri": "amqp://source", "dest-uri": "amqp://destination"}
        given = {key.replace("_", "-"): value for key, value in definition.items()}
        reply = self.local.apply(
            SetParameter(vhost=VHOST, component="shovel", name=name, value={**ends, **given}, user=user), user
        )
        self.network.exchange()
        return reply

    def clear(self) -> None:
        self.local.apply(ClearParameter(vhost=VHOST, component="shovel", name=NAME))
        self.network.exchange()

    def publish(self, key: str, *bodies: bytes, exchange: str = "", **properties: object) -> None:
        self.client.send(*(publication(key, body, exchange=exchange, **properties) for body in bodies))
        self.network.exchange()

    def take(self, queue: str) -> list[bytes]:
        """Take the messages of a queue of the destination."""
        return [body for body, _ in self.messages(queue)]

    def messages(self, queue: str) -> list[tuple[bytes, BasicProperties]]:
        found = []
        while True:
            got = self.reader.ask(methods.BasicGet(queue=queue, no_ack=True))[0]
            if isinstance(got.method, methods.BasicGetEmpty):
                return found
            assert got.properties is not None
            found.append((got.body, got.properties))

    def declare(self, *queues: str) -> None:
        for queue in queues:
            self.client.ask(methods.QueueDeclare(queue=queue, durable=True))
            self.reader.ask(methods.QueueDeclare(queue=queue, durable=True))

    def status(self) -> LinkStatus:
        return self.links.statuses()[LinkKey(LinkKind.SHOVEL, VHOST, NAME)]

    def ready(self, queue: str) -> int:
        """The number of ready messages in a queue of the source."""
        answer = self.client.ask(methods.QueueDeclare(queue=queue, passive=True))[0].method
        assert isinstance(answer, methods.QueueDeclareOk)
        return answer.message_count


def started() -> Site:
    site = Site()
    site.shovels.start()
    return site


def test_a_shovel_is_deleted_when_its_time_is_over() -> None:
    site = started()
    site.declare("from", "to")
    site.shovel(src_queue="from", dest_queue="to", src_delete_after_duration=60)
    site.publish("from", b"a")
    site.network.pass_time(59_000)
    assert site.take("to") == [b"a"]
    # Another definition has a time of its own.
    site.shovel(src_queue="from", dest_queue="to", src_delete_after_duration=30)
    site.network.pass_time(29_000)
    assert site.status().state is LinkState.RUNNING
    site.network.pass_time(2_000)
    assert site.links.statuses() == {}
    assert not site.metadata.vhosts.by_name[VHOST].parameters.by_key


def test_no_shovel_declares_its_queues_if_they_have_to_exist_unless_it_says_so() -> None:
    site = Site(defaults={"src-predeclared": True, "dest-predeclared": True})
    site.shovels.start()
    site.shovel(src_queue="from", dest_queue="to")
    assert site.status().state is LinkState.TERMINATED
    site.shovel(src_queue="from", dest_queue="to", src_predeclared=False, dest_predeclared=False)
    assert site.status().state is LinkState.RUNNING


def test_a_shovel_declares_missing_queues_as_durable_with_their_arguments() -> None:
    site = started()
    arguments = {"src_queue_args": {"x-max-length": 10}, "dest_queue_args": {"x-max-length": 20}}
    site.shovel(src_queue="from", dest_queue="to", **arguments)
    for client, queue, length in ((site.client, "from", 10), (site.reader, "to", 20)):
        declare = methods.QueueDeclare(queue=queue, durable=True, arguments={"x-max-length": length})
        assert isinstance(client.ask(declare)[0].method, methods.QueueDeclareOk)
    site.publish("from", b"a", b"b")
    assert site.take("to") == [b"a", b"b"]
    assert site.ready("from") == 0
    assert site.status().state is LinkState.RUNNING


def test_a_shovel_in_the_metadata_runs_from_the_start() -> None:
    site = Site()
    site.declare("from", "to")
    site.shovel(src_queue="from", dest_queue="to")
    assert site.links.statuses() == {}
    site.shovels.start()
    site.network.exchange()
    assert site.status().state is LinkState.RUNNING


OVER = "it has a single run, which is over: set it again to begin anew"


def test_a_shovel_with_a_single_run_does_not_begin_again_before_it_is_set_again() -> None:
    site = started()
    site.declare("from", "to")
    site.shovel(src_queue="from", dest_queue="to", single_run=True)
    site.publish("from", b"a")
    site.network.cut("source")
    site.network.pass_time(60_000)
    site.publish("from", b"b")
    assert (site.status().state, site.take("to")) == (LinkState.TERMINATED, [b"a"])
    site.links.restart(LinkKey(LinkKind.SHOVEL, VHOST, NAME))
    site.network.exchange()
    assert (site.status().state, site.status().reason) == (LinkState.TERMINATED, OVER)
    assert site.ready("from") == 1
    site.shovel(src_queue="from", dest_queue="to", single_run=True, reconnect_delay=1)
    assert (site.status().state, site.take("to")) == (LinkState.RUNNING, [b"b"])


def test_a_shovel_with_a_single_run_that_could_not_begin_can_be_restarted() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to", src_predeclared=True, single_run=True)
    assert site.status().state is LinkState.TERMINATED
    site.client.ask(methods.QueueDeclare(queue="from"))
    site.links.restart(LinkKey(LinkKind.SHOVEL, VHOST, NAME))
    site.network.exchange()
    assert site.status().state is LinkState.RUNNING


def test_a_shovel_with_a_single_run_that_is_older_than_the_node_does_not_begin() -> None:
    site = Site()
    site.declare("from", "to")
    site.publish("from", b"a")
    site.shovel(src_queue="from", dest_queue="to", single_run=True)
    site.shovels.start()
    site.network.exchange()
    assert (site.status().state, site.status().reason) == (LinkState.TERMINATED, OVER)
    assert (site.ready("from"), site.take("to")) == (1, [])
    site.shovel(src_queue="from", dest_queue="to", single_run=True, reconnect_delay=1)
    assert (site.status().state, site.take("to")) == (LinkState.RUNNING, [b"a"])


def test_a_cleared_shovel_stops_and_its_queues_stay() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to")
    site.clear()
    assert site.links.statuses() == {}
    site.publish("from", b"a")
    assert site.ready("from") == 1
    assert site.take("to") == []


def test_a_changed_shovel_has_its_new_destination() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to")
    site.shovel(src_queue="from", dest_queue="elsewhere")
    site.publish("from", b"a")
    assert (site.take("to"), site.take("elsewhere")) == ([], [b"a"])


def test_a_removed_vhost_ends_its_shovels() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to")
    site.local.apply(RemoveVhost(name=VHOST))
    site.network.exchange()
    assert site.links.statuses() == {}


def test_an_exchange_is_consumed_through_an_exclusive_queue() -> None:
    site = started()
    site.declare("to")
    site.shovel(
        src_exchange="amq.topic", src_exchange_key="a.#", dest_exchange="amq.fanout", ack_mode="no-ack"
    )
    site.reader.ask(methods.QueueBind(queue="to", exchange="amq.fanout"))
    site.publish("a.b", b"in", exchange="amq.topic")
    site.publish("b.b", b"out", exchange="amq.topic")
    assert site.take("to") == [b"in"]


def test_a_predeclared_queue_that_is_missing_ends_the_run_with_its_reason() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to", src_predeclared=True)
    status = site.status()
    assert status.state is LinkState.TERMINATED
    assert status.reason == "source: 404 NOT_FOUND - no queue 'from' in vhost '/'"
    site.client.ask(methods.QueueDeclare(queue="from"))
    site.network.pass_time(5_000)
    assert site.status().state is LinkState.RUNNING


def test_after_the_length_of_the_queue_the_parameter_is_deleted() -> None:
    site = started()
    site.declare("from", "to")
    site.publish("from", b"a", b"b", b"c")
    site.shovel(src_queue="from", dest_queue="to", src_delete_after="queue-length")
    assert site.links.statuses() == {}
    assert not site.metadata.vhost(VHOST).parameters.by_key
    assert site.take("to") == [b"a", b"b", b"c"]
    site.publish("from", b"d")
    assert (site.ready("from"), site.take("to")) == (1, [])


def test_an_empty_queue_completes_a_shovel_at_once() -> None:
    site = started()
    site.declare("from", "to")
    site.shovel(src_queue="from", dest_queue="to", src_delete_after="queue-length")
    assert not site.metadata.vhost(VHOST).parameters.by_key


def test_exactly_n_messages_are_moved_and_the_others_stay() -> None:
    for ack_mode in ("on-confirm", "on-publish"):
        site = started()
        site.declare("from", "to")
        site.publish("from", *(b"%d" % number for number in range(10)))
        site.shovel(src_queue="from", dest_queue="to", src_delete_after=4, ack_mode=ack_mode)
        site.network.exchange()
        assert site.take("to") == [b"0", b"1", b"2", b"3"]
        assert site.ready("from") == 6
        assert not site.metadata.vhost(VHOST).parameters.by_key


@pytest.mark.parametrize("ack_mode", ["on-confirm", "on-publish"])
def test_n_counts_the_messages_of_all_runs(ack_mode: str) -> None:
    site = started()
    site.declare("from", "to")
    site.shovel(src_queue="from", dest_queue="to", src_delete_after=4, ack_mode=ack_mode)
    site.publish("from", b"0", b"1")
    site.network.cut("destination")
    site.network.pass_time(5_000)
    assert site.status().state is LinkState.RUNNING
    site.publish("from", b"2", b"3", b"4")
    site.network.exchange()
    assert site.take("to") == [b"0", b"1", b"2", b"3"]
    assert not site.metadata.vhost(VHOST).parameters.by_key


def test_no_ack_loses_nothing_beyond_the_length_of_the_queue() -> None:
    site = started()
    site.declare("from", "to")
    site.publish("from", b"a", b"b")
    site.shovel(src_queue="from", dest_queue="to", delete_after="queue-length", ack_mode="no-ack")
    site.publish("from", b"c")
    assert (site.take("to"), site.ready("from")) == ([b"a", b"b"], 1)


def test_headers_and_properties_are_set_when_they_are_asked_for() -> None:
    site = started()
    site.shovel(
        src_queue="from", dest_queue="to", dest_add_forward_headers=True, dest_add_timestamp_header=True,
        dest_publish_properties={"delivery_mode": 2, "content_type": "t"},
    )  # fmt: skip
    site.publish("from", b"a", headers={"k": "v"}, priority=3)
    [(_, properties)] = site.messages("to")
    assert (properties.delivery_mode, properties.content_type, properties.priority) == (2, "t", 3)
    headers = properties.headers or {}
    assert headers["k"] == "v"
    assert headers["x-shovelled-timestamp"] == site.network.clock.now // 1000
    [entry] = headers["x-shovelled"]
    assert entry == {
        "shovelled-by": "cluster", "shovel-type": "dynamic", "shovel-name": "s", "shovel-vhost": "/",
        "src-uri": "amqp://source", "dest-uri": "amqp://destination", "src-queue": "from", "dest-queue": "to",
    }  # fmt: skip


def test_a_filter_removes_what_it_does_not_accept() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to", filter_headers={"k": "v"})
    site.publish("from", b"a", headers={"k": "v"})
    site.publish("from", b"b", headers={"k": "w"})
    assert site.take("to") == [b"a"]
    assert (site.ready("from"), site.status().counters.dropped) == (0, 1)


def started_with_positions() -> Site:
    """A site whose brokers announce that they know positions, as Warren does."""
    site = started()
    for broker in site.network.brokers.values():
        broker.server.settings.handshake.server_properties[POSITIONS_CAPABILITY] = True
        # What they announce is made anew.
        broker.server.offer.rename_cluster("c")
    return site


def test_exactly_once_passes_positions_on_and_leaves_the_message_as_it_was() -> None:
    site = started_with_positions()
    site.shovel(src_queue="from", dest_queue="to", exactly_once=True, filter_headers={"k": "v"})
    status = site.status()
    assert (status.delivery, status.delivery_reason) == (Guarantee.EXACTLY_ONCE, "")
    properties = BasicProperties(headers={"k": "v", "x-warren-position": 1})
    site.publish("from", b"a", b"equal", headers=properties.headers)
    site.publish("from", b"b", headers={"k": "w"})
    assert site.messages("to") == [(b"a", properties), (b"equal", properties)]
    assert (site.ready("from"), site.status().counters.dropped) == (0, 1)


def test_exactly_once_is_at_least_once_if_a_broker_does_not_know_positions() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to", exactly_once=True)
    status = site.status()
    assert status.delivery is Guarantee.AT_LEAST_ONCE
    assert status.delivery_reason == (
        "the source and the destination are not Warren, or of a version without message positions"
    )
    site.publish("from", b"a")
    assert site.messages("to") == [(b"a", BasicProperties())]


def test_a_shovel_without_confirms_delivers_at_most_once() -> None:
    site = started_with_positions()
    site.shovel(src_queue="from", dest_queue="to", ack_mode="on-publish")
    assert site.status().delivery is Guarantee.AT_MOST_ONCE


def test_one_shovel_that_fails_leaves_the_others_running() -> None:
    site = started()
    site.network.refusals["nowhere"] = "connection refused"
    site.shovel("broken", src_uri="amqp://nowhere", src_queue="from", dest_queue="to")
    site.shovel(src_queue="from", dest_queue="to")
    site.publish("from", b"a")
    assert site.take("to") == [b"a"]
    states = {key.name: status.state for key, status in site.links.statuses().items()}
    assert states == {"broken": LinkState.TERMINATED, "s": LinkState.RUNNING}


def test_a_shovel_that_cannot_run_is_shown_with_the_reason_until_it_is_changed() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to", dest_uri=[])
    assert (site.status().state, site.status().reason) == (LinkState.TERMINATED, "dest-uri has no address")
    site.network.pass_time(3_600_000)
    assert site.network.dialed == []
    site.shovel(src_queue="from", dest_queue="to")
    assert site.status().state is LinkState.RUNNING
    site.shovel(src_queue="from", dest_queue="to", src_uri=[])
    site.clear()
    assert site.links.statuses() == {}


def static(**more: object) -> ShovelSettings:
    """A shovel as advanced.config defines it, from a queue that it declares."""
    source = ShovelSource(uris=("amqp://source",), queue="", **more)  # type: ignore[arg-type]
    return ShovelSettings(
        name=NAME,
        vhost=STATIC_VHOST,
        user=OPERATOR,
        definition=ShovelDefinition(
            source=source,
            destination=ShovelDestination(
                uris=("amqp://destination",), exchange="", exchange_key="to", adds_forward_headers=True
            ),
        ),
        source_declarations=(
            methods.ExchangeDeclare(exchange="x", type="fanout"),
            methods.QueueDeclare(queue="from", durable=True),
            methods.QueueBind(exchange="x"),
        ),
        destination_declarations=(methods.QueueDeclare(queue="to", durable=True),),
    )


def test_the_declarations_of_a_static_shovel_are_made_in_order_and_the_last_queue_is_the_source() -> None:
    site = Site(static())
    site.shovels.start()
    site.network.exchange()
    site.publish("", b"a", exchange="x")
    [(body, properties)] = site.messages("to")
    assert body == b"a"
    [entry] = (properties.headers or {})["x-shovelled"]
    assert list(entry) == ["shovelled-by", "shovel-type", "shovel-name", "src-uri", "dest-uri"]
    # The number of messages at the source is asked for on a channel of its own.
    site.network.pass_time(10_000)
    status = site.links.statuses()[STATIC]
    assert (status.state, status.source_ready) == (LinkState.RUNNING, 0)


def test_a_static_shovel_that_has_moved_its_number_of_messages_begins_anew() -> None:
    site = Site(static(delete_after=2))
    site.shovels.start()
    site.network.exchange()
    site.publish("", b"a", b"b", b"c", exchange="x")
    assert site.take("to") == [b"a", b"b"]
    assert site.links.statuses()[STATIC].state is LinkState.STOPPED
    site.network.pass_time(4_999)
    assert site.take("to") == []
    site.network.pass_time(1)
    assert site.take("to") == [b"c"]
    assert site.links.statuses()[STATIC].state is LinkState.RUNNING
    site.publish("", b"d", exchange="x")
    drive(site.links.stop())
    site.network.pass_time(10_000)
    assert site.links.statuses() == {}


def test_all_shovels_stop_together() -> None:
    site = started()
    site.shovel(src_queue="from", dest_queue="to")
    site.shovel("t", src_queue="from", dest_queue="to")
    stopped: list[bool] = []

    async def stop() -> None:
        await site.links.stop()
        stopped.append(True)

    drive(stop())
    site.network.exchange()
    assert stopped
    assert site.links.statuses() == {}


def test_a_shovel_of_a_deleted_user_ends_and_does_not_run_for_a_new_user_of_that_name() -> None:
    site = started()
    pol = PutUser(name="pol", password_hash=b"", hashing_algorithm="", tags=("policymaker",))
    site.local.apply(pol)
    site.shovel(user="pol", src_queue="from", dest_queue="to")
    assert site.status().state is LinkState.RUNNING
    for command in (RemoveUser(name="pol"), pol):
        site.local.apply(command)
        site.network.exchange()
        assert site.status().state is LinkState.TERMINATED
        assert site.status().reason == "user 'pol', who has set it, is deleted: it has to be set again"
    site.shovel(user="pol", src_queue="from", dest_queue="to")
    assert site.status().state is LinkState.RUNNING
