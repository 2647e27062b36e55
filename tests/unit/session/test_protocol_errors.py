"""The texts of close methods."""

from warren.errors import NotFound
from warren.session.protocol_errors import close_text


def test_a_short_text_is_sent_unchanged() -> None:
    assert close_text(NotFound("no queue 'q' in vhost '/'")) == "NOT_FOUND - no queue 'q' in vhost '/'"


def test_a_long_text_is_truncated_to_255_bytes_at_a_character() -> None:
    for letter in ("x", "é", "€", "😀"):
        text = close_text(NotFound(letter * 300)).encode()
        assert 250 < len(text) <= 255
        assert text.endswith(b"...")
