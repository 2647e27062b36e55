"""Sessions of the web interface: a cookie that scripts cannot read, and that contains no password.

A session is 256 random bits, known to the browser and stored here as a digest. It ends when its user signs
out or signs in again, is deleted or gets another password, after a time without requests, and after a day.
The rights of its user are looked up for each request.

Sessions of users in the metadata are stored durably and survive a restart; the end of a session is stored
before the response is sent. Sessions of users that another system authenticated (an OAuth 2 token or a
directory) are kept in memory only, because a restarted node could not authenticate them again: they end with
the token or after an hour, and with the node. A token that the node got itself is renewed before it expires.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import blake2b

from aiohttp import web
from msgspec import Struct

from warren.access.grants import ExternalUser, TokenUser, is_expired
from warren.limits_http import (
    SESSION_EXTERNAL_MS_MAX,
    SESSION_IDLE_MS,
    SESSION_MS_MAX,
    SESSION_STORED_MS,
    SESSIONS_MAX,
    SESSIONS_OF_USER_MAX,
)
from warren.management.oauth_logins import ProviderGrant, RenewUser
from warren.metadata.users import User

COOKIE = "warren_session"
# The web interface sends this header with each request; a form of another site cannot.
UI_HEADER = "x-warren-ui"

_TOKEN_SIZE = 32
# The path of sessions, below the API.
_SESSION_PATH = "/warren/session"
# The header in which a browser states the origin of a request: this site, or none if the user typed it.
_FETCH_SITE = "sec-fetch-site"
_SAME_ORIGIN = "same-origin"
_NO_SITE = "none"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class StoredWebSession(Struct, frozen=True):
    """A session as stored; it contains nothing that could be used to sign in."""

    # The digest of the session's token.
    token: bytes
    user: str
    # The digest of the user's password hash.
    password: bytes
    # Unix time in milliseconds.
    began_at: int
    used_at: int


StoreSessions = Callable[[list[StoredWebSession]], Awaitable[None]]


class ProviderLogin(Struct, frozen=True):
    """A login at a provider, which ends at another path than that of sessions."""

    # None if the user came with a token.
    grant: ProviderGrant | None
    # The path of the API, to which the cookie is restricted.
    path: str
    # True if the browser uses https, also if a proxy ends that.
    is_secure: bool


class _WebSession(Struct):
    """A session in memory."""

    # The identity of the user.
    name: str
    # The user as authenticated by another system; None for a user in the metadata.
    visitor: ExternalUser | None
    password: bytes
    began_at: int
    used_at: int
    # What a provider has granted; None if the user has logged in at none.
    grant: ProviderGrant | None = None


class WebSessions:
    """The sessions of one node, in the order of their last use."""

    def __init__(self, random_bytes: Callable[[int], bytes], now: Callable[[], int]) -> None:
        self._random_bytes = random_bytes
        self._now = now
        # By the digest of the token; the most recently used session is last.
        self._by_token: dict[bytes, _WebSession] = {}
        # Replaces the stored sessions by the given ones; None if sessions are not stored.
        self._store: StoreSessions | None = None
        self._storing: asyncio.Task[None] | None = None
        # The number of changes so far, and how many of them are stored.
        self._changes = 0
        self._stored = 0
        self._stored_at = 0

    def restore(
        self, stored: Iterable[StoredWebSession], users: Mapping[str, User], store: StoreSessions
    ) -> None:
        """Resume those of `stored` that have not ended; later changes are written by `store`."""
        now = self._now()
        for row in sorted(stored, key=lambda row: row.used_at)[-SESSIONS_MAX:]:
            session = _WebSession(row.user, None, row.password, row.began_at, row.used_at)
            # A session that began in the future (the clock was set back) has no known age.
            if row.began_at <= now and self._present(session, users) is not None:
                self._by_token[row.token] = session
        self._store = store
        self._stored_at = now

    async def stored(self) -> None:
        """Wait until all changes so far are stored."""
        if self._store is not None and self._stored < self._changes:
            # A waiter may be cancelled; storing continues.
            await asyncio.shield(self._begin_storing())

    async def close(self) -> None:
        """Store the times of last use."""
        self._changes += 1
        await self.stored()

    def begin(
        self, user: User, request: web.Request, response: web.Response, login: ProviderLogin | None = None
    ) -> None:
        """Sign `user` in: `response` sets the cookie; the browser's previous session ends."""
        self._forget_idle()
        self._by_token.pop(_digest(request), None)
        self._make_room(user.identity)
        token, now = self._random_bytes(_TOKEN_SIZE).hex(), self._now()
        visitor = user if isinstance(user, ExternalUser) else None
        self._by_token[_digest_of(token)] = _WebSession(
            user.identity, visitor, _password_digest(user), now, now, login.grant if login else None
        )
        self._changes += 1
        response.set_cookie(
            COOKIE,
            token,
            httponly=True,
            samesite="Strict",
            secure=request.secure or (login is not None and login.is_secure),
            path=login.path if login else _api_of(request),
        )

    def end(self, request: web.Request, response: web.Response) -> ProviderGrant | None:
        """Sign out: end the session of `request`, whose grant is returned, and delete its cookie."""
        ended = self._by_token.pop(_digest(request), None)
        if ended is not None:
            self._changes += 1
        response.del_cookie(COOKIE, path=_api_of(request), httponly=True, samesite="Strict")
        return ended.grant if ended is not None else None

    async def renew(self, request: web.Request, renew_user: RenewUser) -> None:
        """Get a new token for the session of `request` if its own is about to expire."""
        session = self._by_token.get(_digest(request))
        if session is None or session.grant is None or session.visitor is None:
            return
        renewed = await session.grant.renewed(session.visitor, renew_user)
        if renewed is not None:
            session.visitor = renewed

    def user_changed(self, name: str, user: User | None) -> None:
        """End the sessions of the user `name` if it was deleted (None) or its password has changed."""
        password = None if user is None else _password_digest(user)
        ended = [
            token
            for token, session in self._by_token.items()
            if session.name == name and session.visitor is None and session.password != password
        ]
        for token in ended:
            del self._by_token[token]
        if ended:
            self._changes += 1
            self._store_later()

    def user_of(self, request: web.Request, users: Mapping[str, User]) -> User | None:
        """The user of the session of `request`, or None; `users` are the current users.

        A request that changes something needs the header UI_HEADER: the cookie alone could be sent by another
        page, such as one on another port of the same host, which a browser treats as the same site.
        """
        digest = _digest(request)
        session = self._by_token.get(digest)
        if session is None or not is_same_origin(request):
            return None
        if request.method not in _SAFE_METHODS and UI_HEADER not in request.headers:
            return None
        del self._by_token[digest]
        user = self._present(session, users)
        if user is not None:
            session.used_at = self._now()
            self._by_token[digest] = session
            if session.used_at - self._stored_at > SESSION_STORED_MS:
                self._changes += 1
                self._store_later()
        return user

    def _present(self, session: _WebSession, users: Mapping[str, User]) -> User | None:
        """The current user of `session`; None if the session has ended."""
        now, visitor = self._now(), session.visitor
        if now - session.used_at > SESSION_IDLE_MS or now - session.began_at > SESSION_MS_MAX:
            return None
        if isinstance(visitor, TokenUser):
            return None if is_expired(visitor, now) else visitor
        if visitor is not None:
            return visitor if now - session.began_at <= SESSION_EXTERNAL_MS_MAX else None
        found = users.get(session.name)
        return found if found is not None and _password_digest(found) == session.password else None

    def _make_room(self, name: str) -> None:
        """End the least recently used sessions, so that one more of the user `name` is within the limits."""
        theirs = [token for token, session in self._by_token.items() if session.name == name]
        for token in theirs[: max(0, len(theirs) + 1 - SESSIONS_OF_USER_MAX)]:
            del self._by_token[token]
        while len(self._by_token) >= SESSIONS_MAX:
            del self._by_token[next(iter(self._by_token))]

    def _forget_idle(self) -> None:
        since = self._now() - SESSION_IDLE_MS
        while self._by_token:
            eldest = next(iter(self._by_token))
            if self._by_token[eldest].used_at >= since:
                return
            del self._by_token[eldest]

    def _store_later(self) -> None:
        if self._store is not None:
            self._begin_storing()

    def _begin_storing(self) -> asyncio.Task[None]:
        if self._storing is None:
            self._storing = asyncio.get_running_loop().create_task(self._store_all())
        return self._storing

    def _outliving(self) -> list[StoredWebSession]:
        """The sessions that survive a restart of the node."""
        return [
            StoredWebSession(token, session.name, session.password, session.began_at, session.used_at)
            for token, session in self._by_token.items()
            if session.visitor is None
        ]

    async def _store_all(self) -> None:
        """Store the sessions until all changes, including those made meanwhile, are stored."""
        assert self._store is not None
        try:
            while self._stored < self._changes:
                changes, self._stored_at = self._changes, self._now()
                await self._store(self._outliving())
                self._stored = changes
        finally:
            self._storing = None


def is_same_origin(request: web.Request) -> bool:
    """True unless the browser says that the request is of a page of another origin."""
    return request.headers.get(_FETCH_SITE, _SAME_ORIGIN) in (_SAME_ORIGIN, _NO_SITE)


def _api_of(request: web.Request) -> str:
    """The path of the API, to which the cookie is restricted; `request` is for its session path."""
    return request.path.rstrip("/").removesuffix(_SESSION_PATH)


def _digest(request: web.Request) -> bytes:
    return _digest_of(request.cookies.get(COOKIE, ""))


def _digest_of(token: str) -> bytes:
    return blake2b(token.encode("utf-8", "surrogateescape"), digest_size=_TOKEN_SIZE).digest()


def _password_digest(user: User) -> bytes:
    """A digest that changes with the password of `user`; the password hash in it is salted."""
    data = user.hashing_algorithm.encode("utf-8", "surrogatepass") + b"\x00" + user.password_hash
    return blake2b(data, digest_size=_TOKEN_SIZE).digest()
