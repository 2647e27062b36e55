"""Measures the cost of encoding rows as Arrow in the broker, in microseconds of CPU time per row.

python bench/arrow_encoding.py, with pyarrow; on the build that is imported, interpreted or compiled.
Nothing is sent: this is the work of the broker's loop besides reading the disk and writing to sockets.
"""

import argparse
import time
from collections.abc import Callable, Iterator

from table import table
from warren.arrow.columns import COLUMN_NAMES
from warren.arrow.encoder import ArrowEncoder
from warren.arrow.message_rows import MessageRows, rows_of_chunk, rows_of_messages
from warren.model.message import Message, encode_address
from warren.store.streams.chunk import Chunk, ChunkBuilder, read_head
from warren.store.streams.span import Block
from warren.wire.properties import BasicProperties

FEW = ("offset", "routing_key", "body")
NOW = 1_700_000_000_000
# The number of messages of a queue that are encoded at once, as in the broker.
AT_ONCE = 256
GOAL = 0.5


def main() -> None:
    """Measure each kind several times; the minimum is the cost, the rest is other work on the machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=200, help="bytes of each body")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each measurement")
    parser.add_argument("--times", type=int, default=5)
    chosen = parser.parse_args()
    equal = [message(chosen.size) for _ in range(655)]
    unlike = [message(chosen.size, str(number)) for number in range(655)]
    kinds: list[tuple[str, Callable[[], MessageRows], tuple[str, ...], str | None]] = [
        ("chunk of a stream", chunk_of(equal), COLUMN_NAMES, None),
        ("the same, three columns", chunk_of(equal), FEW, None),
        ("the same, zstd", chunk_of(equal), COLUMN_NAMES, "zstd"),
        ("the same, lz4", chunk_of(equal), COLUMN_NAMES, "lz4"),
        ("chunks of 100 together", chunks_of(equal, 100), COLUMN_NAMES, None),
        ("chunks of 25 together", chunks_of(equal, 25), COLUMN_NAMES, None),
        ("chunks of 10 together", chunks_of(equal, 10), COLUMN_NAMES, None),
        ("chunk, each with an id", chunk_of(unlike), COLUMN_NAMES, None),
        ("the same, three columns", chunk_of(unlike), FEW, None),
        ("messages of a queue", messages_of(equal), COLUMN_NAMES, None),
        ("the same, three columns", messages_of(equal), FEW, None),
    ]
    lines = [
        [text, f"{measured(source, ArrowEncoder('q', names, packed), chosen.rows, chosen.times):.2f}"]
        for text, source, names, packed in kinds
    ]
    print(f"CPU for each row of {chosen.size} bytes; the goal for the first line is {GOAL} µs\n")
    print(table(["rows", "µs"], lines))


def message(size: int, id: str | None = None) -> Message:
    """Return a message with typical properties."""
    properties = BasicProperties(
        content_type="application/json", delivery_mode=2, message_id=id, headers={"tenant": "a"}
    )
    return Message.compose(encode_address("orders", "eu.new"), properties, bytes(size) + b"\xce", now=NOW)


def chunk_of(messages: list[Message]) -> Callable[[], MessageRows]:
    """Return the rows of a chunk, parsed from its bytes."""
    builder = ChunkBuilder(0)
    for each in messages:
        builder.add(each)
    data = builder.encode(1, 2, 0)

    def rows() -> MessageRows:
        head = read_head(data, 0, 1, 2)
        assert head is not None
        return rows_of_chunk("q", Chunk(data, 0, head), 0, len(messages))

    return rows


def chunks_of(messages: list[Message], count: int) -> Callable[[], MessageRows]:
    """Return the rows of chunks of `count` messages with checksums, as a confirmed publisher writes them."""
    data = b""
    for first in range(0, len(messages), count):
        builder = ChunkBuilder(first)
        for each in messages[first : first + count]:
            builder.add(each)
        data += builder.encode(1, 2, 0)

    def rows() -> MessageRows:
        found = Block(data, 1, 2).take(0, 0, len(messages))
        assert found is not None
        return rows_of_chunk("q", found, 0, len(messages))

    return rows


def messages_of(messages: list[Message]) -> Callable[[], MessageRows]:
    """Return the rows of single messages."""
    places = [(place, each, False) for place, each in enumerate(messages[:AT_ONCE])]
    return lambda: rows_of_messages("q", places)


def measured(source: Callable[[], MessageRows], encoder: ArrowEncoder, count: int, times: int) -> float:
    """Return the minimum of several measurements: microseconds of CPU time per row."""
    return min(one_measurement(source, encoder, count) for _ in range(times))


def one_measurement(source: Callable[[], MessageRows], encoder: ArrowEncoder, count: int) -> float:
    """Measure the CPU time per row once, in microseconds."""
    begin, done = time.process_time(), 0
    while done < count:
        for data, rows in encoded(source(), encoder):
            assert data
            done += rows
    return (time.process_time() - begin) / done * 1_000_000


def encoded(rows: MessageRows, encoder: ArrowEncoder) -> Iterator[tuple[int, int]]:
    """Encode `rows`, and yield the bytes and the number of rows of each batch."""
    for batch in encoder.batches([rows]):
        if batch is not None:
            yield encoder.encode(batch).size, batch.num_rows


if __name__ == "__main__":
    main()
