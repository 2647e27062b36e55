"""The permissions of a job, checked in each turn: its user, queue and virtual hosts may change."""

from msgspec import Struct

from warren.access.authorize import Authorizer
from warren.access.grants import is_expired
from warren.errors import AccessRefused, NotFound
from warren.metadata.users import User
from warren.queues.vhost_queue import VhostQueue
from warren.session.server import Server
from warren.session.vhost_services import VhostServices

_DISK_BUSY = "the disk is busy: publishers wait until pending writes are done"


class JobContext(Struct, frozen=True):
    """Where a job works: its broker, its user, and its source and target virtual hosts."""

    server: Server
    user: User
    source: VhostServices
    target: VhostServices


class Permit:
    """The permission to take messages out of a queue, and to publish them."""

    def __init__(self, place: JobContext, queue: VhostQueue) -> None:
        self.place = place
        self._queue = queue
        self._reader: Authorizer = place.source.authorizer(place.user)
        target, user = place.target, place.user
        self._rules = target.rules(user, target.authorizer(user))

    async def check(self) -> None:
        """Raise AmqpError if the user may not continue, or Undecided."""
        for services in (self.place.source, self.place.target):
            if not self._is_alive(services):
                raise NotFound(f"vhost '{services.vhost.name}' is down")
        user = self.place.user
        if is_expired(user, self.place.source.vhost.turn.now()):
            raise AccessRefused(f"the token of user '{user.name}' has expired")
        if self._queue.is_deleted:
            raise NotFound(f"no queue '{self._queue.name}' in vhost '{self._queue.vhost_name}'")
        self._reader.check_read_queue(self._queue.name)

    def admit(self, address: bytes) -> None:
        """Raise AmqpError unless the user may publish to `address`, or Undecided."""
        self._rules.admit(address)

    def blocked_reason(self) -> str:
        """Return why publishers, and so the job, have to wait; empty if they do not."""
        place = self.place
        if place.server.blocked_reason:
            return place.server.blocked_reason
        return _DISK_BUSY if place.target.credit.is_spent or place.source.credit.is_spent else ""

    @property
    def has_target(self) -> bool:
        """True while the target virtual host runs, so that messages in flight can be confirmed."""
        return self._is_alive(self.place.target)

    def _is_alive(self, services: VhostServices) -> bool:
        return self.place.server.vhost_services.get(services.vhost.name) is services
