"""Groups of subscriptions of which one is active: single active consumers, by stream and name.

    new ─ first of its group ─▶ ACTIVE ─ another is to be ─▶ leaving ─ it has answered ─▶ the other is ACTIVE

What a client stores before it answers, unsubscribes or is lost is stored when the other one hears that it is
active. RabbitMQ 3.10 knows no such groups in streams; the order is that of 3.11.

The partitions of a super stream are spread: of the consumers of one partition, that one is active whose place
is the number of the partition, modulo their number.
"""

from collections import OrderedDict
from itertools import islice
from typing import Protocol


class GroupMember(Protocol):
    """A subscription that takes part in a group."""

    def activate(self) -> None:
        """It is the active one: ask the client where to begin."""

    def deactivate(self) -> None:
        """It is active no more: ask the client to say when it has stopped."""


class _Group:
    """The members in order of arrival, which is active, and whether that one is leaving."""

    __slots__ = ("active", "is_deactivating", "members", "partition")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.members: OrderedDict[GroupMember, None] = OrderedDict()
        self.active: GroupMember | None = None
        self.is_deactivating = False

    @property
    def next_active(self) -> GroupMember:
        """Who is to be active: for a stream of its own, who came first."""
        place = self.partition % len(self.members) if self.partition >= 0 else 0
        return next(islice(self.members, place, None))


GroupKey = tuple[str, str, str]


class SingleActiveGroups:
    """All groups, by virtual host, stream and name."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[GroupKey, _Group] = {}

    def join(self, key: GroupKey, member: GroupMember, partition: int) -> None:
        """`member` takes part; `partition` is that of a super stream, or -1."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(partition)
        group.members[member] = None
        self._settle(group)

    def leave(self, key: GroupKey, member: GroupMember) -> None:
        """`member` is gone."""
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
        """`member` has said that it has stopped."""
        group = self._groups.get(key)
        if group is not None and group.active is member and group.is_deactivating:
            group.active = None
            group.is_deactivating = False
            self._settle(group)

    def _settle(self, group: _Group) -> None:
        if group.active is None:
            group.active = group.next_active
            group.active.activate()
        elif group.active is not group.next_active and not group.is_deactivating:
            group.is_deactivating = True
            group.active.deactivate()
