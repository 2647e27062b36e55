"""What every AMQP method can do; `methods.py` lists them."""

import struct
from typing import Any, ClassVar, Self, dataclass_transform

from warren.errors import AmqpError, FrameError
from warren.wire.erlang import octets_written
from warren.wire.fields import BIT, FieldType, bits


@dataclass_transform(eq_default=True)
class MethodType(type):
    """Makes slots, defaults and codecs of the annotations `name: Annotated[type, FieldType] = default`."""

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
            namespace["_defaults"] = tuple(defaults.items())
            namespace["_codecs"] = _codecs({name: hint.__metadata__[0] for name, hint in fields.items()})
            namespace["fields"] = tuple(fields)
        namespace["__slots__"] = tuple(fields)
        return super().__new__(mcs, class_name, bases, namespace)


class Method(metaclass=MethodType):
    """One method of AMQP 0-9-1, by the arguments it carries."""

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
    _codecs: ClassVar[tuple[tuple[tuple[str, ...], FieldType], ...]]

    def __init__(self, *values: Any, **named: Any) -> None:
        if len(values) > len(self._defaults):
            raise TypeError(f"{self.name} has {len(self._defaults)} arguments, not {len(values)}")
        for (field, _), value in zip(self._defaults, values, strict=False):
            setattr(self, field, value)
        for field, default in self._defaults[len(values) :]:
            value = named.pop(field, default)
            # Each method gets a table of its own.
            setattr(self, field, {} if value is default and default == {} else value)
        if named:
            raise TypeError(f"{self.name} has no argument {next(iter(named))!r}, or has it twice")

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """The method in the payload of a method frame, which starts with the method's own numbers."""
        values: list[Any] = []
        at = 4
        try:
            for _, field_type in cls._codecs:
                at = field_type.read(payload, at, values)
        except (IndexError, struct.error):
            at = -1
        except AmqpError as error:
            # RabbitMQ looks into an argument only when all of them are there.
            if cls._is_whole(payload):
                error.method_index = cls.index if error.method_index is None else error.method_index
                raise
            at = -1
        if at != len(payload):
            raise FrameError(f"cannot decode {octets_written(payload[4:])}", method_index=cls.index)
        method = cls.__new__(cls)
        for name, value in zip(cls.fields, values, strict=True):
            setattr(method, name, value)
        return method

    @classmethod
    def _is_whole(cls, payload: bytes) -> bool:
        at = 4
        try:
            for _, field_type in cls._codecs:
                at = field_type.after(payload, at)
        except (IndexError, struct.error):
            return False
        return at == len(payload)

    def encode(self) -> bytes:
        """The payload of a method frame, numbers included."""
        parts = [self.index.to_bytes(4, "big")]
        for names, field_type in self._codecs:
            if len(names) == 1:
                parts.append(field_type.write(getattr(self, names[0])))
            else:
                parts.append(field_type.write(*[getattr(self, name) for name in names]))
        return b"".join(parts)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, field) == getattr(other, field) for field in self.fields
        )

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in self.fields)
        return f"{type(self).__name__}({shown})"


def _codecs(field_types: dict[str, FieldType]) -> tuple[tuple[tuple[str, ...], FieldType], ...]:
    """What to read and write one after the other: a field each, or all the bits that stand side by side."""
    codecs: list[tuple[tuple[str, ...], FieldType]] = []
    together: list[str] = []
    for name, field_type in field_types.items():
        if field_type is BIT:
            together.append(name)
            continue
        if together:
            codecs.append((tuple(together), bits(len(together))))
            together = []
        codecs.append(((name,), field_type))
    if together:
        codecs.append((tuple(together), bits(len(together))))
    return tuple(codecs)
