"""Refusals that metadata which are out of date have caused, and those that stand."""

import pytest
from tests.unit.access.dependencies import finished
from tests.unit.metadata.late_proposals import LateProposals

from warren.errors import (
    AccessRefused,
    AmqpError,
    ChannelException,
    HomeDown,
    InternalError,
    MetadataTimeout,
    NotFound,
)
from warren.metadata.commands import PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.refusal_check import RefusalCheck


class Checked:
    """A check of metadata that lag behind, and an action that needs the virtual host v."""

    def __init__(self, refusal: AmqpError | None = None) -> None:
        self.metadata = Metadata()
        self.proposals = LateProposals(self.metadata)
        self.check = RefusalCheck(self.metadata, self.proposals)
        self.refusal = refusal or NotFound("no v")
        self.count = 0

    async def act(self) -> str:
        self.count += 1
        if self.metadata.vhost("v") is None:
            raise self.refusal
        return "found"

    def attempt(self) -> str:
        return finished(self.check.attempt(self.act))


@pytest.mark.parametrize("refusal", [NotFound("no v"), AccessRefused("not v")])
def test_what_is_refused_by_old_metadata_is_tried_again_once(refusal: ChannelException) -> None:
    checked = Checked(refusal)
    checked.proposals.others = [PutVhost(name="v")]
    assert checked.attempt() == "found"
    assert checked.attempt() == "found"
    assert (checked.count, checked.proposals.count) == (3, 1)


def test_a_refusal_by_the_newest_metadata_stands() -> None:
    checked = Checked()
    with pytest.raises(NotFound):
        checked.attempt()
    checked.proposals.others = [PutVhost(name="w")]
    with pytest.raises(NotFound):
        checked.attempt()
    assert checked.count == 3


def test_errors_that_close_the_connection_are_not_doubted() -> None:
    checked = Checked(InternalError("broken"))
    checked.proposals.others = [PutVhost(name="v")]
    with pytest.raises(InternalError):
        checked.attempt()
    assert checked.proposals.count == 0


def test_that_a_home_is_down_is_not_doubted() -> None:
    checked = Checked(HomeDown("down"))
    checked.proposals.has_majority = False
    with pytest.raises(HomeDown):
        checked.attempt()
    assert checked.proposals.count == 0


def test_without_a_majority_what_is_not_found_may_exist_and_any_other_refusal_stands() -> None:
    checked = Checked()
    checked.proposals.has_majority = False
    with pytest.raises(MetadataTimeout) as caught:
        checked.attempt()
    assert caught.value.reply_text == (
        "INTERNAL_ERROR - no v as far as this node knows, because the metadata store operation timed out"
    )
    checked.refusal = AccessRefused("not v")
    with pytest.raises(AccessRefused):
        checked.attempt()


def test_without_a_majority_what_this_node_has_counts_as_current() -> None:
    checked = Checked()
    checked.proposals.others = [PutVhost(name="v")]
    assert finished(checked.check.is_outdated(checked.metadata.index))
    assert not finished(checked.check.is_outdated(checked.metadata.index))
    checked.proposals.has_majority = False
    assert not finished(checked.check.is_outdated(0))
