"""The expiration property of a message."""

import pytest
from tests.unit.queues.samples import sent

from warren.queues.expiration import expiration_ms


@pytest.mark.parametrize(
    ("text", "ms"), [("0", 0), ("+5", 5), ("60000", 60_000), ("315360000000", 315_360_000_000)]
)
def test_the_expiration_is_the_number_in_the_property(text: str, ms: int) -> None:
    message = sent("x", expiration=text, content_type="t", headers={"a": 1}, reply_to="r", priority=1)
    assert expiration_ms(message) == ms
