"""The brokers at the ends of a link: Warren and RabbitMQ, alike for those who start, kill and ask them."""

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from tests.crash.recording import built
from tests.crash.recovered_directory import bodies_in
from tests.crash.simulated_files import Files, calls
from tests.integration.api import HttpClient
from tests.integration.federation import eventually
from tests.links.acknowledged import acknowledged
from tests.rabbitmq import RabbitMQ
from tests.warren_process import IN_MEMORY, WarrenProcess, free_port, start_warren, stop

RABBITMQ_PLUGINS = ("rabbitmq_federation", "rabbitmq_shovel")
# Acknowledgements that RabbitMQ has in its memory alone: on a busy machine those of less than half a second.
UNWRITTEN_MAX = 1_000


class LinkEnd(Protocol):
    """A broker with a directory and a port that outlive its processes."""

    kind: str
    port: int
    # Whether it may deliver a message again without the flag after `kill`.
    forgets_deliveries: bool
    # Acknowledged messages that were in their queues again after `kill`; at most, where that is not known.
    came_back: int

    @property
    def federates_slowly(self) -> bool:
        """Whether a federated exchange of it, which runs, takes some ten messages a second only."""

    def start(self) -> None:
        """Start it, and return when it accepts connections."""

    def kill(self) -> None:
        """End it with SIGKILL."""

    def stop(self) -> None:
        """End it in order, and remove nothing."""

    def put_parameter(self, component: str, name: str, value: dict[str, object]) -> None:
        """Set a parameter of the virtual host `/`."""

    def put_policy(self, name: str, pattern: str, apply_to: str, definition: dict[str, object]) -> None:
        """Set a policy of the virtual host `/`."""

    def message_count(self) -> int:
        """The number of messages in all queues, ready or not."""


class WarrenEnd:
    """A Warren with a data directory in `folder`."""

    kind = "Warren"
    # A delivery is written before it is sent.
    forgets_deliveries = False
    came_back = 0
    federates_slowly = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.ports = {"http": free_port()}
        self.data = folder / "data"
        self.environment = dict(IN_MEMORY)
        self._process: WarrenProcess | None = None

    def start(self) -> None:
        """Start it, and return when it accepts connections."""
        arguments = ("--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self.data))
        management = ("--management-port", str(self.ports["http"]))
        self._process = start_warren(
            self.folder, self.port, *arguments, *management, environment=self.environment
        )

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self._process is not None
        self._process.process.kill()
        self._process.process.wait()

    def stop(self) -> None:
        """End it in order, and remove nothing."""
        if self._process is not None:
            stop(self._process.process)

    def put_parameter(self, component: str, name: str, value: dict[str, object]) -> None:
        """Set a parameter of the virtual host `/`."""
        self._put(f"/parameters/{component}/%2f/{name}", {"value": value})

    def put_policy(self, name: str, pattern: str, apply_to: str, definition: dict[str, object]) -> None:
        """Set a policy of the virtual host `/`."""
        policy = {"pattern": pattern, "apply-to": apply_to, "definition": definition}
        self._put(f"/policies/%2f/{name}", policy)

    def message_count(self) -> int:
        """The number of messages in all queues, ready or not."""
        with closing(HttpClient(self)) as client:
            return sum(queue["messages"] for queue in client.get("/queues?columns=messages"))

    def _put(self, path: str, body: object) -> None:
        with closing(HttpClient(self)) as client:
            answer = client.ask(f"PUT {path}", body)
            assert answer.status in (201, 204), answer


class PowerLossEnd(WarrenEnd):
    """A Warren whose first `kill` is a loss of power: of what was not synced, an arbitrary part is gone."""

    # It is not synced before it is sent.
    forgets_deliveries = True

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder)
        self._chance = random.Random(seed)
        self._log = folder / "calls"
        self.data.mkdir()
        self.environment |= {
            "LD_PRELOAD": str(built(folder)),
            "WARREN_RECORD": str(self._log),
            "WARREN_ROOT": str(self.data),
        }

    def kill(self) -> None:
        """End it; the first time, replace its directory with what a loss of power can leave of it."""
        super().kill()
        if not self._log.exists():
            return
        recorded = list(calls(self._log))
        self._log.unlink()
        self.environment = dict(IN_MEMORY)
        files = Files(str(self.data))
        for call in recorded:
            files.take(call)
        self.data = self.folder / "after the loss of power"
        files.top.build(self.data, self._chance)
        # Reading may change the files.
        copy = shutil.copytree(self.data, self.folder / "copy")
        bodies = {body for queue in bodies_in(copy).values() for body in queue}
        self.came_back = len(bodies & acknowledged(recorded))


class RabbitMQEnd:
    """A RabbitMQ with its files in `folder`."""

    kind = "RabbitMQ"
    forgets_deliveries = True
    came_back = 0

    def __init__(self, folder: Path) -> None:
        self._broker = RabbitMQ(folder, listen="127.0.0.1", plugins=RABBITMQ_PLUGINS)
        self.port = self._broker.port

    def start(self) -> None:
        """Start it, and return when it accepts connections."""
        self._broker.start()

    @property
    def federates_slowly(self) -> bool:
        """True for RabbitMQ 4."""
        return self._broker.version() >= (4,)

    def kill(self) -> None:
        """End it with SIGKILL.

        It writes acknowledgements with what it has to sync, and the last ones are lost with it.
        """
        self._broker.kill()
        self.came_back = UNWRITTEN_MAX

    def stop(self) -> None:
        """End it in order, and remove nothing."""
        self._broker.stop()

    def put_parameter(self, component: str, name: str, value: dict[str, object]) -> None:
        """Set a parameter of the virtual host `/`."""
        self._broker.control("set_parameter", component, name, json.dumps(value))

    def put_policy(self, name: str, pattern: str, apply_to: str, definition: dict[str, object]) -> None:
        """Set a policy of the virtual host `/`."""
        self._broker.control("set_policy", "--apply-to", apply_to, name, pattern, json.dumps(definition))

    def message_count(self) -> int:
        """The number of messages in all queues, ready or not."""
        counts = self._broker.control("list_queues", "--quiet", "--no-table-headers", "messages")
        return sum(map(int, counts.split()))


@contextmanager
def started(end: LinkEnd) -> Iterator[None]:
    """A started broker, ended at the end of the block."""
    end.start()
    try:
        yield
    finally:
        end.stop()


def is_empty(end: LinkEnd) -> bool:
    """True if no queue of it has a message; waits a while for that."""
    return eventually(lambda: end.message_count() == 0)
