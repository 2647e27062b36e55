"""Requests of the operator commands, and the texts of their failures."""

import http.client
from typing import Any

import pytest

from warren.cli.operator.api_target import target_of
from warren.cli.operator.failures import (  # fmt: skip
    BROKEN,
    NOT_AUTHORISED,
    REFUSED,
    UNHEALTHY,
    UNREACHABLE,
    USAGE,
    Failure,
    ObjectNotFound,
)
from warren.cli.operator.management_client import ManagementClient, filled


class Answering(ManagementClient):
    """An HTTP client that returns the given responses."""

    def __init__(self, *answers: "tuple[int, bytes] | Exception") -> None:
        super().__init__(target_of("http://al:secret@host", {}, str), 1)
        self.asked: list[str] = []
        self._answers = list(answers)
        self._client = self  # type: ignore[assignment]

    def request(self, method: str, path: str, *_: Any, **__: Any) -> "Answering":
        self.asked.append(f"{method} {path}")
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.status, self._body = answer
        return self

    def __enter__(self) -> "Answering":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, size: int) -> bytes:
        return self._body

    def close(self) -> None:
        pass


def test_a_name_is_encoded_as_one_path_segment() -> None:
    assert (
        filled("/queues/{vhost}/{queue}", {"vhost": "/", "queue": "a b/ü%"})
        == "/queues/%2F/a%20b%2F%C3%BC%25"
    )


@pytest.mark.parametrize(
    ("status", "body", "exit_code", "said"),
    [
        (400, b'{"error":"bad_request","reason":"no"}', REFUSED, "refused: no"),
        (400, b'{"error":"odd","reason":["a",1]}', REFUSED, 'odd: ["a", 1]'),
        (
            401,
            b'{"error":"not_authorised","reason":"Login failed"}',
            NOT_AUTHORISED,
            "Login failed; use --uri",
        ),
        (405, b"", REFUSED, "without a reason"),
        (500, b"<h1>oh\n\nno</h1>", BROKEN, "<h1>oh no</h1>; see its log"),
        (503, b'{"status":"failed","reason":"alarm"}', UNHEALTHY, "alarm"),
        (301, b"", BROKEN, "status 301"),
    ],
)
def test_an_error_status_becomes_a_failure_with_its_reason(
    status: int, body: bytes, exit_code: int, said: str
) -> None:
    with pytest.raises(Failure) as caught:
        Answering((status, body)).get("/x")
    assert caught.value.exit_code == exit_code
    assert said in caught.value.message
    assert "secret" not in caught.value.message


def test_status_404_is_object_not_found() -> None:
    with pytest.raises(ObjectNotFound):
        Answering((404, b'{"error":"Object Not Found","reason":"Not Found"}')).get("/x")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (TimeoutError(), "--timeout"),
        (http.client.BadStatusLine("x"), "https://"),
        (http.client.IncompleteRead(b""), "cannot connect"),
    ],
)
def test_an_unreachable_broker_is_reported_with_advice(error: Exception, said: str) -> None:
    with pytest.raises(Failure) as caught:
        Answering(error).get("/x")
    assert caught.value.exit_code == UNREACHABLE
    assert said in caught.value.message


def test_an_invalid_host_name_is_reported() -> None:
    with pytest.raises(Failure, match=r"http://a b:15672: .*invalid character") as caught:
        ManagementClient(target_of("http://al:secret@a b", {}, str), 1)
    assert caught.value.exit_code == USAGE


@pytest.mark.parametrize("body", [b"<html>", b"3", b'{"a":1}'])
def test_an_answer_that_is_not_of_the_api_is_reported(body: bytes) -> None:
    with pytest.raises(Failure, match="check --uri"):
        list(Answering((200, body)).rows("/x", {}, lambda *_: None))


def test_all_pages_are_fetched() -> None:
    api = Answering(
        (200, b'{"items":[{"name":"a"}],"filtered_count":2,"page_count":2}'),
        (200, b'{"items":[{"name":"b"}],"filtered_count":2,"page_count":2}'),
    )
    received: list[tuple[int, int]] = []
    rows = list(api.rows("/queues", {}, lambda *far: received.append(far)))
    assert [row["name"] for row in rows] == ["a", "b"]
    assert received == [(1, 2), (2, 2)]
    assert api.asked[1] == "GET /api/queues?page=2&page_size=500"


def test_a_page_that_no_longer_exists_ends_the_list() -> None:
    api = Answering(
        (200, b'{"items":[{"name":"a"}],"filtered_count":2,"page_count":2}'),
        (400, b'{"error":"page_out_of_range","reason":"Page out of range"}'),
    )
    assert len(list(api.rows("/queues", {}, lambda *_: None))) == 1


def test_a_list_of_few_columns_takes_one_request() -> None:
    api = Answering((200, b'[{"name":"a"}]'))
    assert list(api.rows("/queues", {"columns": "name"}, lambda *_: None)) == [{"name": "a"}]
    assert api.asked == ["GET /api/queues?columns=name"]


def test_long_columns_are_fetched_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.cli.operator.management_client.CLI_ANSWER_SIZE_MAX", 70)
    page = b'{"items":[{"name":"a"}],"filtered_count":1,"page_count":1}'
    api = Answering((200, b"[" + b" " * 70), (200, page))
    assert list(api.rows("/queues", {"columns": "name"}, lambda *_: None)) == [{"name": "a"}]
    assert api.asked[1] == "GET /api/queues?columns=name&page=1&page_size=500"


def test_a_list_without_pages_is_fetched_at_once() -> None:
    assert list(Answering((200, b'[{"name":"a"}]')).rows("/users", {}, lambda *_: None)) == [{"name": "a"}]


def test_an_answer_of_unlimited_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.cli.operator.management_client.CLI_ANSWER_SIZE_MAX", 4)
    with pytest.raises(Failure, match="longer than 4"):
        Answering((200, b"[1,2]")).get("/x")
