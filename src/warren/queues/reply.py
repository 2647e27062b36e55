"""The end of a direct reply-to: a name that is no queue, whose messages go to one channel at once.

RabbitMQ's `amq.rabbitmq.reply-to`: the requester consumes, the replier publishes to a name that only it was
told. Nothing waits here: a reply whose requester does not read is dropped, as it is when that has gone.
"""

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import ACCEPTED, Consumer, Queue


class ReplyQueue(Queue):
    """One requester, under the name that its requests carry."""

    __slots__ = ("consumer", "name")

    def __init__(self, name: str, consumer: Consumer) -> None:
        self.name = name
        self.consumer = consumer

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Hand the reply over, or drop it when the requester has too many unread."""
        if self.consumer.is_ready():
            self.consumer.deliver_message(message, False)
        return ACCEPTED
