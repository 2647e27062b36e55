"""The progress of a commit, stored as the value of a mark."""

from warren.store.staged.commit_progress import CommitProgress, CommitState, is_progress_key, progress_key


def test_progress_is_decoded_from_the_value_of_a_mark() -> None:
    progress = CommitProgress(
        state=CommitState.GIVEN_UP, batch=2**63 - 1, rows=5, published=4, unroutable=1, at=7, user="u\udcff"
    )
    assert CommitProgress.decode(progress.encode()) == progress


def test_the_key_of_a_mark_is_recognised() -> None:
    assert is_progress_key(progress_key("query"))
    assert not is_progress_key(b"query")
    assert progress_key("a") != progress_key("b")
