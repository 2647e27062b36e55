"""Each proposal is applied once, and none of a run that has ended."""

import pytest

from warren.metadata.applied_proposals import AppliedProposals
from warren.metadata.commands import (
    DONE,
    EXISTING,
    SKIPPED,
    CommandContext,
    DeclareQueue,
    DeleteQueue,
    MetadataCommand,
    PutVhost,
    Reply,
)
from warren.metadata.events import Event
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import (
    AdmitMember,
    FormCluster,
    MemberUp,
    RemoveMember,
    RestoreAppliedProposals,
)

FIRST, SECOND = Incarnation(1, 5), Incarnation(1, 6)
FORM = FormCluster(cluster_id=b"c" * 16, name="a", host="h", cluster_port=1, incarnation=5, feature_level=1)
ADMIT = AdmitMember(name="b", host="h", cluster_port=1, incarnation=9, feature_level=1)


def proposed(metadata: Metadata, command: MetadataCommand, serial: int, run: Incarnation = FIRST) -> Reply:
    context = CommandContext(index=metadata.index + 1, now=0, incarnation=run, serial=serial)
    return metadata.apply(command, context)


def with_vhost() -> Metadata:
    metadata = Metadata()
    assert proposed(metadata, PutVhost(name="v"), 1) is DONE
    return metadata


def queues(metadata: Metadata) -> list[str]:
    return list(metadata.vhosts.by_name["v"].topology.queues)


DECLARE, DELETE = DeclareQueue(vhost="v", name="q"), DeleteQueue(vhost="v", name="q")


def test_a_proposal_that_is_in_the_log_twice_is_applied_once() -> None:
    metadata = with_vhost()
    assert proposed(metadata, DECLARE, 2) is DONE
    assert proposed(metadata, DELETE, 3) is DONE
    number = metadata.next_transient_number
    events: list[Event] = []
    metadata.listen(events.append)
    metadata.observer = lambda *told: events.append(told[-1][0])
    for serial, command in ((2, DECLARE), (3, DELETE)):
        assert proposed(metadata, command, serial) is SKIPPED
    assert queues(metadata) == []
    assert (events, metadata.next_transient_number) == ([], number)
    # The index goes on, since the entry is in the log.
    assert metadata.index == 5
    assert proposed(metadata, DECLARE, 4) is DONE


def test_serial_numbers_begin_again_with_each_run_of_a_node() -> None:
    metadata = with_vhost()
    assert proposed(metadata, DECLARE, 7) is DONE
    assert proposed(metadata, DECLARE, 1, SECOND) is EXISTING
    assert proposed(metadata, DELETE, 2, SECOND) is DONE
    assert proposed(metadata, DECLARE, 2, SECOND) is SKIPPED


def test_a_proposal_of_a_run_that_has_ended_is_not_applied() -> None:
    metadata = with_vhost()
    assert proposed(metadata, DECLARE, 1, SECOND) is DONE
    assert proposed(metadata, DELETE, 9) is SKIPPED
    assert queues(metadata) == ["q"]


def test_equal_runs_are_one_run_whatever_object_says_so() -> None:
    metadata = with_vhost()
    assert proposed(metadata, DECLARE, 2, Incarnation(1, 5)) is DONE
    assert proposed(metadata, DELETE, 2, Incarnation(1, 5)) is SKIPPED
    assert proposed(metadata, DELETE, 3, Incarnation(1, 5)) is DONE


def test_serial_numbers_of_each_node_are_its_own() -> None:
    metadata = with_vhost()
    proposed(metadata, FORM, 2)
    proposed(metadata, ADMIT, 3)
    other = Incarnation(2, 9)
    assert proposed(metadata, DECLARE, 1, other) is DONE
    assert proposed(metadata, DECLARE, 4) is EXISTING
    assert proposed(metadata, DELETE, 1, other) is SKIPPED
    assert proposed(metadata, DELETE, 2, other) is DONE


