"""The same commands for `spark-submit`, and for `python -m warren.cli.spark`."""

from warren.cli.spark.command import spark

if __name__ == "__main__":
    spark(prog_name="warren spark")
