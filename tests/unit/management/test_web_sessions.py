"""Who is signed in to the web interface."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import wraps
from itertools import count

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from warren.access.directory import DirectoryEntry, DirectoryGrants, DirectoryRules, DirectoryUser
from warren.access.grants import token_user
from warren.access.scopes import Scopes
from warren.limits_http import (
    SESSION_EXTERNAL_MS_MAX,
    SESSION_IDLE_MS,
    SESSION_MS_MAX,
    SESSION_STORED_MS,
    SESSIONS_OF_USER_MAX,
)
from warren.management import web_sessions
from warren.management.web_sessions import COOKIE, UI_HEADER, StoredWebSession, WebSessions
from warren.metadata.machine import Metadata
from warren.metadata.users import User

ALICE = User(name="alice", password_hash=b"1", hashing_algorithm="sha256", tags=("administrator",), limits={})
USERS = {"alice": ALICE}
NEWCOMER = make_mocked_request("POST", "/api/warren/session")


def in_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """`test` in a loop of its own."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Browser:
    """Keeps the cookie that it is given."""

    def __init__(self) -> None:
        self.now = 0
        numbers = count()
        self.sessions = WebSessions(lambda size: next(numbers).to_bytes(size, "big"), lambda: self.now)
        self.cookie = ""

    def sign_in(self, user: User = ALICE, request: web.Request | None = None) -> str:
        response = web.Response()
        self.sessions.begin(user, request or NEWCOMER, response)
        self.cookie = response.cookies[COOKIE].value
        return response.cookies[COOKIE].OutputString()

    def request(self, method: str = "GET", *, is_marked: bool = True, **more: str) -> web.Request:
        headers = {"cookie": f"{COOKIE}={self.cookie}"} | ({UI_HEADER: "1"} if is_marked else {}) | more
        return make_mocked_request(method, "/api/whoami", headers=headers)

    def user(self, users: dict[str, User] = USERS) -> User | None:
        return self.sessions.user_of(self.request(), users)


def test_whoever_signed_in_is_known_until_they_sign_out() -> None:
    browser = Browser()
    assert browser.user() is None
    browser.sign_in()
    assert browser.user() is ALICE
    browser.sessions.end(browser.request(), web.Response())
    assert browser.user() is None


def test_scripts_cannot_read_the_cookie_and_other_sites_cannot_send_it() -> None:
    secure = make_mocked_request("POST", "/api/warren/session", sslcontext=True)
    sent = Browser().sign_in(request=secure)
    assert "HttpOnly" in sent
    assert "SameSite=Strict" in sent
    assert "Secure" in sent
    assert "alice" not in sent
    assert "Secure" not in Browser().sign_in()


def test_what_changes_something_has_to_carry_the_mark() -> None:
    browser = Browser()
    browser.sign_in()
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        assert browser.sessions.user_of(browser.request(method, is_marked=False), USERS) is None
        assert browser.sessions.user_of(browser.request(method), USERS) is ALICE
    assert browser.sessions.user_of(browser.request("GET", is_marked=False), USERS) is ALICE


def test_a_session_that_nobody_uses_ends() -> None:
    browser = Browser()
    browser.sign_in()
    browser.now += SESSION_IDLE_MS
    assert browser.user() is ALICE
    browser.now += SESSION_IDLE_MS
    assert browser.user() is ALICE, "it was used in between"
    browser.now += SESSION_IDLE_MS + 1
    assert browser.user() is None


def test_a_session_ends_after_a_day_although_it_is_used() -> None:
    browser = Browser()
    browser.sign_in()
    for _ in range(4):
        browser.now += SESSION_MS_MAX // 4
        assert browser.user() is ALICE
    browser.now += 1
    assert browser.user() is None


@pytest.mark.parametrize(
    ("site", "is_let_in"),
    [("same-origin", True), ("none", True), ("same-site", False), ("cross-site", False)],
)
def test_another_page_cannot_use_the_cookie_not_even_of_the_same_host(site: str, is_let_in: bool) -> None:
    browser = Browser()
    browser.sign_in()
    request = browser.request(**{"sec-fetch-site": site})
    assert (browser.sessions.user_of(request, USERS) is ALICE) is is_let_in


def test_who_signs_in_anew_has_another_session_and_the_old_one_is_none() -> None:
    browser = Browser()
    browser.sign_in()
    old = browser.cookie
    browser.sign_in(request=browser.request("POST"))
    assert browser.cookie != old
    assert browser.user() is ALICE
    browser.cookie = old
    assert browser.user() is None


