"""Edits of a message: headers and properties that are set or removed, and those that stay."""

from tests.unit.queues.samples import sent

from warren.vhost.message_edit import NO_EDIT, MessageEdit
from warren.wire.properties import BasicProperties


def test_headers_and_properties_are_set_and_removed() -> None:
    properties = BasicProperties(headers={"a": 1, "b": 2}, type="t", app_id="x")
    edit = MessageEdit(
        headers={"b": 3, "c": 4},
        headers_removed=frozenset({"a", "none"}),
        properties={"type": "u", "priority": 5},
        properties_removed=frozenset({"app_id"}),
    )
    edit.apply(properties)
    assert properties.headers == {"b": 3, "c": 4}
    assert (properties.type, properties.priority, properties.app_id) == ("u", 5, None)


def test_an_empty_edit_changes_nothing() -> None:
    properties = BasicProperties(type="t")
    NO_EDIT.apply(properties)
    assert (properties.headers, properties.type) == (None, "t")
    message = sent("x")
    assert NO_EDIT.content(message) is message.content
    assert MessageEdit(body=b"").content(message) == b"\xce"
