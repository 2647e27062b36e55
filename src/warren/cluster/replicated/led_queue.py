"""What a replicated quorum queue knows of its messages: what its leader says, here or on another node."""

from warren.cluster.replicated.local_replica import LocalReplica
from warren.errors import PreconditionFailed
from warren.model.arguments import QueueSettings
from warren.model.message import Message
from warren.queues.queue import Consumer
from warren.queues.queue_counts import QueueCounts
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.queues.replication_status import ReplicationStatus
from warren.queues.vhost_queue import VhostQueue
from warren.vhost.vhost import VirtualHost


class LedQueue(VhostQueue):
    """The base of a replicated queue: the replica on this node, and the numbers of the leader."""

    __slots__ = ("_counts", "_is_paused", "_leader", "_local", "_replica")

    def __init__(self, name: str, vhost: VirtualHost, settings: QueueSettings, local: LocalReplica) -> None:
        super().__init__(name, vhost.name, vhost, settings)
        self._local = local
        # The queue of the replica on this node, and the same if it leads.
        self._replica: QuorumQueue | None = None
        self._leader: QuorumQueue | None = None
        # What a leader on another node has last answered.
        self._counts = QueueCounts(0, 0)
        self._is_paused = False

    # --- what only a leader on this node does ----------------------------------------------------------

    def pump(self) -> None:
        """Deliver ready messages to ready consumers."""
        if self._leader is not None:
            self._leader.pump()

    def refuses(self, message: Message) -> bool:
        """True if this node leads, and the queue is full for `message` and rejects publishes."""
        return self._leader is not None and self._leader.refuses(message)

    def check_positioned(self) -> None:
        """PreconditionFailed if another node has the positions."""
        if self._leader is None:
            raise PreconditionFailed(
                f"queue '{self.name}' in vhost '{self.vhost_name}' is on another node, and cannot receive"
                " messages exactly once from here"
            )
        self._leader.check_positioned()

    # --- what the metadata say ------------------------------------------------------------------------

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on: the declared arguments merged with the policies that match."""
        self.settings = settings
        if self._replica is not None:
            self._replica.apply_settings(settings)

    def pause(self) -> None:
        """Pause deliveries to consumers and basic.get until `resume`."""
        self._is_paused = True
        if self._replica is not None:
            self._replica.pause()

    def resume(self) -> None:
        """Resume deliveries."""
        self._is_paused = False
        if self._replica is not None:
            self._replica.resume()

    # --- what is known here ---------------------------------------------------------------------------

    @property
    def message_count(self) -> int:
        """The number of ready messages, as the leader has last said."""
        return self._counts.message_count if self._leader is None else self._leader.message_count

    @property
    def total_count(self) -> int:
        """The number of all messages, as the leader has last said."""
        return self._counts.message_count if self._leader is None else self._leader.total_count

    @property
    def consumer_count(self) -> int:
        """The number of consumers, as the leader has last said."""
        return self._counts.consumer_count if self._leader is None else self._leader.consumer_count

    def counts(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers, as the leader has last said."""
        return self._counts if self._leader is None else self._leader.counts()

    @property
    def is_paused(self) -> bool:
        """True while deliveries are paused."""
        return self._is_paused

    @property
    def ready_bytes(self) -> int:
        """The size of the ready messages in bytes; 0 if another node leads."""
        return 0 if self._leader is None else self._leader.ready_bytes

    @property
    def paged_count(self) -> int:
        """The number of messages that are only on disk; 0 if another node leads."""
        return 0 if self._leader is None else self._leader.paged_count

    @property
    def persistent_count(self) -> int:
        """The number of messages that would survive a restart; 0 if another node leads."""
        return 0 if self._leader is None else self._leader.persistent_count

    @property
    def persistent_bytes(self) -> int:
        """The size of these in bytes; 0 if another node leads."""
        return 0 if self._leader is None else self._leader.persistent_bytes

    @property
    def head_timestamp(self) -> int | None:
        """The property `timestamp` of the first ready message; None if another node leads."""
        return None if self._leader is None else self._leader.head_timestamp

    @property
    def oldest_ready_at(self) -> int | None:
        """When the oldest ready message was published (Unix time, ms); None if another node leads."""
        return None if self._leader is None else self._leader.oldest_ready_at

    @property
    def ready_by_priority(self) -> dict[int, int] | None:
        """The number of ready messages of each priority; None without priorities, or if another leads."""
        return None if self._leader is None else self._leader.ready_by_priority

    @property
    def active_consumer(self) -> Consumer | None:
        """The active consumer, if this node leads and the queue has single active consumer."""
        return None if self._leader is None else self._leader.active_consumer

    @property
    def is_due_for_deletion(self) -> bool:
        """True if this node leads, and the queue has expired."""
        return self._leader is not None and self._leader.is_due_for_deletion

    @property
    def is_down(self) -> bool:
        """True while the replica on this node is not trusted."""
        return self._replica is not None and self._replica.is_down

    def abandon(self) -> None:
        """End for good on this node: its replica takes no part any more, so that another one leads."""
        self.cancel_consumers()
        if self._replica is not None:
            self._replica.abandon()
        self.end()
        super().abandon()

    def end(self) -> None:
        """Forget everything that is under way: nothing is sent or received for it on this node any more."""
        raise NotImplementedError

    @property
    def is_left_alone(self) -> bool:
        """True if the replicas that the one on this node needs for a leader were removed."""
        return self._local.is_left_alone

    def recover(self) -> None:
        """Accept what is missing if the replica on this node is down, or left alone."""
        if self._replica is not None:
            self._replica.recover()
        self._local.continue_alone()

    def replication_status(self) -> ReplicationStatus | None:
        """The replica on this node; None if it has none."""
        return None if self._replica is None else self._replica.replication_status()

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of a queue."""
        if self._replica is not None:
            self._replica.shrink()
