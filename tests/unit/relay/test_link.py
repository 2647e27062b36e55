"""A link: its states, its back-off, its addresses, and what it leaves behind."""

from tests.unit.relay.network import Network, endpoint
from tests.unit.session.client import Broker, publication

from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.relay.link_run import LinkPlan, LinkRun
from warren.relay.status import LinkState
from warren.wire import methods


class QueueToQueue(LinkPlan):
    """Forwards the queue `from` to the queue `to`."""

    def __init__(self, remaining: int = -1) -> None:
        self.remaining = remaining
        self.torn_down = 0
        self.completions = 0

    async def set_up(self, run: LinkRun) -> None:
        await run.connect_destination()
        publishing = await run.open_destination_channel()
        await publishing.call(methods.QueueDeclare(queue="to"), methods.QueueDeclareOk)
        await run.connect_source()
        consuming = await run.open_source_channel()
        await consuming.call(methods.QueueDeclare(queue="from"), methods.QueueDeclareOk)
        run.forwarder.remaining = self.remaining
        await run.consume("from")

    async def tear_down(self, run: LinkRun) -> None:
        self.torn_down += 1

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        return Message(encode_address("", "to"), message.property_list, message.content, 0)

    def completed(self) -> None:
        self.completions += 1


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
        answer = self.network.brokers[host].client().ask(methods.QueueDeclare(queue=queue))[0].method
        assert isinstance(answer, methods.QueueDeclareOk)
        return answer.message_count

    def received(self) -> list[bytes]:
        """Take the messages of the destination."""
        client = self.network.brokers["destination"].client()
        client.ask(methods.QueueDeclare(queue="to"))
        client.send()
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
    site.start()
    pauses = []
    for _ in range(8):
        status = site.link.status()
        pauses.append((status.next_attempt_at - status.since) // 1000)
        site.network.pass_time(status.next_attempt_at - site.network.clock.now)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    site.network.refusals.clear()
    site.network.pass_time(30_000)
    assert site.link.state is LinkState.RUNNING
    assert site.link.status().counters.restarts == 9


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
    assert site.link.status().reason == "all messages it was asked for were forwarded"
