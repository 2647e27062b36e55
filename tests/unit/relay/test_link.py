"""A link: its states, its back-off, its addresses, and what it leaves behind."""

import pytest
from tests.unit.relay.network import Network, endpoint
from tests.unit.session.client import Broker, publication

from warren.client.answer import Answer
from warren.limits import FRAME_SIZE_MAX
from warren.limits_relay import LINK_SETTLE_MS, REFUSAL_PAUSE_MAX_MS, SOURCE_COUNTED_MS
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.relay.explanation import explain
from warren.relay.link_filter import LinkFilter
from warren.relay.link_run import LinkPlan, LinkRun
from warren.relay.links import Links
from warren.relay.status import Hold, LinkState
from warren.wire import methods
from warren.wire.properties import BasicProperties
from warren.wire.table import Table


class QueueToQueue(LinkPlan):
    """Forwards the queue `from` to the queue `to`."""

    def __init__(self, remaining: int = -1, arguments: Table | None = None) -> None:
        self.remaining = remaining
        # The arguments of the queue `to`, and of the consumer.
        self.arguments = arguments or {}
        self.consumer_arguments: Table = {}
        self.torn_down = 0
        self.run: LinkRun | None = None
        self.completions = 0
        # The part that raises an exception, and what tearing down waits for.
        self.broken = ""
        self.torn: Answer[None] | None = None

    def _maybe_raise(self, part: str) -> None:
        if part == self.broken:
            raise KeyError(part)

    async def set_up(self, run: LinkRun) -> None:
        self._maybe_raise("at once")
        self.run = run
        await run.connect_destination()
        self._maybe_raise("set up")
        publishing = await run.open_destination_channel()
        await publishing.call(
            methods.QueueDeclare(queue="to", arguments=self.arguments), methods.QueueDeclareOk
        )
        await run.connect_source()
        consuming = await run.open_source_channel()
        await consuming.call(methods.QueueDeclare(queue="from"), methods.QueueDeclareOk)
        run.forwarder.remaining = self.remaining
        await run.consume("from", self.consumer_arguments)

    async def tear_down(self, run: LinkRun) -> None:
        self.torn_down += 1
        if self.torn is not None:
            await self.torn
        self._maybe_raise("tear down")

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        self._maybe_raise("transform")
        return Message(encode_address("", "to"), message.property_list, message.content, 0)

    def completed(self) -> None:
        self.completions += 1


class LeavesObjects(QueueToQueue):
    """The same, with objects that tearing down removes."""

    leaves_objects = True


class Site:
    """Two brokers, and one link between them."""

    def __init__(self, plan: QueueToQueue | None = None, **settings: object) -> None:
        self.network = Network(source=Broker(), destination=Broker())
        self.plan = plan or QueueToQueue()
        self.link = self.network.link(self.plan, **settings)

    def start(self) -> "Site":
        self.link.start()
        self.network.exchange()
        return self

    def stop(self) -> None:
        drive(self.link.stop())
        self.network.exchange()

    def publish(self, *bodies: bytes) -> None:
        client = self.network.brokers["source"].client()
        client.ask(methods.QueueDeclare(queue="from"))
        client.send(*(publication("from", body) for body in bodies))
        self.network.exchange()

    def ready(self, host: str, queue: str) -> int:
        """The number of messages in `queue` that are not delivered."""
        answer = (
            self.network.brokers[host].client().ask(methods.QueueDeclare(queue=queue, passive=True))[0].method
        )
        assert isinstance(answer, methods.QueueDeclareOk)
        return answer.message_count

    def received(self) -> list[bytes]:
        """Take the messages of the destination."""
        client = self.network.brokers["destination"].client()
        bodies = []
        while True:
            got = client.ask(methods.BasicGet(queue="to", no_ack=True))[0]
            if isinstance(got.method, methods.BasicGetEmpty):
                return bodies
            bodies.append(got.body)


def test_a_link_forwards_in_order_and_acknowledges_after_the_confirm() -> None:
    site = Site().start()
    assert site.link.state is LinkState.RUNNING
    site.publish(b"1", b"2", b"3")
    assert site.received() == [b"1", b"2", b"3"]
    assert site.ready("source", "from") == 0
    site.stop()
    assert site.link.state is LinkState.STOPPED
    assert site.plan.torn_down == 1
    assert site.ready("source", "from") == 0
    assert site.network.pairs == []


