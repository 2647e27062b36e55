"""The journal on a disk that loses power at any step and fails sometimes, driven by seeds.

After a restart, all answered commands are applied, with the numbers of queues, unless what they did does not
survive one; of the commands being written, a prefix; and nothing else.
"""

import errno
import json
import random
from collections.abc import Callable, Generator
from itertools import product

import pytest
from tests.exported import export_definitions
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.metadata_commands import any_command, any_member_command

from warren.errors import AmqpError
from warren.journal import journal_file
from warren.journal.file_format import BATCH, seed_of
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.recovery import recover
from warren.metadata.commands import (
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteQueue,
    MetadataCommand,
    Outcome,
    PutVhost,
    Reply,
)
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.metadata.machine import Metadata
from warren.store.disk import CreateFile, SyncFile, WriteFile
from warren.store.record import HEAD_SIZE, encode

STEPS = 150

# What a start deletes: all that ended with the run before.
NEXT_RUN = DeleteEphemeral(node=1, incarnation=1 << 62, count_max=1_000_000)


class Recorded(Metadata):
    """Records what is applied, in order."""

    __slots__ = ("history",)

    def __init__(self, history: list[tuple[MetadataCommand, int]]) -> None:
        super().__init__()
        self.history = history

    def apply(self, command: MetadataCommand, context: CommandContext) -> Reply:
        self.history.append((command, context.index))
        return super().apply(command, context)


class Answer:
    """A future that resumes the coroutine awaiting it at once."""

    def __init__(self, is_there: Callable[[], None]) -> None:
        self._is_there = is_there
        self._done = False

    def set_result(self, result: None, /) -> None:
        self._done = True
        self._is_there()

    def done(self) -> bool:
        return self._done

    def __await__(self) -> Generator["Answer", None, None]:
        if not self._done:
            yield self


class Proposed:
    """A proposal, and its result."""

    def __init__(self, simulation: "Simulation", command: MetadataCommand) -> None:
        self.command = command
        self.reply: Reply | None = None
        self.error: AmqpError | None = None
        simulation.proposing = self
        self._coroutine = simulation.journal.propose(command)
        self.go_on()
        self.has_waited = self.reply is None and self.error is None

    def go_on(self) -> None:
        try:
            self._coroutine.send(None)
        except StopIteration as ended:
            self.reply = ended.value
        except AmqpError as error:
            self.error = error


class Resolving:
    """A wait until nothing is in doubt, and its result."""

    def __init__(self, simulation: "Simulation") -> None:
        self.is_certain = False
        self.error: AmqpError | None = None
        simulation.proposing = self
        self._coroutine = simulation.journal.resolve()
        self.go_on()

    def go_on(self) -> None:
        try:
            self._coroutine.send(None)
        except StopIteration:
            self.is_certain = True
        except AmqpError as error:
            self.error = error


