"""A cluster of three Warrens whose clients are connected to one node, and whose queues are on the others.

The setting `queue_leader_locator = balanced` gives a new queue to the node with the fewest queues. The node
of the clients has queues of its own beforehand, in a virtual host of their own, and so never is that one.
Exclusive queues are always on the node of their connection, and a queue with a locator in its arguments is
where that says.
"""

import contextlib
import dataclasses
import json
import shutil
import threading
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.clients.harness import certificates
from tests.clients.harness.brokers import BrokerEndpoints, free_endpoints, warren_settings
from tests.clients.harness.outcomes import Verdict
from tests.patience import patient
from tests.warren_process import WarrenProcess, free_port, start_warren, stop

# The first is the node of the clients.
NODES = ("a", "b", "c")
# More than suites that share a cluster have on one node at a time.
OWN_QUEUES = 500
OWN_VHOST = "queues of the node of the clients"
LOCATORS = ("x-queue-leader-locator", "x-queue-master-locator")
FORM_S_MAX = patient(60)
POLL_S = 0.25
HTTP_S_MAX = patient(60)


class QueueHomes:
    """Looks again and again at which node each queue is, and remembers it."""

    def __init__(self, name: str, broker: BrokerEndpoints) -> None:
        self.name = name
        self._broker = broker
        self._is_ending = threading.Event()
        self._away: set[str] = set()
        self._at_clients: set[str] = set()
        self._has_looked = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def verdict(self) -> Verdict:
        """Stop looking; every queue that may be anywhere must have been on another node than the clients."""
        self._is_ending.set()
        self._thread.join()
        verdict = Verdict(suite=f"homes-{self.name}")
        for queue in sorted(self._at_clients):
            verdict.failed[queue] = "is on the node of the clients"
        if self._away:
            verdict.passed.append(f"{len(self._away)} queues were on other nodes than the clients")
            print(f"{self.name}: {verdict.passed[0]}", flush=True)
        elif self._has_looked:
            verdict.skipped.append("its queues were exclusive, or too short-lived to be seen")
        else:
            verdict.trouble = "the HTTP API has never said where queues are"
        return verdict

    def _run(self) -> None:
        while not self._is_ending.wait(POLL_S):
            # A suite may stop what answers, or be so busy that an answer takes too long.
            with contextlib.suppress(OSError, ValueError):
                self._look()

    def _look(self) -> None:
        for vhost in ask(self._broker, "/api/vhosts?columns=name"):
            if vhost["name"] != OWN_VHOST:
                self._look_at(vhost["name"])
        self._has_looked = True

    def _look_at(self, vhost: str) -> None:
        path = f"/api/queues/{quote(vhost, safe='')}?columns=name,node,exclusive,arguments"
        for queue in ask(self._broker, path):
            if queue["exclusive"] or any(name in queue["arguments"] for name in LOCATORS):
                continue
            at_clients = queue["node"] == full_name(NODES[0])
            (self._at_clients if at_clients else self._away).add(f"{vhost} {queue['name']}")


@contextlib.contextmanager
def started_cluster(folder: Path, *lines: str) -> Iterator[BrokerEndpoints]:
    """Start three nodes of the Warren that this Python imports; returns the addresses of the clients' node.

    `lines` are added to the configuration of each node.
    """
    shutil.rmtree(folder, ignore_errors=True)
    said = dict(line.split(" = ", 1) for line in lines)
    ports = {name: free_port() for name in NODES}
    login = said.get("default_user", "guest"), said.get("default_pass", "guest")
    endpoints = {name: free_endpoints(*login) for name in NODES}
    nodes: list[WarrenProcess] = []

    def start(name: str) -> None:
        settings = warren_settings(endpoints[name]) | cluster_settings(name, ports) | said
        nodes.append(start_node(folder / name, endpoints[name], settings))

    try:
        with ThreadPoolExecutor(len(NODES)) as pool:
            # A new node waits for the others before it listens.
            list(pool.map(start, NODES))
        others = tuple(endpoints[name].stream_port or 0 for name in NODES[1:])
        clients = dataclasses.replace(endpoints[NODES[0]], other_stream_ports=others)
        wait_until_whole(clients)
        declare_own_queues(clients)
        yield clients
    finally:
        for node in nodes:
            stop(node.process)


def start_node(folder: Path, broker: BrokerEndpoints, settings: dict[str, str]) -> WarrenProcess:
    """Start a node that listens on the ports of `broker`, with `folder` for its files."""
    folder.mkdir(parents=True)
    (folder / "warren.conf").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return start_warren(
        folder, broker.port, "--config", "warren.conf", "--data-dir", str(folder / "data"),
        "--management-port", str(broker.management_port), "--stream-port", str(broker.stream_port),
        environment={},
    )  # fmt: skip


def cluster_settings(name: str, ports: dict[str, int]) -> dict[str, str]:
    """Return the settings with which the nodes find each other at the cluster `ports` by name."""
    listed = {
        f"cluster_formation.classic_config.nodes.{number}": f"{full_name(other)}:{port}"
        for number, (other, port) in enumerate(ports.items(), 1)
    }
    return {
        "node.name": full_name(name),
        "cluster.cookie": "the cookie of these suites",
        "cluster.advertised_host": "127.0.0.1",
        "cluster.listeners.tcp.default": f"127.0.0.1:{ports[name]}",
        "cluster_formation.peer_discovery_backend": "classic_config",
        "queue_leader_locator": "balanced",
        **listed,
    }


def full_name(name: str) -> str:
    """Return the name of a node, with the host that streams are advertised with."""
    return f"{name}@{certificates.node_host() or 'localhost'}"


def wait_until_whole(broker: BrokerEndpoints) -> None:
    """Wait until a node says that all members are up. Raises TimeoutError."""
    deadline = time.monotonic() + FORM_S_MAX
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            members = ask(broker, "/api/warren/cluster")["members"]
            if len(members) == len(NODES) and all(member["is_up"] for member in members):
                return
        time.sleep(POLL_S)
    raise TimeoutError(f"the nodes are not one cluster after {FORM_S_MAX} s")


def declare_own_queues(broker: BrokerEndpoints) -> None:
    """Give the node of the clients queues, so that it always has more than the others."""
    queues = [
        {
            "vhost": OWN_VHOST, "name": f"{number}", "durable": True, "auto_delete": False,
            "arguments": {LOCATORS[0]: "client-local"},
        }
        for number in range(OWN_QUEUES)
    ]  # fmt: skip
    ask(broker, "/api/definitions", {"vhosts": [{"name": OWN_VHOST}], "queues": queues})


def ask(broker: BrokerEndpoints, path: str, body: object = None) -> Any:
    """Return the JSON of the HTTP API, to a POST if there is a `body`. Raises OSError or ValueError."""
    login = b64encode(f"{broker.user}:{broker.password}".encode()).decode()
    request = urllib.request.Request(
        f"http://{broker.host}:{broker.management_port}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Basic {login}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=HTTP_S_MAX) as answer:
        data = answer.read()
    return json.loads(data) if data else None
