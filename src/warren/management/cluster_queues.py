"""The queues of other nodes in a list of queues: what their homes say of them.

Every node has the records of all queues in order, so only two things are asked for: the column by which the
list is sorted, if only the homes know it, and the rows that are shown.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from warren.limits import NAMES_PER_TURN
from warren.management.cluster_lists import keys_of, rows_of
from warren.management.listing import Column, JsonObject, next_turn, pieces_of, sort_key, sort_value
from warren.management.managed_node import ManagedNode
from warren.management.node_requests import other_nodes
from warren.management.queue_index import IndexedQueue
from warren.management.views.queue_columns import DECLARED, FIELDS
from warren.management.views.queues import down_queue_view
from warren.metadata.records import MemberRecord

_SEPARATOR = "\0"


def queue_id(named: IndexedQueue) -> str:
    """The id of a queue, by which nodes name it to each other."""
    return f"{named.vhost}{_SEPARATOR}{named.record.name}"


def queues_with(node: ManagedNode, ids: Sequence[str]) -> list[IndexedQueue]:
    """The queues with these ids that exist."""
    found: list[IndexedQueue] = []
    for id in ids:
        name, _, queue = id.partition(_SEPARATOR)
        vhost = node.metadata.vhost(name)
        record = None if vhost is None else vhost.topology.queues.get(queue)
        if record is not None:
            found.append(IndexedQueue(name, record))
    return found


async def own_queues(
    request: web.Request, node: ManagedNode, queues: Sequence[IndexedQueue]
) -> list[IndexedQueue]:
    """Those of `queues` whose home is this node."""
    found: list[IndexedQueue] = []
    for piece in pieces_of(queues, NAMES_PER_TURN):
        found += [named for named in piece if node.is_own(node.home_of(named.record))]
        await next_turn(request)
    return found


class ClusterQueues:
    """What one list shows of the queues of other nodes."""

    def __init__(
        self, request: web.Request, node: ManagedNode, *, own_view: Callable[[IndexedQueue], JsonObject]
    ) -> None:
        """`own_view` shows a queue of this node."""
        self._request = request
        self._node = node
        self._own_view = own_view
        self._members = other_nodes(request, node)
        # The rows of queues of other nodes, by node and id.
        self._rows: dict[tuple[int, str], JsonObject] = {}

    @property
    def is_alone(self) -> bool:
        """True if all queues are shown by this node."""
        return not self._members

    async def columns(
        self, own: Mapping[str, Column[IndexedQueue]], sort: str
    ) -> Mapping[str, Column[IndexedQueue]]:
        """The columns `own` of this node, of which `sort` has the values of other nodes as well."""
        root = sort.partition(".")[0]
        if self.is_alone or root in DECLARED or root not in FIELDS:
            return own
        column = own.get(sort)
        values: dict[str, Any] = {}
        for _, ids, (found,) in await keys_of(self._request, self._node, self._members, [sort]):
            keys = map(_comparable, found) if column is not None else map(sort_key, found)
            values.update(zip(ids, keys, strict=True))
        path = sort.split(".")

        def read(named: Sequence[IndexedQueue]) -> Sequence[Any]:
            own = self._own_keys(named, column, path)
            absent = self._absent(named, column)
            return [
                key if self._is_own(one) else values.get(queue_id(one), absent)
                for one, key in zip(named, own, strict=True)
            ]

        return {**own, sort: read}

    async def fetch(self, shown: Sequence[IndexedQueue]) -> None:
        """Fetch the rows of those of `shown` that other nodes have."""
        by_home: dict[int, list[str]] = {}
        for piece in pieces_of(shown, NAMES_PER_TURN):
            for named in piece:
                if not self._is_own(named):
                    by_home.setdefault(self._node.home_of(named.record), []).append(queue_id(named))
            await next_turn(self._request)
        by_id: Mapping[int, MemberRecord] = {member.id: member for member in self._members}
        wanted = [(by_id[home], ids) for home, ids in by_home.items() if home in by_id]
        self._rows = await rows_of(self._request, self._node, wanted)

    def view(self, named: IndexedQueue) -> JsonObject:
        """A queue as JSON; one whose home is not there is down."""
        if self._is_own(named) or self.is_alone:
            return self._own_view(named)
        row = self._rows.get((self._node.home_of(named.record), queue_id(named)))
        return down_queue_view(self._node, named) if row is None else row

    def _is_own(self, named: IndexedQueue) -> bool:
        return self._node.is_own(self._node.home_of(named.record))

    def _own_keys(
        self, named: Sequence[IndexedQueue], column: Column[IndexedQueue] | None, path: Sequence[str]
    ) -> Sequence[Any]:
        if column is not None:
            return column(named)
        return [sort_value(self._own_view(one) if self._is_own(one) else {}, path) for one in named]

    def _absent(self, named: Sequence[IndexedQueue], column: Column[IndexedQueue] | None) -> object:
        """The key of a queue of which nothing is known: that of an empty one."""
        if column is None:
            return sort_value({}, ("",))
        return column([IndexedQueue("", named[0].record)])[0] if named else None


def _comparable(value: object) -> object:
    """A key of a column, whose tuples were sent as lists."""
    return tuple(map(_comparable, value)) if isinstance(value, list) else value
