"""Bytes in error texts are formatted as Erlang writes and prints them (measured with RabbitMQ 3.10.8)."""

import pytest

from warren.wire.erlang import bytes_written, frame_bytes, pair_printed


def test_bytes_are_written_as_numbers() -> None:
    assert bytes_written(b"\x00EXTRA") == "<<0,69,88,84,82,65>>"
    assert bytes_written(b"") == "<<>>"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "type 1, all octets = <<>>"),
        (b"abc", 'type 1, all octets = <<"abc">>'),
        (b"\x002\x00", "type 1, all octets = <<0,50,0>>"),
        (b'a"b\\\n\x1b', r'type 1, all octets = <<"a\"b\\\n\e">>'),
        (b"\x7f", "type 1, all octets = <<127>>"),
        (b"\xc3\xa9\xff", 'type 1, all octets = <<"é\udcff">>'),
        (b"a" * 16, 'type 1, all octets = <<"aaaaaaaaaaaaaaaa">>'),
        (b"a" * 16 + b"\0", 'type 1, first 16 octets = <<"aaaaaaaaaaaaaaaa">>'),
        (
            bytes((99, 184, 197, 192, 162, 94, 113, 113, 91, 188, 158, 208, 159, 185, 252, 213, 0)),
            "type 1, first 16 octets = <<99,184,197,192,162,94,113,113,91,188,158,208,159,\n"
            "                            185,252,213>>",
        ),
        (
            bytes((251, 6, 8, 80, 54, 240, 0, 81, 193, 35, 55, 238, 217, 145, 123, 4, 0)),
            "type 1, first 16 octets = <<251,6,8,80,54,240,0,81,193,35,55,238,217,145,123,4>>",
        ),
    ],
)
def test_bytes_are_printed_as_text_where_possible_and_broken_into_lines(data: bytes, text: str) -> None:
    assert frame_bytes(1, data) == text


def test_no_more_is_printed_than_a_reply_text_holds() -> None:
    assert len(bytes_written(bytes(10_000_000))) < 2_000
    assert len(frame_bytes(1, bytes(10_000_000))) < 2_000


def test_a_pair_is_broken_where_it_does_not_fit() -> None:
    whole, long = "x" * 50, "x" * 51
    assert pair_printed(whole, "invalid_frame_end_marker", 0) == whole + "{invalid_frame_end_marker,0}"
    broken = "{invalid_frame_end_marker,\n" + " " * 52 + "0}"
    assert pair_printed(long, "invalid_frame_end_marker", 0) == long + broken
    assert pair_printed(f"first\n{whole}", "invalid_frame_end_marker", 0).endswith("marker,0}")
