"""Direct reply-to: a name that is not a queue, whose messages go to one channel at once.

RabbitMQ's `amq.rabbitmq.reply-to`: the requester consumes, and the replier publishes to a name that only it
was told. Nothing is queued: a reply is dropped if its requester does not read or is gone.

    name  │ amq.rabbitmq.reply-to. │ place in Base64 │ . │ secret in Base64
    place │ node u16 │ run u64 │ 2 random bytes              big-endian, 12 bytes
    secret│ 16 random bytes

The place says on which node of a cluster the requester is, and in which run of it. Only who was told the
secret can send a reply. As RabbitMQ's, the name has two parts in Base64: some clients check the form.
"""

from base64 import b64decode, b64encode
from struct import Struct as Layout

from warren.metadata.incarnation import Incarnation
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import ACCEPTED, Consumer, Queue

# The pseudo-queue, and the prefix of the generated names.
REPLY_TO = "amq.rabbitmq.reply-to"
REPLY_NAME_PREFIX = REPLY_TO + "."
# Random bytes in a name: those in the place, and the secret, which cannot be guessed.
_FILLING_SIZE = 2
REPLY_BYTES_COUNT = _FILLING_SIZE + 16
_RUN = Layout(">HQ")
_PLACE_LETTERS = 16
_SECRET_LETTERS = 24
_NAME_SIZE = len(REPLY_NAME_PREFIX) + _PLACE_LETTERS + 1 + _SECRET_LETTERS
# How the address begins of a message to such a name, on the default exchange.
REPLY_ADDRESS_PREFIX = bytes((0, _NAME_SIZE)) + REPLY_NAME_PREFIX.encode()


def new_reply_name(incarnation: Incarnation, random: bytes) -> str:
    """A name for a requester in this run of this node, from REPLY_BYTES_COUNT `random` bytes."""
    assert len(random) == REPLY_BYTES_COUNT
    place = b64encode(_RUN.pack(*incarnation) + random[:_FILLING_SIZE])
    secret = b64encode(random[_FILLING_SIZE:])
    return f"{REPLY_NAME_PREFIX}{place.decode('ascii')}.{secret.decode('ascii')}"


def requester_of(name: str) -> Incarnation | None:
    """The run of the node that has made `name`; None if it is no name of a requester."""
    if len(name) != _NAME_SIZE or not name.startswith(REPLY_NAME_PREFIX):
        return None
    place = name[len(REPLY_NAME_PREFIX) :][:_PLACE_LETTERS]
    try:
        return Incarnation(*_RUN.unpack_from(b64decode(place, validate=True)))
    except ValueError:
        return None


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
