"""Makes a node the only member of its cluster by hand, when a majority of the members is lost for good.

What is in the log of the node counts as agreed on, also what it does not know as committed: a majority may
have answered it. What a majority has agreed on without this node is lost. The cluster has another id from
then on, so that a former member, which may know what is lost, cannot come back to it by accident.
"""

from msgspec.structs import replace

from warren.journal.log_reader import RecoveredLog
from warren.journal.metadata_log import LoggedProposal
from warren.metadata.commands import CommandContext, DeleteEphemeral, MetadataCommand, RemoveReplicas
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import RestoreMembers
from warren.metadata.records import RemovedMember
from warren.replication.raft.change import Configuration

# Higher than any run of a node, and than the number of objects that end with one.
_ALL = 1 << 62


def make_sole_member(metadata: Metadata, found: RecoveredLog, node: int, cluster_id: bytes) -> None:
    """Make `node` the only member of the cluster `cluster_id`, for a journal that continues what was `found`.

    `metadata` are what was found of the log. The queues of the other members stay, and are unavailable; a
    quorum queue of which `node` has a replica has no other one any more.
    """
    _apply_tail(metadata, found)
    members = metadata.members
    own = members.by_id[node]
    others = [member for member in members.by_id.values() if member.id != node]
    for member in others:
        _apply(metadata, found, DeleteEphemeral(node=member.id, incarnation=_ALL, count_max=_ALL))
        _apply(metadata, found, RemoveReplicas(node=member.id, count_max=_ALL))
    removed = [RemovedMember(id=member.id, name=member.name, is_forgotten=True) for member in others]
    restored = RestoreMembers(
        cluster_id=cluster_id,
        feature_level=members.feature_level,
        next_id=members.next_id,
        members=(replace(own, is_draining=False),),
        removed=(*members.removed.values(), *removed),
    )
    _apply(metadata, found, restored)
    found.configuration = Configuration((node,))


def _apply_tail(metadata: Metadata, found: RecoveredLog) -> None:
    """Apply what is in the log and not known as committed, except changes of the members of the group."""
    for entry, _ in found.tail:
        if isinstance(entry.payload, LoggedProposal):
            found.now = max(found.now, entry.payload.context.now)
            metadata.apply(entry.payload.command, entry.payload.context)
        metadata.index = entry.index
    found.tail.clear()


def _apply(metadata: Metadata, found: RecoveredLog, command: MetadataCommand) -> None:
    """Apply a command beside the log."""
    context = CommandContext(index=metadata.index + 1, now=found.now, is_accepted=True)
    metadata.apply(command, context)
