"""What a node knows of its cluster: members, leader, and the queues that are missing."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from warren import __version__
from warren.cluster.node_link import NodeLink
from warren.journal.journal import Journal
from warren.management.cluster_controls import (
    VOTER,
    ClusterStatus,
    LeaderlessQueues,
    MemberStatus,
    UnavailableQueues,
)
from warren.metadata.declared_topology import DeclaredTopology
from warren.metadata.machine import Metadata
from warren.metadata.records import MemberRecord, QueueRecord
from warren.node.cluster_problems import problems_of
from warren.node.node_identity import NodeIdentity

# The names of missing queues that are shown of each virtual host and node.
_NAMES_MAX = 5


def _unknown_version(member: int) -> str | None:
    """The version of another member, which is not known."""
    return None


def _home(queue: QueueRecord) -> int | None:
    """The node that has last told that it leads a queue."""
    return queue.home


def _unknown() -> None:
    """What only a member can say of its cluster."""


class ClusterView(Struct, frozen=True, kw_only=True):
    """What the status of a cluster is read from."""

    identity: NodeIdentity
    metadata: Metadata
    # None if the node keeps nothing.
    journal: Journal | None
    # The links to the other members, by their ids.
    links: Mapping[int, NodeLink]
    cluster_name: Callable[[], str]
    # The version that another member runs, and the time since when this node is in the minority (ms).
    version_of: Callable[[int], str | None] = _unknown_version
    minority_since: Callable[[], int | None] = _unknown
    # The member that says that this node was removed.
    removed_by: Callable[[], str | None] = _unknown
    # The node that leads a quorum queue, as far as this one has heard.
    leader_of: Callable[[QueueRecord], int | None] = _home


def cluster_status(view: ClusterView, *, is_draining_alone: bool) -> ClusterStatus:
    """The cluster as the node of `view` sees it; `is_draining_alone` counts if it has met no other."""
    records = view.metadata.members
    known = records.by_id.values() or (_alone(view, is_draining=is_draining_alone),)
    members = tuple(_member(view, record) for record in known)
    leader = next((member.name for member in members if member.is_leader), None)
    since = view.minority_since()
    status = ClusterStatus(
        cluster_id=records.cluster_id.hex(),
        cluster_name=view.cluster_name(),
        feature_level=records.feature_level,
        node=view.identity.name,
        leader=leader,
        is_in_minority=leader is None or since is not None,
        minority_since=since,
        removed_by=view.removed_by(),
        members=members,
        unavailable=tuple(_unavailable(view.metadata)),
        leaderless=tuple(_leaderless(view)),
        problems=(),
    )
    return replace(status, problems=problems_of(status))


def queues_on(metadata: Metadata, node: int) -> Iterator[tuple[str, list[str]]]:
    """Each virtual host that has queues on `node`, with their names."""
    if not metadata.homes.get(node):
        return
    for vhost in metadata.vhosts.by_name.values():
        names = list(_names_on(vhost.topology, node))
        if names:
            yield vhost.name, names


def _names_on(topology: DeclaredTopology, node: int) -> Iterator[str]:
    return (name for name, queue in topology.queues.items() if queue.home == node)


def _member(view: ClusterView, record: MemberRecord) -> MemberStatus:
    own = view.identity.incarnation
    return MemberStatus(
        id=record.id,
        name=record.name,
        host=record.host,
        cluster_port=record.cluster_port,
        is_up=record.is_up,
        incarnation=record.incarnation,
        is_draining=record.is_draining,
        feature_level=record.feature_level,
        role=_role(view.journal, record.id),
        is_leader=_leader(view) == record.id,
        link="self" if record.id == own.node else _link(view.links.get(record.id)),
        version=__version__ if record.id == own.node else view.version_of(record.id),
    )


def _alone(view: ClusterView, *, is_draining: bool) -> MemberRecord:
    """The record of a node that has met no other."""
    own = view.identity.incarnation
    return MemberRecord(
        id=own.node,
        name=view.identity.name,
        host="",
        cluster_port=0,
        incarnation=own.number,
        is_up=True,
        is_draining=is_draining,
        feature_level=view.metadata.members.feature_level,
    )


def _leader(view: ClusterView) -> int:
    """The member that leads; NOBODY if none is known. A node that keeps nothing decides alone."""
    if view.journal is None:
        return view.identity.incarnation.node
    _, leader = view.journal.group.leader
    return leader


def _role(journal: Journal | None, member: int) -> str:
    if journal is None:
        return VOTER
    configuration = journal.group.replica.configuration
    if configuration.is_voter(member):
        return VOTER
    return "learner" if member in configuration.members else "none"


def _link(link: NodeLink | None) -> str:
    if link is None or link.hello is None:
        return "not connected"
    return "silent" if link.is_silent else "connected"


def _unavailable(metadata: Metadata) -> Iterator[UnavailableQueues]:
    """The queues on members that are down, and on former ones."""
    members = metadata.members
    missing = [(record.id, record.name, True) for record in members.by_id.values() if not record.is_up]
    missing += [(removed.id, removed.name, False) for removed in members.removed.values()]
    for id, name, is_member in missing:
        for vhost, names in queues_on(metadata, id):
            yield UnavailableQueues(
                vhost=vhost,
                node=name,
                is_member=is_member,
                count=len(names),
                names=tuple(islice(names, _NAMES_MAX)),
            )


def _leaderless(view: ClusterView) -> Iterator[LeaderlessQueues]:
    """The quorum queues that have a member which is up, and no majority."""
    members = view.metadata.members
    down = {member.id: member.name for member in members.by_id.values() if not member.is_up}
    if not down and not members.removed:
        return
    for vhost in view.metadata.vhosts.by_name.values():
        found: dict[tuple[str, ...], list[str]] = {}
        for queue in vhost.topology.queues.values():
            count = len(queue.members)
            missing = tuple(down[node] for node, _ in queue.members if node in down)
            up_count = count - len(missing)
            is_left_alone = count == 1 and view.leader_of(queue) is None
            if up_count and (is_left_alone or 2 * up_count <= count):
                found.setdefault(missing, []).append(queue.name)
        for missing, names in found.items():
            yield LeaderlessQueues(
                vhost=vhost.name, missing=missing, count=len(names), names=tuple(names[:_NAMES_MAX])
            )
