"""Events of shovels and federation links have the keys and headers that RabbitMQ 3.10.8 sends (measured)."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.management.views.test_relays import DEFINITIONS, EXCHANGE, QUEUE, status

from warren.metadata.machine import Metadata
from warren.node.link_events import LinkEvents
from warren.relay.status import LinkKey, LinkKind, LinkState, LinkStatus
from warren.session.events.event_publisher import EventPublisher


class Heard:
    """An event publisher that notes what it is given."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.users: list[str | None] = []
        self.has_bindings = True

    def is_heard(self) -> bool:
        return self.has_bindings

    def publish(self, key: str, user: str | None, facts: dict[str, Any]) -> None:
        self.users.append(user)
        self.events.append((key, facts))


def link_events(heard: Heard) -> LinkEvents:
    vhosts = {"/": SimpleNamespace(parameters=SimpleNamespace(by_key=DEFINITIONS))}
    metadata = cast(Metadata, SimpleNamespace(vhosts=SimpleNamespace(by_name=vhosts)))
    return LinkEvents(metadata, cast(EventPublisher, heard), {"fixed": {"src-queue": "s"}})


def event(*statuses: LinkStatus) -> tuple[str, dict[str, Any]]:
    heard = Heard()
    events = link_events(heard)
    for one in statuses:
        events.changed(lambda one=one: one)  # type: ignore[misc]
    (only,) = heard.events
    assert heard.users == [None]
    return only


def test_a_starting_shovel_has_only_its_name() -> None:
    assert event(status(state=LinkState.STARTING)) == (
        "shovel.worker.status",
        {"name": "one", "vhost": "/", "status": "starting"},
    )


def test_a_running_shovel_has_its_ends_without_passwords() -> None:
    key, facts = event(status())
    assert (key, facts["status"], facts["src_queue"]) == ("shovel.worker.status", "running", "s1")
    assert set(facts) == {
        "name", "vhost", "status", "src_uri", "src_protocol", "dest_protocol", "dest_uri", "src_queue",
        "dest_exchange", "dest_exchange_key",
    }  # fmt: skip
    assert "secret" not in str(facts)


def test_a_terminated_shovel_has_its_reason() -> None:
    _, facts = event(status(state=LinkState.TERMINATED, reason="no such queue"))
    assert (facts["status"], facts["reason"]) == ("terminated", "no such queue")


def test_a_stopped_link_is_removed() -> None:
    assert event(status(state=LinkState.STOPPED)) == ("shovel.worker.removed", {"name": "one", "vhost": "/"})
    key, facts = event(status(QUEUE, LinkState.STOPPED))
    assert key == "federation.link.removed"
    assert set(facts) == {"id", "upstream", "vhost", "type", "consumer_tag", "upstream_queue", "queue"}


def test_a_federation_link_has_its_error_and_an_erlang_time() -> None:
    key, facts = event(status(EXCHANGE, LinkState.TERMINATED, reason="econnrefused"))
    assert (key, facts["status"], facts["error"]) == ("federation.link.status", "error", "econnrefused")
    assert re.fullmatch(r"\{\{\d+,\d+,\d+\},\{\d+,\d+,\d+\}\}", facts["timestamp"])
    assert set(event(status(EXCHANGE))[1]) == {
        "exchange", "upstream_exchange", "type", "vhost", "upstream", "id", "status", "uri", "timestamp",
    }  # fmt: skip


def test_a_restart_has_the_user_who_asked_for_it_in_the_event_and_in_the_audit_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard = Heard()
    with caplog.at_level("INFO", "warren.audit"):
        link_events(heard).restarted(status().key, "al")
        link_events(heard).restarted(status(key=QUEUE).key, "al")
    (shovel, facts), (link, of_link) = heard.events
    assert heard.users == ["al", "al"]
    assert (shovel, facts) == ("shovel.worker.restarted", {"name": "one", "vhost": "/"})
    assert (link, of_link["upstream"]) == ("federation.link.restarted", QUEUE.upstream)
    assert caplog.messages[0] == "user 'al': shovel.worker.restarted: name 'one', vhost '/'"
    assert caplog.messages[1].startswith("user 'al': federation.link.restarted: queue ")


def test_a_static_shovel_has_its_ends_and_no_virtual_host() -> None:
    key, facts = event(status(key=LinkKey(LinkKind.SHOVEL, "", "fixed")))
    assert key == "shovel.worker.status"
    assert (facts["name"], facts["src_queue"]) == ("fixed", "s")
    assert "vhost" not in facts
