"""Tells a session of Spark of `format("warren")`. The one module of Warren that imports Spark at once."""

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_warren.source import WarrenDataSource


def register(spark: SparkSession) -> None:
    """Make `format("warren")` known to `spark`, where Spark does not find it by itself.

    Spark looks for modules that are called `pyspark_...` when it meets a name that it does not know, and
    gives up all of them if one cannot be imported.
    """
    try:
        spark.dataSource.register(WarrenDataSource)
    except PySparkException as error:
        # Spark 4.0 has no room for a source beside the one of that name that it has found: it is this one.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
