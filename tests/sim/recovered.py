"""Reads back the messages that were found in a store."""

from warren.model.message import StoredMessage
from warren.store.recovery import RecoveredStore


def messages_in(recovered: RecoveredStore, queue: int = 1, level: int = 0) -> list[tuple[int, StoredMessage]]:
    """Return messages by position, in order, without damaged ones."""
    found = recovered.queues.get(queue, {}).get(level)
    if found is None:
        return []
    reader = recovered.store.reader()
    read = [
        (position, reader.read(location))
        for position, location in zip(found.positions.numbers(), found.locations.numbers(), strict=True)
    ]
    messages = [(position, message) for position, message in read if message is not None]
    assert found.byte_count == sum(message.body_size for _, message in messages)
    return messages
