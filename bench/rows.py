"""The rows of the comparison: what is measured, and the target of Warren."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement of traffic, made with every broker."""

    name: str
    text: str
    load: dict[str, Any]  # fields of a Load
    figure: str = "broker_cpu_us_per_message"  # the figure that is compared
    reach: float = 0  # Warren's target on the reference machine; 0: none


FIFTY_IN_STEP = {"producers": 50, "consumers": 50, "queues": 50, "confirm_window": 1}
# Persistent rows use acknowledgements: messages delivered at once to a consumer with automatic
# acknowledgement are written to the disk by neither broker.
IN_HUNDREDS = {"is_persistent": True, "ack_every": 100, "prefetch": 1000}
CONFIRMED = IN_HUNDREDS | {"confirm_window": 1000}
TWENTY = {"size": 1024, "producers": 20, "consumers": 20, "queues": 20, "confirm_window": 100}
QUORUM = {"queue_type": "quorum"}

ROWS = [
    Row(name="a16", text="16 B transient, automatic acks", load={}, reach=0.4),
    Row(name="a1k", text="1 KiB transient, automatic acks", load={"size": 1024}, reach=0.8),
    Row(name="sync50", text="50 connections, confirm window 1", load=FIFTY_IN_STEP, reach=11),
    Row(name="writes", text="16 B, one message per system call", load={"messages_per_write": 1}, reach=2.0),
    Row(
        name="fanout10",
        text="16 B to 10 queues, per delivery",
        load={"exchange_type": "fanout", "queues": 10, "consumers": 10},
        reach=0.27,
    ),
    Row(
        name="topic1000",
        text="16 B, topic, 1000 bindings",
        load={"exchange_type": "topic", "bindings": 1000},
        reach=0.45,
    ),
    Row(
        name="latency",
        text="5000/s, 16 B transient",
        load={"rate": 5000},
        figure="delivery_p50_us",
        reach=30,
    ),
    Row(
        name="b16",
        text="16 B persistent, confirms, acks in hundreds",
        load=CONFIRMED,
        reach=1.1,
    ),
    Row(
        name="b1k",
        text="1 KiB persistent, confirms, acks in hundreds",
        load=CONFIRMED | {"size": 1024},
        reach=2.0,
    ),
    Row(
        name="20x20",
        text="20 producers, 20 queues, 1 KiB persistent, window 100",
        load=CONFIRMED | TWENTY,
        reach=2.0,
    ),
    Row(
        name="sync50p",
        text="50 connections, confirm window 1, persistent, each acked",
        load=FIFTY_IN_STEP | {"is_persistent": True, "ack_every": 1},
        reach=22,
    ),
    Row(
        name="latencyp",
        text="5000/s, 1 KiB persistent, to its confirm",
        load=IN_HUNDREDS | {"rate": 5000, "size": 1024, "confirm_window": 1},
        figure="confirm_p50_us",
        reach=250,
    ),
]
# The loads of b16, b1k, 20x20 and sync50p, in quorum queues of one member.
QUORUM_ROWS = [
    Row(
        name="q16",
        text="quorum queue: 16 B, confirms, acks in hundreds",
        load=CONFIRMED | QUORUM,
    ),
    Row(
        name="q1k",
        text="quorum queue: 1 KiB, confirms, acks in hundreds",
        load=CONFIRMED | QUORUM | {"size": 1024},
    ),
    Row(
        name="q20x20",
        text="20 producers, 20 quorum queues, 1 KiB, window 100",
        load=CONFIRMED | QUORUM | TWENTY,
    ),
    Row(
        name="qsync50",
        text="50 connections, 50 quorum queues, confirm window 1, each acked",
        load=FIFTY_IN_STEP | QUORUM | {"is_persistent": True, "ack_every": 1},
    ),
]
# Most brokers carry so few messages that each comes alone and pays for whole turns of the event loop.
EACH_ACKED = {"is_persistent": True, "size": 1024, "ack_every": 1, "prefetch": 1000, "confirm_window": 100}
RATE_ROWS = [
    Row(name="rate1000", text="1000/s, 16 B transient, automatic acks", load={"rate": 1000}),
    Row(name="rate5000", text="5000/s, 16 B transient, automatic acks", load={"rate": 5000}),
    Row(
        name="rate1000p",
        text="1000/s, 1 KiB persistent, confirmed, each acked",
        load=EACH_ACKED | {"rate": 1000},
    ),
    Row(
        name="rate5000p",
        text="5000/s, 1 KiB persistent, confirmed, each acked",
        load=EACH_ACKED | {"rate": 5000},
    ),
    Row(
        name="qrate1000",
        text="quorum queue: 1000/s, 1 KiB, confirmed, each acked",
        load=EACH_ACKED | QUORUM | {"rate": 1000},
    ),
    Row(
        name="srate1000",
        text="stream: 1000/s, 1 KiB, confirmed, each acked",
        load=EACH_ACKED | {"queue_type": "stream", "rate": 1000},
    ),
]
ALL_ROWS = ROWS + QUORUM_ROWS + RATE_ROWS
LATENCY_ROWS = ("latency", "latencyp")
AT_A_RATE = (*LATENCY_ROWS, *(row.name for row in RATE_ROWS))
