"""Static shovels of the configuration: how their keys are read, refused, and shown without passwords."""

import pytest

from warren.node.config import Config
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.effective_settings import effective_settings
from warren.node.static_shovels import static_shovels

ENDS = {"s.src-uri": "amqp://u:secret@a", "s.dest-uri": "amqp://b", "s.src-queue": "q"}


def config(**keys: str) -> Config:
    """A configuration with the ends of the shovel `s`, and other keys."""
    given = ENDS | {f"s.{key.replace('_', '-')}": value for key, value in keys.items()}
    return Config(
        [
            ConfigEntry(f"shovel.{key}", value, f"f:{line}")
            for line, (key, value) in enumerate(given.items(), 1)
        ]
    )


def test_values_have_the_types_of_their_keys() -> None:
    found = static_shovels(
        config(
            src_queue_args='{"x-max-length": 5}', src_delete_after="7", prefetch_count="9", rate_limit="0.5",
            dest_queue="7", add_timestamp_header="true", src_predeclared="false", reconnect_delay="2",
            src_delete_after_duration="60", single_run="true",
        )
    ).definitions["s"]  # fmt: skip
    assert (found["src-queue-args"], found["src-delete-after"]) == ({"x-max-length": 5}, 7)
    assert (found["prefetch-count"], found["rate-limit"], found["reconnect-delay"]) == (9, 0.5, 2)
    assert (found["dest-queue"], found["add-timestamp-header"], found["src-predeclared"]) == (
        "7",
        True,
        False,
    )
    assert (found["src-delete-after-duration"], found["single-run"]) == (60, True)


def test_numbered_addresses_are_tried_in_their_order() -> None:
    given = [ConfigEntry(f"shovel.s.{key}", value, "f") for key, value in (
        ("src-uri.1", "amqp://a"), ("src-uri.2", "amqp://b"), ("dest-uri", "amqp://c"), ("src-queue", "q"),
    )]  # fmt: skip
    [shovel] = static_shovels(Config(given)).shovels
    assert shovel.definition.source.uris == ("amqp://a", "amqp://b")
    assert shovel.is_static


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("prefetch_count", "many", "should be a number"),
        ("nonsense", "1", "Unrecognised terms"),
        ("src_exchange", "x", "Cannot specify 'src-exchange' and 'src-queue'"),
        ("ack_mode", "sometimes", "ack-mode"),
        ("src_queue_args", "[", "src-queue-args"),
    ],
)
def test_a_wrong_key_is_refused_with_the_place_of_the_shovel(key: str, value: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        static_shovels(config(**{key: value}))
    assert str(caught.value).startswith("f:1: shovel 's': ")
    assert text in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        static_shovels(Config([ConfigEntry("shovel.src-uri", "amqp://a", "f:1")]))
    assert str(caught.value) == "f:1: the keys of a static shovel are shovel.NAME.KEY"


def test_addresses_are_shown_without_their_credentials() -> None:
    shown = {row.key: row.value for row in effective_settings(config())}
    assert shown["shovel.s.src-uri"] == "amqp://a"
    assert shown["shovel.s.src-queue"] == "q"


@pytest.mark.parametrize(("topology", "is_predeclared"), [("true", True), ("false", False), (None, False)])
def test_the_queues_of_all_shovels_have_to_exist_if_the_configuration_says_so(
    topology: str | None, is_predeclared: bool
) -> None:
    entries = [ConfigEntry(f"shovel.{key}", value, "f") for key, value in ENDS.items()]
    if topology is not None:
        entries.append(ConfigEntry("shovel.topology.predeclared", topology, "f"))
    found = static_shovels(Config(entries))
    [shovel] = found.shovels
    assert shovel.definition.source.is_predeclared is is_predeclared
    assert bool(found.defaults) is is_predeclared


def test_a_topology_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(ConfigError, match="should be true or false, actually was 'x'"):
        static_shovels(Config([ConfigEntry("shovel.topology.predeclared", "x", "f")]))


@pytest.mark.parametrize(
    ("key", "value"),
    [("operating_mode", "standard"), ("local.max_credit", "200"), ("delete_after_duration_floor", "30")],
)
def test_a_key_of_all_shovels_of_rabbitmq_4_is_no_shovel(key: str, value: str) -> None:
    given = Config([ConfigEntry(f"shovel.{key}", value, "f:1")])
    assert static_shovels(given).shovels == ()
    [warning] = given.warnings
    assert warning.startswith(f"f:1: shovel.{key} has no effect: ")