def test_each_refused_address_is_named_in_the_reason_and_a_running_link_says_which_it_uses() -> None:
    site = Site(destination=endpoint("nowhere", "closed"))
    site.network.refusals["closed"] = "403 ACCESS_REFUSED"
    site.start()
    assert site.link.state is LinkState.TERMINATED
    assert site.link.status().reason == (
        "amqp://nowhere: connection refused; amqp://closed: 403 ACCESS_REFUSED"
    )
    assert "secret" not in repr(site.link.status())


def test_a_refused_link_tries_again_after_1_2_4_s_and_at_most_every_30_s() -> None:
    site = Site()
    site.network.refusals["destination"] = "no route"
    started = site.network.clock.now
    site.start()
    pauses = []
    for _ in range(8):
        status = site.link.status()
        pauses.append((status.next_attempt_at - status.since) // 1000)
        site.network.pass_time(status.next_attempt_at - site.network.clock.now)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    # It stands still since the first of these attempts.
    status = site.link.status()
    assert explain(status, site.network.clock.now).since == started
    site.network.refusals.clear()
    site.network.pass_time(30_000)
    assert site.link.state is LinkState.RUNNING
    assert site.link.status().counters.restarts == 9
    assert site.link.status().down_since == 0


def test_a_cut_connection_is_made_again_and_nothing_is_lost() -> None:
    site = Site().start()
    for host in ("source", "destination"):
        site.network.cut(host)
        assert site.link.state is LinkState.TERMINATED
        assert site.link.status().reason == f"{host}: the connection to the broker was lost"
        site.publish(host.encode())
        site.network.pass_time(2_000)
        assert site.link.state is LinkState.RUNNING
    assert site.received() == [b"source", b"destination"]


def test_a_link_that_worked_tries_again_soon_but_only_once_in_its_delay() -> None:
    site = Site(reconnect_delay_ms=30_000).start()
    pauses = []
    for _ in range(4):
        site.network.cut("source")
        status = site.link.status()
        pauses.append((status.next_attempt_at - status.since) // 1000)
        site.network.pass_time(status.next_attempt_at - site.network.clock.now)
        assert site.link.state is LinkState.RUNNING
    assert pauses == [1, 30, 1, 30]


def test_a_link_that_cannot_be_set_up_waits_for_its_delay() -> None:
    site = Site(reconnect_delay_ms=30_000)
    site.network.refusals["source"] = "no route"
    site.start()
    status = site.link.status()
    assert status.next_attempt_at - status.since == 30_000


def test_a_link_that_is_stopped_while_it_waits_stays_stopped() -> None:
    site = Site()
    site.network.refusals["source"] = "no route"
    site.start()
    site.stop()
    assert site.link.state is LinkState.STOPPED
    dialed = len(site.network.dialed)
    site.network.pass_time(60_000)
    assert len(site.network.dialed) == dialed
    assert site.plan.torn_down == 0


def test_a_restart_begins_at_once() -> None:
    site = Site(reconnect_delay_ms=0)
    site.network.refusals["source"] = "no route"
    site.start()
    site.network.pass_time(60_000)
    assert site.link.state is LinkState.TERMINATED
    assert site.link.status().next_attempt_at == 0
    site.network.refusals.clear()
    site.link.restart()
    site.network.exchange()
    assert site.link.state is LinkState.RUNNING
    site.link.restart()
    site.network.exchange()
    assert site.link.state is LinkState.RUNNING
    assert site.plan.torn_down == 0


def test_a_limited_link_forwards_so_many_and_then_stops() -> None:
    site = Site(QueueToQueue(remaining=2)).start()
    site.publish(b"1", b"2", b"3")
    assert site.received() == [b"1", b"2"]
    assert site.ready("source", "from") == 1
    assert site.link.state is LinkState.STOPPED
    assert site.plan.completions == 1
    assert site.plan.torn_down == 1
    assert site.link.status().reason == "all messages it was asked for were forwarded"


@pytest.mark.parametrize("part", ["at once", "set up", "transform"])
def test_a_broken_invariant_ends_the_run_and_is_tried_again(part: str) -> None:
    site = Site()
    site.plan.broken = part
    site.start()
    site.publish(b"1", b"2")
    assert site.link.state is LinkState.TERMINATED
    assert site.link.status().reason == "unexpected KeyError: see the log"
    assert site.network.log[0] == f"error: unexpected KeyError in shovel 's' of vhost '/': '{part}'"
    assert site.network.failed_in == ["/"]
    assert site.ready("source", "from") == 2
    site.plan.broken = ""
    site.network.pass_time(1_000)
    assert site.link.state is LinkState.RUNNING
    assert site.received() == [b"1", b"2"]


def test_a_link_is_not_torn_down_again_when_that_has_failed() -> None:
    plan = LeavesObjects()
    plan.broken = "tear down"
    site = Site(plan).start()
    site.stop()
    # No time has passed.
    assert site.link.state is LinkState.STOPPED
    assert plan.torn_down == 1


def test_a_link_whose_plan_cannot_be_torn_down_stops() -> None:
    site = Site().start()
    site.plan.broken = "tear down"
    site.stop()
    assert site.link.state is LinkState.STOPPED
    assert site.network.log == ["error: unexpected KeyError in shovel 's' of vhost '/': 'tear down'"]


def test_a_stop_waits_for_the_plan_and_for_confirms_only_so_long() -> None:
    site = Site().start()
    site.plan.torn = Answer()
    site.network.hold("destination")
    site.publish(b"1")
    assert site.link.status().unconfirmed == 1
    site.stop()
    assert site.link.state is LinkState.TERMINATED
    site.network.pass_time(LINK_SETTLE_MS)
    assert site.plan.torn_down == 1
    assert site.link.state is LinkState.TERMINATED
    site.network.pass_time(LINK_SETTLE_MS)
    site.network.release("destination")
    assert site.link.state is LinkState.STOPPED


def test_a_planned_stop_acknowledges_what_is_confirmed_meanwhile() -> None:
    site = Site().start()
    site.network.hold("destination")
    site.publish(b"1", b"2")
    site.stop()
    site.publish(b"3")
    assert site.link.state is LinkState.TERMINATED
    site.network.release("destination")
    assert site.link.state is LinkState.STOPPED
    assert site.ready("source", "from") == 1
    assert site.received() == [b"1", b"2"]


def test_a_refusing_queue_does_not_make_a_link_spin() -> None:
    site = Site(QueueToQueue(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})).start()
    site.publish(b"1", b"2", b"3")
    site.network.pass_time(20_000)
    status = site.link.status()
    assert status.hold is Hold.REFUSED
    assert status.blocked_status == "flow"
    assert 8 <= status.counters.rejected < 20
    assert site.received() == [b"1"]
    later = []
    for _ in range(2):
        site.network.pass_time(REFUSAL_PAUSE_MAX_MS)
        later += site.received()
    # What was refused is delivered again behind what waited.
    assert sorted(later) == [b"2", b"3"]
    assert site.ready("source", "from") == 0
    assert site.link.status().hold is Hold.NONE


def test_a_link_that_is_put_again_begins_after_the_old_one_has_ended() -> None:
    site = Site().start()
    links = Links("n")
    links.put(site.link)
    site.network.hold("destination")
    site.publish(b"1")
    successor = site.network.link(QueueToQueue())
    links.put(successor)
    site.network.exchange()
    assert links.all() == [successor]
    assert successor.state is LinkState.STOPPED
    status = links.status(successor.key)
    assert status is not None
    assert status.state is links.statuses()[successor.key].state is LinkState.STARTING
    assert links.restart(successor.key)
    site.network.exchange()
    assert successor.state is LinkState.STOPPED
    site.network.release("destination")
    assert site.link.state is LinkState.STOPPED
    assert successor.state is LinkState.RUNNING
    assert list(links.statuses()) == [successor.key]
    assert links.restart(successor.key)
    site.network.exchange()
    assert successor.status().counters.restarts == 1
    drive(links.stop())
    site.network.exchange()
    assert not links.restart(successor.key)
    site.network.exchange()
    assert successor.state is LinkState.STOPPED
    assert site.ready("source", "from") == 0


def test_the_next_attempt_begins_after_the_connections_of_the_last_are_closed() -> None:
    site = Site().start()
    site.network.hold("source")
    site.network.cut("destination")
    site.network.pass_time(5_000)
    assert site.link.state is LinkState.TERMINATED
    assert site.network.dialed == ["destination", "source"]
    site.network.release("source")
    site.network.pass_time(1_000)
    assert site.link.state is LinkState.RUNNING


def test_a_removed_link_is_stopped_and_forgotten() -> None:
    site = Site()
    links = Links("n")
    links.put(site.link)
    site.network.exchange()
    assert links.get(site.link.key) is site.link
    links.remove(site.link.key)
    site.network.exchange()
    assert links.get(site.link.key) is None
    assert site.link.state is LinkState.STOPPED


def test_a_connection_that_opens_after_the_stop_is_closed() -> None:
    site = Site()
    site.network.hold("destination")
    site.start()
    assert site.link.state is LinkState.STARTING
    site.stop()
    assert site.link.state is LinkState.STOPPED
    site.network.release("destination")
    assert site.network.pairs == []
    assert site.network.dialed == ["destination"]


def test_the_rate_and_the_filter_of_the_settings_are_those_of_the_forwarder() -> None:
    site = Site(rate_max=2, message_filter=LinkFilter("nothing", {})).start()
    site.publish(b"1")
    assert site.link.status().counters.dropped == 1
    assert site.ready("source", "from") == 0
    site = Site(rate_max=2).start()
    site.publish(b"1", b"2", b"3")
    assert site.link.status().hold is Hold.RATE
    assert site.received() == [b"1"]
    site.network.pass_time(1_100)
    assert site.received() == [b"2", b"3"]


def test_the_source_is_counted_now_and_then() -> None:
    site = Site(prefetch_count=2).start()
    assert site.link.status().source_ready == -1
    site.network.hold("destination")
    site.publish(b"1", b"2", b"3", b"4", b"5")
    site.network.pass_time(SOURCE_COUNTED_MS)
    status = site.link.status()
    assert (status.source_ready, status.source_counted_at) == (3, site.network.clock.now)
    site.network.release("destination")
    site.network.pass_time(SOURCE_COUNTED_MS)
    assert site.link.status().source_ready == 0


def test_messages_that_stay_in_a_stream_are_no_lag() -> None:
    plan = QueueToQueue()
    plan.consumer_arguments = {"x-stream-offset": "first"}
    site = Site(plan).start()
    site.publish(b"1", b"2", b"3")
    site.network.pass_time(2 * SOURCE_COUNTED_MS)
    assert site.link.status().source_ready == -1


def test_a_count_that_the_source_refuses_is_not_repeated_and_harms_nothing() -> None:
    site = Site().start()
    run = site.plan.run
    assert run is not None
    run.watch_source("unknown")
    site.network.pass_time(3 * SOURCE_COUNTED_MS)
    assert site.link.state is LinkState.RUNNING
    site.publish(b"1")
    assert site.received() == [b"1"]


def test_a_restart_is_the_reason_while_the_old_run_is_settled() -> None:
    site = Site().start()
    site.network.hold("destination")
    site.publish(b"1")
    site.link.restart()
    assert site.link.state is LinkState.TERMINATED
    assert site.link.status().reason == "it was restarted"
    site.network.release("destination")
    assert site.link.state is LinkState.RUNNING
    assert site.received() == [b"1"]


class Enlarging(QueueToQueue):
    """Adds to one message what no frame of the destination can hold."""

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        if message.body != b"2":
            return super().transform(message, is_redelivered)
        properties = BasicProperties(message_id="m", headers={"n": "x" * FRAME_SIZE_MAX})
        return Message(encode_address("", "to"), properties.encode_list(), message.content, 0)


@pytest.mark.parametrize("remaining", [-1, 3])
def test_a_message_that_no_frame_of_the_destination_can_hold_stops_the_link_with_its_name(
    remaining: int,
) -> None:
    site = Site(Enlarging(remaining), prefetch_count=10)
    site.publish(b"0", b"1", b"2", b"3")
    site.start()
    for _ in range(3):
        assert site.link.state is LinkState.TERMINATED
        reason = site.link.status().reason
        named = "a message (exchange '', routing key 'to', message-id 'm')"
        assert reason.startswith(f"destination: {named} has 131"), reason
        assert reason.endswith(" bytes of properties, and its frames hold 131052")
        site.network.pass_time(60_000)
    # What was before it is forwarded once, and nothing is lost.
    assert site.received() == [b"0", b"1"]
    site.stop()
    assert site.ready("source", "from") == 2
    assert site.plan.completions == 0
