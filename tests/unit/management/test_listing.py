"""Lists of the API: sort order, columns, pages, and refusals."""

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from msgspec.structs import replace

from warren.limits_http import (
    LISTED_PER_TURN,
)
from warren.management.listing import JsonObject, Listing, reply_list, reply_one, select_columns, sort_value
from warren.management.replies import WHOLE, RequestRefused

RECORDS = [("b", 2), ("a", 10), ("C", 1)]


def listing(records: list[tuple[str, int]], viewed: list[str] | None = None) -> Listing[tuple[str, int]]:
    def view(record: tuple[str, int]) -> JsonObject:
        if viewed is not None:
            viewed.append(record[0])
        return {"name": record[0], "size": record[1], "more": {"x": record[1], "y": 0}}

    return Listing(
        records=records,
        view=view,
        columns={"name": lambda record: record[0]},
        sort_keys=("name",),
        is_paged=True,
    )


def listed(query: str, records: list[tuple[str, int]] = RECORDS, viewed: list[str] | None = None) -> object:
    request = make_mocked_request("GET", f"/api/things?{query}")
    response = asyncio.run(reply_list(request, listing(records, viewed)))
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


def names(query: str) -> list[str]:
    found = listed(query)
    assert isinstance(found, list)
    return [item["name"] for item in found]


def refusal(query: str) -> dict[str, object]:
    with pytest.raises(RequestRefused) as caught:
        listed(query)
    assert caught.value.response.status == 400
    assert isinstance(caught.value.response.body, bytes)
    answer: dict[str, object] = json.loads(caught.value.response.body)
    return answer


def test_a_list_is_sorted_by_the_given_key_and_then_by_default_keys() -> None:
    assert names("") == ["C", "a", "b"]
    assert names("sort=size") == ["C", "b", "a"]
    assert names("sort=size&sort_reverse=true") == ["a", "b", "C"]
    assert names("sort=more.x") == ["C", "b", "a"]
    assert names("sort=more.y") == ["C", "a", "b"]
    assert names("sort=nothing") == ["C", "a", "b"]


@pytest.mark.parametrize(
    ("query", "expected"), [("", "baC"), ("sort_reverse=true", "Cab"), ("sort=size", "Cba")]
)
def test_a_list_without_sort_keys_keeps_its_order(query: str, expected: str) -> None:
    request = make_mocked_request("GET", f"/api/things?{query}")
    response = asyncio.run(reply_list(request, replace(listing(RECORDS), sort_keys=())))
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    assert "".join(item["name"] for item in json.loads(response.body)) == expected


def test_a_long_list_is_sorted_in_pieces() -> None:
    records = [(f"{at * 7919 % 1000:04}", at) for at in range(LISTED_PER_TURN * 5 + 3)]
    found = listed("", records)
    assert isinstance(found, list)
    assert [item["name"] for item in found] == sorted(name for name, _ in records)


def test_nested_columns_can_be_selected() -> None:
    facts: JsonObject = {"a": 1, "b": {"c": 2, "d": 3}, "e": None}
    assert select_columns(facts, [["a"]]) == {"a": 1}
    assert select_columns(facts, [["b", "d"]]) == {"b": {"d": 3}}
    assert select_columns(facts, [["b", "c"], ["b", "d"], ["no"]]) == {"b": {"c": 2, "d": 3}}
    assert select_columns(facts, [["a", "x"]]) == {"a": 1}
    assert select_columns(facts, None) is facts
    response = reply_one(make_mocked_request("GET", "/x?columns=a,b.c"), facts)
    assert response.body == b'{"a":1,"b":{"c":2}}'


def test_only_the_rows_of_the_page_are_built() -> None:
    viewed: list[str] = []
    assert listed("page=2&page_size=2", viewed=viewed) == {
        "filtered_count": 3,
        "item_count": 1,
        "items": [{"name": "b", "size": 2, "more": {"x": 2, "y": 0}}],
        "page": 2,
        "page_count": 2,
        "page_size": 2,
        "total_count": 3,
    }
    assert viewed == ["b"]


def test_the_name_filter_ignores_case() -> None:
    found = listed("page=1&name=c&columns=name")
    assert isinstance(found, dict)
    assert (found["items"], found["filtered_count"], found["total_count"]) == ([{"name": "C"}], 1, 3)
    found = listed("page=1&name=^[ab]$&use_regex=true&columns=name")
    assert isinstance(found, dict)
    assert [item["name"] for item in found["items"]] == ["a", "b"]
    assert listed("page=1&name=zzz")["items"] == []  # type: ignore[index]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("page=0", "Invalid pagination parameters: page number 0, page size undefined"),
        ("page=1&page_size=0", "Invalid pagination parameters: page number 1, page size 0"),
        ("page=1&page_size=501", "Invalid pagination parameters: page number 1, page size 501"),
        ("page=a", "Pagination parameters are invalid"),
        ("page=", "Pagination parameters are invalid"),
        ("page=1&name=(&use_regex=true", "Pagination parameters are invalid"),
        ("page=2", "Page out of range, page: 2 page size: 100, len: 3"),
        ("page=2&name=zzz", "Page out of range, page: 2 page size: 100, len: 0"),
    ],
)
def test_invalid_page_parameters_are_refused(query: str, reason: str) -> None:
    assert refusal(query)["reason"] == reason


def test_a_pattern_that_takes_too_long_is_refused() -> None:
    records = [("a" * 40 + "b", at) for at in range(3)]
    with pytest.raises(RequestRefused):
        listed("page=1&use_regex=true&name=^(a|a)*(a|a)*(a|a)*$", records)


def test_values_are_ordered_as_erlang_orders_terms() -> None:
    values = ["text", None, 2, {"a": 1}, True, 1.5, [1], False, {}]
    ordered = sorted(values, key=lambda value: sort_value({"x": value}, ["x"]))
    assert ordered == [1.5, 2, False, None, True, {}, {"a": 1}, [1], "text"]


def test_a_missing_field_is_sorted_as_zero() -> None:
    found = [{"x": {"y": 1}}, {"x": {}}, {}, {"x": {"y": -1}}]
    assert sorted(found, key=lambda facts: sort_value(facts, ["x", "y"])) == [
        found[3],
        {"x": {}},
        {},
        found[0],
    ]


@pytest.mark.parametrize(
    "query", ["", "sort_reverse=true", "sort=size", "sort=size&sort_reverse=true", "sort=more.x", "sort=none"]
)
@pytest.mark.parametrize(
    "page", ["", "&page=1&page_size=7", "&page=3&page_size=50", "&page=9&page_size=15", "&page=1&name=1"]
)
def test_a_presorted_list_equals_a_sorted_one(query: str, page: str) -> None:
    records = [(f"{number:03}", number * 7 % 13) for number in range(LISTED_PER_TURN * 5 + 13)]
    is_sorted = replace(
        listing(records),
        is_sorted=True,
        columns={"name": lambda record: record[0], "size": lambda record: record[1]},
    )
    request = make_mocked_request("GET", f"/api/things?{query}{page}")
    response = asyncio.run(reply_list(request, is_sorted))
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == listed(query + page, records)


def test_a_list_for_a_disconnected_client_is_abandoned() -> None:
    asked = make_mocked_request("GET", "/")
    asked.protocol.transport = None  # type: ignore[misc]
    with pytest.raises(ConnectionResetError):
        asyncio.run(reply_list(asked, listing(RECORDS)))
    # A response that other requests share is built although the client that asked first has disconnected.
    asked[WHOLE] = True
    assert asyncio.run(reply_list(asked, listing(RECORDS))).status == 200
