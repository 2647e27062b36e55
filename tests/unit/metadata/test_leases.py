"""Leases in the metadata: one per key, ended once, and remembered for a while."""

from warren.limits import LEASES_ENDED_MAX
from warren.metadata.leases import LeaseRecord, Leases, LeaseState


def lease(id: str, queue: str = "q", key: str = "", state: LeaseState = LeaseState.ACTIVE) -> LeaseRecord:
    return LeaseRecord(
        id=id, queue=queue, user="u", key=key or id, places=(0, 5), messages=5, byte_count=50, granted_at=1,
        expires_at=100, state=state,
    )  # fmt: skip


def test_a_user_has_one_lease_per_queue_and_key() -> None:
    leases = Leases()
    assert leases.add(lease("1", key="k"))
    assert not leases.add(lease("2", key="k"))
    assert not leases.add(lease("1", key="other"))
    assert leases.add(lease("3", "other", key="k"))
    assert leases.of_key("q", "u", "k") == lease("1", key="k")
    assert leases.of_key("q", "somebody", "k") is None
    assert [known.id for known in leases.of_queue("q")] == ["1"]


def test_a_lease_ends_once_and_is_remembered() -> None:
    leases = Leases()
    leases.add(lease("1"))
    assert leases.renew("1", 200)
    assert leases.end("1", LeaseState.SETTLED) is not None
    assert leases.end("1", LeaseState.REQUEUED) is None
    assert not leases.renew("1", 300)
    assert leases.end("2", LeaseState.SETTLED) is None
    known = leases.by_id["1"]
    assert (known.state, known.expires_at, known.places) == (LeaseState.SETTLED, 200, (0, 5))
    assert leases.of_key("q", "u", "1") == known
    assert not list(leases.active())


def test_a_requeued_or_expired_lease_does_not_keep_its_positions() -> None:
    leases = Leases()
    for id, state in (("1", LeaseState.REQUEUED), ("2", LeaseState.EXPIRED)):
        leases.add(lease(id))
        leases.end(id, state)
        assert leases.by_id[id].places == ()


def test_the_oldest_ended_leases_are_evicted_and_no_active_ones() -> None:
    leases = Leases()
    leases.add(lease("active"))
    for number in range(LEASES_ENDED_MAX + 3):
        leases.add(lease(str(number)))
        leases.end(str(number), LeaseState.SETTLED)
    assert len(leases.by_id) == LEASES_ENDED_MAX + 1
    assert "2" not in leases.by_id
    assert leases.of_key("q", "u", "2") is None
    assert {"3", "active"} <= set(leases.by_id)
    again = Leases()
    for known in leases.by_id.values():
        assert again.add(known)
    again.add(lease("last"))
    again.end("last", LeaseState.EXPIRED)
    assert "3" not in again.by_id


def test_leases_are_deleted_with_their_queue() -> None:
    leases = Leases()
    for id, queue in (("1", "q"), ("2", "q"), ("3", "other")):
        leases.add(lease(id, queue))
    leases.end("2", LeaseState.SETTLED)
    leases.forget_queue("q")
    assert list(leases.by_id) == ["3"]
    assert leases.add(lease("4", key="1"))
