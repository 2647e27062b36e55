"""What Spark offers to a source, by its version; what rests on the rest is refused with the reason."""

import re

import pyspark

from pyspark_warren.options import ReadOptions

VERSION = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
# Since then, filters of a read.
_FILTERS_SINCE = (4, 1)
# Since then, from where a batch begins, how much it may have, and how a query ends that takes what there is.
_BATCHES_SINCE = (4, 2)
HAS_BATCHES = VERSION >= _BATCHES_SINCE


def check_filters() -> None:
    """Raise ValueError if Spark tells a source no filters: it would read everything, and say nothing."""
    if VERSION < _FILTERS_SINCE:
        raise ValueError(
            f"Spark {pyspark.__version__} tells a source in Python no filters: pushdown needs Spark 4.1 or "
            "newer. Without it, startingOffsets, startingTimestamp and columns narrow what is read"
        )


def check_batches(options: ReadOptions) -> None:
    """Raise ValueError if batches cannot have the size that is asked for."""
    if not HAS_BATCHES and (options.offsets_max or options.octets_max):
        raise ValueError(
            f"Spark {pyspark.__version__} does not say from where a batch begins, and ends a query with "
            "trigger(availableNow=True) after the first: maxOffsetsPerTrigger and maxBytesPerTrigger need "
            "Spark 4.2 or newer. Without them, a batch has everything that is there"
        )


def check_mode(mode: str) -> None:
    """Raise ValueError if a query cannot read so."""
    if not HAS_BATCHES and mode in ("lease", "classic"):
        raise ValueError(
            f"Spark {pyspark.__version__} does not say from where a batch begins, by which a queue knows "
            f"what may go: mode={mode} needs Spark 4.2 or newer. A stream can be read, and spark.read looks "
            "at what waits in a queue of Warren"
        )
