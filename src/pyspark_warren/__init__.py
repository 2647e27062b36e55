"""Every queue is a DataFrame: `format("warren")` for Spark, batch and streaming, reading and writing.

Spark finds `DefaultSource` by the name of this module; where it does not look, `register(spark)` says so.
"""

from pyspark_warren.registering import register
from pyspark_warren.source import WarrenDataSource as DefaultSource

__all__ = ["DefaultSource", "register"]
