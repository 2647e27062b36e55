"""Runs a tutorial's program as a process and reads its output."""

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.harness import fetching
from tests.patience import patient

HERE = Path(__file__).parent
AMQPLIB = "amqplib@2.3.1"
ANSWER_S_MAX = patient(30)
CLIENTS = {
    "pika": "with_pika.py",
    "aio-pika": "with_aio_pika.py",
    "amqplib with promises": "with_amqplib_promises.cjs",
    "amqplib with callbacks": "with_amqplib_callbacks.cjs",
}


class Program:
    """One running process; its lines are read as they arrive."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._early: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def wait_until_ready(self) -> None:
        """Wait for the line `ready`; a first delivery may be printed before it, and is kept."""
        early = []
        while (line := self._next()) != "ready":
            early.append(line)
        self._early = early

    def line(self) -> str:
        """Return the next line it prints; fails if there is none in time."""
        return self._early.pop(0) if self._early else self._next()

    def lines(self, count: int) -> list[str]:
        """Return the next `count` lines."""
        return [self.line() for _ in range(count)]

    def has_more(self, seconds: float) -> bool:
        """True if it prints anything in the next `seconds`; used to show that it does not."""
        deadline = time.monotonic() + seconds
        while self._lines.empty() and not self._early and time.monotonic() < deadline:
            time.sleep(0.02)
        return bool(self._early) or not self._lines.empty()

    def kill(self) -> None:
        """Kill it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def _next(self) -> str:
        try:
            line = self._lines.get(timeout=ANSWER_S_MAX)
        except queue.Empty:
            pytest.fail(f"{self._process.args} printed nothing more within {ANSWER_S_MAX} s")
        if line is None:
            pytest.fail(f"{self._process.args} ended with status {self._process.wait()}")
        return line

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


class Tutorial:
    """The programs of one client library, with one broker."""

    def __init__(self, client: str, uri: str) -> None:
        script = CLIENTS[client]
        self._environment = dict(os.environ)
        if script.endswith(".py"):
            interpreter = sys.executable
        else:
            interpreter = shutil.which("node") or pytest.skip("Node is not installed")
            shutil.which("npm") or pytest.skip("npm is not installed")
            self._environment["NODE_PATH"] = str(fetching.node_packages(AMQPLIB))
        self._command = [interpreter, str(HERE / script), uri]

    def run(self, *arguments: str) -> list[str]:
        """Run a program to its end; returns its output."""
        done = subprocess.run(
            [*self._command, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=ANSWER_S_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Iterator[Program]:
        """Run a program until the block ends; it is ready when the block begins."""
        with subprocess.Popen(
            [*self._command, *arguments], env=self._environment, stdout=subprocess.PIPE, text=True
        ) as process:
            program = Program(process)
            try:
                program.wait_until_ready()
                yield program
            finally:
                process.terminate()
                process.wait(ANSWER_S_MAX)
