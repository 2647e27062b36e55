"""The parameters of a load."""

from dataclasses import dataclass

from warren.client.uri import Target

IN_FLIGHT_BYTES = 8 << 20
IN_FLIGHT_MIN = 1_000
_OVERHEAD_BYTES = 64  # approximate overhead of a message on the wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The traffic of a measurement; all numbers are for the whole load, not for each process.

    Raises ValueError for parameters that contradict each other.
    """

    target: Target  # where the queues are declared
    publish_target: Target | None = None  # where producers connect; None: target
    consume_target: Target | None = None  # where consumers connect; None: target
    size: int = 16
    is_persistent: bool = False
    queue_type: str = ""  # x-queue-type of the queues; empty: the broker's default
    run: str = ""  # a part of the names of queues and exchange; empty: random
    producers: int = 1
    consumers: int = 1
    queues: int = 1
    exchange_type: str = ""  # empty: the default exchange
    bindings: int = 0  # of a topic exchange
    confirm_window: int = 0  # 0: no confirms
    ack_every: int = 0  # 0: automatic acknowledgement
    prefetch: int = 0  # 0: no limit
    messages_per_write: int = 0  # 0: as many as fit into a chunk
    in_flight_max: int = 0  # published and not consumed; 0: as many as fit into IN_FLIGHT_BYTES
    waiting: int = 0  # messages kept in the queues by withholding acknowledgements
    rate: int = 0  # messages per second of all producers; 0: unlimited
    processes: int = 2
    duration_s: float = 5.0
    warmup_s: float = 1.0

    def __post_init__(self) -> None:
        for name in ("producers", "queues", "processes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.rate and self.size < 16:
            raise ValueError("a load with a fixed rate needs bodies of at least 16 bytes for two timestamps")
        if self.prefetch and self.ack_every > self.prefetch:
            raise ValueError("ack_every must not exceed prefetch, or the consumer would stop")
        if self.waiting and not (self.ack_every and self.prefetch and self.consumers):
            raise ValueError(
                "waiting needs consumers, ack_every and prefetch, since it withholds acknowledgements"
            )
        if self.exchange_type == "topic" and self.bindings < 1:
            raise ValueError("a topic load needs at least one binding")

    @property
    def copies(self) -> int:
        """The number of deliveries of one published message."""
        return self.queues if self.exchange_type == "fanout" else 1

    @property
    def round(self) -> int:
        """The number of messages until each producer has published to all of its routes.

        It is also at least `waiting`. Before that, the broker is not in its steady state.
        """
        routes = self.bindings or max(1, self.queues // self.producers)
        return max(self.producers * routes, self.waiting)

    @property
    def in_flight_limit(self) -> int:
        """The maximum number of deliveries in flight; unlimited without consumers."""
        if not self.consumers:
            return 1 << 62
        fitting = max(IN_FLIGHT_MIN, IN_FLIGHT_BYTES // (self.size + _OVERHEAD_BYTES))
        return self.in_flight_max or self.waiting + fitting

    def consumer_queues(self, consumer: int) -> list[int]:
        """Return the queues that a consumer reads; every queue is read, and consumers share them evenly."""
        if self.consumers >= self.queues:
            return [consumer % self.queues]
        return list(range(consumer, self.queues, self.consumers))

    def producer_queues(self, producer: int) -> list[int]:
        """Return the queues that a producer publishes to in turn."""
        if self.producers >= self.queues:
            return [producer % self.queues]
        return list(range(producer, self.queues, self.producers))
