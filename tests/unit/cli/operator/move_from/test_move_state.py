"""The file with the state of a move."""

from pathlib import Path

import pytest

from warren.cli.operator.failures import Failure
from warren.cli.operator.move_from.move_state import MoveState, StateFile

OLD = "amqp://rabbitmq:5672"


def test_a_state_is_read_as_it_was_saved_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state.json")
    state = file.load(OLD)
    assert state == MoveState(old=OLD)
    state.done.append("import")
    state.moved.append(["our store", "failed carts", 3])
    file.save(state)
    assert file.load(OLD) == state
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_the_state_of_another_move_is_refused(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state.json")
    file.save(MoveState(old=OLD))
    with pytest.raises(Failure, match="about the move from amqp://rabbitmq:5672, not amqp://other:5672"):
        file.load("amqp://other:5672")


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"nothing": 1}', '{"done": []}'])
def test_a_file_that_is_no_state_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(Failure, match="is not the state of a move"):
        StateFile(path).load(OLD)
