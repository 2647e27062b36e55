"""Who is signed in to the web interface: a cookie that scripts cannot read, and no password in it.

A session is 256 random bits, known to the browser and here. It ends when its user signs out, is deleted, or
gets another password, when nobody used it for a while, and when the node stops.
"""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from warren.limits import SESSION_IDLE_MS, SESSIONS_MAX
from warren.metadata.users import User

COOKIE = "warren_session"
# What the interface sends with each request, and no form of another site can.
MARK = "x-warren-ui"

_TOKEN_SIZE = 32
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(slots=True)
class _Session:
    """One of them."""

    user: User
    used_at: int


class Sessions:
    """Those of one node."""

    def __init__(self, random_octets: Callable[[int], bytes], now: Callable[[], int]) -> None:
        self._random_octets = random_octets
        self._now = now
        # By token; whoever was used last stands last.
        self._by_token: dict[str, _Session] = {}

    def begin(self, user: User, response: web.Response, *, is_secure: bool) -> None:
        """Sign `user` in: `response` takes the cookie to the browser."""
        self._forget_idle()
        while len(self._by_token) >= SESSIONS_MAX:
            del self._by_token[next(iter(self._by_token))]
        token = self._random_octets(_TOKEN_SIZE).hex()
        self._by_token[token] = _Session(user, self._now())
        response.set_cookie(COOKIE, token, httponly=True, samesite="Strict", secure=is_secure, path="/api")

    def end(self, request: web.Request, response: web.Response) -> None:
        """Sign out whoever asks."""
        self._by_token.pop(request.cookies.get(COOKIE, ""), None)
        response.del_cookie(COOKIE, path="/api", httponly=True, samesite="Strict")

    def user_of(self, request: web.Request, users: dict[str, User]) -> User | None:
        """Who asks, if a session says so; `users` are those that there are now.

        What changes something has to carry the mark: a cookie alone could have been sent by another page.
        """
        token = request.cookies.get(COOKIE)
        session = self._by_token.get(token) if token else None
        if token is None or session is None:
            return None
        if request.method not in _SAFE_METHODS and MARK not in request.headers:
            return None
        user = users.get(session.user.name)
        is_idle = self._now() - session.used_at > SESSION_IDLE_MS
        if is_idle or user is None or user.password_hash != session.user.password_hash:
            del self._by_token[token]
            return None
        del self._by_token[token]
        session.used_at = self._now()
        self._by_token[token] = session
        return user

    def _forget_idle(self) -> None:
        since = self._now() - SESSION_IDLE_MS
        while self._by_token:
            token = next(iter(self._by_token))
            if self._by_token[token].used_at >= since:
                return
            del self._by_token[token]
