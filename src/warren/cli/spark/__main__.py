"""Runs `warren spark` with `spark-submit`, or with `python -m warren.cli.spark`."""

from warren.cli.spark.command import spark

if __name__ == "__main__":
    spark(prog_name="warren spark")
