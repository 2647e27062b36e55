"""Common properties of all HTTP answers: encodings, CORS, path prefix, timeouts."""

import gzip
import http.client
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient

TIMEOUT_S = patient(30)
SITE = "https://board.example"
CONFIG = f"""
management.cors.allow_origins.1 = {SITE}
management.cors.max_age = 60
management.csp.policy = default-src 'self'
prometheus.path = /numbers
"""


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    path = tmp_path_factory.mktemp("config") / "warren.conf"
    path.write_text(CONFIG)
    with broker(config=path) as node:
        yield node


PATIENCE = """
management.tcp.idle_timeout = 1000
management.tcp.request_timeout = 2000
management.tcp.max_keepalive = 2
management.tcp.compress = false
prometheus.tcp.max_keepalive = infinity
"""


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    path = tmp_path_factory.mktemp("impatient") / "warren.conf"
    path.write_text(PATIENCE)
    with broker(config=path) as node:
        yield node


def asked(
    node: BrokerProcess, protocol: str, request: str, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    """Headers and body of the answer to METHOD and path."""
    where = http.client.HTTPConnection("127.0.0.1", node.ports[protocol], timeout=TIMEOUT_S)
    with closing(where) as connection:
        method, path = request.split()
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        return response, response.read()


def scrape(node: BrokerProcess, path: str, encoding: str) -> tuple[int, str | None, bytes]:
    response, body = asked(node, "http/prometheus", f"GET {path}", accept_encoding=encoding)
    return response.status, response.headers["content-encoding"], body


@pytest.mark.parametrize("encoding", ["gzip", "deflate, gzip;q=0.5", "br, GZIP"])
def test_metrics_are_compressed_if_the_client_accepts_it(node: BrokerProcess, encoding: str) -> None:
    status, used, body = scrape(node, "/metrics", encoding)
    assert (status, used) == (200, "gzip")
    assert b"rabbitmq_build_info" in gzip.decompress(body)


@pytest.mark.parametrize("encoding", ["", "identity", "br", "gzip;q=0", "gzip;q=0.0", "deflate"])
def test_metrics_are_not_compressed_otherwise(node: BrokerProcess, encoding: str) -> None:
    status, used, body = scrape(node, "/metrics", encoding)
    assert (status, used) == (200, None)
    assert b"rabbitmq_build_info" in body


# The Accept header of Prometheus 3; this RabbitMQ has no format but text.
SCRAPER = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,"
    "*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (SCRAPER, 200),
        ("application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", 200),
        ("text/plain;version=1.0.0", 200),
        ("application/openmetrics-text;version=1.0.0", 406),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", 406),
        ("application/json", 406),
        ("nonsense", 400),
    ],
)
def test_metrics_are_text_or_not_acceptable(node: BrokerProcess, accept: str, status: int) -> None:
    response, body = asked(node, "http/prometheus", "GET /metrics", accept=accept)
    assert response.status == status
    if status == 200:
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert response.headers["vary"] == "accept-encoding"
        assert b"rabbitmq_build_info" in body
    else:
        assert body == b""


@pytest.mark.parametrize("encoding", ["identity;q=0", "*;q=0", "identity;q=0, deflate"])
def test_a_request_that_accepts_no_available_encoding_is_not_acceptable(
    node: BrokerProcess, encoding: str
) -> None:
    assert scrape(node, "/metrics", encoding) == (406, None, b"")


@pytest.mark.parametrize(
    ("request_line", "status", "text"),
    [
        ("HEAD /metrics", 204, b""),
        ("GET /metrics/", 200, b"rabbitmq_build_info"),
        ("OPTIONS /metrics", 200, b""),
        ("POST /metrics", 405, b""),
        ("DELETE /metrics/per-object", 405, b""),
        ("PROPFIND /metrics", 501, b""),
        ("GET /metrics/nosuch", 404, b"Unknown Registry"),
        ("GET /nosuch", 404, b'{"error":"Object Not Found","reason":"Not Found"}'),
    ],
)
def test_other_methods_and_paths_of_metrics_are_refused(
    node: BrokerProcess, request_line: str, status: int, text: bytes
) -> None:
    response, body = asked(node, "http/prometheus", request_line)
    assert response.status == status
    assert text in body
    if status in (200, 405) and not text:
        assert response.headers["allow"] == "HEAD, GET, OPTIONS"


