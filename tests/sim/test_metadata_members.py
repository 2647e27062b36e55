"""The metadata group with other members: by seeds on disks and links that fail, and step by step."""

import errno
import random

import pytest
from tests.seeds import SEEDS
from tests.sim.metadata_members import Action, Member, MetadataMembers, Request

from warren.errors import MetadataTimeout
from warren.journal import journal_file, metadata_log
from warren.journal.high_water_mark import HighWaterMarkFile
from warren.journal.journal import Journal
from warren.journal.log_reader import RecoveredLog, replay
from warren.limits_metadata import (
    METADATA_REPEATED_TICKS,
    METADATA_REQUEST_TICKS,
    METADATA_TICK_MS,
    METADATA_TIMEOUT_TICKS,
)
from warren.management.metadata_wait import METADATA_WAIT, MetadataWait
from warren.metadata import bounds
from warren.metadata.commands import (
    DeclareExchange,
    DeclareQueue,
    DeleteQueue,
    MetadataCommand,
    Outcome,
    SetParameter,
)
from warren.metadata.machine import Metadata
from warren.node.timed_proposals import TimedProposals
from warren.replication.raft.change import Configuration, ConfigurationChange, MemberChange, MemberChangeKind
from warren.store.disk import WriteFile

STEPS = 1_000
WEIGHTS = {
    "deliver": 60, "lose": 2, "repeat": 2, "pass": 20, "break": 1, "tick": 30, "write": 40, "turn": 10,
    "propose": 8, "access": 8, "barrier": 6, "change": 3, "hand over": 1, "cut": 1, "isolate": 1, "heal": 2,
    "crash": 1, "start": 4, "fail": 1, "sent": 2, "wait": 2,
}  # fmt: skip


def actions(chance: random.Random) -> list[Action]:
    names = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)
    return [Action(name, chance.randrange(1 << 20), chance.randrange(1 << 20)) for name in names]


def grown(simulation: MetadataMembers, voters: int) -> None:
    """Let the first `voters` members vote; the only voter has a learner."""
    for number in range(2, max(voters, 2) + 1):
        for kind in (MemberChangeKind.LEARNER, MemberChangeKind.VOTER)[: 1 + (number <= voters)]:
            change = ConfigurationChange((MemberChange(kind, number),))
            while not simulation.leader().journal.propose_change(change):
                simulation.settle(1)
            simulation.settle(50)


def three(seed: int = 0) -> tuple[MetadataMembers, Member, Member, Member]:
    """Three members: the leader, and two others."""
    simulation = MetadataMembers(seed)
    grown(simulation, 3)
    leader = simulation.leader()
    one, other = (simulation.members[number] for number in (1, 2, 3) if number != leader.number)
    return simulation, leader, one, other


def asked(simulation: MetadataMembers, member: Member, command: MetadataCommand | None) -> Request:
    request = Request(member, command)
    simulation.requests.append(request)
    return request


def queue(name: str, *, durable: bool = True) -> DeclareQueue:
    return DeclareQueue(vhost="v", name=name, durable=durable)


def queues(member: Member) -> list[str]:
    vhost = member.metadata.vhost("v")
    return [] if vhost is None else list(vhost.topology.queues)


def read(member: Member) -> tuple[RecoveredLog, Metadata]:
    """What the file of a member says."""
    found, metadata = RecoveredLog(mark=HighWaterMarkFile(None)), Metadata()
    replay(bytes(member.disk.files["metadata"].current), metadata, found, node=member.number)
    return found, metadata


