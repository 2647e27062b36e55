"""Output of operator commands: tables, JSON and messages."""

import json

import pytest

from warren.cli.operator.api_target import DEFAULT_URI, target_of
from warren.cli.operator.management_client import ManagementClient
from warren.cli.operator.session import Session, Style, value_at


def session(**style: object) -> Session:
    api = ManagementClient(target_of(DEFAULT_URI, {}, str), 1)
    return Session(api, Style(**style))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ({}, "name  n\na\\x0ab  1\n"),
        ({"has_headers": False}, "a\\x0ab  1\n"),
        ({"formatter": "tsv"}, "name\tn\na\\x0ab\t1\n"),
    ],
)
def test_the_table_format_is_selected_by_an_option(
    capsys: pytest.CaptureFixture[str], style: dict[str, object], expected: str
) -> None:
    session(**style).print_rows(("name", "n"), [("a\nb", 1)])
    printed = capsys.readouterr().out
    assert [line.split() for line in printed.splitlines()] == [line.split() for line in expected.splitlines()]
    assert ("\t" in printed) == (style.get("formatter") == "tsv")


def test_output_for_programs_is_ascii_json(capsys: pytest.CaptureFixture[str]) -> None:
    session(formatter="json").print_rows(("name",), [("\x9bü",)])
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed) == [{"name": "\x9bü"}]


def test_confirmations_are_printed_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    session().say("done")
    session(is_quiet=True).say("not said")
    session(formatter="json").say("not said")
    assert capsys.readouterr().out == "done\n"


def test_long_operations_print_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    working = session()
    working.progress(1, 3)
    monkeypatch.setattr("warren.cli.operator.session._PROGRESS_S", 0.0)
    working.progress(2, 3)
    session(is_quiet=True).progress(3, 3)
    assert capsys.readouterr().err == "warren: 2 of 3\n"


def test_a_dotted_name_selects_a_nested_field() -> None:
    row = {"message_stats": {"publish": 3}, "name": "q"}
    assert value_at(row, "message_stats.publish") == 3
    assert value_at(row, "name.more") is None
    assert value_at(row, "none.at.all") is None
