"""What is said of all answers: encodings, other sites' pages, other paths."""

import gzip
import http.client
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.integration.api import Client
from tests.integration.process import Broker, broker

TIMEOUT_S = 30
SITE = "https://board.example"
CONFIG = f"""
management.cors.allow_origins.1 = {SITE}
management.cors.max_age = 60
management.csp.policy = default-src 'self'
prometheus.path = /numbers
"""


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    path = tmp_path_factory.mktemp("config") / "warren.conf"
    path.write_text(CONFIG)
    with broker(config=path) as node:
        yield node


def scrape(node: Broker, path: str, encoding: str) -> tuple[int, str | None, bytes]:
    where = http.client.HTTPConnection("127.0.0.1", node.ports["http/prometheus"], timeout=TIMEOUT_S)
    with closing(where) as connection:
        connection.request("GET", path, headers={"accept-encoding": encoding})
        response = connection.getresponse()
        return response.status, response.headers["content-encoding"], response.read()


@pytest.mark.parametrize("encoding", ["gzip", "deflate, gzip;q=0.5", "br, GZIP"])
def test_metrics_are_compressed_for_who_takes_that(node: Broker, encoding: str) -> None:
    status, used, body = scrape(node, "/metrics", encoding)
    assert (status, used) == (200, "gzip")
    assert b"rabbitmq_build_info" in gzip.decompress(body)


@pytest.mark.parametrize("encoding", ["", "identity", "br", "gzip;q=0", "gzip;q=0.0", "deflate"])
def test_and_for_nobody_else(node: Broker, encoding: str) -> None:
    status, used, body = scrape(node, "/metrics", encoding)
    assert (status, used) == (200, None)
    assert b"rabbitmq_build_info" in body


def test_metrics_are_where_they_are_configured_to_be(configured: Broker) -> None:
    assert scrape(configured, "/numbers", "")[0] == 200
    assert scrape(configured, "/numbers/per-object", "")[0] == 200
    assert scrape(configured, "/metrics", "")[0] == 404


def test_pages_of_configured_sites_may_ask_and_no_others(configured: Broker) -> None:
    client = Client(configured)
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


def test_a_login_leaves_no_password_in_a_cookie_and_none_lets_anybody_in(node: Broker) -> None:
    """RabbitMQ sets one, `auth`, and answers requests that have it with 401 as well."""
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
