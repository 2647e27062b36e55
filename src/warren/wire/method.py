"""The base class of AMQP methods; `methods.py` lists them."""

from typing import Any, ClassVar, Self, dataclass_transform

from warren.errors import AmqpError, FrameError
from warren.wire.erlang import bytes_written
from warren.wire.fields import BIT, Bits, FieldType, assign, is_whole, read_all, write_all


@dataclass_transform(eq_default=True)
class MethodType(type):
    """Creates slots, defaults and codecs from annotations `name: Annotated[type, FieldType] = default`."""

    def __new__(
        mcs, class_name: str, bases: tuple[type, ...], namespace: dict[str, Any], **settings: Any
    ) -> "MethodType":
        fields: dict[str, Any] = namespace.get("__annotations__", {}) if settings else {}
        defaults = {name: namespace.pop(name) for name in fields}
        if settings:
            namespace |= settings
            namespace["class_id"], namespace["method_id"] = (
                settings["index"] >> 16,
                settings["index"] & 0xFFFF,
            )
            namespace["_ids"] = settings["index"].to_bytes(4, "big")
            namespace["_defaults"] = tuple(defaults.items())
            namespace["_field_types"] = _together([hint.__metadata__[0] for hint in fields.values()])
            namespace["fields"] = tuple(fields)
        namespace["__slots__"] = tuple(fields)
        return super().__new__(mcs, class_name, bases, namespace)


class Method(metaclass=MethodType):
    """One method of AMQP 0-9-1, with its arguments as attributes."""

    class_id: ClassVar[int]
    method_id: ClassVar[int]
    index: ClassVar[int]
    name: ClassVar[str]
    has_content: ClassVar[bool] = False
    is_synchronous: ClassVar[bool] = False
    is_from_client: ClassVar[bool] = False
    is_from_server: ClassVar[bool] = False
    fields: ClassVar[tuple[str, ...]]
    _defaults: ClassVar[tuple[tuple[str, Any], ...]]
    # The codecs of the arguments in order.
    _field_types: ClassVar[tuple[FieldType, ...]]
    _ids: ClassVar[bytes]

    def __init__(self, *values: Any, **named: Any) -> None:
        if len(values) > len(self.fields):
            raise TypeError(f"{self.name} has {len(self.fields)} arguments, not {len(values)}")
        assign(self, self.fields, list(values))
        for field, default in self._defaults[len(values) :]:
            value = named.pop(field, default)
            # Each method gets its own table.
            setattr(self, field, {} if value is default and default == {} else value)
        if named:
            raise TypeError(f"{self.name} has no argument {next(iter(named))!r}, or has it twice")

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Decode the payload of a method frame, which starts with class and method id."""
        method = cls.__new__(cls)
        try:
            assign(method, cls.fields, read_all(cls._field_types, payload))
        except IndexError:
            raise cls._not_decoded(payload) from None
        except AmqpError as error:
            # RabbitMQ checks an argument only if all arguments are present.
            if not is_whole(cls._field_types, payload):
                raise cls._not_decoded(payload) from None
            error.method_index = cls.index if error.method_index is None else error.method_index
            raise
        return method

    @classmethod
    def _not_decoded(cls, payload: bytes) -> FrameError:
        return FrameError(f"cannot decode {bytes_written(payload[4:])}", method_index=cls.index)

    def encode(self) -> bytes:
        """Encode the payload of a method frame, including class and method id."""
        return write_all(self._field_types, self._ids, [getattr(self, field) for field in self.fields])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, field) == getattr(other, field) for field in self.fields
        )

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in self.fields)
        return f"{type(self).__name__}({shown})"


def _together(field_types: list[FieldType]) -> tuple[FieldType, ...]:
    """`field_types` with consecutive bits combined into one."""
    together: list[FieldType] = []
    count = 0
    for field_type in field_types:
        if field_type is BIT:
            count += 1
            continue
        if count:
            together.append(Bits(count))
            count = 0
        together.append(field_type)
    if count:
        together.append(Bits(count))
    return tuple(together)


def index_of(payload: bytes) -> int:
    """The class and method id at the start of a method frame's `payload`; 0 if it is too short."""
    return int.from_bytes(payload[:4], "big") if len(payload) >= 4 else 0
