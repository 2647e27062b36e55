"""Two clients of a cluster of two nodes, which play a script, and all bytes that they receive."""

import random

from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.session.client import Client, call

from warren.wire.method import Method
from warren.wire.methods import QueueDeclare


class Script:
    """Two clients, each on a node, and all bytes that they receive."""

    def __init__(self, nodes: str, *, is_quorum: bool = False) -> None:
        """With `is_quorum` all queues are quorum queues, on simulated disks."""
        self.cluster = TwoNodes()
        self.is_quorum = is_quorum
        if is_quorum:
            for node in self.cluster.nodes:
                node.attach_store(random.Random(1))
        self.clients = [self._connect(node) for node in nodes]
        self.received: list[bytes] = []

    def _connect(self, node: str) -> Client:
        return self.cluster.client(self.cluster.a if node == "a" else self.cluster.b)

    def send(self, number: int, *data: bytes | Method) -> None:
        """Let client `number` send `data` in one read, and note what both receive when all is at rest."""
        client = self.clients[number]
        client.send(*(call(self._adapted(one)) if isinstance(one, Method) else one for one in data))
        self.cluster.run()
        self.listen()

    def _adapted(self, method: Method) -> Method:
        if not self.is_quorum or not isinstance(method, QueueDeclare):
            return method
        arguments = {"x-queue-type": "quorum", **method.arguments}
        return QueueDeclare(
            queue=method.queue, passive=method.passive, durable=True, exclusive=method.exclusive,
            auto_delete=method.auto_delete, arguments=arguments,
        )  # fmt: skip

    def listen(self) -> None:
        """Note what both clients have received."""
        for client in self.clients:
            data = b"".join(client.connection.take_output())
            client.connection.output_written()
            self.received.append(data + b"".join(client.connection.take_output()))
