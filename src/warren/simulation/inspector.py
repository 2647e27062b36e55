"""Reads all messages of a simulated broker as a client does, and compares them with the history."""

from collections.abc import Callable

from warren.simulation.client import SimulatedClient
from warren.simulation.history import History
from warren.simulation.network import SimulatedNetwork
from warren.simulation.queue_history import QueueHistory
from warren.simulation.violation import Violation
from warren.wire import methods

_NOT_FOUND = "404 "
# A stream is read without waiting for acknowledgements.
_PREFETCH_MAX = 65_535
# A channel that the owner of an exclusive queue uses for nothing else.
_INSPECTING = 100


class Inspector:
    """Verifies each queue; `settle` lets everything happen that is under way."""

    def __init__(self, history: History, network: SimulatedNetwork, settle: Callable[[], None]) -> None:
        self._history = history
        self._network = network
        self._settle = settle

    def inspect_private(self, clients: list[SimulatedClient]) -> None:
        """Verify the exclusive queues of the clients that are connected."""
        for queue in self._history.queues:
            for client in clients:
                if queue.specification.owner == client.name and queue.exists and client.is_open:
                    found = self._read(client, queue, _INSPECTING)
                    if found is not None and queue.exists:
                        self._history.inspected(queue, found)

    def inspect(self, *, is_acknowledged: bool) -> None:
        """Verify all other queues, with no other client connected, and that the exclusive ones are gone."""
        chains: dict[str, list[int]] = {}
        for queue in self._history.queues:
            specification = queue.specification
            client = SimulatedClient("inspector", self._history, specification.vhost)
            self._network.connect(client)
            self._settle()
            if specification.owner:
                self._check_gone(client, queue)
            elif queue.exists or specification.durable:
                found = self._read(client, queue, 1)
                if found is None:
                    self._check_lost(client, queue)
                else:
                    self._history.inspected(queue, found)
                    if specification.chain:
                        chains.setdefault(specification.chain, []).extend(found)
                    channel = client.channel(1)
                    if is_acknowledged and channel.arrived:
                        channel.acknowledge(max(channel.arrived), is_multiple=True)
                        self._settle()
            self._network.cut(client)
            self._settle()
        if not is_acknowledged:
            for queue in self._history.queues:
                if queue.chain is not None:
                    self._history.chain_inspected(queue, chains.get(queue.specification.name, []))

    def _read(self, client: SimulatedClient, queue: QueueHistory, number: int) -> list[int] | None:
        """The ids of all messages of `queue`; None if the broker has closed the channel."""
        found: list[int] = []
        channel = client.channel(number)
        before, refused = client.on_arrival, len(client.closed_by_broker)
        client.on_arrival = lambda source, _, received: (
            found.append(int(received.body.split(b" ", 1)[0])) if source is channel else None
        )
        if queue.stream is not None:
            channel.call(methods.BasicQos(prefetch_count=_PREFETCH_MAX), methods.BasicQosOk)
        channel.consume(queue, "inspect")
        self._settle()
        client.on_arrival = before
        if len(client.closed_by_broker) > refused or not client.is_open:
            return None
        if number == _INSPECTING:
            channel.close()
            self._settle()
        return found

    def _check_lost(self, client: SimulatedClient, queue: QueueHistory) -> None:
        if queue.exists and not queue.specification.may_vanish:
            raise Violation(f"queue '{queue.specification.name}' is lost: {client.closed_by_broker}")

    def _check_gone(self, client: SimulatedClient, queue: QueueHistory) -> None:
        declare = methods.QueueDeclare(queue=queue.specification.name, passive=True)
        client.channel(1).call(declare, methods.QueueDeclareOk)
        self._settle()
        if not client.closed_by_broker or not client.closed_by_broker[-1].startswith(_NOT_FOUND):
            raise Violation(
                f"exclusive queue '{queue.specification.name}' is there without its connection: "
                f"{client.closed_by_broker}"
            )
