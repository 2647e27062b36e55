"""What the tests of `warren move-from` share: the command, and two brokers with queues of each kind."""

from collections import Counter
from pathlib import Path
from typing import Protocol

import pika
from click.testing import CliRunner
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess
from tests.integration.federation import channel_at

from warren.cli.main import main

VHOST = "our store"
QUEUES = {"failed carts": "classic", "open carts": "quorum", "clicks of today": "stream"}
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Listening(Protocol):
    """A broker that listens for AMQP."""

    @property
    def port(self) -> int:
        """The port."""


class Operator:
    """Runs the command for one move, with a state file of its own."""

    def __init__(self, old: Listening, there: HttpClient, new: BrokerProcess, folder: Path) -> None:
        self.arguments = [
            "move-from", f"amqp://guest:guest@127.0.0.1:{old.port}", "--management-uri", there.origin,
            "--state", str(folder / "state.json"),
            "--uri", f"http://guest:guest@127.0.0.1:{new.ports['http']}", "--timeout", "30",
        ]  # fmt: skip

    def run(self, *arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(main, [*self.arguments, *arguments])
        assert result.exit_code == status, result.output
        return result.output

    def take(self, *steps: str) -> None:
        """Show each step, and take it."""
        for step in steps:
            self.run(step, "--dry-run")
            assert f"step {step}: done" in self.run(step, "--yes")


class Brokers:
    """An old broker with queues of each kind, and an empty Warren."""

    def __init__(self, old: Listening, there: HttpClient, new: BrokerProcess, folder: Path) -> None:
        self.old, self.there, self.new = old, there, new
        self.here = HttpClient(new)
        self.operator = Operator(old, there, new, folder)

    def messages(self, name: str) -> int:
        """The number of messages of a queue of Warren."""
        return int(self.here.get(f"/queues/{quoted(VHOST)}/{quoted(name)}")["messages"])

    def publish(self, port: int, name: str, first: int, last: int) -> None:
        with channel_at(port, VHOST) as channel:
            for number in range(first, last):
                channel.basic_publish("", name, str(number).encode(), PERSISTENT)

    def read(self, port: int, name: str, count: int) -> Counter[int]:
        """How often each of the next `count` messages is in a queue, or each of a stream."""
        with channel_at(port, VHOST, confirms=False) as channel:
            channel.basic_qos(prefetch_count=100)
            offset = {"x-stream-offset": "first"} if QUEUES.get(name) == "stream" else {}
            found: Counter[int] = Counter()
            for method, _, body in channel.consume(name, arguments=offset, inactivity_timeout=30):
                assert method is not None, f"{found.total()} of {count}"
                found[int(body)] += 1
                channel.basic_ack(method.delivery_tag)
                if found.total() == count:
                    break
            channel.cancel()
        return found


def declare_queues(client: HttpClient) -> None:
    """Create the virtual host, and a queue of each kind."""
    assert client.status(f"PUT /vhosts/{quoted(VHOST)}") == 201
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    client.ask(f"PUT /permissions/{quoted(VHOST)}/guest", rights)
    for name, kind in QUEUES.items():
        body = {"durable": True, "arguments": {"x-queue-type": kind}}
        assert client.status(f"PUT /queues/{quoted(VHOST)}/{quoted(name)}", body) == 201


def once(*ranges: range) -> Counter[int]:
    """The numbers of `ranges`, each once."""
    return Counter(number for each in ranges for number in each)
