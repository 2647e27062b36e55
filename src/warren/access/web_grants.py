"""Permissions that a web server decides, one question for each: RabbitMQ's `rabbit_auth_backend_http`.

    vhost     username vhost ip tags
    resource  username vhost resource name permission tags
    topic     the fields of a resource, routing_key variable_map.username variable_map.vhost

1. Checks of permissions never wait. One whose answer is not known raises Undecided; who can wait gets the
   answer and checks again (`model/decided`), and everybody else has been refused.
2. What is allowed stays allowed as long as the memory does: that of a channel, of a login, or of a request.
3. What is refused is forgotten when the operation that asked has ended.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from warren.access.grants import ExternalUser
from warren.errors import Undecided
from warren.limits_access import WEB_ANSWERS_KEPT_MAX
from warren.metadata.permissions import Permission, TopicPermission
from warren.metadata.users import User

# Who vouches for the names of users whom the web server has authenticated.
HTTP = "http"
# A pattern that fits no name: who looks at patterns only is refused.
_NOTHING = "(?!)"
_BY_QUESTION = Permission(_NOTHING, _NOTHING, _NOTHING)


class WebQuestionKind(Enum):
    """The kinds of questions; each has an address of its own."""

    VHOST = "vhost_path"
    RESOURCE = "resource_path"
    TOPIC = "topic_path"


class WebQuestion(Struct, frozen=True):
    """A question about a permission, with the names and values of its fields, in RabbitMQ's order."""

    kind: WebQuestionKind
    fields: tuple[tuple[str, str], ...]


class WebDecision(Struct, frozen=True):
    """The answer to a question; of a refusal also what its text says behind the name of the user."""

    is_allowed: bool
    note: str = ""


# Port: asks the web server; a server that does not answer refuses.
AskWebServer: TypeAlias = Callable[[WebQuestion], Awaitable[WebDecision]]


class WebDecisions:
    """The answers to the questions of one channel, login or request."""

    __slots__ = ("_allowed", "_ask", "_refused")

    def __init__(self, ask: AskWebServer) -> None:
        self._ask = ask
        self._allowed: set[WebQuestion] = set()
        # What is behind the name of the user in the texts of the refusals.
        self._refused: dict[WebQuestion, str] = {}

    def is_allowed(self, question: WebQuestion) -> bool:
        """True if the server allows it; Undecided if it has not been asked."""
        if question in self._allowed:
            return True
        if question in self._refused:
            return False
        raise Undecided(
            "the permission has not been decided yet", lambda: self._decide(question), self._refused.clear
        )

    def note(self, question: WebQuestion) -> str:
        """What the text of a refusal says behind the name of the user."""
        return self._refused.get(question, "")

    async def _decide(self, question: WebQuestion) -> None:
        decision = await self._ask(question)
        if not decision.is_allowed:
            self._refused[question] = decision.note
            return
        if len(self._allowed) >= WEB_ANSWERS_KEPT_MAX:
            self._allowed.clear()
        self._allowed.add(question)


class WebGrants:
    """The permissions of one user, whom a web server is asked about."""

    __slots__ = ("_ask", "_decisions", "_is_of_request", "_tags", "_user", "ip")

    def __init__(
        self, user: str, tags: tuple[str, ...], ip: str, ask: AskWebServer, *, is_of_request: bool = False
    ) -> None:
        """`ip` is where the user is; all checks of a request share their answers."""
        self._user = user
        self._tags = tags
        self.ip = ip
        self._ask = ask
        self._is_of_request = is_of_request
        self._decisions = WebDecisions(ask)

    @property
    def generation(self) -> int:
        """Nothing changes: an answer stays as it is."""
        return 0

    def of_request(self) -> "WebGrants":
        """The permissions of the user for one request."""
        return WebGrants(self._user, self._tags, self.ip, self._ask, is_of_request=True)

    def decisions(self) -> WebDecisions:
        """The answers for a new channel, or those of the request."""
        return self._decisions if self._is_of_request else WebDecisions(self._ask)

    def permission(self, vhost: str) -> Permission | None:
        """A permission without patterns if the user may use `vhost`, else None; raises Undecided."""
        return _BY_QUESTION if self._decisions.is_allowed(self._about_vhost(vhost)) else None

    def vhost_note(self, vhost: str) -> str:
        """What the text of the refusal of `vhost` says behind the name of the user."""
        return self._decisions.note(self._about_vhost(vhost))

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """A permission without patterns: topics are always restricted."""
        return TopicPermission(_NOTHING, _NOTHING)

    def about_resource(self, vhost: str, kind: str, name: str, access: str) -> WebQuestion:
        """The question whether the user may `access` the exchange or queue `name`."""
        return WebQuestion(WebQuestionKind.RESOURCE, self._resource_fields(vhost, kind, name, access))

    def about_topic(self, vhost: str, exchange: str, access: str, routing_key: str) -> WebQuestion:
        """The question whether the user may publish or bind to the topic `exchange` with `routing_key`."""
        return WebQuestion(
            WebQuestionKind.TOPIC,
            (
                *self._resource_fields(vhost, "topic", exchange, access),
                ("routing_key", routing_key),
                ("variable_map.username", self._user),
                ("variable_map.vhost", vhost),
            ),
        )

    def _about_vhost(self, vhost: str) -> WebQuestion:
        return WebQuestion(
            WebQuestionKind.VHOST,
            (("username", self._user), ("vhost", vhost), ("ip", self.ip), ("tags", " ".join(self._tags))),
        )

    def _resource_fields(self, vhost: str, kind: str, name: str, access: str) -> tuple[tuple[str, str], ...]:
        return (
            ("username", self._user),
            ("vhost", vhost),
            ("resource", kind),
            ("name", name),
            ("permission", access),
            ("tags", " ".join(self._tags)),
        )


class WebUser(ExternalUser, frozen=True, kw_only=True):
    """A user whose permissions a web server decides."""

    grants: WebGrants


def web_user(name: str, issuer: str, tags: tuple[str, ...], ip: str, *, ask: AskWebServer) -> WebUser:
    """The user `name`, for whom `issuer` vouches, with the permissions that the web server decides."""
    return WebUser(
        name=name,
        password_hash=b"",
        hashing_algorithm="",
        tags=tags,
        limits={},
        issuer=issuer,
        grants=WebGrants(name, tags, ip, ask),
    )


def for_request(user: User) -> User:
    """`user` as the one who makes a request, all of whose checks share their answers."""
    return replace(user, grants=user.grants.of_request()) if isinstance(user, WebUser) else user
