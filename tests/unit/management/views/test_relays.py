"""Shovels and federation links as JSON and as metrics: RabbitMQ's fields, and reasons beside them."""

import asyncio
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from warren.management.api import federation, shovels
from warren.management.auth import ADMINISTRATOR, MONITORING
from warren.management.managed_node import ManagedNode
from warren.management.operation import OPERATION, operation_of
from warren.management.prometheus import relay_rows
from warren.management.prometheus.rows import Scrape
from warren.management.relay_view import RelayView
from warren.management.replies import RequestRefused
from warren.management.views.relays import (
    federation_link_view,
    federation_links,
    link_id,
    shovel_view,
)
from warren.management.views.stats import SampleRanges
from warren.metrics.time_series import SampleTimes, TimeSeries
from warren.relay.status import Hold, LinkCounters, LinkKey, LinkKind, LinkState, LinkStatus

NOW = 1_795_438_729_000
NODE = "warren@host"
RANGES = SampleRanges(time=NOW, now=NOW)
SHOVEL = LinkKey(LinkKind.SHOVEL, "/", "one")
EXCHANGE = LinkKey(LinkKind.EXCHANGE, "/", "fx", "a", "other")
QUEUE = LinkKey(LinkKind.QUEUE, "/", "fq", "b", "fq")
DEFINITIONS = {
    ("shovel", "one"): {
        "src-uri": "amqp://guest:secret@elsewhere/%2f",
        "src-queue": "s1",
        "dest-uri": "amqp://",
        "dest-exchange": "amq.topic",
        "dest-exchange-key": "k",
    },
    ("federation-upstream", "b"): {"uri": "amqp://u:secret@up", "consumer-tag": "tag"},
}


def status(key: LinkKey = SHOVEL, state: LinkState = LinkState.RUNNING, **more: Any) -> LinkStatus:
    facts: dict[str, Any] = {
        "since": NOW, "reason": "", "last_error": "", "last_error_code": 0, "last_error_at": 0,
        "next_attempt_at": 0, "connected_at": NOW, "source_uri": "amqp://elsewhere/%2f",
        "destination_uri": "amqp://", "counters": LinkCounters(forwarded=7, confirmed=5), "pending": 0,
        "unconfirmed": 2, "prefetch_count": 1000, "hold": Hold.NONE, "hold_since": 0, "hold_reason": "",
        "remaining": -1, "remaining_unacked": -1, "delivered_at": 0, "delivered_timestamp": 0,
        "source_ready": -1, "unconfirmed_since": NOW, "rate_max": None, "source_counted_at": 0,
    }  # fmt: skip
    return LinkStatus(key=key, state=state, **facts | more)


class Sampled(NamedTuple):
    """When the links were sampled last."""

    time: int


class Steered:
    """A node with `statuses`, that notes which links were restarted."""

    def __init__(self, *statuses: LinkStatus) -> None:
        self.restarted: list[LinkKey] = []
        self.by_key = {status.key: status for status in statuses}
        vhosts = {
            "/": SimpleNamespace(name="/", parameters=SimpleNamespace(by_key=DEFINITIONS)),
            "other": SimpleNamespace(name="other", parameters=SimpleNamespace(by_key={})),
        }
        self.histories: dict[LinkKey, TimeSeries] = {}
        relays = RelayView(
            history=self.histories.get,
            statuses=self.by_key.values,
            link_keys=self.by_key.keys,
            state=lambda key: self.by_key[key].state if key in self.by_key else None,
            status=self.by_key.get,
            restart=self.restart,
            static_shovels={"fixed": {"src-queue": "s", "dest-queue": "d", "src-protocol": "local"}},
        )
        permissions = SimpleNamespace(get=lambda user, vhost: (user, vhost))
        metadata = SimpleNamespace(
            vhosts=SimpleNamespace(by_name=vhosts), vhost=vhosts.get, permissions=permissions
        )
        self.node = cast(
            ManagedNode,
            SimpleNamespace(
                node_name=NODE,
                metadata=metadata,
                relays=relays,
                cluster=None,
                now=lambda: NOW,
                sampler=Sampled(NOW),
            ),
        )

    def restart(self, key: LinkKey, user: str) -> bool:
        if key not in self.by_key:
            return False
        self.restarted.append(key)
        return True


