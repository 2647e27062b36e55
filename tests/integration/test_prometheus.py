"""The Prometheus endpoints: RabbitMQ's names and labels, and correct values."""

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.federation import eventually

# Metrics that RabbitMQ's dashboards query, and that Warren has.
EXPECTED = {
    "rabbitmq_build_info", "rabbitmq_identity_info", "rabbitmq_connections", "rabbitmq_channels",
    "rabbitmq_consumers", "rabbitmq_queues", "rabbitmq_queue_messages_ready",
    "rabbitmq_queue_messages_unacked", "rabbitmq_queue_messages",
    "rabbitmq_resident_memory_limit_bytes", "rabbitmq_process_resident_memory_bytes",
    "rabbitmq_disk_space_available_bytes", "rabbitmq_disk_space_available_limit_bytes",
    "rabbitmq_process_max_fds", "rabbitmq_process_open_fds", "rabbitmq_process_max_tcp_sockets",
    "rabbitmq_process_open_tcp_sockets", "rabbitmq_channels_opened_total",
    "rabbitmq_channels_closed_total", "rabbitmq_connections_opened_total",
    "rabbitmq_connections_closed_total", "rabbitmq_queues_declared_total",
    "rabbitmq_queues_created_total", "rabbitmq_queues_deleted_total",
    "rabbitmq_global_messages_received_total", "rabbitmq_global_messages_confirmed_total",
    "rabbitmq_global_messages_routed_total", "rabbitmq_global_messages_unroutable_dropped_total",
    "rabbitmq_global_messages_unroutable_returned_total",
    "rabbitmq_global_messages_delivered_total", "rabbitmq_global_messages_redelivered_total",
    "rabbitmq_global_messages_acknowledged_total",
    "rabbitmq_global_messages_delivered_consume_auto_ack_total",
    "rabbitmq_global_messages_delivered_consume_manual_ack_total",
    "rabbitmq_global_messages_delivered_get_auto_ack_total",
    "rabbitmq_global_messages_delivered_get_manual_ack_total",
    "rabbitmq_global_messages_get_empty_total", "rabbitmq_global_publishers",
    "rabbitmq_global_consumers", "rabbitmq_channel_messages_published_total",
    "rabbitmq_channel_messages_acked_total", "rabbitmq_queue_messages_published_total",
    "rabbitmq_queue_messages_ready_bytes", "rabbitmq_connection_incoming_bytes_total",
    "rabbitmq_auth_attempts_total", "rabbitmq_alarms_memory_used_watermark",
    "process_start_time_seconds", "rabbitmq_queue_consumer_utilisation", "rabbitmq_queue_consumer_capacity",
    "rabbitmq_connection_pending_packets", "rabbitmq_erlang_processes_used", "rabbitmq_erlang_uptime_seconds",
    "rabbitmq_erlang_gc_runs_total", "rabbitmq_erlang_scheduler_context_switches_total",
}  # fmt: skip
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[0-9.e+-]+|NaN)')
HEAD = re.compile(r"# (TYPE [a-z_]+ (?:gauge|counter|untyped|summary)|HELP [a-z_]+ .+)")
# The parts of a summary belong to one family.
SUMMARY = re.compile("(?<=bytes|conds)_(?:sum|count)$")
HOSTILE = 'a"b\\c{d}\u202e'


@pytest.fixture(scope="module", autouse=True)
def channel(node: BrokerProcess) -> Iterator[Any]:
    """A channel after twelve messages were published, some unroutable, some consumed."""
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("work", durable=True, arguments={"x-dead-letter-exchange": "amq.fanout"})
        channel.queue_declare("other")
        for _ in range(9):
            channel.basic_publish("", "work", b"12345678", pika.BasicProperties(delivery_mode=2))
        for _ in range(3):
            channel.basic_publish("", "nowhere", b"x")
        method, _, _ = channel.basic_get("work")
        channel.basic_reject(method.delivery_tag, requeue=False)
        method, _, _ = channel.basic_get("work")
        channel.basic_ack(method.delivery_tag)
        channel.basic_get("work", auto_ack=True)
        channel.basic_get("work")
        channel.basic_get("other")
        yield channel


