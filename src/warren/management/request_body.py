"""Request bodies: JSON within bounds of size and time; errors in fields have RabbitMQ's texts."""

import asyncio
from collections.abc import Container, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from warren.access.web_grants import WebUser
from warren.limits_http import (
    HTTP_BODIES_SIZE_MAX,
    HTTP_BODY_SIZE_MAX,
    HTTP_LOGIN_SIZE_MAX,
    HTTP_STALLED_S,
    HTTP_STALLED_SIZE_MIN,
    JSON_DEPTH_MAX,
)
from warren.management.deprecated_fields import with_current
from warren.management.operation import OPERATION, Operation, required_fields
from warren.management.replies import RequestRefused, bad_request, error_reply
from warren.model.nesting import is_deeper

# The accepted forms of a flag.
_FLAGS: dict[object, bool] = {True: True, False: False, "true": True, "false": False}
_LINE_LENGTH_MAX = 80
# A form has a name and a password, and possibly the name of the button.
_FORM_FIELDS_MAX = 10
# The key under which a request that may be handled again holds its body.
_BODY = "body"


class BodyFields:
    """The fields of a JSON object."""

    __slots__ = ("_described", "by_name")

    def __init__(self, by_name: dict[str, object], described: Container[str] | None = None) -> None:
        """Only fields in `described` may be read; None allows all."""
        self.by_name = by_name
        self._described = described

    def __contains__(self, name: str) -> bool:
        self._check(name)
        return name in self.by_name

    def get(self, name: str, default: object = None) -> object:
        """The value of the field `name`, of any type, or `default`."""
        self._check(name)
        return self.by_name.get(name, default)

    def require(self, *names: str) -> None:
        """Raise RequestRefused unless the fields `names` exist."""
        absent = [f"{{key_missing,{name}}}" for name in names if name not in self.by_name]
        if absent:
            # Erlang breaks longer lists into lines.
            comma = "," if sum(map(len, absent)) + len(absent) < _LINE_LENGTH_MAX else ",\n "
            raise bad_request(f"[{comma.join(absent)}]")

    def text(self, name: str, default: str | None = None) -> str:
        """A string field; null is absent if there is a default. Raises RequestRefused for other types."""
        value = self.get(name)
        if value is None and (default is not None or name not in self.by_name):
            value = default
        if not isinstance(value, str):
            raise bad_request(["not_string", value])
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean field, which may be the string "true" or "false"; raises RequestRefused for others."""
        value = self.get(name, default)
        flag = _FLAGS.get(value) if isinstance(value, bool | str) else None
        if flag is None:
            raise bad_request(["not_boolean", value])
        return flag

    def integer(self, name: str) -> int:
        """An integer field, which may be a string of digits; raises RequestRefused for others."""
        value = self.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str):
            try:
                return int(value)
            except ValueError:
                pass
        raise bad_request(["not_integer", value])

    def table(self, name: str) -> dict[str, object]:
        """An object field; a missing one, null, "" and [] (RabbitMQ's empty object) are empty."""
        value = self.get(name)
        if value is None or value == [] or value == "":
            return {}
        if not isinstance(value, dict):
            raise bad_request(f"{name} is not an object")
        return value

    def _check(self, name: str) -> None:
        assert self._described is None or name in self._described, f"{name} is not described"


async def read_fields(request: web.Request, *required: str, is_checked: bool = True) -> BodyFields:
    """The body, a JSON object with its required fields; an empty body is an empty object.

    `is_checked=False` leaves the check of required fields to a caller that has texts of its own for it.
    """
    value = await read_json(request)
    if isinstance(value, str):
        raise bad_request(
            "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"
        )
    if value is not None and not isinstance(value, dict):
        raise bad_request("not_json")
    said: Operation = request[OPERATION]
    if said.body is None:
        fields = BodyFields(value or {})
        fields.require(*required)
        return fields
    fields = BodyFields(with_current(said.body, value or {}), said.body.__annotations__)
    if is_checked:
        fields.require(*required_fields(said.body))
    return fields


async def read_json(request: web.Request) -> object:
    """The body parsed as JSON; an empty body is an empty object."""
    return decode(await read_bytes(request))


async def read_form(request: web.Request) -> dict[bytes, bytes]:
    """The fields of an HTML form."""
    try:
        return dict(
            parse_qsl(await read_bytes(request), keep_blank_values=True, max_num_fields=_FORM_FIELDS_MAX)
        )
    except ValueError:
        raise bad_request("not a form") from None


async def read_bytes(request: web.Request) -> bytes:
    """The raw body; raises RequestRefused if it is too large or arrives too slowly."""
    kept: bytes | None = request.get(_BODY)
    if kept is not None:
        return kept
    body = await _received(request)
    if isinstance(request.get("user"), WebUser):
        # The request may be handled again.
        request[_BODY] = body
    return body


async def _received(request: web.Request) -> bytes:
    # An unauthenticated client sends at most a name and a password.
    size_max = HTTP_BODY_SIZE_MAX if "user" in request else HTTP_LOGIN_SIZE_MAX
    if (request.content_length or 0) > size_max:
        raise _too_large()
    with request.app[BODY_MEMORY].reading() as reading:
        data = bytearray()
        pace = MinimumRate(asyncio.get_running_loop().time())
        while piece := await _next_piece(request):
            data += piece
            if len(data) > size_max:
                raise _too_large()
            reading.add(len(piece))
            if not pace.is_met(asyncio.get_running_loop().time(), len(piece)):
                raise _too_slow()
        return bytes(data)


async def _next_piece(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(HTTP_STALLED_S):
            return await request.content.readany()
    except TimeoutError:
        raise _too_slow() from None
    except web.RequestPayloadError:
        raise bad_request("not_json") from None


def _too_large() -> RequestRefused:
    return bad_request("Exceeded HTTP request body size limit")


def _too_slow() -> RequestRefused:
    response = error_reply(
        408, "request_timeout", f"the request body is too slow: no data for {HTTP_STALLED_S:.0f} s"
    )
    response.force_close()
    return RequestRefused(response)


class MinimumRate:
    """Checks that data arrive at a minimum rate."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._size = 0

    def is_met(self, now: float, size: int) -> bool:
        """True if the rate is met after `size` more bytes; it is checked every HTTP_STALLED_S seconds."""
        self._size += size
        if now - self._since < HTTP_STALLED_S:
            return True
        is_met = self._size >= HTTP_STALLED_SIZE_MIN
        self._since, self._size = now, 0
        return is_met


class BodyMemory:
    """The total size of the request bodies that are being read, in bytes."""

    def __init__(self) -> None:
        self.size = 0

    @contextmanager
    def reading(self) -> Iterator["BodyReservation"]:
        """A reservation for one body, released when the block ends."""
        reading = BodyReservation(self)
        try:
            yield reading
        finally:
            self.size -= reading.size


class BodyReservation:
    """The memory reserved for one request body."""

    __slots__ = ("_bodies", "size")

    def __init__(self, bodies: BodyMemory) -> None:
        self._bodies = bodies
        self.size = 0

    def add(self, size: int) -> None:
        """Reserve `size` more bytes; raises RequestRefused (503) if all bodies together are too large."""
        if self._bodies.size + size > HTTP_BODIES_SIZE_MAX:
            raise RequestRefused(
                error_reply(
                    503, "service_unavailable", "too many request bodies are being received: retry later"
                )
            )
        self.size += size
        self._bodies.size += size


BODY_MEMORY: web.AppKey[BodyMemory] = web.AppKey("bodies", BodyMemory)


def decode(data: bytes) -> object:
    """`data` parsed as JSON; raises RequestRefused if they are invalid or nested too deeply."""
    if not data:
        return {}
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise bad_request("not_json") from None
    # Counting brackets is cheap, and most bodies have fewer than the permitted depth.
    if data.count(b"[") + data.count(b"{") > JSON_DEPTH_MAX and is_deeper(value, JSON_DEPTH_MAX):
        raise bad_request("not_json")
    return value
