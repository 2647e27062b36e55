"""Names of queues and exchanges in a virtual host, formatted as in RabbitMQ's texts."""

from base64 import urlsafe_b64encode

from msgspec import Struct

# The prefix of names reserved for the broker.
RESERVED_PREFIX = "amq."
# The prefix of a retained stream's name, followed by the name of its queue.
_RETAINED_PREFIX = RESERVED_PREFIX + "retained."
# The name of the default exchange in permissions.
DEFAULT_EXCHANGE_ALIAS = "amq.default"
# Random bytes in a generated name: 22 characters of base64.
GENERATED_BYTES = 16


class QueueName(Struct, frozen=True):
    """A queue of a vhost."""

    vhost: str
    name: str

    def __str__(self) -> str:
        return f"queue '{self.name}' in vhost '{self.vhost}'"


class ExchangeName(Struct, frozen=True):
    """An exchange of a vhost."""

    vhost: str
    name: str

    def __str__(self) -> str:
        return f"exchange '{self.name}' in vhost '{self.vhost}'"


def stripped(name: str) -> str:
    """`name` without line breaks, which RabbitMQ removes from names in all exchange and queue methods."""
    if "\n" in name or "\r" in name:
        return name.replace("\n", "").replace("\r", "")
    return name


def retained_name(queue: str) -> str:
    """The name of the retained stream of `queue`."""
    return _RETAINED_PREFIX + queue


def retained_by(stream: str) -> str | None:
    """The queue whose retained stream is `stream`, by its name; None if it is no such name."""
    return stream.removeprefix(_RETAINED_PREFIX) if stream.startswith(_RETAINED_PREFIX) else None


def generated_name(prefix: str, data: bytes) -> str:
    """`prefix`, a hyphen and `data` in URL-safe base64, as in `amq.gen-YGu9HUHc4-oWlihje3bYoQ`."""
    return f"{prefix}-{urlsafe_b64encode(data).decode('ascii').rstrip('=')}"
