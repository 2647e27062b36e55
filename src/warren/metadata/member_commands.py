"""The commands about the members of a cluster, and the parts of a snapshot that restore them."""

from warren.metadata.commands import MetadataCommand
from warren.metadata.records import MemberRecord, RemovedMember


class FormCluster(MetadataCommand, frozen=True, kw_only=True):
    """Make the node that was alone the first member, with the id NODE_ALONE, of the cluster `cluster_id`."""

    # 16 bytes.
    cluster_id: bytes
    name: str
    host: str
    cluster_port: int
    incarnation: int
    feature_level: int
    # Where clients reach it, if that is advertised.
    amqp_host: str | None = None
    amqp_port: int | None = None


class AdmitMember(MetadataCommand, frozen=True, kw_only=True):
    """Add a member, which is down until MemberUp; its record in the metadata says which id it was given."""

    name: str
    host: str
    cluster_port: int
    incarnation: int
    feature_level: int


class RemoveMember(MetadataCommand, frozen=True, kw_only=True):
    """Remove a member that has left, or forget one that will not return: its queues stay, and are down."""

    id: int
    is_forgotten: bool = False


class MemberUp(MetadataCommand, frozen=True, kw_only=True):
    """Record that the run `incarnation` of a member is there, and where it is reached.

    All lower runs have ended: DeleteEphemeral may delete what ended with them.
    """

    id: int
    incarnation: int
    host: str
    cluster_port: int
    feature_level: int
    amqp_host: str | None = None
    amqp_port: int | None = None


class MemberDown(MetadataCommand, frozen=True, kw_only=True):
    """Record that the run `incarnation` of a member is not there; without effect if another one is known.

    The proposer has what ended with the run deleted by DeleteEphemeral.
    """

    id: int
    incarnation: int


class SetMemberDraining(MetadataCommand, frozen=True, kw_only=True):
    """Begin or end the draining of a member, on which no queues are placed meanwhile."""

    id: int
    is_draining: bool


class RaiseFeatureLevel(MetadataCommand, frozen=True, kw_only=True):
    """Permit what all members of at least this level know: commands, records and messages."""

    level: int


class RestoreMembers(MetadataCommand, frozen=True, kw_only=True):
    """Restore the members of a snapshot."""

    cluster_id: bytes
    feature_level: int
    next_id: int
    members: tuple[MemberRecord, ...]
    removed: tuple[RemovedMember, ...]


class RestoreAppliedProposals(MetadataCommand, frozen=True, kw_only=True):
    """Restore which proposals of a node a snapshot contains: up to `serial` of its run `incarnation`."""

    node: int
    incarnation: int
    serial: int
