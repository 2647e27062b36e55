"""The management API of a cluster: every node answers for all, and says who did not."""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any

import aiohttp
import pytest
from tests.integration.dialing import run
from tests.integration.managed_cluster import ManagedCluster, managed_cluster
from tests.unit.node.test_broker import frame, say

from warren.cluster.answer_writer import AnswerWriter
from warren.flow.alarms import Resource, ResourceLevel
from warren.limits_cluster import QUERY_ACTION_MS, QUERY_MS
from warren.management.carried_request import (
    AnswerHead,
    CarriedRequest,
    CarriedUser,
    encode_head,
    encode_request,
    split_head,
)
from warren.management.cluster_nodes import NodeNotAnswering
from warren.metadata.commands import RemoveUser, SetPolicy
from warren.metadata.proposals import LocalProposals
from warren.wire.methods import BasicConsume

Test = Callable[[ManagedCluster], Coroutine[Any, Any, None]]


def in_cluster(test: Test, speed: int = 1) -> Callable[[], None]:
    """Run a test with a cluster of three nodes, whose links have a time of their own."""

    @wraps(test)
    def wrapper() -> None:
        async def work() -> None:
            async with managed_cluster(speed=speed) as cluster:
                await test(cluster)

        run(work())

    del wrapper.__wrapped__  # type: ignore[attr-defined]
    return wrapper


# For tests that wait until a node is given up.
in_fast_cluster = partial(in_cluster, speed=10)


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


@in_cluster
async def test_every_node_lists_all_nodes(cluster: ManagedCluster) -> None:
    for at in (1, 2, 3):
        nodes = await cluster.get(at, "/nodes")
        assert names(nodes) == ["a@test", "b@test", "c@test"]
        assert all(node["running"] and node["uptime"] >= 0 for node in nodes)
        assert [sorted(peer["name"] for peer in node["cluster_links"]) for node in nodes] == [
            ["b@test", "c@test"], ["a@test", "c@test"], ["a@test", "b@test"],
        ]  # fmt: skip
        assert all(node["partitions"] == [] for node in nodes)
    assert (await cluster.get(1, "/nodes/c%40test"))["name"] == "c@test"
    assert "total" in (await cluster.get(1, "/nodes/c%40test/memory"))["memory"]
    assert (await cluster.ask(1, "GET /nodes/d%40test")).status == 404


@in_cluster
async def test_a_node_of_several_is_not_called_a_single_one(cluster: ManagedCluster) -> None:
    for check in ("node-is-mirror-sync-critical", "node-is-quorum-critical"):
        assert await cluster.get(1, f"/health/checks/{check}") == {"status": "ok"}


@in_cluster
async def test_a_node_that_is_down_is_shown_as_rabbitmq_does(cluster: ManagedCluster) -> None:
    await cluster.down(cluster.nodes[1])
    answer = await cluster.ask(1, "GET /nodes?sort=name")
    absent = {"cluster_links": [], "name": "b@test", "running": False, "type": "disc"}
    assert answer.value[1] == absent
    assert answer.headers["warren-nodes-missing"] == "b@test"
    assert await cluster.get(1, "/nodes/b%40test") == absent


@in_cluster
async def test_maintenance_of_another_node_begins_and_ends_there(cluster: ManagedCluster) -> None:
    path = "/warren/nodes/b%40test/maintenance"
    for method, is_draining in (("PUT", True), ("DELETE", False)):
        assert (await cluster.ask(1, f"{method} {path}")).status == 204
        assert cluster.nodes[1].managed.cluster_controls.accepts_clients is not is_draining
        members = (await cluster.get(3, "/warren/cluster"))["members"]
        assert [member["is_draining"] for member in members] == [False, is_draining, False]
    await cluster.down(cluster.nodes[1])
    for method in ("PUT", "DELETE"):
        answer = await cluster.ask(1, f"{method} {path}")
        assert (answer.status, answer.value["reason"]) == (503, "node 'b@test' is down")


