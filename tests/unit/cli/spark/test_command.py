"""The group without Spark: it lists, helps, and says what is missing."""

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
    """An environment without it, whichever this is."""
    for name in ("pyspark", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)


def test_every_command_has_a_help_without_spark() -> None:
    listed = CliRunner().invoke(main, ["spark", "--help"])
    assert "pip install '.[spark]'" in listed.output
    # Each has its line, whole.
    formatter = click.HelpFormatter(width=80)
    spark.format_commands(click.Context(spark), formatter)
    assert "archive     write messages to a lake, each once\n" in formatter.getvalue()
    assert formatter.getvalue() in listed.output
    for name in spark.list_commands(click.Context(spark)):
        shown = CliRunner().invoke(main, ["spark", name, "--help"])
        assert shown.exit_code == 0, shown.output
        assert "--help" in shown.output


def test_what_is_missing_is_named_with_what_brings_it() -> None:
    with pytest.raises(Failure, match=r"pyspark and pyarrow not installed: run pip install '\.\[spark\]'"):
        require_spark()


def test_a_wrong_address_is_told_before_anything_is_started() -> None:
    result = CliRunner().invoke(main, ["spark", "doctor", "--uri", "amqp:/al:s3cret@x/y/z"])
    assert (result.exit_code, "s3cret" in result.output) == (2, False)
