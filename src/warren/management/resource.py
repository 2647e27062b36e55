"""A path of the HTTP API as aiohttp's router sees it.

aiohttp makes a regular expression of each path with names in it. Compiling some two hundred took a sixth of a
broker's start; here a path is compared segment by segment, with and without a slash at its end.
"""

from typing import Any

from aiohttp import web
from yarl import URL


class PathResource(web.Resource):
    """What answers at a path such as `/api/queues/{vhost}/{queue}`, where a name in braces is any segment."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._segments = path.split("/")

    @property
    def canonical(self) -> str:
        """The path with its names, by which the router finds it."""
        return self._path

    def add_prefix(self, prefix: str) -> None:
        """Stand below `prefix`."""
        self._path = prefix + self._path
        self._segments = self._path.split("/")

    def raw_match(self, path: str) -> bool:
        """Whether it was made for `path`."""
        return path == self._path

    def get_info(self) -> Any:
        """What it is, for whoever lists resources."""
        return {"path": self._path}

    def url_for(self, **names: str) -> URL:
        """The address with a value for each name."""
        return URL.build(path=self._path.format_map(names))

    def _match(self, path: str) -> dict[str, str] | None:
        """The value of each name if `path` is this one; in it only `%2F` and `%25` are still encoded."""
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
