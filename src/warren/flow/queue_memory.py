"""The memory limit of each queue for its messages, which depends on the memory the node has left."""

from warren.limits import QUEUE_MEMORY_MAX, QUEUE_MEMORY_STEPS


def queue_memory(used: int, plenty: int, limit: int) -> int:
    """The memory limit of each queue in bytes while the node uses `used` bytes.

    It is QUEUE_MEMORY_MAX up to `plenty` (vm_memory_high_watermark_paging_ratio), and is halved in steps
    from there to `limit`, at which publishers are blocked.
    """
    steps = 0
    if used > limit:
        steps = QUEUE_MEMORY_STEPS
    elif used > plenty:
        steps = (used - plenty) * QUEUE_MEMORY_STEPS // (limit - plenty)
    return QUEUE_MEMORY_MAX >> steps
