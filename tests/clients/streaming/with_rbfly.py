"""Uses streams with rbfly, and prints results as JSON lines: `python with_rbfly.py URI [CERTIFICATE]`."""

import asyncio
import json
import ssl
import sys
from typing import Any

import rbfly.streams as streams

STREAM = "with-rbfly"


def reported(what: str, value: object) -> None:
    """Print a line for the test."""
    print(json.dumps([what, value], default=bytes.decode), flush=True)


async def taken(client: Any, count: int, **how: Any) -> list[tuple[int, object]]:
    """Receive `count` messages, with their offsets."""
    found: list[tuple[int, object]] = []
    messages = client.subscribe(STREAM, timeout=10, **how)
    async for body in messages:
        found.append((streams.get_message_ctx().stream_offset, body))
        if len(found) == count:
            break
    await messages.aclose()
    return found


def last_letter(message: Any) -> str:
    """Return the filter value of a message."""
    return str(message.body)[-1]


@streams.connection
async def main(client: Any) -> None:
    """Call everything that its API has."""
    await client.create_stream(STREAM)
    await client.create_stream(STREAM)
    async with client.publisher(STREAM, name="one") as publisher:
        for number in range(3):
            await publisher.send(b"one %d" % number)
    async with client.publisher(STREAM, name="fast", cls=streams.PublisherBatchFast) as publisher:
        for number in range(3):
            publisher.batch(f"fast {number}")
        await publisher.flush()
    async with client.publisher(STREAM, name="limit", cls=streams.PublisherBatchLimit) as publisher:
        for number in range(3):
            await publisher.batch({"number": number}, max_len=10)
        await publisher.flush()
    reported("first", await taken(client, 9, offset=streams.Offset.FIRST))
    reported("offset", await taken(client, 2, offset=streams.Offset.offset(7)))
    reported("timestamp", await taken(client, 1, offset=streams.Offset.timestamp(1)))
    reported("last", await taken(client, 1, offset=streams.Offset.LAST))
    await client.write_offset(STREAM, "reader", 4)
    reported("reference", await taken(client, 2, offset=streams.Offset.reference("reader")))
    async with client.publisher(STREAM, name="filtered", filter_extract=last_letter) as publisher:
        for number in range(4):
            await publisher.send(f"filtered {number % 2}")
    wanted = streams.MessageFilter(last_letter, {"1"})
    reported("filter", await taken(client, 2, offset=streams.Offset.offset(9), filter=wanted))
    await client.delete_stream(STREAM)
    reported("deleted", True)


if __name__ == "__main__":
    uri, *certificates = sys.argv[1:]
    context = ssl.create_default_context(cafile=certificates[0]) if certificates else None
    asyncio.run(asyncio.wait_for(main(streams.streams_client(uri, context)), 60))
