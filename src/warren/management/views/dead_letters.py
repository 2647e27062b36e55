"""The dead letters of one queue as JSON."""

from typing import Annotated, TypedDict

from warren.management.operation import doc
from warren.vhost.dead_letter_summary import DeadLetterSummary


class DeadLetterGroupShape(TypedDict):
    """Dead letters of one cause."""

    queue: Annotated[str, doc("Where they died first")]
    reason: str
    exchange: Annotated[str, doc("That they had been published to")]
    count: int
    bytes: int
    oldest: Annotated[int, doc("When the first came here (ms)")]
    newest: int
    routing_keys: Annotated[list[str], doc("Some of those that they had been published with")]
    place: Annotated[int, doc("Of the first that was seen")]


class DeadLettersShape(TypedDict):
    """The dead letters of a queue, as far as it was looked at."""

    name: str
    vhost: str
    dead_letters: int
    not_dead: int
    examined: int
    next: Annotated[int | None, doc("The place to look on from; null if all were seen")]
    groups: list[DeadLetterGroupShape]
    other_groups: Annotated[int, doc("Dead letters of causes beyond the first hundred")]


class DeadLetterQueueShape(DeadLettersShape):
    """A queue that dead letters come to."""

    messages: int
    messages_ready: int
    messages_unacknowledged: int


def dead_letters_view(found: DeadLetterSummary) -> dict[str, object]:
    """What was found, by cause, the largest first; `next` is where to look on, null if all were seen."""
    causes = sorted(found.causes.values(), key=lambda cause: -cause.count)
    return {
        "dead_letters": found.count,
        "not_dead": found.non_dead_letter_count,
        "examined": found.examined,
        "next": found.place,
        "groups": [
            {
                "queue": cause.first_death.queue,
                "reason": cause.first_death.reason,
                "exchange": cause.first_death.exchange,
                "count": cause.count,
                "bytes": cause.octets,
                "oldest": cause.oldest,
                "newest": cause.newest,
                "routing_keys": cause.routing_keys,
                "place": cause.place,
            }
            for cause in causes
        ],
        "other_groups": found.other_count,
    }
