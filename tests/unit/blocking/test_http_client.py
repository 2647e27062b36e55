"""The HTTP client against a server on a socket: which connections it opens, and what it raises."""

import http.client
import queue
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from warren.blocking.http_client import HttpClient
from warren.blocking.http_target import HttpTarget
from warren.blocking.tls import TlsNames, client_context
from warren.client.uri import NO_FILES, ClientTls
from warren.limits_http import HTTP_CLIENT_IDLE_MAX

NAMES = TlsNames(ca_file="--ca", cert_file="--cert", key_file="--key", key_password="SECRET")
TIMEOUT_S = 30.0


@dataclass
class Served:
    """An HTTP server that records its connections, those that it closed, and the requests that it read."""

    port: int = 0
    accepted: list[socket.socket] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    closed: queue.SimpleQueue[object] = field(default_factory=queue.SimpleQueue)
    is_over: threading.Event = field(default_factory=threading.Event)
    # The number of requests after which the connection is closed without an answer.
    unanswered: int = 0
    handshakes: int = 0

    def client(
        self, *, host: str = "127.0.0.1", timeout_s: float = TIMEOUT_S, context: ssl.SSLContext | None = None
    ) -> HttpClient:
        target = HttpTarget(
            host=host, port=self.port, is_tls=context is not None, user="al", password="s", prefix="/p"
        )
        return HttpClient(target, timeout_s, context)

    def close_connections(self) -> None:
        for accepted in self.accepted:
            accepted.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    """Answers according to the path."""

    protocol_version = "HTTP/1.1"
    served: Served

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.served.requests.append((self.command, self.path, headers, self._body()))
        if self.served.unanswered:
            self.served.unanswered -= 1
            self.close_connection = True
            return
        self._answer()

    do_POST = do_DELETE = do_GET  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self) -> None:
        if self.path == "/p/silent":
            self.served.is_over.wait(TIMEOUT_S)
            self.close_connection = True
        elif self.path == "/p/cut":
            self._send(200, b"short", ("Content-Length", "100"))
            self.close_connection = True
        elif self.path == "/p/chunks":
            self._send(200, b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", ("Transfer-Encoding", "chunked"))
        elif self.path == "/p/moved":
            self._send(301, b"", ("Location", "/p/x"), ("Content-Length", "0"))
        else:
            self._send(404 if self.path == "/p/missing" else 200, b"0123456789", ("Content-Length", "10"))

    def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        return


@contextmanager
def serving(*, authority: trustme.CA | None = None, host: str = "127.0.0.1") -> Iterator[Served]:
    served = Served()

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def get_request(self) -> tuple[socket.socket, object]:
            accepted, address = super().get_request()
            served.accepted.append(accepted)
            if authority is not None:
                accepted = context.wrap_socket(accepted, server_side=True)
                served.handshakes += 1
            return accepted, address

        def shutdown_request(self, request: object) -> None:
            super().shutdown_request(request)  # type: ignore[arg-type]
            served.closed.put(request)

    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
    with Server((host, 0), type("Bound", (Handler,), {"served": served})) as server:
        served.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            served.is_over.set()
            server.shutdown()
            thread.join()


def read(client: HttpClient, method: str = "GET", path: str = "/x") -> bytes:
    with client.request(method, path) as response:
        return response.read()


def test_successive_requests_use_one_connection() -> None:
    with serving() as served:
        client = served.client()
        for method in ("GET", "POST", "DELETE", "GET"):
            assert read(client, method) == b"0123456789"
        for path in ("/missing", "/moved", "/chunks"):
            read(client, path=path)
        assert len(served.accepted) == 1
        assert len(served.requests) == 7
        client.close()


def test_a_request_has_the_path_prefix_and_user_and_names_no_library() -> None:
    with serving() as served:
        client = served.client()
        with client.request("POST", "/%2F/a%20b?c=d%2f", b"body", {"x-one": "1"}) as response:
            assert (response.status, response.reason) == (200, "OK")
        with client.request("GET", "/", is_anonymous=True) as response:
            response.read()
        method, path, headers, body = served.requests[0]
        assert (method, path, body) == ("POST", "/p/%2F/a%20b?c=d%2F", b"body")
        assert headers == {
            "host": f"127.0.0.1:{served.port}",
            "accept-encoding": "identity",
            "content-length": "4",
            "x-one": "1",
            "authorization": "Basic YWw6cw==",
        }
        assert "authorization" not in served.requests[1][2]


def test_a_redirect_is_returned_instead_of_followed() -> None:
    with serving() as served, served.client().request("GET", "/moved") as response:
        assert response.status == 301
    assert len(served.requests) == 1


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving() as served:
        assert read(served.client()) == b"0123456789"


def test_an_ipv6_address_is_accepted_as_a_host() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(host="::1") as served:
        assert read(served.client(host="::1")) == b"0123456789"


def test_an_invalid_host_name_is_refused() -> None:
    with pytest.raises((ValueError, OSError)):
        read(Served(port=1).client(host="a..b"))


def test_a_connection_that_the_server_closed_is_replaced() -> None:
    with serving() as served:
        client = served.client()
        read(client)
        served.close_connections()
        assert read(client, "POST") == b"0123456789"
        assert len(served.accepted) == 2


def test_an_idempotent_request_on_a_lost_idle_connection_is_sent_once_more() -> None:
    with serving() as served:
        client = served.client()
        read(client)
        served.unanswered = 1
        assert read(client) == b"0123456789"
        assert (len(served.accepted), len(served.requests)) == (2, 3)
        served.unanswered = 2
        with pytest.raises(http.client.RemoteDisconnected):
            read(client)
        assert len(served.requests) == 5


def test_a_request_that_is_not_idempotent_is_never_repeated() -> None:
    with serving() as served:
        client = served.client()
        read(client)
        served.unanswered = 1
        with pytest.raises(http.client.RemoteDisconnected):
            read(client, "POST")
        assert len(served.requests) == 2
        read(client)
        served.unanswered = 1
        with client.request("POST", "/x", b"", is_idempotent=True) as response:
            assert response.status == 200


def test_a_request_on_a_new_connection_is_not_repeated() -> None:
    with serving() as served:
        served.unanswered = 1
        with pytest.raises(http.client.RemoteDisconnected):
            read(served.client())
        assert len(served.requests) == 1


def test_a_body_in_pieces_is_sent_in_chunks_over_a_new_connection() -> None:
    with serving() as served:
        client = served.client()
        read(client)
        with client.request("POST", "/x", (piece for piece in (b"ab", b"c"))) as response:
            assert response.read() == b"0123456789"
        read(client)
        assert served.requests[1][3] == b"abc"
        assert served.requests[1][2]["transfer-encoding"] == "chunked"
        assert len(served.accepted) == 2


def test_the_connection_of_a_body_in_pieces_is_closed_when_its_response_was_read() -> None:
    with serving() as served:
        client = served.client()
        response = client.request("POST", "/x", iter((b"ab", b"c")))
        assert served.closed.empty()
        assert response.read() == b"0123456789"
        assert served.closed.get(timeout=TIMEOUT_S) is served.accepted[0]
        client.close()


def test_a_response_that_was_not_read_to_its_end_closes_its_connection() -> None:
    with serving() as served:
        client = served.client()
        with client.request("GET", "/x") as response:
            assert response.read(4) == b"0123"
        with client.request("GET", "/x") as response:
            assert response.read(11) == b"0123456789"
        read(client)
        assert len(served.accepted) == 2


def test_a_truncated_response_is_an_error() -> None:
    with serving() as served, pytest.raises(http.client.IncompleteRead):
        read(served.client(), path="/cut")


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    with serving() as served, pytest.raises(TimeoutError):
        read(served.client(timeout_s=0.2), path="/silent")


def test_a_refused_connection_raises_the_error_of_the_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(ConnectionRefusedError, match="refused"):
        read(Served(port=port).client())


def test_threads_share_the_client_and_few_idle_connections_remain() -> None:
    with serving() as served:
        client = served.client()
        answers: list[bytes] = []

        def ask() -> None:
            answers.extend(read(client) for _ in range(5))

        threads = [threading.Thread(target=ask) for _ in range(HTTP_CLIENT_IDLE_MAX)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [b"0123456789"] * 5 * HTTP_CLIENT_IDLE_MAX
        assert len(served.accepted) <= HTTP_CLIENT_IDLE_MAX


def test_the_tls_context_is_created_once_and_a_wrong_certificate_raises_the_error_of_ssl(
    tmp_path: Path,
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trusted = client_context(ClientTls(ca_file=str(tmp_path / "ca.pem")), NAMES)
    with serving(authority=authority) as served:
        client = served.client(context=trusted)
        for _ in range(5):
            assert read(client) == b"0123456789"
        assert (len(served.accepted), served.handshakes) == (1, 1)
        with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
            read(served.client(context=client_context(NO_FILES, NAMES)))


def test_disabled_verification_writes_no_warning() -> None:
    with serving(authority=trustme.CA()) as served, warnings.catch_warnings(record=True) as written:
        warnings.simplefilter("always")
        context = client_context(ClientTls(is_verified=False), NAMES)
        assert read(served.client(context=context)) == b"0123456789"
    assert not written


def test_a_request_without_tls_to_a_tls_port_raises_an_error() -> None:
    with serving(authority=trustme.CA()) as served, pytest.raises((OSError, http.client.HTTPException)):
        read(served.client())
