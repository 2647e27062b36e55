"""Permissions that a web server decides: requests, answers, and what is cached."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from tests.unit.node.test_http_login import HandClock

from warren.access.web_grants import WebDecision, WebQuestion, WebQuestionKind
from warren.limits_access import WEB_DECISIONS_CACHED_MAX, WEB_QUESTIONS_WAITING_MAX
from warren.node import http_permissions
from warren.node.auth_server import AuthServer, AuthServerSettings
from warren.node.http_permissions import HttpPermissions

CACHE_MS = 1_000
BACKEND = "backend rabbit_auth_backend_http"
ALLOWED = WebDecision(True)


def question(name: str = "q") -> WebQuestion:
    return WebQuestion(WebQuestionKind.RESOURCE, (("username", "alice"), ("name", name)))


class Server:
    """A web server that answers `text`, and the permissions that are asked from it."""

    def __init__(self) -> None:
        self.text, self.status = "allow", 200
        self.asked: list[str] = []
        self.clock = HandClock()
        self.is_held = False

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.rel_url.raw_path_qs)
        if self.is_held:
            await asyncio.sleep(60)
        return web.Response(text=self.text, status=self.status)

    def run(
        self,
        work: Callable[[HttpPermissions], Awaitable[None]],
        *,
        discloses_reasons: bool = False,
        **settings: object,
    ) -> None:
        """Run `work` with the permissions, whose server is asked with `settings`."""

        async def served() -> None:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            permissions = HttpPermissions(
                AuthServer(AuthServerSettings(**settings)),  # type: ignore[arg-type]
                {kind: f"{url}/{kind.name.lower()}?site=1" for kind in WebQuestionKind},
                self.clock,
                cache_ttl_ms=CACHE_MS,
                discloses_reasons=discloses_reasons,
            )
            try:
                await work(permissions)
            finally:
                await permissions.close()
                await runner.cleanup()

        asyncio.run(served())


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize(
    ("status", "text", "is_disclosed", "decision"),
    [
        (200, "allow", False, ALLOWED),
        (201, " Allow\n", False, ALLOWED),
        (200, "deny", True, WebDecision(False)),
        (200, "DENY it is closed", False, WebDecision(False)),
        (
            200,
            "deny it is closed",
            True,
            WebDecision(False, " by backend rabbit_auth_backend_http: it is closed"),
        ),
        (
            200,
            "allow it",
            False,
            WebDecision(False, ", backend rabbit_auth_backend_http returned an error: bad_response"),
        ),
        (
            404,
            "allow",
            False,
            WebDecision(False, ", backend rabbit_auth_backend_http returned an error: {404}"),
        ),
    ],
)
def test_only_allow_allows(
    server: Server, status: int, text: str, is_disclosed: bool, decision: WebDecision
) -> None:
    server.status, server.text = status, text

    async def work(permissions: HttpPermissions) -> None:
        assert await permissions.decide(question()) == decision

    server.run(work, discloses_reasons=is_disclosed)


def test_each_kind_of_question_has_an_address_and_every_byte_is_encoded(server: Server) -> None:
    async def work(permissions: HttpPermissions) -> None:
        for kind in WebQuestionKind:
            await permissions.decide(WebQuestion(kind, (("name", "/ +%&=?#é~\udcff"),)))

    server.run(work)
    query = "site=1&name=%2F+%2B%25%26%3D%3F%23%C3%A9~%FF"
    assert server.asked == [f"/vhost?{query}", f"/resource?{query}", f"/topic?{query}"]


def test_what_is_allowed_is_cached_for_a_while_and_what_is_refused_is_not(server: Server) -> None:
    async def work(permissions: HttpPermissions) -> None:
        for _ in range(2):
            assert await permissions.decide(question()) == ALLOWED
        assert len(server.asked) == 1
        server.clock.at = CACHE_MS
        server.text = "deny"
        for _ in range(2):
            assert not (await permissions.decide(question())).is_allowed
        assert len(server.asked) == 3

    server.run(work)


def test_the_same_question_is_asked_once_at_a_time(server: Server) -> None:
    async def work(permissions: HttpPermissions) -> None:
        found = await asyncio.gather(*(permissions.decide(question(name)) for name in "aabab"))
        assert found == [ALLOWED] * 5
        assert len(server.asked) == 2

    server.run(work)


def test_a_server_that_hangs_refuses_after_the_timeout_and_few_wait_for_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WEB_QUESTIONS_WAITING_MAX > 2
    monkeypatch.setattr(http_permissions, "WEB_QUESTIONS_WAITING_MAX", 2)
    server.is_held = True

    async def work(permissions: HttpPermissions) -> None:
        found = await asyncio.gather(*(permissions.decide(question(name)) for name in "abc"))
        assert [decision.note.rpartition(": ")[2] for decision in found] == [
            "timeout", "timeout", "too many questions are waiting for it",
        ]  # fmt: skip

    server.run(work, request_timeout_ms=50)


def test_a_cancelled_client_leaves_the_question_to_the_others(server: Server) -> None:
    async def work(permissions: HttpPermissions) -> None:
        first = asyncio.create_task(permissions.decide(question()))
        second = asyncio.create_task(permissions.decide(question()))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == ALLOWED
        assert len(server.asked) == 1

    server.run(work)


def test_the_cache_is_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert WEB_DECISIONS_CACHED_MAX > 1
    monkeypatch.setattr(http_permissions, "WEB_DECISIONS_CACHED_MAX", 1)

    async def work(permissions: HttpPermissions) -> None:
        for name in "aabba":
            await permissions.decide(question(name))
        assert len(server.asked) == 3

    server.run(work)
