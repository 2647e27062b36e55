"""Event streams of the API: their number and their unsent data are bounded."""

import asyncio
import json
from contextlib import ExitStack

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from msgspec.structs import replace

from warren.limits_http import LIVE_EVENT_SIZE_MAX, LIVE_SIZE_MAX, LIVE_USER_SIZE_MAX, LIVE_USER_STREAMS_MAX
from warren.management.event_streams import EventStreams
from warren.management.node_requests import note_missing
from warren.management.replies import RequestRefused, reply
from warren.metadata.users import User

ALICE = User(name="alice", password_hash=b"", hashing_algorithm="", tags=("monitoring",), limits={})


async def nothing(request: web.Request) -> web.Response:
    return web.Response()


def test_unsent_bytes_are_bounded_per_user_and_in_total() -> None:
    async def work() -> None:
        event_streams = EventStreams(nothing)
        with ExitStack() as stack:
            assert stack.enter_context(event_streams.reserve("alice", LIVE_USER_SIZE_MAX))
            assert not stack.enter_context(event_streams.reserve("alice", 1))
            for at in range(LIVE_SIZE_MAX // LIVE_USER_SIZE_MAX - 1):
                assert stack.enter_context(event_streams.reserve(f"user {at}", LIVE_USER_SIZE_MAX))
            assert not stack.enter_context(event_streams.reserve("bob", 1))
        with event_streams.reserve("alice", 1) as may_be_sent:
            assert may_be_sent

    asyncio.run(work())


def test_the_number_of_streams_of_a_user_is_bounded() -> None:
    async def work() -> None:
        event_streams = EventStreams(nothing)
        with ExitStack() as stack:
            for _ in range(LIVE_USER_STREAMS_MAX):
                stack.enter_context(event_streams.open_stream("alice"))
            with pytest.raises(RequestRefused), event_streams.open_stream("alice"):
                pass
            with event_streams.open_stream("bob"):
                pass
        with event_streams.open_stream("alice"):
            pass

    asyncio.run(work())


def test_identical_requests_of_one_user_are_answered_once() -> None:
    asked: list[str] = []

    async def ask(request: web.Request) -> web.Response:
        asked.append(request.path)
        await asyncio.sleep(0)
        return reply({"asked": len(asked)})

    async def work() -> None:
        event_streams = EventStreams(ask)
        request = make_mocked_request("GET", "/api/warren/live")
        events = await asyncio.gather(*(event_streams.event(request, ALICE, "/api/a") for _ in range(10)))
        assert len(asked) == 1
        assert all(event is events[0] for event in events)
        await event_streams.event(request, ALICE, "/api/b")
        # A user of the same name with other tags is another user.
        await event_streams.event(request, replace(ALICE, tags=()), "/api/a")
        assert asked == ["/api/a", "/api/b", "/api/a"]

    asyncio.run(work())


def test_an_answer_that_is_too_large_is_not_sent() -> None:
    async def ask(request: web.Request) -> web.Response:
        return reply("x" * LIVE_EVENT_SIZE_MAX)

    async def work() -> None:
        event = await EventStreams(ask).event(make_mocked_request("GET", "/"), ALICE, "/api/a")
        assert b'"status":413' in event

    asyncio.run(work())


def test_an_event_names_the_nodes_that_its_response_is_without() -> None:
    async def ask(request: web.Request) -> web.Response:
        if request.path == "/api/part":
            note_missing(request, "b@host")
            note_missing(request, "c@host")
        return reply({"queues": 1})

    async def work() -> None:
        event_streams, request = EventStreams(ask), make_mocked_request("GET", "/")
        part = await event_streams.event(request, ALICE, "/api/part")
        assert json.loads(part.removeprefix(b"data: ")) == {
            "path": "/api/part",
            "status": 200,
            "nodes_missing": ["b@host", "c@host"],
            "body": {"queues": 1},
        }
        whole = await event_streams.event(request, ALICE, "/api/whole")
        assert json.loads(whole.removeprefix(b"data: ")) == {
            "path": "/api/whole",
            "status": 200,
            "body": {"queues": 1},
        }

    asyncio.run(work())
