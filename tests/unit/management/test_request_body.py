"""Parsing of request bodies, and the reasons of refusals."""

import json

import pytest

from warren.limits_http import JSON_DEPTH_MAX
from warren.management.replies import RequestRefused
from warren.management.request_body import BodyFields, decode


def reason(refused: "pytest.ExceptionInfo[RequestRefused]") -> object:
    assert refused.value.response.status == 400
    assert isinstance(refused.value.response.body, bytes)
    return json.loads(refused.value.response.body)["reason"]


# Invalid UTF-8, a lone surrogate, and NaN.
NO_TEXT = (b'{"a": "\xff"}', b'"\\ud800"', b"1e999", b"\xc3", b'["\xed\xa0\x80"]')


@pytest.mark.parametrize("data", [b"{not json", b"[1,", b"\xff", b"NaN", b"[" * 100_000, *NO_TEXT])
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(RequestRefused) as refused:
        decode(data)
    assert reason(refused) == "not_json"


def nested(levels: int) -> bytes:
    return b'{"a":' * (levels - 1) + b"[]" + b"}" * (levels - 1)


def test_json_that_is_nested_too_deep_is_refused() -> None:
    decode(nested(JSON_DEPTH_MAX))
    with pytest.raises(RequestRefused) as refused:
        decode(nested(JSON_DEPTH_MAX + 1))
    assert reason(refused) == "not_json"


def test_an_empty_body_is_an_empty_object() -> None:
    assert decode(b"") == {}


def test_missing_fields_are_named_in_order() -> None:
    BodyFields({"a": 1}).require("a")
    with pytest.raises(RequestRefused) as refused:
        BodyFields({"b": 1}).require("a", "b", "c")
    assert reason(refused) == "[{key_missing,a},{key_missing,c}]"


def test_booleans_may_be_strings() -> None:
    fields = BodyFields({"yes": True, "no": "false", "odd": "yes please", "one": 1})
    assert fields.flag("yes")
    assert not fields.flag("no")
    assert fields.flag("absent", default=True)
    with pytest.raises(RequestRefused) as refused:
        fields.flag("odd")
    assert reason(refused) == ["not_boolean", "yes please"]
    with pytest.raises(RequestRefused) as refused:
        fields.flag("one")
    assert reason(refused) == ["not_boolean", 1]


def test_null_is_refused_for_a_required_string_and_means_the_default_of_an_optional_one() -> None:
    fields = BodyFields({"a": None})
    assert fields.text("a", "") == ""
    with pytest.raises(RequestRefused) as refused:
        fields.text("a")
    assert reason(refused) == ["not_string", None]


def test_integers_may_be_strings() -> None:
    fields = BodyFields({"a": 5, "b": "-6", "c": True, "d": "x"})
    assert (fields.integer("a"), fields.integer("b")) == (5, -6)
    for name, value in (("c", True), ("d", "x")):
        with pytest.raises(RequestRefused) as refused:
            fields.integer(name)
        assert reason(refused) == ["not_integer", value]


def test_an_empty_table_may_be_a_list() -> None:
    fields = BodyFields({"a": {"x": 1}, "b": [], "c": [1]})
    assert (fields.table("a"), fields.table("b"), fields.table("absent")) == ({"x": 1}, {}, {})
    with pytest.raises(RequestRefused):
        fields.table("c")
