"""Random commands of the metadata, for simulations."""

import random

from warren.metadata.commands import (
    Bind,
    ChangeQueueMembers,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteExchange,
    DeleteExclusiveQueues,
    DeleteQueue,
    EndLease,
    GrantLease,
    LeadQueue,
    MetadataCommand,
    PauseQueue,
    PutUser,
    PutVhost,
    RemoveReplicas,
    RemoveUser,
    RemoveVhost,
    RenewLease,
    SetPermissions,
    SetPolicy,
    Unbind,
)
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.member_commands import (
    AdmitMember,
    FormCluster,
    MemberDown,
    MemberUp,
    RaiseFeatureLevel,
    RemoveMember,
    SetMemberDraining,
)


def lease(id: str, queue: str) -> LeaseRecord:
    return LeaseRecord(
        id=id,
        queue=queue,
        user="u",
        key=id,
        places=(0, 2),
        messages=2,
        byte_count=9,
        granted_at=1,
        expires_at=5,
    )


def any_member_command(chance: random.Random) -> MetadataCommand:
    """A command about the members, of which the first one stays, in the runs that it has."""
    id, run, level = chance.choice([2, 2, 2, 3, 3, 4]), chance.randrange(1, 4), chance.randrange(1, 4)
    everything: list[MetadataCommand] = [
        *[
            FormCluster(
                cluster_id=chance.choice([b"c", b"c", b"d"]) * 16, name="one", host="h", cluster_port=1,
                incarnation=1, feature_level=level,
            )
        ]
        * 3,
        *[
            AdmitMember(
                name=chance.choice("abc"), host="h", cluster_port=2, incarnation=run, feature_level=level
            )
        ]
        * 3,
        *[MemberUp(id=id, incarnation=run, host=chance.choice("hi"), cluster_port=2, feature_level=level)]
        * 3,
        MemberUp(
            id=id, incarnation=run, host="h", cluster_port=2, feature_level=3, amqp_host="a", amqp_port=3
        ),
        MemberDown(id=chance.choice([1, id]), incarnation=run),
        SetMemberDraining(id=chance.choice([1, id]), is_draining=chance.random() < 0.5),
        RaiseFeatureLevel(level=level),
        RemoveMember(id=id, is_forgotten=chance.random() < 0.5),
        DeleteEphemeral(node=id, incarnation=run, count_max=3),
        RemoveReplicas(node=chance.choice([1, id]), count_max=chance.choice([1, 3])),
    ]  # fmt: skip
    return chance.choice(everything)


def any_quorum_command(chance: random.Random, vhost: str) -> MetadataCommand:
    """A declaration of a quorum queue, or a change of its members."""
    name = chance.choice("abc")
    if chance.random() < 0.5:
        return DeclareQueue(
            vhost=vhost,
            name=name,
            durable=chance.random() < 0.9,
            arguments={"x-queue-type": "quorum"},
            home=chance.choice([0, 2]),
            members=tuple(chance.choices([1, 2, 3, 4], k=chance.randrange(5))),
        )
    if chance.random() < 0.5:
        return LeadQueue(
            vhost=vhost, queue=name, number=chance.randrange(1, 12), node=chance.choice([1, 2, 3, 4])
        )
    return ChangeQueueMembers(
        vhost=vhost,
        queue=name,
        number=chance.randrange(1, 12),
        added=tuple(chance.choices([1, 2, 3, 4], k=chance.randrange(2))),
        removed=tuple(chance.choices([1, 2, 3, 4], k=chance.randrange(2))),
    )


def any_command(chance: random.Random) -> MetadataCommand:
    vhost = chance.choice(["v", "v", "v", "w"])
    one, two = chance.choice("abc"), chance.choice("abc")
    is_to_queue = chance.random() < 0.6
    # Leases of all queues have different ids.
    leased = f"of {one}"
    binding = {"vhost": vhost, "source": one, "destination": two, "is_to_queue": is_to_queue}
    everything: list[MetadataCommand] = [
        PutVhost(name=vhost, description=one),
        PutVhost(name=vhost),
        PutUser(name=one, password_hash=two.encode(), hashing_algorithm="x"),
        SetPermissions(user=one, vhost=vhost, configure=two, write="", read=""),
        SetPolicy(vhost=vhost, name=one, pattern=two, definition={"expires": chance.choice([5, "x"])}),
        *[
            DeclareExchange(
                vhost=vhost,
                name=one,
                type="fanout",
                durable=chance.random() < 0.7,
                auto_delete=chance.random() < 0.6,
            )
        ]
        * 4,
        *[
            DeclareQueue(
                vhost=vhost,
                name=one,
                durable=chance.random() < 0.7,
                owner=chance.choice([None, None, "c"]),
                arguments={"n": chance.randrange(9)},
                home=chance.choice([0, 0, 2, 3]),
            )
        ]
        * 4,
        *[any_quorum_command(chance, vhost)] * 8,
        *[Bind(**binding)] * 8,
        *[Unbind(**binding)] * 2,
        DeleteQueue(vhost=vhost, name=one),
        DeleteQueue(vhost=vhost, name=one),
        *[PauseQueue(vhost=vhost, name=one, is_paused=chance.random() < 0.6)] * 3,
        *[GrantLease(vhost=vhost, lease=lease(leased, queue=one))] * 3,
        RenewLease(vhost=vhost, id=leased, expires_at=chance.randrange(9)),
        EndLease(vhost=vhost, id=leased, state=chance.choice(list(LeaseState)[1:])),
        DeleteExclusiveQueues(vhost=vhost, owner="c", count_max=2),
        DeleteExchange(vhost=vhost, name=one, if_unused=chance.random() < 0.5),
    ]
    if chance.random() < 0.03:
        return chance.choice([RemoveVhost(name=vhost), RemoveUser(name=one)])
    return chance.choice(everything)
