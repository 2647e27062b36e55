"""Operations on the node itself: settings, limits, log, and checking a password."""

from typing import NotRequired, TypedDict

from aiohttp import web

from warren.errors import LoginRefused, ResourceError
from warren.management.auth import peer_of, user_of
from warren.management.controls import ControlRefused
from warren.management.managed_node import ManagedNode
from warren.management.operation import ErrorShape, documented
from warren.management.replies import RequestRefused, bad_request, done, error_reply, missing, reply
from warren.management.request_body import read_fields


class SettingShape(TypedDict):
    """A setting with its value and the origin of the value."""

    key: str
    value: str | None
    origin: str


class LimitsShape(TypedDict):
    """Alarm thresholds in bytes: publishers are blocked above that of memory and below that of disk."""

    memory: int
    disk: NotRequired[int]


class ResourceLimitBody(TypedDict, total=False):
    """One of both: a size such as 2GB, or a fraction of the total memory."""

    absolute: int | str
    relative: float


class LogShape(TypedDict):
    """The outputs of the log, and the lowest logged level of each category."""

    file: str | None
    console: bool
    exchange: bool
    levels: dict[str, str]


class LogLevelBody(TypedDict):
    """A log level, for one category or for all."""

    level: str
    category: NotRequired[str]


class LogFileShape(TypedDict):
    """The name of the log file."""

    file: str


class CredentialsBody(TypedDict):
    """A user name and password to check."""

    username: str
    password: str


class AuthenticatedUserShape(TypedDict):
    """The user whose credentials were accepted."""

    name: str
    tags: list[str]


@documented(response=list[SettingShape])
def configuration(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the settings in effect, with value and origin; secrets are masked."""
    rows = node.controls.settings()
    return reply([{"key": row.key, "value": row.value, "origin": row.origin} for row in rows])


@documented(response=LimitsShape)
def limits(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the thresholds of the memory alarm and the disk alarm, in bytes."""
    return reply(dict(node.controls.limits()))


@documented(body=ResourceLimitBody, response=LimitsShape)
async def put_limit(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set the threshold of the memory or disk alarm until the node stops or reloads its settings."""
    fields = await read_fields(request)
    resource = request.match_info["resource"]
    if resource not in ("memory", "disk"):
        raise missing()
    try:
        node.controls.set_limit(
            user_of(request).name,
            resource,
            absolute=fields.get("absolute"),
            relative=fields.get("relative"),
        )
    except ControlRefused as error:
        raise bad_request(str(error)) from None
    return limits(request, node)


@documented(response=LogShape)
def log(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the outputs and the levels of the log."""
    found = node.controls.log()
    facts = {"file": found.file or None, "console": found.console, "exchange": found.exchange}
    return reply({**facts, "levels": dict(found.levels)})


@documented(body=LogLevelBody, responses={204: None})
async def put_level(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Set the log level until the node stops."""
    fields = await read_fields(request)
    try:
        node.controls.set_log_level(user_of(request).name, fields.text("level"), fields.text("category", ""))
    except ControlRefused as error:
        raise bad_request(str(error)) from None
    return done()


@documented(responses={200: LogFileShape, 400: ErrorShape})
def rotate(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Rotate the log file."""
    try:
        return reply({"file": node.controls.rotate_log(user_of(request).name)})
    except ControlRefused as error:
        raise bad_request(str(error)) from None


@documented(body=CredentialsBody, response=AuthenticatedUserShape)
async def authenticate(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Check whether a user name and password would be accepted from the address of the request."""
    fields = await read_fields(request)
    data = [fields.text(name).encode("utf-8", "surrogatepass") for name in ("username", "password")]
    if any(b"\x00" in part for part in data):
        raise bad_request("the user name and password must not contain a NUL character")
    try:
        user = await node.server.admission_control.authenticate(
            "PLAIN", b"\x00" + b"\x00".join(data), peer_of(request), protocol="http"
        )
    except LoginRefused:
        raise bad_request("the broker refuses this user name and password: see its log") from None
    except ResourceError:
        raise RequestRefused(error_reply(503, "service_unavailable", "too many logins at once")) from None
    return reply({"name": user.name, "tags": list(user.tags)})
