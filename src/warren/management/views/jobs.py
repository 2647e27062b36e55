"""Jobs and previews of moves as JSON."""

from typing import Annotated, Literal, TypedDict

from warren.jobs.job import Job, JobState
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.operation import doc
from warren.metadata.identity import shown_name
from warren.vhost.message_move import MoveFailures
from warren.vhost.move_preview import MovePreview, MovePreviewStep


class NotMovedShape(TypedDict):
    """Messages that were not moved, by reason."""

    reason: str
    count: int
    positions: Annotated[list[int], doc("Positions of the first of these messages.")]


deprecate(NotMovedShape, places="positions")


class JobTargetShape(TypedDict, total=False):
    """The requested target of a move; empty for an undo."""

    to: Literal["queue", "exchange"]
    vhost: str
    queue: str
    exchange: str
    routing_key: str


class JobShape(TypedDict):
    """A redrive, a move or an undo."""

    id: str
    kind: Literal["redrive", "move", "undo"]
    user: str
    vhost: str
    queue: Annotated[
        str, doc("The queue from which messages are moved; for an undo, to which they are moved back.")
    ]
    target: JobTargetShape
    state: Literal["running", "waiting", "done", "failed", "stopped"]
    is_stopping: bool
    reason: Annotated[str, doc("Why the job waits, failed or was stopped; empty otherwise.")]
    limit: int | None
    rate: Annotated[float | None, doc("Maximum messages per second; null without a limit.")]
    started_at: int
    ended_at: int | None
    examined: int
    moved: int
    unconfirmed: Annotated[int, doc("Messages that were published but are not confirmed yet.")]
    moved_per_second: float
    not_moved: int
    not_moved_reasons: list[NotMovedShape]
    undoable: bool
    undone_by: str | None
    undo_of: str | None
    not_undone: Annotated[
        int | None, doc("For an ended undo: messages that could not be moved back; else null.")
    ]


deprecate(
    JobShape,
    under_way="unconfirmed",
    refused="not_moved",
    refusals="not_moved_reasons",
    undoes="undo_of",
    too_late="not_undone",
)


class PreviewDestinationShape(TypedDict):
    """A destination of messages."""

    exchange: str
    routing_key: str
    queues: list[str]
    count: int


class PreviewMessageShape(TypedDict):
    """A message and its destination."""

    position: int
    exchange: str | None
    routing_key: str | None
    queues: list[str]
    reason: Annotated[str, doc("Why the message would not be moved; empty if it would be.")]


deprecate(PreviewMessageShape, place="position")


class PreviewShape(TypedDict):
    """Where messages would be moved, and which could not be moved."""

    examined: int
    would_move: int
    destinations: list[PreviewDestinationShape]
    other_destinations: Annotated[int, doc("Messages whose destination is not in `destinations`.")]
    not_moved: int
    not_moved_reasons: list[NotMovedShape]
    messages: Annotated[list[PreviewMessageShape], doc("The first of the examined messages.")]
    next: Annotated[
        int | None, doc("The position after the last examined message; null at the end of the queue.")
    ]


deprecate(PreviewShape, would_go="would_move", refused="not_moved", refusals="not_moved_reasons")


def job_view(job: Job, now: int) -> dict[str, object]:
    """A job with its progress as JSON, at the time `now` (Unix time, ms)."""
    ended = job.ended_at if job.ended_at is not None else now
    seconds = max(ended - job.started_at, 1) / 1000
    counts = job.counts()
    view = {
        "id": job.id,
        "kind": job.kind.value,
        "user": shown_name(job.user),
        "vhost": job.vhost,
        "queue": job.queue,
        "target": dict(job.target),
        "state": JobState.RUNNING.value if job.is_stopping and not job.is_over else job.state.value,
        "is_stopping": job.is_stopping and not job.is_over,
        "reason": job.reason,
        "limit": job.limit,
        "rate": job.rate,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "examined": counts.examined,
        "moved": counts.moved,
        "unconfirmed": counts.under_way,
        "moved_per_second": round(counts.moved / seconds, 1),
        "not_moved": counts.refused,
        "not_moved_reasons": [
            reason for move_failures in counts.move_failures for reason in move_failures_view(move_failures)
        ],
        "undoable": job.is_over and job.undo_log is not None and job.undo_log.count > 0,
        "undone_by": None if job.undone_by is None else job.undone_by.id,
        "undo_of": None if job.undoes is None else job.undoes.id,
        "not_undone": job.too_late,
    }
    return with_deprecated(JobShape, view)


def move_failures_view(move_failures: MoveFailures) -> list[dict[str, object]]:
    """The reasons why messages are not moved, each with their number and the positions of some of them."""
    return [
        with_deprecated(
            NotMovedShape, {"reason": reason, "count": count, "positions": move_failures.places[reason]}
        )
        for reason, count in move_failures.reasons.items()
    ]


def preview_view(preview: MovePreview) -> dict[str, object]:
    """The preview of a move as JSON."""
    queue_scan = preview.queue_scan
    view = {
        "examined": queue_scan.examined,
        "would_move": preview.movable_count,
        "destinations": [
            {
                "exchange": end.exchange,
                "routing_key": end.routing_key,
                "queues": list(end.queues),
                "count": count,
            }
            for end, count in preview.ends.items()
        ],
        "other_destinations": preview.other_count,
        "not_moved": preview.move_failures.count,
        "not_moved_reasons": move_failures_view(preview.move_failures),
        "messages": [_preview_message(step) for step in preview.steps],
    }
    return with_deprecated(PreviewShape, view)


def _preview_message(step: MovePreviewStep) -> dict[str, object]:
    view = {
        "position": step.peeked.place,
        "exchange": None if step.end is None else step.end.exchange,
        "routing_key": None if step.end is None else step.end.routing_key,
        "queues": [] if step.end is None else list(step.end.queues),
        "reason": step.reason,
    }
    return with_deprecated(PreviewMessageShape, view)
