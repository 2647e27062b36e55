"""Logins that a web server decides."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from warren.access.directory import DirectoryUnavailable
from warren.limits import LDAP_CACHE_MS
from warren.limits_access import HTTP_LOGIN_ANSWER_SIZE_MAX
from warren.node.auth_server import AuthServer, AuthServerSettings
from warren.node.http_login import HttpLogin


class HandClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> int:
        return self.at


class Server:
    """A web server that answers `text`, and the login that asks it."""

    def __init__(self) -> None:
        self.text, self.status = "allow", 200
        self.asked: list[tuple[str, dict[str, str], str]] = []
        self.connections: set[object] = set()
        self.clock = HandClock()

    async def answer(self, request: web.Request) -> web.Response:
        fields = {str(name): str(value) for name, value in (await request.post()).items()}
        self.asked.append((request.method, fields or dict(request.query), request.path))
        self.connections.add(request.transport)
        return web.Response(text=self.text, status=self.status, headers={"location": "/elsewhere"})

    def login(self, url: str, **settings: object) -> HttpLogin:
        server = AuthServer(AuthServerSettings(**settings))  # type: ignore[arg-type]
        return HttpLogin(server, url, self.clock, cache_ttl_ms=LDAP_CACHE_MS)

    def run(self, work: Callable[[HttpLogin], Awaitable[None]], **settings: object) -> None:
        """Run `work` with the login, whose server is asked with `settings`."""

        async def served() -> None:
            app = web.Application()
            app.router.add_route("*", "/auth/user", self.answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/auth/user"
            login = self.login(url, **settings)
            try:
                await work(login)
            finally:
                await login.close()
                await runner.cleanup()

        asyncio.run(served())


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("allow", ()),
        ("Allow\n", ()),
        ("allow administrator  monitoring administrator", ("administrator", "monitoring")),
        ("deny", None),
        ("DENY", None),
        ("deny the account is closed", None),
    ],
)
def test_the_first_word_of_the_answer_decides_and_the_others_are_tags(
    server: Server, text: str, tags: tuple[str, ...] | None
) -> None:
    server.text = text

    async def work(login: HttpLogin) -> None:
        assert await login.tags_of("alice", "secret") == tags

    server.run(work)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_name_and_password_are_sent_as_the_method_says(server: Server, method: str) -> None:
    async def work(login: HttpLogin) -> None:
        assert await login.tags_of("a&b", "p=q ü+%2F") == ()
        assert await login.tags_of("CN=of a certificate", None) == ()

    server.run(work, method=method)
    assert server.asked == [
        (method, {"username": "a&b", "password": "p=q ü+%2F"}, "/auth/user"),
        (method, {"username": "CN=of a certificate"}, "/auth/user"),
    ]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, "allow"),
        (302, "allow"),
        (404, "deny"),
        (200, ""),
        (200, "allowed"),
        (200, "<html>"),
        (200, "allow " + "x" * HTTP_LOGIN_ANSWER_SIZE_MAX),
    ],
)
def test_another_answer_is_none(server: Server, status: int, text: str) -> None:
    server.status, server.text = status, text

    async def work(login: HttpLogin) -> None:
        with pytest.raises(DirectoryUnavailable) as caught:
            await login.tags_of("alice", "secret")
        assert "secret" not in str(caught.value)

    server.run(work)


def test_a_server_that_is_not_there_or_too_slow_gives_no_answer(server: Server) -> None:
    async def nobody(login: HttpLogin) -> None:
        absent = server.login("http://127.0.0.1:1/auth/user")
        with pytest.raises(DirectoryUnavailable, match="ClientConnectorError"):
            await absent.tags_of("alice", "secret")
        await absent.close()

    server.run(nobody)
    answer = server.answer

    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return await answer(request)

    server.answer = slow  # type: ignore[method-assign]

    async def waits(login: HttpLogin) -> None:
        with pytest.raises(DirectoryUnavailable, match="TimeoutError"):
            await login.tags_of("alice", "secret")

    server.run(waits, request_timeout_ms=50)


def test_an_allowed_login_is_cached_and_a_refused_one_is_not(server: Server) -> None:
    async def work(login: HttpLogin) -> None:
        assert await login.tags_of("alice", "secret") == ()
        assert await login.tags_of("alice", "secret") == ()
        assert len(server.asked) == 1
        server.text = "deny"
        assert await login.tags_of("alice", "wrong") is None
        assert await login.tags_of("alice", "wrong") is None
        assert len(server.asked) == 3
        assert await login.tags_of("alice", "secret") == ()
        server.clock.at = LDAP_CACHE_MS
        assert await login.tags_of("alice", "secret") is None

    server.run(work)


def test_concurrent_logins_share_a_request_and_others_a_connection(server: Server) -> None:
    async def work(login: HttpLogin) -> None:
        assert await asyncio.gather(*(login.tags_of("alice", "secret") for _ in range(5))) == [()] * 5
        assert len(server.asked) == 1
        for name in ("bob", "carol", "dave"):
            assert await login.tags_of(name, "secret") == ()
        assert len(server.asked) == 4
        assert len(server.connections) == 1

    server.run(work)