@in_fast_cluster
async def test_a_node_that_never_answers_costs_two_seconds_and_is_named(cluster: ManagedCluster) -> None:
    cluster.stopped.add(3)
    began = cluster.network.now
    answer = await cluster.ask(1, "GET /nodes")
    assert [node["running"] for node in answer.value] == [True, True, False]
    assert answer.headers["warren-nodes-missing"] == "c@test"
    assert QUERY_MS <= cluster.network.now - began < QUERY_ACTION_MS


@in_fast_cluster
async def test_a_node_that_is_not_heard_is_a_partition(cluster: ManagedCluster) -> None:
    cluster.network.is_down = True
    cluster.network.cut()
    while not all(link.is_silent for link in cluster.nodes[0].links.values()):
        await asyncio.sleep(0)
    answer = await cluster.ask(1, "GET /nodes")
    assert answer.value[0]["partitions"] == ["b@test", "c@test"]
    assert [node["running"] for node in answer.value] == [True, False, False]


@in_cluster
async def test_queues_are_listed_with_what_their_homes_say(cluster: ManagedCluster) -> None:
    for name, home in (("q1", 1), ("q2", 2), ("q3", 3)):
        await cluster.declare(name, home)
    cluster.nodes[1].publish("q2", b"x", b"y")
    cluster.nodes[2].publish("q3", b"z")
    for at in (1, 2, 3):
        rows = await cluster.get(at, "/queues")
        assert [(row["name"], row["node"], row["messages"], row["state"]) for row in rows] == [
            ("q1", "a@test", 0, "running"), ("q2", "b@test", 2, "running"), ("q3", "c@test", 1, "running"),
        ]  # fmt: skip
        fields = [set(row) - {"idle_since", "message_stats", "oldest_ready_at"} for row in rows]
        assert fields == [fields[0]] * 3
        assert await cluster.get(at, "/queues/%2F?columns=name,messages") == [
            {"name": "q1", "messages": 0}, {"name": "q2", "messages": 2}, {"name": "q3", "messages": 1},
        ]  # fmt: skip
        assert await cluster.get(at, "/queues/%2F?columns=name,node") == [
            {"name": f"q{id}", "node": f"{letter}@test"} for id, letter in ((1, "a"), (2, "b"), (3, "c"))
        ]


@in_cluster
async def test_pages_are_sorted_by_what_only_the_homes_know(cluster: ManagedCluster) -> None:
    for number in range(30):
        home = number % 3 + 1
        await cluster.declare(f"q{number:02}", home)
        cluster.nodes[home - 1].publish(f"q{number:02}", *[b"x"] * (number * 7 % 30))
    expected = [name for _, name in sorted((number * 7 % 30, f"q{number:02}") for number in range(30))]
    for at in (1, 2, 3):
        for sort in ("messages", "message_bytes", "message_stats.publish", "backing_queue_status"):
            first = await cluster.get(at, f"/queues?page=1&page_size=7&sort={sort}&sort_reverse=true")
            if sort != "backing_queue_status":
                assert names(first["items"]) == expected[:-8:-1]
            assert (first["total_count"], first["filtered_count"], first["item_count"]) == (30, 30, 7)
        third = await cluster.get(at, "/queues?page=3&page_size=7&sort=messages")
        assert names(third["items"]) == expected[14:21]
        assert [row["messages"] for row in third["items"]] == list(range(14, 21))
        found = await cluster.get(at, "/queues?page=1&name=q1&sort=node")
        assert [row["node"] for row in found["items"]] == sorted(row["node"] for row in found["items"])
        assert found["filtered_count"] == 10


@in_cluster
async def test_a_page_asks_the_other_nodes_for_its_rows_only(cluster: ManagedCluster) -> None:
    for number in range(200):
        await cluster.declare(f"q{number:03}", 2)
    before = cluster.nodes[0].links[2].counters.bytes_received
    await cluster.get(1, "/queues?page=1&page_size=5")
    of_page = cluster.nodes[0].links[2].counters.bytes_received - before
    await cluster.get(1, "/queues")
    of_all = cluster.nodes[0].links[2].counters.bytes_received - before - of_page
    assert of_all > 20 * of_page


