"""Three brokers on this machine in one cluster, with proxies between them.

Implements `ClusterBrokers`, so that it plays the scenarios that are recorded from RabbitMQ.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from tests.cluster.node_proxy import NodeProxies
from tests.oracle.cluster.cluster_brokers import NODES, PASSWORD, USER, CommandResult, full_name
from tests.patience import patient
from tests.suspension import suspend

COOKIE = "the-cookie-of-these-tests"
START_S = patient(60)
# Programs of RabbitMQ beside `rabbitmqctl`, whose commands are all of `warren`.
PROGRAMS = ("rabbitmq-upgrade", "rabbitmq-diagnostics", "rabbitmq-queues")
_POLL_S = 0.05
# Longer than a change of the metadata waits for a majority.
_HTTP_S = patient(30)


class WarrenNode:
    """One node: its data directory, its ports, and its process if it runs."""

    def __init__(self, name: str, folder: Path, proxies: NodeProxies, settings: Mapping[str, str]) -> None:
        self.name = name
        self.data = folder / name
        self.log = folder / f"{name}.log"
        self._reserved = _ReservedPorts(5)
        self.amqp, self.http, self.prometheus, self.stream, self.cluster = self._reserved.ports
        self._proxies = proxies
        self.advertised = proxies.add(name, self.cluster)
        self.settings = dict(settings)
        self.process: subprocess.Popen[bytes] | None = None
        self._log_file: IO[bytes] | None = None

    @property
    def ports(self) -> dict[str, int]:
        """The ports for clients, by protocol."""
        return {"amqp": self.amqp, "http": self.http, "stream": self.stream}

    def begin(self) -> None:
        """Start the process."""
        assert self.process is None
        self._proxies.started(self.name)
        command = [
            sys.executable, "-m", "warren.cli.main", "serve", "--host", "127.0.0.1",
            "--node-name", full_name(self.name), "--data-dir", str(self.data),
            "--port", str(self.amqp), "--management-port", str(self.http),
            "--prometheus-port", str(self.prometheus), "--stream-port", str(self.stream),
            "--cluster-port", str(self.cluster),
        ]  # fmt: skip
        settings = {
            "WARREN_CLUSTER_COOKIE": COOKIE,
            "WARREN_CLUSTER_ADVERTISED_HOST": "127.0.0.1",
            "WARREN_CLUSTER_ADVERTISED_PORT": str(self.advertised),
            # Links between these nodes log in as guest.
            "WARREN_LOOPBACK_USERS_GUEST": "false",
            **self.settings,
        }
        self._log_file = self.log.open("ab")
        self.process = subprocess.Popen(
            command, stdout=self._log_file, stderr=subprocess.STDOUT, env=os.environ | settings
        )

    def wait_ready(self, seconds: float = START_S) -> None:
        """Wait until clients are accepted; RuntimeError with the log if the process ends instead."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process is not None
            if self.process.poll() is not None:
                self.ended()
                raise RuntimeError(f"{self.name} has ended: {self.log.read_text()[-2000:]}")
            # The listeners are opened one after the other.
            with contextlib.suppress(OSError):
                for port in (self.http, self.amqp):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                return
            time.sleep(_POLL_S)
        raise TimeoutError(f"{self.name} is not ready: {self.log.read_text()[-2000:]}")

    def end(self, number: signal.Signals) -> None:
        """End the process with a signal."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(30)
        self.ended()

    def ended(self) -> None:
        """The process has ended, by itself or by a signal."""
        assert self.process is not None
        assert self.process.returncode is not None
        assert self._log_file is not None
        self._log_file.close()
        self.process = None
        self._proxies.ended(self.name)

    def close(self) -> None:
        """Leave the ports to others, when the process has ended."""
        self._reserved.close()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of an answer of the HTTP API; 0 if there is no answer."""
        headers = {
            "Authorization": "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode(),
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.http}{path}", data=data, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_S) as answer:
                return answer.status, _parsed(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _parsed(error.read())
        except (OSError, TimeoutError):
            return 0, None


class WarrenCluster:
    """All nodes of a cluster."""

    is_rabbitmq = False

    def __init__(self, folder: Path, names: tuple[str, ...] = NODES, **settings: str) -> None:
        """`settings` are environment variables of all nodes."""
        self.proxies = NodeProxies()
        self.nodes = {name: WarrenNode(name, folder, self.proxies, settings) for name in names}

    def form(self) -> None:
        """Start all nodes, and let all others join the first."""
        for node in self.nodes.values():
            node.begin()
        for node in self.nodes.values():
            node.wait_ready()
        first, *others = self.nodes.values()
        for node in others:
            self.join(node, first)

    def join(self, node: WarrenNode, other: WarrenNode) -> None:
        """Let a node join the cluster of another, and wait until it votes and serves clients."""
        status, answer = node.ask(
            "PUT", "/api/warren/cluster/members", {"host": "127.0.0.1", "port": other.advertised}
        )
        assert status in (200, 201, 202, 204), (status, answer)
        # Of two voters neither decides without the other: a test that kills one needs the third.
        self.wait(lambda: self.votes(other, node), f"{node.name} votes")
        node.wait_ready()

    def votes(self, node: WarrenNode, other: WarrenNode) -> bool:
        """Whether `node` says that `other` is up and votes."""
        _, status = node.ask("GET", "/api/warren/cluster")
        return any(
            member["name"] == full_name(other.name) and member["is_up"] and member["role"] == "voter"
            for member in (status or {}).get("members", ())
        )

    def sees(self, node: WarrenNode, other: WarrenNode) -> bool:
        """Whether `node` says that `other` is up."""
        _, status = node.ask("GET", "/api/warren/cluster")
        return any(
            member["name"] == full_name(other.name) and member["is_up"]
            for member in (status or {}).get("members", ())
        )

    def wait(self, condition: Any, what: str, seconds: float = START_S) -> None:
        """Wait until `condition` is true."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not in {seconds} s: {what}")
            time.sleep(_POLL_S)

    def close(self) -> None:
        """End all processes and proxies."""
        for node in self.nodes.values():
            if node.process is not None:
                node.process.send_signal(signal.SIGCONT)
                node.end(signal.SIGKILL)
            node.close()
        self.proxies.close()

    # --- ClusterBrokers ------------------------------------------------------------------------------

    def amqp_address(self, node: str) -> tuple[str, int]:
        return "127.0.0.1", self.nodes[node].amqp

    def http_address(self, node: str) -> tuple[str, int]:
        return "127.0.0.1", self.nodes[node].http

    def prometheus_address(self, node: str) -> tuple[str, int]:
        return "127.0.0.1", self.nodes[node].prometheus

    def kill(self, node: str) -> None:
        self.nodes[node].end(signal.SIGKILL)

    def stop(self, node: str) -> None:
        self.nodes[node].end(signal.SIGTERM)

    def start(self, node: str) -> None:
        self.nodes[node].begin()
        self.nodes[node].wait_ready()

    def wipe(self, node: str) -> None:
        shutil.rmtree(self.nodes[node].data)

    def pause(self, node: str) -> None:
        process = self.nodes[node].process
        assert process is not None
        suspend(process.pid)

    def resume(self, node: str) -> None:
        process = self.nodes[node].process
        assert process is not None
        process.send_signal(signal.SIGCONT)

    def cut(self, one: str, other: str) -> None:
        self.proxies.cut(one, other)

    def stall(self, one: str, other: str) -> None:
        self.proxies.silence(one, other)
        self.proxies.silence(other, one)

    def mend(self) -> None:
        self.proxies.mend()

    def configure(self, key: str, value: str) -> None:
        """Restart the running nodes one by one, since settings are read at a start."""
        for node in self.nodes.values():
            if node.process is not None:
                node.end(signal.SIGTERM)
                node.settings[f"WARREN_{key.upper().replace('.', '_')}"] = value
                node.begin()
                node.wait_ready()
                self.wait(self.is_whole, "all nodes see one another")

    def is_whole(self) -> bool:
        """Whether every node says that all are up and connected."""
        return all(self.sees(node, other) for node, other in permutations(self.nodes.values(), 2))

    def ask(self, node: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return self.nodes[node].ask(method, path, body)

    def leader(self, queue: str, asked: str) -> str:
        """The node that leads a quorum queue, as the node `asked` says; empty if none is known."""
        status, found = self.ask(asked, "GET", f"/api/queues/%2F/{queue}")
        return str(found.get("leader", "")).partition("@")[0] if status == 200 else ""

    def replace_leader(self, queue: str, spared: str) -> None:
        """Kill the node that leads a quorum queue, and start it again when another one leads.

        The node `spared`, which has clients, is stopped for that time instead.
        """
        self.wait(lambda: self.leader(queue, spared), f"a node leads {queue}")
        name = self.leader(queue, spared)
        asked = next(each for each in self.nodes if each not in (name, spared))

        def is_replaced() -> bool:
            return self.leader(queue, asked) not in ("", name)

        if name == spared:
            self.pause(name)
            self.wait(is_replaced, f"another node leads {queue}")
            self.resume(name)
        else:
            self.kill(name)
            self.wait(is_replaced, f"another node leads {queue}")
            self.start(name)
        self.wait(self.is_whole, "all nodes see one another", 60)

    def restore(self) -> None:
        self.wait(self.is_whole, "all nodes see one another", 60)
        first = next(iter(self.nodes.values()))
        for kind in ("queues", "exchanges", "policies"):
            _, found = first.ask("GET", f"/api/{kind}?columns=name,vhost")
            for entry in found:
                if kind != "exchanges" or (entry["name"] and not entry["name"].startswith("amq.")):
                    place = f"{quote(entry['vhost'], safe='')}/{quote(entry['name'], safe='')}"
                    first.ask("DELETE", f"/api/{kind}/{place}")

    def control(self, node: str, *command: str) -> CommandResult:
        uri = f"http://127.0.0.1:{self.nodes[node].http}"
        words = command[1:] if command[0] in PROGRAMS else command
        done = subprocess.run(
            [sys.executable, "-m", "warren.cli.main", *words],
            env=os.environ | {"WARREN_URI": uri, "WARREN_USER": USER, "WARREN_PASSWORD": PASSWORD},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return CommandResult(done.returncode, (done.stdout + done.stderr).splitlines())


@contextlib.contextmanager
def warren_cluster(folder: Path, names: tuple[str, ...] = NODES, **settings: str) -> Iterator[WarrenCluster]:
    """A formed cluster, ended in the end."""
    cluster = WarrenCluster(folder, names, **settings)
    try:
        cluster.form()
        yield cluster
    finally:
        cluster.close()


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return None


class _ReservedPorts:
    """Ports that no other test on this machine takes: a node listens on the same ones again when it restarts.

    They are below those that the system gives to sockets which ask for any. Between two runs of a node nobody
    listens on them: what reserves one is a name among the sockets of this machine that have no file.
    """

    def __init__(self, count: int) -> None:
        self.ports: list[int] = []
        self._names: list[socket.socket] = []
        while len(self.ports) < count:
            port = random.randrange(20_000, 32_000)
            name = socket.socket(socket.AF_UNIX)
            try:
                name.bind(f"\0warren-test-port-{port}")
                with socket.create_server(("127.0.0.1", port)):
                    self.ports.append(port)
                self._names.append(name)
            except OSError:
                name.close()

    def close(self) -> None:
        """Leave them to others."""
        for name in self._names:
            name.close()
