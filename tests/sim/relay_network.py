"""The network between sites: connections whose bytes are passed in pieces, delayed and cut, in one thread.

Bytes of one connection stay in order; of two connections either may be ahead. A connection is cut at any
byte. Each end learns of that at a time of its own, until which it goes on, and reads a part of what was under
way.
"""

import random
from collections.abc import Callable, Sequence

from tests.sim.relay_site import Node, Site
from tests.unit.client.broker_pair import PEER
from tests.unit.session.client import CountingWake

from warren.client.answer import Answer
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import ClientLogin
from warren.client.uri import Target
from warren.relay.dialer import Dialer
from warren.session.connection import Connection
from warren.simulation.simulated_clock import SimulatedClock

# An end of a cut connection learns of it within this time (ms), which is less than the pause before a link
# connects again and the time in which a crashed broker starts, or sometimes long after that.
CUT_NOTICED_MS_MAX = 800
CUT_NOTICED_LATE_MS_MAX = 10_000
# Dialling takes at most this time (ms).
DIAL_MS_MAX = 50
# Whatever happens, all is at rest after so many pieces; a message that moves for ever would need more.
FLOW_PIECES_MAX = 20_000
# Class and method of basic.consume.
_CONSUME = b"\x00\x3c\x00\x14"
# Sizes of the pieces in which bytes pass.
PIECES = (1, 40, 300, 100_000)


class Wire:
    """One connection: both ends, and the bytes under way."""

    def __init__(
        self, client_node: Node, server_node: Node, login: ClientLogin, listener: ConnectionListener
    ) -> None:
        self.client_node = client_node
        self.server_node = server_node
        turn = client_node.clock.turn
        self.client = ClientConnection(login, turn, CountingWake(), listener)
        self.server = Connection(server_node.server, PEER, CountingWake())
        self.to_server = bytearray()
        self.to_client = bytearray()
        # Nothing passes until this time.
        self.held_until = 0
        # How often the client has begun to consume.
        self.consume_count = 0

    @property
    def is_local(self) -> bool:
        """True if both ends are the same node, so that it cannot be cut."""
        return self.client_node is self.server_node

    def collect(self) -> None:
        """Take the output of both ends."""
        sent = b"".join(bytes(part) for part in self.client.take_output())
        self.consume_count += sent.count(_CONSUME)
        self.to_server += sent
        self.to_client += b"".join(bytes(part) for part in self.server.take_output())
        self.client.output_written()
        self.server.output_written()

    @property
    def is_moving(self) -> bool:
        """True if bytes are under way that an end reads."""
        return bool(
            (self.to_server and not self.server.is_reading_paused)
            or (self.to_client and not self.client.is_reading_paused)
        )

    def deliver_to_server(self, size: int) -> None:
        """Have the broker read up to `size` bytes."""
        if not self.server.is_reading_paused and not self.server_node.is_over:
            data = bytes(self.to_server[:size])
            del self.to_server[:size]
            self.server.receive(data)
            while self.server.has_more:
                self.server.process_more()

    def deliver_to_client(self, size: int) -> None:
        """Have the client read up to `size` bytes."""
        if not self.client.is_reading_paused and not self.client_node.is_over:
            data = bytes(self.to_client[:size])
            del self.to_client[:size]
            self.client.receive(data)
            while self.client.has_more:
                self.client.process_more()


