"""Measures how fast the machine is at the moment: other processes may use the cores, caches and disk."""

import os
import statistics
import tempfile
import time

LOOPS = 300_000
SYNCS = 20
SYNCED_BYTES = 1024


def loop_ms() -> float:
    """Return the CPU time of a fixed loop (ms); the figures of brokers vary with it."""
    begin = time.process_time()
    total = 0
    for number in range(LOOPS):
        total += number
    return (time.process_time() - begin) * 1e3


def sync_us() -> float:
    """Return how long the brokers' disk takes to sync a small write (µs): no confirm comes sooner."""
    with tempfile.TemporaryFile(prefix="warren-bench-") as file:
        file.write(bytes(SYNCS * SYNCED_BYTES))
        file.flush()
        os.fsync(file.fileno())
        took_s = []
        for number in range(SYNCS):
            os.pwrite(file.fileno(), bytes([number]) * SYNCED_BYTES, number * SYNCED_BYTES)
            begin_s = time.monotonic()
            os.fdatasync(file.fileno())
            took_s.append(time.monotonic() - begin_s)
    return statistics.median(took_s) * 1e6
