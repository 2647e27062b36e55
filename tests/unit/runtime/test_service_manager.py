"""Notifications to the service manager, received on a socket of the test."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from warren.runtime.service_manager import ServiceManager


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(5)
        yield ear


def received(ear: socket.socket) -> list[str]:
    return ear.recv(4096).decode().splitlines()


def test_ready_and_stopping_are_announced(listening: socket.socket) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": listening.getsockname()})
    manager.ready("AMQP on port 5672")
    assert received(listening) == ["READY=1", "STATUS=AMQP on port 5672"]
    manager.stopping()
    assert received(listening) == ["STOPPING=1", "STATUS=stopping"]


def test_a_reload_is_announced_with_its_time(listening: socket.socket) -> None:
    ServiceManager({"NOTIFY_SOCKET": listening.getsockname()}).reloading()
    began, when = received(listening)
    assert began == "RELOADING=1"
    assert int(when.removeprefix("MONOTONIC_USEC=")) > 0


def test_an_abstract_socket_is_reached_by_its_name() -> None:
    name = f"warren-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind("\0" + name)
        ear.settimeout(5)
        ServiceManager({"NOTIFY_SOCKET": "@" + name}).stopping()
        assert received(ear)[0] == "STOPPING=1"


def test_without_a_service_manager_nothing_is_sent(tmp_path: Path) -> None:
    for environment in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone")}):
        manager = ServiceManager(environment)
        manager.ready("AMQP on port 5672")
        manager.reloading()
        manager.stopping()


def test_a_watched_loop_sends_watchdog_messages_until_it_stops(listening: socket.socket) -> None:
    async def live() -> list[str]:
        environment = {
            "NOTIFY_SOCKET": listening.getsockname(),
            "WATCHDOG_USEC": "20000",
            "WATCHDOG_PID": str(os.getpid()),
        }
        manager = ServiceManager(environment)
        manager.ready("")
        loop = asyncio.get_running_loop()
        reported = [(await loop.run_in_executor(None, received, listening))[0] for _ in range(3)]
        manager.stopping()
        while (last := (await loop.run_in_executor(None, received, listening))[0]) == "WATCHDOG=1":
            pass
        return [*reported, last]

    assert asyncio.run(live()) == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]


@pytest.mark.parametrize(
    "unasked", [{}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}]
)
def test_a_loop_without_a_watchdog_sends_none(listening: socket.socket, unasked: dict[str, str]) -> None:
    async def live() -> None:
        manager = ServiceManager({"NOTIFY_SOCKET": listening.getsockname()} | unasked)
        manager.ready("")
        await asyncio.sleep(0.05)
        manager.stopping()

    asyncio.run(live())
    assert [received(listening)[0], received(listening)[0]] == ["READY=1", "STOPPING=1"]