GUEST = {"authorization": "Basic " + b64encode(b"guest:guest").decode()}


def test_answers_of_the_api_are_compressed_if_the_client_accepts_it(node: BrokerProcess) -> None:
    plain, expected = asked(node, "http", "GET /api/exchanges?columns=name,type", **GUEST)
    assert plain.headers["content-encoding"] is None
    response, body = asked(
        node, "http", "GET /api/exchanges?columns=name,type", accept_encoding="gzip, br", **GUEST
    )
    assert response.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in response.headers["vary"]
    assert len(body) < len(expected)
    assert gzip.decompress(body) == expected
    # A short answer is not compressed.
    response, body = asked(node, "http", "GET /api/whoami", accept_encoding="gzip", **GUEST)
    assert response.headers["content-encoding"] is None
    assert b"guest" in body


def test_a_large_list_is_compressed_while_it_is_sent(node: BrokerProcess) -> None:
    client = HttpClient(node)
    client.ask("PUT /vhosts/many")
    queues = [{"name": f"{at:05}" + 200 * "x", "vhost": "many", "durable": False} for at in range(3_000)]
    assert client.ask("POST /definitions", {"queues": queues}).status == 204
    client.close()
    columns = "name,arguments,vhost,durable,auto_delete,exclusive,type,policy,node,state"
    line = f"GET /api/queues/many?columns={columns}"
    _, expected = asked(node, "http", line, **GUEST)
    assert len(expected) > 1_048_576
    response, body = asked(node, "http", line, accept_encoding="gzip", **GUEST)
    assert response.headers["content-encoding"] == "gzip"
    assert len(body) < len(expected) / 10
    assert gzip.decompress(body) == expected


def test_files_of_the_interface_are_compressed(node: BrokerProcess) -> None:
    plain, expected = asked(node, "http", "GET /")
    response, body = asked(node, "http", "GET /", accept_encoding="gzip")
    assert response.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert response.headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == expected
    again, same = asked(node, "http", "GET /", accept_encoding="gzip")
    assert (same, again.headers["content-length"]) == (body, str(len(body)))


def test_the_number_of_requests_per_connection_is_limited_as_configured(impatient: BrokerProcess) -> None:
    for protocol, path, ends in (("http", "/api/whoami", True), ("http/prometheus", "/metrics", False)):
        where = http.client.HTTPConnection("127.0.0.1", impatient.ports[protocol], timeout=TIMEOUT_S)
        with closing(where) as connection:
            closes = []
            for _ in range(2):
                connection.request("GET", path, headers=GUEST)
                response = connection.getresponse()
                response.read()
                closes.append(response.will_close)
            assert closes == [False, ends]


def test_a_silent_or_slow_client_is_closed_after_the_configured_time(impatient: BrokerProcess) -> None:
    address = "127.0.0.1", impatient.ports["http"]
    with socket.create_connection(address, TIMEOUT_S) as client:
        client.sendall(b"GET /api/whoami HTTP/1.1\r\n")
        assert client.makefile("rb").readline() == b"HTTP/1.1 408 Request Timeout\r\n"
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_S)
    with closing(connection):
        connection.request("GET", "/api/whoami", headers=GUEST)
        connection.getresponse().read()
        assert connection.sock is not None
        # By default it could wait for a minute.
        assert connection.sock.recv(1) == b""


def test_compression_can_be_disabled(impatient: BrokerProcess) -> None:
    response, body = asked(impatient, "http", "GET /api/exchanges", accept_encoding="gzip", **GUEST)
    assert response.headers["content-encoding"] is None
    assert body.startswith(b"[")


def test_the_path_of_metrics_can_be_configured(configured: BrokerProcess) -> None:
    assert scrape(configured, "/numbers", "")[0] == 200
    assert scrape(configured, "/numbers/per-object", "")[0] == 200
    assert scrape(configured, "/metrics", "")[0] == 404


