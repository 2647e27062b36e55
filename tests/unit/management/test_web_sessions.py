"""Sessions of the web interface: sign-in, expiry, and what survives a restart."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from itertools import count

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from msgspec.structs import replace

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
    """Run `test` in an event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Browser:
    """A client that stores the session cookie."""

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


def test_a_signed_in_user_is_known_until_sign_out() -> None:
    browser = Browser()
    assert browser.user() is None
    browser.sign_in()
    assert browser.user() is ALICE
    browser.sessions.end(browser.request(), web.Response())
    assert browser.user() is None


def test_the_cookie_is_http_only_and_same_site() -> None:
    secure = make_mocked_request("POST", "/api/warren/session", sslcontext=True)
    sent = Browser().sign_in(request=secure)
    assert "HttpOnly" in sent
    assert "SameSite=Strict" in sent
    assert "Secure" in sent
    assert "alice" not in sent
    assert "Secure" not in Browser().sign_in()


def test_a_request_that_changes_state_needs_the_csrf_header() -> None:
    browser = Browser()
    browser.sign_in()
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        assert browser.sessions.user_of(browser.request(method, is_marked=False), USERS) is None
        assert browser.sessions.user_of(browser.request(method), USERS) is ALICE
    assert browser.sessions.user_of(browser.request("GET", is_marked=False), USERS) is ALICE


def test_an_idle_session_expires() -> None:
    browser = Browser()
    browser.sign_in()
    browser.now += SESSION_IDLE_MS
    assert browser.user() is ALICE
    browser.now += SESSION_IDLE_MS
    assert browser.user() is ALICE, "it was used meanwhile"
    browser.now += SESSION_IDLE_MS + 1
    assert browser.user() is None


def test_a_session_in_use_expires_after_a_day() -> None:
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
def test_the_cookie_is_accepted_only_from_pages_of_the_interface(site: str, is_let_in: bool) -> None:
    browser = Browser()
    browser.sign_in()
    request = browser.request(**{"sec-fetch-site": site})
    assert (browser.sessions.user_of(request, USERS) is ALICE) is is_let_in


def test_a_new_sign_in_replaces_the_previous_session() -> None:
    browser = Browser()
    browser.sign_in()
    old = browser.cookie
    browser.sign_in(request=browser.request("POST"))
    assert browser.cookie != old
    assert browser.user() is ALICE
    browser.cookie = old
    assert browser.user() is None


def test_an_invented_cookie_is_not_a_session() -> None:
    browser = Browser()
    browser.cookie = "f" * 64
    browser.sign_in(request=browser.request("POST"))
    assert browser.cookie != "f" * 64


def test_a_session_of_a_token_expires_with_it_and_is_not_that_of_a_namesake() -> None:
    browser = Browser()
    holder = token_user("alice", Scopes(["tag:monitoring"]), 1_000)
    browser.sign_in(holder)
    assert browser.user() is holder
    namesake = User(name="alice", password_hash=b"", hashing_algorithm="", tags=("administrator",), limits={})
    assert browser.user({"alice": namesake}) is holder
    browser.now = 1_000
    assert browser.user() is None


def test_a_session_of_a_directory_user_expires_after_an_hour() -> None:
    browser = Browser()
    person = DirectoryEntry("alice", "uid=alice", frozenset())
    grants = DirectoryGrants(DirectoryRules(), person, Metadata().permissions)
    visitor = DirectoryUser(
        name="alice", password_hash=b"", hashing_algorithm="", tags=("management",), limits={}, grants=grants
    )
    browser.sign_in(visitor)
    browser.now = SESSION_EXTERNAL_MS_MAX
    # The metadata contain no such user, or another one of that name.
    assert browser.user({}) is visitor
    assert browser.user() is visitor
    browser.now += 1
    assert browser.user() is None


def test_a_session_ends_when_its_user_is_deleted_or_changes_password() -> None:
    changed = User(name="alice", password_hash=b"2", hashing_algorithm="sha256", tags=(), limits={})
    for users in ({}, {"alice": changed}):
        browser = Browser()
        browser.sign_in()
        assert browser.user(users) is None
        assert browser.user() is None


def test_a_session_has_the_current_tags_of_its_user() -> None:
    browser = Browser()
    browser.sign_in()
    less = User(name="alice", password_hash=b"1", hashing_algorithm="sha256", tags=(), limits={})
    assert browser.user({"alice": less}) is less


def named(name: str) -> User:
    return replace(ALICE, name=name)


def test_beyond_the_bound_the_session_unused_longest_ends(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_user_with_too_many_sessions_loses_their_own_oldest() -> None:
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


def test_a_session_does_not_return_with_a_restored_password() -> None:
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
    """A browser of a node that stores its sessions and can be killed."""

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
async def test_sessions_and_sign_outs_survive_a_restart() -> None:
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
async def test_stored_sessions_do_not_contain_the_cookie() -> None:
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
async def test_the_age_of_a_session_survives_a_restart() -> None:
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
async def test_the_last_use_is_stored_at_intervals_and_at_the_end() -> None:
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
async def test_a_session_of_a_deleted_user_or_changed_password_is_not_restored() -> None:
    for users in (
        {},
        {"alice": replace(ALICE, password_hash=b"2")},
        {"alice": replace(ALICE, password_hash=b"")},
    ):
        restarted = Restarted()
        restarted.browser.sign_in()
        await restarted.browser.sessions.stored()
        restarted.kill(users)
        # The session remains invalid if the user is restored.
        assert restarted.browser.user() is None
        restarted = Restarted()
        restarted.browser.sign_in()
        restarted.browser.sessions.user_changed("alice", users.get("alice"))
        await restarted.browser.sessions.stored()
        assert restarted.stored == []


@in_loop
async def test_sessions_of_external_users_do_not_survive_a_restart() -> None:
    restarted = Restarted()
    restarted.browser.sign_in(token_user("alice", Scopes(["tag:monitoring"]), None))
    await restarted.browser.sessions.stored()
    assert restarted.stored == []
    restarted.kill()
    assert restarted.browser.user() is None


@in_loop
async def test_a_stored_session_with_a_time_in_the_future_is_invalid() -> None:
    restarted = Restarted()
    restarted.browser.now = 1_000
    restarted.browser.sign_in()
    await restarted.browser.sessions.stored()
    restarted.browser.now = 999
    restarted.kill()
    assert restarted.browser.user() is None


@in_loop
async def test_simultaneous_sign_ins_are_stored_in_one_write_and_a_cancelled_one_does_not_stop_it() -> None:
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