@in_cluster
async def test_a_queue_whose_home_is_down_has_the_fields_that_rabbitmq_gives_it(
    cluster: ManagedCluster,
) -> None:
    await cluster.declare("here", 1)
    await cluster.declare("there", 2)
    await cluster.down(cluster.nodes[1])
    here, there = await cluster.get(1, "/queues")
    assert here["state"] == "running"
    down = {
        "arguments": {}, "auto_delete": False, "durable": True, "exclusive": False, "name": "there",
        "node": "b@test", "state": "down", "type": "classic", "vhost": "/",
    }  # fmt: skip
    assert there == down
    await cluster.apply(SetPolicy(vhost="/", name="all", pattern="", definition={"max-length": 9}))
    for query in ("disable_stats=true", "disable_stats=true&enable_queue_totals=true"):
        here, there = await cluster.get(3, f"/queues?{query}")
        assert here["policy"] == "all"
        assert here["state"] != "down"
        assert there == down
    text = "home node 'b@test' of durable queue 'there' in vhost '/' is down or inaccessible"
    not_found = {"error": "Object Not Found", "reason": "Not Found", "message": text}
    for line in (
        "GET /queues/%2F/there",
        "GET /queues/%2F/there?disable_stats=true",
        "DELETE /queues/%2F/there",
    ):
        answer = await cluster.ask(1, line)
        assert (answer.status, answer.value) == (404, not_found)
    assert (await cluster.ask(1, "GET /queues/%2F/there?disable_stats=true")).value == not_found
    assert (await cluster.ask(1, "DELETE /queues/%2F/there/contents")).value == not_found
    got = await cluster.ask(
        1,
        "POST /queues/%2F/there/get",
        {"ackmode": "ack_requeue_false", "count": 1, "encoding": "auto"},
    )
    assert (got.status, got.value["reason"]) == (404, f"NOT_FOUND - {text}")
    assert (await cluster.get(1, "/overview"))["object_totals"]["queues"] == 1


@in_cluster
async def test_one_queue_is_read_and_changed_at_its_home(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)
    home = cluster.nodes[1]
    home.publish("there", b"one", b"two", b"three")
    row = await cluster.get(1, "/queues/%2F/there")
    assert (row["node"], row["messages"], row["consumer_details"]) == ("b@test", 3, [])
    assert await cluster.get(3, "/queues/%2F/there?columns=messages") == {"messages": 3}
    body = {"ackmode": "ack_requeue_false", "count": 2, "encoding": "auto"}
    got = await cluster.ask(1, "POST /queues/%2F/there/get", body)
    assert [message["payload"] for message in got.value] == ["one", "two"]
    assert home.queue("there").message_count == 1
    peeked = await cluster.get(3, "/warren/queues/%2F/there/messages")
    assert [message["payload"] for message in peeked["messages"]] == ["three"]
    assert (await cluster.ask(1, "DELETE /queues/%2F/there/contents")).status == 204
    assert home.queue("there").message_count == 0
    assert (await cluster.ask(3, "DELETE /queues/%2F/there")).status == 204
    assert await cluster.get(1, "/queues") == []


@in_cluster
async def test_a_lease_is_granted_and_settled_at_the_home(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)
    cluster.nodes[1].publish("there", b"one", b"two")
    granted = await cluster.ask(1, "POST /warren/queues/%2F/there/leases", {"key": "k"})
    assert (granted.status, granted.value["messages"]) == (201, 2)
    lease = granted.value["lease"]
    assert cluster.nodes[1].queue("there").message_count == 0
    rows = await cluster.ask(3, f"GET /warren/leases/{lease}/rows")
    assert (rows.status, b"two" in rows.body) == (200, True), rows
    assert (await cluster.ask(3, f"POST /warren/leases/{lease}/renew", {"ttl": 60})).status == 200
    settled = await cluster.ask(3, f"POST /warren/leases/{lease}/settle", {"outcome": "acknowledge"})
    assert settled.status == 200
    assert names_of_leases(await cluster.get(1, "/warren/leases")) == ["there"]


def names_of_leases(leases: list[dict[str, Any]]) -> list[str]:
    return [lease["queue"] for lease in leases]


