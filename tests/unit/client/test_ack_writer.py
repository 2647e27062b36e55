"""Many acks written at once equal the same acks written singly."""

from hypothesis import given
from hypothesis import strategies as st

from warren.client.ack_writer import AckWriter, ack


@given(st.integers(0, 1 << 40), st.integers(0, 1000))
def test_a_run_of_acks_has_the_bytes_of_single_acks(settled: int, count: int) -> None:
    expected = b"".join(ack(7, tag, is_multiple=False) for tag in range(settled + 1, settled + count + 1))
    assert AckWriter(7).up_to(settled, settled + count) == expected
