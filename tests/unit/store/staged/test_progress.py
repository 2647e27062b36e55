"""What a mark says of a query."""

from warren.store.staged.progress import Progress, State, is_key, key_of


def test_progress_comes_back_from_the_value_of_a_mark() -> None:
    progress = Progress(
        state=State.GIVEN_UP, batch=2**63 - 1, rows=5, published=4, unroutable=1, at=7, user="u\udcff"
    )
    assert Progress.decode(progress.encode()) == progress


def test_a_key_says_that_it_is_one() -> None:
    assert is_key(key_of("query"))
    assert not is_key(b"query")
    assert key_of("a") != key_of("b")
