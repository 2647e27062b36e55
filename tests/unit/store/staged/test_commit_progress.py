"""What a mark says of a query."""

from warren.store.staged.commit_progress import CommitProgress, CommitState, is_progress_key, progress_key


def test_progress_comes_back_from_the_value_of_a_mark() -> None:
    progress = CommitProgress(
        state=CommitState.GIVEN_UP, batch=2**63 - 1, rows=5, published=4, unroutable=1, at=7, user="u\udcff"
    )
    assert CommitProgress.decode(progress.encode()) == progress


def test_a_key_says_that_it_is_one() -> None:
    assert is_progress_key(progress_key("query"))
    assert not is_progress_key(b"query")
    assert progress_key("a") != progress_key("b")
