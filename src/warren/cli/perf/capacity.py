"""What connections, queues and waiting messages cost a broker in memory, and how fast it makes them."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from warren.cli.perf.board import Phase, Seat, Totals
from warren.cli.perf.crew import Crew, Observer, raise_open_files_limit
from warren.cli.perf.histogram import Histogram
from warren.cli.perf.link import open_link
from warren.cli.perf.load import Load
from warren.cli.perf.publication import Content, Publication
from warren.cli.perf.result import Result
from warren.cli.perf.topology import CHANNEL, declare, delete, names_for
from warren.cli.perf.usage import usage
from warren.client.confirms import ConfirmCounter
from warren.client.link import Link
from warren.client.uri import Target
from warren.wire.method import Method
from warren.wire.methods import (
    BasicConsume,
    BasicConsumeOk,
    ConfirmSelect,
    ConfirmSelectOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)

SETTLE_S = 0.5  # memory that does not change for so long
SETTLE_S_MAX = 5.0
CONFIRM_WINDOW = 1_000
RECEIVE_BYTES = 65_536


def measure_connections(target: Target, *, count: int, observer: Observer) -> Result:
    """Open `count` connections, then a channel on each, then a queue and a consumer; memory after each."""
    raise_open_files_limit()
    result = Result("connections", {"connections": count})
    empty = settled_memory(observer)
    begin_s = time.monotonic()
    links = [open_link(target) for _ in range(count)]
    try:
        result.figures["opened_per_s"] = count / (time.monotonic() - begin_s)
        steps: dict[str, Callable[[Link], None]] = {
            "idle": lambda link: None,
            "with_channel": lambda link: link.open_channel(CHANNEL),
            "with_queue_and_consumer": _consume,
        }
        for name, step in steps.items():
            for link in links:
                step(link)
            if observer.broker_pids:
                grown = settled_memory(observer) - empty
                result.figures[f"{name}_kb_per_connection"] = grown / count / 1024
    finally:
        for link in links:
            link.close()
    return result


def measure_churn(target: Target, *, processes: int, duration: float, observer: Observer) -> Result:
    """Open a connection with a channel and close it, again and again."""
    return _measure_rate("churn", partial(_churn, target), processes, (duration, "connection", observer))


def measure_declares(target: Target, *, durable: bool, duration: float, observer: Observer) -> Result:
    """Declare queue after queue on one channel, waiting for each answer; they are deleted afterwards."""
    name = "durable declares" if durable else "declares"
    member = partial(_declare, target, durable)
    return _measure_rate(name, member, 1, (duration, "queue", observer))


def measure_queues(target: Target, *, count: int, observer: Observer) -> Result:
    """Declare `count` queues at once: memory per queue."""
    result = Result("queues", {"queues": count})
    load = Load(target=target, queues=count)
    names = names_for(load)
    link = open_link(target)
    link.open_channel(CHANNEL)
    empty = settled_memory(observer)
    begin_s = time.monotonic()
    try:
        declare(link, load, names)
        result.figures["declared_per_s"] = count / (time.monotonic() - begin_s)
        if observer.broker_pids:
            result.figures["memory_bytes_per_queue"] = (settled_memory(observer) - empty) / count
    finally:
        delete(link, load, names)
        link.close()
    return result


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages to leave waiting in one queue."""

    count: int
    size: int
    is_persistent: bool


def measure_backlog(target: Target, backlog: Backlog, observer: Observer) -> Result:
    """Publish messages that nobody consumes, all confirmed: memory per message beside its body."""
    result = Result("backlog", {"messages": backlog.count, "size": backlog.size})
    load = Load(target=target, size=backlog.size, is_persistent=backlog.is_persistent)
    names = names_for(load)
    link = open_link(target)
    link.open_channel(CHANNEL)
    declare(link, load, names)
    content = Content(
        body=bytes(backlog.size), is_persistent=backlog.is_persistent, frame_size_max=link.frame_size_max
    )
    publication = Publication([("", names.queue(0))], content)
    empty = settled_memory(observer)
    begin = usage(observer.broker_pids)
    begin_s = time.monotonic()
    try:
        fill(link, publication, backlog.count)
        elapsed_s = time.monotonic() - begin_s
        result.figures["published_per_s"] = backlog.count / elapsed_s
        if observer.broker_pids:
            cpu_s = usage(observer.broker_pids).cpu_s - begin.cpu_s
            result.figures["broker_cpu_us_per_message"] = cpu_s / backlog.count * 1e6
            grown = settled_memory(observer) - empty
            result.figures["memory_beside_body_bytes_per_message"] = grown / backlog.count - backlog.size
    finally:
        delete(link, load, names)
        link.close()
    return result


