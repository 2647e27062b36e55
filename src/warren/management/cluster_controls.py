"""What a node says of its cluster, and the operations on the cluster: joining, leaving, maintenance."""

from typing import Protocol

from msgspec import Struct

from warren.management.controls import ControlRefused

# The role of a member that takes part in every decision about the metadata.
VOTER = "voter"


class UnknownMember(ControlRefused):
    """The cluster has no member of this name."""


class MemberStatus(Struct, frozen=True, kw_only=True):
    """A member of the cluster, or the node itself if it has met no other, as this node knows it."""

    id: int
    name: str
    # Where the other members reach it; empty and 0 if it has met no other.
    host: str
    cluster_port: int
    # Whether the cluster has agreed that it is there.
    is_up: bool
    # The number of its present run, or of its last one.
    incarnation: int
    # True while it is in maintenance mode: it accepts no clients, and is given no queues by choice.
    is_draining: bool
    feature_level: int
    # In the group that agrees on the metadata: `voter`, `learner` or `none`.
    role: str
    is_leader: bool
    # The link of this node to it: `self`, `connected`, `silent`, or `not connected`.
    link: str
    # The version of Warren that it runs; None if it is not known.
    version: str | None


class UnavailableQueues(Struct, frozen=True, kw_only=True):
    """The queues of one virtual host that are on one node that is missing."""

    vhost: str
    node: str
    # False for a former member, which does not come back.
    is_member: bool
    count: int
    # The names of the first ones.
    names: tuple[str, ...]


class LeaderlessQueues(Struct, frozen=True, kw_only=True):
    """The quorum queues of one virtual host that nobody leads for one reason."""

    vhost: str
    # The members of the cluster that are down, without which they have no majority; none if those that they
    # need were removed.
    missing: tuple[str, ...]
    count: int
    # The names of the first ones.
    names: tuple[str, ...]


class ClusterStatus(Struct, frozen=True, kw_only=True):
    """The cluster as one node sees it."""

    # Empty if the node has met no other.
    cluster_id: str
    cluster_name: str
    feature_level: int
    # The node that says this.
    node: str
    # The member that leads the group which agrees on the metadata; None if none is known.
    leader: str | None
    # True if this node hears no majority, so that nothing can be declared on it; and since when (Unix time,
    # ms), None if that is not known.
    is_in_minority: bool
    minority_since: int | None
    # The member that refuses this node because it was removed from the cluster; None if none does.
    removed_by: str | None = None
    members: tuple[MemberStatus, ...]
    unavailable: tuple[UnavailableQueues, ...]
    leaderless: tuple[LeaderlessQueues, ...] = ()
    # What is wrong, and what to do about it, a sentence each.
    problems: tuple[str, ...]


class ClusterControls(Protocol):
    """Port of the node. `user` is recorded in the audit log; ControlRefused says what is not possible.

    AmqpError if no majority of the members agrees in time.
    """

    @property
    def accepts_clients(self) -> bool:
        """True if the listeners of AMQP and streams are open."""

    def status(self) -> ClusterStatus:
        """The cluster as this node sees it."""

    async def join(self, user: str, host: str, port: int, *, is_reset: bool) -> bool:
        """Join the cluster of the member that listens at `host` and `port` for other nodes.

        With `is_reset` the node gives up what it has. Returns false if it is a member already.
        """

    async def leave(self, user: str, *, is_loss_accepted: bool) -> None:
        """Leave the cluster; with `is_loss_accepted` also if queues are lost with this node."""

    async def reset(self, user: str, *, is_loss_accepted: bool) -> None:
        """Leave the cluster, and give up everything; with `is_loss_accepted` also if there is anything."""

    async def forget(self, user: str, name: str) -> None:
        """Remove a member that is down and will not come back; its queues stay unavailable.

        UnknownMember if there is none of this name.
        """

    async def drain(self, user: str) -> None:
        """Begin maintenance: accept no clients, and close the connections of those that there are."""

    async def revive(self, user: str) -> None:
        """End maintenance."""