@in_cluster
async def test_rows_of_a_queue_of_another_node_are_streamed(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)
    cluster.nodes[1].publish("there", *[bytes(50_000)] * 60)
    here = await cluster.ask(2, "GET /warren/queues/%2F/there/rows")
    there = await cluster.ask(1, "GET /warren/queues/%2F/there/rows")
    assert here.status == there.status == 200
    assert len(there.body) > 3_000_000
    assert there.body == here.body
    assert there.headers["content-type"] == here.headers["content-type"]


@in_cluster
async def test_connections_channels_and_consumers_of_all_nodes_are_listed(cluster: ManagedCluster) -> None:
    await cluster.declare("q", 2)
    for node in cluster.nodes:
        say(node.connect(), frame(BasicConsume(queue="q", consumer_tag=f"tag-{node.id}"), 1))
    for at in (1, 2, 3):
        connections = await cluster.get(at, "/connections")
        assert sorted(one["node"] for one in connections) == ["a@test", "b@test", "c@test"]
        page = await cluster.get(at, "/connections?page=1&page_size=2&sort=node&sort_reverse=true")
        assert [one["node"] for one in page["items"]] == ["c@test", "b@test"]
        assert (page["total_count"], page["item_count"]) == (3, 2)
        assert [set(one) for one in page["items"]] == [set(connections[0])] * 2
        assert len(await cluster.get(at, "/channels")) == 3
        consumers = await cluster.get(at, "/consumers")
        assert sorted(one["consumer_tag"] for one in consumers) == ["tag-1", "tag-2", "tag-3"]
        details = (await cluster.get(at, "/queues/%2F/q"))["consumer_details"]
        assert sorted(one["consumer_tag"] for one in details) == ["tag-1", "tag-2", "tag-3"]
        overview = await cluster.get(at, "/overview")
        assert overview["object_totals"] == {
            "channels": 3, "connections": 3, "consumers": 3, "exchanges": 7, "queues": 1,
        }  # fmt: skip
        assert len(overview["listeners"]) == 6


@in_cluster
async def test_a_connection_is_found_and_closed_at_the_node_that_has_it(cluster: ManagedCluster) -> None:
    client = cluster.nodes[2].connect()
    (row,) = await cluster.get(1, "/connections")
    name = row["name"].replace(" ", "%20").replace(">", "%3E").replace(":", "%3A")
    assert (await cluster.get(1, f"/connections/{name}"))["node"] == "c@test"
    assert len(await cluster.get(2, f"/connections/{name}/channels")) == 1
    assert (await cluster.get(2, f"/channels/{name}%20(1)"))["number"] == 1
    assert (await cluster.ask(1, "GET /connections/nosuch")).status == 404
    assert (await cluster.ask(1, f"DELETE /connections/{name}", headers={"x-reason": "go"})).status == 204
    assert b"go" in b"".join(client.take_output())


@in_cluster
async def test_all_connections_of_a_user_are_closed_on_all_nodes(cluster: ManagedCluster) -> None:
    clients = [node.connect() for node in cluster.nodes]
    assert (await cluster.ask(2, "DELETE /connections/username/guest")).status == 204
    assert all(b"Closed via management plugin" in b"".join(client.take_output()) for client in clients)


@in_cluster
async def test_counts_of_exchanges_and_vhosts_are_added_up(cluster: ManagedCluster) -> None:
    await cluster.declare_exchange("x")
    await cluster.declare("q", 2)
    for node, count in zip(cluster.nodes, (1, 2, 4), strict=True):
        node.publish("", *[b"x"] * count, exchange="x")
    cluster.nodes[1].publish("q", b"in the queue")
    for at in (1, 2, 3):
        (found,) = [one for one in await cluster.get(at, "/exchanges") if one["name"] == "x"]
        assert found["message_stats"]["publish_in"] == 7
        assert found["message_stats"]["publish_in_details"]["rate"] == 0
        assert (await cluster.get(at, "/exchanges/%2F/x"))["message_stats"]["publish_in"] == 7
        sorting = "sort=message_stats.publish_in&sort_reverse=true"
        page = await cluster.get(at, f"/exchanges?page=1&page_size=1&{sorting}")
        assert names(page["items"]) == ["x"]
        (vhost,) = await cluster.get(at, "/vhosts")
        assert vhost["cluster_state"] == {f"{letter}@test": "running" for letter in "abc"}
        assert vhost["messages"] == 1
        assert (await cluster.get(at, "/vhosts/%2F"))["messages"] == 1
        assert (await cluster.get(at, "/overview"))["queue_totals"]["messages"] == 1


