"""Maps keys to several values: bindings by source, destination, key or rule.

Most keys have one value, which is stored without a dict. Values must be hashable, and no dicts.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class Multimap(Generic[Value]):
    """Stores each value once per key, in order of arrival; `count` is the number of all values."""

    __slots__ = ("_groups", "count")

    def __init__(self) -> None:
        self._groups: dict[Hashable, Value | dict[Value, Value]] = {}
        self.count = 0

    def add(self, key: Hashable, value: Value) -> bool:
        """Add `value` under `key`; False if an equal one exists."""
        group = self._groups.get(key)
        if group is None:
            self._groups[key] = value
        elif isinstance(group, dict):
            if value in group:
                return False
            group[value] = value
        elif group == value:
            return False
        else:
            self._groups[key] = {group: group, value: value}
        self.count += 1
        return True

    def remove(self, key: Hashable, value: Value) -> Value | None:
        """Remove and return the value under `key` that equals `value`."""
        group = self._groups.get(key)
        removed: Value | None = None
        if isinstance(group, dict):
            removed = group.pop(value, None)
            if not group:
                del self._groups[key]
        elif group is not None and group == value:
            removed = group
            del self._groups[key]
        if removed is not None:
            self.count -= 1
        return removed

    def holds(self, key: Hashable, value: Value) -> bool:
        """True if an equal value exists under `key`."""
        group = self._groups.get(key)
        return value in group if isinstance(group, dict) else group == value

    def get(self, key: Hashable) -> Iterable[Value]:
        """The values under `key`."""
        group = self._groups.get(key)
        if group is None:
            return ()
        return group if isinstance(group, dict) else (group,)

    def size(self, key: Hashable) -> int:
        """The number of values under `key`."""
        group = self._groups.get(key)
        if group is None:
            return 0
        return len(group) if isinstance(group, dict) else 1

    def each_first(self) -> Iterator[Value]:
        """The oldest value under each key."""
        for group in self._groups.values():
            yield next(iter(group)) if isinstance(group, dict) else group

    def each(self) -> Iterator[Value]:
        """All values, grouped by key."""
        for group in self._groups.values():
            if isinstance(group, dict):
                yield from group
            else:
                yield group
