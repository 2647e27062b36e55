"""Logs the regular expressions of users that are suspended because they take too long."""

import logging

from warren.model.patterns import TOO_SLOW, take_suspended

logger = logging.getLogger("warren.patterns")

# The number of characters of a pattern that are logged.
_SHOWN_MAX = 200


def report_suspended() -> None:
    """Log the patterns that were suspended since the last call."""
    for pattern in take_suspended():
        logger.warning("%s: '%.*s'", TOO_SLOW, _SHOWN_MAX, pattern.encode("utf-8", "replace").decode())
