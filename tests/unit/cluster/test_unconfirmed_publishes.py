"""Publishes to a remote queue are answered in their order, in runs."""

import pytest

from warren.cluster.unconfirmed_publishes import UnconfirmedPublishes
from warren.model.confirm_listener import ConfirmListener


class Listener(ConfirmListener):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def expect(self, sequence: int) -> None:
        self.told.append(("expect", sequence, sequence))

    def done(self, first: int, last: int) -> None:
        self.told.append(("done", first, last))

    def refused(self, sequence: int) -> None:
        self.told.append(("refused", sequence, sequence))

    def take(self) -> list[tuple[str, int, int]]:
        told, self.told = self.told, []
        return told


@pytest.fixture
def unconfirmed() -> UnconfirmedPublishes:
    return UnconfirmedPublishes()


def test_publishes_of_one_channel_are_confirmed_as_runs(unconfirmed: UnconfirmedPublishes) -> None:
    listener = Listener()
    for sequence in (1, 2, 3, 7):
        unconfirmed.add(listener, sequence)
    assert [kind for kind, *_ in listener.take()] == ["expect"] * 4
    unconfirmed.confirm(2)
    assert listener.take() == [("done", 1, 2)]
    unconfirmed.confirm(2)
    assert listener.take() == [("done", 3, 3), ("done", 7, 7)]
    assert not unconfirmed.count


def test_publishes_of_several_channels_keep_their_order(unconfirmed: UnconfirmedPublishes) -> None:
    one, other = Listener(), Listener()
    unconfirmed.add(one, 1)
    unconfirmed.add(other, 1)
    unconfirmed.add(one, 2)
    one.take()
    other.take()
    unconfirmed.confirm(1)
    unconfirmed.refuse(1)
    assert one.take() == [("done", 1, 1)]
    assert other.take() == [("refused", 1, 1)]
    unconfirmed.refuse(1)
    assert one.take() == [("refused", 2, 2)]


def test_a_run_that_was_answered_is_not_continued(unconfirmed: UnconfirmedPublishes) -> None:
    listener = Listener()
    unconfirmed.add(listener, 1)
    unconfirmed.confirm(1)
    unconfirmed.add(listener, 2)
    listener.take()
    unconfirmed.confirm(1)
    assert listener.take() == [("done", 2, 2)]