@in_cluster
async def test_an_alarm_of_one_node_fails_the_check_of_all(cluster: ManagedCluster) -> None:
    cluster.nodes[1].alarms.update(ResourceLevel(Resource.MEMORY, byte_count=2, limit=1))
    # As their pings say.
    for other in (cluster.nodes[0], cluster.nodes[2]):
        other.alarms.tell("b@test", (Resource.MEMORY,))
    for at in (1, 2, 3):
        answer = await cluster.ask(at, "GET /health/checks/alarms")
        assert (answer.status, answer.value["alarms"]) == (503, [{"node": "b@test", "resource": "memory"}])
        local = await cluster.ask(at, "GET /health/checks/local-alarms")
        assert local.status == (503 if at == 2 else 200)
        assert (await cluster.get(at, "/overview"))["alarms"] == [{"node": "b@test", "resource": "memory"}]


@in_cluster
async def test_the_rights_of_a_user_are_checked_at_both_ends(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)
    cluster.nodes[1].publish("there", b"secret")
    body = {"ackmode": "ack_requeue_false", "count": 1, "encoding": "auto"}
    for line in ("GET /queues/%2F/there", "DELETE /queues/%2F/there", "GET /nodes"):
        assert (await cluster.ask(1, line, user="joe")).status == 401
    await cluster.grant("joe", "^none$")
    refused = await cluster.ask(1, "POST /queues/%2F/there/get", body, user="joe")
    assert refused.status == 401
    assert "there" in refused.value["reason"]
    assert (await cluster.ask(1, "DELETE /queues/%2F/there", user="joe")).status != 204
    # What the other node knows counts, and not what this one does.
    await cluster.grant("joe")
    metadata = cluster.nodes[1].broker.metadata
    LocalProposals(metadata, lambda: 0).apply(RemoveUser(name="joe"))
    refused = await cluster.ask(1, "POST /queues/%2F/there/get", body, user="joe")
    assert (refused.status, refused.value["reason"]) == (401, "Not management user")
    assert cluster.nodes[1].queue("there").message_count == 1


@in_cluster
async def test_users_without_a_tag_see_what_is_theirs_on_all_nodes(cluster: ManagedCluster) -> None:
    await cluster.grant("joe")
    for node in cluster.nodes[1:]:
        node.connect("joe")
        node.connect()
    assert len(await cluster.get(1, "/connections", user="joe")) == 2
    assert len(await cluster.get(1, "/connections", user="watcher")) == 4
    assert (await cluster.get(1, "/overview", user="joe"))["object_totals"]["connections"] == 2


@in_cluster
async def test_a_job_is_listed_and_found_on_every_node(cluster: ManagedCluster) -> None:
    await cluster.declare("from", 2)
    await cluster.declare("to", 2)
    cluster.nodes[1].publish("from", b"one")
    started = await cluster.ask(1, "POST /warren/queues/%2F/from/move", {"destination": "to"})
    assert started.status == 201, started
    id = started.value["id"]
    assert [job["id"] for job in await cluster.get(3, "/warren/jobs")] == [id]
    assert (await cluster.get(3, f"/warren/jobs/{id}"))["queue"] == "from"
    while not (await cluster.get(1, f"/warren/jobs/{id}"))["ended_at"]:
        await asyncio.sleep(0)
    assert (await cluster.ask(3, f"DELETE /warren/jobs/{id}")).status == 204
    assert cluster.nodes[1].queue("to").message_count == 1


