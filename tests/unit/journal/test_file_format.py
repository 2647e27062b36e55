"""The file header of the journal: versions that are read, and the errors of other files."""

import pytest

from warren.journal.file_format import HEAD_SIZE, VERSION, JournalError, encode_head, seed_of
from warren.store.record import checksum_seed
from warren.store.segment import encode_head as segment_head


def test_the_checksums_of_a_file_depend_on_its_salt() -> None:
    head = encode_head(b"12345678")
    assert len(head) == HEAD_SIZE
    assert seed_of(head) == checksum_seed(0, b"12345678")


def test_a_newer_format_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.journal.file_format.VERSION", VERSION + 1)
    newer = encode_head(bytes(8))
    monkeypatch.undo()
    with pytest.raises(JournalError) as caught:
        seed_of(newer)
    assert str(caught.value) == (
        f"metadata, byte 6: format {VERSION + 1} is newer than {VERSION}, the newest this "
        "version of Warren reads"
    )


@pytest.mark.parametrize("data", [b"", b"WRNMET", bytes(HEAD_SIZE), segment_head(1, bytes(8))])
def test_a_file_of_another_program_is_refused(data: bytes) -> None:
    with pytest.raises(JournalError, match="byte 0: not a metadata file of Warren"):
        seed_of(data)


def test_a_damaged_header_is_refused() -> None:
    head = bytearray(encode_head(bytes(8)))
    head[9] ^= 1
    with pytest.raises(JournalError, match="byte 0: the header is damaged"):
        seed_of(bytes(head))
