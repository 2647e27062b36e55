"""docs/internals/raft.md lists the scripts of the Raft core, each with the rule that it holds the core to."""

import re

from tests.tidy.sources import ROOT

NAMED = re.compile(r"`(\w+)`")


def test_each_rule_of_raft_names_a_script_and_each_script_stands_beside_a_rule() -> None:
    scripts = {path.stem for path in (ROOT / "tests/raft/scripts").glob("*.txt")}
    _, _, text = (
        (ROOT / "docs/internals/raft.md").read_text(encoding="utf-8").partition("Each rule has a script")
    )
    listed = [
        name
        for line in text.splitlines()
        if line.startswith("| ")
        for name in NAMED.findall(line.rsplit("|", 2)[1])
    ]
    assert sorted(listed) == sorted(scripts)
