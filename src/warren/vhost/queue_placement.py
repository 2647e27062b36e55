"""Chooses the members of the cluster that are to have replicas of a new quorum queue.

The one that leads first is its home, which the locators choose (`queue_home`). The others are those with the
fewest replicas, among the members that are up and not drained.
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

    There are as many as its arguments say, else `group_size`, as far as the cluster has them. Empty if only
    the leader is to have one, and if it is not a quorum queue.
    """
    members = metadata.members.by_id
    if len(members) <= 1 or not command.arguments or queue_kind(command.arguments) != QUORUM:
        return ()
    wanted = command.arguments.get(_GROUP_SIZE, group_size)
    assert isinstance(wanted, int), f"{_GROUP_SIZE} was not checked: {wanted!r}"

    def fewest_first(member: MemberRecord) -> tuple[int, int]:
        return metadata.replicas.get(member.id, 0), member.id

    possible = [member for member in members.values() if member.takes_queues and member.id != leader]
    others = sorted(possible, key=fewest_first)[: min(wanted, QUEUE_MEMBERS_MAX) - 1]
    return (leader, *(member.id for member in others)) if others else ()


def with_members(
    command: MetadataCommand, metadata: Metadata, node: int, *, group_size: int
) -> MetadataCommand:
    """`command` of a definitions document that `node` imports, with the members of a new quorum queue."""
    if not isinstance(command, DeclareQueue):
        return command
    members = queue_members(metadata, command, node, group_size=group_size)
    return replace(command, members=members) if members else command
