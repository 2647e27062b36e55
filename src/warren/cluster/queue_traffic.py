"""What a node has under way to one queue on another node."""

from warren.cluster.attachment import Attachment
from warren.cluster.payload_reader import PayloadReader
from warren.cluster.remote_codec import MalformedPayload
from warren.cluster.unconfirmed_publishes import UnconfirmedPublishes
from warren.model.message import Message
from warren.queues.queue import Consumer, Queue


class QueueTraffic:
    """The publishes to one remote queue, and its consumers on this node."""

    __slots__ = (
        "attachments", "held_size", "is_durable", "is_forgotten", "is_kept", "is_named", "name", "number",
        "queue", "unconfirmed",
    )  # fmt: skip

    def __init__(self, queue: Queue, name: str, number: int, *, is_durable: bool) -> None:
        self.queue = queue
        self.name = name
        # The number of its record in the metadata, by which its home knows it.
        self.number = number
        self.is_durable = is_durable
        # True if it outlives a session: see `LeaderTraffic`.
        self.is_kept = False
        # True when the home was told in this session which queue it is.
        self.is_named = False
        # True when the queue was deleted.
        self.is_forgotten = False
        # Publishes that the home has not answered, and the size of those that could not be sent (bytes).
        self.unconfirmed = UnconfirmedPublishes()
        self.held_size = 0
        # The consumers of this node, in order.
        self.attachments: dict[Consumer, Attachment] = {}

    @property
    def is_answered(self) -> bool:
        """True if nothing that was published waits for an answer."""
        return not self.unconfirmed.count

    def answered(self, count: int, is_refused: bool) -> bool:
        """The home has answered the next `count` publishes; False if there are not so many."""
        if not 0 < count <= self.unconfirmed.count:
            return False
        if is_refused:
            self.unconfirmed.refuse(count)
        else:
            self.unconfirmed.confirm(count)
        return True

    def session_began(self) -> None:
        """A session has begun with the node that is followed: only for what outlives a session."""

    def vhost_began(self) -> None:
        """The virtual host runs again at the node that is followed: only for what outlives a session."""

    def deliver(self, attachment: Attachment, message: Message, place: int, attempts: int) -> None:
        """Deliver a message of a quorum queue: only such a queue is asked."""
        raise NotImplementedError

    def got(self, request: object, message: Message, place: int, attempts: int) -> None:
        """Keep what `request` has fetched until its answer: only a quorum queue is asked."""
        raise NotImplementedError

    def handle(self, kind: int, reader: PayloadReader) -> None:
        """Handle an item of the leader about the queue, whose number was read: only for a quorum queue."""
        raise MalformedPayload(f"an item of kind {kind} about queue {self.number}")

    def lost(self) -> None:
        """The session is lost: the home may have what was published, or not."""
        self.unconfirmed.refuse(self.unconfirmed.count)
