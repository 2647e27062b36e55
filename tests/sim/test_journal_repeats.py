"""Proposals that are in the log several times, from several nodes, are applied once: driven by seeds.

Each node proposes commands in the order of their serial numbers. When the leader changes, it repeats what it
does not know to be in the log, in that order; some of it is there already. What was on its way when a node
was started again, or removed, arrives late. The metadata have to be those of the commands, each applied once.
"""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.metadata_commands import any_command
from tests.sim.test_journal_replay import everything

from warren.journal.codec import LogPosition, VoteState, encode_entry
from warren.journal.file_format import ENTRY, encode_batch
from warren.journal.high_water_mark import HighWaterMarkFile
from warren.journal.log_reader import RecoveredLog, replay
from warren.journal.snapshot import JournalSnapshot, SnapshotOrigin, SnapshotPlace
from warren.metadata.commands import (
    CommandContext,
    MetadataCommand,
    Outcome,
    PutVhost,
    Reply,
)
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp, RemoveMember
from warren.replication.raft.change import Configuration

STEPS = 150
TERM = 3

Proposal = tuple[CommandContext, MetadataCommand]


class Proposer:
    """A node: what it has proposed in its present run, and how much of that it knows to be in the log."""

    def __init__(self, node: int, number: int) -> None:
        self.run = Incarnation(node, number)
        self.proposals: list[MetadataCommand] = []
        # As many are in the log, and as many are known to be there.
        self.logged = 0
        self.known = 0


