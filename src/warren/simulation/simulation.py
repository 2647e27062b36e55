"""One run of the simulated broker: performs actions, and verifies what clients were promised."""

import errno
import random
from collections.abc import Callable, Sequence

from msgspec import Struct

from warren.limits import WORK_PER_TURN_MAX
from warren.limits_raft import DEAD_LETTERS_RETRIED_MS
from warren.simulation.actions import Action, Kind
from warren.simulation.client import SimulatedClient
from warren.simulation.client_actions import ClientActions
from warren.simulation.dead_letter_chains import VHOST
from warren.simulation.history import History, Tally
from warren.simulation.inspector import Inspector
from warren.simulation.machine import SimulatedMachine
from warren.simulation.metadata_check import MetadataCheck
from warren.simulation.network import SimulatedNetwork
from warren.simulation.operator_actions import OperatorActions
from warren.simulation.queue_history import QueueHistory
from warren.simulation.simulated_clock import SimulatedClock
from warren.simulation.topology import Topology
from warren.simulation.violation import Violation
from warren.store.disk import CreateFile, SyncFile, WriteFile

CLIENT_COUNT = 4
_BEGIN_MS = 1_700_000_000_000
# A run that is not at rest after so many steps never will be.
_SETTLE_STEPS_MAX = 200_000
# A handshake that is not complete after so many steps may be completed later.
_HANDSHAKE_STEPS_MAX = 200
# A turn may do this much: the frames of one read, a few effects of each, and a margin.
TURN_WORK_MAX = 2 * WORK_PER_TURN_MAX


class RunOutcome(Struct, kw_only=True):
    """What a run has survived."""

    tally: Tally
    crashes: int
    restarts: int
    stops: int
    cuts: int
    turns: int
    turn_work_max: int
    virtual_ms: int


