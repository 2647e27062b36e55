"""What consumers held that have timed out: whose places are remembered."""

from tests.unit.queues.samples import Host, Reader, filled

from warren.model.arguments import DEFAULT_SETTINGS
from warren.queues.vhost_queue import VhostQueue
from warren.session.late_acknowledgements import LateAcknowledgements


class Front(VhostQueue):
    """A queue in front of one on this node, as a replicated queue is, with places of its own."""

    def __init__(self, behind: VhostQueue, host: Host) -> None:
        super().__init__("q", "/", host, DEFAULT_SETTINGS)
        self._behind = behind

    def led_here(self) -> VhostQueue:
        return self._behind


def test_a_place_in_front_of_a_queue_is_none_of_the_queue() -> None:
    host = Host()
    queue, reader = filled(host, "a", "b"), Reader(prefetch=1)
    queue.add_consumer(reader)
    [delivery] = reader.unsettled
    queue.remove_consumer(reader)
    late = LateAcknowledgements()
    delivery.move(Front(queue, host), 1)
    late.expect(1, delivery)
    delivery.move(queue, 0)
    late.expect(2, delivery)
    queue.requeue(delivery)
    assert late.acknowledge(1, False) == 0
    assert queue.message_count == 2
    assert late.acknowledge(2, False) == 1
    assert queue.message_count == 1
