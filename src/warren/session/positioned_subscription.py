"""A consumer that is told the position of each message, for a shovel that delivers exactly once."""

from warren.limits import FRAME_OVERHEAD
from warren.model.message_position import MessagePosition, with_position
from warren.queues.position_starts import PositionStarts
from warren.queues.queue import Delivery
from warren.queues.taking_queue import TakingQueue
from warren.session.subscriber import ChannelSubscription

# A content header frame without the property list: 12 bytes beside those of any frame.
_HEADER_SIZE = FRAME_OVERHEAD + 12


class PositionedSubscription(ChannelSubscription):
    """A consumer of a classic queue that acknowledges, and receives each message with its position."""

    __slots__ = ("frame_size_max", "starts", "taking_queue")

    # Of its connection.
    frame_size_max: int
    # Its queue, and the starts that complete the positions.
    taking_queue: TakingQueue
    starts: PositionStarts

    def deliver(self, delivery: Delivery) -> None:
        """Send `delivery`, which the client must acknowledge, with its position as the first header."""
        starts = self.starts
        place = self.taking_queue.place_of(delivery)
        message = delivery.message
        positioned = with_position(message, MessagePosition(starts.origin, starts.start_of(place), place))
        # Only what is sent has the position: the message itself may return to its queue. One whose header
        # would not fit a frame is sent without, which its consumer reports.
        if len(positioned.property_list) + _HEADER_SIZE <= self.frame_size_max:
            delivery.message = positioned
        super().deliver(delivery)
        delivery.message = message
