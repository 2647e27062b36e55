"""Options that all Spark commands share, and the parts of them that are never printed."""

from typing import Any

import pytest

from warren.cli.operator.failures import USAGE, Failure
from warren.cli.spark.options import SparkSettings, parse_pairs, reason, settings_of

FAILED = """[PYTHON_DATA_SOURCE_ERROR] Failed when instance plans: Traceback (most recent call last):
  File "source.py", line 1, in partitions
    raise ValueError(text)
ValueError: there is no queue 'a: b' in vhost '/'
SQLSTATE: 38000
\tat org.apache.spark.Some.method(Some.scala:1)
"""


def reported(**given: Any) -> SparkSettings:
    """The settings that the arguments result in."""
    defaults: dict[str, Any] = {
        "uri": "amqp://al:s3cret%21@host", "management_uri": None, "option": (), "master": "local[1]",
        "remote": None, "conf": (), "is_json": False, "is_quiet": False, "is_verbose": False,
        "cacert": None, "cert": None, "key": None, "is_insecure": False,
    }  # fmt: skip
    return settings_of(**(defaults | given))


def test_a_failure_prints_the_line_with_the_reason() -> None:
    assert reason(Exception(FAILED)) == "there is no queue 'a: b' in vhost '/'"
    assert reason(ValueError("first\nsecond")) == "first"
    assert reason(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_no_failure_prints_a_password() -> None:
    settings = reported(management_uri="http://bo:hunter2@host")
    for text in ("amqp://al:s3cret%21@host", "login with s3cret!", "http://bo:hunter2@host"):
        shown = settings.failure(ValueError(text)).message
        assert "s3cret" not in shown
        assert "hunter2" not in shown
    assert "s3cret" not in repr(settings)
    connected = reported(remote="sc://host:15002/;token=hunter2")
    assert connected.place == "sc://host:15002/"
    assert "hunter2" not in repr(connected)
    assert "user 'guest'" in reported(uri="amqp://guest:guest@h").failure(ValueError("user 'guest'")).message


def test_a_malformed_address_is_a_usage_error() -> None:
    with pytest.raises(Failure, match="--uri: an AMQP URI is") as caught:
        reported(uri="http://al:s3cret@host")
    assert caught.value.exit_code == USAGE
    assert "s3cret" not in caught.value.message


def test_pairs_have_a_name_and_a_value() -> None:
    assert parse_pairs("--option", ["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    for wrong in ("s3cret", "=s3cret"):
        with pytest.raises(Failure, match=r"^--option must be NAME=VALUE$"):
            parse_pairs("--option", [wrong])


def test_tls_files_become_options_of_the_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [name for name in reported().broker if name.startswith("tls.")]
    monkeypatch.setenv("WARREN_KEY_PASSWORD", "opens")
    settings = reported(cacert="ca.pem", cert="me.pem", key="me.key", is_insecure=True)
    files = {name: value for name, value in settings.broker.items() if name.startswith("tls.")}
    assert files == {
        "tls.caFile": "ca.pem",
        "tls.certFile": "me.pem",
        "tls.keyFile": "me.key",
        "tls.keyPassword": "opens",
        "tls.verify": "false",
    }
