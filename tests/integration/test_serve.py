"""`warren serve` as a process: starting, refusing to start, and stopping."""

import base64
import http.client
import json
import os
import signal
import socket
import ssl
from pathlib import Path

import pika
import pytest
import trustme
from tests.integration.broker_process import BrokerProcess, broker, refusal


def connect(
    port: int, user: str = "guest", password: str = "guest", vhost: str = "/"
) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, vhost, credentials))


def get(port: int, path: str, credentials: str | None = "guest:guest") -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {}
    if credentials is not None:
        headers["authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, json.loads(body) if body else None


def test_it_prints_its_listeners_and_accepts_connections() -> None:
    with broker() as started:
        assert set(started.ports) == {"amqp", "stream", "http", "http/prometheus"}
        connection = connect(started.port)
        channel = connection.channel()
        name = channel.queue_declare("").method.queue
        channel.basic_publish("", name, b"hello")
        method, _, body = channel.basic_get(name, auto_ack=True)
        assert method is not None
        assert body == b"hello"
        connection.close()
        assert started.stop() == 0
        assert started.process.stdout is not None
        said = started.process.stdout.read()
        assert f"port {started.port}" in said
        assert f"warren perf throughput --uri amqp://guest:guest@127.0.0.1:{started.port}/%2f" in said


def test_sigterm_closes_the_connections_and_ends_with_status_0() -> None:
    with broker() as started:
        connection = connect(started.port)
        channel = connection.channel()
        channel.queue_declare("q", exclusive=True)
        started.process.send_signal(signal.SIGTERM)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
            connection.process_data_events(time_limit=30)
        assert caught.value.reply_code == 320
        text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
        assert caught.value.reply_text == text
        assert started.stop() == 0
        assert any("stopped" in line for line in started.lines)


def test_a_service_manager_is_notified_of_ready_reload_and_stop(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(15)
        with broker(NOTIFY_SOCKET=str(tmp_path / "notify")) as started:
            ready = ear.recv(4096).decode().splitlines()
            assert ready[0] == "READY=1"
            assert f":{started.port}" in ready[1]
            started.process.send_signal(signal.SIGHUP)
            assert ear.recv(4096).startswith(b"RELOADING=1\n")
            assert ear.recv(4096).decode().splitlines() == ready
            started.process.send_signal(signal.SIGTERM)
            assert ear.recv(4096).startswith(b"STOPPING=1\n")


def test_a_client_that_does_not_answer_the_close_is_dropped_after_the_grace_time() -> None:
    with broker(WARREN_SHUTDOWN_GRACE="200") as started:
        deaf = socket.create_connection(("127.0.0.1", started.port))
        deaf.sendall(b"AMQP\x00\x00\x09\x01")
        assert deaf.recv(1)
        assert started.stop() == 0
        deaf.close()


def test_a_client_without_a_handshake_is_dropped_in_time() -> None:
    with broker(WARREN_HANDSHAKE_TIMEOUT="200") as started:
        for start in (b"", b"AMQ", b"AMQP\x00\x00\x09\x01"):
            silent = socket.create_connection(("127.0.0.1", started.port), timeout=10)
            silent.sendall(start)
            while silent.recv(4096):
                pass
            silent.close()


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, errors = refusal("--port", port)
    assert status == 1
    assert errors.splitlines()[-1] == f"warren: cannot listen on 127.0.0.1, port {port}: the port is in use"


def test_an_http_port_in_use_prevents_the_start_only_if_it_was_configured() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, errors = refusal("--management-port", port)
    assert status == 1
    assert errors.splitlines()[-1].endswith(f"port {port}: the port is in use")


def test_a_data_directory_can_be_used_by_one_process(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path / "data")) as started:
        status, errors = refusal("--data-dir", str(tmp_path / "data"))
        pid = started.process.pid
    assert status == 1
    assert errors.splitlines()[-1].endswith(f"is in use by process {pid}")
    with broker("--data-dir", str(tmp_path / "data")):
        pass


# The environment of a broker whose user has not configured a data directory.
SILENT = {"WARREN_IN_MEMORY": "false"}


def test_data_without_configuration_survives_a_restart_and_its_place_is_printed(tmp_path: Path) -> None:
    environment = SILENT | {"XDG_DATA_HOME": str(tmp_path)}
    place = tmp_path / "warren"
    with broker(**environment) as started:
        assert started.lines[-1].endswith(f"; data in {place}\n")
        assert get(started.ports["http"], "/api/overview")[1]["in_memory"] is False
        channel = connect(started.port).channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("", "kept", b"here", pika.BasicProperties(delivery_mode=2))
        status, errors = refusal(**environment)
        assert status == 1
        said = f"the data directory '{place}' is in use by process {started.process.pid}"
        assert errors.splitlines()[-1] == f"warren: {said}"
        assert started.stop() == 0
        assert f"Its data is in {place}." in started.process.stdout.read()
    with broker(**environment) as started:
        assert connect(started.port).channel().basic_get("kept", auto_ack=True)[2] == b"here"


def test_a_node_in_memory_says_so_and_writes_nothing(tmp_path: Path) -> None:
    with broker("--in-memory", **SILENT, XDG_DATA_HOME=str(tmp_path)) as started:
        assert started.lines[-1].endswith("; in memory only\n")
        assert [line for line in started.lines if "warning" in line and "in memory only" in line]
        assert get(started.ports["http"], "/api/overview")[1]["in_memory"] is True
        assert list(tmp_path.iterdir()) == []
        assert started.stop() == 0
        assert "Everything is kept in memory only and is lost when it stops." in started.process.stdout.read()


def test_memory_and_a_directory_together_are_refused(tmp_path: Path) -> None:
    status, errors = refusal("--in-memory", "--data-dir", str(tmp_path))
    assert status == 1
    assert errors.splitlines()[-1].startswith("warren: data_dir and in_memory are both set")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("heartbeet = 1", "unknown key 'heartbeet' (did you mean 'heartbeat'?)"),
        ("load_definitions = /nowhere.json", "definitions file '/nowhere.json': No such file or directory"),
        ("listeners.ssl.default = 127.0.0.1:0", "TLS: a TLS listener needs"),
    ],
)
def test_an_invalid_configuration_is_one_line(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "rabbitmq.conf").write_text(line + "\n")
    status, errors = refusal("--config", str(tmp_path / "rabbitmq.conf"))
    assert status == 1
    assert errors.splitlines()[-1].startswith("warren: ")
    assert reason in errors.splitlines()[-1]
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "is not JSON"), ('{"users": 5}', "users"), ('{"queues": [{}]}', "queue '': name is missing")],
)
def test_an_invalid_definitions_file_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "definitions.json").write_text(text)
    status, errors = refusal(WARREN_LOAD_DEFINITIONS=str(tmp_path / "definitions.json"))
    assert status == 1
    last = errors.splitlines()[-1]
    assert last.startswith(f"warren: definitions file '{tmp_path}/definitions.json'")
    assert reason in last
    assert "Traceback" not in errors


