"""Rules of Raft and of what is synced before what, each as a script of one group of replicas.

Each script says in its first lines which rule it holds the core to, and what the mistake would lose. The
commands are those of `interaction` and `faults`.
"""

from pathlib import Path

import pytest
from tests.raft.datadriven import read
from tests.raft.faults import FaultyInteraction

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_each_script_is_printed_as_expected(path: Path) -> None:
    read(path).run(FaultyInteraction().execute)


def test_every_script_says_which_rule_it_holds_the_core_to() -> None:
    assert SCRIPTS
    assert not [path.name for path in SCRIPTS if not path.read_text(encoding="utf-8").startswith("# ")]
