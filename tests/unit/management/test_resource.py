"""Matching of request paths against the table of routes."""

import pytest

from warren.management.resource import PathResource


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/queues/a/b", {"vhost": "a", "queue": "b"}),
        ("/api/queues/a/b/", {"vhost": "a", "queue": "b"}),
        ("/api/queues/%2F/a%2Fb", {"vhost": "/", "queue": "a/b"}),
        ("/api/queues/%252F/{q}", {"vhost": "%2F", "queue": "{q}"}),
        ("/api/queues/a", None),
        ("/api/queues/a/", None),
        ("/api/queues//b", None),
        ("/api/queues/a//", None),
        ("/api/queues/a/b//", None),
        ("/api/queues/a/b/c", None),
        ("/api/queue/a/b", None),
        ("api/queues/a/b", None),
        ("", None),
    ],
)
def test_a_name_is_one_segment_with_encoded_slashes(path: str, found: dict[str, str] | None) -> None:
    resource = PathResource("/api/queues/{vhost}/{queue}")
    assert resource._match(path) == found
    resource.add_prefix("/below")
    assert resource._match(f"/below{path}") == (found if path else None)
    assert resource.canonical == "/below/api/queues/{vhost}/{queue}"
    assert resource.raw_match("/below/api/queues/{vhost}/{queue}")


def test_a_resource_formats_its_path_and_its_url() -> None:
    resource = PathResource("/api/queues/{vhost}")
    assert resource.get_info() == {"path": "/api/queues/{vhost}"}
    assert str(resource.url_for(vhost="a b")) == "/api/queues/a%20b"
