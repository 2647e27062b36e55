"""Offsets in the checkpoint of a query: `{"v": 1, "s": {"<vhost>/<queue>": {"epoch", "next"}}}`.

`next` is the first offset that has not been read. `epoch` identifies the stream, so that a stream of the same
name that is declared later is detected; over AMQP it is unknown and empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The next offset to read from a stream, and the epoch of the stream."""

    epoch: str
    next: int


def encode(places: Mapping[str, StreamOffset]) -> dict[str, Any]:
    """Encode `places` as the offset that Spark stores in the checkpoint."""
    streams = {key: {"epoch": place.epoch, "next": place.next} for key, place in sorted(places.items())}
    return {"v": VERSION, "s": streams}


def decode(offset: Mapping[str, Any]) -> dict[str, StreamOffset]:
    """Decode an offset of a checkpoint or of `startingOffsets`. Raises ValueError if it is malformed."""
    check_version(offset)
    streams = offset.get("s")
    if not isinstance(streams, dict):
        raise ValueError("the checkpoint is of another read mode: use a new checkpoint, or the former `mode`")
    try:
        return {
            key: StreamOffset(str(one.get("epoch", "")), _whole(one["next"])) for key, one in streams.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        shape = '{"v": 1, "s": {"<vhost>/<queue>": {"next": 5}}}'
        raise ValueError(f"an offset must have the form {shape}, not {dict(offset)}") from None


def check_version(offset: Mapping[str, Any]) -> None:
    """Raise ValueError if `offset` has another format version than this connector."""
    if offset.get("v") != VERSION:
        raise ValueError(
            f"the offset has the format version {offset.get('v')!r}; this connector reads version {VERSION}"
        )


def key(vhost: str, queue: str) -> str:
    """Return the key of a queue in an offset."""
    return f"{vhost}/{queue}"


def _whole(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError
    return number
