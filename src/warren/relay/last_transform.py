"""What a link has made of the last message, for those that follow it with equal address and properties.

Most messages of a queue are equal in these, so that nothing that is not compiled has to be called for them.
"""

from warren.model.message import Message, new_message


class LastTransform:
    """Address and properties of a message, before and after; whether it was redelivered, and the second."""

    __slots__ = (
        "_address", "_is_redelivered", "_new_address", "_new_flags", "_new_list", "_property_list", "_second",
        "is_dropped",
    )  # fmt: skip

    def __init__(self) -> None:
        self._address = b""
        self._property_list = b""
        self._is_redelivered = False
        self._second = -1
        # True if the message was dropped; otherwise what was published.
        self.is_dropped = False
        self._new_address = b""
        self._new_list = b""
        self._new_flags = 0

    def applies(self, message: Message, is_redelivered: bool, second: int) -> bool:
        """True if the same is to be made of `message`, which was received on the same channel."""
        return (
            # Consecutive equal ones of a channel are the same objects.
            message.property_list is self._property_list
            and message.address is self._address
            and is_redelivered == self._is_redelivered
            and second == self._second
        )

    def apply(self, message: Message, now: int) -> Message:
        """Return what is to be published for `message`, to which it applies."""
        changed = new_message(self._new_address, self._new_list, message.content, now)
        changed.flags = self._new_flags
        return changed

    def is_new(self, message: Message, transformed: Message) -> bool:
        """True if `transformed` has properties that neither `message` nor the last one published has."""
        property_list = transformed.property_list
        return property_list is not message.property_list and property_list is not self._new_list

    def keep(self, message: Message, transformed: Message | None, is_redelivered: bool, second: int) -> None:
        """Keep what was made of `message`; None if it was dropped."""
        self._address = message.address
        self._property_list = message.property_list
        self._is_redelivered = is_redelivered
        self._second = second
        self.is_dropped = transformed is None
        if transformed is not None:
            self._new_address = transformed.address
            self._new_list = transformed.property_list
            self._new_flags = transformed.flags
