"""The project that `warren spark init` writes: completely, or not at all."""

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from warren.cli.main import main

FILES = {"README.md", "spark-pipeline.yml", "transformations/messages.py", "transformations/by_minute.sql"}


def init(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["spark", "init", *arguments])


def test_a_project_reads_from_the_given_broker_and_contains_no_password(tmp_path: Path) -> None:
    folder = tmp_path / "Orders-report"
    ended = init(str(folder), "--stream", 'orders\'s "new"')
    assert ended.exit_code == 0, ended.output
    assert {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()} == FILES
    program = (folder / "transformations" / "messages.py").read_text()
    constants = {one.value for one in ast.walk(ast.parse(program)) if isinstance(one, ast.Constant)}
    assert 'orders\'s "new"' in constants
    assert "def orders_report_messages()" in program
    assert (folder / "storage").as_uri() in (folder / "spark-pipeline.yml").read_text()


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    ended = init(str(tmp_path), "--queue", "orders")
    assert ended.exit_code == 2
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "arguments", [["x"], ["x", "--queue", "a", "--stream", "b"], ["7", "--queue", "a"], ["ä", "--queue", "a"]]
)
def test_a_project_has_one_source_and_one_name_for_its_tables(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert init(*arguments).exit_code == 2
    assert list(tmp_path.iterdir()) == []
