"""Starts a RabbitMQ for tests, on free ports, in a temporary directory.

It is Debian's rabbitmq-server, or the one whose commands are in the directory that ORACLE_BIN_DIR names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.patience import patient
from tests.warren_process import free_port

SERVER = Path(os.environ.get("ORACLE_BIN_DIR", "/usr/lib/rabbitmq/bin")) / "rabbitmq-server"
PLUGINS = (
    "rabbitmq_consistent_hash_exchange", "rabbitmq_random_exchange", "rabbitmq_sharding",
    "rabbitmq_federation",
)  # fmt: skip
START_S, CONTROL_S = patient(90), patient(60)


def is_installed() -> bool:
    """True if there is a rabbitmq-server to start."""
    return SERVER.exists()


class RabbitMQ:
    """One broker process; `directory` must be empty, and the caller removes it.

    `settings` are lines of its rabbitmq.conf, `advanced` is its advanced.config, and `environment` has
    precedence over the variables that are set here.
    """

    def __init__(
        self,
        directory: Path,
        *,
        listen: str = "0.0.0.0",
        settings: str = "",
        advanced: str = "",
        plugins: Sequence[str] = PLUGINS,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._directory = directory
        self._environment = dict(os.environ)
        self.port, distribution = free_port(), free_port()
        (directory / "enabled_plugins").write_text(f"[{','.join(plugins)}].")
        (directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = {listen}:{self.port}\nlog.console = false\n{settings}"
        )
        self._environment |= {
            # The cookie is created in HOME, so that nothing of an installed broker is read.
            "HOME": str(directory),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
        }
        self._environment |= environment
        if advanced:
            (directory / "advanced.config").write_text(advanced)
            self._environment["RABBITMQ_ADVANCED_CONFIG_FILE"] = str(directory / "advanced.config")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What rabbitmqctl needs to find this broker."""
        return {
            name: value
            for name, value in self._environment.items()
            if name == "HOME" or name.startswith(("RABBITMQ_", "ERL_EPMD_"))
        }

    def start(self) -> None:
        """Start, and return when it accepts connections."""
        with (self._directory / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [SERVER],
                # Where Mnesia writes its dumps.
                cwd=self._directory,
                env=self._environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while not _accepts(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError((self._directory / "output").read_text())
            time.sleep(0.2)
        # The node is registered with epmd a little after its listener accepts if it was killed before.
        self.await_startup()

    def await_startup(self) -> None:
        """Wait until the broker answers commands."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.control("await_startup")
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
            else:
                return

    def version(self) -> tuple[int, ...]:
        """The version that runs, as in (4, 3, 6)."""
        return tuple(int(number) for number in self.control("version").split()[-1].split("."))

    @property
    def is_running(self) -> bool:
        """True from `start` to `stop` or `kill`."""
        return self._process is not None

    def control(self, *arguments: str, within_s: float = CONTROL_S) -> str:
        """Run rabbitmqctl for this broker."""
        command = [str(SERVER.with_name("rabbitmqctl")), *arguments]
        return subprocess.run(
            command, env=self._environment, check=True, capture_output=True, text=True, timeout=within_s
        ).stdout

    def stop(self) -> None:
        """Stop it with the processes it has started, by its own process group."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(5)
        self._process = None

    def kill(self) -> None:
        """Kill it with SIGKILL, as a crash does; `start` starts it again."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(5)
            self._process = None
        # The process waited for is a shell; the broker itself may end a little later.
        while _accepts(self.port):
            time.sleep(0.1)

    def remove(self) -> None:
        """Remove its files."""
        shutil.rmtree(self._directory, ignore_errors=True)


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
