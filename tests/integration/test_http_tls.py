"""The HTTP API and metrics with TLS, in addition to or instead of plain HTTP."""

import http.client
import json
import signal
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.test_tls import client_context, write
from tests.patience import patient

TIMEOUT_S = patient(30)
GUEST = {"authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}


def files(folder: Path, authority: trustme.CA, prefix: str) -> dict[str, str]:
    settings = write(folder, authority)
    return {
        f"{prefix}.port": "0",
        f"{prefix}.ip": "127.0.0.1",
        f"{prefix}.certfile": settings.certificate_file,
        f"{prefix}.keyfile": settings.key_file,
        f"{prefix}.cacertfile": settings.authority_file,
    }


def config(folder: Path, lines: Mapping[str, str]) -> Path:
    path = folder / "warren.conf"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


def get(node: BrokerProcess, protocol: str, path: str, context: ssl.SSLContext) -> http.client.HTTPResponse:
    """The response to a GET as guest, whose body is not read yet."""
    connection = http.client.HTTPSConnection(
        "localhost", node.ports[protocol], timeout=TIMEOUT_S, context=context
    )
    connection.request("GET", path, headers=GUEST)
    return connection.getresponse()


def test_the_api_and_metrics_are_served_with_tls_and_listed(tmp_path: Path) -> None:
    authority = trustme.CA()
    lines = files(tmp_path, authority, "management.ssl") | files(tmp_path, authority, "prometheus.ssl")
    policy = "max-age=31536000; includeSubDomains"
    lines["management.hsts.policy"] = policy
    with broker(config=config(tmp_path, lines)) as node:
        context = client_context(authority)
        answer = get(node, "https", "/api/overview", context)
        assert (answer.status, answer.headers["strict-transport-security"]) == (200, policy)
        shown = {(one["protocol"], one["port"]) for one in json.load(answer)["listeners"]}
        assert {("https", node.ports["https"]), ("https/prometheus", node.ports["https/prometheus"])} <= shown
        assert {"http", "http/prometheus"} <= {protocol for protocol, _ in shown}
        answer = get(node, "https/prometheus", "/metrics", context)
        assert answer.status == 200
        assert b"rabbitmq_build_info" in answer.read()
        answer = get(node, "https", "/api/health/checks/certificate-expiration/1/days", context)
        assert answer.status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            get(node, "https", "/api/overview", client_context(trustme.CA()))
        plain = http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
        plain.request("GET", "/api/overview", headers=GUEST)
        assert plain.getresponse().headers["strict-transport-security"] is None
        plain.close()


def test_new_certificates_are_served_after_a_signal(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    with broker(config=config(tmp_path, files(tmp_path, old, "management.ssl"))) as node:
        assert get(node, "https", "/api/whoami", client_context(old)).status == 200
        write(tmp_path, new)
        node.process.send_signal(signal.SIGHUP)
        node.wait_for("certificates reloaded")
        assert get(node, "https", "/api/whoami", client_context(new)).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            get(node, "https", "/api/whoami", client_context(old))


def test_clients_without_a_required_certificate_are_refused(tmp_path: Path) -> None:
    authority = trustme.CA()
    lines = files(tmp_path, authority, "management.ssl") | {
        "management.ssl.verify": "verify_peer",
        "management.ssl.fail_if_no_peer_cert": "true",
        "management.ssl.versions.1": "tlsv1.2",
    }
    with broker(config=config(tmp_path, lines)) as node:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(node, "https", "/api/whoami", client_context(authority))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(node, "https", "/api/whoami", client_context(authority, trustme.CA().issue_cert("somebody")))
        context = client_context(authority, authority.issue_cert("somebody"))
        assert get(node, "https", "/api/whoami", context).status == 200


ALERTS = (
    ("tlsv1.2", "nothing", "SSLV3_ALERT_HANDSHAKE_FAILURE"),
    ("tlsv1.2", "a stranger's", "TLSV1_ALERT_UNKNOWN_CA"),
    ("tlsv1.3", "nothing", "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
    ("tlsv1.3", "a stranger's", "TLSV1_ALERT_UNKNOWN_CA"),
)


@pytest.mark.parametrize(("version", "shown", "alert"), ALERTS)
def test_a_client_is_told_what_is_wrong_with_its_certificate(
    tmp_path: Path, version: str, shown: str, alert: str
) -> None:
    authority = trustme.CA()
    lines = files(tmp_path, authority, "management.ssl")
    for prefix in ("management.ssl", "ssl_options"):
        of_prefix = {key.replace("management.ssl", prefix): lines[key] for key in lines if "file" in key}
        lines |= of_prefix | {
            f"{prefix}.verify": "verify_peer",
            f"{prefix}.fail_if_no_peer_cert": "true",
            f"{prefix}.versions.1": version,
        }
    lines["listeners.ssl.default"] = "127.0.0.1:0"
    certificate = None if shown == "nothing" else trustme.CA().issue_cert("somebody")
    context = client_context(authority, certificate)
    with broker(config=config(tmp_path, lines)) as node:
        for protocol in ("https", "amqp/ssl"):
            with (
                pytest.raises(ssl.SSLError) as caught,
                socket.create_connection(("127.0.0.1", node.ports[protocol]), TIMEOUT_S) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as connected,
            ):
                connected.recv(1)
            assert caught.value.reason == alert


@pytest.mark.parametrize("prefix", ["management.ssl", "prometheus.ssl"])
def test_a_tls_port_without_a_certificate_is_refused_by_name(tmp_path: Path, prefix: str) -> None:
    path = config(tmp_path, {f"{prefix}.port": "15671"})
    status, errors = refusal("--config", str(path))
    assert status != 0
    assert f"a TLS listener needs {prefix}.certfile and {prefix}.keyfile" in errors
