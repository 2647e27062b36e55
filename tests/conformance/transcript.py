"""Transcripts: text files with what a client sends (`C>`) and what the broker answers (`S>`).

The file begins with the sentence it proves and the paragraph it comes from; a line `differs-from-rabbitmq:
reason` marks an intended difference, and then `R>` lines may contain the answer of RabbitMQ. `C2>` and `S2>`
are a second connection. README.md lists the verbs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance import notation
from tests.conformance.client import Client, TranscriptContext
from tests.conformance.notation import LineReader
from tests.conformance.peer import Event, Mismatch, Peer
from tests.patience import patient

TRANSCRIPTS = Path(__file__).with_name("transcripts")
ANSWER_S = patient(8.0)
QUIET_S = 1.0
_STEP = re.compile(r"(?P<who>[CSR])(?P<connection>\d*)>\s*(?P<text>.*)")
_MARK = re.compile(r"(differs-from-rabbitmq|xfail): *(.+)")
_GENERATED = [
    (re.compile(r'"(amq\.(?:gen|ctag)-)[\w-]{22}"'), r'~"\1*"'),
    (re.compile(r'"time": \d+T'), r'"time": *'),
    (re.compile(r'"amq\.rabbitmq\.reply-to\.[^"]+"'), r'~"amq.rabbitmq.reply-to.*"'),
]


@dataclass(frozen=True)
class Step:
    """One line of a transcript, with its place in the file."""

    place: int
    who: str
    connection: int
    text: str


@dataclass
class Transcript:
    """A file of steps."""

    path: Path
    title: str = ""
    marks: dict[str, str] = field(default_factory=dict)
    citation: str = ""
    lines: list[str] = field(default_factory=list)
    blocks: list[list[Step]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Transcript:
        """Parse a file into blocks: runs of C lines, and runs of S and R lines, alternately."""
        return cls.parse(path, path.read_text().splitlines())

    @classmethod
    def parse(cls, path: Path, lines: list[str]) -> Transcript:
        """Parse `lines`, which are a part of a file."""
        transcript = cls(path, lines=lines)
        transcript.title = transcript.lines[0]
        for place, line in enumerate(transcript.lines):
            mark = _MARK.fullmatch(line)
            step = _STEP.fullmatch(line)
            if mark:
                transcript.marks[mark[1]] = mark[2]
            elif step:
                transcript._add(Step(place, step["who"], int(step["connection"] or 1), step["text"]))
            elif not transcript.blocks:
                transcript.citation += line + "\n"
            elif line and not line.startswith("#"):
                raise ValueError(f"{path.name}:{place + 1}: {line!r} is no step")
        return transcript

    def applies(self, is_rabbitmq: bool) -> bool:
        """Whether it applies to this broker: not if RabbitMQ differs and its answer is not given."""
        answers = {step.who for block in self.blocks for step in block}
        return not is_rabbitmq or "differs-from-rabbitmq" not in self.marks or "R" in answers

    def spoken(self, context: TranscriptContext) -> Iterator[Step]:
        """The steps that apply to the broker of `context`: what is sent to it, and what it answers."""
        for block in self.blocks:
            yield from _spoken(block, context)

    def _add(self, step: Step) -> None:
        if self.blocks and (self.blocks[-1][0].who == "C") == (step.who == "C"):
            self.blocks[-1].append(step)
        else:
            self.blocks.append([step])


def play(transcript: Transcript, context: TranscriptContext) -> None:
    """Send the C lines, and compare the answers with the S lines (or R lines, for RabbitMQ)."""
    client = Client(context)
    try:
        for block in transcript.blocks:
            for step in _spoken(block, context):
                try:
                    _play_step(step, client)
                except (Mismatch, ValueError, KeyError, OSError) as error:
                    name = f"{transcript.path.parent.name}/{transcript.path.name}"
                    raise Mismatch(f"{name}:{step.place + 1}: {step.text}\n    {error}") from error
        if not (context.is_rabbitmq and "differs-from-rabbitmq" in transcript.marks):
            client.finish()
    finally:
        client.clean_up()


def rewrite(transcript: Transcript, context: TranscriptContext, settle_s: float = 0.0) -> str:
    """The text of the file with the S lines (or R lines) that the broker answers now.

    Queues are given `settle_s` before they are asked for their counts.
    """
    client = Client(context)
    lines: list[str | None] = list(transcript.lines)
    try:
        for block in transcript.blocks:
            if block[0].who == "C":
                for step in block:
                    if "passive=true" in step.text:
                        time.sleep(settle_s)
                    client.perform(step.connection, step.text)
                continue
            spoken = _spoken(block, context)
            fresh = record_block(spoken, client)
            if fresh == [transcript.lines[step.place] for step in spoken]:
                continue
            for step in spoken:
                lines[step.place] = None
            lines[spoken[0].place] = "\n".join(fresh)
    finally:
        client.clean_up()
    return "\n".join(line for line in lines if line is not None) + "\n"


def describe(event: Event) -> str:
    """The notation of an event."""
    prefix = f"{event.channel} " if event.channel else ""
    if event.name == "body":
        return f"{prefix}body {notation.write(event.values['octets'])}"
    values = " ".join(f"{name}={notation.write(value)}" for name, value in event.values.items())
    return f"{prefix}{event.name} {values}".rstrip()


def _spoken(block: list[Step], context: TranscriptContext) -> list[Step]:
    if block[0].who == "C":
        return block
    theirs = [step for step in block if step.who == "R"]
    return theirs if context.is_rabbitmq and theirs else [step for step in block if step.who == "S"]


def _play_step(step: Step, client: Client) -> None:
    if step.who == "C":
        client.perform(step.connection, step.text)
    else:
        expect(step.text, client.peers[step.connection], client.context, client.kept)


def expect(text: str, peer: Peer, context: TranscriptContext, kept: dict[str, Any]) -> None:
    """Receive from `peer` what one S line describes; raises `Mismatch` for anything else, or nothing."""
    channels, line = _channels(text)
    name = line.word()
    if name == "closed":
        _expect_closed(line, peer, context)
    elif name == "silence":
        event = peer.next_event(None, float(line.value()))
        if event is not None or peer.is_closed:
            raise Mismatch(f"got {context.plain(describe(event)) if event else 'closed'}")
    elif name in ("confirmed", "refused"):
        _expect_confirmations(channels[0], name, line, peer)
    else:
        expected = {"octets": line.value()} if name == "body" else line.fields()
        if context.is_rabbitmq and not context.is_rabbitmq_4:
            for field_name in {"headers", "server_properties"} & set(expected):
                expected[field_name] = _without_additions(expected[field_name])
        for channel in channels:
            event = peer.next_event(channel, ANSWER_S)
            if event is None:
                raise Mismatch("got " + ("closed" if peer.is_closed else _waiting(peer, context)))
            actual = context.plain(event.values)
            added = ("x-acquired-count", "x-delivery-count") if context.is_quorum else ("x-acquired-count",)
            if not context.is_rabbitmq_4:
                actual = _without_counts(actual, expected, added)
            if event.name != name or not notation.matches(expected, actual, kept):
                raise Mismatch(f"got {describe(Event(event.channel, event.name, actual))}")


def _without_additions(table: Any) -> Any:
    """`table` as in RabbitMQ 3.10: without the name of Warren, and without the last death, which RabbitMQ 4
    has.
    """
    if not isinstance(table, dict):
        return table
    return {
        key: value for key, value in table.items() if not key.startswith("x-last-death-") and key != "warren"
    }


def _without_counts(
    values: dict[str, Any], expected: dict[str, Any], added: tuple[str, ...]
) -> dict[str, Any]:
    """`values` without the headers `added` by quorum queues, and without headers if none are `expected`."""
    headers = values.get("headers")
    if not isinstance(headers, dict) or headers.keys().isdisjoint(added):
        return values
    left = {key: value for key, value in headers.items() if key not in added}
    others = {key: value for key, value in values.items() if key != "headers"}
    return others | {"headers": left} if left or "headers" in expected else others


def _waiting(peer: Peer, context: TranscriptContext) -> str:
    others = [context.plain(describe(event)) for event in peer.arrived]
    return f"silence (on other channels: {others})" if others else "silence"


def _channels(text: str) -> tuple[range, LineReader]:
    found = re.match(r"(\d+)(?:\.\.(\d+))?\s+", text)
    if found is None:
        return range(1), LineReader(text)
    first = int(found[1])
    return range(first, int(found[2] or first) + 1), LineReader(text[found.end() :])


def _expect_closed(line: LineReader, peer: Peer, context: TranscriptContext) -> None:
    after = None
    if not line.is_finished():
        line.word()
        after = float(line.value())
    if not peer.wait_closed((after or ANSWER_S) + 4):
        raise Mismatch("the socket stays open")
    before = [context.plain(describe(event)) for event in peer.arrived if event.name != "heartbeat"]
    if before:
        raise Mismatch(f"before that, got {before}")
    passed = time.monotonic() - peer.sent_at
    if after is not None and not after - 0.3 <= passed <= after + 3:
        raise Mismatch(f"closed after {passed:.1f}")


def _expect_confirmations(channel: int, name: str, line: LineReader, peer: Peer) -> None:
    """`confirmed 1..50`: acks, single or multiple, that confirm these numbers and no others."""
    first, last = int(line.value()), 0
    last = int(line.fields().get("to", first))
    due = set(range(first, last + 1))
    method = "basic.ack" if name == "confirmed" else "basic.nack"
    while due:
        event = peer.next_event(channel, ANSWER_S)
        if event is None or event.name != method:
            raise Mismatch(f"{sorted(due)[:9]} due, got {describe(event) if event else 'nothing'}")
        tag = event.values["delivery_tag"]
        settled = {number for number in due if number <= tag} if event.values["multiple"] else {tag} & due
        if not settled or tag not in settled:
            raise Mismatch(f"{sorted(due)[:9]} due, got {describe(event)}")
        due -= settled


def record_block(block: list[Step], client: Client) -> list[str]:
    """What the peers receive until all are quiet, one line each; lines that match already are kept."""
    hints = [
        float(found[1])
        for step in block
        if (found := re.search(r"(?:after|silence|\?) ?([\d.]+)", step.text))
    ]
    quiet_s = max([QUIET_S, *(hint + 1 for hint in hints)])
    events: list[tuple[int, Event]] = []
    deadline = time.monotonic() + quiet_s
    closed_at = {}
    while time.monotonic() < deadline:
        for number, peer in client.peers.items():
            event = peer.next_event(None, 0.02)
            if (
                event is not None
                and event.name == "heartbeat"
                and not any("heartbeat" in step.text for step in block)
            ):
                continue
            if event is not None:
                events.append((number, event))
                deadline = time.monotonic() + quiet_s
            elif peer.is_closed and number not in client.closed:
                closed_at[number] = time.monotonic() - peer.sent_at
                client.closed.add(number)
    if kept := _still_true(block, events, closed_at, client):
        return kept
    return _fresh_lines(block, events, closed_at, client)


def _still_true(
    block: list[Step], events: list[tuple[int, Event]], closed_at: dict[int, float], client: Client
) -> list[str]:
    """The lines of the block, if they match these events."""
    for number, event in reversed(events):
        client.peers[number].put_back(event)
    kept = dict(client.kept)
    try:
        for step in block:
            if "silence" in step.text:
                if events or closed_at:
                    raise Mismatch("not silent")
            elif step.text.startswith("closed"):
                if step.connection not in closed_at:
                    raise Mismatch("not closed")
                after = re.search(r"after ([\d.]+)", step.text)
                if after and abs(float(after[1]) - closed_at[step.connection]) > 0.5:
                    raise Mismatch("not then")
            else:
                expect(step.text, client.peers[step.connection], client.context, kept)
        if any(peer.arrived for peer in client.peers.values()) or not block[0].text:
            raise Mismatch("more has come")
    except (Mismatch, ValueError):
        for peer in client.peers.values():
            while peer.next_event(None, 0):
                pass
        return []
    client.kept = kept
    return [f"{step.who}{step.connection if step.connection > 1 else ''}> {step.text}" for step in block]


def _fresh_lines(
    block: list[Step], events: list[tuple[int, Event]], closed_at: dict[int, float], client: Client
) -> list[str]:
    who = block[0].who
    fresh = []
    for number, event in events:
        plain = Event(event.channel, event.name, client.context.plain(event.values))
        text = describe(plain)
        for pattern, replacement in _GENERATED:
            text = pattern.sub(replacement, text)
        for step in block:
            if step.connection == number and _holds(step.text, plain, client):
                text = step.text
                break
        fresh.append(f"{who}{number if number > 1 else ''}> {text}")
    for number, seconds in closed_at.items():
        after = f" after {seconds:.0f}" if seconds > 1.5 else ""
        fresh.append(f"{who}{number if number > 1 else ''}> closed{after}")
    return fresh or [f"{who}> silence 0.4"]


def _holds(text: str, event: Event, client: Client) -> bool:
    try:
        channels, line = _channels(text)
        if line.word() != event.name or event.channel not in channels:
            return False
        expected = {"octets": line.value()} if event.name == "body" else line.fields()
    except ValueError:
        return False
    return notation.matches(expected, event.values, client.kept)
