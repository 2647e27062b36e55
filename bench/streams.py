"""Measures a consumer of a long stream over the stream protocol, compared to reading its files.

The consumer is a process of its own that only counts bytes. The files are read once from the disk, as far as
the system drops them from its cache on request, and once from that cache.
"""

import argparse
import multiprocessing
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from brokers import Broker, free_port, warren
from table import table
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, OffsetType
from warren.wire.streams.commands import StreamCommand
from warren.wire.streams.fields import Offset
from warren.wire.streams.frames import framed
from warren.wire.streams.publish import Publication, encode_publish

MIB = 1 << 20
STREAM = "s"
FIRST = Offset(OffsetType.FIRST)
# The number of messages in a frame, and of chunks for which the consumer gives credit.
BATCH = 500
CREDIT = 50
BLOCK = MIB
# The beginning of a Deliver, up to the number of messages in its chunk.
HEAD = 17
# The filter value of the last message, which no other one has.
LAST = "last"


def main() -> None:
    """Fill a stream, read it in all ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--mib", type=int, default=4096, help="how much is in the stream")
    parser.add_argument("--size", type=int, default=1024, help="bytes of each body")
    chosen = parser.parse_args()
    port = free_port()
    lines = []
    with warren(chosen.warren, stream=port) as broker:
        broker.await_ready()
        count = chosen.mib * MIB // chosen.size
        fill(port, count, chosen.size)
        files = sorted(broker.data.glob("**/*.stream"))
        byte_count = sum(file.stat().st_size for file in files)
        for where, prepare in (("disk", forget), ("memory", read)):
            prepare(files)
            begin = time.perf_counter()
            read(files)
            lines.append(line(f"the files, from {where}", time.perf_counter() - begin, byte_count))
        for where, prepare in (("disk", forget), ("memory", read)):
            prepare(files)
            lines.append(consumed(f"a consumer, from {where}", broker, port, count + 1))
        forget(files)
        lines += [
            consumed(
                f"who filters for the last, {which}", broker, port, 1, asked=(byte_count, {"filter.0": LAST})
            )
            for which in ("from disk", "once more")
        ]
        print(
            f"Warren {broker.version}, {count} messages of {chosen.size} bytes, {byte_count / MIB:.0f} MiB\n"
        )
    print(table(["", "s", "MiB/s", "messages/s", "broker's CPU ms/MiB", "its own"], lines))


def line(text: str, took: float, byte_count: int, *others: str) -> list[str]:
    """Return a line of the table."""
    return [text, f"{took:.2f}", f"{byte_count / MIB / took:,.0f}", *(others or ("", "", ""))]


def consumed(
    text: str, broker: Broker, port: int, count: int, *, asked: tuple[int, dict[str, str]] = (0, {})
) -> list[str]:
    """Measure a consumer of `count` messages, in a process of its own.

    `asked` contains the bytes to divide by, if these are not the received ones, and the consumer's
    properties.
    """
    here, there = multiprocessing.Pipe()
    used = on_cpu(broker.pid)
    process = multiprocessing.Process(target=_consume, args=(port, count, asked[1], there))
    process.start()
    took, got, own = here.recv()
    process.join()
    used = on_cpu(broker.pid) - used
    byte_count = asked[0] or got
    each = (f"{spent * 1000 * MIB / byte_count:.2f}" for spent in (used, own))
    return line(text, took, byte_count, f"{count / took:,.0f}", *each)


def fill(port: int, count: int, size: int) -> None:
    """Publish `count` messages, and one more that alone has a filter value."""
    client = Client(port)
    client.ask(commands.Create(STREAM, {}))
    client.ask(commands.DeclarePublisher(1, "", STREAM))
    body = b"\x00\x53\x75\xb0" + size.to_bytes(4, "big") + bytes(size)
    confirmed = threading.Thread(target=client.await_confirms, args=(count + 1,))
    confirmed.start()
    for first in range(0, count, BATCH):
        entries = [(number, body) for number in range(first, min(first + BATCH, count))]
        client.say(framed(encode_publish(Publication(1, entries))))  # type: ignore[arg-type]
    value = len(LAST).to_bytes(2, "big") + LAST.encode()
    entry = count.to_bytes(8, "big") + value + len(body).to_bytes(4, "big") + body
    client.say(framed(b"\x00\x02\x00\x02\x01\x00\x00\x00\x01" + entry))
    confirmed.join()


def read(files: list[Path]) -> None:
    """Read all files, and discard the data."""
    block = bytearray(BLOCK)
    for file in files:
        with file.open("rb", buffering=0) as found:
            while found.readinto(block):
                pass


def forget(files: list[Path]) -> None:
    """Ask the system to drop the files from its cache."""
    for file in files:
        with file.open("rb") as found:
            os.posix_fadvise(found.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def on_cpu(pid: int) -> float:
    """Return the CPU time of all threads of a process, in seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


class Client:
    """The client side of a connection of the stream protocol."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self.file = self._socket.makefile("rb")
        self.ask(commands.PeerProperties({}))
        self.ask(commands.SaslAuthenticate("PLAIN", b"\0guest\0guest"))
        self.hear()
        self.say(commands.Tune(0, 0).encode())
        self.ask(commands.Open("/"))

    def say(self, data: bytes) -> None:
        """Send a frame."""
        self._socket.sendall(data)

    def hear(self) -> bytes:
        """Return the next frame."""
        return self.file.read(int.from_bytes(self.file.read(4), "big"))

    def ask(self, command: StreamCommand) -> bytes:
        """Send a command, and return its response."""
        self.say(command.encode(1))
        return self.hear()

    def await_confirms(self, count: int) -> None:
        """Wait until `count` messages are confirmed."""
        while count:
            frame = self.hear()
            assert frame[:2] == CommandKey.PUBLISH_CONFIRM.to_bytes(2, "big"), frame[:20]
            count -= int.from_bytes(frame[5:9], "big")


def _consume(port: int, count: int, properties: dict[str, str], reported: Connection) -> None:
    client = Client(port)
    begin, own = time.perf_counter(), time.process_time()
    client.ask(commands.Subscribe(1, STREAM, FIRST, CREDIT, properties))
    byte_count = 0
    for size, messages in _chunks(client.file.readinto1):
        byte_count += size
        count -= messages
        if count <= 0:
            break
        client.say(commands.Credit(1, 1).encode())
    reported.send((time.perf_counter() - begin, byte_count, time.process_time() - own))


def _chunks(receive: Callable[[bytearray], int]) -> Iterator[tuple[int, int]]:
    """Yield the bytes and the number of messages of each Deliver, parsing only its beginning."""
    buffer = bytearray(BLOCK)
    head, left = b"", 0
    while got := receive(buffer):
        at = 0
        while at < got:
            if left:
                passed = min(left, got - at)
                at += passed
                left -= passed
                continue
            begins = bytes(buffer[at : min(got, at + HEAD - len(head))])
            head += begins
            at += len(begins)
            if len(head) == HEAD:
                size = 4 + int.from_bytes(head[:4], "big")
                left = size - HEAD
                yield size, int.from_bytes(head[13:17], "big")
                head = b""


if __name__ == "__main__":
    main()
