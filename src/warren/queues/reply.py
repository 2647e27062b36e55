"""Direct reply-to: a name that is not a queue, whose messages go to one channel at once.

RabbitMQ's `amq.rabbitmq.reply-to`: the requester consumes, and the replier publishes to a name that only it
was told. Nothing is queued: a reply is dropped if its requester does not read or is gone.
"""

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import ACCEPTED, Consumer, Queue


class ReplyQueue(Queue):
    """The reply address of one requester."""

    __slots__ = ("consumer", "name")

    def __init__(self, name: str, consumer: Consumer) -> None:
        self.name = name
        self.consumer = consumer

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Deliver the reply, or drop it if the requester has too many unread replies."""
        if self.consumer.is_ready():
            self.consumer.deliver_message(message, False)
        return ACCEPTED
