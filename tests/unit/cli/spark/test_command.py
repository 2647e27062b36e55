"""The command group `spark` without PySpark: list, help, and the message about what is missing."""

import sys

import click
import pytest
from click.testing import CliRunner

from warren.cli.main import main
from warren.cli.operator.failures import Failure
from warren.cli.spark.command import spark
from warren.cli.spark.session import require_spark


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the import of PySpark fail, whatever is installed."""
    for name in ("pyspark", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)


def test_every_command_has_help_without_pyspark() -> None:
    listed = CliRunner().invoke(main, ["spark", "--help"])
    assert "pip install '.[spark]'" in listed.output
    # Each command has one complete line.
    formatter = click.HelpFormatter(width=80)
    spark.format_commands(click.Context(spark), formatter)
    assert "archive     write messages to a lake, each once\n" in formatter.getvalue()
    assert formatter.getvalue() in listed.output
    for name in spark.list_commands(click.Context(spark)):
        shown = CliRunner().invoke(main, ["spark", name, "--help"])
        assert shown.exit_code == 0, shown.output
        assert "--help" in shown.output


def test_a_missing_package_is_named_with_the_command_to_install_it() -> None:
    with pytest.raises(Failure, match=r"pyspark and pyarrow not installed: run pip install '\.\[spark\]'"):
        require_spark()


def test_a_malformed_address_is_reported_before_spark_starts() -> None:
    result = CliRunner().invoke(main, ["spark", "doctor", "--uri", "amqp:/al:s3cret@x/y/z"])
    assert (result.exit_code, "s3cret" in result.output) == (2, False)
