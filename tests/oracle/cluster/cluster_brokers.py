"""What a scenario needs from a cluster of three brokers, whatever brokers they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

NODES = ("a", "b", "c")
USER, PASSWORD = "guest", "guest"


def full_name(node: str) -> str:
    """The name by which brokers, HTTP API and commands call a node: the same for every broker."""
    return f"{node}@localhost"


@dataclass(frozen=True)
class CommandResult:
    """The exit status of a command, and the lines that it wrote."""

    status: int
    lines: list[str]


class ClusterBrokers(Protocol):
    """Three brokers in one cluster, called `a`, `b` and `c`.

    Every method returns when what it does has happened to the node itself. What the others notice of it is
    what the scenarios ask.
    """

    is_rabbitmq: bool

    def amqp_address(self, node: str) -> tuple[str, int]:
        """Where a node listens to clients of AMQP."""

    def http_address(self, node: str) -> tuple[str, int]:
        """Where a node serves the HTTP API."""

    def prometheus_address(self, node: str) -> tuple[str, int]:
        """Where a node serves its metrics page."""

    def kill(self, node: str) -> None:
        """End a node with SIGKILL."""

    def stop(self, node: str) -> None:
        """End a node with SIGTERM."""

    def start(self, node: str) -> None:
        """Start a node that has ended, and return when it accepts clients."""

    def wipe(self, node: str) -> None:
        """Remove the data of a node that has ended."""

    def pause(self, node: str) -> None:
        """Suspend the processes of a node (SIGSTOP)."""

    def resume(self, node: str) -> None:
        """Let the processes of a node continue (SIGCONT)."""

    def cut(self, one: str, other: str) -> None:
        """Reset the connections between two nodes, and refuse new ones."""

    def stall(self, one: str, other: str) -> None:
        """Pass nothing between two nodes, and tell neither of them."""

    def mend(self) -> None:
        """Let every two nodes connect again."""

    def configure(self, key: str, value: str) -> None:
        """Change a setting of all running nodes."""

    def control(self, node: str, *command: str) -> CommandResult:
        """Run a command of an operator for a node: `rabbitmqctl` if its first word is no other program's."""

    def ask(self, node: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of an answer of the HTTP API of a node; None without JSON."""

    def restore(self) -> None:
        """Wait until all three nodes run in one cluster, and delete what was declared."""
