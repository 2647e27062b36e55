"""The settings of Celery for the type of its queues, which the worker and those who send to it must share."""

from typing import Any


def queue_settings(queue: str, queue_type: str) -> dict[str, Any]:
    """The settings for `queue` of type `queue_type`: classic or quorum.

    With quorum queues these are what Celery's guide says: a topic exchange, so that tasks with an ETA wait in
    the queues of kombu's native delayed delivery instead of in the worker, and publisher confirms.
    """
    if queue_type == "classic":
        return {"task_default_queue": queue}
    return {
        "task_default_queue": queue,
        "task_default_queue_type": queue_type,
        "task_default_exchange": f"{queue}-exchange",
        "task_default_exchange_type": "topic",
        "task_default_routing_key": queue,
        "broker_transport_options": {"confirm_publish": True},
    }