class Simulation:
    """The metadata of one broker, and the random choices that drive them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = SimulatedDisk(self.chance)
        self.now = 0
        self.failures: list[OSError | None] = []
        self.history: list[tuple[MetadataCommand, int]] = []
        self.proposals: list[Proposed] = []
        # Commands that were refused because a write failed, and may be on the disk nevertheless.
        self.doubtful: list[Proposed] = []
        self.proposing: Proposed | Resolving | None = None
        # The highest term in which the node has voted, according to the file.
        self.voted = 0
        # With two members or more, everything waits for the disk.
        self.has_members = self.chance.random() < 0.5
        # The runs of the node, of which each numbers its proposals from 1.
        self.starts = 0
        self.open()
        self.begin()

    def begin(self) -> None:
        """Begin the journal, which raises the term."""
        self.journal.begin()
        if not self.journal.is_in_doubt:
            assert self.journal._log.hard.term > self.voted
            self.voted = self.journal._log.hard.term

    def open(self) -> None:
        self.starts += 1
        self.metadata = Recorded(self.history)
        found: list[tuple[MetadataCommand, int]] = []
        self.metadata.history = found
        recovered = recover(self.disk, self.metadata)
        assert (recovered.damage, recovered.loss) == ([], None)
        # No entry is of a term without a vote.
        assert recovered.hard.term >= recovered.term
        self.recovered = recovered
        self.metadata.history = self.history
        dependencies = JournalDependencies(
            now=lambda: self.now,
            random_bytes=self.chance.randbytes,
            make_future=self.make_future,
            report=self.failures.append,
            incarnation=Incarnation(NODE_ALONE, self.starts),
        )
        self.journal = Journal(self.metadata, self.disk, dependencies, recovered)

    def make_future(self) -> Answer:
        assert self.proposing is not None
        return Answer(self.proposing.go_on)

    def step(self) -> None:
        action = self.chance.choice(["propose"] * 6 + ["work"] * 5 + ["crash", "fail", "wait"])
        getattr(self, action)()

    def propose(self) -> None:
        is_of_member = self.has_members and self.chance.random() < 0.2
        command = any_member_command(self.chance) if is_of_member else any_command(self.chance)
        self.proposals.append(Proposed(self, command))

    def work(self) -> None:
        self.disk.advance(self.chance.choice([1, 2, None]))
        self.forget_doubts()

    def wait(self) -> None:
        self.now += 2_000
        self.journal.maintain()

    def fail(self) -> None:
        if self.chance.random() < 0.2:
            kind = self.chance.choice([SyncFile, WriteFile, CreateFile])
            self.disk.fault = (kind, self.chance.choice([errno.EIO, errno.ENOSPC]))

    def forget_doubts(self) -> None:
        """Forget doubtful commands after a new file was written, which does not contain them."""
        if self.failures and self.failures[-1] is None:
            self.doubtful = []
            self.failures.clear()
        waiting = [one for one in self.proposals if one.reply is None]
        self.doubtful += [
            one for one in waiting if one.has_waited and one.error is not None and self.failures
        ]
        self.proposals = [one for one in waiting if one.error is None]

    def settle(self) -> None:
        self.disk.fault = None
        while self.disk.is_busy:
            self.disk.advance()
            self.forget_doubts()
        self.forget_doubts()
        assert not self.proposals

    def crash(self) -> None:
        if self.chance.random() < 0.2:
            self.settle()
        self.forget_doubts()
        self.disk.fault = None
        if self.chance.random() < 0.4:
            self.disk.die()
        else:
            self.disk.lose_power()
        waiting = self.doubtful + self.proposals
        last = self.metadata.index
        self.open()
        assert self.recovered.hard.term >= self.voted, "a vote was forgotten"
        self.check(waiting, last)
        self.doubtful, self.proposals = [], []
        self.failures.clear()
        self.begin()

    def check(self, waiting: list[Proposed], last: int) -> None:
        """Check that the metadata are what was applied, and a prefix of what waited for the disk."""
        found = described(self.metadata)
        forgotten = [(NEXT_RUN, last)]
        # Refused commands on the disk precede transient objects that have their names now.
        for count, before in product(range(len(waiting) + 1), ([], forgotten)):
            tried = [
                *self.history,
                *before,
                *((one.command, last + 1 + at) for at, one in enumerate(waiting[:count])),
                *forgotten,
            ]
            if described(replayed(tried)) == found:
                self.history[:] = tried
                return
        raise AssertionError(f"{found} is not {described(replayed([*self.history, (NEXT_RUN, 0)]))}")


def replayed(history: list[tuple[MetadataCommand, int]]) -> Metadata:
    metadata = Metadata()
    for command, index in history:
        metadata.apply(command, CommandContext(index=index, now=0))
    return metadata


def described(metadata: Metadata) -> dict[str, object]:
    document = export_definitions(metadata, version="3.10.8")
    found: dict[str, object] = {
        section: sorted(json.dumps(entry, sort_keys=True) for entry in entries)
        for section, entries in document.items()
        if isinstance(entries, list)
    }
    members = metadata.members
    return (
        found
        | {"members": [members.cluster_id, members.feature_level, members.by_id, members.removed]}
        | {
            f"paused in {name}": sorted(vhost.topology.paused)
            for name, vhost in metadata.vhosts.by_name.items()
        }
        | {
            f"leases in {name}": [
                lease
                for lease in vhost.topology.leases.by_id.values()
                if vhost.topology.queues[lease.queue].survives_restart
            ]
            for name, vhost in metadata.vhosts.by_name.items()
        }
    )


@pytest.mark.seeds(SEEDS // 5)
def test_answered_commands_are_applied_after_a_restart(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "JOURNAL_LOG_SIZE_MIN", 2_000)
    monkeypatch.setattr(journal_file, "JOURNAL_PREALLOCATION_SIZE", 700)
    monkeypatch.setattr("warren.journal.snapshot.JOURNAL_CHUNK_SIZE", 500)
    simulation = Simulation(seed)
    for _ in range(STEPS):
        simulation.step()
    simulation.settle()
    simulation.crash()


def test_a_queue_keeps_its_number_and_no_other_gets_it() -> None:
    simulation = Simulation(0)
    used: set[int] = set()
    for turn in range(6):
        for command in (
            PutVhost(name="v"),
            DeclareQueue(vhost="v", name="kept", durable=True),
            DeleteQueue(vhost="v", name="changing"),
            DeclareQueue(vhost="v", name="changing", durable=True),
        ):
            assert Proposed(simulation, command).error is None
            simulation.disk.advance()
        vhost = simulation.metadata.vhost("v")
        assert vhost is not None
        queues = vhost.topology.queues
        number = queues["changing"].number
        assert number not in used
        used |= {number, queues["kept"].number}
        if turn % 2:
            simulation.disk.lose_power()
        simulation.open()
        simulation.journal.begin()
    assert len(used) == 7


def test_commands_are_answered_in_the_order_in_which_they_were_proposed() -> None:
    simulation = Simulation(0)
    for command in (PutVhost(name="v"), DeclareQueue(vhost="v", name="old", durable=True)):
        Proposed(simulation, command)
        simulation.disk.advance()
    assert Proposed(simulation, DeclareQueue(vhost="v", name="at once")).reply is not None
    declared = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    other = Proposed(simulation, DeclareQueue(vhost="v", name="transient"))
    again = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    assert (declared.reply, other.reply, again.reply) == (None, None, None)
    before = simulation.disk.syncs
    simulation.disk.advance()
    outcomes = [one.reply.outcome for one in (declared, other, again) if one.reply is not None]
    assert outcomes == [Outcome.DONE, Outcome.DONE, Outcome.EXISTING]
    # Those behind it need no sync of their own.
    assert simulation.disk.syncs == before + 1


def test_a_command_that_needs_no_sync_waits_for_one_whose_write_has_not_begun() -> None:
    simulation = Simulation(0)
    Proposed(simulation, PutVhost(name="v"))
    simulation.disk.advance()
    simulation.now += 2_000
    simulation.journal.maintain()
    assert simulation.disk.is_busy, "the high-water mark is synced"
    declared = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    other = Proposed(simulation, DeclareQueue(vhost="v", name="q"))
    assert (declared.reply, other.reply) == (None, None)
    simulation.disk.advance()
    outcomes = [one.reply.outcome for one in (declared, other) if one.reply is not None]
    assert outcomes == [Outcome.DONE, Outcome.EXISTING]


def test_commands_during_a_sync_share_the_next_one() -> None:
    simulation = Simulation(0)
    Proposed(simulation, PutVhost(name="v"))
    simulation.disk.advance()
    before = simulation.disk.syncs
    made = [Proposed(simulation, DeclareQueue(vhost="v", name=f"q{n}", durable=True)) for n in range(50)]
    simulation.disk.advance()
    assert all(one.reply is not None for one in made)
    assert simulation.disk.syncs == before + 2
    vhost = simulation.metadata.vhost("v")
    assert vhost is not None
    assert len({queue.number for queue in vhost.topology.queues.values()}) == len(made)


def test_a_full_disk_refuses_durable_changes_only_until_there_is_space() -> None:
    simulation = Simulation(0)
    Proposed(simulation, PutVhost(name="v"))
    simulation.disk.advance()
    simulation.disk.fault = (WriteFile, errno.ENOSPC)
    refused = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    simulation.disk.advance()
    assert refused.error is not None
    assert refused.error.reply_text == "RESOURCE_ERROR - cannot write the metadata: ENOSPC"
    at_once = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    assert at_once.error is not None
    assert Proposed(simulation, DeclareQueue(vhost="v", name="transient")).reply is not None
    assert [str(failure) for failure in simulation.failures] == ["[Errno 28] ENOSPC"]
    simulation.wait()
    made = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    simulation.disk.advance()
    assert made.reply is not None
    assert made.reply.outcome is Outcome.DONE
    assert simulation.failures[-1] is None


def in_doubt() -> Simulation:
    """A broker with the queue `q`, whose deletion was written and is refused, since the sync has failed."""
    simulation = Simulation(0)
    for command in (PutVhost(name="v"), DeclareQueue(vhost="v", name="q", durable=True)):
        Proposed(simulation, command)
        simulation.disk.advance()
    simulation.disk.fault = (SyncFile, errno.EIO)
    refused = Proposed(simulation, DeleteQueue(vhost="v", name="q"))
    simulation.disk.advance()
    assert refused.error is not None
    assert simulation.journal.is_in_doubt
    return simulation


@pytest.mark.parametrize(
    "command",
    [
        DeclareQueue(vhost="v", name="q", durable=True),
        DeleteQueue(vhost="v", name="missing"),
        DeclareExchange(vhost="v", name="x", type="fanout", durable=True),
    ],
)
def test_what_a_refused_command_could_make_untrue_is_answered_after_the_state_was_written_anew(
    command: MetadataCommand,
) -> None:
    simulation = in_doubt()
    at_once = Proposed(simulation, command)
    assert at_once.error is not None
    assert Proposed(simulation, DeclareQueue(vhost="v", name="transient")).reply is not None
    simulation.wait()
    later = Proposed(simulation, command)
    assert later.has_waited
    simulation.disk.advance()
    assert later.reply is not None
    assert not simulation.journal.is_in_doubt
    simulation.disk.lose_power()
    simulation.open()
    vhost = simulation.metadata.vhost("v")
    assert vhost is not None
    assert "q" in vhost.topology.queues


def test_a_failed_write_is_repaired_without_another_command() -> None:
    simulation = in_doubt()
    simulation.wait()
    simulation.disk.advance()
    assert not simulation.journal.is_in_doubt
    simulation.disk.die()
    simulation.open()
    vhost = simulation.metadata.vhost("v")
    assert vhost is not None
    assert "q" in vhost.topology.queues


def test_a_doubt_is_resolved_by_writing_anew_or_refused() -> None:
    simulation = in_doubt()
    assert Resolving(simulation).error is not None
    simulation.now += 2_000
    simulation.disk.fault = (CreateFile, errno.EIO)
    waiting = Resolving(simulation)
    assert waiting.error is None
    simulation.disk.advance()
    assert waiting.error is not None
    simulation.now += 2_000
    waiting = Resolving(simulation)
    assert not waiting.is_certain
    simulation.disk.advance()
    assert waiting.is_certain


def test_a_clock_that_was_set_back_does_not_delay_the_repair() -> None:
    simulation = in_doubt()
    simulation.now -= 3_600_000
    simulation.journal.maintain()
    simulation.disk.advance()
    assert not simulation.journal.is_in_doubt


def test_a_regular_stop_waits_for_the_disk() -> None:
    simulation = Simulation(0)
    waiting = Proposed(simulation, PutVhost(name="v"))
    ended: list[bool] = []
    simulation.journal.close(lambda: ended.append(waiting.reply is not None))
    assert not ended
    simulation.disk.advance()
    assert ended == [True]
    simulation.open()
    assert simulation.metadata.vhost("v") is not None


def test_damage_is_reported_with_its_place_and_the_rest_is_recovered() -> None:
    simulation = Simulation(0)
    for command in (
        PutVhost(name="v"),
        DeclareQueue(vhost="v", name="a queue that is damaged", durable=True),
        PutVhost(name="w"),
    ):
        Proposed(simulation, command)
        simulation.disk.advance()
    data = bytes(simulation.disk.files["metadata"].current)
    place = data.index(b"a queue that is damaged")
    simulation.disk.flip_bit("metadata", place)
    metadata = Metadata()
    damage = recover(simulation.disk, metadata).damage
    at = data.rindex(encode(BATCH, b"", seed_of(data)), 0, place) + HEAD_SIZE
    assert [str(error) for error in damage] == [f"metadata, byte {at}: a record is damaged"]
    assert list(metadata.vhosts.by_name) == ["v", "w"]
    # The queue whose declaration is lost may have messages, which no other queue gets.
    assert metadata.next_number == 2


def test_an_object_kept_only_by_a_transient_one_exists_after_a_restart() -> None:
    simulation = Simulation(0)
    for command in (
        PutVhost(name="v"),
        DeclareExchange(vhost="v", name="x", type="fanout", durable=True, auto_delete=True),
        DeclareQueue(vhost="v", name="durable", durable=True),
        DeclareQueue(vhost="v", name="transient"),
        Bind(vhost="v", source="x", destination="transient"),
        Bind(vhost="v", source="x", destination="durable"),
        DeleteQueue(vhost="v", name="durable"),
    ):
        assert Proposed(simulation, command).error is None
        simulation.disk.advance()
    simulation.disk.lose_power()
    simulation.open()
    vhost = simulation.metadata.vhost("v")
    assert vhost is not None
    assert "x" in vhost.topology.exchanges
    assert not vhost.topology.queues
