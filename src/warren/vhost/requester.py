"""The channel on whose behalf an operation is performed."""

from warren.access.authorize import Authorizer
from warren.errors import NotFound
from warren.model.names import stripped


class Owner:
    """A connection as the owner of exclusive queues."""

    __slots__ = ("has_declared", "name", "serial")

    def __init__(self, name: str, serial: int = 0) -> None:
        # Unique among all connections of the cluster: see `Incarnation.owner`.
        self.name = name
        # The number in `name`.
        self.serial = serial
        # True if an exclusive queue was requested, which may exist or be about to.
        self.has_declared = False


class Requester:
    """A channel: the permissions of its user, its connection, and the queue that it declared last."""

    __slots__ = ("authorizer", "owner", "queue_declared")

    def __init__(self, authorizer: Authorizer, owner: Owner) -> None:
        self.authorizer = authorizer
        self.owner = owner
        self.queue_declared: str | None = None

    @property
    def user(self) -> str:
        """The name of the user."""
        return self.authorizer.user

    @property
    def identity(self) -> str:
        """Who the user is, also among users of other issuers with the same name."""
        return self.authorizer.identity

    def queue(self, name: str) -> str:
        """`name`, or the queue declared last if it is empty (0-9-1, the domain queue-name)."""
        if name:
            return name
        if self.queue_declared is None:
            raise NotFound("no previously declared queue")
        return self.queue_declared

    def stripped_queue(self, name: str) -> str:
        """The result of `queue(name)` without the line ends that RabbitMQ removes."""
        return stripped(self.queue(name))
