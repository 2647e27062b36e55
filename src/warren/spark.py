"""Registers `format("warren")` with a Spark session. Importing this module imports Spark."""

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_warren.source import WarrenDataSource


def register(spark: SparkSession) -> None:
    """Register `format("warren")` with `spark`, in case Spark does not find it by itself.

    For an unknown format, Spark imports all modules named `pyspark_...`, and finds none of them if one import
    fails. Registering twice does no harm.
    """
    try:
        spark.dataSource.register(WarrenDataSource)
    except PySparkException as error:
        # Spark 4.0 refuses to register a name that it has found itself; that source is this one.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