def test_objects_of_the_configuration_exist(tmp_path: Path) -> None:
    definitions = {
        "users": [
            {
                "name": "alice",
                "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["administrator"],
            }
        ],
        "vhosts": [{"name": "orders"}],
        "permissions": [{"user": "alice", "vhost": "orders", "configure": ".*", "write": ".*", "read": ".*"}],
        "queues": [{"name": "q", "vhost": "orders", "durable": True, "auto_delete": False, "arguments": {}}],
        "exchanges": [
            {"name": "x", "vhost": "orders", "type": "topic", "durable": True, "auto_delete": False,
             "internal": False, "arguments": {}}
        ],
        "bindings": [
            {"source": "x", "vhost": "orders", "destination": "q", "destination_type": "queue",
             "routing_key": "a.#", "arguments": {}}
        ],
    }  # fmt: skip
    (tmp_path / "definitions.json").write_text(json.dumps(definitions))
    (tmp_path / "rabbitmq.conf").write_text(f"load_definitions = {tmp_path}/definitions.json\n")
    with broker(config=tmp_path / "rabbitmq.conf") as started:
        connection = connect(started.port, "alice", "test12", "orders")
        channel = connection.channel()
        channel.basic_publish("x", "a.b", b"hello")
        assert channel.basic_get("q", auto_ack=True)[2] == b"hello"
        connection.close()
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(started.port)


def test_the_default_user_can_be_configured(tmp_path: Path) -> None:
    lines = [
        "default_user = bob",
        "default_pass = 'a#b'",
        "default_vhost = v",
        "default_user_tags.none = true",
    ]
    (tmp_path / "rabbitmq.conf").write_text("\n".join(lines))
    with broker(config=tmp_path / "rabbitmq.conf") as started:
        connect(started.port, "bob", "a#b", "v").close()
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(started.port)
        assert get(started.ports["http"], "/api/whoami", "bob:a#b") == (
            401,
            {"error": "not_authorised", "reason": "Not management user"},
        )
        started.stop()
        assert "a#b" not in "".join(started.lines)


