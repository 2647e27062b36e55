"""Node endpoints of the API that tools use: health checks, feature flags, login attempts, and others."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("certificate-expiration/1/months", (200, None)),
        ("certificate-expiration/2/week", (
            400, "Time unit not recognised. Supported units: days, weeks, months, years.",
        )),
        ("certificate-expiration/two/weeks", (400, "Invalid expiration value.")),
        ("node-is-mirror-sync-critical", (200, "single node cluster")),
        ("node-is-quorum-critical", (200, "single node cluster")),
        ("protocol-listener/bogus", (503, "No active listener")),
        ("nosuch", (404, "Not Found")),
        ("is-in-service", (200, None)),
        ("reached-target-cluster-size", (200, None)),
        ("ready-to-serve-clients", (200, None)),
        ("below-node-connection-limit", (200, None)),
        ("metadata-store/initialized", (200, None)),
        ("metadata-store/initialized/with-data", (200, None)),
        ("protocol-listener/amqp,http", (200, None)),
        ("protocol-listener/amqp,bogus", (503, "No active listener")),
        ("quorum-queues-without-elected-leaders/all-vhosts", (200, None)),
        ("quorum-queues-without-elected-leaders/all-vhosts/pattern/.*", (200, None)),
        ("quorum-queues-without-elected-leaders/vhost/%2f/", (200, None)),
        ("quorum-queues-without-elected-leaders/vhost/nosuch/pattern/a", (404, "Not Found")),
    ],
)  # fmt: skip
def test_health_checks_answer_as_documented(
    client: HttpClient, path: str, answer: tuple[int, str | None]
) -> None:
    found = client.ask(f"GET /health/checks/{path}")
    assert (found.status, found.value.get("reason")) == answer


def test_the_connection_limit_is_checked(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text("connection_max = 1\n")
    with broker(config=tmp_path / "rabbitmq.conf") as started:
        client = HttpClient(started)
        path = "/health/checks/below-node-connection-limit"
        assert client.get(path) == {"status": "ok", "limit": 1, "connections": 0}
        connection = connect(started.port)
        for name in ("below-node-connection-limit", "ready-to-serve-clients"):
            answer = client.ask(f"GET /health/checks/{name}")
            assert (answer.status, answer.reason) == (503, "node connection limit is reached")
        connection.close()


def test_a_user_created_with_a_computed_password_hash_can_log_in(
    node: BrokerProcess, client: HttpClient
) -> None:
    hashed = client.get("/auth/hash_password/s%20%2fcret")["ok"]
    assert hashed != client.get("/auth/hash_password/s%20%2fcret")["ok"]
    client.ask("PUT /users/hashed", {"password_hash": hashed, "tags": "management"})
    assert HttpClient(node, "hashed:s /cret").get("/whoami")["name"] == "hashed"
    in_body = client.ask("POST /auth/hash_password", {"password": "other"}).value["ok"]
    client.ask("PUT /users/hashed", {"password_hash": in_body, "tags": "management"})
    assert HttpClient(node, "hashed:other").get("/whoami")["name"] == "hashed"
    assert client.refusal("POST /auth/hash_password", {"password": 5}) == (400, "password must be a string")
    client.ask("DELETE /users/hashed")


def test_the_queues_that_a_user_has_declared_are_listed(node: BrokerProcess, client: HttpClient) -> None:
    client.ask("PUT /users/declarer", {"password": "d", "tags": "management"})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    client.ask("PUT /permissions/%2f/declarer", everything)
    client.ask("PUT /queues/%2f/of-guest", {"durable": True})
    HttpClient(node, "declarer:d").ask("PUT /queues/%2f/of-declarer", {"durable": True})
    assert [queue["name"] for queue in client.get("/users/declarer/queues")] == ["of-declarer"]
    assert "of-guest" in [queue["name"] for queue in client.get("/users/guest/queues")]
    assert client.get("/users/nobody/queues") == []
    for line in ("queues/%2f/of-guest", "queues/%2f/of-declarer", "users/declarer"):
        client.ask(f"DELETE /{line}")


def test_a_cluster_that_lacks_nodes_has_not_reached_its_target_size(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text("cluster_formation.target_cluster_size_hint = 3\n")
    with broker(config=tmp_path / "rabbitmq.conf") as started:
        answer = HttpClient(started).ask("GET /health/checks/reached-target-cluster-size")
        assert (answer.status, answer.value["online"], answer.value["target"]) == (503, 1, 3)
        assert answer.reason == "target cluster size not reached: 1 of 3 nodes are online"


def test_an_expiring_certificate_is_named(tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("localhost", not_after=datetime.now(UTC) + timedelta(days=10))
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    (tmp_path / "rabbitmq.conf").write_text(
        f"listeners.ssl.default = 127.0.0.1:0\nssl_options.certfile = {tmp_path}/server.pem\n"
        f"ssl_options.keyfile = {tmp_path}/server.pem\n"
    )
    with broker(config=tmp_path / "rabbitmq.conf") as started:
        client = HttpClient(started)
        assert client.get("/health/checks/certificate-expiration/1/weeks") == {"status": "ok"}
        answer = client.ask("GET /health/checks/certificate-expiration/1/months")
        assert (answer.status, answer.reason) == (503, "Certificates expiring")
        assert [entry["certfile"] for entry in answer.value["expired"]] == [f"{tmp_path}/server.pem"]


def test_the_deprecated_health_check_answers(client: HttpClient) -> None:
    (name,) = (node["name"] for node in client.get("/nodes"))
    assert client.get("/healthchecks/node") == client.get(f"/healthchecks/node/{name}") == {"status": "ok"}
    assert client.status("GET /healthchecks/node/nosuch") == 404


def test_feature_flags_are_listed(client: HttpClient) -> None:
    states = {flag["name"]: flag["state"] for flag in client.get("/feature-flags")}
    assert states["user_limits"] == "enabled"
    assert (states["stream_queue"], states["quorum_queue"]) == ("enabled", "enabled")
    assert client.status("PUT /feature-flags/user_limits/enable", {}) == 204
    assert client.refusal("PUT /feature-flags/nosuch/enable", {}) == (400, "unsupported")


def test_login_attempts_are_counted(node: BrokerProcess, client: HttpClient) -> None:
    (name,) = (entry["name"] for entry in client.get("/nodes"))
    assert client.status(f"DELETE /auth/attempts/{name}") == 204
    HttpClient(node, "guest:wrong").ask("GET /whoami")
    assert client.get(f"/auth/attempts/{name}") == [
        {"protocol": "http", "auth_attempts": 2, "auth_attempts_failed": 1, "auth_attempts_succeeded": 1}
    ]
    assert client.get(f"/auth/attempts/{name}/source") == []
    assert client.status("GET /auth/attempts/nosuch") == 404


def test_a_login_by_form_does_not_store_the_password(node: BrokerProcess) -> None:
    stranger = HttpClient(node, None)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = stranger.ask("POST /login", b"username=guest&password=guest", headers)
    assert (answer.status, answer.value) == (200, "ok")
    assert "set-cookie" not in {name.lower() for name in answer.headers}
    answer = stranger.ask("POST /login", b"username=guest&password=wrong", headers)
    assert (answer.status, answer.reason) == (401, "Login failed")
    assert stranger.status("POST /login") == 401


def test_endpoints_of_clusters_answer_for_one_node(node: BrokerProcess, client: HttpClient) -> None:
    assert client.status("POST /rebalance/queues", {}) == 204
    assert client.status("DELETE /reset") == 204
    assert client.status("DELETE /reset/nosuch") == 404
    assert [set(entry) for entry in client.get("/extensions")] == [{"javascript"}]
    assert HttpClient(node, None).get("/auth") == {
        "oauth_enabled": False, "enable_uaa": False, "uaa_client_id": "", "uaa_location": "",
    }  # fmt: skip


def test_a_trailing_slash_makes_no_difference(client: HttpClient) -> None:
    assert client.get("/users/") == client.get("/users")


def test_the_facts_about_the_node_are_true(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text(
        "auth_mechanisms.1 = PLAIN\nlog.file = node.log\n"
        f"log.dir = {tmp_path}\ntcp_listen_options.backlog = 7\n"
    )
    with broker("--in-memory", config=tmp_path / "rabbitmq.conf") as started:
        client = HttpClient(started)
        (node,) = client.get("/nodes")
        enabled = {entry["name"]: entry["enabled"] for entry in node["auth_mechanisms"]}
        assert enabled == {"PLAIN": True, "AMQPLAIN": False, "EXTERNAL": False}
        assert node["log_files"] == [str(tmp_path / "node.log"), "<stderr>"]
        assert node["type"] == "ram"
        assert "rabbitmq_stream" in node["enabled_plugins"]
        (amqp,) = (entry for entry in client.get("/overview")["listeners"] if entry["protocol"] == "amqp")
        assert amqp["socket_opts"] == {"backlog": 7, "nodelay": True, "keepalive": False}


def test_the_replicas_of_a_queue_that_is_not_replicated_are_refused_as_by_rabbitmq(
    client: HttpClient,
) -> None:
    assert client.status("PUT /queues/%2F/plain", {"durable": True}) == 201
    here = client.get("/overview")["node"]
    path = "/queues/quorum/%2F/plain"
    try:
        for found, reason in (
            (client.ask(f"GET {path}/status"), "Cannot get quorum status of a classic queue"),
            (
                client.ask(f"POST {path}/replicas/add", {"node": here}),
                "Cannot add members to a classic queue",
            ),
            (
                client.ask(f"DELETE {path}/replicas/delete", {"node": here}),
                "Cannot add members to a classic queue",
            ),
        ):
            assert (found.status, found.reason) == (400, reason)
        assert client.status("GET /queues/quorum/%2F/nosuch/status") == 404
    finally:
        assert client.status("DELETE /queues/%2F/plain") == 204
