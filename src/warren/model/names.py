"""Names of queues and exchanges: a vhost and a name in it, written as RabbitMQ's texts write them."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass

# Names that start so are the broker's own.
RESERVED_PREFIX = "amq."
# And the name of the stream that keeps what is published to a queue: this, and the queue's.
_RETAINED_PREFIX = RESERVED_PREFIX + "retained."
# What permissions call the exchange whose name is empty.
DEFAULT_EXCHANGE_ALIAS = "amq.default"
# Bytes of chance in a name that the broker makes up: 22 characters of base64.
GENERATED_OCTETS = 16


@dataclass(frozen=True, slots=True)
class QueueName:
    """A queue of a vhost."""

    vhost: str
    name: str

    def __str__(self) -> str:
        return f"queue '{self.name}' in vhost '{self.vhost}'"


@dataclass(frozen=True, slots=True)
class ExchangeName:
    """An exchange of a vhost."""

    vhost: str
    name: str

    def __str__(self) -> str:
        return f"exchange '{self.name}' in vhost '{self.vhost}'"


def stripped(name: str) -> str:
    """`name` without line ends, which RabbitMQ removes from names in every exchange and queue method."""
    if "\n" in name or "\r" in name:
        return name.replace("\n", "").replace("\r", "")
    return name


def retained_name(queue: str) -> str:
    """The name of the stream that keeps what is published to `queue`."""
    return _RETAINED_PREFIX + queue


def retained_by(stream: str) -> str | None:
    """The queue whose past `stream` keeps, by its name; None if that is no such name."""
    return stream.removeprefix(_RETAINED_PREFIX) if stream.startswith(_RETAINED_PREFIX) else None


def generated_name(prefix: str, octets: bytes) -> str:
    """`prefix`, a hyphen and `octets` in URL-safe base64, as in `amq.gen-YGu9HUHc4-oWlihje3bYoQ`."""
    return f"{prefix}-{urlsafe_b64encode(octets).decode('ascii').rstrip('=')}"
