"""Commands and texts of the scripts that the published vectors need and the project's scripts do not."""

import pytest
from tests.raft.datadriven import parse
from tests.raft.interaction import Interaction
from tests.raft.texts import quoted


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"foo", '"foo"'), (b'"foo"', r'"\"foo\""'), (b"a\\b\n\t", r'"a\\b\n\t"'), (b"\x00\xff", r'"\x00\xff"')],
)
def test_bytes_are_quoted_as_the_vectors_quote_them(data: bytes, text: str) -> None:
    assert quoted(data) == text


def test_lines_below_a_command_are_commands() -> None:
    interaction = Interaction()
    assert (
        interaction.execute(parse("log-level none", 1, "add-nodes 1 voters=(1) index=2\ncampaign 1")) == "ok"
    )
    assert interaction.execute(parse("log-level debug", 1, "raft-state")) == (
        "1: StateCandidate (Voter) Term:1 Lead:0\n"
    )


def test_a_level_that_suppresses_everything_does_not_suppress_a_refused_proposal() -> None:
    interaction = Interaction()
    interaction.execute(parse("log-level none", 1, "add-nodes 3 voters=(1,2,3) index=2"))
    assert interaction.execute(parse("propose 1 a", 1)) == "raft proposal dropped\n"


def test_a_place_for_a_debugger_does_nothing() -> None:
    assert Interaction().execute(parse("_breakpoint", 1)) == "ok"
