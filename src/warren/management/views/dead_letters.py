"""The dead letters of a queue as JSON."""

from typing import Annotated, TypedDict

from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.operation import doc
from warren.vhost.dead_letter_summary import DeadLetterSummary


class DeadLetterGroupShape(TypedDict):
    """Dead letters with the same cause."""

    queue: Annotated[str, doc("The queue in which the messages died first.")]
    reason: str
    exchange: Annotated[str, doc("The exchange to which the messages were published.")]
    count: int
    bytes: int
    oldest: Annotated[int, doc("Unix time in ms at which the oldest of the messages was dead-lettered.")]
    newest: int
    routing_keys: Annotated[
        list[str], doc("Some of the routing keys with which the messages were published.")
    ]
    position: Annotated[int, doc("Position of the first of the messages in this queue.")]


deprecate(DeadLetterGroupShape, place="position")


class DeadLettersShape(TypedDict):
    """The dead letters of a queue, among the messages that were examined."""

    name: str
    vhost: str
    dead_letters: int
    other_messages: int
    examined: int
    next: Annotated[int | None, doc("The position from which to continue; null at the end of the queue.")]
    groups: list[DeadLetterGroupShape]
    other_dead_letters: Annotated[
        int, doc("Dead letters that are not in `groups`, which has at most 100 causes.")
    ]


deprecate(DeadLettersShape, not_dead="other_messages", other_groups="other_dead_letters")


class DeadLetterQueueShape(DeadLettersShape):
    """A queue to which messages are dead-lettered."""

    messages: int
    messages_ready: int
    messages_unacknowledged: int


deprecate(DeadLetterQueueShape, not_dead="other_messages", other_groups="other_dead_letters")


def dead_letters_view(found: DeadLetterSummary) -> dict[str, object]:
    """Dead letters by cause, the most frequent first; `next` is where to continue, null at the end."""
    causes = sorted(found.causes.values(), key=lambda cause: -cause.count)
    view = {
        "dead_letters": found.count,
        "other_messages": found.non_dead_letter_count,
        "examined": found.examined,
        "next": found.place,
        "groups": [
            with_deprecated(
                DeadLetterGroupShape,
                {
                    "queue": cause.first_death.queue,
                    "reason": cause.first_death.reason,
                    "exchange": cause.first_death.exchange,
                    "count": cause.count,
                    "bytes": cause.byte_count,
                    "oldest": cause.oldest,
                    "newest": cause.newest,
                    "routing_keys": cause.routing_keys,
                    "position": cause.place,
                },
            )
            for cause in causes
        ],
        "other_dead_letters": found.other_count,
    }
    return with_deprecated(DeadLettersShape, view)