@pytest.mark.seeds(SEEDS // 5)
def test_members_have_one_history_of_the_metadata(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "JOURNAL_LOG_SIZE_MIN", 2_000)
    monkeypatch.setattr(metadata_log, "METADATA_ENTRIES_KEPT", 8)
    chance = random.Random(seed)
    simulation = MetadataMembers(seed)
    grown(simulation, chance.choice([1, 2, 3, 3, 5]))
    for action in actions(chance):
        simulation.perform(action)
    assert simulation.settle(300), "the members do not agree again"
    simulation.check_names()


def test_a_proposal_of_a_follower_is_answered_when_it_is_applied_there() -> None:
    simulation, leader, one, _ = three()
    request = asked(simulation, one, queue("q"))
    assert not request.is_over
    assert simulation.settle(5)
    assert request.reply is not None
    assert request.reply.outcome is Outcome.DONE
    assert queues(one) == queues(leader) == ["q"]
    applied = simulation.history[simulation.places[request.user]]
    assert applied.context.incarnation.node == one.number


def test_what_survives_no_restart_is_agreed_on_as_well() -> None:
    simulation, leader, one, other = three()
    request = asked(simulation, leader, queue("reply", durable=False))
    assert not request.is_over
    assert simulation.settle(5)
    assert queues(leader) == queues(one) == queues(other) == ["reply"]


def refused_in_time(seed: int) -> list[str]:
    """Propose a queue to a leader that is cut off; return the queues when it is back."""
    simulation, leader, one, _ = three(seed)
    simulation.isolate(leader.number)
    request = asked(simulation, leader, queue("q"))
    for _ in range(METADATA_TIMEOUT_TICKS):
        assert not request.is_over
        leader.journal.tick()
        leader.disk.advance()
        simulation.turn(leader)
    assert request.error is not None
    assert request.error.code == 541
    assert "no majority of the members" in str(request.error)
    simulation.network.clear()
    # All are equal without it until one leads again.
    for _ in range(20):
        assert simulation.settle(50)
    return queues(one)


def test_a_proposal_that_no_majority_takes_is_refused_in_time_and_may_be_applied_later() -> None:
    # It depends on who leads next.
    assert {tuple(refused_in_time(seed)) for seed in range(10)} == {(), ("q",)}


def test_a_barrier_without_a_majority_is_refused_in_time() -> None:
    simulation, _, one, _ = three()
    simulation.isolate(one.number)
    request = asked(simulation, one, None)
    for _ in range(METADATA_TIMEOUT_TICKS):
        assert not request.is_over
        one.journal.tick()
        simulation.turn(one)
    assert request.error is not None
    assert request.error.code == 541


class TimedRequest(Request):
    """A proposal of a HTTP request."""

    async def run(self, journal: Journal) -> None:
        assert self.command is not None
        self.reply = await TimedProposals(journal).propose(self.command, self.user)


def test_a_http_request_is_refused_in_less_than_five_seconds_and_then_waits_a_tick_for_all_else() -> None:
    simulation, _, one, _ = three()
    simulation.isolate(one.number)
    ticks = []
    token = METADATA_WAIT.set(MetadataWait())
    for name in ("q", "r", "s"):
        request = TimedRequest(one, queue(name))
        ticks.append(0)
        while not request.is_over:
            one.journal.tick()
            simulation.turn(one)
            ticks[-1] += 1
        assert isinstance(request.error, MetadataTimeout)
    METADATA_WAIT.reset(token)
    assert ticks == [METADATA_REQUEST_TICKS, METADATA_REPEATED_TICKS, METADATA_REPEATED_TICKS]
    assert sum(ticks[:2]) * METADATA_TICK_MS < 5_000


def test_a_barrier_ends_when_all_is_applied_that_was_answered_before() -> None:
    simulation, leader, one, other = three()
    simulation.isolate(one.number)
    made = asked(simulation, other, queue("q"))
    while not made.is_over:
        simulation.drain()
        leader.journal.tick()
    assert queues(one) == []
    simulation.cut.clear()
    request = asked(simulation, one, None)
    assert simulation.settle(30)
    assert request.is_over
    assert request.error is None
    assert queues(one) == ["q"]


def test_those_who_wait_for_barriers_share_the_read_after_the_one_under_way() -> None:
    simulation, leader, one, _ = three()
    before = len(simulation.network)
    requests = [asked(simulation, one, None) for _ in range(100)]
    assert [sent[:2] for sent in simulation.network[before:]] == [(one.number, leader.number)]
    applied = leader.metadata.index
    assert simulation.settle(5)
    assert all(request.is_over and request.error is None for request in requests)
    assert leader.metadata.index == applied


def passed_but_to(simulation: MetadataMembers, held: Member) -> list[tuple[int, int, bytes, bytes]]:
    """Let everything arrive and be written except what is sent to one member, which is returned."""
    kept = []
    for _ in range(10):
        messages, simulation.network = simulation.network, []
        for sent in messages:
            if sent[1] == held.number:
                kept.append(sent)
            else:
                simulation.arrive(*sent)
        for member in simulation.members.values():
            if member is not held and member.is_up:
                member.disk.advance()
                while member.turns:
                    simulation.turn(member)
    return kept


def test_a_barrier_is_not_ended_by_a_read_that_began_before_it() -> None:
    simulation, leader, one, _ = three()
    first = asked(simulation, one, None)
    held = passed_but_to(simulation, one)
    made = asked(simulation, leader, queue("q"))
    passed_but_to(simulation, one)
    assert made.is_over
    second = asked(simulation, one, None)
    for sent in held:
        simulation.arrive(*sent)
    while one.turns:
        simulation.turn(one)
    assert first.is_over
    assert queues(one) == []
    assert not second.is_over
    assert simulation.settle(30)
    assert second.is_over


@pytest.mark.parametrize("is_outdated", [True, False])
def test_a_barrier_says_whether_the_member_had_applied_less(*, is_outdated: bool) -> None:
    simulation, leader, one, other = three()
    simulation.isolate(one.number)
    if is_outdated:
        made = asked(simulation, other, queue("q"))
        while not made.is_over:
            simulation.drain()
            leader.journal.tick()
    simulation.cut.clear()
    requests = [asked(simulation, one, None), asked(simulation, leader, None)]
    assert simulation.settle(30)
    assert [request.was_outdated for request in requests] == [is_outdated, False]


def test_a_member_that_has_long_known_no_leader_says_at_once_that_it_does_not_know() -> None:
    simulation, _, one, _ = three()
    simulation.isolate(one.number)
    while one.journal.group.leader[1]:
        one.journal.tick()
    for _ in range(METADATA_TIMEOUT_TICKS):
        one.journal.tick()
    request = asked(simulation, one, None)
    assert isinstance(request.error, MetadataTimeout)
    simulation.cut.clear()
    while not one.journal.group.leader[1]:
        simulation.settle(1)
    request = asked(simulation, one, None)
    assert simulation.settle(5)
    assert request.was_outdated is False


def test_a_refusal_of_the_leader_reaches_the_proposer_and_is_in_no_log() -> None:
    simulation, leader, one, _ = three()
    before = leader.metadata.index
    wrong = SetParameter(vhost="v", component="federation-upstream", name="u", value={"uri": 5})
    request = asked(simulation, one, wrong)
    assert simulation.settle(5)
    assert request.reply is not None
    assert request.reply.outcome is Outcome.REFUSED
    assert request.reply.text
    assert leader.metadata.index == before


def test_a_proposal_that_is_lost_with_its_link_is_handed_over_again() -> None:
    simulation, leader, one, _ = three()
    request = asked(simulation, one, queue("q"))
    assert simulation.link(one.number, leader.number)
    simulation.break_link(one.number, leader.number)
    assert len(simulation.link(one.number, leader.number)) == 1
    assert simulation.settle(5)
    assert request.reply is not None


def test_a_proposal_that_two_leaders_have_is_applied_once() -> None:
    simulation, leader, one, _ = three()
    made = asked(simulation, one, queue("q"))
    deleted = asked(simulation, one, DeleteQueue(vhost="v", name="q"))
    # The leader has both in its log, and one that does not know it loses the link to it.
    simulation.pass_next(one.number, leader.number)
    simulation.pass_next(one.number, leader.number)
    simulation.break_link(one.number, leader.number)
    assert simulation.settle(5)
    assert made.reply is not None
    assert deleted.reply is not None
    # By each of three members.
    assert simulation.counts["skipped"] == 2 * 3
    assert queues(leader) == []


def test_a_member_that_lacks_forgotten_entries_is_sent_the_metadata_and_writes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_log, "METADATA_ENTRIES_KEPT", 2)
    simulation, leader, one, other = three()
    one.stop(is_power_lost=True)
    for number in range(10):
        asked(simulation, leader, queue(f"q{number}"))
        for _ in range(3):
            simulation.drain()
            leader.journal.tick()
    before = simulation.counts["snapshots"]
    assert simulation.settle(50)
    assert simulation.counts["snapshots"] > before
    assert queues(one) == queues(other)
    found, metadata = read(one)
    assert found.damage == []
    vhost = metadata.vhost("v")
    assert vhost is not None
    assert len(vhost.topology.queues) == 10
    assert found.configuration == Configuration((1, 2, 3))