def scraped(node: BrokerProcess, path: str = "/metrics") -> dict[str, dict[str, float]]:
    """Name -> labels -> value; every line must be valid, and families contiguous."""
    status, body = get(node, path, "http/prometheus")
    assert status == 200
    found: dict[str, dict[str, float]] = {}
    last = ""
    families: set[str] = set()
    for line in body.decode().splitlines():
        if line.startswith("#"):
            assert HEAD.fullmatch(line), line
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match[1], match[2] or "", float(match[3])
        family = SUMMARY.sub("", name)
        assert family == last or family not in families, f"{name} is not contiguous"
        families.add(family)
        last = family
        assert labels not in found.setdefault(name, {}), line
        found[name][labels] = value
    return found


def total(found: dict[str, dict[str, float]], name: str) -> float:
    return sum(found[f"rabbitmq_{name}"].values())


def test_metrics_of_the_dashboards_exist(node: BrokerProcess) -> None:
    assert scraped(node).keys() >= EXPECTED


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object"])
def test_the_values_equal_the_operations(node: BrokerProcess, path: str) -> None:
    found = scraped(node, path)
    expected = {
        "connections": 1, "channels": 1, "queues": 2, "queue_messages_ready": 5, "queue_messages_unacked": 1,
        "queue_messages": 6, "queue_messages_ready_bytes": 40, "queue_messages_persistent": 6,
        "queue_messages_published_total": 9, "channel_messages_published_total": 12,
        "channel_messages_confirmed_total": 12, "global_messages_received_confirm_total": 12,
        "channel_messages_unroutable_dropped_total": 3,
        "channel_get_ack_total": 3, "channel_get_total": 1, "channel_get_empty_total": 1,
        "global_messages_received_total": 12, "global_messages_routed_total": 9,
        "global_messages_delivered_total": 4, "global_messages_acknowledged_total": 1,
        "global_messages_dead_lettered_rejected_total": 1, "global_publishers": 1, "queues_created_total": 2,
    }  # fmt: skip
    assert {name: total(found, name) for name in expected} == expected


def test_objects_are_distinguished_by_labels(node: BrokerProcess) -> None:
    found = scraped(node, "/metrics/per-object")
    assert found["rabbitmq_queue_messages_ready"] == {
        'vhost="/",queue="work"': 5,
        'vhost="/",queue="other"': 0,
    }
    assert set(scraped(node)["rabbitmq_queue_messages_ready"]) == {""}


def test_the_detailed_endpoint_has_the_requested_families_only(node: BrokerProcess, channel: Any) -> None:
    found = scraped(node, "/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count")
    assert {name for name in found if name.startswith("rabbitmq_")} == {
        "rabbitmq_detailed_queue_messages_ready",
        "rabbitmq_detailed_queue_messages_unacked",
        "rabbitmq_detailed_queue_messages",
        "rabbitmq_detailed_queue_consumers",
        # These two are in every answer, as in RabbitMQ.
        "rabbitmq_build_info",
        "rabbitmq_identity_info",
    }
    path = "/metrics/detailed?family=queue_coarse_metrics&vhost=none"
    assert scraped(node, path).get("rabbitmq_detailed_queue_messages") is None
    assert not [name for name in scraped(node, "/metrics/detailed") if name.startswith("rabbitmq_detailed")]


def test_the_age_of_the_next_message_is_per_queue_and_not_summed(node: BrokerProcess, channel: Any) -> None:
    channel.queue_declare("dated")
    channel.basic_publish("", "dated", b"", pika.BasicProperties(timestamp=77))
    heads = scraped(node, "/metrics/per-object")["rabbitmq_queue_head_message_timestamp"]
    assert heads['vhost="/",queue="dated"'] == 77
    assert math.isnan(heads['vhost="/",queue="work"'])
    assert "rabbitmq_queue_head_message_timestamp" not in scraped(node)
    assert (
        b"# TYPE rabbitmq_queue_head_message_timestamp gauge\n" in get(node, "/metrics", "http/prometheus")[1]
    )
    channel.queue_delete("dated")


def test_the_detailed_endpoint_lists_the_queues_that_match_an_expression(node: BrokerProcess) -> None:
    path = "/metrics/detailed?family=queue_coarse_metrics&family=vhost_status&queue="

    def listed(pattern: str) -> set[str]:
        return set(scraped(node, path + pattern).get("rabbitmq_detailed_queue_messages", ()))

    assert listed("^wo") == {'vhost="/",queue="work"'}
    assert listed("o%5Btr%5D") >= {'vhost="/",queue="work"', 'vhost="/",queue="other"'}
    assert listed("WORK") == set()
    assert listed("") == listed(".")
    assert "rabbitmq_cluster_vhost_status" in scraped(node, path + "none")
    for refused, text in (
        ("(", b"queue: '(' is not a regular expression"),
        ("a&queue=b", b"only one query parameter 'queue' is allowed"),
    ):
        status, body = get(node, path + refused, "http/prometheus")[:2]
        assert (status, text in body) == (400, True)