class Simulation:
    """A broker, its clients and its history; `run` performs actions."""

    def __init__(self, topology: Topology) -> None:
        self._chance = random.Random(0)
        self._topology = topology
        self._clock = SimulatedClock(_BEGIN_MS)
        # The latest time that it has shown.
        self._latest = _BEGIN_MS
        self.machine = SimulatedMachine(self._chance, self._clock, topology.definitions)
        self.machine.on_restart = self._restarted
        self.history = History(topology.queues, topology.exchanges)
        self._network = SimulatedNetwork(self.machine, self._chance)
        vhosts = list(dict.fromkeys(queue.vhost for queue in topology.queues)) or [VHOST]
        self._clients = [
            SimulatedClient(f"client{number}", self.history, vhosts[number % len(vhosts)])
            for number in range(max(CLIENT_COUNT, len(vhosts)))
        ]
        self.history.now = self._clock.now
        self._actions = ClientActions(self._chance, self.history)
        self._operator = OperatorActions(self._chance, self.machine)
        self._metadata_check = MetadataCheck(self.machine, topology.definitions)
        self._inspector = Inspector(self.history, self._network, self._settle)
        self._crashes = self._restarts = self._stops = self._cuts = 0

    def run(self, actions: Sequence[Action]) -> RunOutcome:
        """Perform `actions`, then verify everything. Raises Violation."""
        self._guarded(self._start)
        for action in actions:
            self._guarded(lambda action=action: self.perform(action))  # type: ignore[misc]
        self._guarded(self._finish)
        return RunOutcome(
            tally=self.history.tally,
            crashes=self._crashes,
            restarts=self._restarts,
            stops=self._stops,
            cuts=self._cuts,
            turns=self.machine.turn_count,
            turn_work_max=self.machine.turn_work_max,
            virtual_ms=self._clock.now - _BEGIN_MS,
        )

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do `step`; an unexpected exception is a violation too."""
        try:
            step()
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"unexpected {type(error).__name__}: {error}") from error
        running = self.machine.running
        for report in [*self.machine.past_reports, *(running.reports if running is not None else [])]:
            raise Violation(f"unexpected error in the broker: {report}")

    # --- start and end --------------------------------------------------------------------------------

    def _start(self, before: set[str] | None = None) -> None:
        """Start the broker, which must have the metadata that it had `before`."""
        self._heal()
        self.machine.start()
        self._metadata_check.after_start(before)
        for queue in self.history.queues:
            if queue.specification.is_defined:
                queue.defined()

    def _finish(self) -> None:
        """Acknowledge all there is, cut the power, and verify that nothing of it comes back."""
        self._chance.seed(0)
        self._inspect(is_acknowledged=False)
        self._crash(is_power_lost=True)
        self._inspect(is_acknowledged=True)
        self._crash(is_power_lost=True)
        self._inspect(is_acknowledged=False)
        self._stop()
        if self.machine.turn_work_max > TURN_WORK_MAX:
            raise Violation(f"a turn did {self.machine.turn_work_max} pieces of work")

    def _heal(self) -> None:
        for disk in self.machine.disks:
            disk.is_full = False
            disk.fault = None

    # --- actions --------------------------------------------------------------------------------------

    def perform(self, action: Action) -> None:
        """Perform `action`, and let some of what it causes happen."""
        self._chance.seed(action.seed)
        client = self._clients[action.client % len(self._clients)]
        if not self._perform_on_broker(action, client) and self._is_ready(client):
            queues = [one for one in self.history.queues if one.specification.vhost == client.vhost]
            if queues:
                self._perform_on_queue(action, client, queues[action.queue % len(queues)])
        self._progress(self._chance.choice((0, 1, 4, 20)))

    def _perform_on_queue(self, action: Action, client: SimulatedClient, queue: QueueHistory) -> None:
        """Perform `action`; as a rule, a queue that is not there is declared before."""
        if action.kind is Kind.OPERATE:
            self._operator.perform(queue)
            return
        is_missing = not queue.exists and self._actions.can_declare(client, queue)
        if is_missing and action.kind is not Kind.DELETE and self._chance.random() < 0.9:
            self._actions.declare(client, queue)
            self._progress(20)
        self._actions.perform(action, client, queue)

    def _is_ready(self, client: SimulatedClient) -> bool:
        """Connect `client` if it is not connected; True if its connection is open."""
        if not client.is_connected:
            self._network.connect(client)
            for _ in range(_HANDSHAKE_STEPS_MAX):
                if client.is_open:
                    break
                self._progress(1)
        return client.is_open

    def _perform_on_broker(self, action: Action, client: SimulatedClient) -> bool:
        """Perform an action that needs no queue; False if it does."""
        match action.kind:
            case Kind.CONNECT:
                self._is_ready(client)
            case Kind.CUT:
                self._cuts += client.is_connected
                self._network.cut(client)
            case Kind.CLOSE:
                if client.is_open:
                    client.close()
            case Kind.PASS:
                self._progress(20 * action.count)
            case Kind.SETTLE:
                self._settle()
            case Kind.TIME:
                self._pass_time(action.count * 700)
            case Kind.JUMP:
                self._set_clock(self._clock.now + self._chance.choice((1_000, 60_000, 3_600_000)))
                self._pass_time(0)
            case Kind.FILL_DISK | Kind.EMPTY_DISK:
                for disk in self.machine.disks:
                    disk.is_full = action.kind is Kind.FILL_DISK
            case Kind.FAIL_DISK:
                disk = self._chance.choice(self.machine.disks)
                disk.fault = (self._chance.choice((CreateFile, WriteFile, SyncFile)), errno.EIO)
            case Kind.KILL | Kind.CUT_POWER:
                self._crash(is_power_lost=action.kind is Kind.CUT_POWER)
            case Kind.STOP:
                self._stop_and_start()
            case Kind.POLICY:
                if any(not queue.specification.is_defined for queue in self.history.queues):
                    self._operator.change_policy()
            case Kind.TARGET:
                self._operator.change_target(self.history.queues)
            case Kind.INSPECT:
                self._inspect(is_acknowledged=False)
            case _:
                return False
        return True

    # --- what happens by itself -----------------------------------------------------------------------

    def _progress(self, steps: int) -> None:
        """Let up to `steps` things happen: octets pass, turns run, disks write."""
        for _ in range(steps):
            node = self.machine.node
            chosen = self._chance.random()
            if chosen < 0.5:
                self._network.pass_piece()
            elif chosen < 0.8:
                node.run_turn()
                self._network.collect()
            else:
                node.write(self._chance.choice((1, 2, None)))
                self._network.collect()

    def _set_clock(self, now: int) -> None:
        self._clock.now = self.history.now = now
        self._latest = max(self._latest, now)

    def _pass_time(self, ms: int) -> None:
        end = self._clock.now + ms
        while True:
            node = self.machine.node
            due = node.next_timer()
            self._set_clock(max(self._clock.now, min(end, end if due is None else due)))
            node.run_timers()
            self._network.expire()
            if self._clock.now >= end:
                return
            self._progress(10)

    @property
    def _is_at_rest(self) -> bool:
        node = self.machine.node
        return self._network.is_quiet and node.is_idle and node.is_serving

    def _settle(self) -> None:
        """Let everything happen, unless the disk is full: then all is written, and nothing is under way."""
        if any(disk.is_full for disk in self.machine.disks):
            return
        for step in range(_SETTLE_STEPS_MAX):
            node = self.machine.node
            self._network.collect()
            while node.run_turn():
                # What one turn has written counts as its own.
                self._network.collect()
            node.write()
            if self._network.pass_piece():
                continue
            if self._is_at_rest:
                self.history.synced()
                self._metadata_check.against_log()
                return
            if step % 4 == 3:
                self._pass_time(5)
        raise Violation("the broker does not come to rest")

    # --- crashes --------------------------------------------------------------------------------------

    def _crash(self, *, is_power_lost: bool) -> None:
        self._crashes += 1
        before = self._metadata_check.before_crash()
        if is_power_lost:
            self.machine.cut_power()
        else:
            self.machine.kill()
        self._network.cut_all()
        self.history.crashed(is_power_lost=is_power_lost)
        self._set_clock(self._clock.now + self._chance.choice((0, 500, -60_000)))
        self._start(before)

    def _stop(self) -> set[str] | None:
        """Stop the broker; returns the metadata that it must have when it starts again."""
        self._stops += 1
        self._heal()
        self._network.cut_all()
        self._settle()
        before = self._metadata_check.before_crash()
        self.machine.stop()
        self.history.crashed(is_power_lost=False)
        return before

    def _stop_and_start(self) -> None:
        before = self._stop()
        self._start(before)

    def _restarted(self, vhost: str) -> None:
        """A virtual host has lost what was not synced."""
        self._restarts += 1
        self.history.crashed(is_power_lost=True, is_restart=True)

    # --- what must be true ------------------------------------------------------------------------------

    def _inspect(self, *, is_acknowledged: bool) -> None:
        """Read all messages of all queues as a client, and compare them with the history."""
        self._heal()
        if any(client.is_open for client in self._clients):
            self._settle()
            self._inspector.inspect_private(self._clients)
        self._network.cut_all()
        self._settle()
        delay_max = max(queue.specification.delays_ms[1] for queue in self.history.queues)
        if self._operator.mend_targets(self.history.queues):
            # What a target has refused is sent again.
            delay_max = max(delay_max, DEAD_LETTERS_RETRIED_MS)
            self._settle()
        if delay_max:
            # What comes back waits at most so long, by the latest time that the clock has shown.
            self._pass_time(self._latest + delay_max - self._clock.now)
            self._settle()
        self._inspector.inspect(is_acknowledged=is_acknowledged)