def test_an_entry_of_which_no_majority_is_known_is_not_applied_at_a_start_and_can_be_replaced() -> None:
    simulation, leader, one, _ = three()
    simulation.isolate(leader.number)
    asked(simulation, leader, queue("lost"))
    leader.disk.advance()
    leader.stop(is_power_lost=True)
    found, metadata = read(leader)
    assert [entry.index for entry, _ in found.tail] == [found.index + 1]
    vhost = metadata.vhost("v")
    assert vhost is not None
    assert "lost" not in vhost.topology.queues
    simulation.network.clear()
    made = asked(simulation, one, queue("made"))
    while not made.is_over:
        simulation.now += 100
        for member in simulation.members.values():
            if member.is_up:
                member.journal.tick()
        simulation.drain()
    leader.start()
    assert queues(leader) == []
    simulation.network.clear()
    assert simulation.settle(50)
    assert queues(leader) == queues(one) == ["made"]
    # The file has both, of which the later one counts.
    found, _ = read(leader)
    assert found.damage == []


def test_a_leader_whose_disk_fails_refuses_nothing_and_writes_a_new_file() -> None:
    simulation, leader, one, _ = three()
    leader.disk.fault = (WriteFile, errno.ENOSPC)
    request = asked(simulation, leader, queue("q"))
    leader.disk.advance()
    assert not request.is_over
    assert not leader.journal.is_in_doubt
    assert simulation.settle(30)
    assert request.reply is not None
    assert queues(leader) == queues(one) == ["q"]


