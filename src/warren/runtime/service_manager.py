"""Notifies systemd, or a compatible service manager, of start, reload and stop.

The protocol is sd_notify(3): datagrams of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names.
"""

import asyncio
import os
import socket
import time
from collections.abc import Mapping

from warren.runtime.timers import PeriodicTimer

_US_PER_S = 1_000_000
# An abstract socket: its name begins with NUL, which the variable writes as @.
_ABSTRACT = "@"


class ServiceManager:
    """The service manager that `environment` names; does nothing if there is none."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith(_ABSTRACT) else name
        self._watchdog_s = _watchdog_s(environment)
        self._alive: PeriodicTimer | None = None

    def ready(self, status: str) -> None:
        """Report that the node is ready, with a `status` text, and start the watchdog if requested."""
        self._tell(f"READY=1\nSTATUS={status}")
        if self._address and self._watchdog_s and self._alive is None:
            # Twice as often as needed, as sd_watchdog_enabled(3) advises.
            self._alive = PeriodicTimer(asyncio.get_running_loop(), self._watchdog_s / 2, self._still_alive)

    def reloading(self) -> None:
        """Report that the settings are being reloaded; `ready` ends that."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Report that the node is stopping."""
        if self._alive is not None:
            self._alive.stop()
        self._tell("STOPPING=1\nSTATUS=stopping")

    def _still_alive(self) -> None:
        self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.setblocking(False)
            try:
                told.sendto(text.encode(), self._address)
            except OSError:
                # The service manager does not listen, which does not affect the broker.
                return


def _watchdog_s(environment: Mapping[str, str]) -> float:
    """The watchdog timeout in seconds; 0 if there is none."""
    # The variables are inherited: they may be meant for a parent process.
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / _US_PER_S if text.isdecimal() else 0