def test_a_cookie_that_somebody_made_up_begins_nothing() -> None:
    browser = Browser()
    browser.cookie = "f" * 64
    browser.sign_in(request=browser.request("POST"))
    assert browser.cookie != "f" * 64


def test_a_session_of_a_token_ends_with_it_and_is_nobody_elses() -> None:
    browser = Browser()
    holder = token_user("alice", Scopes(["tag:monitoring"]), 1_000)
    browser.sign_in(holder)
    assert browser.user() is holder
    namesake = User(name="alice", password_hash=b"", hashing_algorithm="", tags=("administrator",), limits={})
    assert browser.user({"alice": namesake}) is holder
    browser.now = 1_000
    assert browser.user() is None


def test_a_session_of_whom_a_directory_knows_ends_after_an_hour() -> None:
    browser = Browser()
    person = DirectoryEntry("alice", "uid=alice", frozenset())
    grants = DirectoryGrants(DirectoryRules(), person, Metadata().permissions)
    visitor = DirectoryUser(
        name="alice", password_hash=b"", hashing_algorithm="", tags=("management",), limits={}, grants=grants
    )
    browser.sign_in(visitor)
    browser.now = SESSION_EXTERNAL_MS_MAX
    # There is no such user of the metadata, or another one.
    assert browser.user({}) is visitor
    assert browser.user() is visitor
    browser.now += 1
    assert browser.user() is None


def test_a_session_ends_with_its_user_and_with_another_password() -> None:
    changed = User(name="alice", password_hash=b"2", hashing_algorithm="sha256", tags=(), limits={})
    for users in ({}, {"alice": changed}):
        browser = Browser()
        browser.sign_in()
        assert browser.user(users) is None
        assert browser.user() is None


def test_the_tags_are_those_of_now() -> None:
    browser = Browser()
    browser.sign_in()
    less = User(name="alice", password_hash=b"1", hashing_algorithm="sha256", tags=(), limits={})
    assert browser.user({"alice": less}) is less


def named(name: str) -> User:
    return replace(ALICE, name=name)


def test_there_are_so_many_at_most_and_the_one_unused_longest_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_sessions, "SESSIONS_MAX", 100)
    browser = Browser()
    browser.sign_in()
    first = browser.cookie
    browser.sign_in()
    second = browser.cookie
    browser.cookie = first
    assert browser.user() is ALICE
    for number in range(99):
        browser.sign_in(named(str(number)))
    browser.cookie = second
    assert browser.user() is None
    browser.cookie = first
    assert browser.user() is ALICE


def test_who_signs_in_again_and_again_ends_their_own_sessions_and_no_others() -> None:
    browser = Browser()
    bob = named("bob")
    browser.sign_in(bob)
    bobs = browser.cookie
    browser.sign_in()
    first = browser.cookie
    for _ in range(SESSIONS_OF_USER_MAX):
        browser.sign_in()
        assert browser.user() is ALICE
    browser.cookie = first
    assert browser.user() is None
    browser.cookie = bobs
    assert browser.user({"bob": bob}) is bob


def test_a_password_that_comes_back_brings_no_session_back() -> None:
    for between in (None, replace(ALICE, password_hash=b"2"), replace(ALICE, password_hash=b"")):
        browser = Browser()
        browser.sign_in()
        browser.sessions.user_changed("alice", between)
        assert browser.user() is None
    browser = Browser()
    browser.sign_in()
    browser.sessions.user_changed("alice", replace(ALICE, tags=()))
    browser.sessions.user_changed("bob", None)
    assert browser.user() is ALICE


class Restarted:
    """A browser whose broker has a place for sessions, and can be killed."""

    def __init__(self) -> None:
        self.stored: list[StoredWebSession] = []
        self.writes = 0
        self.browser = Browser()
        self.kill()

    async def store(self, sessions: list[StoredWebSession]) -> None:
        self.writes += 1
        self.stored = sessions

    def kill(self, users: dict[str, User] = USERS) -> None:
        self.browser.sessions = WebSessions(lambda size: b"7" * size, lambda: self.browser.now)
        self.browser.sessions.restore(self.stored, users, self.store)