def test_an_answer_to_a_read_of_an_earlier_run_ends_no_barrier() -> None:
    simulation, _, one, _ = three()
    asked(simulation, one, None)
    held = []
    for _ in range(10):
        messages, simulation.network = simulation.network, []
        for sent in messages:
            if sent[1] == one.number:
                held.append(sent)
            else:
                simulation.arrive(*sent)
    one.stop(is_power_lost=False)
    one.start()
    request = asked(simulation, one, None)
    for sent in held:
        simulation.arrive(*sent)
    while one.turns:
        simulation.turn(one)
    assert held
    assert not request.is_over


def test_a_proposal_that_was_overtaken_is_applied_with_another_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation, leader, one, other = three()
    with monkeypatch.context() as patch:
        patch.setattr(bounds, "QUEUES_MAX", 0)
        refused = asked(simulation, one, queue("q"))
        simulation.pass_next(one.number, leader.number)
    applied = asked(simulation, one, DeclareExchange(vhost="v", name="e", type="fanout"))
    simulation.pass_next(one.number, leader.number)
    # The refusal is lost, and what was proposed later is applied.
    simulation.link(leader.number, one.number).clear()
    assert simulation.settle(5) or applied.is_over
    assert not refused.is_over
    simulation.break_link(one.number, leader.number)
    assert simulation.settle(5)
    assert refused.reply is not None
    assert refused.reply.outcome is Outcome.DONE
    assert simulation.counts["skipped"] == 3
    assert queues(one) == queues(other) == ["q"]
