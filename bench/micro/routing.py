"""Measures CPU time per route, bind and unbind (ns) at 1, 1,000 and 100,000 bindings, and prints the build.

A route should cost the same in all three columns: that is the meaning of `flat`.
"""

import argparse
import itertools
import json
import time
import timeit
import tracemalloc
from collections.abc import Callable, Iterator

import warren.routing.router
from warren.model.message import BODY_END, Message, encode_address
from warren.routing.exchange import Binding, Exchange, ExchangeSettings
from warren.routing.router import Router
from warren.routing.types import exchange_type
from warren.wire.properties import BasicProperties

SIZES = (1, 1_000, 100_000)
SHAPES = ("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-modulus-hash")
# The hash exchanges try each candidate once per slot, so a thousand of them are many.
SIZE_MAX = {"x-consistent-hash": 1_000}


def binding(kind: str, source: Exchange, number: int) -> Binding:
    """Return binding number `number`, in the form in which its exchange type is used."""
    queue = f"queue-{number}"
    if kind == "topic":
        return Binding(source, f"orders.eu.{number}.#", None, queue)
    if kind == "headers":
        return Binding(source, "", {"x-match": "all", "kind": "order", "id": number}, queue)
    if kind == "fanout":
        # A single queue for all bindings, since otherwise deliveries would be measured.
        return Binding(source, f"key-{number}", None, "queue")
    return Binding(source, "1" if kind == "x-consistent-hash" else f"key-{number}", None, queue)


def keys(kind: str, size: int) -> Iterator[str]:
    """Yield routing keys that match one binding each, repeatedly."""
    for number in itertools.cycle(range(size)):
        yield f"orders.eu.{number}.created.now" if kind == "topic" else f"key-{number}"


def nanoseconds(call: Callable[[], object], seconds: float) -> float:
    """Return the CPU time per call (ns), the minimum of five runs in `seconds` with a filled cache."""
    call()
    timer = timeit.Timer(call, timer=time.process_time)
    calls, elapsed = timer.autorange()
    calls = max(1, int(calls * seconds / 5 / elapsed))
    return min(timer.repeat(5, calls)) / calls * 1e9


def measured(kind: str, size: int, seconds: float) -> dict[str, float]:
    """Return all figures for one type and one number of bindings."""
    router = Router("/")
    exchange = exchange_type(kind)("x", ExchangeSettings())
    router.add(exchange)
    tracemalloc.start()
    bindings = [binding(kind, exchange, number) for number in range(size)]
    for one in bindings:
        router.bind(one)
    byte_count = tracemalloc.get_traced_memory()[0] / size
    tracemalloc.stop()
    headers = {"kind": "order", "id": size // 2} if kind == "headers" else None
    address = encode_address("x", next(keys(kind, size)))
    message = Message.compose(address, BasicProperties(headers=headers), BODY_END, now=0)
    source = keys(kind, size)

    def uncached() -> object:
        return dict.fromkeys(exchange.route(next(source), message))

    extra = binding(kind, exchange, size)

    def bind_and_unbind() -> None:
        router.bind(extra)
        router.unbind(extra)

    started = time.process_time()
    for one in bindings:
        router.unbind(one)
    unbind_all = (time.process_time() - started) / size * 1e9
    started = time.process_time()
    for one in bindings:
        router.bind(one)
    bind_all = (time.process_time() - started) / size * 1e9
    return {
        "router": nanoseconds(lambda: router.route(address, message), seconds),
        "exchange": nanoseconds(uncached, seconds),
        "bind and unbind": nanoseconds(bind_and_unbind, seconds),
        "bind each": bind_all,
        "unbind each": unbind_all,
        "octets": byte_count,
    }


def main() -> None:
    """Print a table, or JSON with --json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each figure")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    build = "interpreted" if warren.routing.router.__file__.endswith(".py") else "compiled"
    results = {
        f"{kind} {size}": measured(kind, size, arguments.seconds)
        for kind in SHAPES
        for size in SIZES
        if size <= SIZE_MAX.get(kind, size)
    }
    if arguments.json:
        print(json.dumps({"build": build, "unit": "ns", "results": results}))
        return
    print(f"ns per call, {build}; bytes per binding, traced")
    names = list(next(iter(results.values())))
    print(f"{'':26}" + "".join(f"{name:>17}" for name in names))
    for name, figures in results.items():
        print(f"{name:26}" + "".join(f"{figures[column]:17.0f}" for column in names))


if __name__ == "__main__":
    main()
