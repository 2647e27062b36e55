"""Chooses the members of the cluster that are to have replicas of a new quorum queue.

The one that leads first is its home, which the locators choose (`queue_home`). The others are those with the
fewest replicas, first among the members that are up and not drained. Members that are drained or down come
last: a queue that is declared while a node is restarted has as many replicas as any other when that node is
back.
"""

from msgspec.structs import replace

from warren.limits_metadata import QUEUE_MEMBERS_MAX
from warren.metadata.commands import DeclareQueue, MetadataCommand
from warren.metadata.machine import Metadata
from warren.metadata.records import MemberRecord
from warren.model.arguments import QUORUM, queue_kind

_GROUP_SIZE = "x-quorum-initial-group-size"


def queue_members(
    metadata: Metadata, command: DeclareQueue, leader: int, *, group_size: int
) -> tuple[int, ...]:
    """The ids of the members that are to have replicas of the new queue of `command`, `leader` first.

    There are as many as its arguments say, else `group_size`, as far as the cluster has them and most of
    them are up. Empty if only the leader is to have one, and if it is not a quorum queue.
    """
    members = metadata.members.by_id
    if len(members) <= 1 or not command.arguments or queue_kind(command.arguments) != QUORUM:
        return ()
    wanted = command.arguments.get(_GROUP_SIZE, group_size)
    assert isinstance(wanted, int), f"{_GROUP_SIZE} was not checked: {wanted!r}"

    def order(member: MemberRecord) -> tuple[bool, bool, int, int]:
        return not member.takes_queues, not member.is_up, metadata.replicas.get(member.id, 0), member.id

    others = sorted((member for member in members.values() if member.id != leader), key=order)
    others = others[: min(wanted, QUEUE_MEMBERS_MAX) - 1]
    # The group begins with a majority: the leader and those of the others that are up.
    up_count = 1 + sum(member.is_up for member in others)
    others = others[: 2 * up_count - 2]
    return (leader, *(member.id for member in others)) if others else ()


def with_members(
    command: MetadataCommand, metadata: Metadata, node: int, *, group_size: int
) -> MetadataCommand:
    """`command` of a definitions document that `node` imports, with the members of a new quorum queue."""
    if not isinstance(command, DeclareQueue):
        return command
    members = queue_members(metadata, command, node, group_size=group_size)
    return replace(command, members=members) if members else command
