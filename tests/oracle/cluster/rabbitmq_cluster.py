"""Three RabbitMQ nodes of this machine in one cluster, with proxies between them."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.integration.cut_proxy import CutProxy
from tests.oracle.cluster.cluster_brokers import NODES, PASSWORD, USER, CommandResult, full_name
from tests.oracle.cluster.port_mapper import PortMapper
from tests.rabbitmq import SERVER, RabbitMQ
from tests.suspension import suspend_group
from tests.warren_process import free_port

PLUGINS = ("rabbitmq_management", "rabbitmq_prometheus")
COOKIE = "oracle"
# After 3/4 to 5/4 of it, a node counts one as down that says nothing.
NET_TICKTIME_S = 8
STATISTICS_MS = 500
ASK_AGAIN_S = 0.1
ANSWER_S = 90
PROGRAMS = ("rabbitmq-upgrade", "rabbitmq-diagnostics", "rabbitmq-queues")
_COLOUR = re.compile(r"\x1b\[\d*m")
_AUTHORIZATION = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
# One scheduler, which does not spin: three nodes share two processors with the tests.
_VM = f"+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -kernel net_ticktime {NET_TICKTIME_S}"


class RabbitMQNode(RabbitMQ):
    """One node of the cluster; its files are in `folder`."""

    def __init__(self, node: str, folder: Path, epmd_port: int) -> None:
        self.node = node
        self.http_port, self.prometheus_port = free_port(), free_port()
        self.distribution_port = free_port()
        folder.mkdir()
        cookie = folder / ".erlang.cookie"
        cookie.write_text(COOKIE)
        cookie.chmod(0o400)
        settings = {
            "management.tcp.ip": "127.0.0.1",
            "management.tcp.port": self.http_port,
            "prometheus.tcp.ip": "127.0.0.1",
            "prometheus.tcp.port": self.prometheus_port,
            "collect_statistics_interval": STATISTICS_MS,
            "cluster_name": "oracle",
            "cluster_formation.peer_discovery_backend": "classic_config",
            "cluster_formation.classic_config.nodes.1": full_name(NODES[0]),
        }
        super().__init__(
            folder,
            listen="127.0.0.1",
            settings="".join(f"{key} = {value}\n" for key, value in settings.items()),
            plugins=PLUGINS,
            environment={
                "RABBITMQ_NODENAME": full_name(node),
                "RABBITMQ_DIST_PORT": str(self.distribution_port),
                "ERL_EPMD_PORT": str(epmd_port),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _VM,
            },
        )

    def signal(self, number: int) -> None:
        """Send a signal to the process group of the node."""
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def suspend(self) -> None:
        """Suspend the process group of the node."""
        assert self._process is not None
        suspend_group(self._process.pid)

    def wipe(self) -> None:
        """Remove the data of the node, which has ended."""
        shutil.rmtree(self._directory / "mnesia")

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended since."""
        return self._process is not None and self._process.poll() is None

    def await_startup(self) -> None:
        """Wait until the node counts itself as running."""
        await_true(f"{self.node} is running", lambda: full_name(self.node) in self.running_nodes())

    def running_nodes(self) -> set[str]:
        """The nodes that this one believes to be running; none if it does not answer."""
        status, nodes = self.ask("GET", "/api/nodes?columns=name,running,partitions")
        if status != 200:
            return set()
        return {entry["name"] for entry in nodes if entry["running"]}

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of an answer of the HTTP API; status 0 if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)
        headers = {"authorization": _AUTHORIZATION, "content-type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text) if text else None
        except ValueError:
            return answer.status, None

    def run(self, *command: str) -> CommandResult:
        """Run an operator's command for this node."""
        program, arguments = ("rabbitmqctl", command)
        if command[0] in PROGRAMS:
            program, arguments = command[0], command[1:]
        done = subprocess.run(
            [str(SERVER.with_name(program)), *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
        )
        return CommandResult(done.returncode, _COLOUR.sub("", done.stdout + done.stderr).splitlines())


class RabbitMQCluster:
    """A cluster of RabbitMQ nodes that is formed when it is made; the files are below `folder`."""

    is_rabbitmq = True

    def __init__(self, folder: Path) -> None:
        self._mappers: dict[str, PortMapper] = {}
        self._proxies: dict[tuple[str, str], CutProxy] = {}
        self._nodes: dict[str, RabbitMQNode] = {}
        for node in NODES:
            epmd_port = free_port()
            self._nodes[node] = RabbitMQNode(node, folder / node, epmd_port)
            self._mappers[node] = PortMapper(epmd_port, self._way_from(node))
        for one in NODES:
            for other in NODES:
                if one != other:
                    self._proxies[one, other] = CutProxy(self._nodes[other].distribution_port)
        try:
            # The first is the seed of the others.
            self._nodes["a"].start()
            with ThreadPoolExecutor() as pool:
                list(pool.map(self.start, NODES[1:]))
            self._await_all_running()
        except BaseException:
            self.close()
            raise

    def _way_from(self, near: str) -> Callable[[str], int | None]:
        def find(name: str) -> int | None:
            for node, mapper in self._mappers.items():
                port = mapper.registered.get(name)
                if port is not None and node != near:
                    # A name that is no node's is that of a command, which nodes answer directly.
                    return self._proxies[near, node].port if name == node else port
            return None

        return find

    def close(self) -> None:
        """End all nodes, and what is between them."""
        self.mend()
        for node in self._nodes.values():
            with contextlib.suppress(AssertionError, ProcessLookupError):
                node.signal(signal.SIGCONT)
            node.kill()
        for mapper in self._mappers.values():
            mapper.close()
        for proxy in self._proxies.values():
            proxy.close()

    # --- the interface of the scenarios -----------------------------------------------------------------

    def amqp_address(self, node: str) -> tuple[str, int]:
        """Where a node listens to clients of AMQP."""
        return "127.0.0.1", self._nodes[node].port

    def http_address(self, node: str) -> tuple[str, int]:
        """Where a node serves the HTTP API."""
        return "127.0.0.1", self._nodes[node].http_port

    def prometheus_address(self, node: str) -> tuple[str, int]:
        """Where a node serves its metrics page."""
        return "127.0.0.1", self._nodes[node].prometheus_port

    def kill(self, node: str) -> None:
        """End a node with SIGKILL."""
        self._nodes[node].kill()

    def stop(self, node: str) -> None:
        """End a node with SIGTERM."""
        self._nodes[node].stop()

    def start(self, node: str) -> None:
        """Start a node that has ended, and return when it accepts clients."""
        self._nodes[node].start()

    def wipe(self, node: str) -> None:
        """Remove the data of a node that has ended."""
        self._nodes[node].wipe()

    def pause(self, node: str) -> None:
        """Suspend the processes of a node (SIGSTOP)."""
        self._nodes[node].suspend()

    def resume(self, node: str) -> None:
        """Let the processes of a node continue (SIGCONT)."""
        self._nodes[node].signal(signal.SIGCONT)

    def cut(self, one: str, other: str) -> None:
        """Reset the connections between two nodes, and refuse new ones."""
        for pair in ((one, other), (other, one)):
            self._proxies[pair].refuse()

    def stall(self, one: str, other: str) -> None:
        """Pass nothing between two nodes, and tell neither of them."""
        for pair in ((one, other), (other, one)):
            self._proxies[pair].silence()

    def mend(self) -> None:
        """Let every two nodes connect again."""
        for proxy in self._proxies.values():
            if not proxy.is_passing:
                proxy.resume()

    def configure(self, key: str, value: str) -> None:
        """Change a setting of the application `rabbit` on all running nodes."""
        running = [node for node in self._nodes.values() if node.is_running]
        names = ", ".join(f"'{full_name(node.node)}'" for node in running)
        call = f"rpc:multicall([{names}], application, set_env, [rabbit, {key}, {value}])."
        done = running[0].run("eval", call)
        assert done.status == 0, done

    def control(self, node: str, *command: str) -> CommandResult:
        """Run a command of an operator for a node: `rabbitmqctl` if its first word is no other program's."""
        return self._nodes[node].run(*command)

    def ask(self, node: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of an answer of the HTTP API of a node; None without JSON."""
        return self._nodes[node].ask(method, path, body)

    def restore(self) -> None:
        """Wait until all three nodes run in one cluster, and delete what was declared."""
        self._await_all_running()
        for kind in ("queues", "exchanges", "policies"):
            _, found = self._nodes["a"].ask("GET", f"/api/{kind}?columns=name,vhost")
            for entry in found:
                if entry["name"] and not entry["name"].startswith("amq."):
                    place = f"{quote(entry['vhost'], safe='')}/{quote(entry['name'], safe='')}"
                    self._nodes["a"].ask("DELETE", f"/api/{kind}/{place}")

    def _await_all_running(self) -> None:
        everything = {full_name(node) for node in NODES}
        await_true(
            "all nodes see each other",
            lambda: all(node.running_nodes() == everything for node in self._nodes.values()),
        )


def await_true(what: str, is_true: Callable[[], bool]) -> None:
    """Ask until the answer is yes. Raises RuntimeError with `what` if it is not in time."""
    deadline = time.monotonic() + ANSWER_S
    while not is_true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {ANSWER_S} s: {what}")
        time.sleep(ASK_AGAIN_S)
