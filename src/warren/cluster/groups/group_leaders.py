"""Which node leads each group, as the leaders tell: to all nodes, and to each one when its session begins.

    opened ─▶ LEADERS ─▶ known at every node ─▶ listeners
    resigned ─▶ LEADERS ─▶ nobody leads, until another one tells

The highest term counts. What a node has told stays when its session is lost, as of a leader that is away, and
counts again when it has repeated it.
"""

from collections.abc import Callable
from itertools import islice

from msgspec import Struct

from warren.cluster.groups.group_payloads import LEADER_ROW, NUMBER_END, VERSION, GroupPayload
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.node_link import PayloadError
from warren.limits_raft import GROUP_LEADERS_MAX, GROUP_PAYLOAD_SIZE

_ROWS_MAX = GROUP_PAYLOAD_SIZE // LEADER_ROW.size
_VERSION = bytes((VERSION,))
_RESIGNED = 0
_LEADS = 1


class GroupLeader(Struct, frozen=True):
    """Who leads a group."""

    # 0: the one that has told the term does not lead any more.
    node: int
    term: int
    # True while nothing reaches the node, or it has not repeated that it leads.
    is_away: bool = False


NO_LEADER = GroupLeader(0, 0)
# Called with the number of a group, and who leads it now.
LeaderListener = Callable[[int, GroupLeader], None]


class GroupLeaders:
    """What this node knows of the leaders, and what it tells of its own groups."""

    def __init__(
        self,
        node: int,
        changed: Callable[[], None],
        ended: Callable[[int, int, int], None] = lambda number, node, term: None,
    ) -> None:
        """`node` is this one; `changed` is called when there is something to tell.

        `ended` is called with a group, a node and a term, in which the node says that it leads no more.
        """
        self._node = node
        self._changed = changed
        self._ended = ended
        self._known: dict[int, GroupLeader] = {}
        # The term of each group that this node leads, or in which it has resigned.
        self._own: dict[int, tuple[int, int]] = {}
        # Node -> groups that it is to be told of, while there is a session.
        self._untold: dict[int, dict[int, None]] = {}
        self._listeners: dict[int, list[LeaderListener]] = {}

    def leader(self, number: int) -> GroupLeader:
        """Who leads a group; `NO_LEADER` if nobody is known."""
        return self._known.get(number, NO_LEADER)

    def listen(self, number: int, listener: LeaderListener) -> None:
        """Call `listener` whenever the leader of a group changes, goes away or comes back."""
        self._listeners.setdefault(number, []).append(listener)

    def ignore(self, number: int, listener: LeaderListener) -> None:
        """Do not call `listener` any more."""
        listeners = self._listeners[number]
        listeners.remove(listener)
        if not listeners:
            del self._listeners[number]

    def opened(self, number: int, term: int) -> None:
        """A group of this node leads, and has applied everything of earlier terms."""
        self._tell(number, term, _LEADS)
        self._know(number, GroupLeader(self._node, term))

    def resigned(self, number: int, term: int) -> None:
        """A group that has led in `term` does not any more, while this node goes on."""
        own = self._own.get(number)
        if own is None or own[0] > term:
            return
        self._tell(number, term, _RESIGNED)
        self._resigned(number, self._node, term)

    def forget(self, number: int) -> None:
        """The queue was deleted."""
        self._known.pop(number, None)
        self._own.pop(number, None)
        for untold in self._untold.values():
            untold.pop(number, None)

    # --- what the links tell --------------------------------------------------------------------------

    def session_began(self, node: int) -> None:
        """Tell a node all groups that this one leads."""
        self._untold[node] = {number: None for number, (_, how) in self._own.items() if how == _LEADS}
        if self._untold[node]:
            self._changed()

    def session_lost(self, node: int) -> None:
        """The leaders on a node are away."""
        self._untold.pop(node, None)
        for number in [number for number, leader in self._known.items() if leader.node == node]:
            self._know(number, GroupLeader(node, self._known[number].term, is_away=True))

    def received(self, node: int, body: bytes) -> None:
        """Take what a node tells. PayloadError."""
        reader = RaftMessageReader(body)
        while not reader.is_at_end:
            number, term, how = reader.numbers(LEADER_ROW)
            if not number or not 0 < term < NUMBER_END or how not in (_LEADS, _RESIGNED):
                raise PayloadError(f"the leader of group {number} in term {term}: {how}")
            if how == _LEADS:
                self._know(number, GroupLeader(node, term))
            else:
                self._resigned(number, node, term)
                self._ended(number, node, term)

    def flush(self, node: int, channel: PartedChannel) -> None:
        """Tell a node what it has not been told, as much as its link takes."""
        untold = self._untold.get(node)
        while untold and channel.is_writable:
            rows = []
            for number in list(islice(untold, _ROWS_MAX)):
                del untold[number]
                rows.append(LEADER_ROW.pack(number, *self._own[number]))
            channel.send(GroupPayload.LEADERS, _VERSION + b"".join(rows))

    # --- private --------------------------------------------------------------------------------------

    def _tell(self, number: int, term: int, how: int) -> None:
        self._own[number] = term, how
        for untold in self._untold.values():
            untold[number] = None
        self._changed()

    def _know(self, number: int, leader: GroupLeader) -> None:
        known = self._known.get(number, NO_LEADER)
        if leader.term < known.term or leader == known:
            return
        if not known.term and len(self._known) >= GROUP_LEADERS_MAX:
            raise PayloadError(f"more than {GROUP_LEADERS_MAX} groups")
        self._known[number] = leader
        for listener in list(self._listeners.get(number, ())):
            listener(number, leader)

    def _resigned(self, number: int, node: int, term: int) -> None:
        known = self._known.get(number, NO_LEADER)
        if known.node == node and known.term <= term:
            self._know(number, GroupLeader(0, term))
