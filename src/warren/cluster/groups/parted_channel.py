"""One purpose of the link to another node, for payloads of any size."""

from collections import deque
from collections.abc import Callable

from warren.cluster.groups.group_payloads import GroupPayload
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.limits_raft import GROUP_PART_SIZE, GROUP_PARTS_SIZE_MAX


class PartedChannel:
    """Sends payloads, those that are larger than a link takes at a time in parts, and joins parts."""

    __slots__ = ("_find", "_parts", "_parts_size", "_purpose", "_waiting")

    def __init__(self, purpose: LinkPurpose, find: Callable[[], NodeLink | None]) -> None:
        """`find` returns the link; None if there is none."""
        self._purpose = purpose
        self._find = find
        # The rest of a payload that was begun.
        self._waiting: deque[tuple[int, bytes]] = deque()
        # What has arrived of one, and its size in bytes.
        self._parts: list[bytes] = []
        self._parts_size = 0

    @property
    def is_writable(self) -> bool:
        """True if another payload may be sent."""
        return not self._waiting and self._takes_more()

    def send(self, kind: int, body: bytes) -> None:
        """Send a payload, of which some may have to wait for the link; only if the channel is writable."""
        assert not self._waiting
        at = 0
        while len(body) - at > GROUP_PART_SIZE:
            self._waiting.append((GroupPayload.PART, body[at : at + GROUP_PART_SIZE]))
            at += GROUP_PART_SIZE
        self._waiting.append((kind, body[at:] if at else body))
        self.continue_sending()

    def continue_sending(self) -> None:
        """Send what waits, as much as the link takes."""
        while self._waiting and self._takes_more():
            link = self._find()
            assert link is not None
            link.send(self._purpose, *self._waiting.popleft())

    def received(self, kind: int, body: bytes) -> bytes | None:
        """Return the payload of which the last part was received; None for another part. PayloadError."""
        if kind != GroupPayload.PART and not self._parts:
            return body
        self._parts_size += len(body)
        if self._parts_size > GROUP_PARTS_SIZE_MAX:
            raise PayloadError(f"parts of {self._parts_size} bytes")
        self._parts.append(body)
        if kind == GroupPayload.PART:
            return None
        joined = b"".join(self._parts)
        self._parts = []
        self._parts_size = 0
        return joined

    def lost(self) -> None:
        """Forget what belongs to the session, which has ended."""
        self._waiting.clear()
        self._parts = []
        self._parts_size = 0

    def _takes_more(self) -> bool:
        link = self._find()
        return link is not None and link.is_writable(self._purpose)
