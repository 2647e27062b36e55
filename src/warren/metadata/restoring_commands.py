"""The commands that make an object what its record says, for snapshots and for what replaces metadata."""

from warren.metadata.cluster_members import ClusterMembers
from warren.metadata.commands import PutUser, PutVhost, SetPermissions, SetPolicy, SetTopicPermissions
from warren.metadata.member_commands import RestoreMembers
from warren.metadata.permissions import Permission, TopicPermission
from warren.metadata.policies import Policy
from warren.metadata.users import User
from warren.metadata.vhosts import VhostMetadata


def put_vhost(vhost: VhostMetadata) -> PutVhost:
    """The command that creates or describes a virtual host."""
    return PutVhost(
        name=vhost.name,
        description=vhost.description,
        tags=vhost.tags,
        default_queue_type=vhost.default_queue_type,
        tracing=vhost.tracing,
        protected_from_deletion=vhost.protected_from_deletion,
    )


def set_policy(vhost: str, policy: Policy, *, is_operator: bool) -> SetPolicy:
    """The command that sets a policy, or an operator policy."""
    return SetPolicy(
        vhost=vhost,
        name=policy.name,
        pattern=policy.pattern,
        definition=policy.definition,
        priority=policy.priority,
        apply_to=policy.apply_to,
        is_operator=is_operator,
    )


def put_user(user: User) -> PutUser:
    """The command that creates or replaces a user."""
    return PutUser(
        name=user.name,
        password_hash=user.password_hash,
        hashing_algorithm=user.hashing_algorithm,
        tags=user.tags,
        limits=user.limits,
    )


def set_permissions(user: str, vhost: str, permission: Permission) -> SetPermissions:
    """The command that sets the permissions of a user."""
    return SetPermissions(
        user=user,
        vhost=vhost,
        configure=permission.configure,
        write=permission.write,
        read=permission.read,
    )


def set_topic_permissions(
    user: str, vhost: str, exchange: str, topic: TopicPermission
) -> SetTopicPermissions:
    """The command that sets the topic permissions of a user on an exchange."""
    return SetTopicPermissions(user=user, vhost=vhost, exchange=exchange, write=topic.write, read=topic.read)


def restore_members(members: ClusterMembers) -> RestoreMembers:
    """The command that restores the members of the cluster."""
    return RestoreMembers(
        cluster_id=members.cluster_id,
        feature_level=members.feature_level,
        next_id=members.next_id,
        members=tuple(members.by_id.values()),
        removed=tuple(members.removed.values()),
    )
