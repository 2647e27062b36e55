"""Tables as rabbitmqctl prints them; the lines were measured on RabbitMQ 3.10.8."""

import json

import pytest

from warren.cli.operator.rabbitmq_output import rabbitmq_lines

NAMES = ("user", "tags")
ROWS = (("u2", []), ("guest", ["administrator", "monitoring"]))


def lines(formatter: str, names: tuple[str, ...] = NAMES, rows: object = ROWS) -> list[str]:
    return rabbitmq_lines(formatter, names, rows, has_headers=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("formatter", ["table", "tsv"])
def test_columns_are_separated_by_tabs(formatter: str) -> None:
    assert lines(formatter) == ["user\ttags", "u2\t[]", "guest\t[administrator, monitoring]"]
    assert rabbitmq_lines(formatter, NAMES, ROWS, has_headers=False) == lines(formatter)[1:]


def test_an_empty_table_has_no_names_of_columns() -> None:
    assert lines("table", rows=()) == lines("csv", rows=()) == lines("pretty_table", rows=()) == []


def test_json_is_a_list_with_an_object_on_each_line() -> None:
    assert lines("json") == [
        "[", '{"user":"u2","tags":[]}', ',{"user":"guest","tags":["administrator","monitoring"]}', "]"
    ]  # fmt: skip
    assert lines("json", rows=()) == ["[]"]


def test_every_field_of_csv_is_quoted() -> None:
    assert lines("csv", ("name", "arguments"), (("q", {"x-max-length": 10}),)) == [
        '"name","arguments"',
        '"q","[{""x-max-length"",10}]"',
    ]


def test_a_pretty_table_has_rules_between_rows() -> None:
    assert lines("pretty_table", ("user",), (("a",),)) == [
        "┌──────┐", "│ user │", "├──────┤", "│ a    │", "└──────┘"
    ]  # fmt: skip


def test_arguments_are_typed_and_definitions_are_strings_with_json() -> None:
    names, row = ("arguments", "definition"), ({"a": 1, "b": "c", "d": [True]}, {"max-length": 5})
    assert lines("table", names, (row,))[1] == '[{"a",1}, {"b","c"}, {"d",[true]}]\t{"max-length":5}'
    assert lines("json", names, (row,))[1] == (
        '{"arguments":[["a","long",1],["b","longstr","c"],["d","array",[true]]],'
        '"definition":"{\\"max-length\\":5}"}'
    )


def test_no_control_character_reaches_the_terminal() -> None:
    for formatter in ("table", "csv", "json", "pretty_table"):
        assert "\x1b" not in "".join(lines(formatter, ("name",), (("\x1b[2J",),)))


def test_addresses_and_versions_of_protocols_are_numbers_as_in_erlang() -> None:
    names = ("peer_host", "protocol", "cluster_state")
    rows = [["127.0.0.1", "AMQP 0-9-1", {"a": "running"}], ["::1", "stream", {}], ["till", None, {}]]
    lines = rabbitmq_lines("json", names, rows, has_headers=True)[1:-1]
    assert [json.loads(line.lstrip(",")) for line in lines] == [
        {"peer_host": [127, 0, 0, 1], "protocol": [0, 9, 1], "cluster_state": {"a": "running"}},
        {"peer_host": [0, 0, 0, 0, 0, 0, 0, 1], "protocol": "stream", "cluster_state": {}},
        {"peer_host": "till", "protocol": "", "cluster_state": {}},
    ]
    lines = rabbitmq_lines("table", names[:2], [rows[0][:2]], has_headers=False)
    assert lines == ["127.0.0.1\t{0,9,1}"]
