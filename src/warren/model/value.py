"""Values that the message path makes and reads for each entry: equal if their fields are.

Compiled, their fields are C fields: reading one takes two instructions, and some 130 with a msgspec `Struct`.
Everything else that is a value is a `Struct`.
"""


class Value:
    """A value whose class has `fields`; nobody but its maker changes them."""

    __slots__ = ()

    def fields(self) -> tuple[object, ...]:
        """All fields, in one order."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(self.fields())

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.fields()}"