@in_cluster
async def test_a_lost_session_is_answered_at_once(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)
    is_asked = asyncio.Event()
    cluster.nodes[1].answer = lambda writer, arguments: is_asked.set()
    asked = asyncio.create_task(cluster.ask(1, "GET /queues/%2F/there"))
    await is_asked.wait()
    cluster.nodes[0].links[2].close("for the test")
    assert (await asked).status == 404


def garbage(writer: AnswerWriter, arguments: bytes) -> None:
    writer.end(b"\x00\x00\x00\x02{}garbage")


def without_json(writer: AnswerWriter, arguments: bytes) -> None:
    writer.end(encode_head(AnswerHead(status=200, headers={}, is_stream=False)) + b"no JSON")


def endless(writer: AnswerWriter, arguments: bytes) -> None:
    writer.on_writable = lambda: writer.write(bytes(1_000_000))
    writer.write(encode_head(AnswerHead(status=200, headers={}, is_stream=False)) + bytes(1_000_000))


def headless(writer: AnswerWriter, arguments: bytes) -> None:
    writer.on_writable = lambda: writer.write(bytes([255]) * 100_000)
    writer.write(bytes([255]) * 100_000)


def refusing(writer: AnswerWriter, arguments: bytes) -> None:
    writer.refuse("not today")


def test_an_answer_that_cannot_be_used_is_that_of_a_node_that_does_not_answer() -> None:
    async def work() -> None:
        async with managed_cluster() as cluster:
            await cluster.declare("there", 2)
            for answer in (garbage, without_json, endless, headless, refusing):
                cluster.nodes[1].answer = answer
                listed = await cluster.ask(1, "GET /queues")
                assert (listed.status, listed.value[0]["state"]) == (200, "down"), answer
                assert listed.headers["warren-nodes-missing"] == "b@test"
                connections = await cluster.ask(1, "GET /connections?page=1")
                assert connections.value["items"] == []
                assert connections.headers["warren-nodes-missing"] == "b@test"
                peeked = await cluster.ask(1, "GET /warren/queues/%2F/there/messages")
                assert peeked.status == (200 if answer is without_json else 503)
            assert cluster.nodes[0].managed.held_answers.size == 0

    run(work())


@in_cluster
async def test_a_request_that_is_none_is_refused(cluster: ManagedCluster) -> None:
    nodes = cluster.nodes[0].managed.cluster
    assert nodes is not None
    user = CarriedUser(name="guest")
    for arguments, reason in (
        (b"no request", "cannot be decoded"),
        (encode_request(CarriedRequest(method="GET", path="/other", user=user)), "is for the path '/other'"),
    ):
        pieces = nodes.ask(2, arguments, timeout_ms=QUERY_MS)
        with pytest.raises(NodeNotAnswering, match=reason):
            await pieces.next_piece()


async def answer_of(cluster: ManagedCluster, asked: CarriedRequest) -> tuple[AnswerHead, bytes]:
    """What node 2 answers to a request of node 1."""
    nodes = cluster.nodes[0].managed.cluster
    assert nodes is not None
    pieces = nodes.ask(2, encode_request(asked), timeout_ms=QUERY_MS)
    data = b""
    while piece := await pieces.next_piece():
        data += piece
    found = split_head(data)
    assert found is not None
    return found


@in_cluster
async def test_another_node_cannot_make_a_change_that_each_node_makes_itself(cluster: ManagedCluster) -> None:
    user = CarriedUser(name="guest")
    asked = CarriedRequest(method="DELETE", path="/api/users/joe", user=user)
    head, _ = await answer_of(cluster, asked)
    assert head.status == 403
    assert "joe" in cluster.nodes[1].broker.metadata.users.by_name


@in_cluster
async def test_a_user_of_a_token_has_the_rights_that_were_carried(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)
    await cluster.declare("other", 2)
    reader = CarriedUser(
        name="token", is_external=True, tags=("management",), permissions={"/": ("", "", "^there$")}
    )
    stranger = CarriedUser(name="token", is_external=True, tags=("management",))
    untagged = CarriedUser(name="token", is_external=True, permissions={"/": (".*", ".*", ".*")})
    for user, queue, status in (
        (reader, "there", 200),
        (reader, "other", 401),
        (stranger, "there", 401),
        (untagged, "there", 401),
    ):
        path = f"/api/warren/queues/%2F/{queue}/messages"
        head, _ = await answer_of(cluster, CarriedRequest(method="GET", path=path, user=user))
        assert head.status == status


