"""A broker refuses clients whose certificates are in a list that a web server has."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pika
import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from tests.integration.broker_process import broker
from tests.integration.test_http_tls import config
from tests.unit.node.authority import Authority, Certified, point


class ListServer:
    """A web server with one list."""

    def __init__(self) -> None:
        self.body = b""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if server.body else 503)
                self.send_header("content-length", str(len(server.body)))
                self.end_headers()
                self.wfile.write(server.body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/list.crl"


@contextmanager
def list_server() -> Iterator[ListServer]:
    server = ListServer()
    thread = threading.Thread(target=server.http.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


def connect(folder: Path, port: int, authority: Authority, client: Certified) -> None:
    """Connect as `client`, and close the connection; raises what pika does if that is refused."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    file = folder / "client.pem"
    file.write_bytes(client.pem_with_key)
    context.load_cert_chain(file)
    options = pika.SSLOptions(context, "localhost")
    pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, ssl_options=options)).close()


@pytest.mark.parametrize("is_available", [True, False], ids=["available", "unavailable"])
def test_a_list_is_fetched_before_clients_connect(tmp_path: Path, is_available: bool) -> None:
    authority = Authority("authority")
    good, bad = authority.issue("good"), authority.issue("bad")
    with list_server() as server:
        server.body = authority.revoked(bad).public_bytes(Encoding.DER) if is_available else b""
        (tmp_path / "ca.pem").write_bytes(authority.pem)
        own = authority.issue("localhost", point(server.url))
        (tmp_path / "server.pem").write_bytes(own.pem_with_key)
        lines = {
            "listeners.ssl.default": "127.0.0.1:0",
            "ssl_options.cacertfile": str(tmp_path / "ca.pem"),
            "ssl_options.certfile": str(tmp_path / "server.pem"),
            "ssl_options.keyfile": str(tmp_path / "server.pem"),
            "ssl_options.verify": "verify_peer",
            "ssl_options.fail_if_no_peer_cert": "true",
            "ssl_options.crl_check": "peer",
            "ssl_options.crl_sources.1": "http",
        }
        with broker("--in-memory", config=config(tmp_path, lines)) as node:
            port = node.ports["amqp/ssl"]
            with pytest.raises(pika.exceptions.AMQPConnectionError):
                connect(tmp_path, port, authority, bad)
            log = "".join(node.lines)
            if is_available:
                connect(tmp_path, port, authority, good)
                assert "the list of certificates that CN=authority has revoked was fetched" in log
            else:
                with pytest.raises(pika.exceptions.AMQPConnectionError):
                    connect(tmp_path, port, authority, good)
                assert f"{server.url} answered with status 503; without a current list, all" in log