@pytest.mark.parametrize("number", [0, 4, 5, 6])
def test_what_was_not_proposed_is_always_applied(number: int) -> None:
    metadata = with_vhost()
    proposed(metadata, DECLARE, 2)
    before = list(metadata.applied_proposals.rows())
    for command, reply in ((DELETE, DONE), (DECLARE, DONE), (DECLARE, EXISTING)):
        assert proposed(metadata, command, 0, Incarnation(1, number)) is reply
    assert list(metadata.applied_proposals.rows()) == before


def test_a_member_that_is_up_with_a_new_run_proposes_nothing_of_the_old_one() -> None:
    metadata = with_vhost()
    proposed(metadata, FORM, 2)
    proposed(metadata, ADMIT, 3)
    assert proposed(metadata, DECLARE, 1, Incarnation(2, 9)) is DONE
    up = MemberUp(id=2, incarnation=10, host="h", cluster_port=1, feature_level=1)
    assert proposed(metadata, up, 4) is DONE
    assert proposed(metadata, DELETE, 2, Incarnation(2, 9)) is SKIPPED
    assert proposed(metadata, DELETE, 1, Incarnation(2, 10)) is DONE


def test_being_up_again_with_the_same_run_permits_no_repetition() -> None:
    metadata = with_vhost()
    proposed(metadata, FORM, 2)
    proposed(metadata, ADMIT, 3)
    assert proposed(metadata, DECLARE, 1, Incarnation(2, 9)) is DONE
    up = MemberUp(id=2, incarnation=9, host="h", cluster_port=1, feature_level=1)
    assert proposed(metadata, up, 4) is DONE
    assert proposed(metadata, DELETE, 1, Incarnation(2, 9)) is SKIPPED


@pytest.mark.parametrize("number", [9, 10, (1 << 64) - 1])
def test_a_proposal_of_a_removed_member_is_not_applied(number: int) -> None:
    metadata = with_vhost()
    proposed(metadata, FORM, 2)
    proposed(metadata, ADMIT, 3)
    assert proposed(metadata, DECLARE, 1, Incarnation(2, 9)) is DONE
    assert proposed(metadata, RemoveMember(id=2), 4) is DONE
    assert proposed(metadata, DELETE, 2, Incarnation(2, number)) is SKIPPED
    assert queues(metadata) == ["q"]


def test_a_snapshot_says_up_to_which_proposal_it_goes() -> None:
    applied = AppliedProposals()
    for node, number, serial in ((3, 7, 1), (1, 5, 4), (1, 6, 2), (2, 9, 8)):
        assert applied.admit(Incarnation(node, number), serial)
    applied.remove(3)
    rows = list(applied.rows())
    assert rows == [
        RestoreAppliedProposals(node=1, incarnation=6, serial=2),
        RestoreAppliedProposals(node=2, incarnation=9, serial=8),
    ]
    restored = AppliedProposals()
    for row in rows:
        assert restored.restore(row) is DONE
    assert list(restored.rows()) == rows
    assert not restored.admit(Incarnation(1, 5), 9)
    assert not restored.admit(Incarnation(1, 6), 2)
    assert restored.admit(Incarnation(1, 6), 3)


def test_what_is_restored_holds_for_the_run_that_proposed_last() -> None:
    applied, run = AppliedProposals(), Incarnation(1, 5)
    assert applied.admit(run, 1)
    applied.restore(RestoreAppliedProposals(node=1, incarnation=6, serial=0))
    assert not applied.admit(run, 2)


def test_forgotten_runs_may_begin_again_but_not_those_of_a_removed_node() -> None:
    applied = AppliedProposals()
    applied.remove(2)
    assert applied.admit(SECOND, 4)
    applied.forget_runs()
    assert list(applied.rows()) == []
    assert not applied.admit(Incarnation(2, 1), 1)
    assert applied.admit(FIRST, 1)
    assert not applied.admit(FIRST, 1)
