"""Says in the log which patterns of users take too long."""

import logging

from warren.model.patterns import TOO_SLOW, take_suspended

logger = logging.getLogger("warren.patterns")

# Signs of a pattern that are shown.
_SHOWN_MAX = 200


def report_suspended() -> None:
    """Name those that were suspended since this was called."""
    for pattern in take_suspended():
        logger.warning("%s: '%.*s'", TOO_SLOW, _SHOWN_MAX, pattern.encode("utf-8", "replace").decode())
