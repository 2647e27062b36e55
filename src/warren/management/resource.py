"""Paths of the HTTP API as resources of aiohttp's router.

aiohttp compiles a regular expression for each path with placeholders, which for some two hundred paths took
a sixth of the start of a broker. Here a path is compared by segments, with and without a trailing slash.
"""

from typing import Any

from aiohttp import web
from yarl import URL


class PathResource(web.Resource):
    """A resource with a path such as `/api/queues/{vhost}/{queue}`; a name in braces matches any segment."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._segments = path.split("/")

    @property
    def canonical(self) -> str:
        """The path with its placeholders, by which the router indexes it."""
        return self._path

    def add_prefix(self, prefix: str) -> None:
        """Put `prefix` before the path."""
        self._path = prefix + self._path
        self._segments = self._path.split("/")

    def raw_match(self, path: str) -> bool:
        """True if the resource was made for `path`."""
        return path == self._path

    def get_info(self) -> Any:
        """A description of the resource, for code that lists resources."""
        return {"path": self._path}

    def url_for(self, **names: str) -> URL:
        """The URL of the path with a value for each placeholder."""
        return URL.build(path=self._path.format_map(names))

    def _match(self, path: str) -> dict[str, str] | None:
        """The value of each placeholder if `path` matches; only `%2F` and `%25` are still encoded in it."""
        segments = path.split("/")
        if len(segments) == len(self._segments) + 1 and not segments[-1]:
            del segments[-1]
        if len(segments) != len(self._segments):
            return None
        found = {}
        for ours, theirs in zip(self._segments, segments, strict=True):
            if ours.startswith("{") and theirs:
                found[ours[1:-1]] = theirs.replace("%2F", "/").replace("%25", "%")
            elif ours != theirs:
                return None
        return found
