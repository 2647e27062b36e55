"""Who is signed in to the web interface: a cookie that scripts cannot read, and no password in it.

A session is 256 random bits, known to the browser, and here as their digest. It ends when its user signs out
or in anew, is deleted, or gets another password, with the token of OAuth 2 that began it, when nobody used it
for a while, after a day, and when the node stops. What its user may do is looked up with each request. Of
somebody whom a directory knows that takes their password: such a session ends after an hour.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from aiohttp import web

from warren.access.grants import Bearer, Visitor, is_ended
from warren.limits_http import (
    SESSION_IDLE_MS,
    SESSION_MS_MAX,
    SESSION_VISITOR_MS_MAX,
    SESSIONS_MAX,
)
from warren.metadata.users import User

COOKIE = "warren_session"
# What the interface sends with each request, and no form of another site can.
MARK = "x-warren-ui"

_TOKEN_SIZE = 32
# Where sessions begin and end, below the API.
_PLACE = "/warren/session"
# Where a browser says that a request comes from: ourselves, or whoever typed the address.
_FETCH_SITE = "sec-fetch-site"
_OURSELVES = "same-origin"
_BY_HAND = "none"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(slots=True)
class _Session:
    """One of them."""

    user: User
    began_at: int
    used_at: int


class Sessions:
    """Those of one node."""

    def __init__(self, random_octets: Callable[[int], bytes], now: Callable[[], int]) -> None:
        self._random_octets = random_octets
        self._now = now
        # By the digest of the token; whoever was used last stands last.
        self._by_token: dict[bytes, _Session] = {}

    def begin(self, user: User, request: web.Request, response: web.Response) -> None:
        """Sign `user` in: `response` takes the cookie to the browser, whose old one is worth nothing then."""
        self._forget_idle()
        self._by_token.pop(_digest(request), None)
        while len(self._by_token) >= SESSIONS_MAX:
            del self._by_token[next(iter(self._by_token))]
        token = self._random_octets(_TOKEN_SIZE).hex()
        self._by_token[_digest_of(token)] = _Session(user, self._now(), self._now())
        response.set_cookie(
            COOKIE, token, httponly=True, samesite="Strict", secure=request.secure, path=_api_of(request)
        )

    def end(self, request: web.Request, response: web.Response) -> None:
        """Sign out whoever asks."""
        self._by_token.pop(_digest(request), None)
        response.del_cookie(COOKIE, path=_api_of(request), httponly=True, samesite="Strict")

    def user_of(self, request: web.Request, users: dict[str, User]) -> User | None:
        """Who asks, if a session says so; `users` are those that there are now.

        What changes something has to carry the mark: a cookie alone could have been sent by another page,
        such as one of another port of the same host, which is no other site to a browser.
        """
        digest = _digest(request)
        session = self._by_token.get(digest)
        if session is None or request.headers.get(_FETCH_SITE, _OURSELVES) not in (_OURSELVES, _BY_HAND):
            return None
        if request.method not in _SAFE_METHODS and MARK not in request.headers:
            return None
        del self._by_token[digest]
        user = self._present(session, users)
        if user is not None:
            session.used_at = self._now()
            self._by_token[digest] = session
        return user

    def _present(self, session: _Session, users: dict[str, User]) -> User | None:
        """The user of `session` as they are now; None if it has ended."""
        now, user = self._now(), session.user
        if now - session.used_at > SESSION_IDLE_MS or now - session.began_at > SESSION_MS_MAX:
            return None
        if isinstance(user, Bearer):
            return None if is_ended(user, now) else user
        if isinstance(user, Visitor):
            return user if now - session.began_at <= SESSION_VISITOR_MS_MAX else None
        found = users.get(user.name)
        return found if found is not None and found.password == user.password else None

    def _forget_idle(self) -> None:
        since = self._now() - SESSION_IDLE_MS
        while self._by_token:
            eldest = next(iter(self._by_token))
            if self._by_token[eldest].used_at >= since:
                return
            del self._by_token[eldest]


def _api_of(request: web.Request) -> str:
    """The path of the API, below which the cookie is sent: `request` is for a session of it."""
    return request.path.rstrip("/").removesuffix(_PLACE)


def _digest(request: web.Request) -> bytes:
    return _digest_of(request.cookies.get(COOKIE, ""))


def _digest_of(token: str) -> bytes:
    return blake2b(token.encode("utf-8", "surrogateescape"), digest_size=_TOKEN_SIZE).digest()
