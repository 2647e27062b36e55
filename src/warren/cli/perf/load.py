"""What a load consists of."""

from dataclasses import dataclass

from warren.client.uri import Target

IN_FLIGHT_BYTES = 8 << 20
IN_FLIGHT_MIN = 1_000
_OVERHEAD_BYTES = 64  # of a small message on the wire, roughly


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One measurement's traffic; everything is per load, not per process."""

    target: Target
    size: int = 16
    is_persistent: bool = False
    producers: int = 1
    consumers: int = 1
    queues: int = 1
    exchange_type: str = ""  # empty: the default exchange
    bindings: int = 0  # of a topic exchange
    confirm_window: int = 0  # 0: no confirms
    ack_every: int = 0  # 0: the broker counts a message as acknowledged when it is sent
    prefetch: int = 0  # 0: no limit
    messages_per_write: int = 0  # 0: as many as fit into a chunk
    in_flight_max: int = 0  # published but not consumed; 0: as many as IN_FLIGHT_BYTES hold
    waiting: int = 0  # messages that are kept waiting in the queues; needs acks
    rate: int = 0  # messages per second of all producers; 0: as many as go
    processes: int = 2
    duration_s: float = 5.0
    warmup_s: float = 1.0

    def __post_init__(self) -> None:
        for name in ("producers", "queues", "processes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.rate and self.size < 16:
            raise ValueError("a load at a fixed rate needs bodies of 16 octets for its two timestamps")
        if self.prefetch and self.ack_every > self.prefetch:
            raise ValueError("acknowledging less often than the prefetch allows would stop the consumer")
        if self.waiting and not (self.ack_every and self.prefetch and self.consumers):
            raise ValueError(
                "messages are kept waiting by withheld acknowledgements: needs them, and a prefetch"
            )
        if self.exchange_type == "topic" and self.bindings < 1:
            raise ValueError("a topic load needs bindings")

    @property
    def copies(self) -> int:
        """How many deliveries one publish becomes."""
        return self.queues if self.exchange_type == "fanout" else 1

    @property
    def round(self) -> int:
        """How many publishes it takes until each producer has written to all that it writes to in turn.

        Also until `waiting` messages wait. Before that a broker has not yet met all that it will meet.
        """
        routes = self.bindings or max(1, self.queues // self.producers)
        return max(self.producers * routes, self.waiting)

    @property
    def in_flight_limit(self) -> int:
        """How many deliveries may be on their way; without consumers there is no limit."""
        if not self.consumers:
            return 1 << 62
        fitting = max(IN_FLIGHT_MIN, IN_FLIGHT_BYTES // (self.size + _OVERHEAD_BYTES))
        return self.in_flight_max or self.waiting + fitting

    def consumer_queues(self, consumer: int) -> list[int]:
        """Which queues consumer number `consumer` reads: all have readers, and the readers share evenly."""
        if self.consumers >= self.queues:
            return [consumer % self.queues]
        return list(range(consumer, self.queues, self.consumers))

    def producer_queues(self, producer: int) -> list[int]:
        """Which queues producer number `producer` writes to in turn."""
        if self.producers >= self.queues:
            return [producer % self.queues]
        return list(range(producer, self.queues, self.producers))
