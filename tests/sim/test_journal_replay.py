"""A replay of the log makes the metadata of the broker that wrote it, with its transient objects."""

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.seeds import SEEDS
from tests.sim.test_journal import NEXT_RUN, Proposed, Simulation, described

from warren.journal import journal_file
from warren.journal.file_format import NAME, VERSION
from warren.journal.high_water_mark import HighWaterMarkFile
from warren.journal.log_reader import RecoveredLog, replay
from warren.journal.recovery import recover
from warren.limits_metadata import JOURNAL_BATCH_MAX, JOURNAL_UNWRITTEN_SIZE_MAX
from warren.metadata import bounds
from warren.metadata.commands import (
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    DeleteQueue,
    MetadataCommand,
    Outcome,
    PutVhost,
    Reply,
    SetParameter,
)
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.machine import Metadata

STEPS = 120
FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.tar.gz"))


class Stamped(Metadata):
    """Records the contexts in which commands are applied."""

    def __init__(self) -> None:
        super().__init__()
        self.stamps: list[tuple[MetadataCommand, CommandContext]] = []

    def apply(self, command: MetadataCommand, context: CommandContext) -> Reply:
        self.stamps.append((command, context))
        return super().apply(command, context)


def everything(metadata: Metadata) -> dict[str, object]:
    """All that the metadata contain, with numbers, owners and counters; bindings in any order."""
    return described(metadata) | {
        "counters": (metadata.index, metadata.next_number, metadata.next_transient_number),
        "next member": metadata.members.next_id,
        "proposals": list(metadata.applied_proposals.rows()),
        "homes": {node: count for node, count in metadata.homes.items() if count},
        "replicas": {node: count for node, count in metadata.replicas.items() if count},
        "topologies": [
            (
                name,
                vhost.topology.exchanges,
                list(vhost.topology.queues.values()),
                sorted(vhost.topology.bindings()),
                list(vhost.topology.paused),
                list(vhost.topology.leases.by_id.values()),
            )
            for name, vhost in metadata.vhosts.by_name.items()
        ],
    }


def replayed(simulation: Simulation, made: Callable[[], Metadata] = Metadata) -> Metadata:
    """The metadata in the file, without what is deleted at a start."""
    metadata, found = made(), RecoveredLog(mark=HighWaterMarkFile(None))
    replay(bytes(simulation.disk.files[NAME].current), metadata, found)
    assert found.damage == []
    return metadata


def write_all(simulation: Simulation) -> None:
    """Have everything written that was applied, and applied that was proposed."""
    simulation.settle()
    made = Proposed(simulation, PutVhost(name="v"))
    simulation.settle()
    assert made.reply is not None