def fill(link: Link, publication: Publication, count: int) -> None:
    """Publish `count` messages on channel 1 and wait until all are confirmed."""
    link.call(CHANNEL, ConfirmSelect(), ConfirmSelectOk)
    confirms = ConfirmCounter()
    sent = 0
    while confirms.settled < count:
        allowed = min(count - sent, CONFIRM_WINDOW - (sent - confirms.settled))
        if allowed > 0:
            octets = publication.take(sent, allowed)
            link.socket.sendall(octets)
            sent += len(octets) // publication.length
        if sent == count or sent - confirms.settled >= CONFIRM_WINDOW:
            confirms.feed(link.socket.recv(RECEIVE_BYTES))


def settled_memory(observer: Observer) -> int:
    """The broker's resident memory once it has stopped changing; 0 when its process is not known."""
    if not observer.broker_pids:
        return 0
    now = usage(observer.broker_pids).resident_bytes
    give_up_s = time.monotonic() + SETTLE_S_MAX
    while time.monotonic() < give_up_s:
        time.sleep(SETTLE_S)
        before, now = now, usage(observer.broker_pids).resident_bytes
        if abs(now - before) <= before // 500:
            break
    return now


def _consume(link: Link) -> None:
    queue = link.call(CHANNEL, QueueDeclare(exclusive=True), QueueDeclareOk).queue
    link.call(CHANNEL, BasicConsume(queue=queue, consumer_tag="c", no_ack=True), BasicConsumeOk)


def _measure_rate(
    name: str,
    member: Callable[[Seat], Callable[[], Histogram]],
    processes: int,
    run: tuple[float, str, Observer],
) -> Result:
    """Let `processes` do one thing again and again: how often per second, how long each takes."""
    duration_s, unit, observer = run
    crew = Crew([member] * processes, observer)
    try:
        crew.start(0)
        start = crew.moment()
        crew.watch(duration_s)
        end = crew.moment()
        latencies = Histogram()
        for histogram in crew.stop():
            latencies.merge(histogram)
    finally:
        crew.end()
    done = end.totals.published - start.totals.published
    result = Result(name, {"processes": processes})
    result.figures[f"{unit}s_per_s"] = done / (end.at_s - start.at_s)
    result.add_costs(start, end, done, unit=unit)
    result.add_percentiles(unit, latencies)
    return result


def _churn(target: Target, seat: Seat) -> Callable[[], Histogram]:
    def run() -> Histogram:
        histogram = Histogram()
        while seat.board.phase is Phase.RUNNING:
            begin_ns = time.monotonic_ns()
            link = open_link(target)
            link.open_channel(CHANNEL)
            link.close()
            histogram.record(time.monotonic_ns() - begin_ns)
            seat.post(Totals(len(histogram), 0, 0, 0))
        return histogram

    return run


def _declare(target: Target, durable: bool, seat: Seat) -> Callable[[], Histogram]:
    link = open_link(target)
    link.open_channel(CHANNEL)
    prefix = f"p{os.getpid():x}.{time.time_ns():x}."

    def run() -> Histogram:
        histogram = Histogram()
        while seat.board.phase is Phase.RUNNING:
            begin_ns = time.monotonic_ns()
            declared = QueueDeclare(queue=f"{prefix}{len(histogram)}", durable=durable)
            link.call(CHANNEL, declared, QueueDeclareOk)
            histogram.record(time.monotonic_ns() - begin_ns)
            seat.post(Totals(len(histogram), 0, 0, 0))
        deleted: list[Method] = [QueueDelete(queue=f"{prefix}{i}") for i in range(len(histogram))]
        link.call_many(CHANNEL, deleted, QueueDeleteOk)
        link.close()
        return histogram

    return run
