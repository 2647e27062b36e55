"""Metrics of streams, leases and staged rows."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.stream_client import RawStreamClient

from warren.wire.streams import commands
from warren.wire.streams.codes import ResponseCode

STREAM = {"durable": True, "arguments": {"x-queue-type": "stream"}}
# The metrics of RabbitMQ 3.10.8 with clients of the stream protocol.
ERRORS = {
    "vhost_access_failure", "publisher_does_not_exist", "sasl_error", "precondition_failed",
    "subscription_id_does_not_exist", "unknown_frame", "authentication_failure", "stream_does_not_exist",
    "stream_already_exists", "access_refused", "subscription_id_already_exists", "sasl_challenge",
    "sasl_mechanism_not_supported", "stream_not_available", "frame_too_large", "internal_error",
    "sasl_authentication_failure_loopback",
}  # fmt: skip


@pytest.fixture
def node() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


def metrics(node: BrokerProcess, path: str = "/metrics") -> dict[str, float]:
    text = get(node, path, "http/prometheus")[1].decode()
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len({name for name, _ in lines}), "a line is duplicated"
    return {name: float(value) for name, value in lines}


def test_clients_of_the_stream_protocol_are_counted_with_the_names_of_rabbitmq(node: BrokerProcess) -> None:
    client = HttpClient(node)
    client.ask("PUT /queues/%2F/s", STREAM)
    raw = RawStreamClient(node.ports["stream"])
    raw.ask(commands.DeclarePublisher(1, "", "s"))
    raw.publish(*range(25))
    raw.confirmed(25)
    raw.subscribe(1, "s")
    raw.hear()
    found = metrics(node)
    by_protocol = {
        name.partition("{")[0].removeprefix("rabbitmq_global_"): value
        for name, value in found.items()
        if 'protocol="stream"' in name
    }
    assert by_protocol.items() >= {
        "messages_received_total": 25, "messages_received_confirm_total": 25, "messages_confirmed_total": 25,
        "messages_routed_total": 0, "messages_unroutable_returned_total": 0,
        "messages_unroutable_dropped_total": 0, "publishers": 1, "consumers": 1,
        "messages_delivered_total": 25, "messages_redelivered_total": 0, "messages_acknowledged_total": 0,
    }.items()  # fmt: skip
    of_streams = (
        'rabbitmq_global_messages_delivered_total{protocol="stream",queue_type="rabbit_stream_queue"}'
    )
    assert found[of_streams] == 25
    assert found['rabbitmq_global_consumers{protocol="amqp091"}'] == 0
    assert (found["rabbitmq_connections"], found["rabbitmq_consumers"]) == (1, 1)
    assert found["rabbitmq_connection_incoming_bytes_total"] > 25 * 5
    raw.close()
    while (found := metrics(node))["rabbitmq_connections"]:
        pass
    assert found['rabbitmq_global_messages_received_total{protocol="stream"}'] == 25
    assert (found["rabbitmq_connections_opened_total"], found["rabbitmq_connections_closed_total"]) == (1, 1)


def test_refused_requests_are_counted_by_response_code(node: BrokerProcess) -> None:
    prefix = "rabbitmq_global_stream_error_"
    counted = {name for name in metrics(node) if name.startswith(prefix)}
    assert counted == {f'{prefix}{name}_total{{protocol="stream"}}' for name in ERRORS}
    raw = RawStreamClient(node.ports["stream"])
    raw.ask(commands.DeclarePublisher(1, "", "nosuch"))
    raw.ask(commands.QueryOffset("reader", "nosuch"))
    raw.ask(commands.Unsubscribe(9))
    raw.publish(1, 2)
    raw.hear()
    raw.ask(commands.Create("s", {}))
    raw.ask(commands.Create("s", {}))
    raw.close()
    with pytest.raises(ConnectionError):
        RawStreamClient(node.ports["stream"], user="nobody")
    found = metrics(node)
    failures = {name: found[f'{prefix}{name}_total{{protocol="stream"}}'] for name in sorted(ERRORS)}
    assert {name: count for name, count in failures.items() if count} == {
        ResponseCode.STREAM_DOES_NOT_EXIST.name.lower(): 2,
        ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST.name.lower(): 1,
        ResponseCode.PUBLISHER_DOES_NOT_EXIST.name.lower(): 2,
        ResponseCode.STREAM_ALREADY_EXISTS.name.lower(): 1,
        ResponseCode.AUTHENTICATION_FAILURE.name.lower(): 1,
    }


def test_the_lag_of_consumers_is_reported_for_each_stream(node: BrokerProcess) -> None:
    client = HttpClient(node)
    for name in ("s", "unread"):
        client.ask(f"PUT /queues/%2F/{name}", STREAM)
    raw = RawStreamClient(node.ports["stream"])
    raw.subscribe(1, "s", credit=0)
    raw.ask(commands.DeclarePublisher(1, "", "s"))
    raw.publish(*range(7))
    raw.confirmed(7)
    lag = "stream_consumer_max_offset_lag"
    about = '{vhost="/",queue="s"}'
    detailed = metrics(node, "/metrics/detailed?family=stream_consumer_metrics")
    assert {name: value for name, value in detailed.items() if lag in name} == {
        f"rabbitmq_detailed_{lag}{about}": 7
    }
    assert metrics(node, "/metrics/per-object")[f"rabbitmq_{lag}{about}"] == 7
    assert not any(lag in name for name in metrics(node))
    raw.close()


def test_streams_leases_and_stages_are_counted_per_vhost(node: BrokerProcess) -> None:
    client = HttpClient(node)
    client.ask("PUT /queues/%2F/s", STREAM)
    client.ask("PUT /queues/%2F/q", {"durable": True})
    message = {"routing_key": "q", "payload": "m", "payload_encoding": "string", "properties": {}}
    for _ in range(5):
        client.ask("POST /exchanges/%2F/amq.default/publish", message)
    granted: list[Any] = [
        client.ask("POST /warren/queues/%2F/q/leases", {"key": key, "messages": 2}).value for key in "ab"
    ]
    client.ask(f"POST /warren/leases/{granted[0]['lease']}/settle", {})
    found = metrics(node)
    own = {name: value for name, value in found.items() if name.startswith(("warren_l", "warren_s"))}
    size = own.pop('warren_stream_bytes{vhost="/"}')
    assert size > 0
    assert own.pop('warren_stream_octets{vhost="/"}') == size
    assert own == {
        'warren_streams{vhost="/"}': 1,
        'warren_leases{vhost="/"}': 1,
        'warren_leased_messages{vhost="/"}': 2,
        'warren_leases_granted_total{vhost="/"}': 2,
        'warren_leases_ended_total{vhost="/",outcome="settled"}': 1,
        'warren_leases_ended_total{vhost="/",outcome="requeued"}': 0,
        'warren_leases_ended_total{vhost="/",outcome="expired"}': 0,
        "warren_staged_stages": 0,
        "warren_staged_bytes": 0,
        "warren_staged_octets": 0,
    }


def test_renamed_metrics_have_equal_values_under_both_names(node: BrokerProcess) -> None:
    found = metrics(node)
    for old, new in (
        ("warren_stream_octets", "warren_stream_bytes"),
        ("warren_staged_octets", "warren_staged_bytes"),
        ("warren_quarantined_octets", "warren_quarantined_bytes"),
        ("warren_vhost_losses", "warren_vhost_unacknowledged_losses"),
    ):
        was = {name.replace(old, new): value for name, value in found.items() if name.startswith(old)}
        assert was
        assert was == {name: value for name, value in found.items() if name.startswith(new)}
