"""How fast the machine is just now: others may use the cores, caches and clock that a benchmark needs."""

import time

LOOPS = 300_000


def loop_ms() -> float:
    """The processor time of a fixed loop; a broker's figures swing with it."""
    begin = time.process_time()
    total = 0
    for number in range(LOOPS):
        total += number
    return (time.process_time() - begin) * 1e3
