"""One run of the simulated broker: performs actions, and verifies what clients were promised."""

import errno
import json
import random
from collections.abc import Callable, Sequence

from msgspec import Struct

from warren.journal.recovery import recover
from warren.limits import WORK_PER_TURN_MAX
from warren.metadata.commands import ClearPolicy, SetPolicy
from warren.metadata.definitions import definition_sections
from warren.metadata.machine import Metadata
from warren.simulation.actions import Action, Kind
from warren.simulation.client import SimulatedChannel, SimulatedClient
from warren.simulation.history import History, QueueHistory, Tally, Violation
from warren.simulation.machine import SimulatedMachine
from warren.simulation.network import SimulatedNetwork
from warren.simulation.simulated_clock import SimulatedClock
from warren.simulation.simulated_node import METADATA
from warren.simulation.topology import POLICED, VHOST, Topology
from warren.store.disk import CreateFile, SyncFile, WriteFile
from warren.wire import methods
from warren.wire.properties import BasicProperties

CLIENT_COUNT = 4
_BEGIN_MS = 1_700_000_000_000
# Channels of a client, by what they do.
_CONFIRMED, _UNCONFIRMED, _TRANSACTIONAL, _CONSUMING, _GETTING, _DECLARING = range(1, 7)
# A run that is not at rest after so many steps never will be.
_SETTLE_STEPS_MAX = 200_000
# A handshake that is not complete after so many steps may be completed later.
_HANDSHAKE_STEPS_MAX = 200
_SIZES = (8, 8, 60, 900, 5_000, 150_000)
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
        self.machine = SimulatedMachine(self._chance, self._clock, topology.definitions)
        self.machine.on_restart = self._restarted
        self.history = History(topology.queues)
        self._network = SimulatedNetwork(self.machine, self._chance)
        vhosts = list(dict.fromkeys(queue.vhost for queue in topology.queues)) or [VHOST]
        self._clients = [
            SimulatedClient(f"client{number}", self.history, vhosts[number % len(vhosts)])
            for number in range(max(CLIENT_COUNT, len(vhosts)))
        ]
        self._consumer_count = 0
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

    def _start(self) -> None:
        self._heal()
        self.machine.start()
        if self._topology.is_declared:
            for queue in self.history.queues:
                queue.exists = True

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
                self._clock.now += self._chance.choice((1_000, 60_000, 3_600_000))
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
            case Kind.INSPECT:
                self._inspect(is_acknowledged=False)
            case _:
                return False
        return True

    def _perform_on_queue(self, action: Action, client: SimulatedClient, queue: QueueHistory) -> None:
        if not queue.exists and action.kind is not Kind.DELETE and self._chance.random() < 0.9:
            self._declare(client, queue)
            self._progress(20)
        match action.kind:
            case Kind.DECLARE:
                self._declare(client, queue)
            case Kind.DELETE:
                self._delete(client, queue)
            case Kind.PURGE:
                channel = self._channel(client, _DECLARING)
                if channel is not None:
                    queue.purging(channel)
                    channel.call(
                        methods.QueuePurge(queue=queue.specification.name),
                        methods.QueuePurgeOk,
                        then=lambda _: queue.deleters.pop(channel, None),
                    )
            case Kind.POLICY:
                self._change_policy(action)
            case Kind.PUBLISH | Kind.PUBLISH_UNCONFIRMED:
                self._publish(action, client, [queue], ("", queue.specification.name))
            case Kind.FAN_OUT:
                if self._topology.fanout:
                    name = self._topology.fanout
                    bound = [one for one in self.history.queues if name in one.specification.bound_to]
                    self._publish(action, client, bound, (name, ""))
            case Kind.TRANSACTION:
                self._transact(action, client, queue)
            case Kind.GET:
                channel = self._channel(client, _GETTING)
                if channel is not None:
                    channel.get(queue)
            case Kind.CONSUME:
                self._consume(action, client, queue)
            case Kind.CANCEL:
                channel = client.channels.get(_CONSUMING)
                if channel is not None and channel.consumers and not channel.is_closing:
                    tag = self._chance.choice(list(channel.consumers))
                    channel.call(methods.BasicCancel(consumer_tag=tag), methods.BasicCancelOk)
            case Kind.CLOSE_CHANNEL:
                channel = client.channels.get(1 + action.count % _DECLARING)
                if channel is not None and not channel.is_closing:
                    channel.close()
            case _:
                self._answer(action, client)

    def _channel(self, client: SimulatedClient, number: int) -> SimulatedChannel | None:
        """The channel `number`, opened if need be; None while it is being closed."""
        channel = client.channel(number)
        return None if channel.is_closing else channel

    def _declare(self, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _DECLARING)
        if channel is None:
            return
        specification, epoch = queue.specification, queue.epoch
        declare = methods.QueueDeclare(
            queue=specification.name,
            durable=specification.durable,
            auto_delete=specification.auto_delete,
            exclusive=specification.exclusive,
            arguments=dict(specification.arguments),
        )
        last = len(specification.bound_to)

        def answered(number: int) -> None:
            if number == last:
                queue.declared(epoch)

        channel.call(declare, methods.QueueDeclareOk, then=lambda _: answered(0))
        for number, exchange in enumerate(specification.bound_to, 1):
            bind = methods.QueueBind(queue=specification.name, exchange=exchange, routing_key="")
            channel.call(bind, methods.QueueBindOk, then=lambda _, number=number: answered(number))  # type: ignore[misc]

    def _delete(self, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _DECLARING)
        if channel is None or not queue.specification.can_be_deleted:
            return
        queue.deleting(channel)
        delete = methods.QueueDelete(queue=queue.specification.name)
        channel.call(delete, methods.QueueDeleteOk, then=lambda _: queue.deleters.pop(channel, None))

    def _change_policy(self, action: Action) -> None:
        node = self.machine.running
        if node is None or self._topology.is_declared:
            return
        definition = self._chance.choice(({"max-length": 4}, {"message-ttl": 1_000}, None))
        if definition is None:
            node.propose(ClearPolicy(vhost=VHOST, name="policy"))
        else:
            pattern = f"^{POLICED}$"
            node.propose(SetPolicy(vhost=VHOST, name="policy", pattern=pattern, definition=definition))

    def _properties(self) -> BasicProperties:
        mode = 1 if self._chance.random() < 0.2 else 2
        return BasicProperties(delivery_mode=mode, priority=self._chance.choice((None, 0, 1, 3)))

    def _publish(
        self, action: Action, client: SimulatedClient, queues: list[QueueHistory], route: tuple[str, str]
    ) -> None:
        is_confirmed = action.kind is not Kind.PUBLISH_UNCONFIRMED
        channel = self._channel(client, _CONFIRMED if is_confirmed else _UNCONFIRMED)
        if channel is None:
            return
        if is_confirmed and not channel.is_confirming:
            channel.is_confirming = True
            channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
        for _ in range(action.count):
            channel.publish(queues, route, self._properties(), self._chance.choice(_SIZES))

    def _transact(self, action: Action, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _TRANSACTIONAL)
        if channel is None:
            return
        if not channel.is_transactional:
            channel.is_transactional = True
            channel.call(methods.TxSelect(), methods.TxSelectOk)
        for _ in range(action.count):
            channel.publish([queue], ("", queue.specification.name), self._properties(), 30)
        if self._chance.random() < 0.8:
            channel.commit()

    def _consume(self, action: Action, client: SimulatedClient, queue: QueueHistory) -> None:
        channel = self._channel(client, _CONSUMING)
        if channel is None:
            return
        self._consumer_count += 1
        prefetch = self._chance.choice((0, 1, 5))
        channel.call(methods.BasicQos(prefetch_count=prefetch), methods.BasicQosOk)
        channel.consume(queue, f"tag{self._consumer_count}")

    def _answer(self, action: Action, client: SimulatedClient) -> None:
        """Acknowledge, requeue or reject what has arrived."""
        for number in (_CONSUMING, _GETTING):
            channel = client.channels.get(number)
            if channel is None or channel.is_closing or not channel.arrived:
                continue
            is_multiple = self._chance.random() < 0.3
            tags = list(channel.arrived)
            self._chance.shuffle(tags)
            for tag in [max(tags)] if is_multiple else tags[: action.count]:
                if action.kind is Kind.ACK:
                    channel.acknowledge(tag, is_multiple=is_multiple)
                else:
                    is_requeued = action.kind is Kind.REQUEUE
                    channel.reject(tag, is_multiple=is_multiple, is_requeued=is_requeued)

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

    def _pass_time(self, ms: int) -> None:
        end = self._clock.now + ms
        while True:
            node = self.machine.node
            due = node.next_timer()
            self._clock.now = max(self._clock.now, min(end, end if due is None else due))
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
            node.run_turns()
            node.write()
            if self._network.pass_piece():
                continue
            if self._is_at_rest:
                self.history.synced()
                self._check_metadata()
                return
            if step % 4 == 3:
                self._pass_time(5)
        raise Violation("the broker does not come to rest")

    # --- crashes --------------------------------------------------------------------------------------

    def _crash(self, *, is_power_lost: bool) -> None:
        self._crashes += 1
        if is_power_lost:
            self.machine.cut_power()
        else:
            self.machine.kill()
        self._network.cut_all()
        self.history.crashed(is_power_lost=is_power_lost)
        self._clock.now += self._chance.choice((0, 500, -60_000))
        self._start()

    def _stop(self) -> None:
        self._stops += 1
        self._heal()
        self._network.cut_all()
        self._settle()
        self.machine.stop()
        self.history.crashed(is_power_lost=False)

    def _stop_and_start(self) -> None:
        self._stop()
        self._start()

    def _restarted(self, vhost: str) -> None:
        """A virtual host has lost what was not synced."""
        self._restarts += 1
        self.history.crashed(is_power_lost=True)

    # --- what must be true ------------------------------------------------------------------------------

    def _inspect(self, *, is_acknowledged: bool) -> None:
        """Read all messages of all queues as a client, and compare them with the history."""
        self._heal()
        self._network.cut_all()
        self._settle()
        for queue in self.history.queues:
            if queue.exists or queue.specification.durable:
                self._inspect_queue(queue, is_acknowledged=is_acknowledged)

    def _inspect_queue(self, queue: QueueHistory, *, is_acknowledged: bool) -> None:
        found: list[int] = []
        client = SimulatedClient("inspector", self.history, queue.specification.vhost)
        client.on_arrival = lambda _, tag, received: found.append(int(received.body.split(b" ", 1)[0]))
        self._network.connect(client)
        self._settle()
        channel = client.channel(1)
        channel.consume(queue, "inspect")
        self._settle()
        if client.closed_by_broker:
            if (
                queue.exists
                and not queue.specification.auto_delete
                and "x-expires" not in queue.specification.arguments
            ):
                raise Violation(f"queue '{queue.specification.name}' is lost: {client.closed_by_broker}")
        else:
            self.history.inspected(queue, found)
            if is_acknowledged and channel.arrived:
                channel.acknowledge(max(channel.arrived), is_multiple=True)
                self._settle()
        self._network.cut(client)
        self._settle()

    def _check_metadata(self) -> None:
        """Verify that the log, replayed, gives the metadata that the broker has."""
        if self.machine.node.is_journal_failing:
            return
        replayed = Metadata()
        found = recover(self.machine.disk(METADATA), replayed)
        if found.damage or found.loss is not None:
            raise Violation(f"the log of the metadata is not complete: {found.damage or found.loss}")
        live, logged = _durable_part(self.machine.node.metadata), _durable_part(replayed)
        if live != logged:
            raise Violation(f"the metadata are not what their log says: {sorted(live ^ logged)[:3]}")


def _durable_part(metadata: Metadata) -> set[str]:
    """Everything in the metadata that survives a restart, as text."""
    sections = {name: list(entries) for name, entries in definition_sections(metadata)}
    lost = {(entry["vhost"], entry["name"]) for entry in sections["queues"] if not entry["durable"]}
    return {
        f"{name} {json.dumps(entry, sort_keys=True)}"
        for name, entries in sections.items()
        for entry in entries
        if entry.get("durable", True) and (entry.get("vhost"), entry.get("destination")) not in lost
    }
