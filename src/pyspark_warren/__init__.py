"""Every queue is a DataFrame: `format("warren")` for Spark, batch and streaming, reading and writing.

Spark imports `DefaultSource` from modules named `pyspark_...`. If it does not find this one,
`warren.spark.register` registers it.
"""

from pyspark_warren.source import WarrenDataSource as DefaultSource

__all__ = ["DefaultSource"]