Handler = Callable[[web.Request, ManagedNode], Any]


def ask(handler: Handler, steered: Steered, method: str = "GET", query: str = "", **path: str) -> Any:
    """The decoded answer of `handler` to an administrator; the status if it has no body."""
    request = make_mocked_request(method, f"/api{query}", match_info=path)
    request["user"] = SimpleNamespace(name="guest", tags=(ADMINISTRATOR, MONITORING))
    request[OPERATION] = operation_of(handler)
    try:
        answer = asyncio.run(handler(request, steered.node))
    except RequestRefused as refused:
        return refused.response.status
    return msgspec.json.decode(answer.body) if answer.body else answer.status


def test_a_running_shovel_has_the_fields_of_rabbitmq_and_no_password() -> None:
    shown = shovel_view(Steered().node, status(), RANGES)
    assert list(shown)[:13] == [
        "node", "timestamp", "name", "vhost", "type", "state", "src_uri", "src_protocol", "dest_protocol",
        "dest_uri", "src_queue", "dest_exchange", "dest_exchange_key",
    ]  # fmt: skip
    assert (shown["type"], shown["state"]) == ("dynamic", "running")
    assert (shown["src_protocol"], shown["dest_protocol"]) == ("amqp091", "amqp091")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", str(shown["timestamp"]))
    assert (shown["remaining"], shown["remaining_unacked"]) == ("unlimited", "unlimited")
    assert (shown["forwarded"], shown["pending"], shown["blocked_status"]) == (7, 0, "running")
    assert "secret" not in str(shown)


def test_a_starting_shovel_shows_no_addresses() -> None:
    shown = shovel_view(
        Steered().node, status(state=LinkState.STARTING, source_uri="", destination_uri=""), RANGES
    )
    assert shown["state"] == "starting"
    assert not {"src_uri", "dest_uri", "reason", "remaining"} & set(shown)


def test_a_shovel_with_an_alarm_at_its_destination_is_blocked_and_says_why() -> None:
    held = status(hold=Hold.ALARM, hold_since=NOW - 5, remaining=3, remaining_unacked=2)
    shown = shovel_view(Steered(held).node, held, RANGES)
    assert (shown["state"], shown["blocked_status"]) == ("running", "blocked")
    assert shown["why"]
    assert shown["why_since"] == NOW - 5
    assert (shown["remaining"], shown["remaining_unacked"]) == (3, 2)


@pytest.mark.parametrize("state", [LinkState.TERMINATED, LinkState.STOPPED])
def test_a_terminated_shovel_has_a_reason(state: LinkState) -> None:
    shown = shovel_view(Steered().node, status(state=state, reason="", last_error="login refused"), RANGES)
    assert (shown["state"], shown["reason"]) == ("terminated", "login refused")


def test_a_static_shovel_has_no_virtual_host_and_the_definition_of_the_configuration() -> None:
    shown = shovel_view(Steered().node, status(LinkKey(LinkKind.SHOVEL, "", "fixed")), RANGES)
    assert "vhost" not in shown
    assert (shown["type"], shown["src_queue"], shown["src_protocol"]) == ("static", "s", "local")


def test_the_lag_is_shown_where_it_is_known() -> None:
    node = Steered().node
    unknown = shovel_view(node, status(), RANGES)
    assert (unknown["lag_messages"], unknown["lag_seconds"]) == (None, None)
    known = status(source_ready=12, delivered_at=NOW, delivered_timestamp=NOW - 2500)
    shown = shovel_view(node, known, RANGES)
    assert (shown["lag_messages"], shown["lag_seconds"]) == (12, 2.5)


def test_a_federation_link_of_an_exchange_has_the_fields_of_rabbitmq() -> None:
    shown = federation_link_view(Steered().node, status(EXCHANGE), RANGES)
    assert list(shown)[:10] == [
        "node", "exchange", "upstream_exchange", "type", "vhost", "upstream", "id", "status", "uri",
        "timestamp",
    ]  # fmt: skip
    assert (shown["exchange"], shown["upstream_exchange"], shown["type"]) == ("fx", "other", "exchange")
    assert re.fullmatch("[0-9a-f]{8}", str(shown["id"]))


