"""Starts a cluster of three nodes on this machine, and stops them with Ctrl-C.

Each node has a directory of its own, and ports that follow those of the first one: AMQP 5672, 5673, 5674, and
so on. Their data stay, so that the next call starts the same cluster again.
"""

import argparse
import secrets
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

NODES = 3
AMQP, HTTP, PROMETHEUS, STREAM, CLUSTER = 5672, 15672, 15692, 5552, 25672
_READY_S = 60
_POLL_S = 0.2


def main() -> int:
    """Start the nodes, print where they listen, and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warren", required=True, help="the command warren")
    parser.add_argument("--data", type=Path, required=True, help="directory of the nodes' data")
    parser.add_argument("--offset", type=int, default=0, help="added to all ports")
    arguments = parser.parse_args()
    arguments.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    cookie = arguments.data / "cookie"
    if not cookie.exists():
        cookie.touch(mode=0o600)
        cookie.write_text(secrets.token_urlsafe(24))
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    nodes = [_start(arguments, number, cookie.read_text()) for number in range(NODES)]
    try:
        _wait(nodes, arguments.offset, ending)
        if not ending.is_set() and all(node.poll() is None for node in nodes):
            _print_addresses(arguments.data, arguments.offset)
        while not ending.wait(_POLL_S) and all(node.poll() is None for node in nodes):
            pass
        ended = [number for number, node in enumerate(nodes, 1) if node.poll() is not None]
        for number in ended:
            print(f"node {number} has ended: see {arguments.data / f'node{number}.log'}", file=sys.stderr)
        return 1 if ended else 0
    finally:
        for node in nodes:
            if node.poll() is None:
                node.terminate()
        for node in nodes:
            node.wait()


def _start(arguments: argparse.Namespace, number: int, cookie: str) -> "subprocess.Popen[bytes]":
    """Start node `number`, counted from 0, with its log beside its data."""
    name, shift = f"node{number + 1}", arguments.offset + number
    settings = arguments.data / f"{name}.conf"
    settings.touch(mode=0o600)
    lines = [
        f"node.name = {name}@localhost",
        f"cluster.cookie = {cookie}",
        "cluster.advertised_host = 127.0.0.1",
        f"cluster.listeners.tcp.default = 127.0.0.1:{CLUSTER + shift}",
        "cluster_formation.peer_discovery_backend = classic_config",
        *(
            f"cluster_formation.classic_config.nodes.{other + 1} = "
            f"node{other + 1}@localhost:{CLUSTER + arguments.offset + other}"
            for other in range(NODES)
        ),
    ]
    settings.write_text("\n".join(lines) + "\n")
    ports = {
        "--port": AMQP, "--management-port": HTTP, "--prometheus-port": PROMETHEUS, "--stream-port": STREAM,
    }  # fmt: skip
    flags = [text for flag, port in ports.items() for text in (flag, str(port + shift))]
    command = [
        arguments.warren, "serve", "--config", str(settings), "--data-dir", str(arguments.data / name),
        "--host", "127.0.0.1", *flags,
    ]  # fmt: skip
    with (arguments.data / f"{name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def _wait(nodes: "list[subprocess.Popen[bytes]]", offset: int, ending: threading.Event) -> None:
    """Wait until all nodes answer over HTTP, or one has ended."""
    for number in range(NODES):
        url = f"http://127.0.0.1:{HTTP + offset + number}/"
        for _ in range(int(_READY_S / _POLL_S)):
            if ending.is_set() or any(node.poll() is not None for node in nodes):
                return
            try:
                urllib.request.urlopen(url, timeout=2).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                ending.wait(_POLL_S)


def _print_addresses(data: Path, offset: int) -> None:
    print("Three nodes are one cluster; press Ctrl-C to stop them.", flush=True)
    for number in range(NODES):
        shift = offset + number
        print(
            f"    node{number + 1}@localhost  amqp://guest:guest@127.0.0.1:{AMQP + shift}  "
            f"http://127.0.0.1:{HTTP + shift}",
            flush=True,
        )
    print(f"Their data and logs are in {data}.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
