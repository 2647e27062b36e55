"""Checks that the installed version of Spark supports the options of a reader."""

import re

import pyspark

from pyspark_warren.options import ReadOptions

VERSION = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
# Spark passes filters to a data source in Python since this version.
_FILTERS_SINCE = (4, 1)
# Spark passes the start offset and the read limit of a micro-batch, and prepares AvailableNow, since this.
_BATCHES_SINCE = (4, 2)
HAS_BATCHES = VERSION >= _BATCHES_SINCE


def check_filters() -> None:
    """Raise ValueError if this Spark passes no filters to a source: `pushdown` would have no effect."""
    if VERSION < _FILTERS_SINCE:
        raise ValueError(
            f"Spark {pyspark.__version__} passes no filters to a data source in Python: pushdown needs Spark "
            "4.1 or newer. Without it, limit the read with startingOffsets, startingTimestamp and columns"
        )


def check_batches(options: ReadOptions) -> None:
    """Raise ValueError if `options` limit the size of a micro-batch and this Spark does not support it."""
    if not HAS_BATCHES and (options.offsets_max or options.bytes_max):
        raise ValueError(
            f"Spark {pyspark.__version__} does not pass the start offset of a micro-batch, and ends a query "
            "with trigger(availableNow=True) after the first one: maxOffsetsPerTrigger and "
            "maxBytesPerTrigger need Spark 4.2 or newer. Without them, a micro-batch reads everything that "
            "is available"
        )


def check_mode(mode: str) -> None:
    """Raise ValueError if a streaming query of this Spark cannot read with `mode`."""
    if not HAS_BATCHES and mode in ("lease", "classic"):
        raise ValueError(
            f"Spark {pyspark.__version__} does not pass the start offset of a micro-batch, which tells what "
            f"is committed: mode={mode} needs Spark 4.2 or newer. This Spark can read streams, and "
            "spark.read browses a queue of Warren"
        )
