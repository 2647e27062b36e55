"""What an operator of a simulated broker does, through the ports that the HTTP API uses."""

import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from warren.access.operator import OPERATOR_USER
from warren.errors import AmqpError
from warren.metadata.commands import ClearPolicy, Json, MetadataCommand, SetPolicy
from warren.metadata.definitions_import import import_commands
from warren.metadata.users import PasswordHash
from warren.model.coroutine_driver import Pending, drive
from warren.queues.vhost_queue import VhostQueue
from warren.simulation.dead_letter_chains import mended, target_states
from warren.simulation.machine import SimulatedMachine
from warren.simulation.queue_history import QueueHistory
from warren.simulation.simulated_node import SimulatedNode
from warren.simulation.topology import POLICED
from warren.vhost.definitions_check import check_definitions
from warren.vhost.queue_service import QueueService
from warren.vhost.requester import Owner, Requester
from warren.wire import methods

_OWNER = "http"


class OperatorActions:
    """Imports definitions, changes policies, purges and deletes queues; a refusal is not an error."""

    def __init__(self, chance: random.Random, machine: SimulatedMachine) -> None:
        self._chance = chance
        self._machine = machine

    def perform(self, queue: QueueHistory) -> None:
        """Do one of these, to `queue`."""
        specification = queue.specification
        if specification.is_defined or specification.owner:
            return
        actions = [self._import, self._delete]
        if queue.stream is None:
            actions.append(self._purge)
        self._chance.choice(actions)(self._machine.node, queue)

    def change_policy(self) -> None:
        """Change or clear the policy of the queue that may have one."""
        node = self._machine.node
        vhost = next(iter(node.vhosts), "")
        definition = self._chance.choice(({"max-length": 4}, {"message-ttl": 1_000}, None))
        if definition is None:
            node.propose(ClearPolicy(vhost=vhost, name="policy"))
        else:
            pattern = f"^{POLICED}$"
            node.propose(SetPolicy(vhost=vhost, name="policy", pattern=pattern, definition=definition))

    def change_target(self, queues: Sequence[QueueHistory]) -> None:
        """Have the target of a chain of dead letters be full, have no route, or both, or mend it."""
        sources = [queue for queue in queues if queue.specification.dead_letter_target]
        if not sources:
            return
        source = self._chance.choice(sources)
        named = {queue.specification.name: queue.specification for queue in queues}
        states = target_states(source.specification, named[source.specification.dead_letter_target])
        changes = self._chance.choice([*states, mended(source.specification)])
        assert source.chain is not None
        source.chain.broken()
        self._propose(changes)

    def mend_targets(self, queues: Sequence[QueueHistory]) -> bool:
        """Have all targets of dead letters take them; False if they did."""
        broken = [queue for queue in queues if queue.chain is not None and queue.chain.was_broken]
        for source in broken:
            self._propose(mended(source.specification))
        return bool(broken)

    def _propose(self, commands: Iterable[MetadataCommand]) -> None:
        for command in commands:
            self._machine.node.propose(command)

    def _import(self, node: SimulatedNode, queue: QueueHistory) -> None:
        """Import a definitions document with the queue and its bindings."""
        specification = queue.specification
        document: Json = {
            "queues": [
                {
                    "vhost": specification.vhost,
                    "name": specification.name,
                    "durable": specification.durable,
                    "auto_delete": specification.auto_delete,
                    "arguments": dict(specification.arguments),
                }
            ],
            "bindings": [
                {
                    "vhost": specification.vhost,
                    "source": binding.source,
                    "destination": specification.name,
                    "destination_type": "queue",
                    "routing_key": binding.key,
                    "arguments": dict(binding.arguments),
                }
                for binding, _ in queue.bindings
            ],
        }
        commands = check_definitions(import_commands(document, _no_hash), node.metadata).complete()
        created = [(existence, existence.creating()) for existence in queue.existences]

        def imported() -> None:
            for existence, endings in created:
                existence.created(endings)

        async def propose() -> None:
            for command in commands:
                await node.journal.propose(command)

        self._run(node, propose(), imported)

    def _purge(self, node: SimulatedNode, queue: QueueHistory) -> None:
        purge = methods.QueuePurge(queue=queue.specification.name)
        told = queue.purging, queue.purged
        self._request(node, queue, lambda to, by: to.purge_queue(by, purge), told)

    def _delete(self, node: SimulatedNode, queue: QueueHistory) -> None:
        delete = methods.QueueDelete(queue=queue.specification.name)
        told = queue.deleting, queue.deleted
        self._request(node, queue, lambda to, by: to.delete_queue(by, delete), told)

    def _request(
        self,
        node: SimulatedNode,
        queue: QueueHistory,
        request: Callable[[QueueService[VhostQueue], Requester], Coroutine[Any, Any, object]],
        told: tuple[Callable[[object], None], Callable[[object], None]],
    ) -> None:
        """Ask the virtual host of `queue`, if it runs; `told` hear of the request, and of its success."""
        services = node.server.vhost_services.get(queue.specification.vhost)
        if services is not None:
            operation = object()
            begun, done = told
            begun(operation)
            requester = Requester(services.authorizer(OPERATOR_USER), Owner(_OWNER))
            self._run(node, request(services.queue_service, requester), lambda: done(operation))

    def _run(
        self, node: SimulatedNode, request: Coroutine[Any, Any, object], then: Callable[[], None]
    ) -> None:
        """Run `request`, now and later, and do `then` when it has succeeded in the same run of the broker."""

        async def run() -> None:
            try:
                await request
            except AmqpError as error:
                node.log.append(f"the operator is refused: {error}")
                return
            if not node.is_over:
                then()

        running: Coroutine[Pending, None, None] = run()
        node.measure(lambda: drive(running))


def _no_hash(password: str) -> PasswordHash:
    """No user is imported."""
    raise AssertionError(password)