class Network:
    """All sites and the connections between them; `chance` decides what happens next."""

    def __init__(self, names: str, chance: random.Random, pieces: Sequence[int] = PIECES) -> None:
        """Start a site for each letter of `names`; bytes pass in `pieces`."""
        self._pieces = pieces
        self.chance = chance
        self.clock = SimulatedClock(1_000_000)
        self.wires: list[Wire] = []
        # What happens at a time, whatever has crashed meanwhile: the ends of cut connections, and starts.
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._timer_count = 0
        # Until when a site refuses connections.
        self.refused_until = dict.fromkeys(names, 0)
        # An end of a cut connection learns of it within this time (ms).
        self.noticed_ms_max = CUT_NOTICED_MS_MAX
        self.cut_count = 0
        self.crash_count = 0
        # The number of ends that have not noticed yet that their connection was cut.
        self.unnoticed_count = 0
        # How many steps of a disk `flow` performs at a time; None for all.
        self.flow_steps: int | None = None
        # How often bytes were passed or written, and what happens when that is `planned_step`.
        self.step_count = 0
        self.planned_step = 0
        self.planned: Callable[[], None] = lambda: None
        # Called at each step.
        self.each_step: Callable[[], None] = lambda: None
        # All nodes ever started.
        self.nodes: list[Node] = []
        self.sites = {name: Site(name, chance, self.clock, self._dialer) for name in names}
        for site in self.sites.values():
            self._start(site)

    # --- nodes --------------------------------------------------------------------------------------

    def running(self) -> list[Node]:
        """The nodes that are up."""
        return [site.running for site in self.sites.values() if site.running is not None]

    def _dialer(self, node: Node) -> Dialer:
        return _Dialer(self, node)

    def _start(self, site: Site) -> None:
        site.start()
        self.nodes.append(site.node)

    def crash(self, name: str) -> None:
        """Cut the power of a site, which starts again soon."""
        site = self.sites[name]
        if site.running is None:
            return
        self.crash_count += 1
        node = site.node
        site.cut_power()
        for wire in [wire for wire in self.wires if node in (wire.client_node, wire.server_node)]:
            self._cut(wire)
        down_ms = CUT_NOTICED_MS_MAX + self.chance.randrange(2_000)
        self._at(down_ms, lambda: self._start(site))

    # --- connections --------------------------------------------------------------------------------

    def connect(self, node: Node, target: Target, name: str, listener: ConnectionListener) -> Wire:
        """Connect `node` with the site that `target` names, or with itself. Raises BrokerRefused."""
        server = node if target.is_local else self.sites[target.host].running
        is_refused = not target.is_local and self.clock.now < self.refused_until[target.host]
        if server is None or is_refused or node.is_over:
            raise BrokerRefused("connection refused")
        login = ClientLogin(
            user="guest", password="guest", vhost=target.vhost, connection_name=name, heartbeat_s=0
        )
        wire = Wire(node, server, login, listener)
        self.wires.append(wire)
        return wire

    def remote_wires(self) -> list[Wire]:
        """The connections that can be cut."""
        return [wire for wire in self.wires if not wire.is_local]

    def cut(self, wire: Wire) -> None:
        """Cut a connection."""
        self.cut_count += 1
        self._cut(wire)

    def _cut(self, wire: Wire) -> None:
        wire.collect()
        self.wires.remove(wire)
        self.unnoticed_count += 2
        for end in (wire.client, wire.server):
            delay_ms = self.chance.choice((0, self.chance.randrange(self.noticed_ms_max)))
            if wire.client_node.is_over and end is wire.client:
                # So that no coroutine of the dead node is left in the middle of a call.
                delay_ms = 0
            self._at(delay_ms, lambda end=end: self._notice(wire, end))  # type: ignore[misc]
        self.run_timers()

    def _notice(self, wire: Wire, end: ClientConnection | Connection) -> None:
        """Have an end of a cut connection read a part of what was under way, and learn of its loss."""
        self.unnoticed_count -= 1
        if end is wire.client:
            wire.deliver_to_client(self.chance.randrange(len(wire.to_client) + 1))
            end.lost()
        elif not wire.server_node.is_over:
            wire.deliver_to_server(self.chance.randrange(len(wire.to_server) + 1))
            end.lost()

    # --- what happens -------------------------------------------------------------------------------

    def collect(self) -> list[Wire]:
        """Take the output of all connections; returns those on which bytes are under way."""
        for wire in list(self.wires):
            wire.collect()
            if wire.client.is_finished and not wire.to_server:
                wire.server.lost()
                self.wires.remove(wire)
        return [wire for wire in self.wires if wire.is_moving and wire.held_until <= self.clock.now]

    def pass_bytes(self) -> bool:
        """Deliver a piece in one direction of one connection; False if nothing is under way."""
        moving = self.collect()
        if not moving:
            return False
        self._count_step()
        wire = self.chance.choice(moving)
        size = self.chance.choice(self._pieces)
        is_to_client = bool(wire.to_client) and (not wire.to_server or self.chance.random() < 0.5)
        (wire.deliver_to_client if is_to_client else wire.deliver_to_server)(size)
        return True

    def write(self) -> None:
        """Perform some steps of one disk, or all of them."""
        running = self.running()
        if running:
            self._count_step()
            self.chance.choice(running).write(self.chance.choice((1, 2, None)))

    def _count_step(self) -> None:
        self.step_count += 1
        self.each_step()
        if self.step_count == self.planned_step:
            self.planned()

    def run_turns(self) -> None:
        """Run the turns of all nodes."""
        for node in self.running():
            node.run_turns()

    def pass_time(self, ms: int) -> None:
        """Advance the time, and run what is due."""
        self.clock.now += ms
        self.run_timers()
        for wire in list(self.wires):
            wire.client.expire()
            wire.server.expire()
        for node in self.running():
            node.run_timers()

    def run_timers(self) -> None:
        """Run the timers of the network that are due."""
        for timer in sorted(self._timers):
            if timer[0] <= self.clock.now:
                self._timers.remove(timer)
                timer[2]()

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._timer_count += 1
        self._timers.append((self.clock.now + delay_ms, self._timer_count, action))

    def heal(self) -> None:
        """End all faults: what is down starts, and everything passes."""
        self.refused_until = dict.fromkeys(self.refused_until, 0)
        for wire in self.wires:
            wire.held_until = 0

    def settle(
        self, is_done: Callable[[], bool], within_ms: int, explain: Callable[[], object] = lambda: ""
    ) -> None:
        """Let everything pass until nothing is under way and `is_done`, within a simulated time."""
        self.heal()
        end = self.clock.now + within_ms
        while not (self.is_quiet() and is_done()):
            assert self.clock.now < end, explain()
            self.flow()
            self.pass_time(20)

    def flow(self) -> None:
        """Pass all bytes, and perform all writes, as long as there are any."""
        pieces = 0
        while True:
            was_busy = False
            while self.pass_bytes():
                was_busy = True
                pieces += 1
                assert pieces < FLOW_PIECES_MAX, "it does not come to rest"
            for node in self.running():
                node.run_turns()
                if node.is_busy:
                    was_busy = True
                    self._count_step()
                    # The step may have been that at which the node crashes.
                    if not node.is_over:
                        node.write(self.flow_steps)
            if not was_busy:
                return

    def is_quiet(self) -> bool:
        """True if nothing is under way, and all that is cut was noticed."""
        return (
            not self._timers
            and not self.collect()
            and not any(wire.to_server or wire.to_client for wire in self.wires)
            and all(site.running is not None for site in self.sites.values())
            and all(node.is_idle for node in self.running())
        )

    def check_reports(self) -> None:
        """Verify that no node had an unexpected error."""
        for node in self.nodes:
            assert not node.reports
            assert not [text for level, text in node.link_log if level == "error"]


class _Dialer(Dialer):
    """The dialer of one node."""

    def __init__(self, network: Network, node: Node) -> None:
        self._network = network
        self._node = node

    async def dial(
        self, target: Target, name: str, user: str, listener: ConnectionListener
    ) -> ClientConnection:
        if not target.is_local:
            arrival: Answer[None] = Answer()
            delay_ms = self._network.chance.randrange(DIAL_MS_MAX)
            self._node.after(delay_ms, lambda: arrival.complete(None))
            await arrival
        wire = self._network.connect(self._node, target, name, listener)
        await wire.client.open()
        return wire.client
