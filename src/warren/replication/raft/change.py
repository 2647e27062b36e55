"""Configurations of a group as values, and changes of them as a pure function.

A change of one voter is made in one step: majorities of the old and the new configuration overlap. A change
of several goes through a joint configuration, in which the majorities of both must agree, and which a second
change leaves. A voter that becomes a learner stays a voter of the outgoing majority until then, so it is
kept among `learners_next`.

A change is an entry of the log, in this format, version 1; all numbers are little-endian:

     0        1            2          3         4          4 + 9n
    +--------+------------+----------+---------+----------+---------+
    | 1      | transition | count n (u16)      | n members| context |
    +--------+------------+--------------------+----------+---------+

A member is `kind u8 | replica u64`. The context is whatever the proposer wants to find again when the
change is applied. The empty payload is the change that leaves a joint configuration.
"""

import struct
from enum import IntEnum

from msgspec import Struct

from warren.limits_raft import CHANGE_MEMBERS_MAX

_VERSION = 1
_HEAD = struct.Struct("<BBH")
_MEMBER = struct.Struct("<BQ")


class ChangeRefused(ValueError):
    """The change cannot be made in this configuration, or its entry cannot be decoded."""


class MemberChangeKind(IntEnum):
    """What becomes of a replica; the numbers are those of the log."""

    VOTER = 0
    LEARNER = 1
    REMOVED = 2
    # The replica stays what it is; the context says what changed about it.
    UPDATED = 3


class Transition(IntEnum):
    """How a change goes through a joint configuration; the numbers are those of the log."""

    # Only if more than one replica changes; then the leader leaves it by itself.
    AUTO = 0
    # Always; the leader leaves it by itself.
    JOINT_AUTO_LEAVE = 1
    # Always; it is left when somebody proposes it.
    JOINT_EXPLICIT = 2


class MemberChange(Struct, frozen=True):
    """What becomes of one replica."""

    kind: MemberChangeKind
    replica: int


class ConfigurationChange(Struct, frozen=True):
    """A change of a configuration; without members and with `AUTO` it leaves a joint configuration."""

    members: tuple[MemberChange, ...] = ()
    transition: Transition = Transition.AUTO
    context: bytes = b""

    @property
    def is_leaving(self) -> bool:
        """True if it leaves a joint configuration."""
        return not self.members and self.transition is Transition.AUTO

    @property
    def is_joint(self) -> bool:
        """True if it enters a joint configuration."""
        return self.transition is not Transition.AUTO or len(self.members) > 1

    @property
    def auto_leave(self) -> bool:
        """True if the leader leaves the joint configuration by itself."""
        return self.is_joint and self.transition is not Transition.JOINT_EXPLICIT


class Configuration(Struct, frozen=True):
    """The members of a group, each tuple in ascending order; `outgoing` is empty if it is not joint."""

    voters: tuple[int, ...] = ()
    outgoing: tuple[int, ...] = ()
    learners: tuple[int, ...] = ()
    # Voters of the outgoing majority that become learners when the joint configuration is left.
    learners_next: tuple[int, ...] = ()
    auto_leave: bool = False

    @property
    def is_joint(self) -> bool:
        """True while two majorities must agree."""
        return bool(self.outgoing)

    @property
    def members(self) -> tuple[int, ...]:
        """All replicas that entries are sent to, in ascending order."""
        return tuple(sorted({*self.voters, *self.outgoing, *self.learners}))

    def is_voter(self, replica: int) -> bool:
        """Return whether it votes, in either majority."""
        return replica in self.voters or replica in self.outgoing


def changed(configuration: Configuration, change: ConfigurationChange) -> Configuration:
    """Return the configuration after the change, or raise `ChangeRefused`."""
    if change.is_leaving:
        return leave_joint(configuration)
    if change.is_joint:
        return enter_joint(configuration, change.members, auto_leave=change.auto_leave)
    return change_simply(configuration, change.members)