@in_cluster
async def test_rows_that_are_too_large_together_come_in_parts(cluster: ManagedCluster) -> None:
    for number in range(36):
        await cluster.declare(f"q{number}", 2, arguments={"x": "a" * 1_000_000})
    rows = await cluster.get(1, "/queues")
    assert {len(row["arguments"]["x"]) for row in rows} == {1_000_000}
    assert len(rows) == 36


@in_cluster
async def test_a_client_that_leaves_ends_the_request_at_the_other_node(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)
    cluster.nodes[1].publish("there", *[bytes(100_000)] * 300)
    port = cluster.nodes[0].http.addresses[0][1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    login = base64.b64encode(b"guest:secret").decode()
    path = "/api/warren/queues/%2F/there/rows"
    writer.write(f"GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Basic {login}\r\n\r\n".encode())
    await reader.readexactly(1_000)
    assert cluster.nodes[1].managed.arrow_responses.count == 1
    writer.close()
    while cluster.nodes[1].managed.arrow_responses.count:
        await asyncio.sleep(0.01)


@in_cluster
async def test_a_stream_that_is_cut_off_breaks_the_connection_of_the_client(cluster: ManagedCluster) -> None:
    await cluster.declare("there", 2)

    def cut_off(writer: AnswerWriter, arguments: bytes) -> None:
        writer.write(encode_head(AnswerHead(status=200, headers={}, is_stream=True)) + b"the beginning")
        writer.refuse("cut off")

    cluster.nodes[1].answer = cut_off
    with pytest.raises(aiohttp.ClientError):
        await cluster.ask(1, "GET /warren/queues/%2F/there/rows")


@in_cluster
async def test_each_node_exposes_its_own_queues_and_its_links(cluster: ManagedCluster) -> None:
    for name, home in (("q1", 1), ("q2", 2), ("q3", 2)):
        await cluster.declare(name, home)
    texts = [await cluster.metrics(at) for at in (1, 2)]
    assert "\nrabbitmq_queues 1\n" in texts[0]
    assert "\nrabbitmq_queues 2\n" in texts[1]
    for peer in ("b@test", "c@test"):
        assert f'erlang_vm_dist_node_state{{peer="{peer}"}} 3\n' in texts[0]
        assert f'erlang_vm_dist_recv_bytes{{peer="{peer}"}} ' in texts[0]


def test_a_node_that_is_alone_asks_nobody_and_answers_as_one_without_a_cluster() -> None:
    async def work() -> None:
        async with managed_cluster(1) as cluster:
            (node,) = cluster.nodes
            await cluster.declare("q", 1)
            node.publish("q", b"x")
            paths = (
                "/queues?sort=messages", "/queues?page=1&sort=messages", "/queues?columns=name,messages,node",
                "/queues/%2F/q", "/exchanges", "/vhosts", "/connections", "/channels?page=1", "/consumers",
                "/health/checks/alarms", "/warren/jobs", "/warren/streams", "/warren/dead-letters",
            )  # fmt: skip
            apart = node.managed.cluster
            answers = [await cluster.ask(1, f"GET {path}") for path in paths]
            metrics = await cluster.metrics(1)
            assert "erlang_vm_dist_" not in metrics
            node.managed.cluster = None
            for path, answer in zip(paths, answers, strict=True):
                again = await cluster.ask(1, f"GET {path}")
                assert again.body == answer.body, path
            assert families(await cluster.metrics(1)) == families(metrics)
            assert apart is not None
            assert not node.links

    run(work())


def families(metrics: str) -> list[str]:
    """The names of metrics with their labels, without values and the statistics of scrapes."""
    names = [line.rpartition(" ")[0] for line in metrics.splitlines() if not line.startswith("#")]
    return [name for name in names if not name.startswith("telemetry_")]
