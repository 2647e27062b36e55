"""One run of a simulated broker: the parts of a real node, on simulated disks, without sockets and threads.

It composes what a node composes above the waterline: the metadata with their journal, the virtual hosts with
their stores, the sessions, and the timers. Everything that happens is a turn of this node, in an order that
the simulation chooses; a node that has ended hears of nothing any more, and writes nothing.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from warren.access.authenticate import AuthenticationDependencies, AuthenticationSettings, Authenticator
from warren.cluster.remote_queues import RemoteQueues
from warren.errors import AmqpError
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies, NoOtherMembers, OtherMembers
from warren.journal.log_reader import RecoveredLog
from warren.journal.recovery import find_older, recover
from warren.limits import REMOVED_PER_TURN
from warren.metadata.commands import Bind, DeleteEphemeral, MetadataCommand, Outcome
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.refusal_check import RefusalCheck
from warren.model.coroutine_driver import drive
from warren.session.admission_control import AdmissionControl
from warren.session.handshake import HandshakeSettings
from warren.session.server import Server, ServerDependencies, SessionSettings
from warren.session.server_properties import server_properties
from warren.simulation.disk import SimulatedDisk
from warren.simulation.ports import JournalFuture, MountedDisk, completed
from warren.simulation.simulated_clock import SimulatedClock
from warren.simulation.vhost_unit import VhostUnit
from warren.store.reach import NAME, ReachFile

METADATA = "metadata"
# Interval of maintenance, as on a real node.
_MAINTENANCE_MS = 1_000
# A stop that has not ended after so many rounds of turns and writes never will.
_STOP_ROUNDS_MAX = 100_000


class Disks(Protocol):
    """Port: the machine that a node runs on."""

    chance: random.Random
    clock: SimulatedClock
    definitions: Sequence[MetadataCommand]
    node_name: str
    # The run of the broker.
    incarnation: Incarnation
    # Called when a virtual host starts again after a failure of its disk.
    on_restart: Callable[[str], None]

    def disk(self, directory: str) -> SimulatedDisk:
        """The disk that is the directory with this name."""

    @property
    def disks(self) -> list[SimulatedDisk]:
        """The disks of all directories."""


class StartRefused(Exception):
    """The node cannot start with what is on its disks, for the reason in the text."""


class SimulatedNode:
    """One run of a broker: everything that a crash loses."""

    # The queues of other nodes; None of a node alone.
    remote_queues: RemoteQueues | None = None

    def __init__(self, machine: Disks) -> None:
        """Read the metadata from the disk. Raises StartRefused if they are not complete."""
        self._machine = machine
        self.clock = machine.clock
        self.incarnation = machine.incarnation
        self.is_over = False
        self._mounted: list[MountedDisk] = []
        self._turns: list[Callable[[int], None]] = []
        # Timers: when they are due, the order in which they were set, and what they do.
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._timer_count = 0
        # Unexpected errors, and lines of the log.
        self.reports: list[str] = []
        self.log: list[str] = []
        # How often a turn was run, and the greatest work of one: metadata events and methods that it wrote.
        self.turn_count = 0
        self.turn_work_max = 0
        self._work = 0
        # True from a failed write of the metadata until they are written anew: what was refused may be there.
        self.is_journal_failing = False
        self.metadata = Metadata()
        self.journal = self.opened_journal(self.mount(METADATA))
        self.server = self._new_server()
        self.vhosts: dict[str, VhostUnit] = {}
        self.metadata.listen(lambda _: self.count_work(1))

    def start(self) -> None:
        """Open the stores, and accept clients. Raises StartRefused, StoreFileError or OSError."""
        self.vhosts = {name: VhostUnit(name, self) for name in self.metadata.vhosts.by_name}
        for unit in self.vhosts.values():
            unit.start()
            if unit.orphaned:
                raise StartRefused(
                    f"queues {sorted(unit.orphaned)} have messages and are not in the metadata"
                )
        self.after(_MAINTENANCE_MS, self._maintain)

    def opened_journal(self, disk: MountedDisk) -> Journal:
        """Read the metadata, apply the definitions, and begin the journal."""
        found = self._recovered(disk)
        self._apply_definitions()
        journal = Journal(self.metadata, disk, self._journal_dependencies(), found)
        journal.begin()
        return journal

    # --- what the broker uses -----------------------------------------------------------------------

    def random_bytes(self, size: int, /) -> bytes:
        """Bytes that the seed decides."""
        return self._machine.chance.randbytes(size)

    def later(self, action: Callable[[int], None]) -> None:
        """Call `action` in a later turn."""
        self._turns.append(action)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call `action` after a time."""
        self._timer_count += 1
        self._timers.append((self.timer_now + delay_ms, self._timer_count, action))

    @property
    def timer_now(self) -> int:
        """The time (ms) of the timers."""
        return self.clock.now

    def mount(self, directory: str) -> MountedDisk:
        """The disk that is the directory with this name, until the node ends."""
        mounted = MountedDisk(self._machine.disk(directory))
        self._mounted.append(mounted)
        return mounted

    def drop_page_cache(self, directory: str) -> None:
        """Read from now on what the device holds."""
        disk = self._machine.disk(directory)
        disk.die()
        disk.reread()

    def count_work(self, amount: int) -> None:
        """Count work of the turn that is running."""
        self._work += amount

    def restarted(self, vhost: str) -> None:
        """A virtual host has failed, and starts with what is on its disk."""
        self._machine.on_restart(vhost)

    # --- what happens to it -------------------------------------------------------------------------

    def run_turn(self) -> bool:
        """Run the next turn; False if there is none."""
        if not self._turns or self.is_over:
            return False
        action = self._turns.pop(0)
        self.measure(lambda: action(self.clock.now))
        return True

    def measure(self, action: Callable[[], None]) -> None:
        """Do `action` as a turn, and note its work."""
        self._work = 0
        action()
        self.turn_count += 1
        self.note_written(0)

    def note_written(self, count: int) -> None:
        """Note that the last turn has also written `count` methods to a client."""
        self._work += count
        self.turn_work_max = max(self.turn_work_max, self._work)

    def run_turns(self) -> None:
        """Run the turns there are, and those that they cause."""
        while self.run_turn():
            pass

    def run_timers(self) -> None:
        """Run the timers that are due, in the order of their times."""
        while not self.is_over:
            timer = min(self._timers, default=None, key=lambda timer: timer[:2])
            if timer is None or timer[0] > self.timer_now:
                return
            self._timers.remove(timer)
            self.measure(timer[2])
            self.run_turns()

    def next_timer(self) -> int | None:
        """The time of the next timer; None if there is none."""
        return min((timer[0] for timer in self._timers), default=None)

    def write(self, steps: int | None = None) -> None:
        """Perform `steps` steps of what each disk is writing, or all of it."""
        for disk in self._machine.disks:
            if disk.is_busy:
                self.measure(lambda disk=disk: disk.advance(steps))  # type: ignore[misc]

    @property
    def is_busy(self) -> bool:
        """True if something waits for a turn or for a disk."""
        return bool(self._turns) or any(disk.is_busy for disk in self._machine.disks)

    @property
    def is_idle(self) -> bool:
        """True if nothing waits for a turn, for a disk, or for the time at which it is committed."""
        return not self.is_busy and not any(unit.is_due for unit in self.vhosts.values())

    @property
    def is_serving(self) -> bool:
        """True if all virtual hosts run."""
        return all(name in self.server.vhost_services for name in self.vhosts)

    def propose(self, command: MetadataCommand) -> None:
        """Change the metadata, unless that is refused or cannot be written."""
        drive(self._propose(command))

    async def _propose(self, command: MetadataCommand) -> None:
        try:
            await self.journal.propose(command)
        except AmqpError as error:
            self.log.append(f"{type(command).__name__} is refused: {error}")

    def stop(self) -> None:
        """Write what is pending, as a node does that is told to stop."""
        for connection in self.server.all_connections():
            connection.disconnect("the broker is stopped")
        self._finish(lambda: False)
        for unit in self.vhosts.values():
            closed: list[bool] = []
            unit.write_rest(lambda closed=closed: closed.append(True))  # type: ignore[misc]
            self._finish(lambda closed=closed: bool(closed))  # type: ignore[misc]
            unit.close()
            self._finish(lambda: False)
        ended: list[bool] = []
        self.journal.close(lambda: ended.append(True))
        self._finish(lambda: bool(ended))
        assert ended, "the journal did not close"

    def end(self) -> None:
        """Hear of nothing any more, and write nothing."""
        self.is_over = True
        for mounted in self._mounted:
            mounted.unmount()

    # --- private --------------------------------------------------------------------------------------

    def _finish(self, is_done: Callable[[], bool]) -> None:
        """Run turns and write until `is_done`, or until there is nothing left to do."""
        for _ in range(_STOP_ROUNDS_MAX):
            self.run_turns()
            if is_done() or not any(disk.is_busy for disk in self._machine.disks):
                return
            self.write()
        raise AssertionError("a stop does not end")

    def _recovered(self, disk: MountedDisk) -> RecoveredLog:
        """Read the metadata."""
        found = recover(disk, self.metadata, node=self.incarnation.node)
        vhosts = self.metadata.vhosts.by_name
        reached = {name: ReachFile(self.mount(name), NAME).found.reached for name in vhosts}
        found.loss = found.loss or find_older(found, reached)
        for error in [*found.damage, *([found.loss] if found.loss is not None else [])]:
            raise StartRefused(f"the metadata are not complete: {error}")
        return found

    def _apply_definitions(self) -> None:
        """Delete what ended with earlier runs of this node, which is alone, and apply the definitions."""
        node, number = self.incarnation
        local = LocalProposals(self.metadata, lambda: self.clock.now, self.incarnation)
        ended = DeleteEphemeral(node=node, incarnation=number, count_max=REMOVED_PER_TURN)
        while local.apply(ended).outcome is Outcome.PARTLY:
            pass
        for command in self._machine.definitions:
            reply = local.apply(command)
            is_missing = reply.outcome is Outcome.MISSING and not isinstance(command, Bind)
            if reply.outcome is Outcome.REFUSED or is_missing:
                raise StartRefused(f"the definitions are refused: {reply.text or command}")

    def _journal_dependencies(
        self, others: OtherMembers | None = None, *, is_joining: bool = False
    ) -> JournalDependencies:
        return JournalDependencies(
            now=lambda: self.clock.now,
            random_bytes=self.random_bytes,
            make_future=JournalFuture,
            report=self._report_journal,
            incarnation=self.incarnation,
            others=others or NoOtherMembers(),
            report_error=lambda error: self.reports.append(f"a command of another node: {error!r}"),
            is_joining=is_joining,
        )

    def _new_server(self) -> Server:
        refusal_check = RefusalCheck(self.metadata, self.journal)
        authenticator = Authenticator(
            self.metadata,
            AuthenticationSettings(),
            AuthenticationDependencies(
                thread_pool=lambda job: completed(job()),
                now=lambda: self.clock.now,
                random_bytes=self.random_bytes,
                wait=lambda _: completed(None),
                report=self.log.append,
                refusal_check=refusal_check,
            ),
        )
        dependencies = ServerDependencies(
            random_bytes=self.random_bytes,
            later=self.later,
            turn=self.clock.turn,
            report=self.reports.append,
            log=self._log,
            node_name=self._machine.node_name,
            incarnation=self._machine.incarnation,
        )
        handshake = HandshakeSettings(server_properties=server_properties(self._machine.node_name))
        control = AdmissionControl(
            self.metadata, authenticator, lambda: self.server, self.log.append, refusal_check=refusal_check
        )
        return Server(control, SessionSettings(handshake=handshake), dependencies)

    def _report_journal(self, error: OSError | None) -> None:
        self.is_journal_failing = error is not None
        self.log.append(f"journal: {error}")

    def _log(self, category: str, level: str, text: str, fields: Mapping[str, object]) -> None:
        self.log.append(f"{category}: {level}: {text}")

    def _maintain(self) -> None:
        self.journal.maintain()
        for unit in self.vhosts.values():
            unit.maintain()
        self.after(_MAINTENANCE_MS, self._maintain)
