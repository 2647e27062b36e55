"""Tells a session of the source, where Spark does not find it by itself."""

from pyspark.sql import SparkSession

from pyspark_warren.source import WarrenDataSource


def register(spark: SparkSession) -> None:
    """Make `format("warren")` known to `spark`.

    Spark looks for modules that are called `pyspark_...` when it meets a name that it does not know, and
    gives up all of them if one cannot be imported.
    """
    spark.dataSource.register(WarrenDataSource)
