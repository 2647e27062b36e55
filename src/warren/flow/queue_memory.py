"""The memory limit of each queue for its messages, which depends on the memory the node has left."""

from warren.limits import QUEUE_MEMORY_MAX, QUEUE_MEMORY_STEPS


def queue_memory(used: int, plenty: int, limit: int) -> int:
    """Bytes for each queue when `used` bytes of memory are.

    It is all that a queue ever has up to `plenty`, and from there to `limit`, where publishers wait, half as
    much again and again. RabbitMQ's vm_memory_high_watermark_paging_ratio says where that begins.
    """
    steps = 0
    if used > limit:
        steps = QUEUE_MEMORY_STEPS
    elif used > plenty:
        steps = (used - plenty) * QUEUE_MEMORY_STEPS // (limit - plenty)
    return QUEUE_MEMORY_MAX >> steps
