"""Where a query stands, as Spark writes it down: `{"v": 1, "s": {"<vhost>/<queue>": {"epoch", "next"}}}`.

`next` is the first offset that has not been read. `epoch` tells a stream from another of its name; it is
empty where the broker cannot say, which is the case over AMQP.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A place in one stream."""

    epoch: str
    next: int


def encode(places: Mapping[str, StreamOffset]) -> dict[str, Any]:
    """What Spark keeps in the checkpoint."""
    streams = {key: {"epoch": place.epoch, "next": place.next} for key, place in sorted(places.items())}
    return {"v": VERSION, "s": streams}


def decode(offset: Mapping[str, Any]) -> dict[str, StreamOffset]:
    """The places in an offset of a checkpoint, or in `startingOffsets`; ValueError if it is none."""
    check_version(offset)
    streams = offset.get("s")
    if not isinstance(streams, dict):
        raise ValueError("this offset is of another kind of queue: was `mode` or the queue changed?")
    try:
        return {
            key: StreamOffset(str(one.get("epoch", "")), _whole(one["next"])) for key, one in streams.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        shape = '{"v": 1, "s": {"<vhost>/<queue>": {"next": 5}}}'
        raise ValueError(f"an offset has the form {shape}, not {dict(offset)}") from None


def check_version(offset: Mapping[str, Any]) -> None:
    """Raise ValueError for what a later version wrote."""
    if offset.get("v") != VERSION:
        raise ValueError(f"this offset has version {offset.get('v')!r}; this connector reads {VERSION}")


def key(vhost: str, queue: str) -> str:
    """The name of a queue in an offset."""
    return f"{vhost}/{queue}"


def _whole(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError
    return number
