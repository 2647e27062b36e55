"""What a request brings: JSON within bounds, whose wrong and missing fields are told in RabbitMQ's words."""

import asyncio
from collections.abc import Container, Iterator
from contextlib import contextmanager

import msgspec
from aiohttp import web

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

# What a flag may be written as.
_FLAGS: dict[object, bool] = {True: True, False: False, "true": True, "false": False}
_LINE_LENGTH_MAX = 80


class BodyFields:
    """The fields of a JSON object, read one by one."""

    __slots__ = ("_described", "by_name")

    def __init__(self, by_name: dict[str, object], described: Container[str] | None = None) -> None:
        """None but those that are `described` are read."""
        self.by_name = by_name
        self._described = described

    def __contains__(self, name: str) -> bool:
        self._check(name)
        return name in self.by_name

    def get(self, name: str, default: object = None) -> object:
        """The field, whatever it is."""
        self._check(name)
        return self.by_name.get(name, default)

    def require(self, *names: str) -> None:
        """Refuse the request unless there are fields of all `names`."""
        absent = [f"{{key_missing,{name}}}" for name in names if name not in self.by_name]
        if absent:
            # Erlang breaks lines that are longer.
            comma = "," if sum(map(len, absent)) + len(absent) < _LINE_LENGTH_MAX else ",\n "
            raise bad_request(f"[{comma.join(absent)}]")

    def text(self, name: str, default: str | None = None) -> str:
        """A field that is a string; null is none, where there is a default."""
        value = self.get(name)
        if value is None and (default is not None or name not in self.by_name):
            value = default
        if not isinstance(value, str):
            raise bad_request(["not_string", value])
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A field that is true or false, or says so."""
        value = self.get(name, default)
        flag = _FLAGS.get(value) if isinstance(value, bool | str) else None
        if flag is None:
            raise bad_request(["not_boolean", value])
        return flag

    def integer(self, name: str) -> int:
        """A field that is a whole number, or says so."""
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
        """A field that is an object; an empty list is one, too, as RabbitMQ writes them."""
        value = self.get(name)
        if value is None or value == [] or value == "":
            return {}
        if not isinstance(value, dict):
            raise bad_request(f"{name} is not an object")
        return value

    def _check(self, name: str) -> None:
        assert self._described is None or name in self._described, f"{name} is not described"


async def read_fields(request: web.Request, *required: str, is_checked: bool = True) -> BodyFields:
    """The body, a JSON object with the fields that its description requires; none at all is an empty one.

    Whoever has other words for a field that is not there says so, and checks.
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
    """The body, which is JSON; an empty one is an empty object."""
    return decode(await read_octets(request))


async def read_octets(request: web.Request) -> bytes:
    """The body as it came, within bounds of size and time."""
    # Who has not said who they are sends a name and a password at most.
    size_max = HTTP_BODY_SIZE_MAX if "user" in request else HTTP_LOGIN_SIZE_MAX
    if (request.content_length or 0) > size_max:
        raise _too_large()
    with request.app[BODY_MEMORY].reading() as reading:
        octets = bytearray()
        pace = MinimumRate(asyncio.get_running_loop().time())
        while piece := await _next_piece(request):
            octets += piece
            if len(octets) > size_max:
                raise _too_large()
            reading.add(len(piece))
            if not pace.is_met(asyncio.get_running_loop().time(), len(piece)):
                raise _too_slow()
        return bytes(octets)


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
        408, "request_timeout", f"the body came too slowly: nothing for {HTTP_STALLED_S:.0f} s"
    )
    response.force_close()
    return RequestRefused(response)


class MinimumRate:
    """Whether something comes fast enough, told whenever some of it has come."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._size = 0

    def is_met(self, now: float, size: int) -> bool:
        """Whether with `size` more octets it is; looked at once in HTTP_STALLED_S."""
        self._size += size
        if now - self._since < HTTP_STALLED_S:
            return True
        is_met = self._size >= HTTP_STALLED_SIZE_MIN
        self._since, self._size = now, 0
        return is_met


class BodyMemory:
    """How much there is of all the bodies that are being read."""

    def __init__(self) -> None:
        self.size = 0

    @contextmanager
    def reading(self) -> Iterator["BodyReservation"]:
        """One more, until the block ends."""
        reading = BodyReservation(self)
        try:
            yield reading
        finally:
            self.size -= reading.size


class BodyReservation:
    """One of them."""

    __slots__ = ("_bodies", "size")

    def __init__(self, bodies: BodyMemory) -> None:
        self._bodies = bodies
        self.size = 0

    def add(self, size: int) -> None:
        """So many octets more have come; Refused if there is no room for them."""
        if self._bodies.size + size > HTTP_BODIES_SIZE_MAX:
            raise RequestRefused(
                error_reply(503, "service_unavailable", "too many bodies are being read at once")
            )
        self.size += size
        self._bodies.size += size


BODY_MEMORY: web.AppKey[BodyMemory] = web.AppKey("bodies", BodyMemory)


def decode(octets: bytes) -> object:
    """JSON, or a refusal."""
    if not octets:
        return {}
    try:
        value: object = msgspec.json.decode(octets)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise bad_request("not_json") from None
    # Most bodies have fewer brackets than that.
    if octets.count(b"[") + octets.count(b"{") > JSON_DEPTH_MAX and is_deeper(value, JSON_DEPTH_MAX):
        raise bad_request("not_json")
    return value