def test_what_is_ready_is_told_by_priority_and_by_age(node: BrokerProcess, channel: Any) -> None:
    channel.queue_declare("ranked", arguments={"x-max-priority": 5})
    for priority in (0, 5, 5):
        channel.basic_publish("", "ranked", b"", pika.BasicProperties(priority=priority))
    found = scraped(node, "/metrics/detailed?family=queue_metrics")
    by_priority = found["rabbitmq_detailed_queue_messages_ready_by_priority"]
    assert by_priority == {
        'vhost="/",queue="ranked",priority="0"': 1,
        'vhost="/",queue="ranked",priority="5"': 2,
    }
    ages = found["rabbitmq_detailed_queue_oldest_ready_message_age_seconds"]
    assert ages['vhost="/",queue="ranked"'] >= 0
    channel.queue_purge("ranked")
    assert (
        scraped(node, "/metrics/per-object")["rabbitmq_queue_oldest_ready_message_age_seconds"][
            'vhost="/",queue="ranked"'
        ]
        == 0
    )
    channel.queue_delete("ranked")


def test_the_age_of_the_oldest_unacknowledged_delivery_is_told(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    about = 'vhost="/",queue="held"'

    def age() -> float:
        found = scraped(node, "/metrics/detailed?family=queue_metrics")
        return found["rabbitmq_detailed_queue_oldest_unacknowledged_message_age_seconds"][about]

    channel.queue_declare("held")
    channel.basic_publish("", "held", b"")
    assert age() == 0
    assert "oldest_unacknowledged_at" not in client.get("/queues/%2F/held")
    tag = channel.basic_get("held")[0].delivery_tag
    eventually(lambda: age() > 0)
    first = client.get("/queues/%2F/held")["oldest_unacknowledged_at"]
    assert first <= time.time() * 1_000
    channel.basic_publish("", "held", b"")
    second = channel.basic_get("held")[0].delivery_tag
    assert client.get("/queues/%2F/held")["oldest_unacknowledged_at"] == first
    channel.basic_ack(tag)
    channel.basic_ack(second)
    eventually(lambda: age() == 0)
    channel.queue_delete("held")


def test_metrics_common_to_all_nodes_are_in_the_detailed_endpoint(node: BrokerProcess, channel: Any) -> None:
    channel.exchange_declare("bound", "topic")
    channel.queue_bind("work", "bound", "a.#")
    channel.queue_bind("work", "bound", "b.#")
    path = "/metrics/detailed?family=vhost_status&family=exchange_bindings&family=exchange_names"
    found = scraped(node, path)
    assert found["rabbitmq_cluster_vhost_status"] == {'vhost="/"': 1}
    about = 'vhost="/",exchange="bound",type="topic"'
    assert found["rabbitmq_cluster_exchange_bindings"][about] == 2
    assert found["rabbitmq_cluster_exchange_name"][about] == 1
    assert 'vhost="/",exchange="",type="direct"' not in found["rabbitmq_cluster_exchange_name"]
    assert not [name for name in scraped(node, path + "&vhost=none") if name.startswith("rabbitmq_cluster_")]
    channel.exchange_delete("bound")


def test_message_reads_and_writes_are_reported_as_totals(node: BrokerProcess) -> None:
    found = scraped(node)
    assert found["rabbitmq_queue_disk_writes_total"] == found["rabbitmq_msg_store_write_total"]
    assert found["rabbitmq_queue_disk_writes_total"][""] > 0
    assert found["rabbitmq_queue_disk_reads_total"] == found["rabbitmq_msg_store_read_total"]
    assert "rabbitmq_queue_disk_writes_total" not in scraped(node, "/metrics/per-object")


def test_a_scrape_reports_earlier_scrapes(node: BrokerProcess) -> None:
    get(node, "/metrics", "http/prometheus")
    first, second = scraped(node), scraped(node)
    for found in (first, second):
        assert {name for name in found if name.startswith("telemetry")} == {
            f"telemetry_scrape_{what}_{part}"
            for what in ("size_bytes", "duration_seconds", "encoded_size_bytes")
            for part in ("sum", "count")
        }
    about = 'registry="default",content_type="text/plain; version=0.0.4; charset=utf-8"'
    for name in ("size_bytes_count", "duration_seconds_count"):
        assert second[f"telemetry_scrape_{name}"][about] == first[f"telemetry_scrape_{name}"][about] + 1
    sizes = [found["telemetry_scrape_size_bytes_sum"][about] for found in (first, second)]
    assert 5_000 < sizes[1] - sizes[0] < 100_000


def test_the_utilisation_of_waiting_consumers_is_one(node: BrokerProcess, channel: Any) -> None:
    channel.queue_declare("waited-for")
    channel.basic_consume("waited-for", lambda *_: None)
    found = scraped(node, "/metrics/per-object")
    for name in ("rabbitmq_queue_consumer_utilisation", "rabbitmq_queue_consumer_capacity"):
        assert found[name]['vhost="/",queue="waited-for"'] == 1
        assert found[name]['vhost="/",queue="work"'] == 0
    channel.queue_delete("waited-for")


def test_a_name_cannot_break_a_line(node: BrokerProcess, channel: Any) -> None:
    channel.queue_declare(HOSTILE)
    found = scraped(node, "/metrics/per-object")["rabbitmq_queue_messages_ready"]
    assert 'vhost="/",queue="a\\"b\\\\c{d}\u202e"' in found
    channel.queue_delete(HOSTILE)


def test_very_many_queues_are_reported_completely(tmp_path: Path) -> None:
    count = 2_000
    with (
        broker("--data-dir", str(tmp_path)) as node,
        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection,
    ):
        channel = connection.channel()
        for number in range(count):
            channel.queue_declare(f"q{number}")
        assert scraped(node)["rabbitmq_queues"][""] == count
        assert len(scraped(node, "/metrics/per-object")["rabbitmq_queue_messages_ready_bytes"]) == count


def test_dead_letters_are_counted_separately_when_unroutable(node: BrokerProcess, channel: Any) -> None:
    full = {"x-max-length": 0}
    channel.queue_declare("lost", arguments=full)
    channel.queue_declare("astray", arguments={**full, "x-dead-letter-exchange": "nosuch"})
    channel.queue_declare("routed", arguments={**full, "x-dead-letter-exchange": "amq.fanout"})
    for name in ("lost", "astray", "routed"):
        channel.basic_publish("", name, b"")
    assert dead_lettered(node, "maxlen") == {
        'queue_type="rabbit_classic_queue",dead_letter_strategy="at_most_once"': 1,
        'queue_type="rabbit_classic_queue",dead_letter_strategy="disabled"': 2,
    }


def test_dead_letters_of_quorum_queues_are_counted_by_their_type_strategy_and_reason(
    node: BrokerProcess, channel: Any
) -> None:
    quorum = {"x-queue-type": "quorum", "x-delivery-limit": 0}
    dead = {**quorum, "x-dead-letter-exchange": "amq.fanout"}
    kept = {**dead, "x-overflow": "reject-publish", "x-dead-letter-strategy": "at-least-once"}
    reasons = ("rejected", "expired", "delivery_limit")
    # Other tests have dead letters of classic queues.
    before = {reason: dead_lettered(node, reason) for reason in reasons}
    channel.confirm_delivery()
    for name, arguments in (("disabled", quorum), ("at_most_once", dead), ("at_least_once", kept)):
        channel.queue_declare(name, durable=True, arguments=arguments)
        for is_requeued in (False, True):
            channel.basic_publish("", name, b"")
            method, _, _ = channel.basic_get(name)
            channel.basic_nack(method.delivery_tag, requeue=is_requeued)
        channel.basic_publish("", name, b"", pika.BasicProperties(expiration="0"))
        # What has expired is dropped before the answer.
        assert channel.basic_get(name) == (None, None, None)
    kind = 'queue_type="rabbit_quorum_queue"'
    each = [f'{kind},dead_letter_strategy="{one}"' for one in ("disabled", "at_most_once", "at_least_once")]
    # Without a dead-letter exchange, what has exceeded its delivery limit is in quarantine.
    expected = {"rejected": each, "expired": each, "delivery_limit": each[1:]}
    for reason in reasons:
        assert dead_lettered(node, reason) - before[reason] == Counter(expected[reason]), reason


def dead_lettered(node: BrokerProcess, reason: str) -> Counter[str]:
    """The counts of dead letters for `reason` that are not 0, by their labels."""
    counts = scraped(node)[f"rabbitmq_global_messages_dead_lettered_{reason}_total"]
    return Counter({about: int(count) for about, count in counts.items() if count})
