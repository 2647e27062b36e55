"""Moves what waits in queues from one broker to the other by shovels, and counts it.

A shovel forwards until its queue is empty, and is deleted then: its stop waits for what is on its way. One of
a stream reads until nothing more comes. It has a single run: after a lost connection, or a restart of Warren,
it would begin at its first offset again, and messages arrive twice. Another one begins behind the last
message in the copy, which has the offset of the original in its headers.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from warren.cli.operator.failures import Failure, ObjectNotFound
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.move_from.move import Move
from warren.limits_http import PEEKED_MAX

_SHOVEL = "/parameters/shovel/{vhost}/{name}"
_PREFETCH = 1000
# Shovels at a time: each has a connection to the old broker.
_SHOVELS_MAX = 50
# The time without a message after which the copy of a stream is complete: a broker that answers sends what it
# has at once, and RabbitMQ's count of it is up to 5 s old.
STREAM_IDLE_S = 10
_OFFSET = "x-stream-offset"
# The states of a shovel that copies a stream, or is about to.
_AT_WORK = ("starting", "running")
_POLL_S = 0.2
# The longest name of a shovel, in bytes.
_NAME_SIZE_MAX = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDrain:
    """A queue to move, and the number of messages that it has to move."""

    vhost: str
    name: str
    is_stream: bool
    messages: int
    # True if a copy of the stream has begun before.
    is_resumed: bool = False

    @property
    def place(self) -> str:
        """Name the queue in a line of output."""
        return f"{'stream' if self.is_stream else 'queue'} {self.name!r} in vhost {self.vhost!r}"


Place = tuple[str, str]
# Counts the ready messages of queues at the source.
Count = Callable[[Collection[Place]], Mapping[Place, int | None]]


class Drainer:
    """Moves the messages of queues in one direction."""

    def __init__(self, move: Move, count: Count, *, is_returning: bool) -> None:
        """`is_returning` is True if the source is Warren, and False if it is the old broker."""
        self._move = move
        self._count = count
        self._is_returning = is_returning
        # When something last moved, and what had been moved then; when each stream last did.
        self._moved_at = time.monotonic()
        self._progress: dict[Place, tuple[int, float]] = {}

    def run(self, drains: Sequence[QueueDrain]) -> None:
        """Move the messages of `drains`. Raises Failure if nothing moves any more."""
        for start in range(0, len(drains), _SHOVELS_MAX):
            running = {}
            for drain in drains[start : start + _SHOVELS_MAX]:
                name = self._start(drain)
                running[drain.vhost, name] = drain
            self._moved_at = time.monotonic()
            while running:
                self._wait(running)
                if running:
                    time.sleep(_POLL_S)

    # --- private ------------------------------------------------------------------------------------

    def _start(self, drain: QueueDrain) -> str:
        """Create the shovel of `drain`, unless it runs since an earlier try, and return its name."""
        state, api = self._move.state, self._move.api
        name = f"{'return' if self._is_returning else 'drain'} {drain.name}"
        # A name of a queue has as many bytes as one of a shovel may have.
        name = name.encode()[:_NAME_SIZE_MAX].decode(errors="ignore")
        entry = [drain.vhost, name, drain.name]
        if entry in state.shovels:
            row = self._row(drain.vhost, name)
            if not drain.is_stream or (row is not None and row["state"] in _AT_WORK):
                return name
            delete_shovel(self._move, drain.vhost, name)
        value = self._definition(drain)
        where = {"vhost": drain.vhost, "name": name}
        found = api.send(
            "POST", filled("/warren/shovels/{vhost}/check", where), {"value": value, "name": name}
        )
        for step in found["steps"]:
            if step["state"] == "refused":
                raise Failure(
                    f"{drain.place}: {step['end']}: {step['action']} {step['name']}: {step['text']}"
                )
        state.shovels.append(entry)
        if drain.is_stream:
            self._note_stream(drain, None)
        self._move.save()
        api.send("PUT", filled(_SHOVEL, where), {"value": value, "component": "shovel", **where})
        return name

    def _definition(self, drain: QueueDrain) -> dict[str, Any]:
        here = filled("amqp:///{vhost}", {"vhost": drain.vhost})
        there = self._move.old.uri(drain.vhost)
        source, destination = (here, there) if self._is_returning else (there, here)
        definition: dict[str, Any] = {
            "src-uri": source,
            "src-queue": drain.name,
            "src-predeclared": True,
            "src-prefetch-count": _PREFETCH,
            "dest-uri": destination,
            "dest-queue": drain.name,
            "dest-predeclared": True,
        }
        if drain.is_stream:
            offset = self._last_copied(drain) if drain.is_resumed else None
            definition["src-consumer-args"] = {_OFFSET: "first" if offset is None else offset + 1}
            definition["single-run"] = True
        return definition

    def _last_copied(self, drain: QueueDrain) -> int | None:
        """The offset in the old broker of the last message in the copy; None if it has none.

        The copy is read from its end: publishers may have published to it since.
        """
        path = filled("/warren/queues/{vhost}/{name}/messages", {"vhost": drain.vhost, "name": drain.name})

        def page(start: int) -> list[Row]:
            query = [("from", start), ("count", PEEKED_MAX), ("truncate", 0)]
            rows: list[Row] = self._move.api.get(path, query)["messages"]
            return rows

        queue, first = self._move.queue(drain.vhost, drain.name), page(0)
        if queue is None or not first:
            return None
        start = first[0]["position"] + queue["messages"]
        while start > first[0]["position"]:
            start = max(start - PEEKED_MAX, first[0]["position"])
            for row in reversed(page(start)):
                properties = row["properties"]
                headers = properties.get("headers", {}) if isinstance(properties, dict) else {}
                if _OFFSET in headers:
                    return int(headers[_OFFSET])
        return None

    def _note_stream(self, drain: QueueDrain, messages: int | None) -> None:
        """Note how many messages a stream had when its copy was complete; None while it is not."""
        state = self._move.state
        others = [each for each in state.streams if each[:2] != [drain.vhost, drain.name]]
        state.streams = [*others, [drain.vhost, drain.name, messages]]

    def _wait(self, running: dict[Place, QueueDrain]) -> None:
        """End the shovels that have moved all; raises Failure if none has moved anything for long."""
        now = time.monotonic()
        ready = self._count([(drain.vhost, drain.name) for drain in running.values()])
        for key, drain in list(running.items()):
            row = self._row(*key)
            if row is None:
                raise Failure(f"{drain.place}: its shovel {key[1]!r} was deleted; run the step again")
            confirmed, changed_at = self._progress.get(key, (-1, now))
            if row["confirmed"] != confirmed:
                self._moved_at = changed_at = now
                self._progress[key] = row["confirmed"], now
            if self._is_over(drain, row, ready.get((drain.vhost, drain.name)), now - changed_at):
                self._end(key, drain, row["confirmed"])
                del running[key]
            elif drain.is_stream and row["state"] == "terminated":
                raise Failure(_cut_text(drain, row))
        if running and now - self._moved_at > self._move.timeout_s:
            raise Failure("; ".join(self._stuck(running)))

    def _is_over(self, drain: QueueDrain, row: Row, ready: int | None, idle_s: float) -> bool:
        if row["state"] != "running" or row["pending"] or row["unconfirmed"]:
            return False
        if not drain.is_stream:
            return not ready
        # The old broker has answered the count meanwhile, and sends no more.
        return idle_s > STREAM_IDLE_S

    def _end(self, key: Place, drain: QueueDrain, confirmed: int) -> None:
        state, session = self._move.state, self._move.session
        delete_shovel(self._move, *key)
        if drain.is_stream:
            self._note_stream(drain, self._count_stream(drain, confirmed))
        state.moved.append([drain.vhost, drain.name, -confirmed if self._is_returning else confirmed])
        self._move.save()
        session.say(f"{drain.place}: {confirmed} {'returned' if self._is_returning else 'moved'}")

    def _count_stream(self, drain: QueueDrain, confirmed: int) -> int:
        """The number of messages in a stream of the old broker, whose statistics are those of now."""
        place = drain.vhost, drain.name
        counted = {(queue.vhost, queue.name): queue.messages for queue in self._move.old.queues()}.get(
            place, 0
        )
        total = confirmed + sum(each[2] for each in self._move.state.moved if tuple(each[:2]) == place)
        if total < counted:
            self._move.session.note(
                f"{drain.place}: {total} copied; the old broker counts {counted}, perhaps not only messages"
            )
        return counted

    def _stuck(self, running: dict[Place, QueueDrain]) -> Iterator[str]:
        yield f"nothing has moved for {self._move.timeout_s:g} s"
        for key, drain in running.items():
            row = self._row(*key) or {}
            yield f"{drain.place}: {row.get('why') or row.get('reason') or row.get('state')}"

    def _row(self, vhost: str, name: str) -> Row | None:
        try:
            path = filled("/shovels/vhost/{vhost}/{name}", {"vhost": vhost, "name": name})
            row: Row = self._move.api.get(path)
        except ObjectNotFound:
            return None
        return row


def delete_shovel(move: Move, vhost: str, name: str) -> None:
    """Delete a shovel of the move, which stops when what is on its way is settled."""
    with suppress(ObjectNotFound):
        move.api.send("DELETE", filled(_SHOVEL, {"vhost": vhost, "name": name}))
    move.state.shovels = [each for each in move.state.shovels if each[:2] != [vhost, name]]
    move.save()


def _cut_text(drain: QueueDrain, row: Row) -> str:
    return (
        f"{drain.place}: the connection was lost after {row['confirmed']} of {drain.messages} messages "
        f"({row.get('reason')}); run the step again, which continues there"
    )
