"""What happens to the nodes of a cluster in a scenario, and what it waits for them to notice."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.conformance.peer import Mismatch, Peer
from tests.oracle.cluster.cluster_brokers import PASSWORD, USER, ClusterBrokers

VHOST = "/"
NOTICED_S = 40.0
AGAIN_S = 0.1


def _await_seen(brokers: ClusterBrokers, node: str, *running: str) -> None:
    """Wait until a node says that exactly these are running."""

    def seen() -> set[str]:
        _, nodes = brokers.ask(node, "GET", "/api/nodes?columns=name,running")
        return {entry["name"].partition("@")[0] for entry in nodes or () if entry["running"]}

    _await(f"{node} sees {running}", lambda: seen() == set(running))


def _await_gone(brokers: ClusterBrokers, node: str, queue: str) -> None:
    """Wait until a node does not know a queue of the default vhost."""
    _await(f"{queue} is gone", lambda: brokers.ask(node, "GET", f"/api/queues/%2F/{queue}")[0] == 404)


def _fail_to_start(brokers: ClusterBrokers, node: str) -> None:
    """Start a node that ends by itself."""
    try:
        brokers.start(node)
    except RuntimeError:
        return
    raise Mismatch(f"{node} has started")


def _await_split(brokers: ClusterBrokers, *nodes: str) -> None:
    """Wait until each of these nodes reports a partition."""

    def is_split() -> bool:
        lists = [brokers.ask(node, "GET", "/api/nodes?columns=name,partitions")[1] for node in nodes]
        return all(any(entry.get("partitions") for entry in found or ()) for found in lists)

    _await(f"{nodes} report a partition", is_split)


def _await_alarmed(brokers: ClusterBrokers, node: str, status: str) -> None:
    """Wait until the health check of a node about the alarms of the cluster has a status."""
    check = "/api/health/checks/alarms"
    _await(f"{check} says {status}", lambda: brokers.ask(node, "GET", check)[0] == int(status))


def _await_refused(brokers: ClusterBrokers, node: str) -> None:
    """Wait until a node accepts no clients of AMQP."""

    def is_refused() -> bool:
        try:
            Peer(*brokers.amqp_address(node)).disconnect()
        except OSError:
            return True
        return False

    _await(f"{node} refuses clients", is_refused)


def _await_accepted(brokers: ClusterBrokers, node: str) -> None:
    """Wait until a node serves clients of AMQP."""

    def is_accepted() -> bool:
        try:
            peer = Peer(*brokers.amqp_address(node))
            peer.handshake(USER, PASSWORD, VHOST)
            peer.disconnect()
        except (OSError, Mismatch):
            return False
        return True

    _await(f"{node} accepts clients", is_accepted)


def _await(what: str, is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + NOTICED_S
    while not is_true():
        if time.monotonic() > deadline:
            raise Mismatch(f"not in time: {what}")
        time.sleep(AGAIN_S)


ACTIONS: dict[str, Callable[..., None]] = {
    "kill": lambda brokers, node: brokers.kill(node),
    "stop": lambda brokers, node: brokers.stop(node),
    "start": lambda brokers, node: brokers.start(node),
    "fails": _fail_to_start,
    "wipe": lambda brokers, node: brokers.wipe(node),
    "pause": lambda brokers, node: brokers.pause(node),
    "resume": lambda brokers, node: brokers.resume(node),
    "cut": lambda brokers, one, other: brokers.cut(one, other),
    "stall": lambda brokers, one, other: brokers.stall(one, other),
    "mend": lambda brokers: brokers.mend(),
    "configure": lambda brokers, key, value: brokers.configure(key, value),
    "sees": _await_seen,
    "split": _await_split,
    "alarmed": _await_alarmed,
    "gone": _await_gone,
    "refuses": _await_refused,
    "accepts": _await_accepted,
}