def test_only_pages_of_configured_origins_may_make_requests(configured: BrokerProcess) -> None:
    client = HttpClient(configured)
    headers = client.ask("GET /whoami", headers={"origin": SITE}).headers
    assert headers["access-control-allow-origin"] == SITE
    assert headers["access-control-allow-credentials"] == "true"
    assert "default-src 'self'" in headers.values()
    asked = {"origin": SITE, "access-control-request-headers": "authorization"}
    headers = client.ask("OPTIONS /queues/%2F/q", headers=asked).headers
    assert headers["access-control-allow-methods"] == "HEAD, GET, PUT, DELETE, OPTIONS"
    assert headers["access-control-allow-headers"] == "authorization"
    assert headers["access-control-max-age"] == "60"
    for origin in ("https://other.example", "null", SITE + ".evil.example"):
        headers = client.ask("GET /whoami", headers={"origin": origin}).headers
        assert not [name for name in headers if name.lower().startswith("access-control")]
    client.close()


def test_a_login_does_not_set_a_cookie_with_the_password_and_none_authenticates(node: BrokerProcess) -> None:
    """RabbitMQ sets such a cookie, `auth`, and also answers requests that have it with 401."""
    where = http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
    with closing(where) as connection:
        form = {"content-type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/api/login", "username=guest&password=guest", form)
        response = connection.getresponse()
        assert (response.status, response.read(), response.headers["set-cookie"]) == (200, b'"ok"', None)
        secret = b64encode(b"guest:guest").decode()
        for path, headers in (
            ("/api/whoami", {"cookie": f"auth={secret}"}),
            ("/api/whoami", {"cookie": f"m=2258:{secret}"}),
            (f"/api/whoami?auth={secret}", {}),
        ):
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            assert (response.status, response.read()) == (401, b"")


def test_a_path_prefix_applies_to_everything_but_metrics(tmp_path: Path) -> None:
    """As in RabbitMQ 3.10.8, which also serves the page without its trailing slash."""
    path = tmp_path / "warren.conf"
    path.write_text("management.path_prefix = /rmq/x\n")
    with broker(config=path) as node:

        def ask(place: str, port: str = "http", **headers: str) -> tuple[int, str | None]:
            where = http.client.HTTPConnection("127.0.0.1", node.ports[port], timeout=TIMEOUT_S)
            with closing(where) as connection:
                method = "POST" if place.endswith("session") else "GET"
                login = b'{"username":"guest","password":"guest"}' if method == "POST" else None
                connection.request(method, place, login, headers)
                response = connection.getresponse()
                return response.status, response.headers["location"] or response.headers["set-cookie"]

        guest = {"authorization": "Basic " + b64encode(b"guest:guest").decode()}
        moved = {
            "/": "/rmq/x/", "/rmq/x": "/rmq/x/", "/rmq/x/api": "/rmq/x/api/index.html",
            "/rmq/x/cli/": "/rmq/x/cli/index.html", "/rmq/x/doc/stats.html": "/rmq/x/api/index.html",
        }  # fmt: skip
        assert {place: ask(place) for place in moved} == {one: (301, to) for one, to in moved.items()}
        for place in ("", "api/index.html", "cli/index.html", "cli/rabbitmqadmin", "api/overview"):
            assert ask(f"/rmq/x/{place}", **guest) == (200, None), place
            assert not place or ask(f"/{place}", **guest)[0] == 404, place
        for place in ("/rmq", "/rmq/", "/rmq/xapi", "/rmq/x/nosuch", "/rmq/x/metrics", "/api"):
            assert ask(place)[0] == 404, place
        assert ask("/metrics", "http/prometheus")[0] == 200
        status, cookie = ask("/rmq/x/api/warren/session", **{"x-warren-ui": "1"})
        assert (status, "Path=/rmq/x/api;" in f"{cookie};") == (204, True), cookie
        assert ask("/rmq/x/api/warren/live?path=/api/overview", **guest)[0] == 400
        assert ask("/rmq/x/api/warren/live?path=/rmq/x/api/overview", **guest)[0] == 200
