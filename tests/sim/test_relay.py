"""Two brokers, a link between them, and a network, in one thread, driven by seeds.

The network passes bytes in pieces of any size and with any delay, cuts connections at any byte, and refuses
new ones for a while. Either broker crashes: its connections vanish; what it had confirmed stays, and what it
had received after that may be lost, the newest first; acknowledgements of the source may be lost as well.
Alarms hold the destination back, and the link is restarted and stopped as planned.

In the end every message that the source had is at the destination, at least once and nothing else. First
arrivals are in the order of the source. Without a cut, a crash or an alarm there are no duplicates, however
often the link is restarted and stopped.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from tests.clock import ManualClock
from tests.seeds import SEEDS
from tests.unit.client.broker_pair import BrokerPair
from tests.unit.session.client import Broker, Client, publication

from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import ClientLogin
from warren.client.uri import Target
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.relay.attempts import LinkAttempts
from warren.relay.dialer import Dialer
from warren.relay.endpoint import Endpoint
from warren.relay.link import Link, LinkDependencies
from warren.relay.link_run import LinkPlan, LinkRun, LinkSettings
from warren.relay.status import LinkKey, LinkKind, LinkState
from warren.wire import methods

STEPS = 250
MESSAGES_MAX = 60
# After the last fault everything must be at the destination within this time (simulated ms).
HEALED_MS_MAX = 200_000
# The end that has not seen a cut itself learns of it within this time (ms), before the link reconnects.
CUT_NOTICED_MS_MAX = 800
PREFETCHES = (0, 1, 5, 1000)
# Weights of the faults, of which each seed has one row: none, cuts, crashes, all.
FAULTS = (
    {},
    {"cut": 4, "refuse": 2, "alarm": 3},
    {"crash": 3, "alarm": 3},
    {"cut": 4, "refuse": 2, "crash": 3, "alarm": 3},
)


class Wire:
    """One connection: the bytes under way in both directions, until it is cut or closed."""

    def __init__(self, host: str, pair: BrokerPair) -> None:
        self.host = host
        self.pair = pair
        self.to_broker = bytearray()
        self.to_client = bytearray()

    def collect(self) -> None:
        """Take the output of both ends."""
        self.to_broker += b"".join(bytes(part) for part in self.pair.client.take_output())
        self.to_client += b"".join(bytes(part) for part in self.pair.server.take_output())
        self.pair.client.output_written()
        self.pair.server.output_written()

    def deliver_to_broker(self, size: int) -> None:
        if not self.pair.server.is_reading_paused:
            data = bytes(self.to_broker[:size])
            del self.to_broker[:size]
            self.pair.server.receive(data)
            while self.pair.server.has_more:
                self.pair.server.process_more()

    def deliver_to_client(self, size: int) -> None:
        if not self.pair.client.is_reading_paused:
            data = bytes(self.to_client[:size])
            del self.to_client[:size]
            self.pair.client.receive(data)
            while self.pair.client.has_more:
                self.pair.client.process_more()


class QueueToQueue(LinkPlan):
    """Forwards the queue `from` to the queue `to`, and records what each run has published."""

    def __init__(self) -> None:
        self.run: LinkRun | None = None
        self.published: list[bytes] = []

    async def set_up(self, run: LinkRun) -> None:
        self.run = run
        self.published = []
        await run.connect_destination()
        publishing = await run.open_destination_channel()
        await publishing.call(methods.QueueDeclare(queue="to"), methods.QueueDeclareOk)
        await run.connect_source()
        consuming = await run.open_source_channel()
        await consuming.call(methods.QueueDeclare(queue="from"), methods.QueueDeclareOk)
        await run.consume("from")

    async def tear_down(self, run: LinkRun) -> None:
        """Both queues stay."""

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        self.published.append(message.body)
        return Message(encode_address("", "to"), message.property_list, message.content, 0)

    def completed(self) -> None:
        """The number of messages is not limited."""

    def confirmed(self) -> set[bytes]:
        """What the destination has confirmed to the current run; it confirms in order."""
        if self.run is None:
            return set()
        return set(self.published[: self.run.forwarder.confirmed_count])


class Simulation(Dialer):
    """The brokers `source` and `destination`, the network, and the link."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.faults = FAULTS[seed % len(FAULTS)]
        self.clock = ManualClock(1_000_000)
        self.brokers: dict[str, Broker] = {}
        self.wires: list[Wire] = []
        # Connections that were cut, with their host; the broker may not have noticed.
        self.cut_pairs: list[tuple[str, BrokerPair]] = []
        # Timers: when they are due, the order in which they were set, and what they do.
        self.timers: list[tuple[int, int, Callable[[], None]]] = []
        self.timer_count = 0
        self.refused_until: dict[str, int] = {"source": 0, "destination": 0}
        self.sent = 0
        self.fault_count = 0
        # All bodies that the destination has confirmed to any run.
        self.confirmed: set[bytes] = set()
        for host, queue in (("source", "from"), ("destination", "to")):
            self.start_broker(host, queue, [])
        self.plan = QueueToQueue()
        self.link = self.make_link()

    def make_link(self) -> Link:
        ends = {
            host: Endpoint(targets=(self.target(host), self.target(host)), name="link", user="guest")
            for host in self.brokers
        }
        attempts = LinkAttempts(self.clock.turn, self.after)
        dependencies = LinkDependencies(
            self, self.clock.turn, self.after, self.log, attempts, lambda link: None, lambda vhost: None
        )
        settings = LinkSettings(**ends, prefetch_count=self.chance.choice(PREFETCHES))
        return Link(LinkKey(LinkKind.SHOVEL, "/", "s"), self.plan, settings, dependencies)

    # --- the ports of the link ------------------------------------------------------------------

    def target(self, host: str) -> Target:
        return Target(host=host, port=5672, user="guest", password="guest", vhost="/", is_tls=False)

    async def dial(
        self, target: Target, name: str, user: str, listener: ConnectionListener
    ) -> ClientConnection:
        if self.clock.now < self.refused_until[target.host]:
            raise BrokerRefused("connection refused")
        pair = BrokerPair(
            self.brokers[target.host],
            ClientLogin(user="guest", password="guest", vhost="/", heartbeat_s=0),
            listener,
        )
        self.wires.append(Wire(target.host, pair))
        await pair.client.open()
        return pair.client

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.timer_count += 1
        self.timers.append((self.clock.now + delay_ms, self.timer_count, action))

    def log(self, level: str, text: str, fields: Mapping[str, object]) -> None:
        assert level != "error", text

    # --- brokers --------------------------------------------------------------------------------

    def start_broker(self, host: str, queue: str, bodies: list[bytes]) -> None:
        broker = self.brokers[host] = Broker()
        broker.clock.now = self.clock.now
        client = broker.client()
        client.ask(methods.QueueDeclare(queue=queue))
        client.send(*(publication(queue, body) for body in bodies))
        client.connection.lost()

    def content(self, host: str, queue: str) -> list[bytes]:
        """Take all ready messages of a queue."""
        client: Client = self.brokers[host].client()
        bodies = []
        while True:
            got = client.ask(methods.BasicGet(queue=queue, no_ack=True))[0]
            if isinstance(got.method, methods.BasicGetEmpty):
                client.connection.lost()
                return bodies
            bodies.append(got.body)

    def crash(self, host: str) -> None:
        """Restart a broker with what it had confirmed, and some of what it had not."""
        for wire in [wire for wire in self.wires if wire.host == host]:
            self.cut(wire, is_known=True)
        # Also the connections whose cut it has not noticed hold deliveries.
        for name, pair in self.cut_pairs:
            if name == host and not pair.server.is_finished:
                pair.server.lost()
        self.run_turns()
        if host == "source":
            bodies = self.content(host, "from")
            # Acknowledgements that were not yet on disk: the messages are there again, in their places.
            acked = [body for body in map(self.body, range(self.sent)) if body not in bodies]
            lost = acked[len(acked) - self.chance.randrange(min(len(acked), 4) + 1) :]
            self.start_broker(host, "from", sorted({*bodies, *lost}))
        else:
            bodies = self.content(host, "to")
            while bodies and bodies[-1] not in self.confirmed and self.chance.random() < 0.7:
                bodies.pop()
            self.start_broker(host, "to", bodies)
        self.refused_until[host] = self.clock.now + self.chance.randrange(3_000)

    @staticmethod
    def body(number: int) -> bytes:
        return b"%05d" % number

    def publish(self) -> None:
        client = self.brokers["source"].client()
        for _ in range(self.chance.randrange(1, 8)):
            if self.sent < MESSAGES_MAX:
                client.send(publication("from", self.body(self.sent)))
                self.sent += 1
        client.connection.lost()

    # --- the network ----------------------------------------------------------------------------

    def cut(self, wire: Wire, *, is_known: bool = False) -> None:
        """Cut a connection: one end notices at once (the broker, if it crashes), and the other soon.

        Bytes under way are lost.
        """
        self.fault_count += 1
        # A part of what was under way arrives.
        wire.deliver_to_broker(self.chance.randrange(len(wire.to_broker) + 1))
        wire.deliver_to_client(self.chance.randrange(len(wire.to_client) + 1))
        self.confirmed |= self.plan.confirmed()
        self.wires.remove(wire)
        self.cut_pairs.append((wire.host, wire.pair))
        ends: list[Callable[[], None]] = [wire.pair.server.lost, wire.pair.client.lost]
        if not is_known:
            self.chance.shuffle(ends)
        ends[0]()
        self.after(self.chance.randrange(CUT_NOTICED_MS_MAX), ends[1])

    def pass_bytes(self) -> None:
        """Deliver a piece in one direction of one connection."""
        for wire in list(self.wires):
            wire.collect()
            if wire.pair.client.is_finished and not wire.to_broker:
                wire.pair.server.lost()
                self.wires.remove(wire)
        if not self.wires:
            return
        wire = self.chance.choice(self.wires)
        size = self.chance.choice((1, 7, 100, 100_000))
        if self.chance.random() < 0.5:
            wire.deliver_to_broker(size)
        else:
            wire.deliver_to_client(size)
        self.confirmed |= self.plan.confirmed()
        wire.collect()

    def run_turns(self) -> None:
        for broker in self.brokers.values():
            while broker.turns:
                broker.turn()

    def pass_time(self, ms: int) -> None:
        self.clock.now += ms
        for broker in self.brokers.values():
            broker.clock.now = self.clock.now
        for timer in sorted(self.timers):
            if timer[0] <= self.clock.now:
                self.timers.remove(timer)
                timer[2]()
        for wire in list(self.wires):
            wire.pair.client.expire()
            wire.pair.server.expire()
        self.run_turns()

    # --- the run --------------------------------------------------------------------------------

    def step(self) -> None:
        for _ in range(self.chance.randrange(1, 12)):
            self.pass_bytes()
        self.pass_time(self.chance.choice((0, 1, 10, 200)))
        weights = {"nothing": 60, "publish": 12, "restart": 1, "stop": 1, **self.faults}
        (event,) = self.chance.choices(list(weights), list(weights.values()))
        if event == "publish":
            self.publish()
        elif event == "alarm":
            self.fault_count += 1
            self.brokers["destination"].block(self.chance.choice(("", "low on memory")))
        elif event == "restart":
            self.link.restart()
        elif event == "stop":
            drive(self.link.stop())
            self.link.start()
        elif event == "cut" and self.wires:
            self.cut(self.chance.choice(self.wires))
        elif event == "refuse":
            host = self.chance.choice(list(self.refused_until))
            self.refused_until[host] = self.clock.now + self.chance.randrange(5_000)
        elif event == "crash":
            self.crash(self.chance.choice(list(self.brokers)))

    def heal(self) -> None:
        """Let everything pass until all is at the destination."""
        self.refused_until = dict.fromkeys(self.refused_until, 0)
        self.brokers["destination"].block("")
        end = self.clock.now + HEALED_MS_MAX
        while not self.is_done():
            assert self.clock.now < end, f"not all arrived: {self.link.status()}"
            for _ in range(30):
                self.pass_bytes()
            self.pass_time(20)

    def is_done(self) -> bool:
        status = self.link.status()
        if self.link.state is not LinkState.RUNNING or status.unconfirmed or status.pending:
            return False
        is_quiet = not any(wire.to_broker or wire.to_client for wire in self.wires)
        return is_quiet and self.depth() == 0

    def depth(self) -> int:
        """The number of messages that are ready in the source."""
        client = self.brokers["source"].client()
        answer = client.ask(methods.QueueDeclare(queue="from"))[0].method
        client.connection.lost()
        assert isinstance(answer, methods.QueueDeclareOk)
        return answer.message_count

    def run(self) -> None:
        self.link.start()
        for _ in range(STEPS):
            self.step()
        self.heal()
        arrived = self.content("destination", "to")
        expected = [self.body(number) for number in range(self.sent)]
        assert list(dict.fromkeys(arrived)) == expected
        duplicates = {body: count for body, count in Counter(arrived).items() if count > 1}
        assert self.fault_count or not duplicates
        drive(self.link.stop())
        self.heal_until_stopped()
        assert self.content("source", "from") == []

    def heal_until_stopped(self) -> None:
        for _ in range(10_000):
            if self.link.state is LinkState.STOPPED:
                return
            self.pass_bytes()
            self.pass_time(1)
        raise AssertionError(self.link.status())


@pytest.mark.seeds(2 * SEEDS)
def test_every_message_arrives_in_order_whatever_is_cut_or_crashes(seed: int) -> None:
    Simulation(seed).run()