def test_a_federation_link_of_a_queue_has_the_consumer_tag_of_its_upstream() -> None:
    assert federation_link_view(Steered().node, status(QUEUE), RANGES)["consumer_tag"] == "tag"
    other = LinkKey(LinkKind.QUEUE, "/", "fq", "a", "fq")
    assert federation_link_view(Steered().node, status(other), RANGES)["consumer_tag"] == "federation-link-a"


@pytest.mark.parametrize(
    ("state", "shown"),
    [("starting", "starting"), ("running", "running"), ("terminated", "error"), ("stopped", "shutdown")],
)
def test_states_of_federation_links_are_those_of_rabbitmq(state: str, shown: str) -> None:
    view = federation_link_view(Steered().node, status(EXCHANGE, LinkState(state), reason="refused"), RANGES)
    assert view["status"] == shown
    assert view.get("error") == ("refused" if shown == "error" else None)


def test_shovels_are_sorted_by_virtual_host_and_name_and_static_ones_come_first() -> None:
    keys = [("other", "a"), ("/", "z"), ("/", "b"), ("", "fixed")]
    steered = Steered(*(status(LinkKey(LinkKind.SHOVEL, vhost, name)) for vhost, name in keys))
    names = [row["name"] for row in ask(shovels.all_shovels, steered)]
    assert names == ["fixed", "b", "z", "a"]
    assert [row["name"] for row in ask(shovels.of_vhost, steered, vhost="other")] == ["a"]
    columns = ask(shovels.all_shovels, steered, query="?columns=name,state&sort=name&sort_reverse=true")
    assert columns[0] == {"name": "z", "state": "running"}


def test_one_shovel_is_shown_and_an_unknown_one_is_not_found() -> None:
    steered = Steered(status())
    assert ask(shovels.shovel, steered, vhost="/", name="one")["name"] == "one"
    assert ask(shovels.shovel, steered, vhost="/", name="two") == 404
    assert ask(shovels.shovel, steered, vhost="nosuch", name="one") == 404
    assert ask(shovels.delete_shovel, steered, "DELETE", vhost="/", name="two") == 404


def test_a_restart_begins_the_named_shovel_anew() -> None:
    steered = Steered(status())
    assert ask(shovels.restart, steered, "DELETE", vhost="/", name="one") == 204
    assert ask(shovels.restart, steered, "DELETE", vhost="/", name="two") == 404
    assert steered.restarted == [SHOVEL]


def test_exchange_links_are_listed_before_queue_links_and_those_down_alone() -> None:
    steered = Steered(status(QUEUE, LinkState.TERMINATED), status(EXCHANGE), status(SHOVEL))
    assert [row["type"] for row in ask(federation.links, steered)] == ["exchange", "queue"]
    assert [row["type"] for row in ask(federation.links_down, steered)] == ["queue"]
    assert ask(federation.of_vhost_down, steered, vhost="other") == []


def test_a_federation_link_is_restarted_by_its_id_and_node() -> None:
    steered = Steered(status(QUEUE), status(EXCHANGE))
    path = {"vhost": "/", "link": link_id(QUEUE), "node": NODE}
    assert ask(federation.restart, steered, "DELETE", **path) == 204
    assert ask(federation.restart, steered, "DELETE", **path | {"node": "nosuch@host"}) == 404
    assert ask(federation.restart, steered, "DELETE", **path | {"link": "00000000"}) == 404
    assert ask(federation.restart, steered, "DELETE", **path | {"vhost": "other"}) == 404
    assert steered.restarted == [QUEUE]


