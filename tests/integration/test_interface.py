"""The web interface over HTTP: its page, sign-in, and event streams."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing

from tests.integration.api import get
from tests.integration.broker_process import BrokerProcess
from tests.patience import patient

TIMEOUT_S = patient(30)
MARKED = {"x-warren-ui": "1", "content-type": "application/json"}
GUEST = json.dumps({"username": "guest", "password": "guest"})


def ask(
    node: BrokerProcess, line: str, headers: dict[str, str] | None = None, body: str | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(
        http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
    ) as connection:
        connection.request(*line.split(" ", 1), body, headers or {})
        response = connection.getresponse()
        return response, response.read()


def signed_in(node: BrokerProcess) -> str:
    response, _ = ask(node, "POST /api/warren/session", MARKED, GUEST)
    assert response.status == 204
    return (response.getheader("set-cookie") or "").partition(";")[0]


def test_the_page_forbids_inline_scripts_and_other_sites(node: BrokerProcess) -> None:
    response, body = ask(node, "GET /")
    assert response.status == 200
    assert b"Warren" in body
    policy = response.getheader("content-security-policy") or ""
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.getheader("x-content-type-options") == "nosniff"


def test_only_files_of_the_interface_are_served(node: BrokerProcess) -> None:
    for path in ("/../interface.py", "/assets/../../app.py", "/%2e%2e/app.py", "/static/index.html"):
        response, _ = ask(node, f"GET {path}")
        assert response.status == 404, path


def test_a_session_replaces_the_password_until_sign_out(node: BrokerProcess) -> None:
    cookie = {"cookie": signed_in(node)}
    response, body = ask(node, "GET /api/whoami", cookie)
    assert (response.status, json.loads(body)["name"]) == (200, "guest")
    assert ask(node, "DELETE /api/warren/session", cookie | MARKED)[0].status == 204
    assert ask(node, "GET /api/whoami", cookie)[0].status == 401


def test_no_other_site_can_sign_in_or_change_anything(node: BrokerProcess) -> None:
    assert ask(node, "POST /api/warren/session", body=GUEST)[0].status == 403
    cookie = {"cookie": signed_in(node)}
    vhost = "/api/vhosts/forged"
    assert ask(node, f"PUT {vhost}", cookie)[0].status == 401
    assert get(node, vhost)[0] == 404
    assert ask(node, f"PUT {vhost}", cookie | MARKED)[0].status == 201
    assert get(node, vhost)[0] == 200


def test_a_failed_sign_in_begins_no_session_and_scripts_are_not_challenged(node: BrokerProcess) -> None:
    wrong = json.dumps({"username": "guest", "password": "no"})
    response, body = ask(node, "POST /api/warren/session", MARKED, wrong)
    assert (response.status, json.loads(body)["reason"]) == (401, "Login failed")
    assert response.getheader("set-cookie") is None
    assert response.getheader("www-authenticate") is None
    response, _ = ask(node, "GET /api/whoami", {"sec-fetch-dest": "empty"})
    assert response.status == 401
    assert response.getheader("www-authenticate") is None
    assert ask(node, "GET /api/whoami")[0].getheader("www-authenticate")


def test_changes_are_sent_without_another_request(node: BrokerProcess) -> None:
    cookie = signed_in(node)
    with closing(
        http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
    ) as connection:
        connection.request(
            "GET", "/api/warren/live?path=/api/vhosts&path=/api/vhosts/none", headers={"cookie": cookie}
        )
        response = connection.getresponse()
        assert response.getheader("content-type") == "text/event-stream"

        def events() -> Iterator[dict[str, object]]:
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

        reported = events()
        first, second = next(reported), next(reported)
        assert (first["path"], first["status"]) == ("/api/vhosts", 200)
        assert (second["path"], second["status"]) == ("/api/vhosts/none", 404)
        assert ask(node, "PUT /api/vhosts/later", {"cookie": cookie} | MARKED)[0].status == 201
        third = next(reported)
        assert third["path"] == "/api/vhosts"
        assert "later" in [vhost["name"] for vhost in third["body"]]  # type: ignore[attr-defined]


def test_an_event_stream_follows_only_api_paths_and_a_bounded_number(node: BrokerProcess) -> None:
    cookie = {"cookie": signed_in(node)}
    paths = ["", "?path=/", "?path=http://127.0.0.1/api/overview", "?path=/api/warren/live"]
    for query in [*paths, "?" + "&".join(["path=/api/overview"] * 17)]:
        assert ask(node, f"GET /api/warren/live{query}", cookie)[0].status == 400, query
    assert ask(node, "GET /api/warren/live?path=/api/overview")[0].status == 401
