"""A staged query belongs to one user of one virtual host, and cannot be changed by others."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.api import Answer, HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.own_vhost import channel_in_vhost
from tests.integration.staging import StagedQuery, bodies
from tests.integration.test_serve import connect

VHOST = "owned"
USERS = {"owner": ".*", "other": ".*", "powerless": "^$"}


@pytest.fixture
def channel(node: BrokerProcess, client: HttpClient) -> Iterator[Any]:
    with channel_in_vhost(node, client, VHOST) as channel:
        channel.queue_declare("q", durable=True)
        for user, write in USERS.items():
            client.ask(f"PUT /users/{user}", {"password": "x", "tags": "management"})
            client.ask(f"PUT /permissions/{VHOST}/{user}", {"configure": "", "write": write, "read": ""})
        yield channel
        for user in USERS:
            client.ask(f"DELETE /users/{user}")


def job(node: BrokerProcess, user: str, query: str, exchange: str = "amq.default") -> StagedQuery:
    return StagedQuery(HttpClient(node, f"{user}:x"), query, exchange, VHOST)


def taken(channel: Any) -> list[bytes]:
    found = []
    while (got := channel.basic_get("q", auto_ack=True))[0] is not None:
        found.append(got[2])
    return found


def said(answer: Answer, query: str) -> tuple[int, str]:
    """The answer without the name of the query."""
    return answer.status, str(answer.value).replace(query, "…")


@pytest.mark.parametrize("user", ["other", "powerless"])
def test_an_empty_commit_of_another_user_is_refused(node: BrokerProcess, channel: Any, user: str) -> None:
    owner = job(node, "owner", "mine")
    assert owner.stage(0, 0, bodies([b"1", b"2"], "q")).status == 200
    for batch in (0, 1, 1_000):
        assert job(node, user, "mine").commit(batch).status == 403
    assert owner.commit(0, 0).value == {"state": "committed", "rows": 2, "unroutable": 0}
    # Nor after the first batch, of which nothing is staged any more.
    for batch in (0, 1, 1_000):
        assert job(node, user, "mine").commit(batch).status == 403
    assert owner.stage(1, 0, bodies([b"3"], "q")).value["rows"] == 1
    assert owner.commit(1, 0).value["state"] == "committed"
    assert taken(channel) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("user", ["other", "powerless"])
def test_stages_of_another_user_replace_nothing(node: BrokerProcess, channel: Any, user: str) -> None:
    owner = job(node, "owner", "kept")
    assert owner.stage(0, 0, bodies([b"mine"], "q")).status == 200
    for partition in (0, 1):
        assert job(node, user, "kept").stage(0, partition, bodies([b"theirs"], "q")).status == 403
    assert owner.commit(0, 0).value["rows"] == 1
    assert job(node, user, "kept").stage(1, 0, bodies([b"theirs"], "q")).status == 403
    assert taken(channel) == [b"mine"]


def test_a_discard_by_another_user_removes_nothing(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    owner = job(node, "owner", "stays")
    owner.stage(0, 0, bodies([b"mine"], "q"))
    for user in ("other", "powerless"):
        for more in ({}, {"force": "true"}):
            assert job(node, user, "stays").discard(0, **more).status == 403
    assert owner.commit(0, 0).value["rows"] == 1
    owner.stage(1, 0, bodies([b"more"], "q"))
    # An administrator may, because the owner may have been deleted.
    assert StagedQuery(client, "stays", vhost=VHOST).discard(1).status == 204
    assert owner.commit(1, 0).status == 409
    assert owner.discard(1).status == 204


def test_the_query_of_another_user_is_refused_like_one_that_does_not_exist(
    node: BrokerProcess, channel: Any
) -> None:
    job(node, "owner", "there").stage(0, 0, bodies([b"1"], "q"))
    done = job(node, "owner", "done")
    done.stage(0, 0, bodies([b"1"], "q"))
    assert done.commit(0, 0).status == 200
    for user in ("other", "powerless"):
        nobodys = job(node, user, "nobody's")
        for query in ("there", "done"):
            foreign = job(node, user, query)
            assert said(foreign.commit(0, 0), query) == said(nobodys.commit(0, 0), "nobody's")
            assert said(foreign.discard(0), query) == said(nobodys.discard(0), "nobody's")
            assert foreign.discard(0).status == foreign.commit(0, 0).status == 403
            assert HttpClient(node, f"{user}:x").get("/warren/staged") == []
    powerless, nobodys = job(node, "powerless", "there"), job(node, "powerless", "nobody's")
    assert said(powerless.commit(0), "there") == said(nobodys.commit(0), "nobody's")
    rows = bodies([b"1"], "q")
    assert said(powerless.stage(0, 0, rows), "there") == said(nobodys.stage(0, 0, rows), "nobody's")
    assert [one["query"] for one in HttpClient(node, "owner:x").get("/warren/staged")] == ["there"]


def test_a_user_without_write_permission_cannot_commit_an_empty_batch(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    assert job(node, "powerless", "nothing").commit(0).status == 403
    owner = job(node, "owner", "lost rights")
    assert owner.commit(0).value["state"] == "committed"
    client.ask(f"PUT /permissions/{VHOST}/owner", {"configure": "", "write": "^$", "read": ""})
    for batch in (0, 1):
        assert owner.commit(batch).status == 403
    client.ask(f"PUT /permissions/{VHOST}/owner", {"configure": "", "write": "^amq.topic$", "read": ""})
    assert owner.commit(1).value["state"] == "committed"


def test_one_name_in_two_vhosts_means_two_queries(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    job(node, "owner", "twice").stage(0, 0, bodies([b"1"], "q"))
    client.ask("PUT /vhosts/owned2")
    client.ask("PUT /permissions/owned2/other", {"configure": "", "write": ".*", "read": ""})
    assert StagedQuery(HttpClient(node, "other:x"), "twice", vhost="owned2").commit(0).status == 200
    assert job(node, "owner", "twice").commit(0, 0).value["rows"] == 1
    client.ask("DELETE /vhosts/owned2")


def test_an_administrator_takes_a_query_over_when_the_owner_has_no_stages_left(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    owner, administrator = job(node, "owner", "taken"), StagedQuery(client, "taken", vhost=VHOST)
    owner.stage(0, 0, bodies([b"1"], "q"))
    assert administrator.commit(0).status == administrator.commit(0, 0).status == 403
    assert administrator.stage(0, 0, bodies([b"2"], "q")).status == 403
    assert owner.commit(0, 0).status == 200
    assert administrator.stage(1, 0, bodies([b"3"], "q")).status == 200
    # From now on the owner is refused, so that no rows are skipped silently.
    assert owner.stage(1, 0, bodies([b"4"], "q")).status == 403
    assert administrator.commit(1, 0).status == 200
    assert owner.stage(2, 0, bodies([b"5"], "q")).status == 403
    assert taken(channel) == [b"1", b"3"]


def test_the_owner_of_a_query_survives_a_kill(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        client = HttpClient(node)
        connect(node.port).channel().queue_declare("q", durable=True)
        for user in ("owner", "other"):
            client.ask(f"PUT /users/{user}", {"password": "x", "tags": "management"})
            client.ask(f"PUT /permissions/%2F/{user}", {"configure": "", "write": ".*", "read": ""})
        owner = StagedQuery(HttpClient(node, "owner:x"), "committed")
        owner.stage(0, 0, bodies([b"1"], "q"))
        assert owner.commit(0, 0).status == 200
        StagedQuery(HttpClient(node, "owner:x"), "staged").stage(0, 0, bodies([b"2"], "q"))
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
    with broker("--data-dir", str(tmp_path)) as node:
        for query in ("committed", "staged"):
            other = StagedQuery(HttpClient(node, "other:x"), query)
            assert [other.commit(0).status, other.commit(1).status, other.discard(0).status] == [403] * 3
            assert other.stage(0, 0, bodies([b"3"], "q")).status == 403
        owner = HttpClient(node, "owner:x")
        assert StagedQuery(owner, "committed").commit(0, 0).value["state"] == "already committed"
        assert StagedQuery(owner, "staged").commit(0, 0).value["rows"] == 1
