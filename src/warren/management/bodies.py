"""What a request brings: JSON within bounds, whose wrong and missing fields are told in RabbitMQ's words."""

import msgspec
from aiohttp import web

from warren.management.replies import bad_request

# What a flag may be written as.
_FLAGS: dict[object, bool] = {True: True, False: False, "true": True, "false": False}
_LINE_LENGTH_MAX = 80


class Fields:
    """The fields of a JSON object, read one by one."""

    __slots__ = ("by_name",)

    def __init__(self, by_name: dict[str, object]) -> None:
        self.by_name = by_name

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def get(self, name: str, default: object = None) -> object:
        """The field, whatever it is."""
        return self.by_name.get(name, default)

    def require(self, *names: str) -> None:
        """Refuse the request unless there are fields of all `names`."""
        absent = [f"{{key_missing,{name}}}" for name in names if name not in self.by_name]
        if absent:
            # Erlang breaks lines that are longer.
            comma = "," if sum(map(len, absent)) + len(absent) < _LINE_LENGTH_MAX else ",\n "
            raise bad_request(f"[{comma.join(absent)}]")

    def text(self, name: str, default: str | None = None) -> str:
        """A field that is a string."""
        value = self.by_name.get(name, default)
        if not isinstance(value, str):
            raise bad_request(["not_string", value])
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A field that is true or false, or says so."""
        value = self.by_name.get(name, default)
        flag = _FLAGS.get(value) if isinstance(value, bool | str) else None
        if flag is None:
            raise bad_request(["not_boolean", value])
        return flag

    def integer(self, name: str) -> int:
        """A field that is a whole number, or says so."""
        value = self.by_name.get(name)
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
        value = self.by_name.get(name)
        if value is None or value == [] or value == "":
            return {}
        if not isinstance(value, dict):
            raise bad_request(f"{name} is not an object")
        return value


async def read_fields(request: web.Request, *required: str) -> Fields:
    """The body, which is a JSON object with at least the fields `required`; none at all is an empty one."""
    value = await read_json(request)
    if isinstance(value, str):
        raise bad_request(
            "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"
        )
    if value is not None and not isinstance(value, dict):
        raise bad_request("not_json")
    fields = Fields(value or {})
    fields.require(*required)
    return fields


async def read_json(request: web.Request) -> object:
    """The body, which is JSON; an empty one is an empty object."""
    return decode(await read_octets(request))


async def read_octets(request: web.Request) -> bytes:
    """The body as it came."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise bad_request("Exceeded HTTP request body size limit") from None


def decode(octets: bytes) -> object:
    """JSON, or a refusal."""
    if not octets:
        return {}
    try:
        value: object = msgspec.json.decode(octets)
    except (msgspec.DecodeError, RecursionError):
        raise bad_request("not_json") from None
    return value
