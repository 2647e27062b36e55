"""The memory limit of each queue, as a function of the memory that the node has left."""

from warren.flow.queue_memory import queue_memory
from warren.limits import QUEUE_MEMORY_MAX, QUEUE_MEMORY_STEPS

LEAST = QUEUE_MEMORY_MAX >> QUEUE_MEMORY_STEPS


def test_a_queue_has_the_full_limit_with_free_memory_and_the_minimum_at_the_limit() -> None:
    assert queue_memory(0, 500, 1_000) == QUEUE_MEMORY_MAX
    assert queue_memory(500, 500, 1_000) == QUEUE_MEMORY_MAX
    assert queue_memory(1_000, 500, 1_000) == LEAST
    assert queue_memory(10**12, 500, 1_000) == LEAST


def test_between_them_the_limit_halves_in_steps() -> None:
    allowed = [queue_memory(500 + used, 500, 1_000) for used in range(500)]
    assert allowed == sorted(allowed, reverse=True)
    assert set(allowed) == {QUEUE_MEMORY_MAX >> step for step in range(QUEUE_MEMORY_STEPS)}


def test_a_ratio_of_one_keeps_the_full_limit_until_the_memory_limit() -> None:
    assert queue_memory(1_000, 1_000, 1_000) == QUEUE_MEMORY_MAX
    assert queue_memory(1_001, 1_000, 1_000) == LEAST
