"""Queues: declare, delete and purge with all checks, in the order and with the texts of RabbitMQ 3.10.8,
measured.

Permissions are checked before existence, so that a user cannot find out which queues exist. Unlike in
RabbitMQ, a passive declaration needs some permission on the queue.
"""

from collections.abc import Callable
from functools import partial
from typing import Generic

from msgspec import Struct
from msgspec.structs import replace

from warren.errors import (
    AccessRefused,
    HomeDown,
    InternalError,
    LeaderTimeout,
    MetadataTimeout,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from warren.limits import REMOVED_PER_TURN
from warren.limits_metadata import NAME_PREFIX_SIZE_MAX
from warren.metadata.commands import (
    INTERNAL_USER,
    DeclareQueue,
    DeleteExclusiveQueues,
    DeleteQueue,
    Outcome,
    PauseQueue,
)
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.metadata.refusal_check import RefusalCheck
from warren.metadata.vhosts import VhostMetadata
from warren.model import arguments as queue_arguments
from warren.model.arguments import (
    CLASSIC,
    COMPARED_ARGUMENTS,
    QUEUE_KINDS,
    QUEUE_TYPE,
    QUORUM,
    Arguments,
    queue_kind,
)
from warren.model.coroutine_driver import NextTurn
from warren.model.decided import decided
from warren.model.equivalence import check_same, check_same_arguments
from warren.model.names import GENERATED_BYTES, RESERVED_PREFIX, QueueName, generated_name, stripped
from warren.queues.queue_counts import QueueCounts
from warren.vhost.binding_removal import remove_most_bindings
from warren.vhost.live_topology import LiveTopology, Q
from warren.vhost.metadata_timeout import metadata_timeout
from warren.vhost.queue_home import CLIENT_LOCAL, NO_LOCATORS, QueueLocators, queue_home
from warren.vhost.queue_placement import queue_members
from warren.vhost.queue_removals import QueueRemovals
from warren.vhost.requester import Owner, Requester
from warren.wire import methods

GENERATED_PREFIX = "amq.gen"
# The argument with another prefix for a generated name (RabbitMQ 4.4); it is not kept with the queue.
_NAME_PREFIX = "x-name-prefix"
# What is compared if a quorum queue is declared as a classic one, with relaxed checks (RabbitMQ 4.3.6).
_RELAXED_ARGUMENTS = (
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-single-active-consumer",
    "x-message-ttl",
)


class DeclaredQueue(Struct, frozen=True):
    """The values of queue.declare-ok."""

    name: str
    message_count: int
    consumer_count: int


class QueueService(Generic[Q]):
    """Declares, deletes and purges the queues of one vhost."""

    __slots__ = (
        "_locators", "_metadata", "_node", "_node_name", "_proposals", "_random_bytes", "_refusal_check",
        "_removals", "_topology", "_vhost", "declared_count",
    )  # fmt: skip

    def __init__(
        self,
        metadata: Metadata,
        proposals: Proposals,
        topology: LiveTopology[Q],
        random_bytes: Callable[[int], bytes],
        *,
        node_name: str,
        removals: QueueRemovals,
        locators: QueueLocators = NO_LOCATORS,
        node: int = NODE_ALONE,
    ) -> None:
        """`node` and `node_name` are the id and the name of this node, and `locators` are its settings.

        `removals` has the deletions by this service while they are agreed on.
        """
        self._node = node
        self._node_name = node_name
        self._locators = locators
        self._metadata = metadata
        self._proposals = proposals
        self._refusal_check = RefusalCheck(metadata, proposals)
        self._removals = removals
        self._topology = topology
        self._random_bytes = random_bytes
        self._vhost = topology.vhost
        # The number of successful declarations, of new and existing queues.
        self.declared_count = 0

    async def declare_queue(self, requester: Requester, method: methods.QueueDeclare) -> DeclaredQueue:
        """Declare the queue of `method`, and make it the channel's last queue; returns its state."""
        if method.passive:
            state = await self._found(requester, stripped(method.queue))
        else:
            state = await self._declared(requester, method)
            self.declared_count += 1
        requester.queue_declared = state.name
        return DeclaredQueue(state.name, 0, 0) if method.no_wait else state

    async def delete_queue(self, requester: Requester, method: methods.QueueDelete) -> int:
        """Delete a queue; returns the number of its ready messages, 0 if it does not exist."""
        queue = self._name(requester.stripped_queue(method.queue))
        requester.authorizer.check_configure(queue)
        try:
            return await self._deleted(queue, requester, method)
        except MetadataTimeout:
            raise metadata_timeout("delete", queue, self._node_name) from None

    async def _deleted(self, queue: QueueName, requester: Requester, method: methods.QueueDelete) -> int:
        if self._record(queue.name) is None:
            if self._proposals.is_in_doubt:
                await self._proposals.resolve()
            # Another node may have declared it.
            await self._proposals.is_outdated(self._metadata.index)
        record, live = self._record(queue.name), self._topology.queues.get(queue.name)
        if record is None or live is None:
            return 0
        check_owner(queue, record, requester)
        if not method.if_empty and not method.if_unused:
            return await self.remove_queue(queue.name, requester.user)
        counts = await self._counts_of(queue.name, live)
        if counts is None:
            return 0
        if method.if_empty and (counts.message_count or counts.delayed_count):
            raise PreconditionFailed(f"{queue} not empty")
        if method.if_unused and counts.consumer_count:
            raise PreconditionFailed(f"{queue} in use")
        # The deletion must begin in the turn of the check.
        deletion = self._proposals.propose(DeleteQueue(vhost=self._vhost, name=queue.name), requester.user)
        await self._removals.run(queue.name, deletion)
        return counts.message_count

    async def purge_queue(self, requester: Requester, method: methods.QueuePurge) -> int:
        """Drop the ready messages of a queue; returns their number."""
        return await self.live_queue(requester, requester.queue(method.queue)).purge()

    async def pause_queue(self, requester: Requester, name: str, *, is_paused: bool) -> bool:
        """Pause or resume deliveries of a queue; False if it was in that state already."""
        self.configurable_queue(requester, name)
        command = PauseQueue(vhost=self._vhost, name=name, is_paused=is_paused)
        try:
            reply = await self._proposals.propose(command, requester.user)
        except MetadataTimeout:
            action = "pause" if is_paused else "resume"
            raise metadata_timeout(action, self._name(name), self._node_name) from None
        if reply.outcome is Outcome.MISSING:
            raise queue_not_found(self._name(name))
        return reply.outcome is Outcome.DONE

    def configurable_queue(self, requester: Requester, name: str) -> Q:
        """The queue `name`; checks that the user may configure it and that no other connection owns it."""
        requester.authorizer.check_configure(self._name(name))
        return self._live(requester, name)

    async def remove_queue(self, name: str, user: str = INTERNAL_USER) -> int:
        """Delete a queue without checks, because it has expired or lost its last consumer.

        Its bindings are removed before it, over several turns if there are many. A declaration of its name
        waits until it is gone.
        """
        return await self._removals.run(name, self._removed(name, user))

    async def _removed(self, name: str, user: str) -> int:
        vhost = self._metadata.vhost(self._vhost)
        if vhost is not None:
            bindings = vhost.topology.bindings_to_queue(name)
            if len(bindings) > REMOVED_PER_TURN:
                await remove_most_bindings(
                    bindings, self._vhost, self._proposals, self._topology.later, user=user
                )
        live = self._topology.queues.get(name)
        if live is None:
            return 0
        try:
            counts = live.counts() if live.is_down else await self._counts_of(name, live)
        except LeaderTimeout:
            # As in RabbitMQ, a queue is deleted that has lost the majority of its replicas.
            counts = live.counts()
        if counts is None:
            return 0
        await self._proposals.propose(DeleteQueue(vhost=self._vhost, name=name), user)
        return counts.message_count

    async def remove_exclusive(self, owner: Owner) -> None:
        """Delete the exclusive queues of `owner`, whose connection has closed.

        Over several turns if there are many. InternalError or ResourceError if they cannot be deleted now.
        """
        command = DeleteExclusiveQueues(vhost=self._vhost, owner=owner.name, count_max=REMOVED_PER_TURN)
        while (await self._proposals.propose(command)).outcome is Outcome.PARTLY:
            await NextTurn(self._topology.later)

    def live_queue(self, requester: Requester, name: str) -> Q:
        """The queue `name`; checks that the user may read it and that no other connection owns it."""
        requester.authorizer.check_read(self._name(name))
        return self._live(requester, name)

    def number_of(self, name: str) -> int:
        """Return the number of the queue `name` on disk; 0 if nothing of it survives a restart."""
        record = self._record(name)
        return 0 if record is None else record.stored_number

    def _live(self, requester: Requester, name: str) -> Q:
        queue = self._name(name)
        record, live = self._record(name), self._topology.queues.get(name)
        if record is None or live is None:
            raise queue_not_found(queue)
        check_owner(queue, record, requester)
        return live

    async def _found(self, requester: Requester, name: str) -> DeclaredQueue:
        queue = self._name(name)
        requester.authorizer.check_any(queue)
        live = self._live(requester, name)
        live.touch()
        counts = live.counts() if live.is_local else await self._inspected(name, live)
        if counts is None:
            raise queue_not_found(queue)
        return DeclaredQueue(name, counts.message_count, counts.consumer_count)

    async def _counts_of(self, name: str, live: Q) -> QueueCounts | None:
        """The counts of a queue that is to be deleted; None if it was deleted before they were known.

        Those of a queue are 0 whose home was forgotten: its messages are lost, and its name is to be free.
        """
        record = self._record(name)
        if record is not None and record.home in self._metadata.members.removed:
            return QueueCounts(0, 0)
        return live.counts() if live.is_local else await self._inspected(name, live)

    async def _inspected(self, name: str, live: Q) -> QueueCounts | None:
        """The counts of the queue `live`; None if it was deleted before they were known.

        MetadataTimeout if its home says that it was, and no majority of the members answers in time.
        """
        try:
            counts = await live.inspect()
        except HomeDown:
            raise
        except NotFound:
            if self._topology.queues.get(name) is live:
                # Its home has heard of its deletion before this node. Without a majority of the members
                # nobody knows what has its name since.
                await self._proposals.is_outdated(self._metadata.index)
            if self._topology.queues.get(name) is live:
                raise
            return None
        return counts if self._topology.queues.get(name) is live else None

    async def _declared(self, requester: Requester, method: methods.QueueDeclare) -> DeclaredQueue:
        vhost = self._metadata.vhost(self._vhost)
        if vhost is None:
            raise NotFound(f"no vhost '{self._vhost}'")
        is_transient = method.exclusive or method.auto_delete or not method.durable
        arguments = queue_arguments.with_default_type(
            method.arguments,
            vhost.default_queue_type or self._locators.default_type,
            is_transient=is_transient,
        )
        arguments, prefix = _without_name_prefix(arguments)
        queue = self._name(self._declared_name(stripped(method.queue), arguments, prefix))
        command = DeclareQueue(
            vhost=self._vhost,
            name=queue.name,
            # An exclusive queue ends with its connection, so RabbitMQ does not treat it as durable.
            durable=method.durable and not method.exclusive,
            auto_delete=method.auto_delete,
            owner=requester.owner.name if method.exclusive else None,
            arguments=arguments,
            user=requester.user,
        )
        # Here, and not where every method is tried again, so that a generated name stays the same.
        return await decided(partial(self._declared_as, queue, command, vhost=vhost, requester=requester))

    async def _declared_as(
        self, queue: QueueName, command: DeclareQueue, *, vhost: VhostMetadata, requester: Requester
    ) -> DeclaredQueue:
        requester.authorizer.check_configure(queue)
        if command.owner is not None:
            requester.owner.has_declared = True
        is_checked = False
        while True:
            record, live = self._record(queue.name), self._topology.queues.get(queue.name)
            if record is not None and live is not None:
                if await self._removals.wait(queue.name):
                    continue
                live.check_reachable()
                check_redeclared(queue, record, command, is_relaxed=self._locators.has_relaxed_checks)
                if command.durable and self._proposals.is_in_doubt:
                    await self._proposals.resolve()
                    continue
                if not is_checked:
                    # Another node may have deleted it, and this declaration must create it anew then.
                    is_checked = True
                    if await self._refusal_check.is_outdated(self._metadata.index):
                        continue
                counts = await self._redeclared(queue, live)
                if counts is None:
                    continue
                return DeclaredQueue(queue.name, counts.message_count, counts.consumer_count)
            if record is not None:
                raise InternalError(f"{queue} exists but could not be started: see the log for the reason")
            check_declared(vhost, command, requester)
            try:
                reply = await self._proposals.propose(self._placed(vhost, command), requester.user)
            except MetadataTimeout:
                raise metadata_timeout("declare", queue, self._node_name) from None
            if reply.outcome is Outcome.DONE:
                return DeclaredQueue(queue.name, 0, 0)
            if reply.outcome is Outcome.REFUSED:
                raise PreconditionFailed(f"cannot declare {queue}: {reply.text}")
            if reply.outcome is not Outcome.EXISTING:
                raise NotFound(f"{reply.text or 'cannot declare'}: {queue}")
            # Another client was faster: compare with the queue that exists now.

    async def _redeclared(self, queue: QueueName, live: Q) -> QueueCounts | None:
        """The counts of `live`, which was declared again; None if it was deleted before they were known."""
        live.touch()
        try:
            return live.counts() if live.is_local else await self._inspected(queue.name, live)
        except MetadataTimeout:
            raise metadata_timeout("declare", queue, self._node_name) from None

    def _placed(self, vhost: VhostMetadata, command: DeclareQueue) -> DeclareQueue:
        """`command` with the members of the cluster that are to have the new queue."""
        locators = self._locators
        home = queue_home(self._metadata, vhost, command, self._random_bytes, locators=locators)
        leader = self._node if home == CLIENT_LOCAL else home
        members = queue_members(self._metadata, command, leader, group_size=locators.group_size)
        return replace(command, home=home, members=members) if home or members else command

    def _declared_name(self, name: str, arguments: Arguments, prefix: str) -> str:
        if name.startswith(RESERVED_PREFIX):
            raise AccessRefused(f"queue name '{name}' contains reserved prefix 'amq.*'")
        if name:
            return name
        kind = queue_kind(arguments)
        if kind != "classic" and kind in QUEUE_KINDS:
            raise PreconditionFailed(f"Cannot declare a server-named queue for type rabbit_{kind}_queue")
        if prefix.startswith(RESERVED_PREFIX) and prefix != GENERATED_PREFIX:
            raise AccessRefused(f"queue name prefix '{prefix}' contains reserved prefix 'amq.*'")
        if len(prefix.encode("utf-8", "surrogateescape")) > NAME_PREFIX_SIZE_MAX:
            raise PreconditionFailed(
                f"Queue name prefix '{prefix}' exceeds the {NAME_PREFIX_SIZE_MAX}-byte limit"
            )
        return generated_name(prefix, self._random_bytes(GENERATED_BYTES))

    def _name(self, name: str) -> QueueName:
        return QueueName(self._vhost, name)

    def _record(self, name: str) -> QueueRecord | None:
        vhost = self._metadata.vhost(self._vhost)
        return None if vhost is None else vhost.topology.queues.get(name)


def _without_name_prefix(arguments: Arguments) -> tuple[Arguments, str]:
    """`arguments` without the prefix of a generated name, and that; as in RabbitMQ, only a string counts."""
    if _NAME_PREFIX not in arguments:
        return arguments, GENERATED_PREFIX
    kept = {name: value for name, value in arguments.items() if name != _NAME_PREFIX}
    value = arguments[_NAME_PREFIX]
    return kept, (stripped(value) if isinstance(value, str) else "") or GENERATED_PREFIX


def queue_not_found(queue: QueueName) -> NotFound:
    """The error for a queue that does not exist."""
    return NotFound(f"no {queue}")


def check_owner(queue: QueueName, record: QueueRecord, requester: Requester) -> None:
    """Raise ResourceLocked if `queue` is exclusive to another connection."""
    if record.owner is not None and record.owner != requester.owner.name:
        raise queue_locked(queue)


def queue_locked(queue: QueueName) -> ResourceLocked:
    """The error for a queue that is exclusive to another connection."""
    return ResourceLocked(
        f"cannot obtain exclusive access to locked {queue}. It could be originally declared on another "
        "connection or the exclusive property value does not match that of the original declaration."
    )


def check_redeclared(
    queue: QueueName, record: QueueRecord, command: DeclareQueue, *, is_relaxed: bool = False
) -> None:
    """Raise PreconditionFailed or ResourceLocked unless `command` declares the existing queue alike.

    If `is_relaxed`, a quorum queue that is declared as a classic one needs only some arguments alike.
    """
    if is_relaxed and record.kind == QUORUM and command.arguments.get(QUEUE_TYPE) == CLASSIC:
        check_same_arguments(queue, _RELAXED_ARGUMENTS, current=record.arguments, received=command.arguments)
        return
    if record.owner != command.owner:
        raise queue_locked(queue)
    check_same(queue, "durable", current=record.durable, received=command.durable)
    check_same(queue, "auto_delete", current=record.auto_delete, received=command.auto_delete)
    keys = COMPARED_ARGUMENTS[record.kind]
    check_same_arguments(queue, keys, current=record.arguments, received=command.arguments)


def check_declared(vhost: VhostMetadata, command: DeclareQueue, requester: Requester) -> None:
    """Raise unless the new queue of `command` is permitted and valid."""
    limit = vhost.limit("max-queues")
    if limit is not None and len(vhost.topology.queues) >= limit:
        raise PreconditionFailed(
            f"cannot declare queue '{command.name}': queue limit in vhost '{command.vhost}' ({limit}) "
            "is reached"
        )
    # A queue without arguments is a classic one, and may have every property.
    if not command.arguments:
        return
    queue = QueueName(command.vhost, command.name)
    dead_letter_exchange = queue_arguments.dead_letter_exchange(queue, command.arguments)
    if dead_letter_exchange is not None:
        requester.authorizer.check_read(queue)
        requester.authorizer.check_write(dead_letter_exchange)
        _check_dead_letter_key(vhost, dead_letter_exchange.name, command, requester)
    queue_arguments.check_queue_arguments(queue, command.arguments)
    queue_arguments.check_queue_properties(
        queue,
        queue_kind(command.arguments),
        durable=command.durable,
        exclusive=command.owner is not None,
        auto_delete=command.auto_delete,
    )


def _check_dead_letter_key(
    vhost: VhostMetadata, name: str, command: DeclareQueue, requester: Requester
) -> None:
    """Raise AccessRefused unless the user may publish to the topic exchange `name` with the dead-letter key.

    The exchange need not exist yet; it could then be declared as a topic exchange.
    """
    key = command.arguments.get(queue_arguments.DEAD_LETTER_ROUTING_KEY)
    exchange = vhost.topology.exchanges.get(name)
    if isinstance(key, str) and (exchange is None or exchange.type == "topic"):
        requester.authorizer.check_topic_write(name, key)
