"""Waiting for a broker, for which a command asks it again and again."""

import time
from collections.abc import Callable

from warren.cli.operator.failures import REFUSED, UNREACHABLE, Failure, TimedOut
from warren.cli.operator.options import REQUEST_TIMEOUT_S
from warren.cli.operator.session import Session

# Interval at which a broker is asked.
_INTERVAL_S = 0.5
# The shortest timeout of a request, so that the last one can be answered.
_REQUEST_S_MIN = 1.0


def wait(session: Session, timeout_s: float, missing: Callable[[], str]) -> None:
    """Wait until `missing`, which may ask the broker, returns an empty text.

    A broker that is not reached is asked again. Raises TimedOut with what is missing after `timeout_s`.
    """
    end = time.monotonic() + timeout_s
    while True:
        left_s = end - time.monotonic()
        session.api.limit_time(min(max(left_s, _REQUEST_S_MIN), REQUEST_TIMEOUT_S))
        try:
            problem, status = missing(), REFUSED
        except Failure as failure:
            if failure.status != UNREACHABLE:
                raise
            problem, status = failure.message, failure.status
        if not problem:
            return
        left_s = end - time.monotonic()
        if left_s <= 0:
            raise TimedOut(timeout_s, problem, status)
        time.sleep(min(_INTERVAL_S, left_s))
