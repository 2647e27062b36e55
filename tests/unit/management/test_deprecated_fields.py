"""Deprecated fields: in answers under both names, in requests under either, and marked in the OpenAPI
document.
"""

from typing import Annotated, NotRequired, TypedDict

import msgspec
import pytest

from warren.management.deprecated_fields import deprecate, with_current, with_deprecated
from warren.management.openapi import document
from warren.management.operation import doc
from warren.management.replies import RequestRefused
from warren.management.routes import ROUTES


class SizedShape(TypedDict):
    bytes: Annotated[int, doc("How large it is")]
    position: NotRequired[int]


deprecate(SizedShape, octets="bytes", place="position")


def test_an_answer_has_a_field_under_both_names() -> None:
    assert with_deprecated(SizedShape, {"bytes": 3}) == {"bytes": 3, "octets": 3}
    both = {"bytes": 3, "octets": 3, "position": 1, "place": 1}
    assert with_deprecated(SizedShape, {"bytes": 3, "position": 1}) == both


def test_a_request_may_use_either_name() -> None:
    assert with_current(SizedShape, {"octets": 3, "other": 1}) == {"bytes": 3, "other": 1}
    assert with_current(SizedShape, {"bytes": 3}) == {"bytes": 3}
    assert with_current(SizedShape, {"bytes": 3, "octets": 3}) == {"bytes": 3}


def test_a_request_with_different_values_is_refused() -> None:
    with pytest.raises(RequestRefused) as refused:
        with_current(SizedShape, {"bytes": 3, "octets": 4})
    assert refused.value.response.status == 400
    assert b"octets is a deprecated name of bytes" in bytes(refused.value.response.body or b"")  # type: ignore[arg-type]


def test_a_schema_marks_old_names_as_deprecated_and_requires_the_new_ones() -> None:
    (_,), components = msgspec.json.schema_components([SizedShape])
    schema = components["SizedShape"]
    assert schema["properties"]["octets"] == {
        "type": "integer", "description": "Deprecated: use `bytes`.", "deprecated": True,
    }  # fmt: skip
    assert "deprecated" not in schema["properties"]["bytes"]
    assert sorted(schema["required"]) == ["bytes", "octets"]


def test_the_document_marks_deprecated_paths_and_parameters() -> None:
    paths = document(ROUTES)["paths"]
    queue = "/warren/queues/{vhost}/{queue}"
    assert paths[f"{queue}/return"]["post"]["deprecated"]
    assert "deprecated" not in paths[f"{queue}/requeue"]["post"]
    marked = [one["name"] for one in paths[f"{queue}/rows"]["get"]["parameters"] if one.get("deprecated")]
    assert marked == ["octets_max"]
