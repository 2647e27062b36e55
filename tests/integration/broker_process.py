"""Starts `warren serve` as a process of its own, as people do."""

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

from tests.warren_process import IN_MEMORY

_READY = re.compile(r"(?P<protocol>(?:amqp|stream)(?:/ssl)?|https?(?:/prometheus)?) \S+:(?P<port>\d+)")
STOP_TIMEOUT_S = 15


class BrokerProcess:
    """A started process; `lines` is its log up to `ready`."""

    def __init__(
        self, arguments: list[str], environment: dict[str, str], descriptors: int | None = None
    ) -> None:
        # What is given twice counts as given last.
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
        """Until it says so; an AssertionError with its log if it ends instead."""
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
        """Until a line of its log has `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return
        raise AssertionError(f"ended without {text!r}: {''.join(self.lines)}")

    @property
    def port(self) -> int:
        """Where AMQP is spoken in the clear."""
        return self.ports["amqp"]

    def stop(self) -> int:
        """SIGTERM; the exit status. The rest of the log is added to `lines`."""
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
    """A broker that is ready, on free ports of the loopback interface; ends with the block.

    It has so many `descriptors` and no more, if that is said.
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
    """Exit status and standard error of a broker that will not start."""
    started = BrokerProcess(list(arguments), environment)
    try:
        _, errors = started.process.communicate(timeout=STOP_TIMEOUT_S)
    finally:
        started.process.kill()
    return started.process.returncode, errors
