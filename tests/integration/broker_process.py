"""Starts `warren serve` as a process, as users do."""

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.patience import patient
from tests.warren_process import IN_MEMORY

_READY = re.compile(r"(?P<protocol>(?:amqp|stream)(?:/ssl)?|https?(?:/prometheus)?) \S+:(?P<port>\d+)")
STOP_TIMEOUT_S = patient(15)


class BrokerProcess:
    """A started process; `lines` is its log up to `ready`."""

    def __init__(
        self, arguments: list[str], environment: dict[str, str], descriptors: int | None = None
    ) -> None:
        # Of an option that is given twice, the last counts.
        free = ["--port", "0", "--management-port", "0", "--prometheus-port", "0", "--stream-port", "0"]
        command = [sys.executable, "-m", "warren.cli.main", "serve", "--host", "127.0.0.1", *free, *arguments]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | IN_MEMORY | environment,
            preexec_fn=None if descriptors is None else partial(_limit, descriptors),
        )
        self.lines: list[str] = []
        self.ports: dict[str, int] = {}

    def wait_ready(self) -> None:
        """Wait for the ready message; raises an AssertionError with the log if the process ends instead."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            _, found, addresses = line.partition("ready: ")
            if found:
                for match in _READY.finditer(addresses):
                    self.ports.setdefault(match["protocol"], int(match["port"]))
                return
        raise AssertionError(f"ended with {self.process.wait()}: {''.join(self.lines)}")

    def wait_for(self, text: str) -> None:
        """Wait until a line of the log contains `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return
        raise AssertionError(f"ended without {text!r}: {''.join(self.lines)}")

    @property
    def port(self) -> int:
        """The port of AMQP without TLS."""
        return self.ports["amqp"]

    def stop(self) -> int:
        """Send SIGTERM; returns the exit status. The rest of the log is added to `lines`."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)
        return self.process.wait(STOP_TIMEOUT_S)


def _limit(descriptors: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))


@contextmanager
def broker(
    *arguments: str, config: Path | None = None, descriptors: int | None = None, **environment: str
) -> Iterator[BrokerProcess]:
    """A ready broker on free loopback ports, stopped at the end of the block.

    `descriptors` limits its file descriptors, if it is given.
    """
    more = ["--config", str(config)] if config else []
    started = BrokerProcess([*arguments, *more], environment, descriptors)
    try:
        started.wait_ready()
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        for pipe in (started.process.stdout, started.process.stderr):
            if pipe is not None:
                pipe.close()


def refusal(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit status and standard error of a broker that refuses to start."""
    started = BrokerProcess(list(arguments), environment)
    try:
        _, errors = started.process.communicate(timeout=STOP_TIMEOUT_S)
    finally:
        started.process.kill()
    return started.process.returncode, errors
