"""Processor time and memory of a process and its descendants."""

import os
import subprocess
import sys

from warren.cli.perf.usage import family, own_cpu_s, stat_fields, usage


def test_a_command_name_with_brackets_does_not_shift_the_fields() -> None:
    assert stat_fields("12 (a b) c) S 1 2 3")[:3] == ["S", "1", "2"]


def test_this_process_has_used_time_and_memory() -> None:
    before = usage([os.getpid()])
    sum(range(2_000_000))
    after = usage([os.getpid()])
    assert after.cpu_s >= before.cpu_s > 0
    assert after.resident_bytes > 1 << 20


def test_child_processes_are_included() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert family([os.getpid()]) >= {os.getpid(), child.pid}
        child.communicate(b"\n")


def test_a_process_that_has_ended_uses_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert usage([child.pid]).cpu_s == 0


def test_the_time_of_a_process_is_finer_than_a_tick_of_the_kernel() -> None:
    times = {own_cpu_s(os.getpid()) for _ in range(100)}
    assert len(times) > 50
