"""Shows that memory stays bounded, and other clients are served, while more is published than consumed.

A publisher that is ten times faster than the disk, consumers that stop reading, a thousand consumers that do
nothing: the broker's memory in each second, and the latency of another client meanwhile and alone. Persistent
messages are published continuously and without confirms. Each scenario has a new broker.
"""

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.integration.faults import Faults, NoCompiler

from backlog import declare, delete, waiting
from brokers import Broker
from client_latency import (
    HEADS,
    MEBIBYTE,
    ClientFigures,
    chosen,
    line,
    parse_arguments,
    probe,
    resident_bytes,
)
from misbehaving_clients import (
    Behaviour,
    consume_idly,
    misbehaving,
    publish_persistently,
    stop_reading_durable,
)
from table import figure, table
from warren.client.uri import parse_uri

QUEUES = [f"pressure.{number}" for number in range(10)]
QUEUE = QUEUES[0]
SIZE_KB = 1.024  # of one message
# One sync writes all data that Warren has pending, at most 16 MiB; a new file needs syncs of its own.
SYNC_MS = 300
PUBLISHER = partial(publish_persistently, QUEUE)
IDLERS = partial(consume_idly, QUEUE)
DEAF = partial(stop_reading_durable, QUEUES)
AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """The misbehaving clients beside the measured client."""

    text: str
    behaviours: tuple[Behaviour, ...]
    settle_s: float = 1.0
    sync_ms: int = 0  # added to the duration of each sync


SCENARIOS = [
    Scenario("nobody", ()),
    Scenario("a publisher", (PUBLISHER,)),
    Scenario(f"a publisher, each sync takes {SYNC_MS} ms more", (PUBLISHER,), sync_ms=SYNC_MS),
    Scenario("ten consumers that stop reading, a publisher", (DEAF,)),
    Scenario("1,000 consumers of an empty queue", (IDLERS,), settle_s=5),
    Scenario("1,000 consumers that acknowledge nothing, a publisher", (IDLERS, PUBLISHER), settle_s=5),
]


def main() -> None:
    """Measure, and print tables."""
    arguments = parse_arguments(__doc__ or "")
    with tempfile.TemporaryDirectory(prefix="warren-bench-faults-") as folder:
        try:
            faults = Faults(Path(folder))
        except NoCompiler as missing:
            sys.exit(str(missing))
        seen: list[ClientFigures] = []
        latencies, memory = [], []
        for scenario in SCENARIOS:
            print(scenario.text, file=sys.stderr, flush=True)
            with chosen(arguments, faults.environment) as broker:
                before = resident_bytes(broker)
                with pressed(scenario, broker, faults) as taken:
                    seen.append(probe(broker, arguments))
                    per_s = taken()
                time.sleep(AFTER_S)
                after = resident_bytes(broker)
            latencies.append(line(scenario.text, seen[-1], seen[0], before))
            memory.append(memory_line(scenario, seen[-1], (before, after), per_s))
    print(f"{broker.name} {broker.version}\n")
    print(table(HEADS, latencies))
    print()
    heads = ["memory in MiB beside", "MB/s taken in", "before", "once a second", "afterwards"]
    print(table(heads, memory))


@contextlib.contextmanager
def pressed(scenario: Scenario, broker: Broker, faults: Faults) -> Iterator[Callable[[], float]]:
    """Run the scenario; the value returned gives the messages per second that were published until then."""
    target = parse_uri(broker.uri)
    for queue in QUEUES:
        declare(target, queue)
    if scenario.sync_ms:
        faults.set(*(f"{call} delay {scenario.sync_ms} {broker.data}" for call in ("fdatasync", "fsync")))
    try:
        with contextlib.ExitStack() as stack:
            for behaviour in scenario.behaviours:
                stack.enter_context(misbehaving(behaviour, target))
            time.sleep(scenario.settle_s)
            before, begin_s = total_waiting(broker), time.monotonic()
            yield lambda: (total_waiting(broker) - before) / (time.monotonic() - begin_s)
    finally:
        faults.set()
    for queue in QUEUES:
        delete(target, queue)


def total_waiting(broker: Broker) -> int:
    """Return the number of ready messages in the queues of the scenarios."""
    return sum(waiting(parse_uri(broker.uri), queue) for queue in QUEUES)


def memory_line(scenario: Scenario, seen: ClientFigures, ends: tuple[int, int], per_s: float) -> list[str]:
    """Return the broker's memory before, during and after the scenario."""
    before, during, after = (
        " ".join(f"{now / MEBIBYTE:.0f}" for now in part)
        for part in ((ends[0],), seen.resident_bytes, (ends[1],))
    )
    return [scenario.text, figure(per_s * SIZE_KB / 1000), before, during, after]


if __name__ == "__main__":
    main()
