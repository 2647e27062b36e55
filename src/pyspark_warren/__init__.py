"""Every queue is a DataFrame: `format("warren")` for Spark, batch and streaming, reading and writing.

Spark finds `DefaultSource` by the name of this module. Where it does not look, `warren.spark.register` says
so.
"""

from pyspark_warren.source import WarrenDataSource as DefaultSource

__all__ = ["DefaultSource"]
