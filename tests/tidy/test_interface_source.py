"""What the source of the web interface must not do."""

import re
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[2] / "ui" / "src").rglob("*.ts*"))
# A list that is not there yet has no entries, and is not empty: `LiveTable` tells them apart.
EMPTY_INSTEAD = re.compile(r"items=\{[^}]*\?\?\s*\[\]")
# Who asks in a component by hand shows the answer that comes last, and not that to the last question.
ASKED_BY_HAND = re.compile(r"useEffect\(\(\) => void [^;]*\.then\(set|set[A-Z]\w*\(\s*await get")


def test_no_list_is_called_empty_before_it_is_there() -> None:
    assert [path.name for path in SOURCES if EMPTY_INSTEAD.search(path.read_text())] == []


def test_no_answer_is_shown_without_a_look_at_whether_its_question_is_still_asked() -> None:
    assert SOURCES
    assert [path.name for path in SOURCES if ASKED_BY_HAND.search(path.read_text())] == []
