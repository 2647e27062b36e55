"""A replica whose store has damage keeps what is readable, and is trusted again when the loss is accepted."""

from tests.sim.disk import SimulatedDisk
from tests.unit.store.test_group_log import FIRST, GROUP, append, begun, bodies, opened, write
from tests.unit.store.test_recovery import published
from tests.unit.store.test_recovery import segments_that_are_quickly_read as segments_that_are_quickly_read

from warren.store.group_record import GroupHardState, GroupSnapshot
from warren.store.message_store import MessageStore


def damaged(*, of: bytes) -> tuple[SimulatedDisk, MessageStore]:
    """A store with three entries of two messages each, and a classic queue; a bit of `of` is flipped."""
    there, store, log = begun()
    for first, second in ((b"a1", b"a2"), (b"b1", b"b2"), (b"c1", b"c2")):
        append(log, first, second, commands=b"command")
        write(store, there)
    store.append(published(b"other"), store.cursor(2, 0), 0)
    write(store, there)
    there.flip_bit(FIRST, there.files[FIRST].current.index(of))
    return there, store


def accept(there: SimulatedDisk) -> None:
    """Accept the loss as the queue does."""
    recovered = opened(there)
    log, found = recovered.groups[GROUP], recovered.queues[GROUP]
    log.extend({level: each.end for level, each in found.items()})
    log.accept_loss(b"machine", b"all")
    assert log.untrusted == ""
    write(recovered.store, there)


def test_messages_of_an_entry_that_is_not_readable_stay() -> None:
    there, _ = damaged(of=b"command")
    recovered = opened(there)
    found = recovered.groups[GROUP]
    assert found.untrusted.startswith(f"{FIRST}, byte ")
    assert found.untrusted.endswith("; entry 2 follows entry 0")
    assert found.last == 0
    assert bodies(recovered) == [b"a1", b"a2", b"b1", b"b2", b"c1", b"c2"]
    # Also when the reason is read from the log.
    write(recovered.store, there)
    assert bodies(opened(there)) == [b"a1", b"a2", b"b1", b"b2", b"c1", b"c2"]


def test_a_replica_whose_loss_was_accepted_is_trusted_with_all_that_is_readable() -> None:
    there, _ = damaged(of=b"b1")
    accept(there)
    recovered = opened(there)
    found = recovered.groups[GROUP]
    assert recovered.damage
    assert found.untrusted == ""
    assert found.hard == GroupHardState(2, 0, 4)
    assert found.snapshot == GroupSnapshot(index=4, term=2, configuration=b"all", machine=b"machine")
    assert (found.first, found.last, found.end(0)) == (5, 4, 6)
    assert bodies(recovered) == [b"a1", b"a2", b"b2", b"c1", b"c2"]


def test_what_follows_an_accepted_loss_continues_the_positions() -> None:
    there, _ = damaged(of=b"command")
    accept(there)
    recovered = opened(there)
    log = recovered.groups[GROUP]
    log.promise(3, 0)
    assert log.end(0) == 6
    append(log, b"d1")
    write(recovered.store, there)
    again = opened(there)
    assert bodies(again)[-1] == b"d1"
    assert again.groups[GROUP].untrusted == ""


def test_new_damage_counts_after_older_damage_was_accepted() -> None:
    there, _ = damaged(of=b"b1")
    accept(there)
    there.flip_bit(FIRST, there.files[FIRST].current.index(b"c1"))
    found = opened(there).groups[GROUP]
    assert found.untrusted.startswith(f"{FIRST}, byte ")
    accept(there)
    assert opened(there).groups[GROUP].untrusted == ""


def test_damage_that_was_accepted_for_one_replica_makes_no_new_one_untrusted() -> None:
    there, _ = damaged(of=b"b1")
    accept(there)
    assert opened(there, replicas={GROUP: 7, 2: 1}).groups.keys() >= {GROUP}
    assert 5 not in opened(there, (1, 2, 5), replicas={GROUP: 7, 5: 1}).groups