def change_simply(configuration: Configuration, members: tuple[MemberChange, ...]) -> Configuration:
    """Return the configuration after a change of at most one voter and of any number of learners."""
    if configuration.is_joint:
        raise ChangeRefused("can't apply simple config change in joint config")
    result = _with_members(configuration, members)
    if len(set(configuration.voters) ^ set(result.voters)) > 1:
        raise ChangeRefused("more than one voter changed without entering joint config")
    return result


def enter_joint(
    configuration: Configuration, members: tuple[MemberChange, ...], *, auto_leave: bool
) -> Configuration:
    """Return the joint configuration of the old voters and those after the change."""
    if configuration.is_joint:
        raise ChangeRefused("config is already joint")
    if not configuration.voters:
        raise ChangeRefused("can't make a zero-voter config joint")
    joint = Configuration(
        voters=configuration.voters, outgoing=configuration.voters,
        learners=configuration.learners, auto_leave=auto_leave,
    )  # fmt: skip
    return _with_members(joint, members)


def leave_joint(configuration: Configuration) -> Configuration:
    """Return the configuration in which only the new majority counts."""
    if not configuration.is_joint:
        raise ChangeRefused("can't leave a non-joint config")
    learners = tuple(sorted({*configuration.learners, *configuration.learners_next}))
    return Configuration(voters=configuration.voters, learners=learners)


def encode_change(change: ConfigurationChange) -> bytes:
    """Return the payload of an entry."""
    if change == ConfigurationChange():
        return b""
    if len(change.members) > CHANGE_MEMBERS_MAX:
        raise ChangeRefused(f"a change has at most {CHANGE_MEMBERS_MAX} members, not {len(change.members)}")
    head = _HEAD.pack(_VERSION, change.transition, len(change.members))
    members = (_MEMBER.pack(member.kind, member.replica) for member in change.members)
    return head + b"".join(members) + change.context


def decode_change(payload: bytes) -> ConfigurationChange:
    """Return the change of an entry, or raise `ChangeRefused`."""
    if not payload:
        return ConfigurationChange()
    if len(payload) < _HEAD.size:
        raise ChangeRefused(f"the payload of a change has at least {_HEAD.size} bytes, not {len(payload)}")
    version, transition, count = _HEAD.unpack_from(payload)
    end = _HEAD.size + count * _MEMBER.size
    if version != _VERSION or count > CHANGE_MEMBERS_MAX or len(payload) < end:
        raise ChangeRefused(f"the payload of a change is not of version {_VERSION}: {payload[:64].hex()}")
    try:
        members = tuple(
            MemberChange(MemberChangeKind(kind), replica)
            for kind, replica in _MEMBER.iter_unpack(payload[_HEAD.size : end])
        )
        return ConfigurationChange(members, Transition(transition), payload[end:])
    except ValueError as error:
        raise ChangeRefused(f"the payload of a change has an unknown value: {error}") from None


def _with_members(configuration: Configuration, members: tuple[MemberChange, ...]) -> Configuration:
    """Return the configuration after each change in turn; replica 0 is none and is ignored."""
    voters, learners = set(configuration.voters), set(configuration.learners)
    learners_next = set(configuration.learners_next)
    for member in members:
        kind, replica = member.kind, member.replica
        if not replica or kind is MemberChangeKind.UPDATED:
            continue
        if kind is MemberChangeKind.LEARNER and replica in learners:
            continue
        for group in (voters, learners, learners_next):
            group.discard(replica)
        if kind is MemberChangeKind.VOTER:
            voters.add(replica)
        elif kind is MemberChangeKind.LEARNER:
            # A replica must not be a learner and a voter, of either majority, at the same time.
            (learners_next if replica in configuration.outgoing else learners).add(replica)
    if not voters:
        raise ChangeRefused("removed all voters")
    return Configuration(
        voters=tuple(sorted(voters)), outgoing=configuration.outgoing, learners=tuple(sorted(learners)),
        learners_next=tuple(sorted(learners_next)), auto_leave=configuration.auto_leave,
    )  # fmt: skip
