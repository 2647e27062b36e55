"""Single active consumers of streams: groups of subscriptions, by stream and name, of which one is active.

    new ─ first of its group ─▶ ACTIVE ─ another is to be ─▶ leaving ─ it has answered ─▶ the other is ACTIVE

An offset that the leaving client stores before it answers, unsubscribes or disconnects is stored before the
next one is activated. RabbitMQ 3.10 has no such groups for streams; the order is that of 3.11.

The partitions of a super stream are distributed: of the consumers of one partition, the active one is that
with the index (number of the partition modulo the number of consumers).
"""

from collections import OrderedDict
from itertools import islice
from typing import Protocol


class GroupMember(Protocol):
    """A subscription that is a member of a group."""

    def activate(self) -> None:
        """Activate it: ask the client where to begin."""

    def deactivate(self) -> None:
        """Deactivate it: ask the client to say when it has stopped."""


class _Group:
    """The members in order of arrival, the active one, and whether that one is leaving."""

    __slots__ = ("active", "is_deactivating", "members", "partition")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.members: OrderedDict[GroupMember, None] = OrderedDict()
        self.active: GroupMember | None = None
        self.is_deactivating = False

    @property
    def next_active(self) -> GroupMember:
        """The member to be active; for a single stream, the first to arrive."""
        place = self.partition % len(self.members) if self.partition >= 0 else 0
        return next(islice(self.members, place, None))


GroupKey = tuple[str, str, str]


class SingleActiveGroups:
    """All groups by virtual host, stream and name."""

    __slots__ = ("_groups", "_has_ended")

    def __init__(self) -> None:
        self._groups: dict[GroupKey, _Group] = {}
        self._has_ended = False

    def end(self) -> None:
        """Activate nobody any more, because the node stops."""
        self._has_ended = True

    def join(self, key: GroupKey, member: GroupMember, partition: int) -> None:
        """Add `member`; `partition` is that of a super stream, or -1."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(partition)
        group.members[member] = None
        self._settle(group)

    def leave(self, key: GroupKey, member: GroupMember) -> None:
        """Remove `member`."""
        group = self._groups[key]
        del group.members[member]
        if not group.members:
            del self._groups[key]
            return
        if group.active is member:
            group.active = None
            group.is_deactivating = False
        self._settle(group)

    def deactivated(self, key: GroupKey, member: GroupMember) -> None:
        """Activate the next member, because `member` has stopped."""
        group = self._groups.get(key)
        if group is not None and group.active is member and group.is_deactivating:
            group.active = None
            group.is_deactivating = False
            self._settle(group)

    def _settle(self, group: _Group) -> None:
        if self._has_ended:
            return
        if group.active is None:
            group.active = group.next_active
            group.active.activate()
        elif group.active is not group.next_active and not group.is_deactivating:
            group.is_deactivating = True
            group.active.deactivate()
