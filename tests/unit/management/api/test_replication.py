"""The state of the replicas of a quorum queue, with the names of RabbitMQ."""

from msgspec.structs import replace

from warren.management.api.replication import ReplicaStatusShape, _status
from warren.queues.replication_status import ReplicationStatus

LEADER = ReplicationStatus(
    role="leader",
    is_voter=True,
    term=3,
    last_index=10,
    written_index=9,
    commit_index=8,
    applied_index=7,
    snapshot_index=0,
)


def test_the_status_of_a_replica_has_the_names_of_rabbitmq() -> None:
    found = _status("warren@here", LEADER)
    assert found == {
        "Node Name": "warren@here",
        "Raft State": "leader",
        "Membership": "voter",
        "Last Log Index": 10,
        "Last Written": 9,
        "Last Applied": 7,
        "Commit Index": 8,
        "Snapshot Index": None,
        "Term": 3,
    }
    assert found.keys() == ReplicaStatusShape.__annotations__.keys()


def test_the_index_of_a_snapshot_is_shown_once_there_is_one() -> None:
    found = _status("warren@here", replace(LEADER, snapshot_index=5, is_voter=False))
    assert (found["Snapshot Index"], found["Membership"]) == (5, "non_voter")