def test_metrics_count_links_by_state_and_those_of_chosen_virtual_hosts() -> None:
    fixed = status(LinkKey(LinkKind.SHOVEL, "", "fixed"), LinkState.STARTING)
    steered = Steered(status(), fixed, status(EXCHANGE, LinkState.TERMINATED), status(QUEUE))
    scrape = Scrape(steered.node)
    assert list(relay_rows.dynamic_shovels(scrape, None)) == [('status="running"', (1,))]
    assert list(relay_rows.static_shovels(scrape, None)) == [('status="starting"', (1,))]
    assert list(relay_rows.links(scrape, None)) == [('status="error"', (1,)), ('status="running"', (1,))]
    assert list(relay_rows.links(scrape, frozenset(("other",)))) == []
    assert len(list(relay_rows.link_counters(scrape, None))) == 4
    assert len(federation_links(steered.node)) == 2


def test_metrics_of_a_link_have_its_counters_and_its_lag() -> None:
    held = status(hold=Hold.ALARM, source_ready=3, delivered_at=NOW, delivered_timestamp=NOW - 1000)
    scrape = Scrape(Steered(held).node)
    about = 'kind="shovel",vhost="/",name="one",upstream=""'
    assert list(relay_rows.link_counters(scrape, None)) == [(about, (7, 5, 0, 0, 0, 0, 0, 2, True, True))]
    assert list(relay_rows.lag_in_messages(scrape, None)) == [(about, (3,))]
    assert list(relay_rows.lag_in_seconds(scrape, None)) == [(about, (1.0,))]


def test_a_link_has_the_rates_of_the_last_interval_and_the_samples_that_are_asked_for() -> None:
    steered = Steered(status())
    series = steered.histories[SHOVEL] = TimeSeries((0, 0, 0, 0, 0, -1, -1))
    series.add(NOW - 5_000, (10, 8, 0, 0, 1, -1, -1), 100)
    series.add(NOW, (60, 58, 0, 0, 1, 7, 1_500), 100)
    times = SampleTimes(NOW, 10_000, 5_000)
    ranges = SampleRanges(time=NOW, now=NOW, lengths=times, msg_rates=times)
    shown: Any = shovel_view(steered.node, status(), ranges)
    assert (shown["forwarded_details"]["rate"], shown["redelivered_details"]["rate"]) == (10.0, 0.0)
    assert [one["sample"] for one in shown["forwarded_details"]["samples"]] == [60, 10, 0]
    assert [one["sample"] for one in shown["lag_messages_details"]["samples"]] == [7, None, None]
    assert [one["sample"] for one in shown["lag_seconds_details"]["samples"]] == [1.5, None, None]
    assert "lag_messages_details" not in shovel_view(steered.node, status(), RANGES)


def test_a_link_has_all_addresses_of_its_definition_without_credentials_also_while_it_connects() -> None:
    shown = shovel_view(Steered().node, status(state=LinkState.STARTING), RANGES)
    assert (shown["source_uris"], shown["destination_uris"]) == (["amqp://elsewhere/%2f"], ["amqp://"])
    link = federation_link_view(Steered().node, status(QUEUE, LinkState.STARTING), RANGES)
    assert (link["source_uris"], link["destination_uris"]) == (["amqp://up"], ["amqp://"])
    assert "secret" not in str(shown) + str(link)


def test_one_link_is_found_by_its_id_and_a_static_shovel_by_its_name() -> None:
    fixed = LinkKey(LinkKind.SHOVEL, "", "fixed")
    steered = Steered(status(QUEUE), status(fixed))
    assert ask(federation.link, steered, vhost="/", link=link_id(QUEUE))["queue"] == "fq"
    assert ask(federation.link, steered, vhost="/", link="00000000") == 404
    assert ask(federation.link, steered, vhost="other", link=link_id(QUEUE)) == 404
    assert ask(shovels.static_shovel, steered, name="fixed")["type"] == "static"
    assert ask(shovels.static_shovel, steered, name="one") == 404


def test_the_links_of_one_exchange_or_queue_are_listed() -> None:
    steered = Steered(status(EXCHANGE), status(QUEUE), status(SHOVEL))

    def listed(query: str) -> list[str]:
        return [one["type"] for one in ask(federation.links, steered, query=query)]

    assert listed("") == ["exchange", "queue"]
    assert listed("?exchange=fx") == ["exchange"]
    assert listed("?queue=fq") == ["queue"]
    assert listed("?queue=fx") == []
