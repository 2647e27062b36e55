"""Repeats an action when a permission that it needs has been asked for."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from warren.errors import Undecided
from warren.limits_access import WEB_QUESTIONS_MAX

T = TypeVar("T")


async def decided(action: Callable[[], Awaitable[T]], asked: Undecided | None = None) -> T:
    """The result of `action`, which is called again whenever a permission has been decided that it needs.

    `asked` is what `action` has raised before, if it was called already.
    """
    count = 0
    try:
        while True:
            if asked is not None:
                await asked.decide()
            try:
                return await action()
            except Undecided as undecided:
                count += 1
                if count > WEB_QUESTIONS_MAX:
                    raise
                asked = undecided
    finally:
        if asked is not None:
            asked.forget()