@in_loop
async def test_a_session_outlives_the_node_and_its_end_does_too() -> None:
    restarted = Restarted()
    browser = restarted.browser
    browser.sign_in()
    await browser.sessions.stored()
    restarted.kill()
    assert browser.user() is ALICE
    browser.sessions.end(browser.request(), web.Response())
    await browser.sessions.stored()
    restarted.kill()
    assert browser.user() is None


@in_loop
async def test_what_is_stored_lets_nobody_in() -> None:
    restarted = Restarted()
    restarted.browser.sign_in()
    await restarted.browser.sessions.stored()
    [stored] = restarted.stored
    token = restarted.browser.cookie
    assert token not in repr(stored)
    assert bytes.fromhex(token) != stored.token
    restarted.browser.cookie = stored.token.hex()
    assert restarted.browser.user() is None


@in_loop
async def test_a_session_is_no_younger_after_a_restart() -> None:
    restarted = Restarted()
    browser = restarted.browser
    browser.sign_in()
    await browser.sessions.stored()
    browser.now = SESSION_IDLE_MS + 1
    restarted.kill()
    assert browser.user() is None
    browser.sign_in()
    for _ in range(4):
        browser.now += SESSION_MS_MAX // 4
        assert browser.user() is ALICE
        await browser.sessions.stored()
        restarted.kill()
    browser.now += 1
    assert browser.user() is None


@in_loop
async def test_the_last_use_is_stored_now_and_then_and_at_the_end() -> None:
    restarted = Restarted()
    browser = restarted.browser
    browser.sign_in()
    await browser.sessions.stored()
    browser.now = SESSION_STORED_MS
    assert browser.user() is ALICE
    await browser.sessions.stored()
    assert restarted.writes == 1
    browser.now += 1
    assert browser.user() is ALICE
    await browser.sessions.stored()
    assert restarted.stored[0].used_at == browser.now
    browser.now += 5
    assert browser.user() is ALICE
    await browser.sessions.close()
    assert restarted.stored[0].used_at == browser.now


@in_loop
async def test_who_is_deleted_or_has_another_password_is_not_signed_in_after_a_restart() -> None:
    for users in (
        {},
        {"alice": replace(ALICE, password_hash=b"2")},
        {"alice": replace(ALICE, password_hash=b"")},
    ):
        restarted = Restarted()
        restarted.browser.sign_in()
        await restarted.browser.sessions.stored()
        restarted.kill(users)
        # Not even if they are again what they were.
        assert restarted.browser.user() is None
        restarted = Restarted()
        restarted.browser.sign_in()
        restarted.browser.sessions.user_changed("alice", users.get("alice"))
        await restarted.browser.sessions.stored()
        assert restarted.stored == []


@in_loop
async def test_who_another_system_vouches_for_is_signed_in_no_longer_than_the_node_lives() -> None:
    restarted = Restarted()
    restarted.browser.sign_in(token_user("alice", Scopes(["tag:monitoring"]), None))
    await restarted.browser.sessions.stored()
    assert restarted.stored == []
    restarted.kill()
    assert restarted.browser.user() is None


@in_loop
async def test_a_session_of_the_future_is_none() -> None:
    restarted = Restarted()
    restarted.browser.now = 1_000
    restarted.browser.sign_in()
    await restarted.browser.sessions.stored()
    restarted.browser.now = 999
    restarted.kill()
    assert restarted.browser.user() is None


@in_loop
async def test_many_who_sign_in_at_once_are_stored_together_and_one_who_leaves_stops_nothing() -> None:
    restarted = Restarted()
    release = asyncio.Event()
    first = [StoredWebSession(b"", "", b"", 0, 0)]

    async def slow(sessions: list[StoredWebSession]) -> None:
        first[:] = sessions
        await release.wait()
        await restarted.store(sessions)

    browser = restarted.browser
    numbers = count()
    browser.sessions = WebSessions(lambda size: next(numbers).to_bytes(size, "big"), lambda: browser.now)
    browser.sessions.restore([], USERS, slow)
    browser.sign_in()
    leaving = asyncio.ensure_future(browser.sessions.stored())
    while len(first) != 1 or not first[0].user:
        await asyncio.sleep(0)
    leaving.cancel()
    for _ in range(9):
        browser.sign_in()
    waiting = [asyncio.ensure_future(browser.sessions.stored()) for _ in range(9)]
    release.set()
    await asyncio.gather(*waiting)
    assert (restarted.writes, len(restarted.stored)) == (2, 10)