@pytest.mark.seeds(SEEDS // 5)
def test_a_replay_makes_the_same_metadata(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "JOURNAL_LOG_SIZE_MIN", 3_000)
    monkeypatch.setattr(journal_file, "JOURNAL_PREALLOCATION_SIZE", 700)
    simulation = Simulation(seed)
    for _ in range(STEPS):
        action = simulation.chance.choice(["propose"] * 8 + ["work"] * 5 + ["wait", "compare"])
        if action != "compare":
            getattr(simulation, action)()
            continue
        write_all(simulation)
        assert everything(replayed(simulation)) == everything(simulation.metadata)
    write_all(simulation)
    metadata = simulation.metadata
    after = Metadata()
    assert recover(simulation.disk, after).damage == []
    metadata.apply(NEXT_RUN, CommandContext(index=metadata.index + 1, now=0))
    if len(metadata.members.by_id) <= 1:
        metadata.applied_proposals.forget_runs()
    assert everything(after) == everything(metadata)


class Replied(Metadata):
    """Records the outcomes of the commands that are applied."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []

    def apply(self, command: MetadataCommand, context: CommandContext) -> Reply:
        reply = super().apply(command, context)
        self.outcomes.append(reply.outcome)
        return reply


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_in_a_log_of_a_node_alone_nothing_is_skipped_and_every_queue_is_on_that_node(fixture: Path) -> None:
    with tarfile.open(fixture) as archive:
        file = archive.extractfile("data/metadata/metadata")
        assert file is not None
        data = file.read()
    metadata, found = Replied(), RecoveredLog(mark=HighWaterMarkFile(None))
    replay(data, metadata, found)
    assert found.damage == []
    assert Outcome.DONE in metadata.outcomes
    assert Outcome.SKIPPED not in metadata.outcomes
    queues = metadata.vhosts.by_name["v"].topology.queues
    assert {queue.home for queue in queues.values()} == {NODE_ALONE}
    assert metadata.homes == {NODE_ALONE: len(queues)}
    assert metadata.members.by_id == {}


def test_the_runs_of_a_node_alone_number_their_proposals_from_one() -> None:
    simulation = Simulation(0)
    for start in range(5):
        made = [
            Proposed(simulation, command)
            for command in (PutVhost(name="v"), DeclareQueue(vhost="v", name=f"{start}", durable=True))
        ]
        simulation.settle()
        assert all(one.reply is not None and one.reply.outcome is not Outcome.SKIPPED for one in made)
        assert everything(replayed(simulation)) == everything(simulation.metadata)
        simulation.open()
        simulation.begin()
    vhost = simulation.metadata.vhost("v")
    assert vhost is not None
    assert list(vhost.topology.queues) == list("01234")


def test_a_replay_has_what_the_proposer_stamped() -> None:
    simulation = Simulation(0)
    live = simulation.metadata = Stamped()
    simulation.journal._metadata = live
    for now, command in (
        (50, PutVhost(name="v")),
        (70, DeclareQueue(vhost="v", name="q", durable=True)),
        # Time never goes back.
        (60, DeclareQueue(vhost="v", name="mine", owner="c")),
        (80, DeleteQueue(vhost="v", name="q")),
    ):
        simulation.now = now
        Proposed(simulation, command)
        simulation.disk.advance()
    found = replayed(simulation, Stamped)
    assert isinstance(found, Stamped)
    assert found.stamps == live.stamps
    assert [context.now for _, context in found.stamps] == [50, 70, 70, 80]
    # The first entry is that of the new term, which is for the group alone.
    assert [context.index for _, context in found.stamps] == [2, 3, 4, 5]
    assert [context.serial for _, context in found.stamps] == [1, 2, 3, 4]


def test_time_does_not_go_back_after_a_restart() -> None:
    simulation = Simulation(0)
    simulation.now = 1_000
    Proposed(simulation, PutVhost(name="v"))
    simulation.disk.advance()
    for _ in range(2):
        simulation.open()
        simulation.journal.begin()
    simulation.now = 10
    Proposed(simulation, PutVhost(name="w"))
    simulation.disk.advance()
    found = RecoveredLog(mark=HighWaterMarkFile(None))
    replay(bytes(simulation.disk.files[NAME].current), Metadata(), found)
    assert found.now == 1_000


def test_reply_queues_are_declared_and_deleted_without_the_disk_and_are_in_the_log_in_their_place() -> None:
    simulation = Simulation(0)
    write_all(simulation)
    before = simulation.disk.syncs
    for number in range(100):
        for command in (
            DeclareQueue(vhost="v", name=f"reply {number}", owner="c", auto_delete=True),
            Bind(vhost="v", source="amq.direct", destination=f"reply {number}"),
            DeleteQueue(vhost="v", name=f"reply {number}"),
        ):
            reply = Proposed(simulation, command).reply
            assert reply is not None
            assert reply.outcome is Outcome.DONE
    assert not simulation.disk.is_busy
    assert simulation.disk.syncs == before
    index = simulation.metadata.index
    made = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    simulation.disk.advance()
    assert made.reply is not None
    assert simulation.disk.syncs == before + 1
    found = replayed(simulation)
    assert found.index == index + 1
    assert everything(found) == everything(simulation.metadata)


def test_commands_that_nothing_syncs_are_written_before_they_are_many() -> None:
    simulation = Simulation(0)
    write_all(simulation)
    size_max = 0
    for number in range(20_000):
        Proposed(simulation, DeclareQueue(vhost="v", name=f"q {number % 10}", owner="c"))
        size_max = max(size_max, simulation.journal._log.records_size)
        if simulation.disk.is_busy:
            simulation.disk.advance()
    assert JOURNAL_UNWRITTEN_SIZE_MAX - 1_000 < size_max < JOURNAL_UNWRITTEN_SIZE_MAX + 1_000
    write_all(simulation)
    assert everything(replayed(simulation)) == everything(simulation.metadata)


def test_a_crash_loses_transient_objects_only() -> None:
    simulation = Simulation(0)
    write_all(simulation)
    for command in (
        DeclareExchange(vhost="v", name="x", type="fanout", durable=True, auto_delete=True),
        DeclareQueue(vhost="v", name="transient"),
        Bind(vhost="v", source="x", destination="transient"),
        DeclareQueue(vhost="v", name="q", durable=True),
        DeclareQueue(vhost="v", name="not written", owner="c"),
    ):
        Proposed(simulation, command)
        simulation.disk.advance()
    simulation.disk.die()
    simulation.open()
    vhost = simulation.metadata.vhost("v")
    assert vhost is not None
    assert list(vhost.topology.queues) == ["q"]
    assert "x" in vhost.topology.exchanges
    assert "not written" not in replayed(simulation).vhosts.by_name["v"].topology.queues


def test_a_refused_command_is_not_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(0)
    write_all(simulation)
    monkeypatch.setattr(bounds, "QUEUES_MAX", 1)
    kept = Proposed(simulation, DeclareQueue(vhost="v", name="q", durable=True))
    simulation.disk.advance()
    refused = Proposed(simulation, DeclareQueue(vhost="v", name="r", durable=True))
    wrong = Proposed(simulation, SetParameter(vhost="v", component="shovel", name="n", value={}))
    outcomes = [one.reply.outcome for one in (kept, refused, wrong) if one.reply is not None]
    assert outcomes == [Outcome.DONE, Outcome.REFUSED, Outcome.REFUSED]
    write_all(simulation)
    # A later version may have other rules: the same log makes the same metadata.
    monkeypatch.setattr(bounds, "QUEUES_MAX", 0)
    assert everything(replayed(simulation)) == everything(simulation.metadata)


def test_a_command_is_refused_after_those_that_it_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(0)
    write_all(simulation)
    monkeypatch.setattr(bounds, "QUEUES_MAX", 1)
    commands = (
        DeclareQueue(vhost="v", name="a", durable=True),
        PutVhost(name="w"),
        DeleteQueue(vhost="v", name="a"),
        DeclareQueue(vhost="v", name="b", durable=True),
        DeclareQueue(vhost="v", name="c", durable=True),
    )
    made = [Proposed(simulation, command) for command in commands]
    simulation.settle()
    write_all(simulation)
    assert [one.reply is not None for one in made] == [True] * 5
    assert everything(replayed(simulation)) == everything(simulation.metadata)


def test_a_command_is_not_refused_before_those_in_front_of_it_are_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = Simulation(0)
    write_all(simulation)
    monkeypatch.setattr(bounds, "QUEUES_MAX", 1)
    Proposed(simulation, DeclareQueue(vhost="v", name="a", durable=True))
    simulation.settle()
    # Makes room for the one behind it.
    Proposed(simulation, DeleteQueue(vhost="v", name="a"))
    made = Proposed(simulation, DeclareQueue(vhost="v", name="b", durable=True))
    simulation.settle()
    assert made.reply is not None
    assert made.reply.outcome is Outcome.DONE


def test_a_parameter_is_written_with_the_password_that_its_predecessor_in_the_queue_set() -> None:
    def upstream(uri: str) -> SetParameter:
        value = {"uri": uri}
        return SetParameter(vhost="v", component="federation-upstream", name="n", value=value, user="alice")

    simulation = Simulation(0)
    write_all(simulation)
    Proposed(simulation, upstream("amqp://u:first@h"))
    simulation.settle()
    made = [
        Proposed(simulation, command)
        for command in (upstream("amqp://u:old@h"), upstream("amqp://u:secret@h"), upstream("amqp://u:***@h"))
    ]
    simulation.settle()
    assert all(one.reply is not None and one.reply.outcome is Outcome.DONE for one in made)
    for metadata in (simulation.metadata, replayed(simulation)):
        vhost = metadata.vhost("v")
        assert vhost is not None
        assert vhost.parameters.by_key["federation-upstream", "n"] == {"uri": "amqp://u:secret@h"}


def test_one_sync_has_a_bounded_number_of_commands() -> None:
    simulation = Simulation(0)
    write_all(simulation)
    made = [
        Proposed(simulation, DeclareQueue(vhost="v", name=f"q{number}", durable=True))
        for number in range(2 * JOURNAL_BATCH_MAX + 1)
    ]
    before = simulation.disk.syncs
    simulation.settle()
    assert all(one.reply is not None for one in made)
    assert simulation.disk.syncs == before + 3


def test_an_entry_that_was_made_from_other_metadata_is_damage() -> None:
    simulation = Simulation(0)
    write_all(simulation)
    simulation.metadata.next_number = 7
    for name in "ab":
        Proposed(simulation, DeclareQueue(vhost="v", name=name, durable=True))
        simulation.disk.advance()
    damage = recover(simulation.disk, Metadata()).damage
    text = "change 3 was made when 7 was the next number of a queue, which is 1 here"
    assert text in str(damage[0])


@pytest.mark.parametrize("count", range(25))
def test_a_file_of_an_older_format_is_replaced_or_kept_as_it_is(count: int) -> None:
    simulation = Simulation(count)
    older = bytes(simulation.disk.files[NAME].current)
    simulation.open()
    # As if it had been written by the version before.
    simulation.journal._file._old_version = VERSION - 1
    done: list[object] = []
    _, snapshot = simulation.journal._take_snapshot()
    simulation.disk.submit(simulation.journal._file._replacement(snapshot), done.append)
    simulation.disk.advance(count)
    simulation.disk.lose_power()
    kept = simulation.disk.files.get(f"{NAME}.{VERSION - 1}")
    current = bytes(simulation.disk.files[NAME].current)
    assert current == older or (kept is not None and bytes(kept.current) == older)
    assert recover(simulation.disk, Metadata()).damage == []


def test_a_command_that_is_missing_without_a_trace_is_damage() -> None:
    simulation = Simulation(0)
    write_all(simulation)
    ends = []
    for name in "abc":
        Proposed(simulation, DeclareQueue(vhost="v", name=name, durable=True))
        simulation.disk.advance()
        ends.append(recover(simulation.disk, Metadata()).end)
    file = simulation.disk.files[NAME]
    del file.current[ends[0] : ends[1]]
    damage = recover(simulation.disk, Metadata()).damage
    assert [str(error).partition(": ")[2] for error in damage] == ["change 5 follows change 3"]