def test_a_refused_login_is_logged_without_its_password() -> None:
    with broker() as started:
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(started.port, "guest", "topsecret")
        started.stop()
        log = "".join(started.lines)
        assert "topsecret" not in log
        assert "PLAIN login refused: user 'guest' - invalid credentials" in log


def test_tls_listeners_and_user_names_from_certificates_work(tmp_path: Path) -> None:
    authority = trustme.CA()
    server, client = authority.issue_cert("localhost"), authority.issue_cert("x", common_name="guest")
    server.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    (tmp_path / "rabbitmq.conf").write_text(
        f"""
        listeners.ssl.default = 127.0.0.1:0
        ssl_options.certfile = {tmp_path}/server.pem
        ssl_options.keyfile = {tmp_path}/server.pem
        ssl_options.cacertfile = {tmp_path}/ca.pem
        ssl_options.verify = verify_peer
        ssl_options.fail_if_no_peer_cert = true
        ssl_cert_login_from = common_name
        auth_mechanisms.1 = PLAIN
        auth_mechanisms.2 = EXTERNAL
        """
    )
    context = ssl.create_default_context()
    authority.configure_trust(context)
    client.configure_cert(context)
    with broker(config=tmp_path / "rabbitmq.conf") as started:
        parameters = pika.ConnectionParameters(
            "127.0.0.1",
            started.ports["amqp/ssl"],
            credentials=pika.credentials.ExternalCredentials(),
            ssl_options=pika.SSLOptions(context, "localhost"),
        )
        connection = pika.BlockingConnection(parameters)
        connection.channel().queue_declare("", exclusive=True)
        connection.close()
        renewed = trustme.CA()
        renewed.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
        started.process.send_signal(signal.SIGHUP)
        assert started.process.stderr is not None
        for line in started.process.stderr:
            if "certificates reloaded" in line:
                break
        with pytest.raises(ssl.SSLCertVerificationError):
            pika.BlockingConnection(parameters)


def test_health_checks_answer_as_in_rabbitmq() -> None:
    with broker() as started:
        port = started.ports["http"]
        for path in ("alarms", "local-alarms", "virtual-hosts"):
            assert get(port, f"/api/health/checks/{path}") == (200, {"status": "ok"})
        assert get(port, f"/api/health/checks/port-listener/{started.port}") == (
            200,
            {"status": "ok", "port": started.port},
        )
        status, body = get(port, "/api/health/checks/port-listener/1")
        assert status == 503
        assert isinstance(body, dict)
        assert body["reason"] == "No active listener"
        assert body["missing"] == 1
        assert sorted(body["ports"]) == sorted(started.ports.values())
        assert get(port, "/api/health/checks/port-listener/bananas")[0] == 400
        assert get(port, "/api/health/checks/protocol-listener/amqp091") == (
            200,
            {"status": "ok", "protocol": "amqp"},
        )
        assert get(port, "/api/health/checks/protocol-listener/mqtt")[0] == 503


def test_the_http_api_authenticates_its_users() -> None:
    with broker() as started:
        port = started.ports["http"]
        assert get(port, "/api/whoami") == (200, {"name": "guest", "tags": ["administrator"]})
        assert get(port, "/api/whoami", None) == (401, None)
        refused = (401, {"error": "not_authorized", "reason": "Login failed"})
        assert get(port, "/api/whoami", "guest:wrong") == refused
        assert get(port, "/api/whoami", "nobody:guest") == refused
        assert get(port, "/api/nonsense") == (404, {"error": "Object Not Found", "reason": "Not Found"})


def test_the_overview_counts_existing_objects() -> None:
    with broker() as started:
        connection = connect(started.port)
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_consume("q", lambda *_: None)
        status, body = get(started.ports["http"], "/api/overview")
        assert status == 200
        assert isinstance(body, dict)
        assert body["object_totals"] == {
            "connections": 1,
            "channels": 1,
            "exchanges": 8,
            "queues": 1,
            "consumers": 1,
        }
        assert body["rabbitmq_version"] == "3.10.8"
        metrics = http.client.HTTPConnection("127.0.0.1", started.ports["http/prometheus"], timeout=10)
        metrics.request("GET", "/metrics")
        text = metrics.getresponse().read().decode()
        assert "rabbitmq_connections 1\n" in text
        assert "rabbitmq_queues 1\n" in text
        connection.close()


def test_an_interrupt_during_the_start_ends_it_with_one_line(tmp_path: Path) -> None:
    fifo = tmp_path / "definitions.json"
    os.mkfifo(fifo)
    starting = BrokerProcess([], {"WARREN_LOAD_DEFINITIONS": str(fifo)})
    with fifo.open("w") as definitions:
        definitions.write("{}")
    starting.wait_ready()
    assert starting.stop() == 0