class RepeatingLog:
    """A log into which three nodes propose, the file with it, and the metadata that it has to make."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        # What the log has made; and what its commands make, each once.
        self.metadata = Metadata()
        self.expected = Metadata()
        self.skipped = 0
        self.proposers = {1: Proposer(1, 5)}
        # What was on its way from runs that have ended.
        self.late: list[Proposal] = []
        self.snapshot = self.snapshot_now()
        self.proposers[1].proposals += [
            PutVhost(name="v"),
            FormCluster(
                cluster_id=b"c" * 16, name="n", host="h", cluster_port=1, incarnation=5, feature_level=1
            ),
        ]
        self.force(self.proposers[1])
        for _ in range(2):
            self.admit()

    def snapshot_now(self) -> JournalSnapshot:
        """Begin another file, with the metadata as they are."""
        self.records: list[tuple[int, bytes]] = []
        place = SnapshotPlace(
            index=self.metadata.index, term=TERM, hard=VoteState(TERM, 1), configuration=Configuration((1,))
        )
        return JournalSnapshot(self.metadata, place, SnapshotOrigin(bytes(8), 1, bytes(8)))

    def step(self) -> None:
        actions = ["propose"] * 8 + ["repeat"] * 6 + ["learn"] * 3 + ["start", "arrive", "write"]
        getattr(self, self.chance.choice(actions))()
        if self.chance.random() < 0.02:
            self.remove()

    def any_proposer(self) -> Proposer:
        return self.chance.choice(list(self.proposers.values()))

    def propose(self) -> None:
        self.send(self.any_proposer(), any_command(self.chance))

    def send(self, proposer: Proposer, command: MetadataCommand) -> None:
        """Have `proposer` propose `command`, which a crash of the leader may lose."""
        proposer.proposals.append(command)
        if len(proposer.proposals) == proposer.logged + 1 and self.chance.random() < 0.8:
            self.repeat_from(proposer, proposer.logged)

    def repeat(self) -> None:
        """Have a node propose again what it does not know to be in the log."""
        proposer = self.any_proposer()
        self.repeat_from(proposer, proposer.known)

    def repeat_from(self, proposer: Proposer, start: int) -> None:
        end = self.chance.randrange(start, len(proposer.proposals)) + 1 if proposer.proposals[start:] else 0
        for at in range(start, end):
            is_first = at >= proposer.logged
            self.append(self.proposal(proposer, at), is_once=is_first)
            proposer.logged = max(proposer.logged, at + 1)

    def learn(self) -> None:
        """Have a node learn what is in the log."""
        proposer = self.any_proposer()
        proposer.known = self.chance.randrange(proposer.known, proposer.logged + 1)

    def start(self) -> None:
        """Start a node again: some of what it had proposed is still on its way."""
        proposer = self.any_proposer()
        self.leave_late(proposer)
        node, number = proposer.run
        again = self.proposers[node] = Proposer(node, number + self.chance.randrange(1, 4))
        up = MemberUp(id=node, incarnation=again.run.number, host="h", cluster_port=2, feature_level=1)
        if self.chance.random() < 0.5:
            self.send(self.any_proposer(), up)
        else:
            # The first proposal of the new run comes before it is known to be up.
            self.send(again, up)
        self.force(again)

    def force(self, proposer: Proposer) -> None:
        """Have something of a run in the log: what comes of an earlier one is late from then on."""
        if not proposer.proposals:
            proposer.proposals.append(PutVhost(name="v"))
        while proposer.logged < len(proposer.proposals):
            self.repeat_from(proposer, proposer.logged)

    def leave_late(self, proposer: Proposer) -> None:
        self.late += [self.proposal(proposer, at) for at in range(proposer.known, len(proposer.proposals))]

    def arrive(self) -> None:
        """Have something arrive that was on its way for long."""
        for context, command in self.late[: self.chance.randrange(1, 4)]:
            self.append((context, command), is_once=False)
            del self.late[0]

    def admit(self) -> None:
        """Admit another member, whose node begins to propose."""
        id = self.metadata.members.next_id
        run = Incarnation(id, self.chance.randrange(1, 9))
        leader = next(iter(self.proposers.values()))
        leader.proposals.append(
            AdmitMember(name=f"n{id}", host="h", cluster_port=2, incarnation=run.number, feature_level=1)
        )
        self.force(leader)
        self.proposers[id] = Proposer(*run)

    def remove(self) -> None:
        """Remove a member, of which something is on its way, and admit another one."""
        proposer = self.any_proposer()
        node = proposer.run.node
        self.leave_late(proposer)
        del self.proposers[node]
        other = self.any_proposer()
        other.proposals.append(RemoveMember(id=node))
        self.force(other)
        self.admit()

    def write(self) -> None:
        """Begin another file with a snapshot."""
        self.snapshot = self.snapshot_now()

    def proposal(self, proposer: Proposer, at: int) -> Proposal:
        context = CommandContext(index=0, now=0, incarnation=proposer.run, serial=at + 1, is_accepted=True)
        return context, proposer.proposals[at]

    def append(self, proposal: Proposal, *, is_once: bool) -> None:
        """Append a proposal to the log, and apply it; `is_once` is false if it must not have an effect."""
        stamped, command = proposal
        metadata = self.metadata
        context = CommandContext(
            index=metadata.index + 1, now=0, incarnation=stamped.incarnation, serial=stamped.serial,
            is_accepted=True,
        )  # fmt: skip
        position = LogPosition(TERM, metadata.index, metadata.next_number)
        self.records.append((ENTRY, encode_entry(command, context, position)))
        reply = metadata.apply(command, context)
        if is_once:
            assert reply == self.apply_once(command, context)
        else:
            assert reply.outcome is Outcome.SKIPPED, (command, context)
            self.expected.index = context.index
            self.skipped += 1

    def apply_once(self, command: MetadataCommand, context: CommandContext) -> Reply:
        once = CommandContext(index=context.index, now=0, incarnation=context.incarnation, is_accepted=True)
        return self.expected.apply(command, once)

    def check(self) -> None:
        """Check the metadata, and that the file makes the same."""
        found, expected = everything(self.metadata), everything(self.expected)
        del expected["proposals"]
        assert {key: found[key] for key in expected} == expected
        batch = encode_batch(self.records, self.snapshot.seed)
        read, log = Metadata(), RecoveredLog(mark=HighWaterMarkFile(None))
        replay(b"".join([*self.snapshot, *batch]), read, log)
        assert log.damage == []
        assert everything(read) == found


@pytest.mark.seeds(SEEDS // 5)
def test_what_is_proposed_again_is_applied_once(seed: int) -> None:
    log = RepeatingLog(seed)
    for at in range(STEPS):
        log.step()
        if at % 10 == 0:
            log.check()
    log.check()
    assert log.skipped > 10
